//! The resource manager of a host as a service: the manager of [`cutline_manager`], which does no IO, with clients, a
//! file of its state, and messages to the managers of other hosts.
//!
//! ```text
//!     clients (local socket, JSON lines)      managers of other hosts (UDP)
//!                  |                                     |
//!               clients                               paths
//!                  +------------ host: Manager ----------+
//!                                  |
//!               store: snapshot and journal
//!               kernel_classes: traffic control
//!
//! config          the table [manager] of the file of cutlined
//! access          users who may use it, and their policies
//! clients         connections and their sessions
//! host            the manager with its sessions and flows
//! paths           authenticated datagrams
//! kernel_classes  classes of the kernel's traffic control for the flows of an interface
//! store           files of the state, from which a later process continues
//! status          the state as a document
//! service         the thread, and the handle by which other threads reach it
//! error           reasons why it cannot work
//! ```
//!
//! The decisions are those of [`cutline_manager`], the protocol is in [`cutline_allocation`].

mod access;
mod clients;
mod config;
mod error;
mod host;
mod kernel_classes;
mod paths;
mod prefix;
mod reserved;
mod service;
mod status;
mod store;

pub use access::{AccessRule, AccessRules};
pub use config::{ManagedInterface, ManagedPath, ManagerPeer, ManagerSpec, PathKey};
pub use error::ManagerServiceError;
pub use prefix::AddressPrefix;
pub use reserved::ReservedRates;
pub use service::ManagerService;
