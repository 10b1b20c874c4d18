//! Messages: a header and objects (RFC 2205 section 3.1, RFC 2747 section 4.3 as amended by RFC 3097, RFC 2961 sections 3 to 5).
//!
//! [`Message::encode`] writes the objects in the recommended order, with a checksum. [`Message::decode`] takes them in any order that is
//! allowed, and returns the treatment of a message that it does not understand: it is [malformed](DecodeError::Malformed) and only
//! counted, or [rejected](DecodeError::Rejected) with an error to report to the previous node. Objects of unknown classes are
//! treated as RFC 2205 section 3.10 requests.
//!
//! The INTEGRITY object is no part of a [`Message`]: [`crate::integrity`] puts it into the bytes and checks it there.

mod building;
mod framing;
mod parsing;

pub use framing::whole_message;
pub(crate) use framing::{Objects, finish};

use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{
    Acknowledgement, Challenge, ErrorSpec, Hop, IdList, MessageId, OBJECT_HEADER, Opaque, Sender, Session,
    Style,
};
use cutline_units::Duration;
use framing::{check_header, split_bundle};
use parsing::Parts;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use thiserror::Error;

/// The bytes of the common header.
pub const HEADER: usize = 8;
/// The longest message, bytes.
pub const LONGEST: usize = 65_535 - 60;
/// The version of the protocol.
const VERSION: u8 = 1;
/// The flag of a node that understands refresh reduction (RFC 2961 section 2).
const REFRESH_REDUCTION: u8 = 1;

/// The types of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageType {
    /// A sender's traffic, on its way to the receivers.
    Path = 1,
    /// A reservation, on its way to the senders.
    Resv = 2,
    /// An error about a path, on its way to the sender.
    PathErr = 3,
    /// An error about a reservation, on its way to the receivers.
    ResvErr = 4,
    /// The end of a path.
    PathTear = 5,
    /// The end of a reservation.
    ResvTear = 6,
    /// The confirmation of a reservation.
    ResvConf = 7,
    /// Several messages in one.
    Bundle = 12,
    /// Acknowledgements.
    Ack = 13,
    /// The numbers of the messages whose state is refreshed.
    Srefresh = 15,
    /// Requests a proof that messages are recent.
    IntegrityChallenge = 25,
    /// The answer to it.
    IntegrityResponse = 26,
}

impl MessageType {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Path,
        Self::Resv,
        Self::PathErr,
        Self::ResvErr,
        Self::PathTear,
        Self::ResvTear,
        Self::ResvConf,
        Self::Bundle,
        Self::Ack,
        Self::Srefresh,
        Self::IntegrityChallenge,
        Self::IntegrityResponse,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Returns whether the message has the Router Alert option, because it is addressed beyond
    /// the next node (RFC 2205 section 3.3).
    pub const fn has_router_alert(self) -> bool {
        matches!(self, Self::Path | Self::PathTear | Self::ResvConf)
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The TTL with which it was sent.
    pub ttl: u8,
    /// True if its sender understands refresh reduction.
    pub reduces_refreshes: bool,
    /// Acknowledgements of the receiver's messages.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Its number.
    pub id: Option<MessageId>,
    /// Its content.
    pub body: Body,
    /// Objects of unknown classes that every node passes on.
    pub passed_on: Vec<Opaque>,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is named after its type of message")]
pub enum Body {
    Path(Path),
    PathTear(PathTear),
    PathErr(PathErr),
    Resv(Resv),
    ResvTear(ResvTear),
    ResvErr(ResvErr),
    ResvConf(ResvConf),
    Bundle(Vec<Vec<u8>>),
    Ack,
    Srefresh(Vec<IdList>),
    IntegrityChallenge(Challenge),
    IntegrityResponse(Challenge),
    /// An error about objects that are not understood, and are in it as they came. It is sent and never read.
    Unread(MessageType, Vec<Opaque>),
}

/// A sender and its traffic (RFC 2205 section 3.1.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The session.
    pub session: Session,
    /// No node so far could police the traffic.
    pub polices_entry: bool,
    /// The previous hop.
    pub hop: Hop,
    /// The refresh period of the previous hop.
    pub refresh: Duration,
    /// Data for policies.
    pub policy: Vec<Opaque>,
    /// The sender.
    pub sender: Sender,
    /// Its traffic.
    pub tspec: Tspec,
    /// Offer of the path.
    pub adspec: Option<Adspec>,
}

/// The end of a path (RFC 2205 section 3.1.5).
#[derive(Clone, Debug, PartialEq)]
pub struct PathTear {
    /// The session.
    pub session: Session,
    /// The previous hop.
    pub hop: Hop,
    /// The sender.
    pub sender: Sender,
    /// Its traffic, which is ignored.
    pub tspec: Option<Tspec>,
}

/// An error about a path (RFC 2205 section 3.1.7).
#[derive(Clone, Debug, PartialEq)]
pub struct PathErr {
    /// The session.
    pub session: Session,
    /// The error.
    pub error: ErrorSpec,
    /// Data for policies.
    pub policy: Vec<Opaque>,
    /// The sender.
    pub sender: Sender,
    /// Its traffic.
    pub tspec: Option<Tspec>,
}

/// A flowspec for some senders: none in style WF, one in style FF, a list in style SE.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The flowspec. Only the end of a reservation may leave it out.
    pub flowspec: Option<Flowspec>,
    /// Senders that it is for.
    pub filters: Vec<Sender>,
}

/// A reservation (RFC 2205 section 3.1.4).
#[derive(Clone, Debug, PartialEq)]
pub struct Resv {
    /// The session.
    pub session: Session,
    /// The next hop.
    pub hop: Hop,
    /// The refresh period of the next hop.
    pub refresh: Duration,
    /// The receiver that requests a confirmation.
    pub confirm: Option<IpAddr>,
    /// The senders to which it goes, in ascending order, if it is of style WF and may loop.
    pub scope: Option<Vec<IpAddr>>,
    /// Data for policies.
    pub policy: Vec<Opaque>,
    /// The style.
    pub style: Style,
    /// The reservations.
    pub flows: Vec<Descriptor>,
}

/// The end of a reservation (RFC 2205 section 3.1.6).
#[derive(Clone, Debug, PartialEq)]
pub struct ResvTear {
    /// The session.
    pub session: Session,
    /// The next hop.
    pub hop: Hop,
    /// The style.
    pub style: Style,
    /// The reservations that end.
    pub flows: Vec<Descriptor>,
}

/// An error about a reservation (RFC 2205 section 3.1.8).
#[derive(Clone, Debug, PartialEq)]
pub struct ResvErr {
    /// The session.
    pub session: Session,
    /// The previous hop.
    pub hop: Hop,
    /// The error.
    pub error: ErrorSpec,
    /// The senders about which it is, for style WF.
    pub scope: Option<Vec<IpAddr>>,
    /// Data for policies.
    pub policy: Vec<Opaque>,
    /// The style.
    pub style: Style,
    /// The reservation that failed.
    pub flow: Option<Descriptor>,
}

/// The confirmation of a reservation (RFC 2205 section 3.1.9).
#[derive(Clone, Debug, PartialEq)]
pub struct ResvConf {
    /// The session.
    pub session: Session,
    /// The node that confirms.
    pub error: ErrorSpec,
    /// The receiver that requested it.
    pub receiver: IpAddr,
    /// The style.
    pub style: Style,
    /// The confirmed reservations.
    pub flows: Vec<Descriptor>,
}

/// Reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DecodeError {
    /// Shorter than the length in the header, or than a header.
    #[error("the message has {found} bytes, and its header states {stated}")]
    Length {
        /// The length found.
        found: usize,
        /// The length in the header.
        stated: usize,
    },
    /// Another version of the protocol.
    #[error("version {0} of RSVP")]
    Version(u8),
    /// The checksum is wrong.
    #[error("a wrong checksum")]
    Checksum,
    /// A type of message that is not known.
    #[error("messages of type {0} are not known")]
    Kind(u8),
    /// The message breaks a rule that only an error in a program can break.
    #[error("{0}")]
    Malformed(&'static str),
    /// The message is well-formed, and something in it is not known here.
    #[error("error code {} with value {}", .0.code, .0.value)]
    Rejected(Box<RejectedMessage>),
}

/// A message that is answered with an error.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectedMessage {
    /// The error's code.
    pub code: u8,
    /// The error's value.
    pub value: u16,
    /// The type of the message, which is Path or Resv.
    pub kind: MessageType,
    /// The session; `None` if it is of a type that is not known.
    pub session: Option<Session>,
    /// The objects that name the session, the style and the sender, as they came.
    pub named: Vec<Opaque>,
    /// The neighbour that sent it.
    pub hop: Hop,
    /// The sender of a Path message.
    pub sender: Option<Sender>,
    /// The style of a Resv message.
    pub style: Option<Style>,
}

impl Body {
    /// Returns the type of the message.
    pub const fn kind(&self) -> MessageType {
        match self {
            Self::Path(_) => MessageType::Path,
            Self::PathTear(_) => MessageType::PathTear,
            Self::PathErr(_) => MessageType::PathErr,
            Self::Resv(_) => MessageType::Resv,
            Self::ResvTear(_) => MessageType::ResvTear,
            Self::ResvErr(_) => MessageType::ResvErr,
            Self::ResvConf(_) => MessageType::ResvConf,
            Self::Bundle(_) => MessageType::Bundle,
            Self::Ack => MessageType::Ack,
            Self::Srefresh(_) => MessageType::Srefresh,
            Self::IntegrityChallenge(_) => MessageType::IntegrityChallenge,
            Self::IntegrityResponse(_) => MessageType::IntegrityResponse,
            Self::Unread(kind, _) => *kind,
        }
    }
}

impl Message {
    /// A message without a number and acknowledgements.
    pub const fn new(ttl: u8, body: Body) -> Self {
        Self {
            ttl,
            reduces_refreshes: false,
            acknowledgements: Vec::new(),
            id: None,
            body,
            passed_on: Vec::new(),
        }
    }

    /// Returns the type.
    pub const fn kind(&self) -> MessageType {
        self.body.kind()
    }

    /// Returns the bytes of the objects that are passed on as they came.
    pub(crate) fn opaque_bytes(&self) -> usize {
        let policy = match &self.body {
            Body::Path(path) => &path.policy[..],
            Body::Resv(resv) => &resv.policy,
            Body::PathErr(error) => &error.policy,
            Body::ResvErr(error) => &error.policy,
            _ => &[],
        };
        policy.iter().chain(&self.passed_on).map(|object| object.content.len() + OBJECT_HEADER).sum()
    }

    /// Writes the message with its checksum.
    ///
    /// # Panics
    /// When the message is longer than [`LONGEST`].
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_unfinished();
        finish(&mut bytes);
        bytes
    }

    /// Returns a hash of the message without the objects that differ between a message that installs state and its refreshes.
    pub(crate) fn content_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.encode_unfinished().hash(&mut hasher);
        hasher.finish()
    }

    /// Writes the message without length and checksum. It may be too long for a datagram.
    pub(crate) fn encode_unfinished(&self) -> Vec<u8> {
        let flags = if self.reduces_refreshes { REFRESH_REDUCTION } else { 0 };
        let mut bytes = vec![VERSION << 4 | flags, self.kind() as u8, 0, 0, self.ttl, 0, 0, 0];
        self.acknowledgements.iter().for_each(|acknowledgement| acknowledgement.put(&mut bytes));
        if let Some(id) = &self.id {
            id.put(&mut bytes);
        }
        self.body.put(&mut bytes);
        self.passed_on.iter().for_each(|object| object.put(&mut bytes));
        bytes
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The treatment of a message that is not understood.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let kind = check_header(bytes)?;
        let reduces_refreshes = bytes[0] & REFRESH_REDUCTION != 0;
        let mut parts = Parts::default();
        let body = if kind == MessageType::Bundle {
            Body::Bundle(split_bundle(&bytes[HEADER..])?)
        } else {
            parts.collect(&bytes[HEADER..])?;
            parts.body(kind)?
        };
        Ok(Self {
            ttl: bytes[4],
            reduces_refreshes,
            acknowledgements: parts.acknowledgements,
            id: parts.id,
            body,
            passed_on: parts.passed_on,
        })
    }
}

#[cfg(test)]
mod tests;
