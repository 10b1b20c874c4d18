//! Routes, addresses and traffic control of the Linux kernel, by netlink.
//!
//! ```text
//! interface        interfaces and their addresses
//! uses             other uses of an interface by the host
//! route            where the kernel would send a packet
//! monitor          a descriptor that is ready when one of these has changed
//! discipline       the queueing discipline at the root of an interface
//! traffic_control  a share of an interface's rate for each reservation
//!   reservation    a reservation, and its size on the wire
//!   filter         which packets use it: u32 classifiers
//!   htb            the messages of the queueing discipline
//! channel          the socket beneath
//! ```
//!
//! Calls block, but only until the kernel has carried out the request, which it does at once. Everything happens in the network
//! namespace of the thread that opens a [`RouteLookup`], [`Monitor`] or [`HtbShaper`], and stays there when the thread moves on. The crate
//! decides nothing: its callers choose the routes and the reservations.

mod channel;
mod discipline;
mod error;
mod interface;
mod monitor;
mod route;
pub mod traffic_control;
mod uses;

pub use discipline::RootQdisc;
pub use error::Error;
pub use interface::{Address, Interface, interfaces};
pub use monitor::{Monitor, NetworkChanges, Touched, TrafficMonitor};
pub use route::{Hop, KernelRoute, NoRoute, Question, RouteLookup};
pub use traffic_control::{ClassId, Counters, HtbShaper, MAJOR, ShaperOptions, sweep};
pub use uses::{InterfaceUse, uses};
