//! Questions to stored results: which of two is better, how something depends on something else, where a sweep is best.
//!
//! ```text
//! stored     results in a folder, and the selection of groups and points
//! columns    the measures that tables have, by name
//! summary    means over replications, of each point or along swept keys
//! compare    two sets of results: matched points, differences with intervals
//! picture    distributions, courses over time, means along a sweep, as data and as charts
//! glance     the best point of a sweep, in a sentence for each group
//! ```
//!
//! Everything here reads results and returns values, documents or charts. Their files and their format in print are
//! up to the caller.

pub mod columns;
pub mod compare;
mod error;
pub mod glance;
#[cfg(feature = "charts")]
pub mod picture;
mod stored;
pub mod summary;

pub use error::AnalysisError;
pub use stored::{Selection, StoredResults, Tables, needs_distributions};
