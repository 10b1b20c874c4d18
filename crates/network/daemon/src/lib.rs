//! `cutlined`: the RSVP agent of a host or router. Its applications request reservations from it.
//!
//! The protocol is the engine of `cutline-rsvp`, which does no IO. This crate is its environment on Linux.
//!
//! ```text
//!                       applications
//!                            | clients: local socket, JSON lines
//! raw and UDP sockets -- agent: engine -- routes: netlink
//!        network             | installer: traffic control, a router
//!
//! config     its file
//! keys       files with the keys of neighbours
//! manager    the resource manager of the host
//! monitor    the monitor of the host
//! daemon     single-threaded event loop: messages, deadlines, clients, routes, signals
//!   node          this host in the protocol
//!   applications  requests and their results
//!   topology      interfaces and routes that change
//!   statuses      documents of the state
//! requests   requests of applications
//! network    messages in transit: raw and UDP sockets
//! routes     the kernel's answers in the engine's types
//! interfaces the interfaces of the file, which come and go
//! installer  installers of reservations: the kernel's traffic control, a userspace router, or elsewhere
//! installers the installer of each interface
//! record     interfaces at which a killed process may have left traffic control
//! clients    connected applications: their state, requests and replies
//! convert    values of the engine and of clients
//! cache      a value that takes long to compute
//! machine    checks of the machine before a start
//! error      errors on which it cannot start, or has ended
//! ```

mod cache;
mod clients;
pub mod config;
mod convert;
mod daemon;
mod error;
pub mod installer;
mod installers;
mod interfaces;
mod keys;
mod machine;
mod manager;
mod monitor;
mod network;
mod record;
mod requests;
mod routes;

pub use config::DaemonConfig;
pub use daemon::{Daemon, remove_installed};
pub use error::DaemonError;
pub use installer::Installer;
pub use installers::CustomInstallers;
pub use manager::{check_manager, start_manager};
pub use monitor::{MonitorServices, MonitorSpec};
