//! Results of experiments: tables of plain rows in Parquet files, and a summary of what made them.
//!
//! A [`RunResult`] has the rows that one run measured. A [`RunStore`] keeps each finished run in a folder that appears whole
//! or not at all, and joins them to one file for each table; a [`Store`] reads these files. Results are identified by what
//! made them ([`origin`]): others never replace them unasked ([`Existing`]). Every [`Row`] type lists its [`Column`]s with unit and meaning once:
//! writing, reading and the documentation ([`schema_page`]) all follow that list. [`group_measures`] and
//! [`queue_measures`] collect the values of a measure over replications.
//!
//! Nothing here knows scenarios or the simulator: what made the results comes as plain text and numbers ([`Summary`]).

mod column;
mod digest;
mod document;
mod error;
mod existing;
mod key;
mod lock;
mod measure;
mod origin;
mod page_header;
mod pages;
mod rows;
mod run;
mod run_store;
mod schema;
mod store;
mod summary;
mod table;
mod version;

pub use column::{CellKind, CellValue, Column, Heading, Row};
pub use document::{RowDocument, RunDocument, RunsDocument};
pub use error::StoreError;
pub use existing::{Existing, Planned};
pub use key::RunKey;
pub use measure::{Subject, SubjectKind, Values, group_measures, queue_measures};
pub use origin::origin;
pub use rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow};
pub use run::RunResult;
pub use run_store::{Damage, RunStore};
pub use schema::schema_page;
pub use store::Store;
pub use summary::{FailedRun, Host, PointSummary, RunSummary, Summary};
pub use table::{TableWriter, read_table, write_table};
pub use version::SCHEMA_VERSION;
