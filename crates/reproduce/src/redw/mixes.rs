//! The mixes of the paper's experiments.

/// The number of throughput-sensitive flows in each mix. The others of the 20 flows are delay-sensitive.
pub(super) const MIXES: [u16; 5] = [19, 15, 10, 5, 1];
/// The names of the mixes in charts.
pub(super) const MIX_NAMES: [&str; 5] = ["19 : 1", "15 : 5", "10 : 10", "5 : 15", "1 : 19"];
