//! The identity of a run.

use std::sync::Arc;

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The run's identifier: a hash of everything that determines its results.
    pub run: Arc<str>,
    /// The point's label.
    pub point: Arc<str>,
    /// The seed.
    pub seed: u64,
}
