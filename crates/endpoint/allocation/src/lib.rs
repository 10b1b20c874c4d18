//! Shares of a host's resources for flows: the protocol between clients and the resource manager of their host, which
//! `cutlined` runs, and the client.
//!
//! ```text
//! protocol           requests and replies, JSON documents in lines
//! status             the manager's state, as a document
//! connection         a connection to the manager, for a program with a single request
//! allocation_thread  the thread that keeps the shares of a process's flows, over restarts of the manager
//! ```
//!
//! [`cutline_manager`] decides. Nothing here limits a rate: the handler of a flow limits its flow to the rate in its notices.

mod allocation_thread;
mod connection;
pub mod protocol;
pub mod status;

pub use allocation_thread::{
    AllocatedFlow, AllocationState, FlowHandler, FlowNotice, allocate, start_allocation_thread,
};
pub use connection::ManagerConnection;
pub use protocol::DEFAULT_SOCKET;
