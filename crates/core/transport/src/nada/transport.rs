//! NADA as one of the [transports](crate::endpoint). Its ends are boxed because they are large, and rarer than TCP's.

use super::{Feedback, Packet, Params, Receiver, Sender};
use crate::endpoint::{Outgoing, ReceivingEnd, SendingEnd, Transport, TransportCounts, forward_to_sender};
use cutline_units::{Duration, Ecn, Instant};
use std::sync::Arc;

/// NADA.
#[derive(Debug)]
pub struct Nada;

impl Transport for Nada {
    const NAME: &'static str = "nada";
    const TITLE: &'static str = "NADA, with a video encoder";
    const SOURCE: &'static str = "RFC 8698";
    const RELIABLE: bool = false;
    const ADAPTS: bool = true;

    type Params = Params;
    type Data = Packet;
    type Reply = Feedback;
    type Sender = Box<Sender>;
    type Receiver = Box<Receiver>;

    fn set_ecn(params: &mut Params, ecn: Ecn) {
        params.ecn = ecn != Ecn::NotEct;
    }

    fn ecn(params: &Params) -> Ecn {
        if params.ecn { Ecn::Ect0 } else { Ecn::NotEct }
    }

    fn largest_payload(params: &Params) -> u32 {
        params.packet_size
    }

    fn header_size(params: &Params) -> u32 {
        params.header_bytes
    }

    fn reply_size(params: &Params) -> u32 {
        params.feedback_bytes
    }

    fn largest_message(params: &Params) -> Option<(&'static str, u32)> {
        Some(("packet-size", params.packet_size))
    }

    fn sender(params: &Arc<Params>, now: Instant) -> Box<Sender> {
        Box::new(Sender::new(params, now))
    }

    fn receiver(params: &Arc<Params>) -> Box<Receiver> {
        Box::new(Receiver::new(params))
    }

    fn sent_at(data: &Packet) -> Instant {
        data.sent_at
    }
}

impl SendingEnd for Box<Sender> {
    forward_to_sender!(Sender, Packet, Feedback);

    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Packet>> {
        let header = Sender::transmit(self, now)?;
        let params = self.params();
        Some(Outgoing { header, size: header.len + params.header_bytes, ecn: Nada::ecn(params) })
    }

    fn on_deadline(&mut self, now: Instant) {
        Sender::on_deadline(self, now);
    }

    fn round_trip_time(&self) -> Option<Duration> {
        self.rtt()
    }

    fn counts(&self) -> TransportCounts {
        let stats = self.stats();
        TransportCounts { retransmissions: 0, timeouts: stats.timeouts, refused_bytes: stats.refused }
    }
}

impl ReceivingEnd for Box<Receiver> {
    type Data = Packet;
    type Reply = Feedback;

    fn on_data(&mut self, now: Instant, data: &Packet, marked: bool) -> Option<Outgoing<Feedback>> {
        self.on_packet(now, data, marked);
        None
    }

    fn delivered(&self) -> u64 {
        Receiver::delivered(self)
    }

    fn deadline(&self) -> Instant {
        Receiver::deadline(self)
    }

    fn on_deadline(&mut self, now: Instant) -> Option<Outgoing<Feedback>> {
        let header = Receiver::on_deadline(self, now)?;
        Some(Outgoing { header, size: self.params().feedback_bytes, ecn: Ecn::NotEct })
    }
}
