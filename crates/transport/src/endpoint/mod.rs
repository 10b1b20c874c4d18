//! Any transport behind one face: a [`Sender`] and a [`Receiver`] that the simulator, the traffic generator and the
//! `QoS` socket drive alike.
//!
//! A transport is a module that implements [`Transport`] for its type, and a line in `list.rs`. Over a real network it also
//! implements [`DatagramTransport`](crate::wire::DatagramTransport). A macro makes an enum of all senders, of all receivers, of all parameters and of all headers; dispatch is a
//! `match`, and a packet costs no allocation.
//!
//! A packet's header travels as a [`PackedHeader`] of 24 bytes where it fits, and as a [`WideHeader`] beside the packet
//! where it does not: see [`Transport::pack_data`].

mod header;

pub use header::{Header, PackedHeader, WideHeader};

use crate::app::Write;
use cutline_params::{Parameter, ParameterError, Parameters, Value};
use cutline_units::{Duration, Ecn, Instant};
use std::sync::Arc;

/// Whose defaults hold for what is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// Those of the RFCs.
    #[default]
    Rfc,
    /// Those of ns-2.35, which the TSQ paper was measured with.
    Ns2,
}

/// A packet on its way out of an end: its header, and what the network needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outgoing<H> {
    /// The transport's header.
    pub header: H,
    /// On the wire, headers included, bytes.
    pub size: u32,
    /// What it says of ECN.
    pub ecn: Ecn,
}

/// What a transport counted at its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounts {
    /// Packets sent again.
    pub retransmissions: u64,
    /// Timeouts: of retransmission for TCP, of feedback for TFRC.
    pub timeouts: u64,
    /// Application bytes that found no room in the send buffer.
    pub refused_bytes: u64,
}

/// A transport: its parameters, its two ends, and the headers that go between them.
pub trait Transport: Sized + 'static {
    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// The name as people write it.
    const TITLE: &'static str;
    /// The RFCs.
    const SOURCE: &'static str;
    /// Whether every byte arrives, in order, however often it is sent.
    const RELIABLE: bool;
    /// Whether the sender adapts its rate, so that an endless supply is sent at some rate.
    const ADAPTS: bool;

    /// What can be set.
    type Params: Parameters + Clone;
    /// The header of a data packet.
    type Data: Copy;
    /// The header of what goes back: an acknowledgement, a report.
    type Reply: Copy;
    /// The sending end.
    type Sender: SendingEnd<Data = Self::Data, Reply = Self::Reply>;
    /// The receiving end.
    type Receiver: ReceivingEnd<Data = Self::Data, Reply = Self::Reply>;

    /// The parameters that hold where nothing is set.
    fn defaults(_defaults: Defaults) -> Self::Params {
        Self::Params::default()
    }

    /// What can be set besides because of what these values choose, such as the parameters of a registered congestion
    /// control.
    fn chosen(_values: &[(&str, Value)]) -> Vec<&'static Parameter> {
        Vec::new()
    }

    /// These parameters, changed by `values`.
    ///
    /// # Errors
    /// When a name is unknown, a value is not allowed, or values do not go together.
    fn with_values(params: Self::Params, values: Vec<(&str, Value)>) -> Result<Self::Params, ParameterError> {
        params.with_values(values)
    }

    /// Sets what data packets say of ECN. A transport that answers no marks ignores it.
    fn set_ecn(_params: &mut Self::Params, _ecn: Ecn) {}

    /// What data packets say of ECN.
    fn ecn(_params: &Self::Params) -> Ecn {
        Ecn::NotEct
    }

    /// The largest payload of a data packet, bytes.
    fn largest_payload(params: &Self::Params) -> u32;

    /// What a data packet has on the wire beside its payload, bytes.
    fn header_size(params: &Self::Params) -> u32;

    /// The size on the wire of what goes back, bytes.
    fn reply_size(params: &Self::Params) -> u32 {
        Self::header_size(params)
    }

    /// For a transport that sends each message in one packet: the parameter that says how large one may be, and its value
    /// in bytes. `None` for a transport that splits messages.
    fn largest_message(_params: &Self::Params) -> Option<(&'static str, u32)> {
        None
    }

    /// A sender that begins at `now`. The parameters must be valid.
    fn sender(params: &Arc<Self::Params>, now: Instant) -> Self::Sender;

    /// The receiver of such a sender's packets.
    fn receiver(params: &Arc<Self::Params>) -> Self::Receiver;

    /// When a data packet left its sender.
    fn sent_at(data: &Self::Data) -> Instant;

    /// A data header in 24 bytes; [`PackedHeader::WIDE`] where it does not fit.
    #[inline]
    fn pack_data(_data: &Self::Data) -> PackedHeader {
        PackedHeader::WIDE
    }

    /// The data header that [`Transport::pack_data`] packed.
    #[inline]
    fn unpack_data(_packed: PackedHeader) -> Self::Data {
        unreachable!("{} packs no data headers", Self::NAME)
    }

    /// A reply's header in 24 bytes; [`PackedHeader::WIDE`] where it does not fit.
    #[inline]
    fn pack_reply(_reply: &Self::Reply) -> PackedHeader {
        PackedHeader::WIDE
    }

    /// The reply's header that [`Transport::pack_reply`] packed.
    #[inline]
    fn unpack_reply(_packed: PackedHeader) -> Self::Reply {
        unreachable!("{} packs no replies' headers", Self::NAME)
    }
}

/// The sending end of a transport.
///
/// The caller asks [`SendingEnd::transmit`] until it answers `None` after each call that may have made something ready,
/// and calls [`SendingEnd::on_deadline`] when [`SendingEnd::deadline`] has come. An early call does no harm.
pub trait SendingEnd {
    /// The header of a data packet.
    type Data;
    /// The header of what comes back.
    type Reply;

    /// Takes what the application writes. `false` when it found no room; the sender counts it as refused.
    fn write(&mut self, write: Write) -> bool;

    /// The application stops: what was written is still sent, an endless supply ends.
    fn end_supply(&mut self);

    /// An acknowledgement or a report arrives.
    fn on_reply(&mut self, now: Instant, reply: &Self::Reply);

    /// The next packet that may leave now.
    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Self::Data>>;

    /// When [`SendingEnd::on_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    fn deadline(&self) -> Instant;

    /// The deadline has come.
    fn on_deadline(&mut self, now: Instant);

    /// What was counted so far.
    fn counts(&self) -> TransportCounts;

    /// The average round-trip time, where the sender measures one and has done so.
    fn round_trip_time(&self) -> Option<Duration> {
        None
    }
}

/// The receiving end of a transport.
pub trait ReceivingEnd {
    /// The header of a data packet.
    type Data;
    /// The header of what goes back.
    type Reply;

    /// A data packet arrives, marked by a router if `marked`. What goes back at once, if anything does.
    fn on_data(&mut self, now: Instant, data: &Self::Data, marked: bool) -> Option<Outgoing<Self::Reply>>;

    /// Payload bytes that the application has got so far: in order where the transport is reliable.
    fn delivered(&self) -> u64;

    /// When [`ReceivingEnd::on_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    fn deadline(&self) -> Instant;

    /// The deadline has come: a delayed acknowledgement or a report may be due.
    fn on_deadline(&mut self, now: Instant) -> Option<Outgoing<Self::Reply>>;

    /// The loss event rate, 0 to 1, where the receiver measures one.
    fn loss_event_rate(&self) -> Option<f64> {
        None
    }
}

/// What a data packet's arrival leads to.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// When the packet left its sender.
    pub sent_at: Instant,
    /// What goes back at once, if anything does.
    pub reply: Option<Outgoing<Header>>,
}

/// The description of a transport.
#[derive(Clone, Debug)]
pub struct TransportDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// The RFCs.
    pub source: &'static str,
    /// What can be set.
    pub parameters: Vec<&'static Parameter>,
    /// Whether every byte arrives, in order.
    pub reliable: bool,
    /// Whether the sender adapts its rate.
    pub adapts: bool,
}

impl TransportDescription {
    fn from_transport<T: Transport>() -> Self {
        Self {
            name: T::NAME,
            title: T::TITLE,
            source: T::SOURCE,
            parameters: T::Params::describe(),
            reliable: T::RELIABLE,
            adapts: T::ADAPTS,
        }
    }
}

/// Writes the enums of all transports and their matches.
macro_rules! transports {
    ({ $($others:tt)* } { $($datagrams:tt)* }) => { transports! { $($others)* $($datagrams)* } };
    ($($(#[$doc:meta])* $name:ident($transport:ty),)+) => {
        /// A transport and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum TransportParams { $($(#[$doc])* $name(Arc<<$transport as Transport>::Params>)),+ }

        /// The sending end of any transport. Large ends are boxed by their modules, so that TCP's, which most flows
        /// have, is not behind a pointer.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a pointer more would cost each of TCP's packets")]
        pub enum Sender { $($(#[$doc])* $name(<$transport as Transport>::Sender)),+ }

        /// The receiving end of any transport.
        #[derive(Clone, Debug)]
        pub enum Receiver { $($(#[$doc])* $name(<$transport as Transport>::Receiver)),+ }

        /// The header of a data packet of any transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum DataHeader { $($(#[$doc])* $name(<$transport as Transport>::Data)),+ }

        /// The header of what goes back to the sender of any transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum ReplyHeader { $($(#[$doc])* $name(<$transport as Transport>::Reply)),+ }

        impl TransportParams {
            /// The transports' names in scenario files, in their order.
            pub const NAMES: &'static [&'static str] = &[$(<$transport>::NAME),+];

            /// Every transport, in their order.
            pub fn all() -> Vec<TransportDescription> {
                vec![$(TransportDescription::from_transport::<$transport>()),+]
            }

            /// Every parameter with what it is set to.
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self { $(Self::$name(params) => params.values()),+ }
            }

            /// What can be set of the transport of a name; `None` when there is none.
            pub fn describe(name: &str) -> Option<Vec<&'static Parameter>> {
                match name {
                    $(<$transport>::NAME => Some(<$transport as Transport>::Params::describe()),)+
                    _ => None,
                }
            }

            /// What can be set besides because of what these values choose; see [`Transport::chosen`].
            pub fn chosen(name: &str, values: &[(&str, Value)]) -> Vec<&'static Parameter> {
                match name {
                    $(<$transport>::NAME => <$transport>::chosen(values),)+
                    _ => Vec::new(),
                }
            }

            /// The transport of a name: the defaults, changed by `values`.
            ///
            /// # Errors
            /// When there is no such transport or parameter, a value is not allowed, or values do not go together.
            pub fn from_values<'v>(
                name: &str,
                defaults: Defaults,
                values: impl IntoIterator<Item = (&'v str, Value)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$transport>::NAME => {
                        let params = <$transport>::with_values(<$transport>::defaults(defaults), values.into_iter().collect());
                        params.map(|params| Self::$name(Arc::new(params)))
                    })+
                    _ => Err(ParameterError::unknown_choice("protocol", name, Self::NAMES)),
                }
            }

            /// The same with packets that say this of ECN.
            pub fn with_ecn(mut self, ecn: Ecn) -> Self {
                match &mut self { $(Self::$name(params) => <$transport>::set_ecn(Arc::make_mut(params), ecn)),+ }
                self
            }

            /// What data packets say of ECN.
            pub fn ecn(&self) -> Ecn {
                match self { $(Self::$name(params) => <$transport>::ecn(params)),+ }
            }

            /// The largest payload of a data packet, bytes.
            pub fn largest_payload(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::largest_payload(params)),+ }
            }

            /// What a data packet has on the wire beside its payload, bytes.
            pub fn header_size(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::header_size(params)),+ }
            }

            /// The size on the wire of what goes back, bytes.
            pub fn reply_size(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::reply_size(params)),+ }
            }

            /// The largest message of a transport that sends each in one packet; see [`Transport::largest_message`].
            pub fn largest_message(&self) -> Option<(&'static str, u32)> {
                match self { $(Self::$name(params) => <$transport>::largest_message(params)),+ }
            }

            /// The name in scenario files.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => <$transport>::NAME),+ }
            }

            /// The name as people write it.
            pub const fn title(&self) -> &'static str {
                match self { $(Self::$name(_) => <$transport>::TITLE),+ }
            }

            /// Whether every byte arrives, in order.
            pub const fn is_reliable(&self) -> bool {
                match self { $(Self::$name(_) => <$transport>::RELIABLE),+ }
            }

            /// Whether the sender adapts its rate.
            pub const fn adapts(&self) -> bool {
                match self { $(Self::$name(_) => <$transport>::ADAPTS),+ }
            }

            /// Checks every parameter against its range, and whether they go together.
            ///
            /// # Errors
            /// The first that is not allowed.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self { $(Self::$name(params) => params.validate()),+ }
            }
        }

        impl Sender {
            /// The sender of a flow that begins at `now`. The parameters must be valid.
            pub fn new(params: &TransportParams, now: Instant) -> Self {
                match params {
                    $(TransportParams::$name(params) => Self::$name(<$transport>::sender(params, now))),+
                }
            }

            /// Takes what the application writes; see [`SendingEnd::write`].
            pub fn write(&mut self, write: Write) -> bool {
                match self { $(Self::$name(sender) => SendingEnd::write(sender, write)),+ }
            }

            /// The application stops; see [`SendingEnd::end_supply`].
            pub fn end_supply(&mut self) {
                match self { $(Self::$name(sender) => SendingEnd::end_supply(sender)),+ }
            }

            /// A reply arrives; `wide` returns its header where that is wide.
            #[inline]
            #[allow(unreachable_code, unused_variables, reason = "where nothing goes back there are no replies")]
            pub fn on_reply(&mut self, now: Instant, packed: PackedHeader, wide: impl FnOnce() -> ReplyHeader) {
                match self {
                    $(Self::$name(sender) => {
                        let reply =
                            if packed.is_wide() { wide().$name() } else { <$transport>::unpack_reply(packed) };
                        sender.on_reply(now, &reply);
                    })+
                }
            }

            /// The next packet that may leave now.
            #[inline]
            pub fn transmit(&mut self, now: Instant) -> Option<Outgoing<Header>> {
                match self {
                    $(Self::$name(sender) => {
                        let Outgoing { header, size, ecn } = SendingEnd::transmit(sender, now)?;
                        let wide = || WideHeader::Data(DataHeader::$name(header));
                        let header = Header::new(<$transport>::pack_data(&header), wide);
                        Some(Outgoing { header, size, ecn })
                    })+
                }
            }

            /// When [`Sender::on_deadline`] is to be called.
            #[inline]
            pub fn deadline(&self) -> Instant {
                match self { $(Self::$name(sender) => SendingEnd::deadline(sender)),+ }
            }

            /// The deadline has come.
            pub fn on_deadline(&mut self, now: Instant) {
                match self { $(Self::$name(sender) => SendingEnd::on_deadline(sender, now)),+ }
            }

            /// What was counted so far.
            pub fn counts(&self) -> TransportCounts {
                match self { $(Self::$name(sender) => SendingEnd::counts(sender)),+ }
            }

            /// The average round-trip time; see [`SendingEnd::round_trip_time`].
            pub fn round_trip_time(&self) -> Option<Duration> {
                match self { $(Self::$name(sender) => SendingEnd::round_trip_time(sender)),+ }
            }

            /// The header of a reply to this sender, unpacked.
            #[allow(unreachable_code, unused_variables, reason = "where nothing goes back there are no replies")]
            pub fn reply_header(&self, packed: PackedHeader) -> ReplyHeader {
                match self { $(Self::$name(_) => ReplyHeader::$name(<$transport>::unpack_reply(packed))),+ }
            }
        }

        impl Receiver {
            /// The receiver of a flow.
            pub fn new(params: &TransportParams) -> Self {
                match params { $(TransportParams::$name(params) => Self::$name(<$transport>::receiver(params))),+ }
            }

            /// A data packet arrives; `wide` returns its header where that is wide.
            #[inline]
            pub fn on_data(
                &mut self,
                now: Instant,
                packed: PackedHeader,
                marked: bool,
                wide: impl FnOnce() -> DataHeader,
            ) -> Receipt {
                match self {
                    $(Self::$name(receiver) => {
                        let data =
                            if packed.is_wide() { wide().$name() } else { <$transport>::unpack_data(packed) };
                        let reply = ReceivingEnd::on_data(receiver, now, &data, marked);
                        let reply = reply.map(|Outgoing { header, size, ecn }| {
                            let wide = || WideHeader::Reply(ReplyHeader::$name(header));
                            let header = Header::new(<$transport>::pack_reply(&header), wide);
                            Outgoing { header, size, ecn }
                        });
                        Receipt { sent_at: <$transport>::sent_at(&data), reply }
                    })+
                }
            }

            /// Payload bytes that the application has got so far.
            #[inline]
            pub fn delivered(&self) -> u64 {
                match self { $(Self::$name(receiver) => ReceivingEnd::delivered(receiver)),+ }
            }

            /// When [`Receiver::on_deadline`] is to be called.
            #[inline]
            pub fn deadline(&self) -> Instant {
                match self { $(Self::$name(receiver) => ReceivingEnd::deadline(receiver)),+ }
            }

            /// The deadline has come.
            pub fn on_deadline(&mut self, now: Instant) -> Option<Outgoing<Header>> {
                match self {
                    $(Self::$name(receiver) => {
                        let Outgoing { header, size, ecn } = ReceivingEnd::on_deadline(receiver, now)?;
                        let wide = || WideHeader::Reply(ReplyHeader::$name(header));
                        let header = Header::new(<$transport>::pack_reply(&header), wide);
                        Some(Outgoing { header, size, ecn })
                    })+
                }
            }

            /// The loss event rate; see [`ReceivingEnd::loss_event_rate`].
            pub fn loss_event_rate(&self) -> Option<f64> {
                match self { $(Self::$name(receiver) => ReceivingEnd::loss_event_rate(receiver)),+ }
            }

            /// The header of a data packet to this receiver, unpacked.
            pub fn data_header(&self, packed: PackedHeader) -> DataHeader {
                match self { $(Self::$name(_) => DataHeader::$name(<$transport>::unpack_data(packed))),+ }
            }
        }

        // One method a transport: its own header, which is what its ends are sent.
        #[allow(non_snake_case, reason = "named like the variants, by the macro")]
        impl DataHeader {
            $(fn $name(self) -> <$transport as Transport>::Data {
                #[allow(irrefutable_let_patterns, reason = "when there is one transport")]
                let Self::$name(data) = self else { unreachable!("a flow's two ends speak the same protocol") };
                data
            })+
        }

        #[allow(non_snake_case, reason = "named like the variants, by the macro")]
        impl ReplyHeader {
            $(fn $name(self) -> <$transport as Transport>::Reply {
                #[allow(irrefutable_let_patterns, reason = "when there is one transport")]
                let Self::$name(reply) = self else { unreachable!("a flow's two ends speak the same protocol") };
                reply
            })+
        }
    };
}

with_transports!(transports);
