//! What this machine offers to the router and to the laboratory. Found out by trying wherever trying does no harm: a
//! version number says little about a kernel that somebody has configured. One file a subject; each answers plain
//! values, and what cannot be looked at is an answer as well, so that one failure does not end the rest.
//!
//! ```text
//! bench       a throw-away namespace with a virtual pair, where trying does no harm
//! kernel      release, cores, clock, configuration, sysctls
//! privilege   capabilities, real-time scheduling
//! timer       how late a sleeping process is woken
//! path        packet sockets, AF_XDP, TUN
//! bpf         programs, and what a queue discipline in eBPF needs
//! qdisc       kinds of queue disciplines; what waits in them
//! tcp         congestion controls
//! link        an interface: driver, speed, offloads, addresses, what waits in its driver
//! xdp         what a driver says of XDP
//! command     running `ip` and `tc`
//! raw         the system calls that need `unsafe`
//! ```
//!
//! Nothing here is tried at an interface that is at work: binding `AF_XDP` to one makes many drivers restart it.

mod bench;
mod bpf;
mod command;
mod kernel;
mod link;
mod path;
mod privilege;
mod qdisc;
mod raw;
mod tcp;
mod timer;
mod xdp;

pub use bench::Bench;
pub use bpf::{Bpf, bpf};
pub use command::{Tools, tools};
pub use kernel::{Config, Kernel, Sysctl, config, kernel, module, sysctl};
pub use link::{Backlog, Link, Offload, backlog, links};
pub use path::{Paths, paths};
pub use privilege::{CAPABILITIES, Privileges, privileges};
pub use qdisc::{KINDS, Qdisc, kinds, listed_kinds, qdiscs};
pub use tcp::{Congestion, congestion};
pub use timer::{Lateness, Waiting, lateness};
pub use xdp::XdpFeatures;

/// Whether something is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is there.
    Yes,
    /// It is not there, or refused; why.
    No(String),
    /// It could not be looked at; why.
    Unknown(String),
}

impl Answer {
    /// Whether it is known to be there.
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }

    /// What a try has come to. A refusal for want of privileges says nothing about the thing itself.
    fn of(result: Result<(), std::io::Error>) -> Self {
        match result {
            Ok(()) => Self::Yes,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Self::Unknown("not permitted".to_owned())
            }
            Err(error) => Self::No(error.to_string()),
        }
    }
}
