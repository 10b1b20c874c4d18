//! The control session between a sender and a receiver: a TCP connection beside the traffic.
//!
//! Requests and replies are JSON, one per line, in this order:
//!
//! | sender | receiver | content |
//! | --- | --- | --- |
//! | | `hello` | protocol version, whether a key is required, a nonce |
//! | `open` | `opened` | a nonce; the boot id |
//! | `clock` | `clock` | several times: NTP's exchange (RFC 5905 section 8) |
//! | `start` | `ready` | the number of flows, the flows that the receiver sends; the port for the traffic, and its token |
//! | `gather` | `gathered` | only if the receiver sends flows: it has their connections and proven paths ([`crate::header::Proof`]) |
//! | `begin` | `begun` | the run's zero on the receiver's clock, and the offset of the clocks |
//! | `alive` | | during the run, every 2 s: a sender that is silent for 15 s has stopped |
//! | `clock` | `clock` | after the run, to measure the drift |
//! | `finish` | `report` | the receiver's measurements of received and sent traffic |
//!
//! The receiver may answer any request with `refused` and a reason. A line that is too long or invalid ends the
//! session. A lost connection also ends it. Both ends keep their measurements up to then. Every message has a deadline.
//!
//! With a [`Key`], every line after `hello` has a tag that only an end with the same key can write (`key.rs`). It proves to
//! each end the identity of the other one, and that no message was changed, added, left out, repeated or returned. The messages
//! are not encrypted. Packets of the flows have no tag but the session's token.
//!
//! The receiver sends to the address of this connection and to no other one: packets from other addresses are counted
//! and ignored ([`crate::MeterParams::peer`]), and no message names an address. The flows that it sends go over
//! connections that the sender
//! has opened from this address, or to sockets of this address that have returned a nonce. A lost connection ends them, also one
//! whose peer has vanished.

mod exchange;
mod key;
mod line;
pub mod message;
mod prefix;
mod receiver;
mod reverse;
mod sender;
mod session_listener;

pub use cutline_signal::authentication::{LONGEST_KEY, SHORTEST_KEY};
pub use cutline_signal::clock::ClockEstimate;
pub use exchange::ClockReport;
pub use key::Key;
pub use prefix::Prefix;
pub use receiver::{Receiver, ReceiverParams, SenderSession};
pub use sender::{BothReports, SendParams, send};

use cutline_text::Printable;
use cutline_units::Duration;
use message::PROTOCOL;
use std::io;

/// The default port of a receiver.
pub const PORT: u16 = 5203;
/// An error that ends a session early.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection to the receiver failed.
    #[error("cannot connect to {address}: {source}; is `cutline tg receive` running there?")]
    Unreachable {
        /// The receiver's address and port.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server at this address is not a receiver.
    #[error("{0} does not answer as a receiver of cutline tg")]
    Stranger(String),
    /// The receiver has another version of the protocol.
    #[error(
        "the receiver has version {theirs} of the protocol, the sender has version {PROTOCOL}: \
         use the same release of cutline at both ends"
    )]
    Version {
        /// The receiver's version.
        theirs: u32,
    },
    /// The receiver refused a request, for this reason.
    #[error("the receiver refused the request: {}", Printable(.0))]
    Refused(String),
    /// The receiver requires a key, and the sender has none.
    #[error("the receiver requires a key: use --key-file with the receiver's key")]
    KeyRequired,
    /// The sender has a key, and the receiver has none: it could be another one than the expected one.
    #[error(
        "the receiver has no key, so its identity cannot be verified: start it with --key-file, or send without a key"
    )]
    Keyless,
    /// A message has no valid tag.
    #[error("the peer has another key, or a message was changed")]
    Forged,
    /// The connection was lost.
    #[error("the connection to the peer broke: {}", Printable(.0))]
    Broken(io::Error),
    /// The sender was silent during the run for this time.
    #[error("the sender has been silent for {0}: it was stopped, or the path between them is interrupted")]
    Silent(Duration),
    /// The peer did not send the expected message.
    #[error("the peer violated the protocol: {}", Printable(.0))]
    Unexpected(String),
    /// The path of a flow that the receiver sends does not work.
    #[error("{}", Printable(.0))]
    Path(String),
    /// The receiver was stopped. It sent its measurements up to then.
    #[error("the receiver was stopped before the end")]
    Stopped,
    /// The generator or the meter failed.
    #[error(transparent)]
    Traffic(#[from] crate::TrafficError),
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}
