//! Where results go: tables of plain rows in Parquet files, and a summary that tells their story.

mod column;
mod error;
mod measure;
mod rows;
mod run;
mod schema;
mod store;
mod summary;
mod table;

pub use column::{CellKind, CellValue, Column, Row};
pub use error::StoreError;
pub use measure::{Subject, SubjectKind, Values, group_measures, queue_measures};
pub use rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow};
pub use run::{RunKey, RunResult};
pub use schema::markdown;
pub use store::Store;
pub use summary::{FailedRun, Host, PointSummary, RunSummary, Summary, point_rows};
pub use table::{SCHEMA_VERSION, TableWriter, read_table, write_table};
