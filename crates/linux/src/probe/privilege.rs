//! What this process may do.

use super::Answer;
use super::raw;
use rustix::thread::{CapabilitySet, capabilities};

/// The capabilities that Cutline has a use for, and what for.
pub const CAPABILITIES: [(CapabilitySet, &str, &str); 6] = [
    (CapabilitySet::NET_RAW, "CAP_NET_RAW", "packet sockets: the router"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN", "offloads, interfaces: --fix-offloads, the laboratory"),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN", "network namespaces: the laboratory"),
    (CapabilitySet::SYS_NICE, "CAP_SYS_NICE", "real-time scheduling: exact departures on a busy machine"),
    (CapabilitySet::BPF, "CAP_BPF", "loading eBPF: AF_XDP, queue disciplines"),
    (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK", "memory that is never swapped out"),
];

/// What the process may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// Whether its effective user is root.
    pub root: bool,
    /// Those of [`CAPABILITIES`] that it has, by name.
    pub has: Vec<&'static str>,
    /// Whether a thread of it may be scheduled in real time (`SCHED_FIFO`): tried.
    pub fifo: Answer,
}

/// Asks, and tries real-time scheduling on a thread that ends at once.
pub fn privileges() -> Privileges {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let has = CAPABILITIES.iter().filter(|(set, ..)| effective.contains(*set));
    let fifo = std::thread::spawn(raw::schedule_fifo).join().expect("trying to be scheduled does not panic");
    Privileges {
        root: rustix::process::geteuid().is_root(),
        has: has.map(|&(_, name, _)| name).collect(),
        fifo: match fifo {
            Ok(()) => Answer::Yes,
            Err(error) => Answer::No(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_that_may_schedule_has_the_capability() {
        let privileges = privileges();
        if privileges.has.contains(&"CAP_SYS_NICE") {
            // A control group without real-time bandwidth may still refuse; then it says why.
            assert_ne!(privileges.fifo, Answer::No(String::new()));
        } else if !privileges.root {
            assert!(!privileges.has.contains(&"CAP_NET_ADMIN"), "{privileges:?}");
        }
    }
}
