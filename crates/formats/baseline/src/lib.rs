//! The table of the performance of a host and a path, as `cutline baseline` measures it (QUANTA section 4.1).
//!
//! ```text
//! ceilings     the most that a host carried, for the resource manager
//! document     the table: host, path, plan, and a row for each measurement
//! fingerprint  the host that a table belongs to
//! file         reading, checking and writing
//! validity     whether a table holds for a host at a time
//! ```
//!
//! A table is JSON. [`BaselineDocument::baseline`] converts its rows for the translators of `cutline-translate`. The crate
//! measures nothing.

mod ceilings;
mod document;
mod file;
mod fingerprint;
mod validity;

pub use ceilings::Ceiling;
pub use document::{
    BaselineDocument, BaselineRow, FORMAT, HostRates, PathFingerprint, PlanDocument, QueueSize, RowKey,
};
pub use file::{FileError, TableError, check_path, load, lock, parse, save};
pub use fingerprint::HostFingerprint;
pub use validity::{Invalid, LONGEST_AGE};
