//! Why a scenario has no run in the laboratory.

use cutline_ports::PortError;
use cutline_scenario::LowerError;
use cutline_sim::NetworkError;
use cutline_sys::SysError;
use cutline_traffic::TrafficError;

/// Why a scenario has no run in the laboratory.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A port between the hosts cannot be opened, or has failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The scenario cannot be lowered to a network.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The generator or the meter cannot work.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Two flows want different values of what a host has one of.
    #[error(
        "{key} is a parameter of the whole host here: flow `{one}` and flow `{other}` must have the same"
    )]
    Disagree {
        /// The scenario's key.
        key: &'static str,
        /// A flow.
        one: String,
        /// A flow that says otherwise.
        other: String,
    },
    /// A packet that is larger than the rings' places.
    #[error(
        "flow `{flow}`: packets of {payload} B are too large for the laboratory; allowed is 1..{largest} B"
    )]
    TooLarge {
        /// The flow.
        flow: String,
        /// Its payload, bytes.
        payload: u32,
        /// The largest payload, bytes.
        largest: u32,
    },
    /// Something that only the simulator has.
    #[error("flow `{flow}`: {what} is not in the laboratory; {instead}")]
    OnlySimulated {
        /// The flow or group.
        flow: String,
        /// The feature that the laboratory does not have.
        what: &'static str,
        /// The remedy.
        instead: &'static str,
    },
    /// More flows than there are ports.
    #[error("{count} flows are too many for the laboratory; allowed is 1..{most}")]
    TooMany {
        /// How many.
        count: u64,
        /// How many may be.
        most: usize,
    },
    /// Hints that do not fit into a code point.
    #[error("hint-bits = {bits}: a real packet has room for 4 bits (DSCP, pool 2); allowed is 1..4")]
    WideHints {
        /// How many bits.
        bits: u8,
    },
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
}
