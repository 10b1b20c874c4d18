//! Shares of a host's resources for flows: the protocol between clients and the resource manager of their host, which
//! `cutlined` runs, and the client.
//!
//! ```text
//! protocol   requests and replies, JSON documents in lines
//! status     the manager's state, as a document
//! connection a connection to the manager, for a program with a single request
//! holder     the thread that holds the flows of a process, over restarts of the manager
//! ```
//!
//! [`cutline_manager`] decides. Nothing here limits a rate: the holder of a flow limits its flow to the rate in its notices.

mod connection;
mod holder;
pub mod protocol;
pub mod status;

pub use connection::ManagerConnection;
pub use holder::{AllocatedFlow, AllocationState, FlowHolder, FlowNotice, hold};
pub use protocol::DEFAULT_SOCKET;
