//! The headers of our transports' datagrams on a real network; all numbers are big-endian.
//!
//! | header | bytes | fields |
//! | --- | --- | --- |
//! | data | 24 | magic 2, kind 1, DSCP 1, flow 4, sequence 8, when it was sent 8 |
//! | TFRC data, kind 2 | 36 | the same, round-trip time 8, segment size 3, flags 1 |
//! | TFRC feedback, kind 3 | 40 | magic 2, kind 1, 0, flow 4, echo 8, delay 8, rate received 8, loss event rate 8 |
//!
//! Data of kind 1 are UDP's, which adds nothing. A data header is part of the payload that an application asked for, so
//! rates and sizes are exact. Times are nanoseconds of the receiver's clock.
//!
//! A transport over datagrams implements [`DatagramTransport`] and stands among the datagram transports in `list.rs`. From
//! that list come [`Extension`], the reading and writing of [`Data`] and [`Reply`], and the
//! methods of [`Sender`] and [`Receiver`] that take and return them.
//!
//! Nothing that arrives is trusted. A reader returns `None` where a magic number, a kind or a length is not one of these,
//! or a value is out of its range; an end refuses what another transport has sent. Flags without a meaning are ignored.

mod bytes;

pub use bytes::{LONGEST_TIME, Reader, Writer};

use crate::endpoint::{Receiver, ReceivingEnd, Sender, SendingEnd, Transport, TransportParams};
use cutline_units::{Dscp, Instant};
use std::fmt::Debug;
use std::sync::Arc;

/// The header that all data datagrams begin with, bytes.
pub const DATA_HEADER: usize = 24;
/// What all replies begin with, bytes.
const REPLY_HEADER: usize = 8;
const MAGIC: [u8; 2] = [0xc7, 0x71];

/// A transport whose packets go over a real network as UDP datagrams.
pub trait DatagramTransport: Transport {
    /// The number of its data datagrams on the wire, different from all other kinds.
    const DATA_KIND: u8;
    /// The number of its replies, different from all other kinds; `None` where nothing goes back.
    const REPLY_KIND: Option<u8>;
    /// What its data header has beyond [`DATA_HEADER`], bytes.
    const EXTENSION_BYTES: usize;
    /// What a reply has after the magic number, the kind and the flow, bytes.
    const REPLY_BYTES: usize;

    /// What a data header says beyond the fields that all have: of the packet, and of the sender's parameters where the
    /// receiver needs them.
    type Extension: Copy + Debug + PartialEq;

    /// The largest payload of a datagram, bytes.
    fn largest_datagram(params: &Self::Params) -> u32;

    /// Adapts the parameters to an application whose messages have this size, bytes.
    fn set_message_size(_params: &mut Self::Params, _bytes: u32) {}

    /// Adapts the parameters to a process, which may wake up later than it asked to.
    fn tolerate_lateness(_params: &mut Self::Params) {}

    /// The sequence number and the payload, in bytes, of a packet.
    fn packet(data: &Self::Data) -> (u64, u32);

    /// What the header of a sender's packet says beyond the fields that all have.
    fn extension(sender: &Self::Sender, data: &Self::Data) -> Self::Extension;

    /// The parameters of the receiver, as far as the sender has announced them.
    fn receiver_params(extension: &Self::Extension) -> Self::Params;

    /// The packet of a data header and a payload of `len` bytes.
    fn data(seq: u64, sent_at: Instant, len: u32, extension: &Self::Extension) -> Self::Data;

    /// Writes [`DatagramTransport::EXTENSION_BYTES`].
    fn write_extension(extension: &Self::Extension, to: &mut Writer<'_>);

    /// Reads an extension; `None` where it has an impossible value.
    fn read_extension(from: &mut Reader<'_>) -> Option<Self::Extension>;

    /// The time stamp of a data packet that a reply returns.
    fn echo(reply: &mut Self::Reply) -> &mut Instant;

    /// Writes [`DatagramTransport::REPLY_BYTES`].
    fn write_reply(reply: &Self::Reply, to: &mut Writer<'_>);

    /// Reads a reply; `None` where it has an impossible value.
    fn read_reply(from: &mut Reader<'_>) -> Option<Self::Reply>;
}

/// The header of a data datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    /// The flow's number.
    pub flow: u32,
    /// The code point that the sender gave it.
    pub dscp: Dscp,
    /// Its place in the flow: 0, 1, 2, ...
    pub seq: u64,
    /// When it was sent, on the receiver's clock.
    pub sent_at: Instant,
    /// What its transport adds.
    pub extension: Extension,
}

/// A datagram that goes back to a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// The flow's number.
    pub flow: u32,
    /// What the receiver reports.
    pub report: Report,
}

/// A packet that may leave as a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// Its place in the flow.
    pub seq: u64,
    /// Its payload, bytes.
    pub len: u32,
    /// What its transport adds to the header.
    pub extension: Extension,
}

/// How a transport uses datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramFormat {
    /// The header of a data datagram, bytes: no datagram is shorter.
    pub header: usize,
    /// The largest payload of a datagram, header included, bytes.
    pub largest: u32,
    /// Whether something goes back to the sender.
    pub replies: bool,
}

impl Data {
    /// The length of the header, bytes.
    pub const fn header_length(&self) -> usize {
        DATA_HEADER + self.extension.length()
    }

    /// The header, of which the first [`Data::header_length`] bytes are used.
    pub fn write(&self) -> [u8; LONGEST_DATA_HEADER] {
        let mut bytes = [0; LONGEST_DATA_HEADER];
        let mut writer = Writer::new(&mut bytes);
        writer.put(&MAGIC).u8(self.extension.kind()).u8(self.dscp.get());
        writer.u32(self.flow).u64(self.seq).instant(self.sent_at);
        self.extension.write(&mut writer);
        debug_assert_eq!(
            writer.length(),
            self.header_length(),
            "a header has the length that its transport says"
        );
        bytes
    }

    /// Reads the header of a datagram; `None` if it is none of ours. What follows the header is not looked at.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take()? != MAGIC {
            return None;
        }
        let (kind, dscp) = (reader.u8()?, Dscp::new(reader.u8()?)?);
        let (flow, seq, sent_at) = (reader.u32()?, reader.u64()?, reader.instant()?);
        Some(Self { flow, dscp, seq, sent_at, extension: Extension::read(kind, &mut reader)? })
    }
}

impl Reply {
    /// The length of the datagram, bytes.
    pub const fn length(&self) -> usize {
        REPLY_HEADER + self.report.length()
    }

    /// The datagram, of which the first [`Reply::length`] bytes are used.
    pub fn write(&self) -> [u8; LONGEST_REPLY] {
        let mut bytes = [0; LONGEST_REPLY];
        let mut writer = Writer::new(&mut bytes);
        writer.put(&MAGIC).u8(self.report.kind()).u8(0).u32(self.flow);
        self.report.write(&mut writer);
        debug_assert_eq!(writer.length(), self.length(), "a reply has the length that its transport says");
        bytes
    }

    /// Reads a reply; `None` if it is none of ours, or of another length than its kind has.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take()? != MAGIC {
            return None;
        }
        let (kind, zero, flow) = (reader.u8()?, reader.u8()?, reader.u32()?);
        let report = Report::read(kind, &mut reader)?;
        (zero == 0 && reader.is_at_end()).then_some(Self { flow, report })
    }
}

/// The largest of some lengths.
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
    ({ $($others:tt)* } { $($(#[$doc:meta])* $name:ident($transport:ty),)+ }) => {
        /// The longest data header, bytes.
        pub const LONGEST_DATA_HEADER: usize = DATA_HEADER + longest(&[$(<$transport>::EXTENSION_BYTES),+]);
        /// The longest reply, bytes.
        pub const LONGEST_REPLY: usize = REPLY_HEADER + longest(&[$(<$transport>::REPLY_BYTES),+]);

        /// What the data header of a transport says beyond the fields that all have.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Extension { $($(#[$doc])* $name(<$transport as DatagramTransport>::Extension)),+ }

        /// What the receiving end of a transport reports.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Report { $($(#[$doc])* $name(<$transport as Transport>::Reply)),+ }

        impl Extension {
            /// The receiving end of a flow whose sender says this.
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
            /// The time stamp of a data packet that the report returns, on the receiver's clock.
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
            /// How the transport uses datagrams; `None` for a transport that has no wire format here.
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

            /// The same for an application whose messages have this size, bytes.
            pub fn with_message_size(mut self, bytes: u32) -> Self {
                match &mut self {
                    $(Self::$name(params) => <$transport>::set_message_size(Arc::make_mut(params), bytes),)+
                    _ => {}
                }
                self
            }

            /// The same for a process, which may wake up later than it asked to.
            pub fn tolerating_lateness(mut self) -> Self {
                match &mut self {
                    $(Self::$name(params) => <$transport>::tolerate_lateness(Arc::make_mut(params)),)+
                    _ => {}
                }
                self
            }
        }

        impl Sender {
            /// The next packet that may leave now as a datagram; `None`, too, for a transport that has no wire format here.
            pub fn transmit_datagram(&mut self, now: Instant) -> Option<Departure> {
                match self {
                    $(Self::$name(sender) => {
                        let data = SendingEnd::transmit(sender, now)?.header;
                        let (seq, len) = <$transport>::packet(&data);
                        let extension = Extension::$name(<$transport>::extension(sender, &data));
                        Some(Departure { seq, len, extension })
                    })+
                    _ => None,
                }
            }

            /// A report arrives. False, and nothing happens, if it is another transport's.
            pub fn on_report(&mut self, now: Instant, report: &Report) -> bool {
                match (self, report) {
                    $((Self::$name(sender), Report::$name(reply)) => SendingEnd::on_reply(sender, now, reply),)+
                    _ => return false,
                }
                true
            }
        }

        impl Receiver {
            /// Whether a data datagram is of this receiver's transport.
            pub const fn expects(&self, extension: &Extension) -> bool {
                matches!((self, extension), $((Self::$name(_), Extension::$name(_)))|+)
            }

            /// A data datagram with a payload of `len` bytes arrives, marked by a router if `marked`. What goes back at
            /// once, if anything does. Nothing happens if it is another transport's.
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

            /// The deadline has come: the report that is due.
            pub fn report_due(&mut self, now: Instant) -> Option<Report> {
                match self {
                    $(Self::$name(receiver) => {
                        ReceivingEnd::on_deadline(receiver, now).map(|reply| Report::$name(reply.header))
                    })+
                    _ => None,
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
