//! What results and traces say of the program that made them, and how it runs.

use std::num::NonZeroUsize;

/// The version that results are marked with.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The time of day, for summaries.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The number of runs at a time: as many as were asked for, else one for each core.
pub fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
