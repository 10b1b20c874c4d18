//! System calls of Linux behind safe functions: those that the standard library and `rustix` do not offer.
//!
//! But for the library that is preloaded into other programs, this is the only crate of the workspace with `unsafe` code. Each module that has some states it at its head, and each
//! block says why it is sound. The crate decides nothing: it knows no routers, no flows and no services.
//!
//! ```text
//! address     hosts as people write them: names, zones of link-local addresses, ports
//! clock       the monotonic clock, and the kernel's wall-clock time stamps on its scale
//! condition   a condition that threads wait for, in waits that signals end
//! error       why a system call has failed
//! reactor     waiting for file descriptors and a deadline
//! resources   limits of this process, and memory that it returns
//! sockopt     socket options: one type to get and set any of them
//! tcp         the kernel's counters of a TCP connection (TCP_INFO)
//! traffic_class   the code point of a socket's packets
//! datagrams   many datagrams with one system call, with time stamps and traffic classes
//! datagram_server   datagrams that are answered from the address that was asked
//! ip_socket   raw and UDP sockets for messages whose IP headers matter
//! local_address   the local address that a datagram has come to, or leaves with
//! ping        round-trip times by ICMP echo
//! error_queue the errors that a datagram socket has queued
//! mapping     memory that is shared with the kernel: one type that owns it
//! packet      packet sockets (AF_PACKET)
//!   filter    the frames that they receive
//!   ring      their ring of arriving frames
//! xdp         AF_XDP sockets
//!   ring      their four rings
//!   umem      their memory
//! tun         TUN interfaces
//! own_socket  sockets that a library of this process keeps for itself
//! vacant      sockets that are closed while their descriptor is in use
//! bpf         eBPF programs
//!   assembler writing them
//! interface   interfaces by name and number
//! ethtool     properties of an interface from its driver
//! offload     offloads that are turned off for a while
//! ioctl       requests about interfaces
//! namespace   network namespaces that are removed with their owner
//! process     the end of the process, and its copies by fork
//! random      random bytes of the kernel
//! signal      signals as flags, and passed on to a child
//! thread      starting threads; scheduling and running time of the calling thread; the end of threads that wait for each other
//! plain       types that may be shared with the kernel
//! ```

pub mod address;
pub mod bpf;
pub mod clock;
pub mod condition;
pub mod datagram_server;
pub mod datagrams;
mod error;
pub mod error_queue;
pub mod ethtool;
pub mod interface;
mod interface_address;
mod ioctl;
pub mod ip_socket;
pub mod local_address;
mod mapping;
pub mod namespace;
mod offload;
pub mod own_socket;
pub mod packet;
mod peer_process;
pub mod ping;
mod plain;
pub mod process;
mod random;
pub mod reactor;
pub mod resources;
mod sendmsg;
pub mod signal;
pub mod sockopt;
pub mod tcp;
pub mod thread;
pub mod traffic_class;
pub mod tun;
pub mod vacant;
pub mod xdp;

pub use clock::now;
pub use cutline_units::{lock, try_lock};
pub use error::SysError;
pub use ioctl::{receive_queue, send_queue};
pub use offload::Offloads;
pub use peer_process::{PeerProcess, peer_groups};
pub use random::random;
