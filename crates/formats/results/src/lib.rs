//! Results of experiments: tables of plain rows in Parquet files, and a summary of their origin.
//!
//! A [`RunResult`] has the rows of one run. A [`RunStore`] stores each finished run in a folder, completely or not at all,
//! and joins the runs to one file per table. A [`Store`] reads these files. Results are identified by their [`origin`], and
//! results of another origin replace them only on request ([`ExistingResults`]). Every [`Row`] type lists its [`Column`]s once,
//! with unit and meaning. Writing, reading and the documentation ([`schema_page`]) use that list. [`group_measures`] and
//! [`queue_measures`] collect the values of a measure over replications.
//!
//! The crate does not depend on scenarios or the simulator. The origin of the results is plain text and numbers
//! ([`Summary`]).

#[cfg(feature = "arrow")]
pub mod arrow;
mod column;
mod digest;
mod document;
mod error;
mod existing;
mod groups;
mod key;
mod lock;
mod measure;
mod origin;
mod page_header;
mod pages;
mod quantity;
mod rows;
mod run;
mod run_store;
mod schema;
mod store;
mod summary;
mod table;
mod version;

pub use column::{CellKind, CellValue, Column, Row};
pub use cutline_records::Heading;
pub use digest::seal;
pub use document::{RowDocument, RunDocument, RunsDocument};
pub use error::StoreError;
pub use existing::{ExistingResults, Planned};
pub use groups::{GroupDocument, groups};
pub use key::RunKey;
pub use lock::Lock;
pub use measure::{
    Subject, SubjectKind, Values, distribution_values, group_measures, group_values, queue_measures,
    queue_values,
};
pub use origin::origin;
pub use quantity::{DISTRIBUTED_QUANTITIES, distributed_quantity};
pub use rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow};
pub use run::RunResult;
pub use run_store::{Damage, RunStore};
pub use schema::schema_page;
pub use store::Store;
pub use summary::{FailedRun, Host, PointSummary, RunSummary, Summary};
pub use table::{TableWriter, read_table, write_table};
pub use version::SCHEMA_VERSION;
