//! UDP as one of the [transports](crate::endpoint). Its sender is boxed so that the enum of all senders, most of which are
//! TCP's, does not become larger.

use super::{Datagram, Params, Receiver, Sender};
use crate::endpoint::{
    Defaults, Outgoing, PackedHeader, ReceivingEnd, SendingEnd, Transport, TransportCounts,
};
use crate::wire::{DatagramTransport, Reader, Writer};
use cutline_units::{Ecn, Instant};
use std::sync::Arc;

/// UDP.
#[derive(Debug)]
pub struct Udp;

/// A reply to a UDP sender. There are none, so the type has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {}

/// The fields of a UDP data header that other data headers do not have: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoExtension;

impl Transport for Udp {
    const NAME: &'static str = "udp";
    const TITLE: &'static str = "UDP";
    const SOURCE: &'static str = "RFC 768";
    const RELIABLE: bool = false;
    const ADAPTS: bool = false;

    type Params = Params;
    type Data = Datagram;
    type Reply = NoReply;
    type Sender = Box<Sender>;
    type Receiver = Receiver;

    /// ns-2's packets have no headers.
    fn defaults(defaults: Defaults) -> Params {
        match defaults {
            Defaults::Rfc | Defaults::Linux => Params::default(),
            Defaults::Ns2 => Params { header_bytes: 0, ..Params::default() },
        }
    }

    fn set_ecn(params: &mut Params, ecn: Ecn) {
        params.ecn = ecn;
    }

    fn ecn(params: &Params) -> Ecn {
        params.ecn
    }

    fn largest_payload(params: &Params) -> u32 {
        params.max_datagram
    }

    fn header_size(params: &Params) -> u32 {
        params.header_bytes
    }

    fn sender(params: &Arc<Params>, _now: Instant) -> Box<Sender> {
        Box::new(Sender::new(params))
    }

    fn receiver(_params: &Arc<Params>) -> Receiver {
        Receiver::default()
    }

    #[inline]
    fn sent_at(data: &Datagram) -> Instant {
        data.sent_at
    }

    #[inline]
    fn pack_data(data: &Datagram) -> PackedHeader {
        let Datagram { seq, sent_at, len } = *data;
        PackedHeader::new(seq, sent_at, len, [false; 3])
    }

    #[inline]
    fn unpack_data(packed: PackedHeader) -> Datagram {
        let PackedHeader { number: seq, time: sent_at, len, .. } = packed;
        Datagram { seq, sent_at, len }
    }
}

impl DatagramTransport for Udp {
    const DATA_KIND: u8 = 1;
    const REPLY_KIND: Option<u8> = None;
    const EXTENSION_BYTES: usize = 0;
    const REPLY_BYTES: usize = 0;

    type Extension = NoExtension;

    fn largest_datagram(params: &Params) -> u32 {
        params.max_datagram
    }

    fn packet(data: &Datagram) -> (u64, u32) {
        (data.seq, data.len)
    }

    fn extension(_sender: &Box<Sender>, _data: &Datagram) -> NoExtension {
        NoExtension
    }

    /// The defaults: nothing that a receiver does depends on them.
    fn receiver_params(_extension: &NoExtension) -> Params {
        Params::default()
    }

    fn data(seq: u64, sent_at: Instant, len: u32, _extension: &NoExtension) -> Datagram {
        Datagram { seq, sent_at, len }
    }

    fn write_extension(_extension: &NoExtension, _to: &mut Writer<'_>) {}

    fn read_extension(_from: &mut Reader<'_>) -> Option<NoExtension> {
        Some(NoExtension)
    }

    fn echo(reply: &mut NoReply) -> &mut Instant {
        match *reply {}
    }

    fn write_reply(reply: &NoReply, _to: &mut Writer<'_>) {
        match *reply {}
    }

    fn read_reply(_from: &mut Reader<'_>) -> Option<NoReply> {
        None
    }
}

impl SendingEnd for Box<Sender> {
    type Data = Datagram;
    type Reply = NoReply;

    fn write(&mut self, bytes: u64) -> bool {
        Sender::write(self, bytes);
        true
    }

    fn end_supply(&mut self) {}

    fn on_reply(&mut self, _now: Instant, reply: &NoReply) {
        match *reply {}
    }

    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Datagram>> {
        let header = Sender::transmit(self, now)?;
        let size = self.params().wire_bytes(&header).get() as u32;
        Some(Outgoing { header, size, ecn: self.params().ecn })
    }

    fn deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    fn counts(&self) -> TransportCounts {
        TransportCounts::default()
    }
}

impl ReceivingEnd for Receiver {
    type Data = Datagram;
    type Reply = NoReply;

    #[inline]
    fn on_data(&mut self, _now: Instant, data: &Datagram, marked: bool) -> Option<Outgoing<NoReply>> {
        self.on_datagram(data, marked);
        None
    }

    #[inline]
    fn delivered(&self) -> u64 {
        Self::delivered(self)
    }
}
