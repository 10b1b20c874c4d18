//! The privileges of this process.

use super::answer::Answer;
use cutline_sys::thread::{Scheduling, set_realtime};
use rustix::thread::{CapabilitySet, capabilities};

/// The capabilities that Cutline uses, and their purposes.
pub const CAPABILITIES: [(CapabilitySet, &str, &str); 6] = [
    (CapabilitySet::NET_RAW, "CAP_NET_RAW", "packet sockets: the router"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN", "offloads, interfaces: --fix-offloads, the laboratory"),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN", "network namespaces: the laboratory"),
    (CapabilitySet::SYS_NICE, "CAP_SYS_NICE", "real-time scheduling: exact departures on a busy machine"),
    (CapabilitySet::BPF, "CAP_BPF", "loading eBPF: AF_XDP, queue disciplines"),
    (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK", "memory that is never swapped out"),
];

/// The privileges of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// True if its effective user is root.
    pub root: bool,
    /// The names of those [`CAPABILITIES`] that it has.
    pub has: Vec<&'static str>,
    /// Permission for its threads to use real-time scheduling (`SCHED_FIFO`).
    pub fifo: Answer,
}

/// Reads the capabilities, and tries real-time scheduling on a thread that ends at once.
pub fn privileges() -> Privileges {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let has = CAPABILITIES.iter().filter(|(set, ..)| effective.contains(*set));
    let fifo = std::thread::spawn(set_realtime).join().expect("a request to the scheduler does not panic");
    Privileges {
        root: rustix::process::geteuid().is_root(),
        has: has.map(|&(_, name, _)| name).collect(),
        fifo: match fifo {
            Scheduling::Realtime => Answer::Yes,
            Scheduling::Normal => Answer::No("refused".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capability or a limit (`RLIMIT_RTPRIO`) allows real-time scheduling, but a control group may still refuse it.
    #[test]
    fn every_capability_has_a_name() {
        let privileges = privileges();
        let names = CAPABILITIES.map(|(_, name, _)| name);
        assert!(privileges.has.iter().all(|name| names.contains(name)), "{privileges:?}");
        assert!(privileges.has.is_empty() || rustix::thread::capabilities(None).is_ok());
        assert!(!matches!(privileges.fifo, Answer::Unknown(_)), "{privileges:?}");
    }
}
