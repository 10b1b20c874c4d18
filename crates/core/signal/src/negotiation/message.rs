//! The messages of a negotiation on the wire; all numbers are big-endian.
//!
//! | bytes | field |
//! | --- | --- |
//! | 2 | magic number, c7 51 |
//! | 1 | version, 1 |
//! | 1 | kind: 1 offer, 2 answer, 3 confirmation; 4 notice of a version, which ends with the length |
//! | 2 | length of the whole message, tag included |
//! | 8 | session: a random number of the initiator |
//! | 4 | round: 1 for the first offer, one more for each later one |
//! | 4 | the last round on which this end knows both to agree; 0 for none |
//! | 16 | nonce of the end that sends this |
//! | 16 | nonce of the peer; zeros in the first offer, when it is not known |
//! | 1 | answer alone: 1 if the ends agree, 0 if not |
//! | 1 | offer and answer: capacity profile, 1 to 6 in the order of RFC 9622; 0 for none |
//! | 2 x (4 to 92) | offer and answer: the direction that this end sends, and the one that it receives |
//! | 32 | with a key: HMAC-SHA-256 of the sender's role (0 initiator, 1 responder) and everything before |
//!
//! A specification is a set of the parameters that are not open (2 bytes, the lowest bit is the first parameter), a set of those
//! that are coerced, and 8 bytes for each parameter that is not open: a whole number, nanoseconds, or a number as IEEE 754.
//!
//! The first six bytes are the same in every version. An end that gets an offer of another version sends a notice, whose
//! version is its own.
//!
//! Nothing that arrives is trusted: a reader refuses every message that this version would not write.

use crate::authentication::{Key, TAG};
use cutline_params::{ParameterKind, ParameterValue, Parameters as _};
use cutline_quality::spec::{
    CapacityProfile, Coerced, ConnectionSpecification, SpecParameter, Specification,
};
use cutline_units::Duration;
use cutline_wire::{Reader, Writer};

/// The version of the messages.
pub const VERSION: u8 = 1;
/// The length of the longest message, bytes.
pub const LONGEST: usize = HEADER + 2 + 2 * (4 + 8 * SpecParameter::ALL.len()) + TAG;
/// The length of the fields that every message has, bytes.
const HEADER: usize = 54;
/// The bytes after which the length of a message is known.
const LENGTH_KNOWN: usize = 6;
const MAGIC: [u8; 2] = [0xc7, 0x51];

/// A random number that is used once.
pub type Nonce = [u8; 16];

/// Role of an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that began: it has connected, or sent the first offer.
    Initiator,
    /// The peer.
    Responder,
}

impl Role {
    /// The peer's role.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiationMessage {
    /// The session, a random number of the initiator.
    pub session: u64,
    /// The round, from 1.
    pub round: u32,
    /// The last round on which the end that sends this knows both to agree; 0 for none.
    pub agreed_round: u32,
    /// The nonce of the end that sends this.
    pub nonce: Nonce,
    /// The nonce of the peer, which proves that this end has received its message; zeros in the first offer.
    pub echo: Nonce,
    /// The content.
    pub content: Content,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Requirements of this end.
    Offer(ConnectionSpecification),
    /// Requirements of this end, and whether both agree.
    Answer {
        /// True if both ends agree.
        agreed: bool,
        /// Requirements of this end.
        specification: ConnectionSpecification,
    },
    /// The answer has arrived.
    Confirmation,
}

/// Reason why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// The bytes do not begin as a message does: the peer uses another protocol.
    Foreign,
    /// The message has this other version.
    Version(u8),
    /// This version would not write them.
    Malformed,
    /// The tag is missing, wrong, or there although there is no key.
    Unauthenticated,
}

/// Number of bytes of a stream that are a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// More bytes are needed for a decision.
    Part,
    /// Number of bytes.
    Whole(usize),
    /// None: the bytes are no message.
    Foreign,
}

/// Returns the length of the message at the beginning of a stream.
pub fn framing(bytes: &[u8]) -> Framing {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Framing::Foreign;
    }
    let Some(head) = bytes.first_chunk::<LENGTH_KNOWN>() else { return Framing::Part };
    match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        length if !(LENGTH_KNOWN..=LONGEST).contains(&length) => Framing::Foreign,
        length if bytes.len() < length => Framing::Part,
        length => Framing::Whole(length),
    }
}

/// Returns the notice that an end sends to one of another version, if these bytes are an offer of another version.
pub fn notice(offer: &[u8]) -> Option<Vec<u8>> {
    let [m0, m1, version, kind, ..] = *offer else { return None };
    let is_offer = [m0, m1] == MAGIC && version != VERSION && kind == OFFER;
    is_offer.then(|| [&MAGIC[..], &[VERSION, NOTICE, 0, LENGTH_KNOWN as u8]].concat())
}

/// Returns the session that a datagram of a negotiation belongs to, whatever its sender; `None` if it is of another version, or none.
pub fn session_of(bytes: &[u8]) -> Option<u64> {
    let is_whole = framing(bytes) == Framing::Whole(bytes.len()) && bytes[2] == VERSION;
    let session = bytes.get(LENGTH_KNOWN..)?.first_chunk().filter(|_| is_whole)?;
    Some(u64::from_be_bytes(*session))
}

impl NegotiationMessage {
    /// Returns the message as bytes. With a key it has a tag.
    pub fn encode(&self, from: Role, key: Option<&Key>) -> Vec<u8> {
        let mut bytes = vec![0; LONGEST];
        let mut writer = Writer::new(&mut bytes);
        writer.put(&MAGIC).u8(VERSION).u8(self.kind()).u16(0);
        writer.u64(self.session).u32(self.round).u32(self.agreed_round).put(&self.nonce).put(&self.echo);
        match &self.content {
            Content::Offer(specification) => write_connection(specification, &mut writer),
            Content::Answer { agreed, specification } => {
                writer.u8(u8::from(*agreed));
                write_connection(specification, &mut writer);
            }
            Content::Confirmation => {}
        }
        let length = writer.length();
        bytes.truncate(length);
        let whole = length + if key.is_some() { TAG } else { 0 };
        bytes[4..6].copy_from_slice(&(whole as u16).to_be_bytes());
        if let Some(key) = key {
            let tag = key.tag(&[&[from as u8], &bytes]);
            bytes.extend(tag);
        }
        bytes
    }

    /// Returns the message in the bytes. The key may depend on the contents of an unauthenticated message, for the key of a
    /// session is derived from both nonces.
    ///
    /// # Errors
    /// When they are no message of this version, or their tag is not that of the key.
    pub fn decode(
        bytes: &[u8],
        from: Role,
        key: impl FnOnce(&Self) -> Option<Key>,
        has_key: bool,
    ) -> Result<Self, MessageError> {
        if bytes.len() < LENGTH_KNOWN || bytes[..2] != MAGIC {
            return Err(MessageError::Foreign);
        }
        if bytes[2] != VERSION {
            return Err(MessageError::Version(bytes[2]));
        }
        let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
        if length != bytes.len() || length > LONGEST {
            return Err(MessageError::Malformed);
        }
        let tagged = bytes.split_last_chunk::<TAG>();
        let (content, tag) = match tagged {
            Some((content, tag)) if has_key => (content, Some(tag)),
            _ => (bytes, None),
        };
        let Some(message) = read(content).filter(|_| has_key == tag.is_some()) else {
            // A message with a tag although there is no key, or without one although there is.
            let other = if has_key { Some(bytes) } else { tagged.map(|(content, _)| content) };
            let is_other = other.is_some_and(|content| read(content).is_some());
            return Err(if is_other { MessageError::Unauthenticated } else { MessageError::Malformed });
        };
        if let Some(tag) = tag {
            let is_authentic = key(&message).is_some_and(|key| key.verifies(&[&[from as u8], content], tag));
            if !is_authentic {
                return Err(MessageError::Unauthenticated);
            }
        }
        Ok(message)
    }

    const fn kind(&self) -> u8 {
        match self.content {
            Content::Offer(_) => OFFER,
            Content::Answer { .. } => ANSWER,
            Content::Confirmation => CONFIRMATION,
        }
    }
}

const OFFER: u8 = 1;
const ANSWER: u8 = 2;
const CONFIRMATION: u8 = 3;
const NOTICE: u8 = 4;

/// The message without its tag.
fn read(bytes: &[u8]) -> Option<NegotiationMessage> {
    let mut reader = Reader::new(bytes.get(3..)?);
    let (kind, _length) = (reader.u8()?, reader.u16()?);
    let (session, round, agreed_round) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let (nonce, echo): (Nonce, Nonce) = (reader.take()?, reader.take()?);
    let content = match kind {
        OFFER => Content::Offer(read_connection(&mut reader)?),
        ANSWER => Content::Answer {
            agreed: match reader.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            specification: read_connection(&mut reader)?,
        },
        CONFIRMATION => Content::Confirmation,
        _ => return None,
    };
    let is_first = kind == OFFER && round == 1;
    let is_possible = round > 0 && agreed_round <= round && is_first == (echo == Nonce::default());
    (is_possible && reader.is_at_end()).then_some(NegotiationMessage {
        session,
        round,
        agreed_round,
        nonce,
        echo,
        content,
    })
}

fn write_connection(connection: &ConnectionSpecification, to: &mut Writer<'_>) {
    let profile =
        connection.profile.and_then(|profile| CapacityProfile::ALL.iter().position(|each| *each == profile));
    to.u8(profile.map_or(0, |at| at as u8 + 1));
    for spec in [&connection.send, &connection.receive] {
        let set = SpecParameter::ALL.into_iter().filter(|parameter| spec.get(*parameter).is_some());
        to.u16(set.collect::<Coerced>().bits()).u16(spec.coerced.bits());
        for value in SpecParameter::ALL.into_iter().filter_map(|parameter| spec.get(parameter)) {
            match value {
                ParameterValue::Number(number) => to.number(number),
                ParameterValue::Count(count) => to.u64(count),
                ParameterValue::Duration(time) => to.duration(time),
                ParameterValue::Flag(flag) => to.u64(u64::from(flag)),
                value => unreachable!("a specification has no {value:?}"),
            };
        }
    }
}

fn read_connection(from: &mut Reader<'_>) -> Option<ConnectionSpecification> {
    let profile = match from.u8()? {
        0 => None,
        number => Some(*CapacityProfile::ALL.get(usize::from(number) - 1)?),
    };
    let (send, receive) = (read_specification(from)?, read_specification(from)?);
    Some(ConnectionSpecification { send, receive, profile })
}

fn read_specification(from: &mut Reader<'_>) -> Option<Specification> {
    let (set, coerced) = (Coerced::from_bits(from.u16()?)?, Coerced::from_bits(from.u16()?)?);
    let mut values = Vec::new();
    for parameter in set.iter() {
        let bits = from.u64()?;
        let value = match parameter.about().kind {
            ParameterKind::Number { .. } => ParameterValue::Number(f64::from_bits(bits)),
            ParameterKind::Count { .. } => ParameterValue::Count(bits),
            ParameterKind::Duration { .. } => ParameterValue::Duration(Duration::from_nanos(bits)),
            ParameterKind::Flag if bits <= 1 => ParameterValue::Flag(bits == 1),
            _ => return None,
        };
        values.push((parameter.name(), value));
    }
    let spec = Specification::from_values(values).ok()?;
    Some(Specification { coerced, ..spec })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_quality::spec::Preset;

    fn connection() -> ConnectionSpecification {
        let [send, receive] = [Preset::Video, Preset::Telemetry].map(Preset::specification);
        ConnectionSpecification { send, receive, profile: Some(CapacityProfile::CapacitySeeking) }
    }

    fn messages() -> [NegotiationMessage; 3] {
        let specification = connection();
        let message = |nonce, content| NegotiationMessage {
            session: 7,
            round: 2,
            agreed_round: 1,
            nonce,
            echo: [9; 16],
            content,
        };
        [
            message([3; 16], Content::Offer(specification.clone())),
            message([4; 16], Content::Answer { agreed: true, specification }),
            message([5; 16], Content::Confirmation),
        ]
    }

    fn decode(bytes: &[u8], key: Option<&Key>) -> Result<NegotiationMessage, MessageError> {
        NegotiationMessage::decode(bytes, Role::Initiator, |_| key.copied(), key.is_some())
    }

    #[test]
    fn messages_are_read_as_written_with_and_without_a_key() {
        let key = Key::new(&[1; 32], b"test").unwrap();
        for message in messages() {
            let plain = message.encode(Role::Initiator, None);
            assert_eq!(decode(&plain, None).as_ref(), Ok(&message));
            assert_eq!(framing(&plain), Framing::Whole(plain.len()));
            let keyed = message.encode(Role::Initiator, Some(&key));
            assert_eq!(decode(&keyed, Some(&key)).as_ref(), Ok(&message));
            assert_eq!(decode(&plain, Some(&key)), Err(MessageError::Unauthenticated), "{message:?}");
            assert_eq!(decode(&keyed, None), Err(MessageError::Unauthenticated), "{message:?}");
            let as_other = NegotiationMessage::decode(&keyed, Role::Responder, |_| Some(key), true);
            assert_eq!(as_other, Err(MessageError::Unauthenticated), "a reflection");
        }
    }

    #[test]
    fn no_changed_byte_passes_a_tag() {
        let key = Key::new(&[1; 32], b"test").unwrap();
        for message in messages() {
            let bytes = message.encode(Role::Initiator, Some(&key));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(decode(&changed, Some(&key)).is_err(), "byte {at}");
                assert!(decode(&bytes[..at], Some(&key)).is_err(), "{at} bytes");
            }
        }
    }

    #[test]
    fn the_longest_message_has_every_parameter() {
        let ms = Duration::from_millis;
        let all = Preset::Video.specification().change().max_gap(ms(9)).reordering(true).build().unwrap();
        let specification = ConnectionSpecification { send: all.clone(), receive: all, profile: None };
        let content = Content::Answer { agreed: false, specification };
        let message = NegotiationMessage {
            session: 1,
            round: 1,
            agreed_round: 0,
            nonce: [0; 16],
            echo: [1; 16],
            content,
        };
        let key = Key::new(&[1; 32], b"test").unwrap();
        assert_eq!(message.encode(Role::Responder, Some(&key)).len(), LONGEST);
    }

    #[test]
    fn invalid_messages_are_refused_with_the_reason() {
        let bytes = messages()[0].encode(Role::Initiator, None);
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            decode(&bytes, None)
        };
        assert_eq!(decode(b"GET / HTTP/1.1", None), Err(MessageError::Foreign));
        assert_eq!(decode(&[], None), Err(MessageError::Foreign));
        assert_eq!(changed(2, 9), Err(MessageError::Version(9)));
        assert_eq!(changed(3, 77), Err(MessageError::Malformed));
        assert_eq!(changed(5, 1), Err(MessageError::Malformed), "another length");
        let round_zero =
            NegotiationMessage { round: 0, ..messages()[2].clone() }.encode(Role::Initiator, None);
        assert_eq!(decode(&round_zero, None), Err(MessageError::Malformed));
        // The first value, min-rate = 40, becomes one that is not a number.
        let mut bad = bytes.clone();
        bad[HEADER + 5..HEADER + 13].copy_from_slice(&f64::NAN.to_bits().to_be_bytes());
        assert_eq!(decode(&bad, None), Err(MessageError::Malformed));
        assert_eq!(decode(&[&bytes[..], &[0]].concat(), None), Err(MessageError::Malformed));
    }

    #[test]
    fn another_version_is_answered_by_a_notice_and_a_notice_by_nothing() {
        let mut offer = messages()[0].encode(Role::Initiator, None);
        assert_eq!(notice(&offer), None, "it is our version");
        offer[2] = 9;
        let said = notice(&offer).unwrap();
        assert_eq!((framing(&said), decode(&said, None)), (Framing::Whole(6), Err(MessageError::Malformed)));
        let theirs = [&said[..2], &[9], &said[3..]].concat();
        assert_eq!((decode(&theirs, None), notice(&theirs)), (Err(MessageError::Version(9)), None));
    }

    #[test]
    fn the_first_bytes_identify_the_protocol() {
        let bytes = messages()[0].encode(Role::Initiator, None);
        for length in 0..bytes.len() {
            assert_eq!(framing(&bytes[..length]), Framing::Part, "{length}");
        }
        assert_eq!(framing(&[&bytes[..], b"data"].concat()), Framing::Whole(bytes.len()));
        assert_eq!((framing(b"G"), framing(&[0xc7, 0x71])), (Framing::Foreign, Framing::Foreign));
        let huge = [0xc7, 0x51, 1, 1, 0xff, 0xff];
        assert_eq!(framing(&huge), Framing::Foreign, "longer than any message");
    }
}
