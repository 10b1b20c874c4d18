//! Messages of AgentX (RFC 2741, sections 5 and 6). No IO.

use async_snmp::{Oid, Value, VarBind};

/// Length of a header, bytes.
pub const HEADER: usize = 20;
/// The longest payload that is accepted, bytes: a master sends requests for some hundred names.
pub const LONGEST: usize = 1 << 20;

const VERSION: u8 = 1;
/// Flag: the message is in network byte order.
const NETWORK_ORDER: u8 = 0x10;
/// Flag: the message has a context of its own.
const HAS_CONTEXT: u8 = 0x08;
/// The longest name, arcs.
const LONGEST_NAME: usize = 128;

/// Types of messages.
mod kind {
    pub const OPEN: u8 = 1;
    pub const CLOSE: u8 = 2;
    pub const REGISTER: u8 = 3;
    pub const GET: u8 = 5;
    pub const GET_NEXT: u8 = 6;
    pub const GET_BULK: u8 = 7;
    pub const TEST_SET: u8 = 8;
    pub const COMMIT_SET: u8 = 9;
    pub const UNDO_SET: u8 = 10;
    pub const CLEANUP_SET: u8 = 11;
    pub const NOTIFY: u8 = 12;
    pub const PING: u8 = 13;
    pub const RESPONSE: u8 = 18;
}

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentxHeader {
    kind: u8,
    flags: u8,
    /// Number of the session.
    pub session: u32,
    /// Number of the transaction.
    pub transaction: u32,
    /// Number of the message.
    pub packet: u32,
    /// Length of the payload, bytes.
    pub length: usize,
}

/// A range of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRange {
    /// Its beginning.
    pub from: Vec<u32>,
    /// True if the beginning is in the range.
    pub is_included: bool,
    /// Its end, which is not in the range; empty without one.
    pub to: Vec<u32>,
}

/// A message of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentxRequest {
    /// The values of these names.
    Get(Vec<NameRange>),
    /// The first values in these ranges.
    GetNext(Vec<NameRange>),
    /// The first value in each of the first ranges, and many values in each of the others.
    GetBulk {
        /// Number of the ranges with one value.
        single: usize,
        /// The most values in each of the others.
        most: usize,
        /// The ranges.
        ranges: Vec<NameRange>,
    },
    /// A step of a change; none is allowed.
    Set {
        /// True for the first step, which decides.
        is_test: bool,
    },
    /// The end of the session.
    Close,
    /// An answer to a message of ours, with its error; 0 without one.
    Response {
        /// The error.
        error: u16,
    },
    /// Anything else.
    Other,
}

/// A message is not of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is not of AgentX, or is too long")]
pub struct MalformedMessage;

impl AgentxHeader {
    /// Parses a header.
    ///
    /// # Errors
    /// When it is of another version, or announces a payload that is too long.
    pub fn parse(bytes: [u8; HEADER]) -> Result<Self, MalformedMessage> {
        let flags = bytes[2];
        let mut reader = Reader { rest: &bytes[4..], is_big: flags & NETWORK_ORDER != 0 };
        let (session, transaction, packet) = (reader.number()?, reader.number()?, reader.number()?);
        let length = reader.number()? as usize;
        if bytes[0] != VERSION || length > LONGEST || !length.is_multiple_of(4) {
            return Err(MalformedMessage);
        }
        Ok(Self { kind: bytes[1], flags, session, transaction, packet, length })
    }
}

/// Reader of a payload.
struct Reader<'p> {
    rest: &'p [u8],
    is_big: bool,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(MalformedMessage)?;
        self.rest = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u32, MalformedMessage> {
        let bytes = self.bytes()?;
        Ok(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn short(&mut self) -> Result<u16, MalformedMessage> {
        let bytes = self.bytes()?;
        Ok(if self.is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// Reads a name, and whether it is part of its range (section 5.1).
    fn name(&mut self) -> Result<(Vec<u32>, bool), MalformedMessage> {
        let [count, prefix, include, _] = self.bytes()?;
        if usize::from(count) > LONGEST_NAME {
            return Err(MalformedMessage);
        }
        let mut arcs = if prefix == 0 { Vec::new() } else { vec![1, 3, 6, 1, u32::from(prefix)] };
        for _ in 0..count {
            arcs.push(self.number()?);
        }
        Ok((arcs, include != 0))
    }

    /// Skips a text (section 5.3).
    fn text(&mut self) -> Result<(), MalformedMessage> {
        let length = self.number()? as usize;
        let padded = length.checked_next_multiple_of(4).ok_or(MalformedMessage)?;
        self.rest = self.rest.get(padded..).ok_or(MalformedMessage)?;
        Ok(())
    }

    fn ranges(&mut self) -> Result<Vec<NameRange>, MalformedMessage> {
        let mut ranges = Vec::new();
        while !self.rest.is_empty() {
            let (from, is_included) = self.name()?;
            let (to, _) = self.name()?;
            ranges.push(NameRange { from, is_included, to });
        }
        Ok(ranges)
    }
}

impl AgentxRequest {
    /// Parses a message.
    ///
    /// # Errors
    /// When the payload ends too early, or has a name that is too long.
    pub fn parse(header: &AgentxHeader, payload: &[u8]) -> Result<Self, MalformedMessage> {
        let mut reader = Reader { rest: payload, is_big: header.flags & NETWORK_ORDER != 0 };
        if header.flags & HAS_CONTEXT != 0 {
            reader.text()?;
        }
        Ok(match header.kind {
            kind::GET => Self::Get(reader.ranges()?),
            kind::GET_NEXT => Self::GetNext(reader.ranges()?),
            kind::GET_BULK => {
                let (single, most) = (reader.short()?.into(), reader.short()?.into());
                Self::GetBulk { single, most, ranges: reader.ranges()? }
            }
            kind::TEST_SET => Self::Set { is_test: true },
            kind::COMMIT_SET | kind::UNDO_SET | kind::CLEANUP_SET => Self::Set { is_test: false },
            kind::CLOSE => Self::Close,
            kind::RESPONSE => {
                let _uptime = reader.number()?;
                Self::Response { error: reader.short()? }
            }
            _ => Self::Other,
        })
    }
}

/// Writer of a message, in network byte order.
#[derive(Debug)]
struct Writer(Vec<u8>);

impl Writer {
    fn new(kind: u8, [session, transaction, packet]: [u32; 3]) -> Self {
        let mut writer = Self(vec![VERSION, kind, NETWORK_ORDER, 0]);
        for number in [session, transaction, packet, 0] {
            writer.number(number);
        }
        writer
    }

    fn number(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    fn name(&mut self, arcs: &[u32]) {
        let arcs = &arcs[..arcs.len().min(LONGEST_NAME)];
        self.0.extend([arcs.len() as u8, 0, 0, 0]);
        for arc in arcs {
            self.number(*arc);
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Writes a name with its value (section 5.4).
    fn value(&mut self, name: &[u32], value: &Value) {
        let kind: u16 = match value {
            Value::Integer(_) => 2,
            Value::OctetString(_) => 4,
            Value::ObjectIdentifier(_) => 6,
            Value::IpAddress(_) => 64,
            Value::Counter32(_) => 65,
            Value::Gauge32(_) => 66,
            Value::TimeTicks(_) => 67,
            Value::Counter64(_) => 70,
            Value::NoSuchObject => 128,
            Value::NoSuchInstance => 129,
            Value::EndOfMibView => 130,
            _ => 5,
        };
        self.0.extend(kind.to_be_bytes());
        self.0.extend([0, 0]);
        self.name(name);
        match value {
            Value::Integer(number) => self.0.extend(number.to_be_bytes()),
            Value::OctetString(bytes) => self.text(bytes),
            Value::ObjectIdentifier(name) => self.name(name.arcs()),
            Value::IpAddress(address) => self.text(address),
            Value::Counter32(number) | Value::Gauge32(number) | Value::TimeTicks(number) => {
                self.number(*number);
            }
            Value::Counter64(number) => self.0.extend(number.to_be_bytes()),
            _ => {}
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() - HEADER) as u32;
        self.0[HEADER - 4..HEADER].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// Returns the message that opens a session. `about` describes the subagent.
pub fn open(packet: u32, name: &[u32], about: &str) -> Vec<u8> {
    let mut writer = Writer::new(kind::OPEN, [0, 0, packet]);
    // The usual time within which we have to answer.
    writer.number(0);
    writer.name(name);
    writer.text(about.as_bytes());
    writer.finish()
}

/// Returns the message that registers all names below `name`.
pub fn register(session: u32, packet: u32, name: &[u32]) -> Vec<u8> {
    /// The usual priority (section 6.2.3).
    const PRIORITY: u8 = 127;
    let mut writer = Writer::new(kind::REGISTER, [session, 0, packet]);
    writer.0.extend([0, PRIORITY, 0, 0]);
    writer.name(name);
    writer.finish()
}

/// Returns the message that checks whether the master is there.
pub fn ping(session: u32, packet: u32) -> Vec<u8> {
    Writer::new(kind::PING, [session, 0, packet]).finish()
}

/// Returns the message that sends a notification (section 6.2.10).
pub fn notify(session: u32, packet: u32, kind: &Oid, objects: &[VarBind]) -> Vec<u8> {
    /// Name of `snmpTrapOID.0`.
    const TRAP: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
    let mut writer = Writer::new(kind::NOTIFY, [session, 0, packet]);
    writer.value(TRAP, &Value::ObjectIdentifier(kind.clone()));
    for object in objects {
        writer.value(object.oid.arcs(), &object.value);
    }
    writer.finish()
}

/// Returns the answer to a request: values, or an error of the value with this number, from 1 on.
pub fn response(of: &AgentxHeader, error: (u16, u16), values: &[(Vec<u32>, Value)]) -> Vec<u8> {
    let mut writer = Writer::new(kind::RESPONSE, [of.session, of.transaction, of.packet]);
    // The master has a clock of its own.
    writer.number(0);
    writer.0.extend(error.0.to_be_bytes());
    writer.0.extend(error.1.to_be_bytes());
    for (name, value) in values {
        writer.value(name, value);
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(message: &[u8]) -> (AgentxHeader, Vec<u8>) {
        let header = AgentxHeader::parse(message[..HEADER].try_into().unwrap()).unwrap();
        assert_eq!(header.length, message.len() - HEADER);
        (header, message[HEADER..].to_vec())
    }

    /// A request for the values behind a name, in little-endian order, as a master on this machine sends it.
    fn get_next() -> Vec<u8> {
        let mut message = vec![1, kind::GET_NEXT, 0, 0];
        for number in [7_u32, 8, 9, 32] {
            message.extend(number.to_le_bytes());
        }
        // 1.3.6.1.4.5, in the short form, and the end 1.3.6.1.4.9.
        message.extend([1, 4, 1, 0]);
        message.extend(5_u32.to_le_bytes());
        message.extend([5, 0, 0, 0]);
        for arc in [1_u32, 3, 6, 1, 9] {
            message.extend(arc.to_le_bytes());
        }
        message
    }

    #[test]
    fn a_request_in_the_order_of_the_machine_is_read() {
        let (header, payload) = split(&get_next());
        assert_eq!((header.session, header.transaction, header.packet), (7, 8, 9));
        let range = NameRange { from: vec![1, 3, 6, 1, 4, 5], is_included: true, to: vec![1, 3, 6, 1, 9] };
        assert_eq!(AgentxRequest::parse(&header, &payload), Ok(AgentxRequest::GetNext(vec![range])));
    }

    #[test]
    fn an_answer_has_the_numbers_of_its_request() {
        let (header, _) = split(&get_next());
        let values =
            [(vec![1, 2], Value::OctetString(b"five!".to_vec().into())), (vec![1, 3], Value::Counter64(7))];
        let (own, payload) = split(&response(&header, (0, 0), &values));
        assert_eq!((own.session, own.transaction, own.packet), (7, 8, 9));
        assert_eq!(AgentxRequest::parse(&own, &payload), Ok(AgentxRequest::Response { error: 0 }));
        // Text is padded to a multiple of four.
        assert_eq!(payload.len(), 8 + (4 + 12 + 4 + 8) + (4 + 12 + 8));
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..20) {
            let mut message = get_next();
            message[1] = kind;
            message.truncate(HEADER);
            let header = AgentxHeader::parse(message[..HEADER].try_into().unwrap()).unwrap();
            let _read = AgentxRequest::parse(&header, &bytes);
            if let Ok(header) = bytes.get(..HEADER).map_or(Err(MalformedMessage), |head| AgentxHeader::parse(head.try_into().unwrap())) {
                let _read = AgentxRequest::parse(&header, &bytes[HEADER..]);
            }
        }
    }
}
