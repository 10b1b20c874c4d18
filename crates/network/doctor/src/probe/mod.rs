//! Probes: capabilities of this machine for the router and the laboratory.
//!
//! A feature is tried where that does no harm, because a version number reveals little about a configured kernel. Each file is
//! about one subject and returns plain values. A probe that fails also returns a value, so the other probes continue.
//!
//! ```text
//! sandbox     a temporary namespace with a virtual pair, where trying does no harm
//! kernel      release, cores, clock, configuration, sysctls
//! privilege   capabilities, real-time scheduling
//! timer       how late a sleeping process is woken
//! path        packet sockets, AF_XDP, TUN
//! bpf         programs, and requirements of a queue discipline in eBPF
//! qdisc       kinds of queue disciplines; their backlog
//! tcp         congestion controls
//! link        an interface: driver, speed, offloads, addresses, its driver's backlog
//! xdp         the XDP features of a driver
//! command     runs `ip` and `tc`
//! answer      the answer of a probe
//! ```
//!
//! Nothing is tried on an interface that is in use: binding `AF_XDP` to one makes many drivers restart it.

mod answer;
mod bpf;
mod command;
mod kernel;
mod link;
mod path;
mod privilege;
mod qdisc;
mod sandbox;
mod tcp;
mod timer;
mod xdp;

pub use answer::Answer;
pub use bpf::{Bpf, bpf};
pub use command::{Tools, tools};
pub use kernel::{Kernel, KernelConfig, Sysctl, config, kernel, module, sysctl};
pub use link::{InterfaceProperties, LinkBacklog, Offload, backlog, links};
pub use path::{Paths, paths};
pub use privilege::{CAPABILITIES, Privileges, privileges};
pub use qdisc::{KINDS, Qdisc, kinds, listed_kinds, qdiscs};
pub use sandbox::Sandbox;
pub use tcp::{Congestion, congestion};
pub use timer::{Lateness, Waiting, lateness};
pub use xdp::XdpFeatures;
