//! What Cutline asks of the Linux kernel. This crate and none above it in the house has `unsafe` code, each block with
//! its reason; whatever `rustix` has a safe face for goes through that.
//!
//! ```text
//! packet_port   an interface as a port of the router: AF_PACKET
//!   ring        the ring of memory that the kernel puts arriving frames into
//!   socket      the socket's options, and sending many frames with one call
//! tun_port      a TUN interface as a port, for hosts that route
//! xdp_port      an interface as a port, by AF_XDP
//!   xdp         its sockets, memory, rings and program
//! any_port      any of them, by name
//! bpf           loading eBPF programs
//! run           the router at work: waiting for frames and deadlines
//! clock         the monotonic clock
//! interface     interfaces by name
//! privileges    what the process may do, given up after the start
//! local         a local socket that answers
//! notify        what a service tells its manager
//! signal        SIGHUP
//! offload       what a network card does to frames, and must not
//! datagrams     many datagrams at once, with stamps and traffic classes
//! tcp           what the kernel knows of a TCP connection
//! namespace     network namespaces that are always removed
//! thread        when this thread runs, and how long it has run
//! probe         what this machine offers
//! echo          round-trip times
//! ```
//!
//! Not here: `tc`.

mod any_port;
mod bpf;
mod clock;
pub mod datagrams;
pub mod echo;
mod error;
pub mod interface;
mod local;
pub mod namespace;
mod notify;
mod offload;
mod packet_port;
pub mod privileges;
pub mod probe;
mod ring;
mod run;
mod signal;
mod socket;
pub mod tcp;
mod thread;
mod tun_port;
mod xdp;
mod xdp_port;

pub use any_port::{AnyPort, LinuxPort};
pub use clock::now;
pub use error::LinuxError;
pub use local::{Answer, LocalSocket};
pub use notify::Manager;
pub use offload::Offloads;
pub use packet_port::{PacketPort, PortKind, PortStats};
pub use run::{Observer, run, wait};
pub use signal::Hangup;
pub use thread::{Scheduled, cpu_time, run_first};
pub use tun_port::TunPort;
pub use xdp_port::XdpPort;
