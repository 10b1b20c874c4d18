//! CUTLINE-QOS-MIB over SNMP: the requirements and the delivery of a host's applications and routers.
//!
//! The rows are those of the monitor ([`cutline_monitor`]), and the objects are made from their described fields, so documents, metrics
//! and the MIB agree. An agent of its own answers SNMPv2c at this host and SNMPv3 elsewhere ([`Agent`](async_snmp::Agent)
//! of `async-snmp`), or a subagent serves the objects through net-snmp's `snmpd` (AgentX, RFC 2741).
//!
//! ```text
//! object        objects of a module: names, syntaxes and values, from the fields of records
//! table         tables and scalar objects, and the search in them
//! snapshot      the rows of a host at one time, in the order of SNMP
//! names         names of CUTLINE-QOS-MIB and of its parts
//! mib           CUTLINE-QOS-MIB: its tables, and its text
//! standard      modules of others: the group `system`, RSVP-MIB, INTSRV-MIB
//! notification  violations and refused reservations since the second before
//! outbox        notifications that wait for a receiver
//! objects       the objects of a host: answers to requests for a name
//! options       settings, from a table of a file
//! engine        identity of the agent, which outlives a restart
//! front         the socket for managers' requests, and fair turns among managers
//! agent         the agent, with its users and views
//! agentx        the subagent: messages of AgentX, and the session with the master
//! service       agent, subagent and notifications at work, in a thread of their own
//! error         reasons why SNMP cannot be served
//! ```

mod agent;
pub mod agentx;
mod engine;
mod error;
mod front;
pub mod mib;
mod names;
mod notification;
mod object;
mod objects;
mod options;
mod outbox;
mod service;
mod snapshot;
mod standard;
mod table;

pub use error::SnmpError;
pub use object::{Form, MibColumn, Object, Syntax};
pub use objects::HostObjects;
pub use options::{ManagerCredentials, SnmpManager, SnmpOptions, SnmpUser, SystemTexts, Views};
pub use service::SnmpService;
pub use table::{Definition, Group, Module, NoSuchObject};
