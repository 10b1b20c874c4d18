//! Status of the resource manager, as a document: capacities, users, flows, paths and counters.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Status of the resource manager of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagerStatus {
    /// Time since the start of the process, s.
    pub elapsed_s: f64,
    /// Flows of an earlier process that this process has taken over since its start.
    pub taken_over: u64,
    /// Capacities with their use.
    pub capacities: Vec<CapacityStatus>,
    /// Users with flows. A client that is not root sees only its own user.
    pub users: Vec<UserStatus>,
    /// Flows, oldest first. A client that is not root sees only those of its own user.
    pub flows: Vec<FlowStatus>,
    /// Paths whose managers exchange summaries.
    pub paths: Vec<PathStatus>,
    /// Interfaces whose flows the kernel schedules by class.
    #[serde(default)]
    pub kernel_classes: Vec<InterfaceClassesStatus>,
    /// Flows of all users.
    pub all_flows: u64,
    /// Clients that are connected.
    pub clients: u64,
    /// Clients that were refused, because the largest number was connected.
    pub refused_clients: u64,
    /// Counters since the resource manager began, also in earlier processes.
    pub counters: ManagerCounters,
}

/// Classes of the kernel's traffic control on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceClassesStatus {
    /// Name of the interface.
    pub interface: String,
    /// Reason why the classes are not there, or not as the flows need them; null if they are.
    pub problem: Option<String>,
    /// The classes. One without flows is absent.
    pub classes: Vec<KernelClassStatus>,
}

/// A class of the kernel's traffic control.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelClassStatus {
    /// The class: `real-time`, `time-shared`, or `other` for all other traffic.
    pub class: String,
    /// Number of its flows.
    pub flows: u64,
    /// Rate at which it is served before traffic that exceeds a rate, bit/s; 0 for other traffic, which has a hundredth of the interface.
    pub rate_bps: u64,
    /// Packets sent since the class was made.
    pub sent_packets: u64,
    /// Bytes of the packets, with the headers of the link.
    pub sent_bytes: u64,
    /// Packets of them that exceeded the rate, and took turns with other traffic.
    pub excess_packets: u64,
    /// Packets that were dropped because too many waited.
    pub dropped_packets: u64,
    /// Packets that wait.
    pub waiting_packets: u64,
}

/// Capacity with its use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityStatus {
    /// The resource: `tcp`, `datagrams`, `combined`, `cpu`, or the name of an interface.
    pub resource: String,
    /// Unit of the amounts: bit/s, or millionths of a CPU.
    pub unit: String,
    /// The capacity.
    pub capacity: u64,
    /// Part of the capacity that reservations of RSVP hold.
    pub reserved: u64,
    /// Part of the capacity that is promised to flows.
    pub promised: u64,
    /// Part of the capacity that flows may use now.
    pub in_use: u64,
}

/// User with flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserStatus {
    /// The user's number.
    pub uid: u32,
    /// Weight among users.
    pub weight: u32,
    /// Number of flows.
    pub flows: u64,
    /// Rate that is promised to the user's flows, bit/s.
    pub promised_bps: u64,
    /// Rate that the user's flows may use now, bit/s.
    pub granted_bps: u64,
}

/// Flow of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowStatus {
    /// The manager's number of the flow.
    pub flow: u64,
    /// The user's number.
    pub uid: u32,
    /// The process; null after a restart, until its client has connected again.
    pub pid: Option<u32>,
    /// Class: `real-time` or `time-shared`.
    pub class: String,
    /// Protocol that carries it: `tcp` or `datagrams`.
    pub carrier: String,
    /// Address of this end.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub source: SocketAddr,
    /// Address of the peer.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub destination: SocketAddr,
    /// The interface whose capacity the flow uses; null if none is limited.
    pub interface: Option<String>,
    /// The path; null if the flow takes none of the managed paths.
    pub path: Option<u64>,
    /// The highest useful rate, bit/s.
    pub desired_bps: u64,
    /// The lowest acceptable rate, bit/s.
    pub minimum_bps: u64,
    /// Rate that is promised to the flow, bit/s.
    pub promised_bps: u64,
    /// Rate that it may use now, bit/s.
    pub granted_bps: u64,
    /// Limit of its path, bit/s; null if there is none.
    pub limit_bps: Option<u64>,
    /// Resource that limits its share; null if the share is the desired rate.
    pub limited_by: Option<String>,
    /// Importance after the limit of the user.
    pub priority: u8,
    /// Weight among the flows of its user.
    pub weight: u32,
    /// Time until the end of its lease, s.
    pub lease_s: f64,
    /// Messages that have left after their deadlines, as the client reports.
    pub missed_deadlines: u64,
    /// Position in the region of operation that is predicted: 1 at the best, 0 at the edge; null without a path.
    pub ahead: Option<f64>,
}

/// Path whose managers exchange summaries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathStatus {
    /// Number of the path.
    pub path: u64,
    /// This host's number.
    pub host: u64,
    /// Number of the coordinating host.
    pub coordinator: u64,
    /// Number of the last decision.
    pub epoch: u64,
    /// Extent to which flows are lowered, in ranks: 0 not at all, 16 to their minima.
    pub cutoff: f64,
    /// Hosts of the path.
    pub hosts: Vec<HostStatus>,
    /// Times that flows were lowered by this host as the coordinator.
    pub lowered: u64,
    /// Times that flows were raised by this host as the coordinator.
    pub raised: u64,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that were received and used.
    pub received: u64,
    /// Datagrams that were dropped, because their tag was wrong.
    pub forged: u64,
    /// Datagrams that were dropped, because they were old or malformed, or came too fast.
    pub refused: u64,
}

/// Another host of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostStatus {
    /// Its number.
    pub host: u64,
    /// Its address.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: SocketAddr,
    /// True if a summary of the host was received in the last seconds.
    pub is_heard: bool,
}

/// Counters of the resource manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManagerCounters {
    /// Requests that were admitted with the desired rate.
    pub admitted: u64,
    /// Requests that were admitted with less than the desired rate.
    pub reduced: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Flows that ended because their client released them, or disconnected.
    pub released: u64,
    /// Flows that were revoked because capacities shrank.
    pub revoked: u64,
    /// Flows that were revoked because nothing was reported for the length of a lease.
    pub expired: u64,
}
