//! The gateway: carries connections of unchanged programs over QoS sockets between two hosts, as IIOPGW does in the paper
//! (QoSockets section III.C).
//!
//! ```text
//! program ── TCP or UDP ── near gateway ══ QoS connection ══ far gateway ── TCP or UDP ── server
//! ```
//!
//! Each connection of a program is one QoS connection. Streams are relayed byte by byte: available bytes are sent at once, as one message, and
//! an end of one direction is carried over. Datagrams are relayed one by one, with their boundaries.
//!
//! ```text
//! plan       the connections that a gateway carries, and their transport
//! gateway    one running gateway: its listeners, its end
//! shared     state that its threads share
//! streams    accepting and connecting streams
//!   relay    one stream: two directions, back-pressure, half-close
//!   greeting report of the far gateway whether it has reached the server
//!   pending_streams streams whose peer has not shown that it is a gateway
//! datagrams  accepting and connecting datagrams
//!   exchange exchanges of datagrams, all served by one thread
//! networks   the network of a connection
//! connection_table the connections, and counters of their traffic
//! record     the traffic, as lines while it happens
//! document   the traffic, as a document at the end
//! stop       notice to all threads that the gateway ends
//! ```
//!
//! Each stream has a thread once the kind of its peer is known; one thread serves all datagrams of a route. Everything is bounded:
//! connections, those of one address, the backlog of each, times to connect.

mod connection_table;
mod datagrams;
mod document;
mod error;
mod exchange;
mod gateway;
mod greeting;
mod networks;
mod pending_streams;
mod plan;
mod record;
mod relay;
mod shared;
mod stop;
mod streams;

pub use document::{
    ConnectionDocument, ConnectionTotals, DeliveredDocument, GatewayDocument, MOST_LISTED, RouteDocument,
};
pub use error::GatewayError;
pub use gateway::Gateway;
pub use plan::{GatewayRoute, GatewaySide, Limits, Plan, ProgramTransport};
pub use record::{
    ConnectionClosed, ConnectionOpened, IntervalReceived, IntervalSent, MessageReceived, RecordLine,
    RecordingStarted, SamplesForgotten,
};
