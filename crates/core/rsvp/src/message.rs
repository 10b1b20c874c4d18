//! Messages: a header and objects (RFC 2205 section 3.1, RFC 2747 section 4.3 as amended by RFC 3097, RFC 2961 sections 3 to 5).
//!
//! [`Message::encode`] writes the objects in the recommended order, with a checksum. [`Message::decode`] takes them in any order that is
//! allowed, and says what becomes of a message that it does not understand: it is [malformed](DecodeError::Malformed) and only
//! counted, or [refused](DecodeError::Refused) with an error that the node in front should hear of. Objects of unknown classes are
//! treated as RFC 2205 section 3.10 asks for.
//!
//! The INTEGRITY object is no part of a [`Message`]: [`crate::integrity`] puts it into the bytes and checks it there.

use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{
    Acknowledgement, Challenge, ErrorSpec, Hop, IdList, MessageId, OBJECT_HEADER, Opaque, Selector, Sender,
    Session, Style, class, code, put, put_confirm, put_scope, put_time, read_confirm, read_scope, read_time,
};
use cutline_units::Duration;
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
    /// Asks for proof that messages are recent.
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

    /// Returns whether the message has the Router Alert option, because it is addressed to somebody beyond
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

/// A sender and what it sends (RFC 2205 section 3.1.3).
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
    /// For whom.
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
    /// The receiver that wants a confirmation.
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
    /// The receiver that wanted it.
    pub receiver: IpAddr,
    /// The style.
    pub style: Style,
    /// The confirmed reservations.
    pub flows: Vec<Descriptor>,
}

/// Reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DecodeError {
    /// Shorter than the header says, or than a header.
    #[error("the message has {found} bytes, and its header says {said}")]
    Length {
        /// The length found.
        found: usize,
        /// The length in the header.
        said: usize,
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
    Refused(Box<Refused>),
}

/// A message that is answered with an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
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
    /// Says what becomes of a message that is not understood.
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

/// Writes length and checksum into the header of a message.
///
/// # Panics
/// When the message is longer than [`LONGEST`].
pub(crate) fn finish(bytes: &mut [u8]) {
    assert!(bytes.len() <= LONGEST, "a message has at most {LONGEST} bytes");
    let length = bytes.len() as u16;
    bytes[6..8].copy_from_slice(&length.to_be_bytes());
    bytes[2..4].fill(0);
    let sum = checksum(bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the checksum of a message whose checksum field is 0 (RFC 2205 section 3.1.1); 0 of one whose field is right.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the message at the beginning of what a packet carries, without what follows it.
pub fn whole_message(bytes: &[u8]) -> &[u8] {
    let said = bytes.get(6..8).map_or(0, |said| usize::from(u16::from_be_bytes([said[0], said[1]])));
    bytes.get(..said).filter(|_| said >= HEADER).unwrap_or(bytes)
}

fn check_header(bytes: &[u8]) -> Result<MessageType, DecodeError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Err(DecodeError::Length { found: bytes.len(), said: HEADER });
    };
    if header[0] >> 4 != VERSION {
        return Err(DecodeError::Version(header[0] >> 4));
    }
    let said = usize::from(u16::from_be_bytes([header[6], header[7]]));
    if said != bytes.len() || said > LONGEST {
        return Err(DecodeError::Length { found: bytes.len(), said });
    }
    // RFC 2205 section 3.1.1: zero means that no checksum was sent.
    if header[2..4] != [0, 0] && checksum(bytes) != 0 {
        return Err(DecodeError::Checksum);
    }
    MessageType::from_number(header[1]).ok_or(DecodeError::Kind(header[1]))
}

/// Returns the messages of a bundle (RFC 2961 section 3.2). Each is checked when it is read.
fn split_bundle(mut rest: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let length = rest
            .first_chunk::<HEADER>()
            .map(|header| usize::from(u16::from_be_bytes([header[6], header[7]])));
        let length = length.filter(|length| *length >= HEADER && *length <= rest.len());
        let (message, after) =
            rest.split_at(length.ok_or(DecodeError::Malformed("a bundle's message is cut off"))?);
        if message[1] == MessageType::Bundle as u8 {
            return Err(DecodeError::Malformed("a bundle in a bundle"));
        }
        messages.push(message.to_vec());
        rest = after;
    }
    if messages.is_empty() { Err(DecodeError::Malformed("an empty bundle")) } else { Ok(messages) }
}

/// Walks over the objects of a message.
pub(crate) struct Objects<'b>(pub(crate) &'b [u8]);

/// An object as it is on the wire: its class, its type, its content.
pub(crate) type RawObject<'b> = (u8, u8, &'b [u8]);

impl<'b> Iterator for Objects<'b> {
    type Item = Result<RawObject<'b>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = match self.0.first_chunk::<OBJECT_HEADER>() {
            Some(header) => header,
            None if self.0.is_empty() => return None,
            None => {
                self.0 = &[];
                return Some(Err(DecodeError::Malformed("the header of an object is cut off")));
            }
        };
        let length = usize::from(u16::from_be_bytes([header[0], header[1]]));
        if length < OBJECT_HEADER || !length.is_multiple_of(4) || length > self.0.len() {
            self.0 = &[];
            return Some(Err(DecodeError::Malformed("the length of an object is not possible")));
        }
        let (object, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(Ok((header[2], header[3], &object[OBJECT_HEADER..])))
    }
}

/// An item of a flow descriptor list.
#[derive(Clone, Copy)]
enum FlowItem {
    Flowspec(Flowspec),
    Filter(Sender),
}

/// The most objects of a message that an error about it repeats: of a Resv message, those of the first sender.
const MOST_NAMED: usize = 3;

/// The objects of a message, by class.
#[derive(Default)]
struct Parts {
    acknowledgements: Vec<Acknowledgement>,
    id: Option<MessageId>,
    passed_on: Vec<Opaque>,
    session: Option<(Session, bool)>,
    hop: Option<Hop>,
    refresh: Option<Duration>,
    error: Option<ErrorSpec>,
    scope: Option<Vec<IpAddr>>,
    style: Option<Style>,
    confirm: Option<IpAddr>,
    policy: Vec<Opaque>,
    flows: Vec<FlowItem>,
    sender: Option<Sender>,
    tspec: Option<Tspec>,
    adspec: Option<Adspec>,
    lists: Vec<IdList>,
    challenge: Option<Challenge>,
    /// The first object that is not known: code and value of the error.
    unknown: Option<(u8, u16)>,
    /// The objects that an error is about, if it is one about an object that is not known.
    named: Vec<Opaque>,
}

impl Parts {
    fn collect(&mut self, objects: &[u8]) -> Result<(), DecodeError> {
        for (at, object) in Objects(objects).enumerate() {
            let (class, object_kind, content) = object?;
            if class == class::INTEGRITY {
                // RFC 2205 section 3.1.3: it follows the header at once.
                if at > 0 {
                    return Err(DecodeError::Malformed("INTEGRITY is not the first object"));
                }
                continue;
            }
            self.object(class, object_kind, content)?;
        }
        // RFC 2205 section 3.10: an error has them as they came.
        if self.unknown.is_some() {
            let named = Objects(objects).flatten().filter(|(class, ..)| {
                matches!(*class, class::SESSION | class::STYLE | class::SENDER_TEMPLATE | class::FILTER_SPEC)
            });
            let named = named.map(|(class, kind, content)| Opaque { class, kind, content: content.into() });
            self.named = named.take(MOST_NAMED).collect();
        }
        Ok(())
    }

    fn object(&mut self, class: u8, kind: u8, content: &[u8]) -> Result<(), DecodeError> {
        const MALFORMED: DecodeError = DecodeError::Malformed("the content of an object is not possible");
        let known_kinds = match class {
            class::SESSION | class::RSVP_HOP | class::ERROR_SPEC | class::SCOPE | class::RESV_CONFIRM => {
                1..=2
            }
            class::FILTER_SPEC | class::SENDER_TEMPLATE => 1..=3,
            class::TIME_VALUES | class::STYLE | class::MESSAGE_ID | class::CHALLENGE => 1..=1,
            class::FLOWSPEC | class::SENDER_TSPEC | class::ADSPEC => 2..=2,
            class::MESSAGE_ID_ACK => 1..=2,
            class::MESSAGE_ID_LIST => 1..=5,
            _ => 0..=u8::MAX,
        };
        if !known_kinds.contains(&kind) {
            self.refuse(code::UNKNOWN_TYPE, u16::from_be_bytes([class, kind]));
            return Ok(());
        }
        match class {
            class::NULL => {}
            class::SESSION => once(&mut self.session, Session::read(kind, content).ok_or(MALFORMED)?)?,
            class::RSVP_HOP => once(&mut self.hop, Hop::read(kind, content).ok_or(MALFORMED)?)?,
            class::TIME_VALUES => once(&mut self.refresh, read_time(content).ok_or(MALFORMED)?)?,
            class::ERROR_SPEC => once(&mut self.error, ErrorSpec::read(kind, content).ok_or(MALFORMED)?)?,
            class::SCOPE => once(&mut self.scope, read_scope(kind, content).ok_or(MALFORMED)?)?,
            class::STYLE => once(&mut self.style, Style::read(content).ok_or(MALFORMED)?)?,
            class::RESV_CONFIRM => once(&mut self.confirm, read_confirm(kind, content).ok_or(MALFORMED)?)?,
            class::SENDER_TEMPLATE => once(&mut self.sender, Sender::read(kind, content).ok_or(MALFORMED)?)?,
            class::FILTER_SPEC => {
                self.flows.push(FlowItem::Filter(Sender::read(kind, content).ok_or(MALFORMED)?));
            }
            class::FLOWSPEC => match Flowspec::decode(content) {
                Some(flowspec) => self.flows.push(FlowItem::Flowspec(flowspec)),
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_FLOWSPEC),
            },
            class::SENDER_TSPEC => match Tspec::decode(content) {
                Some(tspec) => once(&mut self.tspec, tspec)?,
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_TSPEC),
            },
            class::ADSPEC => match Adspec::decode(content) {
                Some(adspec) => once(&mut self.adspec, adspec)?,
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_ADSPEC),
            },
            class::POLICY_DATA => self.policy.push(Opaque { class, kind, content: content.into() }),
            class::MESSAGE_ID => once(&mut self.id, MessageId::read(content).ok_or(MALFORMED)?)?,
            class::MESSAGE_ID_ACK => {
                self.acknowledgements.push(Acknowledgement::read(kind, content).ok_or(MALFORMED)?);
            }
            class::MESSAGE_ID_LIST => self.lists.push(IdList::read(kind, content).ok_or(MALFORMED)?),
            class::CHALLENGE => once(&mut self.challenge, Challenge::read(content).ok_or(MALFORMED)?)?,
            // RFC 2205 section 3.10: refused, ignored, or passed on, by the two upper bits.
            0b1100_0000.. => self.passed_on.push(Opaque { class, kind, content: content.into() }),
            0b1000_0000.. => {}
            _ => self.refuse(code::UNKNOWN_CLASS, u16::from_be_bytes([class, kind])),
        }
        Ok(())
    }

    fn refuse(&mut self, code: u8, value: u16) {
        self.unknown.get_or_insert((code, value));
    }

    fn body(&mut self, kind: MessageType) -> Result<Body, DecodeError> {
        self.check_addresses()?;
        if let Some((code, value)) = self.unknown {
            return Err(self.refused(kind, code, value));
        }
        let missing = DecodeError::Malformed;
        let session = || self.session.ok_or(missing("SESSION is missing"));
        let hop = self.hop.ok_or(missing("RSVP_HOP is missing"));
        let refresh = self.refresh.ok_or(missing("TIME_VALUES is missing"));
        let sender = self.sender.ok_or(missing("SENDER_TEMPLATE is missing"));
        let error = self.error.ok_or(missing("ERROR_SPEC is missing"));
        let style = self.style.ok_or(missing("STYLE is missing"));
        let challenge = self.challenge.ok_or(missing("CHALLENGE is missing"));
        let policy = std::mem::take(&mut self.policy);
        let (tspec, scope) = (self.tspec, self.scope.take());
        Ok(match kind {
            MessageType::Path => {
                let (session, polices_entry) = session()?;
                let tspec = tspec.ok_or(missing("SENDER_TSPEC is missing"))?;
                let (hop, refresh, sender) = (hop?, refresh?, sender?);
                let adspec = self.adspec.take();
                Body::Path(Path { session, polices_entry, hop, refresh, policy, sender, tspec, adspec })
            }
            MessageType::PathTear => {
                Body::PathTear(PathTear { session: session()?.0, hop: hop?, sender: sender?, tspec })
            }
            MessageType::PathErr => Body::PathErr(PathErr {
                session: session()?.0,
                error: error?,
                policy,
                sender: sender?,
                tspec,
            }),
            MessageType::Resv => {
                let style = style?;
                let flows = self.descriptors(style, true)?;
                let (session, hop, refresh, confirm) = (session()?.0, hop?, refresh?, self.confirm);
                Body::Resv(Resv { session, hop, refresh, confirm, scope, policy, style, flows })
            }
            MessageType::ResvTear => {
                let style = style?;
                let flows = self.descriptors(style, false)?;
                Body::ResvTear(ResvTear { session: session()?.0, hop: hop?, style, flows })
            }
            MessageType::ResvErr => {
                let style = style?;
                let flow = match &self.flows[..] {
                    [] => None,
                    _ => self.descriptors(style, true)?.pop(),
                };
                Body::ResvErr(ResvErr {
                    session: session()?.0,
                    hop: hop?,
                    error: error?,
                    scope,
                    policy,
                    style,
                    flow,
                })
            }
            MessageType::ResvConf => {
                let (style, receiver) = (style?, self.confirm.ok_or(missing("RESV_CONFIRM is missing"))?);
                let flows = self.descriptors(style, true)?;
                Body::ResvConf(ResvConf { session: session()?.0, error: error?, receiver, style, flows })
            }
            MessageType::Ack if self.acknowledgements.is_empty() => {
                return Err(missing("MESSAGE_ID_ACK is missing"));
            }
            MessageType::Ack if self.id.is_some() => return Err(missing("a number in an Ack message")),
            MessageType::Ack => Body::Ack,
            MessageType::Srefresh if self.lists.is_empty() => {
                return Err(missing("MESSAGE_ID_LIST is missing"));
            }
            MessageType::Srefresh => Body::Srefresh(std::mem::take(&mut self.lists)),
            MessageType::IntegrityChallenge => Body::IntegrityChallenge(challenge?),
            MessageType::IntegrityResponse => Body::IntegrityResponse(challenge?),
            MessageType::Bundle => unreachable!("a bundle has messages, and no objects"),
        })
    }

    /// Every address must be of the version of the session's, and ports follow RFC 2205 section 3.2.
    fn check_addresses(&self) -> Result<(), DecodeError> {
        let Some((session, _)) = self.session else { return Ok(()) };
        let filters = self.flows.iter().filter_map(|item| match item {
            FlowItem::Filter(sender) => Some(*sender),
            FlowItem::Flowspec(_) => None,
        });
        let senders: Vec<Sender> = filters.chain(self.sender).collect();
        let addresses = senders.iter().map(|sender| sender.address);
        let addresses = addresses.chain(self.hop.map(|hop| hop.address)).chain(self.confirm);
        let mut addresses = addresses.chain(self.scope.iter().flatten().copied());
        let is_v4 = session.destination.is_ipv4();
        if addresses.any(|address| address.is_ipv4() != is_v4) {
            return Err(DecodeError::Malformed("addresses of both versions of IP"));
        }
        let has_port = |sender: &Sender| !matches!(sender.selector, Selector::Port(0));
        if session.port == 0 && senders.iter().any(has_port) {
            return Err(DecodeError::Malformed("a source port in a session without ports"));
        }
        Ok(())
    }

    /// The error for a Path or Resv message that is not understood. Other messages cause no error.
    fn refused(&self, kind: MessageType, code: u8, value: u16) -> DecodeError {
        let has_session = self.session.is_some() || self.named.iter().any(|its| its.class == class::SESSION);
        match (kind, self.hop) {
            (MessageType::Path | MessageType::Resv, Some(hop)) if has_session => {
                let session = self.session.map(|(session, _)| session);
                let (sender, style, named) = (self.sender, self.style, self.named.clone());
                DecodeError::Refused(Box::new(Refused {
                    code,
                    value,
                    kind,
                    session,
                    named,
                    hop,
                    sender,
                    style,
                }))
            }
            _ => DecodeError::Malformed("an object that is not known"),
        }
    }

    /// Puts the flow descriptors together (RFC 2205 section 3.1.4).
    fn descriptors(&self, style: Style, needs_flowspec: bool) -> Result<Vec<Descriptor>, DecodeError> {
        let wrong = Err(DecodeError::Malformed("the flow descriptors are not those of the style"));
        let mut flows: Vec<Descriptor> = Vec::new();
        let mut flowspec = None;
        let mut filters = Vec::new();
        for item in &self.flows {
            match (style, item) {
                (Style::FixedFilter, FlowItem::Flowspec(found)) => flowspec = Some(*found),
                // A flowspec that is left out is that of the flow before.
                (Style::FixedFilter, FlowItem::Filter(sender)) => {
                    flows.push(Descriptor { flowspec, filters: vec![*sender] });
                }
                (_, FlowItem::Flowspec(_)) if flowspec.is_some() || !filters.is_empty() => return wrong,
                (_, FlowItem::Flowspec(found)) => flowspec = Some(*found),
                (Style::WildcardFilter, FlowItem::Filter(_)) => return wrong,
                (_, FlowItem::Filter(sender)) => filters.push(*sender),
            }
        }
        match style {
            Style::FixedFilter if flows.is_empty() => return wrong,
            Style::FixedFilter => {}
            Style::SharedExplicit if filters.is_empty() => return wrong,
            _ => flows.push(Descriptor { flowspec, filters }),
        }
        let is_known = !matches!(style, Style::Other(_));
        if needs_flowspec && is_known && flows.iter().any(|flow| flow.flowspec.is_none()) {
            return Err(DecodeError::Malformed("FLOWSPEC is missing"));
        }
        Ok(flows)
    }
}

/// Sets what a message may have once.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), DecodeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::Malformed("an object is there twice")),
    }
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

    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Unread(_, objects) => objects.iter().for_each(|object| object.put(to)),
            Self::Path(path) => {
                path.session.put(to, path.polices_entry);
                path.hop.put(to);
                put_time(to, path.refresh);
                path.policy.iter().for_each(|policy| policy.put(to));
                put_sender(to, &path.sender, Some(&path.tspec));
                if let Some(adspec) = &path.adspec {
                    put(to, class::ADSPEC, 2, |to| to.extend(adspec.encode()));
                }
            }
            Self::PathTear(tear) => {
                tear.session.put(to, false);
                tear.hop.put(to);
                put_sender(to, &tear.sender, tear.tspec.as_ref());
            }
            Self::PathErr(error) => {
                error.session.put(to, false);
                error.error.put(to);
                error.policy.iter().for_each(|policy| policy.put(to));
                put_sender(to, &error.sender, error.tspec.as_ref());
            }
            Self::Resv(resv) => {
                resv.session.put(to, false);
                resv.hop.put(to);
                put_time(to, resv.refresh);
                if let Some(receiver) = resv.confirm {
                    put_confirm(to, receiver);
                }
                put_scope(to, resv.scope.as_deref().unwrap_or_default());
                resv.policy.iter().for_each(|policy| policy.put(to));
                resv.style.put(to);
                put_flows(to, &resv.flows);
            }
            Self::ResvTear(tear) => {
                tear.session.put(to, false);
                tear.hop.put(to);
                tear.style.put(to);
                put_flows(to, &tear.flows);
            }
            Self::ResvErr(error) => {
                error.session.put(to, false);
                error.hop.put(to);
                error.error.put(to);
                put_scope(to, error.scope.as_deref().unwrap_or_default());
                error.policy.iter().for_each(|policy| policy.put(to));
                error.style.put(to);
                put_flows(to, error.flow.as_slice());
            }
            Self::ResvConf(confirmation) => {
                confirmation.session.put(to, false);
                confirmation.error.put(to);
                put_confirm(to, confirmation.receiver);
                confirmation.style.put(to);
                put_flows(to, &confirmation.flows);
            }
            Self::Bundle(messages) => messages.iter().for_each(|message| to.extend(message)),
            Self::Ack => {}
            Self::Srefresh(lists) => lists.iter().for_each(|list| list.put(to)),
            Self::IntegrityChallenge(challenge) | Self::IntegrityResponse(challenge) => challenge.put(to),
        }
    }
}

fn put_sender(to: &mut Vec<u8>, sender: &Sender, tspec: Option<&Tspec>) {
    sender.put(to, class::SENDER_TEMPLATE);
    if let Some(tspec) = tspec {
        put(to, class::SENDER_TSPEC, 2, |to| to.extend(tspec.encode()));
    }
}

fn put_flows(to: &mut Vec<u8>, flows: &[Descriptor]) {
    for Descriptor { flowspec, filters } in flows {
        if let Some(flowspec) = flowspec {
            put(to, class::FLOWSPEC, 2, |to| to.extend(flowspec.encode()));
        }
        for sender in filters {
            sender.put(to, class::FILTER_SPEC);
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
