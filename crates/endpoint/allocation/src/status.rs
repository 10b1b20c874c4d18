//! Status of the resource manager, as a document: capacities, users, flows, paths and counters.

use cutline_records::record;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

record! {
    schema is a feature;

    /// Status of the resource manager of a host.
    #[derive(Deserialize)]
    pub struct ManagerStatus {
        elapsed_s: f64, counter("s"), "Time since the start of the process.";
        taken_over: u64, counter("flows"), "Flows of an earlier process that this process has taken over since its start.";
        capacities: Vec<CapacityStatus>, part, "Capacities with their use.";
        users: Vec<UserStatus>, part, "Users with flows. A client that is not root sees only its own user.";
        flows: Vec<FlowStatus>, part, "Flows, oldest first. A client that is not root sees only those of its own user.";
        paths: Vec<PathStatus>, part, "Paths whose managers exchange summaries.";
        #[serde(default)]
        kernel_classes: Vec<InterfaceClassesStatus>, part, "Interfaces whose flows the kernel schedules by class.";
        all_flows: u64, gauge("flows"), "Flows of all users.";
        clients: u64, gauge("clients"), "Clients that are connected.";
        refused_clients: u64, counter("clients"), "Clients that were refused, because the largest number was connected.";
        counters: ManagerCounters, part, "Counters since the resource manager began, also in earlier processes.";
    }

    /// Classes of the kernel's traffic control on an interface.
    #[derive(Eq, Deserialize)]
    pub struct InterfaceClassesStatus {
        interface: String, label, "Name of the interface.";
        problem: Option<String>, label, "Reason why the classes are not there, or not as the flows need them; null if they are.";
        classes: Vec<KernelClassStatus>, part, "The classes. One without flows is absent.";
    }

    /// A class of the kernel's traffic control.
    #[derive(Eq, Deserialize)]
    pub struct KernelClassStatus {
        class: String, label, "The class: `real-time`, `time-shared`, or `other` for all other traffic.";
        flows: u64, gauge("flows"), "Number of flows in the class.";
        rate_bps: u64, gauge("bit/s"), "Rate at which it is served before traffic that exceeds a rate; 0 for other traffic, which has a hundredth of the interface.";
        sent_packets: u64, counter("packets"), "Packets sent since the class was made.";
        sent_bytes: u64, counter("B"), "Bytes of the packets, with the headers of the link.";
        excess_packets: u64, counter("packets"), "Packets that exceeded the rate, and took turns with other traffic.";
        dropped_packets: u64, counter("packets"), "Packets that were dropped because too many waited.";
        waiting_packets: u64, gauge("packets"), "Packets that wait.";
    }

    /// Capacity with its use.
    #[derive(Deserialize)]
    pub struct CapacityStatus {
        resource: String, label, "The resource: `tcp`, `datagrams`, `combined`, `cpu`, or the name of an interface.";
        unit: String, label, "Unit of the amounts: bit/s, or millionths of a CPU.";
        capacity: u64, gauge, "The capacity.";
        reserved: u64, gauge, "Part of the capacity that reservations of RSVP hold.";
        promised: u64, gauge, "Part of the capacity that is promised to flows.";
        in_use: u64, gauge, "Part of the capacity that flows may use now.";
    }

    /// User with flows.
    #[derive(Deserialize)]
    pub struct UserStatus {
        uid: u32, label, "The user's number.";
        weight: u32, gauge, "Weight among users.";
        flows: u64, gauge("flows"), "Number of flows.";
        promised_bps: u64, gauge("bit/s"), "Rate that is promised to the user's flows.";
        granted_bps: u64, gauge("bit/s"), "Rate that the user's flows may use now.";
    }

    /// Path whose managers exchange summaries.
    #[derive(Deserialize)]
    pub struct PathStatus {
        path: u64, label, "Number of the path.";
        host: u64, label, "This host's number.";
        coordinator: u64, label, "Number of the coordinating host.";
        epoch: u64, label, "Number of the last decision.";
        cutoff: f64, gauge("ranks"), "Extent to which flows are lowered: 0 not at all, 16 to their minima.";
        hosts: Vec<HostStatus>, part, "Hosts of the path.";
        lowered: u64, counter("times"), "Times that flows were lowered by this host as the coordinator.";
        raised: u64, counter("times"), "Times that flows were raised by this host as the coordinator.";
        sent: u64, counter("datagrams"), "Datagrams that were sent.";
        received: u64, counter("datagrams"), "Datagrams that were received and used.";
        forged: u64, counter("datagrams"), "Datagrams that were dropped, because their tag was wrong.";
        refused: u64, counter("datagrams"), "Datagrams that were dropped, because they were old or malformed, or came too fast.";
    }

    /// Counters of the resource manager.
    #[derive(Copy, Eq, Deserialize)]
    pub struct ManagerCounters {
        admitted: u64, counter("requests"), "Requests that were admitted with the desired rate.";
        reduced: u64, counter("requests"), "Requests that were admitted with less than the desired rate.";
        refused: u64, counter("requests"), "Requests that were refused.";
        released: u64, counter("flows"), "Flows that ended because their client released them, or disconnected.";
        revoked: u64, counter("flows"), "Flows that were revoked because capacities shrank.";
        expired: u64, counter("flows"), "Flows that were revoked because nothing was reported for the length of a lease.";
    }
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

/// Another host of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostStatus {
    /// Number of the host.
    pub host: u64,
    /// Address of the host.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: SocketAddr,
    /// True if a summary of the host was received in the last seconds.
    pub is_heard: bool,
}
