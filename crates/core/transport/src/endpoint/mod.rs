//! One interface to all transports: a [`Sender`] and a [`Receiver`] for the simulator, the traffic generator and the `QoS`
//! socket.
//!
//! A transport is a module that implements [`Transport`] for its type, and a line in `list.rs`. Over a real network it also
//! implements [`DatagramTransport`](crate::wire::DatagramTransport). A macro defines enums of all senders, receivers,
//! parameters and headers. Dispatch is a `match`, and no packet allocates memory.
//!
//! A packet's header is a [`PackedHeader`] if it fits, otherwise a [`WideHeader`] that is stored separately:
//! see [`Transport::pack_data`].

mod header;

pub use header::{PackedHeader, WideHeader};

use crate::Write;
use crate::tcp::Tcp;
use cutline_params::{Parameter, ParameterError, ParameterValue, Parameters};
use cutline_units::{Duration, Ecn, Instant};
use std::sync::Arc;

/// The set of defaults for parameters that are not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// The defaults of the RFCs.
    #[default]
    Rfc,
    /// The defaults of ns-2.35, which the TSQ paper used.
    Ns2,
    /// Linux's behaviour unless it is set otherwise.
    Linux,
}

impl Defaults {
    /// All, with the names that files have for them.
    pub const ALL: [(&str, Self); 3] = [("rfc", Self::Rfc), ("ns-2", Self::Ns2), ("linux", Self::Linux)];
}

/// A packet that leaves an endpoint: its header, and its properties for the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outgoing<H> {
    /// The transport's header.
    pub header: H,
    /// Size on the wire including headers, bytes.
    pub size: u32,
    /// The ECN field.
    pub ecn: Ecn,
}

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounts {
    /// Retransmitted packets.
    pub retransmissions: u64,
    /// Timeouts: of retransmission for TCP, of feedback for TFRC.
    pub timeouts: u64,
    /// Bytes of the application that were dropped because the send buffer was full.
    pub refused_bytes: u64,
}

/// A transport: its parameters, its two endpoints, and the headers of its packets.
pub trait Transport: Sized + 'static {
    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// The title.
    const TITLE: &'static str;
    /// The RFCs.
    const SOURCE: &'static str;
    /// True if every byte is delivered once and in order.
    const RELIABLE: bool;
    /// True if the sender adapts its rate, so that it can send an unlimited supply.
    const ADAPTS: bool;

    /// The parameters.
    type Params: Parameters + Clone;
    /// The header of a data packet.
    type Data: Copy;
    /// The header of a reply: an acknowledgement or a report.
    type Reply: Copy;
    /// The sending end.
    type Sender: SendingEnd<Data = Self::Data, Reply = Self::Reply>;
    /// The receiving end.
    type Receiver: ReceivingEnd<Data = Self::Data, Reply = Self::Reply>;

    /// Returns the default parameters.
    fn defaults(_defaults: Defaults) -> Self::Params {
        Self::Params::default()
    }

    /// Returns the additional parameters of the choices in these values, such as the parameters of a registered congestion
    /// control.
    fn chosen(_values: &[(&str, ParameterValue)]) -> Vec<&'static Parameter> {
        Vec::new()
    }

    /// Returns these parameters, overridden by `values`.
    ///
    /// # Errors
    /// When a name is unknown, a value is not allowed, or values contradict each other.
    fn with_values(
        params: Self::Params,
        values: Vec<(&str, ParameterValue)>,
    ) -> Result<Self::Params, ParameterError> {
        params.with_values(values)
    }

    /// Sets the ECN field of data packets. A transport that does not respond to marks ignores it.
    fn set_ecn(_params: &mut Self::Params, _ecn: Ecn) {}

    /// Returns the ECN field of data packets.
    fn ecn(_params: &Self::Params) -> Ecn {
        Ecn::NotEct
    }

    /// The largest payload of a data packet, bytes.
    fn largest_payload(params: &Self::Params) -> u32;

    /// Returns the size of a data packet's headers on the wire, bytes.
    fn header_size(params: &Self::Params) -> u32;

    /// Returns the size of a reply on the wire, bytes.
    fn reply_size(params: &Self::Params) -> u32 {
        Self::header_size(params)
    }

    /// For a transport that sends each message in one packet, returns the parameter that limits its size, and its value in
    /// bytes. `None` for a transport that splits messages.
    fn largest_message(_params: &Self::Params) -> Option<(&'static str, u32)> {
        None
    }

    /// Returns a sender that starts at `now`. The parameters must be valid.
    fn sender(params: &Arc<Self::Params>, now: Instant) -> Self::Sender;

    /// Returns the receiver for such a sender.
    fn receiver(params: &Arc<Self::Params>) -> Self::Receiver;

    /// Returns the departure time of a data packet.
    fn sent_at(data: &Self::Data) -> Instant;

    /// Packs a data header; [`PackedHeader::WIDE`] if it has more than three numbers and three flags.
    #[inline]
    fn pack_data(_data: &Self::Data) -> PackedHeader {
        PackedHeader::WIDE
    }

    /// Unpacks a data header of [`Transport::pack_data`].
    #[inline]
    fn unpack_data(_packed: PackedHeader) -> Self::Data {
        unreachable!("{} packs no data headers", Self::NAME)
    }

    /// Packs the header of a reply; [`PackedHeader::WIDE`] if it has more than three numbers and three flags.
    #[inline]
    fn pack_reply(_reply: &Self::Reply) -> PackedHeader {
        PackedHeader::WIDE
    }

    /// Unpacks the header of a reply of [`Transport::pack_reply`].
    #[inline]
    fn unpack_reply(_packed: PackedHeader) -> Self::Reply {
        unreachable!("{} packs no replies' headers", Self::NAME)
    }
}

/// The sending end of a transport.
///
/// After each other call, the caller must call [`SendingEnd::transmit`] until it returns `None`. It must call
/// [`SendingEnd::on_deadline`] at [`SendingEnd::deadline`]. An early call has no effect.
pub trait SendingEnd {
    /// The header of a data packet.
    type Data;
    /// The header of a reply.
    type Reply;

    /// Accepts a message of the application. Returns false if there is no room; the sender then counts the bytes as refused.
    fn write(&mut self, bytes: u64) -> bool;

    /// Starts an unlimited supply.
    ///
    /// # Panics
    /// By default: a flow of bulk data over a transport that does not adapt its rate ([`Transport::ADAPTS`]) is refused where it is read.
    fn write_unlimited(&mut self) {
        panic!("bulk data over a transport that does not adapt its rate has been refused")
    }

    /// Ends the supply. Data that was written before is still sent, an unlimited supply ends.
    fn end_supply(&mut self);

    /// Handles the arrival of an acknowledgement or a report.
    fn on_reply(&mut self, now: Instant, reply: &Self::Reply);

    /// Returns the next packet that may leave now.
    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Self::Data>>;

    /// Time of the next call of [`SendingEnd::on_deadline`]; [`Instant::FAR_FUTURE`] if there is none.
    fn deadline(&self) -> Instant;

    /// Handles the deadline. The default does nothing: a deadline may be the time of a departure alone.
    fn on_deadline(&mut self, _now: Instant) {}

    /// Returns the counters.
    fn counts(&self) -> TransportCounts;

    /// Returns the average round-trip time, if the sender has measured it.
    fn round_trip_time(&self) -> Option<Duration> {
        None
    }
}

/// Implements the types and methods of [`SendingEnd`] for a boxed sender that has the methods itself, such as `on_feedback`.
macro_rules! forward_to_sender {
    ($sender:ty, $packet:ty, $feedback:ty) => {
        type Data = $packet;
        type Reply = $feedback;

        fn write(&mut self, bytes: u64) -> bool {
            <$sender>::write(self, bytes)
        }

        fn write_unlimited(&mut self) {
            <$sender>::write_unlimited(self);
        }

        fn end_supply(&mut self) {
            <$sender>::end_supply(self);
        }

        fn on_reply(&mut self, now: cutline_units::Instant, reply: &$feedback) {
            self.on_feedback(now, reply);
        }

        fn deadline(&self) -> cutline_units::Instant {
            <$sender>::deadline(self)
        }
    };
}

pub(crate) use forward_to_sender;

/// The receiving end of a transport.
pub trait ReceivingEnd {
    /// The header of a data packet.
    type Data;
    /// The header of a reply.
    type Reply;

    /// Handles the arrival of a data packet, which a router has marked if `marked`. Returns an immediate reply, if any.
    fn on_data(&mut self, now: Instant, data: &Self::Data, marked: bool) -> Option<Outgoing<Self::Reply>>;

    /// Returns the number of payload bytes delivered to the application, in order if the transport is reliable.
    fn delivered(&self) -> u64;

    /// Time of the next call of [`ReceivingEnd::on_deadline`]; [`Instant::FAR_FUTURE`], the default, if there is none.
    #[inline]
    fn deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    /// Handles the deadline. Returns a delayed acknowledgement or a report if one is due.
    fn on_deadline(&mut self, _now: Instant) -> Option<Outgoing<Self::Reply>> {
        None
    }

    /// Returns the loss event rate, 0 to 1, if the receiver measures it.
    fn loss_event_rate(&self) -> Option<f64> {
        None
    }
}

/// The result of a data packet's arrival.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// Departure time of the packet at its sender.
    pub sent_at: Instant,
    /// The number of payload bytes that it delivered to the application.
    pub delivered: u64,
    /// The immediate reply, if any.
    pub reply: Option<Outgoing<PackedHeader>>,
}

/// The description of a transport.
#[derive(Clone, Debug)]
pub struct TransportDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The RFCs.
    pub source: &'static str,
    /// The parameters.
    pub parameters: Vec<&'static Parameter>,
    /// True if every byte is delivered in order.
    pub reliable: bool,
    /// True if the sender adapts its rate.
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
    ({ $($first:tt)* } { $($datagrams:tt)* } { $($simulated:tt)* }) => {
        transports! { $($first)* $($datagrams)* $($simulated)* }
    };
    ($($(#[$doc:meta])* $name:ident($transport:ty),)+) => {
        /// A transport and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum TransportParams { $($(#[$doc])* $name(Arc<<$transport as Transport>::Params>)),+ }

        /// The sending end of any transport. Modules box large ends. The end of TCP, which most flows have, is not behind
        /// a pointer.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a pointer would slow down every packet of TCP")]
        pub enum Sender { $($(#[$doc])* $name(<$transport as Transport>::Sender)),+ }

        /// The receiving end of any transport.
        #[derive(Clone, Debug)]
        pub enum Receiver { $($(#[$doc])* $name(<$transport as Transport>::Receiver)),+ }

        /// The header of a data packet of any transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum DataHeader { $($(#[$doc])* $name(<$transport as Transport>::Data)),+ }

        /// The header of a reply of any transport.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum ReplyHeader { $($(#[$doc])* $name(<$transport as Transport>::Reply)),+ }

        impl TransportParams {
            /// The transports' names in scenario files, in their order.
            pub const NAMES: &'static [&'static str] = &[$(<$transport>::NAME),+];

            /// Every transport, in their order.
            pub fn all() -> Vec<TransportDescription> {
                vec![$(TransportDescription::from_transport::<$transport>()),+]
            }

            /// Returns all parameters with their values.
            pub fn values(&self) -> Vec<(&'static str, ParameterValue)> {
                match self { $(Self::$name(params) => params.values()),+ }
            }

            /// Returns the parameters of the transport with this name; `None` if there is none.
            pub fn describe(name: &str) -> Option<Vec<&'static Parameter>> {
                match name {
                    $(<$transport>::NAME => Some(<$transport as Transport>::Params::describe()),)+
                    _ => None,
                }
            }

            /// Returns the additional parameters of the choices in these values; see [`Transport::chosen`].
            pub fn chosen(name: &str, values: &[(&str, ParameterValue)]) -> Vec<&'static Parameter> {
                match name {
                    $(<$transport>::NAME => <$transport>::chosen(values),)+
                    _ => Vec::new(),
                }
            }

            /// Returns the transport with this name: the defaults, overridden by `values`.
            ///
            /// # Errors
            /// When there is no such transport or parameter, a value is not allowed, or values contradict each other.
            pub fn from_values<'v>(
                name: &str,
                defaults: Defaults,
                values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$transport>::NAME => {
                        let params = <$transport>::with_values(<$transport>::defaults(defaults), values.into_iter().collect());
                        params.map(|params| Self::$name(Arc::new(params)))
                    })+
                    _ => Err(ParameterError::unknown_choice("protocol", name, Self::NAMES)),
                }
            }

            /// Returns these parameters with another ECN field of data packets.
            pub fn with_ecn(mut self, ecn: Ecn) -> Self {
                match &mut self { $(Self::$name(params) => <$transport>::set_ecn(Arc::make_mut(params), ecn)),+ }
                self
            }

            /// Returns the ECN field of data packets.
            pub fn ecn(&self) -> Ecn {
                match self { $(Self::$name(params) => <$transport>::ecn(params)),+ }
            }

            /// The largest payload of a data packet, bytes.
            pub fn largest_payload(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::largest_payload(params)),+ }
            }

            /// Returns the size of a data packet's headers on the wire, bytes.
            pub fn header_size(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::header_size(params)),+ }
            }

            /// Returns the size of a reply on the wire, bytes.
            pub fn reply_size(&self) -> u32 {
                match self { $(Self::$name(params) => <$transport>::reply_size(params)),+ }
            }

            /// Returns the limit of a message; see [`Transport::largest_message`].
            pub fn largest_message(&self) -> Option<(&'static str, u32)> {
                match self { $(Self::$name(params) => <$transport>::largest_message(params)),+ }
            }

            /// The name in scenario files.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => <$transport>::NAME),+ }
            }

            /// The title.
            pub const fn title(&self) -> &'static str {
                match self { $(Self::$name(_) => <$transport>::TITLE),+ }
            }

            /// Returns whether every byte is delivered in order.
            pub const fn is_reliable(&self) -> bool {
                match self { $(Self::$name(_) => <$transport>::RELIABLE),+ }
            }

            /// Returns whether the sender adapts its rate.
            pub const fn adapts(&self) -> bool {
                match self { $(Self::$name(_) => <$transport>::ADAPTS),+ }
            }

            /// Checks all parameters and their combination.
            ///
            /// # Errors
            /// The first parameter that is not allowed.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self { $(Self::$name(params) => params.validate()),+ }
            }
        }

        impl Sender {
            /// Returns the sender of a flow that starts at `now`. The parameters must be valid.
            pub fn new(params: &TransportParams, now: Instant) -> Self {
                match params {
                    $(TransportParams::$name(params) => Self::$name(<$transport>::sender(params, now))),+
                }
            }

            /// Accepts a write of the application; see [`SendingEnd::write`] and [`SendingEnd::write_unlimited`].
            pub fn write(&mut self, write: Write) -> bool {
                match write {
                    Write::Bytes(bytes) => match self { $(Self::$name(sender) => SendingEnd::write(sender, bytes)),+ },
                    Write::Unlimited => {
                        match self { $(Self::$name(sender) => SendingEnd::write_unlimited(sender)),+ }
                        true
                    }
                }
            }

            /// Ends the supply; see [`SendingEnd::end_supply`].
            pub fn end_supply(&mut self) {
                match self { $(Self::$name(sender) => SendingEnd::end_supply(sender)),+ }
            }

            /// Does the same as [`Sender::on_reply`] for any transport.
            #[inline(never)]
            #[allow(unreachable_code, unused_variables, reason = "a transport without replies has no reply header")]
            fn on_reply_of_any(&mut self, now: Instant, packed: PackedHeader, wide: impl FnOnce() -> ReplyHeader) {
                match self {
                    $(Self::$name(sender) => {
                        let reply = packed.unpacked(<$transport>::unpack_reply, || wide().$name());
                        sender.on_reply(now, &reply);
                    })+
                }
            }

            /// Does the same as [`Sender::transmit`] for any transport.
            #[inline(never)]
            fn transmit_of_any(
                &mut self,
                now: Instant,
                wide: &mut Option<WideHeader>,
            ) -> Option<Outgoing<PackedHeader>> {
                match self {
                    $(Self::$name(sender) => {
                        let outgoing = SendingEnd::transmit(sender, now)?;
                        let of_any = |header| WideHeader::Data(DataHeader::$name(header));
                        Some(outgoing.packed(<$transport>::pack_data, wide, of_any))
                    })+
                }
            }

            /// Does the same as [`Sender::deadline`] for any transport.
            #[inline(never)]
            fn deadline_of_any(&self) -> Instant {
                match self { $(Self::$name(sender) => SendingEnd::deadline(sender)),+ }
            }

            /// Handles the deadline.
            pub fn on_deadline(&mut self, now: Instant) {
                match self { $(Self::$name(sender) => SendingEnd::on_deadline(sender, now)),+ }
            }

            /// Returns the counters.
            pub fn counts(&self) -> TransportCounts {
                match self { $(Self::$name(sender) => SendingEnd::counts(sender)),+ }
            }

            /// The average round-trip time; see [`SendingEnd::round_trip_time`].
            pub fn round_trip_time(&self) -> Option<Duration> {
                match self { $(Self::$name(sender) => SendingEnd::round_trip_time(sender)),+ }
            }

            /// The header of a reply to this sender, unpacked.
            #[allow(unreachable_code, unused_variables, reason = "a transport without replies has no reply header")]
            pub fn reply_header(&self, packed: PackedHeader) -> ReplyHeader {
                match self { $(Self::$name(_) => ReplyHeader::$name(<$transport>::unpack_reply(packed))),+ }
            }
        }

        impl Receiver {
            /// Returns the receiver of a flow.
            pub fn new(params: &TransportParams) -> Self {
                match params { $(TransportParams::$name(params) => Self::$name(<$transport>::receiver(params))),+ }
            }

            /// Does the same as [`Receiver::on_data`] for any transport.
            #[inline(never)]
            fn on_data_of_any(
                &mut self,
                now: Instant,
                packed: PackedHeader,
                marked: bool,
                wide: impl FnOnce() -> DataHeader,
                wide_reply: &mut Option<WideHeader>,
            ) -> Receipt {
                match self {
                    $(Self::$name(receiver) => {
                        let data = packed.unpacked(<$transport>::unpack_data, || wide().$name());
                        let of_any = |header| WideHeader::Reply(ReplyHeader::$name(header));
                        received::<$transport>(receiver, now, data, marked, wide_reply, of_any)
                    })+
                }
            }

            /// Does the same as [`Receiver::deadline`] for any transport.
            #[inline(never)]
            fn deadline_of_any(&self) -> Instant {
                match self { $(Self::$name(receiver) => ReceivingEnd::deadline(receiver)),+ }
            }

            /// Returns the number of payload bytes delivered to the application.
            #[inline]
            pub fn delivered(&self) -> u64 {
                match self { $(Self::$name(receiver) => ReceivingEnd::delivered(receiver)),+ }
            }

            /// Handles the deadline. Returns the packet that is due, and puts its header into `wide` if that is wide.
            pub fn on_deadline(
                &mut self,
                now: Instant,
                wide: &mut Option<WideHeader>,
            ) -> Option<Outgoing<PackedHeader>> {
                match self {
                    $(Self::$name(receiver) => {
                        let outgoing = ReceivingEnd::on_deadline(receiver, now)?;
                        let of_any = |header| WideHeader::Reply(ReplyHeader::$name(header));
                        Some(outgoing.packed(<$transport>::pack_reply, wide, of_any))
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

        // One method per transport, which returns its header.
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

impl<H: Copy> Outgoing<H> {
    /// Packs the header, or makes it one of any transport and puts it into `wide`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Sender::transmit")]
    fn packed(
        self,
        pack: impl FnOnce(&H) -> PackedHeader,
        wide: &mut Option<WideHeader>,
        of_any: impl FnOnce(H) -> WideHeader,
    ) -> Outgoing<PackedHeader> {
        let Self { header, size, ecn } = self;
        let header = pack(&header).or_wide(wide, || of_any(header));
        Outgoing { header, size, ecn }
    }
}

/// Handles the arrival of a data packet, and packs the reply.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as Sender::transmit")]
fn received<T: Transport>(
    receiver: &mut T::Receiver,
    now: Instant,
    data: T::Data,
    marked: bool,
    wide_reply: &mut Option<WideHeader>,
    of_any: impl FnOnce(T::Reply) -> WideHeader,
) -> Receipt {
    let before = receiver.delivered();
    let reply = receiver.on_data(now, &data, marked);
    let delivered = receiver.delivered() - before;
    let reply = reply.map(|outgoing| outgoing.packed(T::pack_reply, wide_reply, of_any));
    Receipt { sent_at: T::sent_at(&data), delivered, reply }
}

// Methods for every packet. TCP, which most flows have, takes one comparison and is inlined. A match over all transports jumps by a table,
// and leaves few registers to each of them.

impl Sender {
    /// Handles the arrival of a reply. `wide` returns its header if that is wide.
    #[inline]
    pub fn on_reply(&mut self, now: Instant, packed: PackedHeader, wide: impl FnOnce() -> ReplyHeader) {
        match self {
            Self::Tcp(sender) if !packed.is_wide() => sender.on_reply(now, &Tcp::unpack_reply(packed)),
            other => other.on_reply_of_any(now, packed, wide),
        }
    }

    /// Returns the next packet that may leave now, and puts its header into `wide` if that is wide.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, the result of TCP stays in registers")]
    pub fn transmit(
        &mut self,
        now: Instant,
        wide: &mut Option<WideHeader>,
    ) -> Option<Outgoing<PackedHeader>> {
        match self {
            Self::Tcp(sender) => {
                let outgoing = SendingEnd::transmit(sender, now)?;
                let of_any = |header| WideHeader::Data(DataHeader::Tcp(header));
                Some(outgoing.packed(Tcp::pack_data, wide, of_any))
            }
            // Its result is in memory, that of TCP is not.
            other => {
                let outgoing = other.transmit_of_any(now, wide)?;
                Some(outgoing)
            }
        }
    }

    /// Time of the next call of [`Sender::on_deadline`].
    #[inline]
    pub fn deadline(&self) -> Instant {
        match self {
            Self::Tcp(sender) => SendingEnd::deadline(sender),
            other => other.deadline_of_any(),
        }
    }

    /// Returns a number from all over the sender's state. A caller that is about to handle packets of many flows reads it first, so
    /// that the processor fetches the states side by side.
    #[inline]
    pub fn read_ahead(&self) -> u64 {
        match self {
            Self::Tcp(sender) => sender.read_ahead(),
            other => other.deadline().as_nanos(),
        }
    }
}

impl Receiver {
    /// Returns whether a data packet is as most are: a segment of TCP that arrives in order, without a mark.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the caller knows this case at [`Receiver::on_data`]")]
    pub fn takes_in_order(&self, packed: PackedHeader, marked: bool) -> bool {
        matches!(self, Self::Tcp(receiver) if !packed.is_wide() && receiver.is_next(packed.number, marked))
    }

    /// Handles the arrival of a data packet. `wide` returns its header if that is wide. Puts the header of the reply into `wide_reply` if
    /// that one is wide.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, the result of TCP stays in registers")]
    pub fn on_data(
        &mut self,
        now: Instant,
        packed: PackedHeader,
        marked: bool,
        wide: impl FnOnce() -> DataHeader,
        wide_reply: &mut Option<WideHeader>,
    ) -> Receipt {
        match self {
            Self::Tcp(receiver) if !packed.is_wide() => {
                let data = Tcp::unpack_data(packed);
                let of_any = |header| WideHeader::Reply(ReplyHeader::Tcp(header));
                received::<Tcp>(receiver, now, data, marked, wide_reply, of_any)
            }
            other => other.on_data_of_any(now, packed, marked, wide, wide_reply),
        }
    }

    /// Time of the next call of [`Receiver::on_deadline`].
    #[inline]
    pub fn deadline(&self) -> Instant {
        match self {
            Self::Tcp(receiver) => ReceivingEnd::deadline(receiver),
            other => other.deadline_of_any(),
        }
    }

    /// Returns a number from all over the receiver's state; see [`Sender::read_ahead`].
    #[inline]
    pub fn read_ahead(&self) -> u64 {
        match self {
            Self::Tcp(receiver) => receiver.read_ahead(),
            other => other.deadline().as_nanos(),
        }
    }

    /// Returns a number from the memory that is found in the receiver's state, which the caller has [read](Receiver::read_ahead).
    #[inline]
    pub fn read_ahead_of_ranges(&self) -> u64 {
        match self {
            Self::Tcp(receiver) => receiver.read_ahead_of_ranges(),
            _ => 0,
        }
    }
}
