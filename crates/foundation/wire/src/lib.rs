//! Bytes on the wire: fields of messages, and the headers of frames.
//!
//! ```text
//! fields           readers and writers of the fields of messages
//! headers          one walk over a frame's headers: addresses, code point, flow, hosts
//!   tunnels        the packets inside tunnels
//!   fragments      the flows of fragmented packets
//! direct           messages in frames below IP: headers, segmentation, reassembly
//! traffic_class    changes of code point and ECN in a frame's bytes
//! ```
//!
//! The layouts of messages are in the crates that own the messages: the datagrams of transports in `transport`, negotiation
//! and the reports of a connection in `signal`, RSVP in `rsvp`.

pub mod direct;
mod fields;
mod fragments;
mod headers;
mod traffic_class;
mod tunnels;

pub use fields::{LONGEST_TIME, Reader, Writer};
pub use fragments::{Fragment, FragmentFlows};
pub use headers::{ETHERNET, FlowKeys, Headers, Ip, mix, transport};
pub use traffic_class::{set_ce, set_dscp};
