//! The version of the program, the time, and the number of threads.

use std::num::NonZeroUsize;

/// The version that is stored with results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the current time for summaries.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the number of runs at a time: `jobs`, or one per core.
pub fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
