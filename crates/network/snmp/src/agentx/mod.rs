//! The subagent: it serves CUTLINE-QOS-MIB through a master agent such as net-snmp's `snmpd` (AgentX, RFC 2741).

mod message;
mod session;

pub use message::{AgentxHeader, AgentxRequest, HEADER, MalformedMessage, NameRange};
pub(crate) use session::serve;
