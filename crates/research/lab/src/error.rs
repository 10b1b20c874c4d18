//! Errors of the laboratory.

use crate::programs::ProgramError;
use cutline_gateway::GatewayError;
use cutline_ports::PortError;
use cutline_scenario::LowerError;
use cutline_sim::NetworkError;
use cutline_socket::QosError;
use cutline_sys::SysError;
use cutline_traffic::TrafficError;
use std::process::ExitStatus;

/// Reason why a scenario cannot be run in the laboratory.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A port between the hosts cannot be opened or has failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The scenario cannot be lowered to a network.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The traffic generator or the meter has failed.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Two flows have different values of a parameter that applies to the whole host.
    #[error(
        "{key} applies to the whole host in the laboratory: flow `{one}` and flow `{other}` must have the same value"
    )]
    Conflict {
        /// The key in the scenario.
        key: &'static str,
        /// A flow.
        one: String,
        /// A flow with another value.
        other: String,
    },
    /// A packet is larger than a slot of the rings.
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
    /// The scenario uses a feature that only the simulator has.
    #[error("flow `{flow}`: {what} is not available in the laboratory; {instead}")]
    OnlySimulated {
        /// The flow or group.
        flow: String,
        /// The feature that the laboratory does not have.
        what: &'static str,
        /// The remedy.
        instead: &'static str,
    },
    /// The laboratory with routers does not have a feature of the scenario.
    #[error("{place}: {what} is not available in the laboratory with routers; {instead}")]
    NoRouters {
        /// The link, node or flow.
        place: String,
        /// The feature.
        what: &'static str,
        /// The remedy.
        instead: &'static str,
    },
    /// Traffic control cannot be set, or has not enough of a link left.
    #[error(transparent)]
    Control(Box<cutline_netlink::Error>),
    /// A program has failed, or is not installed.
    #[error(transparent)]
    Program(Box<ProgramError>),
    /// A gateway cannot start.
    #[error(transparent)]
    Gateway(Box<GatewayError>),
    /// A folder cannot be created.
    #[error("{}: {source}", path.display())]
    File {
        /// The folder.
        path: std::path::PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A node's agent cannot start.
    #[error("cutlined: {error}")]
    Agent {
        /// The reason.
        error: String,
    },
    /// An image of DIRM did not come as it was sent.
    #[error("image {number}: {outcome}")]
    Image {
        /// Its number.
        number: u32,
        /// Outcome of the command.
        outcome: String,
    },
    /// A specification cannot be translated into a reservation.
    #[error("flow `{flow}`: {error}")]
    Untranslatable {
        /// The flow.
        flow: String,
        /// The reason.
        error: String,
    },
    /// The running kernel does not have the congestion control of a flow.
    #[error(
        "flow `{flow}`: congestion-control = \"{control}\" is not available: this kernel has no `{linux}`; load its \
         module (`modprobe tcp_{linux}`) or choose another, such as \"newreno\" or \"cubic\""
    )]
    NoCongestionControl {
        /// The flow or group.
        flow: String,
        /// The congestion control in the scenario.
        control: &'static str,
        /// Its name in Linux.
        linux: &'static str,
    },
    /// The scenario has more flows than there are ports.
    #[error("{count} flows are too many for the laboratory; allowed is 1..{max}")]
    TooMany {
        /// The number of flows.
        count: u64,
        /// The largest number of flows.
        max: usize,
    },
    /// Hints do not fit into a code point.
    #[error("hint-bits = {bits}: a real packet has room for 4 bits (DSCP, pool 2); allowed is 1..4")]
    WideHints {
        /// The number of bits.
        bits: u8,
    },
    /// A program is to be in the place of a flow that the scenario does not have.
    #[error("there is no flow `{flow}`; a program may be in the place of: {}", listed(those))]
    NoFlowFor {
        /// The name.
        flow: String,
        /// The flows that a program may take the place of.
        those: Vec<String>,
    },
    /// A program in the place of a flow has failed.
    #[error("flow `{flow}`: its program has failed ({status})")]
    ExternalProgram {
        /// The flow.
        flow: String,
        /// Exit status.
        status: ExitStatus,
    },
    /// A QoS connection cannot be made, or has failed.
    #[error("flow `{flow}`: {error}")]
    Connection {
        /// The flow.
        flow: String,
        /// Error of its socket.
        error: Box<QosError>,
    },
    /// A QoS connection is in the place of a flow that the scenario does not have.
    #[error("connection `{connection}`: flow number {index}; allowed is 0..{flows}, without the end")]
    NoSuchFlow {
        /// The connection.
        connection: String,
        /// The index of its flow.
        index: usize,
        /// The number of flows.
        flows: usize,
    },
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// At most ten names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{shown}, and {} more", count - MOST),
        _ => shown,
    }
}

impl From<cutline_netlink::Error> for LabError {
    fn from(error: cutline_netlink::Error) -> Self {
        Self::Control(Box::new(error))
    }
}

impl From<ProgramError> for LabError {
    fn from(error: ProgramError) -> Self {
        Self::Program(Box::new(error))
    }
}

impl From<GatewayError> for LabError {
    fn from(error: GatewayError) -> Self {
        Self::Gateway(Box::new(error))
    }
}
