//! Protocol between clients and `cutlined`: JSON documents, one a line, over a local stream socket.
//!
//! ```text
//! client                                     cutlined
//! {"request":"hello","version":1}
//!                                            {"reply":"welcome","version":1}
//! {"request":"announce","id":1,"flow":...}
//!                                            {"reply":"accepted","id":1}
//!                                            {"reply":"reserved","id":1,"bucket":{...}}
//! {"request":"withdraw","id":1}
//!                                            {"reply":"withdrawn","id":1}
//! ```
//!
//! A client numbers its requests. Replies and later notices have that number. A line is at most [`LONGEST_LINE`] bytes. A line that cannot be
//! understood is answered with `error`, and then the connection is closed. All that a client has requested ends with its connection.

use crate::demand::Flow;
use crate::refusal::Refusal;
use cutline_flow::TrafficSpec;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line of a client, bytes, without its end.
pub const LONGEST_LINE: usize = 8192;
/// The longest line of `cutlined`, bytes: its status may have hundreds of thousands of paths and reservations.
pub const LONGEST_REPLY: usize = 256 << 20;
/// The most senders that a request names.
pub const MOST_SENDERS: usize = 64;

/// Senders of a reservation (RFC 2205 section 1.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "style", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Senders {
    /// FF: each of these has its own.
    Fixed {
        /// Sources of their packets.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        senders: Vec<SocketAddr>,
    },
    /// SE: these share one.
    Shared {
        /// Sources of their packets.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
        senders: Vec<SocketAddr>,
    },
    /// WF: all senders share one.
    Any {},
}

/// Request of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The first line of a connection.
    Hello {
        /// The version of the protocol that the client has.
        version: u32,
    },
    /// Announces this host's traffic, so that receivers can reserve for it: a Path message.
    Announce {
        /// The client's number for it.
        id: u64,
        /// The packets.
        flow: Flow,
        /// Token bucket of the packets.
        bucket: TrafficSpec,
    },
    /// Reserves for traffic that this host receives: a Resv message, as soon as the sender has announced itself.
    Reserve {
        /// The client's number for it.
        id: u64,
        /// The protocol of the packets.
        transport: crate::TransportProtocol,
        /// Destination of the packets: an address of this host, or a group.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        destination: SocketAddr,
        /// Senders of the packets.
        senders: Senders,
        /// The reservation: for each sender in style FF, for all together otherwise.
        bucket: TrafficSpec,
        /// True if the client requests a confirmation that the whole path has reserved.
        confirm: bool,
    },
    /// Reserves at this host's own interface for its sent traffic. No other node is involved.
    Shape {
        /// The client's number for it.
        id: u64,
        /// The packets.
        flow: Flow,
        /// Token bucket of the packets.
        bucket: TrafficSpec,
    },
    /// Ends the request with this number.
    Withdraw {
        /// The client's number for it.
        id: u64,
    },
    /// Requests the state of this host's agent.
    Status {},
}

/// Reply or event of `cutlined`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The answer to `hello`.
    Welcome {
        /// The version of the protocol that is spoken.
        version: u32,
    },
    /// The request was accepted. Events follow.
    Accepted {
        /// The client's number.
        id: u64,
    },
    /// A sender of a session that this client reserves for has announced itself, or sends something else.
    Sender {
        /// The client's number.
        id: u64,
        /// Source of its packets.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        sender: SocketAddr,
        /// Token bucket of the packets.
        bucket: TrafficSpec,
        /// Largest rate that can be reserved on the path, as its nodes state, bits per second.
        path_bps: Option<u64>,
    },
    /// A sender has gone.
    SenderGone {
        /// The client's number.
        id: u64,
        /// Source of its packets.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        sender: SocketAddr,
    },
    /// The reservation at this host for the packets has changed.
    Reserved {
        /// The client's number.
        id: u64,
        /// The reservation; `null` if it has ended.
        bucket: Option<TrafficSpec>,
    },
    /// The reservation is probably there along the whole path.
    Confirmed {
        /// The client's number.
        id: u64,
        /// The node that reports it.
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        node: IpAddr,
    },
    /// A request was refused, or its grant is lost.
    Failed {
        /// The client's number.
        id: u64,
        /// The refusal: its reason, its place, and the available rate.
        refusal: Refusal,
        /// True if an earlier, smaller reservation is still in place.
        in_place: bool,
    },
    /// The request of this number has ended, as the client wished.
    Withdrawn {
        /// The client's number.
        id: u64,
    },
    /// State of the agent.
    Status {
        /// The document.
        status: serde_json::Value,
    },
    /// The line was not understood. The connection ends.
    Error {
        /// The error.
        message: String,
    },
}

/// Reason why a line is no request.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// Longer than a line may be.
    #[error("a line is longer than {LONGEST_LINE} B")]
    TooLong,
    /// Not a JSON document of this kind.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A list is too long.
    #[error("senders = {0}: allowed is 1 to {MOST_SENDERS}")]
    Senders(usize),
}

impl Request {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When it is no request of this version.
    pub fn parse(line: &[u8]) -> Result<Self, LineError> {
        if line.len() > LONGEST_LINE {
            return Err(LineError::TooLong);
        }
        let request: Self = serde_json::from_slice(line)?;
        if let Self::Reserve { senders: Senders::Fixed { senders } | Senders::Shared { senders }, .. } =
            &request
            && !(1..=MOST_SENDERS).contains(&senders.len())
        {
            return Err(LineError::Senders(senders.len()));
        }
        Ok(request)
    }

    /// The line, with its end.
    pub fn line(&self) -> String {
        line(self)
    }
}

impl Reply {
    /// The line, with its end.
    pub fn line(&self) -> String {
        line(self)
    }

    /// The client's number that it is about.
    pub const fn id(&self) -> Option<u64> {
        match self {
            Self::Accepted { id }
            | Self::Sender { id, .. }
            | Self::SenderGone { id, .. }
            | Self::Reserved { id, .. }
            | Self::Confirmed { id, .. }
            | Self::Failed { id, .. }
            | Self::Withdrawn { id } => Some(*id),
            Self::Welcome { .. } | Self::Status { .. } | Self::Error { .. } => None,
        }
    }
}

fn line(document: &impl Serialize) -> String {
    let mut line = serde_json::to_string(document).expect("these documents have no other keys than text");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportProtocol;
    use cutline_units::{Bytes, Rate};
    use proptest::prelude::*;

    fn reserve(senders: Senders) -> Request {
        let bucket = TrafficSpec {
            rate: Rate::from_bps(80_000),
            bucket: Bytes::new(2000),
            peak: Rate::from_bps(160_000),
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        };
        Request::Reserve {
            id: 7,
            transport: TransportProtocol::Udp,
            destination: "[2001:db8::1]:5000".parse().unwrap(),
            senders,
            bucket,
            confirm: true,
        }
    }

    #[test]
    fn a_request_is_the_same_after_it_was_written_and_read() {
        let sender: SocketAddr = "[2001:db8::2]:6000".parse().unwrap();
        for senders in [
            Senders::Any {},
            Senders::Fixed { senders: vec![sender] },
            Senders::Shared { senders: vec![sender; MOST_SENDERS] },
        ] {
            let request = reserve(senders);
            let line = request.line();
            assert_eq!(Request::parse(line.trim_end().as_bytes()).unwrap(), request, "{line}");
        }
    }

    #[test]
    fn an_invalid_request_is_refused_with_the_reason() {
        let refused = |line: &str| Request::parse(line.as_bytes()).unwrap_err().to_string();
        assert!(refused("{\"request\":\"status\",\"all\":1}").contains("all"));
        assert!(refused("{\"request\":\"grant\"}").contains("grant"));
        assert!(refused(&"x".repeat(LONGEST_LINE + 1)).contains("8192"));
        let many = Senders::Fixed { senders: vec!["10.0.0.1:1".parse().unwrap(); MOST_SENDERS + 1] };
        assert_eq!(refused(&reserve(many).line()), "senders = 65: allowed is 1 to 64");
        assert!(refused(&reserve(Senders::Shared { senders: vec![] }).line()).contains("senders = 0"));
    }

    proptest! {
        /// A line of any bytes is a request or an error.
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(Request::parse(&bytes));
        }
    }
}
