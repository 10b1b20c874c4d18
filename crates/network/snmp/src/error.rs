//! Errors of the agent's start, and the receiver of its messages.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Reason why SNMP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum SnmpError {
    /// The file with the agent's identity cannot be used.
    #[error("snmp: {file}: {why}")]
    Engine {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
    /// A file with a password or a community cannot be used.
    #[error("snmp: {file}: {why}")]
    Secret {
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
    /// A user or a manager cannot be used.
    #[error("snmp: user `{name}`: {why}")]
    User {
        /// Name of the user.
        name: String,
        /// The reason.
        why: String,
    },
    /// The address cannot be listened at.
    #[error(
        "snmp: listen = \"{address}\": {why}; if snmpd has the port, choose another one, or serve through snmpd (agentx)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        why: String,
    },
    /// The thread cannot be started.
    #[error("snmp: the thread cannot be started: {0}")]
    Thread(#[from] io::Error),
    /// The thread has ended before it reported its start.
    #[error("snmp: the thread has ended")]
    Ended,
}

/// Receiver of messages.
pub type MessageSink = Arc<dyn Fn(String) + Send + Sync>;
