//! TCP as one of the [transports](crate::endpoint).

use super::{Ack, Params, Receiver, SackBlocks, Segment, Sender, control};
use crate::endpoint::{
    Defaults, Outgoing, PackedHeader, ReceivingEnd, SendingEnd, Transport, TransportCounts,
};
use cutline_params::{Parameter, ParameterError, ParameterValue};
use cutline_units::{Duration, Ecn, Instant};
use std::sync::Arc;

/// TCP.
#[derive(Debug)]
pub struct Tcp;

impl Transport for Tcp {
    const NAME: &'static str = "tcp";
    const TITLE: &'static str = "TCP";
    const SOURCE: &'static str = "RFC 9293, RFC 5681, RFC 6582, RFC 6675, RFC 6298, RFC 3168";
    const RELIABLE: bool = true;
    const ADAPTS: bool = true;

    type Params = Params;
    type Data = Segment;
    type Reply = Ack;
    type Sender = Sender;
    type Receiver = Receiver;

    fn defaults(defaults: Defaults) -> Params {
        match defaults {
            Defaults::Rfc => Params::default(),
            Defaults::Ns2 => Params::ns2(),
            Defaults::Linux => Params::linux(),
        }
    }

    fn chosen(values: &[(&str, ParameterValue)]) -> Vec<&'static Parameter> {
        control::chosen(values)
    }

    fn with_values(defaults: Params, values: Vec<(&str, ParameterValue)>) -> Result<Params, ParameterError> {
        control::with_values(defaults, values)
    }

    fn set_ecn(params: &mut Params, ecn: Ecn) {
        params.ecn = ecn;
    }

    fn ecn(params: &Params) -> Ecn {
        params.ecn
    }

    fn largest_payload(params: &Params) -> u32 {
        params.mss
    }

    fn header_size(params: &Params) -> u32 {
        params.header_bytes
    }

    fn reply_size(params: &Params) -> u32 {
        params.ack_bytes
    }

    fn sender(params: &Arc<Params>, now: Instant) -> Sender {
        Sender::new(params, now)
    }

    fn receiver(params: &Arc<Params>) -> Receiver {
        Receiver::new(params)
    }

    #[inline]
    fn sent_at(data: &Segment) -> Instant {
        data.sent_at
    }

    #[inline]
    fn pack_data(data: &Segment) -> PackedHeader {
        let Segment { seq, sent_at, len, retransmission, cwr, fin } = *data;
        PackedHeader::new(seq, sent_at, len, [retransmission, cwr, fin])
    }

    #[inline]
    fn unpack_data(packed: PackedHeader) -> Segment {
        let PackedHeader { number: seq, time: sent_at, len, .. } = packed;
        let [retransmission, cwr, fin] = packed.flags();
        Segment { seq, sent_at, len, retransmission, cwr, fin }
    }

    /// Packs acknowledgements without SACK blocks, which are most. There is no room for the blocks.
    #[inline]
    fn pack_reply(reply: &Ack) -> PackedHeader {
        let Ack { ack, echo, sack, ece, marked } = *reply;
        if sack.is_empty() {
            PackedHeader::new(ack, echo, marked, [ece, false, false])
        } else {
            PackedHeader::WIDE
        }
    }

    #[inline]
    fn unpack_reply(packed: PackedHeader) -> Ack {
        let PackedHeader { number: ack, time: echo, len: marked, .. } = packed;
        let [ece, ..] = packed.flags();
        Ack { ack, echo, sack: SackBlocks::NONE, ece, marked }
    }
}

impl SendingEnd for Sender {
    type Data = Segment;
    type Reply = Ack;

    fn write(&mut self, bytes: u64) -> bool {
        Self::write(self, bytes)
    }

    fn write_unlimited(&mut self) {
        Self::write_unlimited(self);
    }

    fn end_supply(&mut self) {
        Self::end_supply(self);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Sender::on_ack")]
    fn on_reply(&mut self, now: Instant, reply: &Ack) {
        self.on_ack(now, reply);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as Sender::on_ack")]
    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Segment>> {
        let header = Self::transmit(self, now)?;
        let params = self.params();
        let ecn = if params.ecn_capable(&header) { params.ecn } else { Ecn::NotEct };
        Some(Outgoing { header, size: params.wire_bytes(&header).get() as u32, ecn })
    }

    #[inline]
    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }

    fn on_deadline(&mut self, now: Instant) {
        Self::on_deadline(self, now);
    }

    fn round_trip_time(&self) -> Option<Duration> {
        Some(self.srtt()).filter(|rtt| !rtt.is_zero())
    }

    fn counts(&self) -> TransportCounts {
        let stats = self.stats();
        TransportCounts {
            retransmissions: u64::from(stats.retransmissions),
            timeouts: u64::from(stats.timeouts),
            refused_bytes: stats.refused_bytes,
        }
    }
}

impl ReceivingEnd for Receiver {
    type Data = Segment;
    type Reply = Ack;

    #[inline]
    fn on_data(&mut self, now: Instant, data: &Segment, marked: bool) -> Option<Outgoing<Ack>> {
        self.on_segment(now, data, marked).map(|ack| self.outgoing(ack))
    }

    #[inline]
    fn delivered(&self) -> u64 {
        Self::delivered(self)
    }

    #[inline]
    fn deadline(&self) -> Instant {
        Self::deadline(self)
    }

    fn on_deadline(&mut self, now: Instant) -> Option<Outgoing<Ack>> {
        Self::on_deadline(self, now).map(|ack| self.outgoing(ack))
    }
}

impl Receiver {
    #[inline]
    fn outgoing(&self, header: Ack) -> Outgoing<Ack> {
        Outgoing { header, size: self.params().ack_bytes, ecn: Ecn::NotEct }
    }
}
