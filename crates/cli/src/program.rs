//! The version and commit of the program, the time, and the number of threads.

use cutline_scenario::execution::Producer;
use std::num::NonZeroUsize;

/// The version that is stored with results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that this program is built from, in words: `commit 0123456789 of 2026-01-31`.
pub const COMMIT: &str = env!("CUTLINE_COMMIT");

/// The version and the commit that this program is built from, for people: `0.1.0 (commit 0123456789 of 2026-01-31)`.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CUTLINE_COMMIT"), ")");

/// This program, for summaries.
pub const PRODUCER: Producer<'static> = Producer { version: VERSION, commit: COMMIT, now };

/// Returns the current time for summaries.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns the number of runs at a time: `jobs`, or one per core.
pub fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
