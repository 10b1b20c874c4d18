//! The headers of our transports' datagrams on a real network; all numbers are big-endian.
//!
//! | header | bytes | fields |
//! | --- | --- | --- |
//! | data | 32 | magic 2, kind 1, DSCP 1, flow 4, token 8, sequence 8, when it was sent 8 |
//! | TFRC data, kind 2 | 44 | the same, round-trip time 8, segment size 3, flags 1 |
//! | TFRC feedback, kind 3 | 48 | magic 2, kind 1, 0, flow 4, token 8, echo 8, delay 8, rate received 8, loss event rate 8 |
//! | NADA data, kind 4 | 48 | the same as data, round-trip time 8, interval between reports in ms 4, window of measurements in ms 4 |
//! | NADA report, kind 5 | 88 | magic 2, kind 1, 0, flow 4, token 8, echo 8, delay 8, queuing delay 8, largest queuing delay 8, lost 8, marked 8, rate received in bit/s 8, loss interval 8, packets since a loss 8 |
//!
//! Kind 1 is UDP, which adds no fields. A data header is part of the payload size that the application sets, so rates
//! and sizes are exact. Times are in nanoseconds of the receiver's clock.
//!
//! A transport over datagrams implements [`DatagramTransport`] and is one of the datagram transports in `list.rs`. A macro
//! generates from that list [`Extension`], the reading and writing of [`Data`] and [`Reply`], and the methods of [`Sender`]
//! and [`Receiver`] that take and return them.
//!
//! The token is a random number that only the two ends of a session know. Without it no host can add packets to a flow, or
//! change a sender's rate with reports. It is not encrypted: a host on the path can read it.
//!
//! Nothing that arrives is trusted. A reader returns `None` if the magic number, the kind or the length is not one of
//! these, or a value is out of its range. An end refuses packets of another transport. Unknown flags are ignored.

pub use cutline_wire::{LONGEST_TIME, Reader, Writer};

use crate::endpoint::{
    DataHeader, Receiver, ReceivingEnd, ReplyHeader, Sender, SendingEnd, Transport, TransportParams,
};
use cutline_units::{Dscp, Instant};
use std::fmt::Debug;
use std::sync::Arc;

/// The length of the header with which all data datagrams begin, bytes.
pub const DATA_HEADER: usize = 32;
/// The length of the header with which all replies begin, bytes.
const REPLY_HEADER: usize = 16;
const MAGIC: [u8; 2] = [0xc7, 0x71];

/// A transport whose packets go over a real network as UDP datagrams.
pub trait DatagramTransport: Transport {
    /// The kind of its data datagrams on the wire, different from all other kinds.
    const DATA_KIND: u8;
    /// The kind of its replies on the wire, different from all other kinds; `None` if it has no replies.
    const REPLY_KIND: Option<u8>;
    /// The length of its data header beyond [`DATA_HEADER`], bytes.
    const EXTENSION_BYTES: usize;
    /// The length of a reply after the magic number, the kind, the flow and the token, bytes.
    const REPLY_BYTES: usize;

    /// The fields of its data header that other data headers do not have: properties of the packet, and the sender's
    /// parameters that the receiver needs.
    type Extension: Copy + Debug + PartialEq;

    /// Returns the largest payload of a datagram, bytes.
    fn largest_datagram(params: &Self::Params) -> u32;

    /// Adapts the parameters to an application whose messages have this size in bytes.
    fn set_message_size(_params: &mut Self::Params, _bytes: u32) {}

    /// Adapts the parameters to a process, whose timers may be late.
    fn tolerate_lateness(_params: &mut Self::Params) {}

    /// Returns the sequence number of a packet and the length of its payload, bytes.
    fn packet(data: &Self::Data) -> (u64, u32);

    /// Returns the extension of the header of a packet.
    fn extension(sender: &Self::Sender, data: &Self::Data) -> Self::Extension;

    /// Returns the receiver's parameters, as far as the sender has announced them.
    fn receiver_params(extension: &Self::Extension) -> Self::Params;

    /// Creates a packet from a data header and the length of its payload, bytes.
    fn data(seq: u64, sent_at: Instant, len: u32, extension: &Self::Extension) -> Self::Data;

    /// Writes an extension: [`DatagramTransport::EXTENSION_BYTES`].
    fn write_extension(extension: &Self::Extension, to: &mut Writer<'_>);

    /// Reads an extension. Returns `None` if it has an impossible value.
    fn read_extension(from: &mut Reader<'_>) -> Option<Self::Extension>;

    /// Returns the time stamp of a data packet that a reply echoes.
    fn echo(reply: &mut Self::Reply) -> &mut Instant;

    /// Writes a reply: [`DatagramTransport::REPLY_BYTES`].
    fn write_reply(reply: &Self::Reply, to: &mut Writer<'_>);

    /// Reads a reply. Returns `None` if it has an impossible value.
    fn read_reply(from: &mut Reader<'_>) -> Option<Self::Reply>;

    /// Writes the fields of a packet in a capture of a simulation beyond its sequence number and its sending time. The default
    /// writes nothing.
    fn write_captured(_data: &Self::Data, _to: &mut Vec<u8>) {}
}

/// The header of a data datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    /// The flow's number.
    pub flow: u32,
    /// The DSCP that the sender set.
    pub dscp: Dscp,
    /// The session's token.
    pub token: u64,
    /// The sequence number: 0, 1, 2, ...
    pub seq: u64,
    /// Time of sending, on the receiver's clock.
    pub sent_at: Instant,
    /// The extension of its transport.
    pub extension: Extension,
}

/// A datagram from a receiver to its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// The flow's number.
    pub flow: u32,
    /// The session's token.
    pub token: u64,
    /// The receiver's report.
    pub report: Report,
}

/// A packet that may leave as a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketDeparture {
    /// The sequence number.
    pub seq: u64,
    /// Its payload, bytes.
    pub len: u32,
    /// The extension of its header.
    pub extension: Extension,
}

/// Use of datagrams by a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFormat {
    /// The length of the header of a data datagram, bytes. No datagram is shorter.
    pub header: usize,
    /// The largest payload of a datagram, header included, bytes.
    pub largest: u32,
    /// True if the receiver sends replies.
    pub replies: bool,
}

impl Data {
    /// Returns the length of the header, bytes.
    pub const fn header_length(&self) -> usize {
        DATA_HEADER + self.extension.length()
    }

    /// Writes the header into the first [`Data::header_length`] bytes of the result.
    pub fn write(&self) -> [u8; LONGEST_DATA_HEADER] {
        let mut bytes = [0; LONGEST_DATA_HEADER];
        let mut writer = Writer::new(&mut bytes);
        writer.put(&MAGIC).u8(self.extension.kind()).u8(self.dscp.get());
        writer.u32(self.flow).u64(self.token).u64(self.seq).instant(self.sent_at);
        self.extension.write(&mut writer);
        debug_assert_eq!(writer.length(), self.header_length(), "a header has the length of its transport");
        bytes
    }

    /// Reads the header of a datagram and ignores the bytes after it. Returns `None` if it is not a data header.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take()? != MAGIC {
            return None;
        }
        let (kind, dscp) = (reader.u8()?, Dscp::new(reader.u8()?)?);
        let (flow, token) = (reader.u32()?, reader.u64()?);
        let (seq, sent_at) = (reader.u64()?, reader.instant()?);
        Some(Self { flow, dscp, token, seq, sent_at, extension: Extension::read(kind, &mut reader)? })
    }
}

impl Reply {
    /// Returns the length of the datagram, bytes.
    pub const fn length(&self) -> usize {
        REPLY_HEADER + self.report.length()
    }

    /// Writes the datagram into the first [`Reply::length`] bytes of the result.
    pub fn write(&self) -> [u8; LONGEST_REPLY] {
        let mut bytes = [0; LONGEST_REPLY];
        let mut writer = Writer::new(&mut bytes);
        writer.put(&MAGIC).u8(self.report.kind()).u8(0).u32(self.flow).u64(self.token);
        self.report.write(&mut writer);
        debug_assert_eq!(writer.length(), self.length(), "a reply has the length of its transport");
        bytes
    }

    /// Returns the token in the first bytes of a reply; `None` if they do not begin as a reply does.
    pub fn token_of(head: &[u8]) -> Option<u64> {
        let mut reader = Reader::new(head);
        let (magic, _kind, zero, _flow) = (reader.take()?, reader.u8()?, reader.u8()?, reader.u32()?);
        let token = reader.u64()?;
        (magic == MAGIC && zero == 0).then_some(token)
    }

    /// Reads a reply. Returns `None` if it is not a reply, or has another length than its kind.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take()? != MAGIC {
            return None;
        }
        let (kind, zero, flow) = (reader.u8()?, reader.u8()?, reader.u32()?);
        let token = reader.u64()?;
        let report = Report::read(kind, &mut reader)?;
        (zero == 0 && reader.is_at_end()).then_some(Self { flow, token, report })
    }
}

/// Returns the largest of some lengths.
const fn longest(lengths: &[usize]) -> usize {
    let (mut longest, mut i) = (0, 0);
    while i < lengths.len() {
        if lengths[i] > longest {
            longest = lengths[i];
        }
        i += 1;
    }
    longest
}

/// Writes the enums of all datagram transports and their matches.
macro_rules! datagram_transports {
    ({ $($first:tt)* } { $($(#[$doc:meta])* $name:ident($transport:ty),)+ } { $($simulated:tt)* }) => {
        /// The longest data header, bytes.
        pub const LONGEST_DATA_HEADER: usize = DATA_HEADER + longest(&[$(<$transport>::EXTENSION_BYTES),+]);
        /// The longest reply, bytes.
        pub const LONGEST_REPLY: usize = REPLY_HEADER + longest(&[$(<$transport>::REPLY_BYTES),+]);

        /// The fields of a data header that depend on its transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Extension { $($(#[$doc])* $name(<$transport as DatagramTransport>::Extension)),+ }

        /// A report of the receiving end of a transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Report { $($(#[$doc])* $name(<$transport as Transport>::Reply)),+ }

        impl Extension {
            /// Creates the receiving end of a flow whose sender has sent this.
            pub fn receiver(&self) -> Receiver {
                match self {
                    $(Self::$name(extension) => {
                        let params = Arc::new(<$transport>::receiver_params(extension));
                        Receiver::$name(<$transport>::receiver(&params))
                    })+
                }
            }

            const fn kind(&self) -> u8 {
                match self { $(Self::$name(_) => <$transport>::DATA_KIND),+ }
            }

            const fn length(&self) -> usize {
                match self { $(Self::$name(_) => <$transport>::EXTENSION_BYTES),+ }
            }

            fn write(&self, to: &mut Writer<'_>) {
                match self { $(Self::$name(extension) => <$transport>::write_extension(extension, to)),+ }
            }

            fn read(kind: u8, from: &mut Reader<'_>) -> Option<Self> {
                match kind {
                    $(<$transport>::DATA_KIND => <$transport>::read_extension(from).map(Self::$name),)+
                    _ => None,
                }
            }
        }

        impl Report {
            /// Returns the time stamp of a data packet that the report echoes, on the receiver's clock.
            pub fn echo(&mut self) -> &mut Instant {
                match self { $(Self::$name(reply) => <$transport>::echo(reply)),+ }
            }

            const fn kind(&self) -> u8 {
                let kind = match self { $(Self::$name(_) => <$transport>::REPLY_KIND),+ };
                kind.expect("a transport whose receivers report has a kind of reply")
            }

            const fn length(&self) -> usize {
                match self { $(Self::$name(_) => <$transport>::REPLY_BYTES),+ }
            }

            fn write(&self, to: &mut Writer<'_>) {
                match self { $(Self::$name(reply) => <$transport>::write_reply(reply, to)),+ }
            }

            fn read(kind: u8, from: &mut Reader<'_>) -> Option<Self> {
                $(if <$transport>::REPLY_KIND == Some(kind) {
                    return <$transport>::read_reply(from).map(Self::$name);
                })+
                None
            }
        }

        impl TransportParams {
            /// The names of the transports that have a wire format here, in their order.
            pub const DATAGRAM_NAMES: &'static [&'static str] = &[$(<$transport>::NAME),+];

            /// Returns the transport's use of datagrams; `None` if it has no wire format here.
            pub fn datagram_format(&self) -> Option<DatagramFormat> {
                match self {
                    $(Self::$name(params) => Some(DatagramFormat {
                        header: DATA_HEADER + <$transport>::EXTENSION_BYTES,
                        largest: <$transport>::largest_datagram(params),
                        replies: <$transport>::REPLY_KIND.is_some(),
                    }),)+
                    _ => None,
                }
            }

            /// Returns the parameters for an application whose messages have this size in bytes.
            pub fn with_message_size(mut self, bytes: u32) -> Self {
                match &mut self {
                    $(Self::$name(params) => <$transport>::set_message_size(Arc::make_mut(params), bytes),)+
                    _ => {}
                }
                self
            }

            /// Returns the parameters for a process, whose timers may be late.
            pub fn tolerating_lateness(mut self) -> Self {
                match &mut self {
                    $(Self::$name(params) => <$transport>::tolerate_lateness(Arc::make_mut(params)),)+
                    _ => {}
                }
                self
            }
        }

        impl Sender {
            /// Returns the next packet that may leave now as a datagram; `None` also if the transport has no wire format here.
            pub fn transmit_datagram(&mut self, now: Instant) -> Option<PacketDeparture> {
                match self {
                    $(Self::$name(sender) => {
                        let data = SendingEnd::transmit(sender, now)?.header;
                        let (seq, len) = <$transport>::packet(&data);
                        let extension = Extension::$name(<$transport>::extension(sender, &data));
                        Some(PacketDeparture { seq, len, extension })
                    })+
                    _ => None,
                }
            }

            /// Handles a report. Returns false, and does nothing, if it belongs to another transport.
            pub fn on_report(&mut self, now: Instant, report: &Report) -> bool {
                match (self, report) {
                    $((Self::$name(sender), Report::$name(reply)) => SendingEnd::on_reply(sender, now, reply),)+
                    _ => return false,
                }
                true
            }
        }

        impl Receiver {
            /// Returns whether a data datagram belongs to this receiver's transport.
            pub const fn expects(&self, extension: &Extension) -> bool {
                matches!((self, extension), $((Self::$name(_), Extension::$name(_)))|+)
            }

            /// Handles a data datagram with a payload of `len` bytes, which a router marked if `marked`. Returns the report
            /// that leaves at once, if any. Does nothing if the datagram belongs to another transport.
            pub fn on_datagram(&mut self, now: Instant, data: &Data, len: u32, marked: bool) -> Option<Report> {
                match (self, &data.extension) {
                    $((Self::$name(receiver), Extension::$name(extension)) => {
                        let data = <$transport>::data(data.seq, data.sent_at, len, extension);
                        let reply = ReceivingEnd::on_data(receiver, now, &data, marked)?;
                        Some(Report::$name(reply.header))
                    })+
                    _ => None,
                }
            }

            /// Returns the report if it is due.
            pub fn report_due(&mut self, now: Instant) -> Option<Report> {
                match self {
                    $(Self::$name(receiver) => {
                        ReceivingEnd::on_deadline(receiver, now).map(|reply| Report::$name(reply.header))
                    })+
                    _ => None,
                }
            }
        }

        impl DataHeader {
            /// Returns the kind of the transport's data datagrams; `None` if it has no wire format here.
            pub const fn datagram_kind(&self) -> Option<u8> {
                match self {
                    $(Self::$name(_) => Some(<$transport>::DATA_KIND),)+
                    _ => None,
                }
            }

            /// Writes the fields of the header in a capture of a simulation: the sequence number, the sending time, and
            /// [`DatagramTransport::write_captured`]. Writes nothing if the transport has no wire format here.
            pub fn write_captured(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$name(data) => {
                        to.extend(<$transport>::packet(data).0.to_be_bytes());
                        to.extend(<$transport>::sent_at(data).as_nanos().to_be_bytes());
                        <$transport>::write_captured(data, to);
                    })+
                    _ => {}
                }
            }
        }

        impl ReplyHeader {
            /// Returns the kinds of the transport's data datagrams and of its replies; `None` if it has no wire format here,
            /// or no replies.
            pub fn datagram_kinds(&self) -> Option<(u8, u8)> {
                match self {
                    $(Self::$name(_) => <$transport>::REPLY_KIND.map(|reply| (<$transport>::DATA_KIND, reply)),)+
                    _ => None,
                }
            }

            /// Writes the fields of the header in a capture of a simulation: its fields as on the wire. Writes nothing if the
            /// transport has no wire format here.
            pub fn write_captured(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$name(reply) => {
                        let mut bytes = [0; <$transport>::REPLY_BYTES];
                        <$transport>::write_reply(reply, &mut Writer::new(&mut bytes));
                        to.extend(bytes);
                    })+
                    _ => {}
                }
            }
        }

        /// The kinds of all data datagrams and replies.
        #[cfg(test)]
        const KINDS: &[Option<u8>] = &[$(Some(<$transport>::DATA_KIND), <$transport>::REPLY_KIND),+];
    };
}

with_transports!(datagram_transports);

#[cfg(test)]
mod tests;
