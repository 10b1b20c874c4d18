//! Values of laws and queues for recording.

use crate::Count;
use cutline_units::Rate;

/// Values of a law besides its probability, for recording. `None` for values that a law does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Readings {
    /// The average queue, packets.
    pub average: Option<f64>,
    /// The largest probability of RED's slope, `max_p`.
    pub max_p: Option<f64>,
    /// The target of the queue, packets.
    pub target: Option<f64>,
    /// Values and counters of Sieve.
    pub sieve: Option<SieveReadings>,
}

/// Values of Sieve, and its counters since it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SieveReadings {
    /// Packets of flows that were below their share.
    pub below: Count,
    /// Packets of flows that were above it, dropped ones included.
    pub above: Count,
    /// f.
    pub fair_share: Rate,
    /// The share of the memory for flows that is taken by flows that have sent within tau.
    pub load: f64,
}
