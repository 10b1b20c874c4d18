//! TFRC as one of the [transports](crate::endpoint). Its ends are boxed because they are large, and rarer than TCP's.

use super::{Feedback, Packet, Params, Receiver, Sender};
use crate::endpoint::{
    Defaults, Outgoing, ReceivingEnd, SendingEnd, Transport, TransportCounts, forward_to_sender,
};
use cutline_units::{Duration, Ecn, Instant};
use std::sync::Arc;

/// TFRC.
#[derive(Debug)]
pub struct Tfrc;

impl Transport for Tfrc {
    const NAME: &'static str = "tfrc";
    const TITLE: &'static str = "TFRC";
    const SOURCE: &'static str = "RFC 5348";
    const RELIABLE: bool = false;
    const ADAPTS: bool = true;

    type Params = Params;
    type Data = Packet;
    type Reply = Feedback;
    type Sender = Box<Sender>;
    type Receiver = Box<Receiver>;

    fn defaults(defaults: Defaults) -> Params {
        match defaults {
            // Linux has no TFRC of its own.
            Defaults::Rfc | Defaults::Linux => Params::default(),
            Defaults::Ns2 => Params::ns2(),
        }
    }

    fn set_ecn(params: &mut Params, ecn: Ecn) {
        params.ecn = ecn != Ecn::NotEct;
    }

    fn ecn(params: &Params) -> Ecn {
        if params.ecn { Ecn::Ect0 } else { Ecn::NotEct }
    }

    fn largest_payload(params: &Params) -> u32 {
        params.segment_size
    }

    fn header_size(params: &Params) -> u32 {
        params.header_bytes
    }

    fn reply_size(params: &Params) -> u32 {
        params.feedback_bytes
    }

    fn largest_message(params: &Params) -> Option<(&'static str, u32)> {
        Some(("packet-size", params.segment_size))
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
        Some(Outgoing { header, size: params.wire_bytes(&header).get() as u32, ecn: Tfrc::ecn(params) })
    }

    fn on_deadline(&mut self, now: Instant) {
        Sender::on_deadline(self, now);
    }

    fn round_trip_time(&self) -> Option<Duration> {
        Some(self.rtt()).filter(|rtt| !rtt.is_zero())
    }

    fn counts(&self) -> TransportCounts {
        let stats = self.stats();
        let refused_bytes = stats.dropped_at_sender * u64::from(self.params().segment_size);
        TransportCounts { retransmissions: 0, timeouts: stats.nofeedback, refused_bytes }
    }
}

impl ReceivingEnd for Box<Receiver> {
    type Data = Packet;
    type Reply = Feedback;

    fn on_data(&mut self, now: Instant, data: &Packet, marked: bool) -> Option<Outgoing<Feedback>> {
        self.on_packet(now, data, marked).map(|feedback| outgoing(self, feedback))
    }

    fn delivered(&self) -> u64 {
        Receiver::delivered(self)
    }

    fn deadline(&self) -> Instant {
        Receiver::deadline(self)
    }

    fn on_deadline(&mut self, now: Instant) -> Option<Outgoing<Feedback>> {
        Receiver::on_deadline(self, now).map(|feedback| outgoing(self, feedback))
    }

    fn loss_event_rate(&self) -> Option<f64> {
        Some(Receiver::loss_event_rate(self))
    }
}

fn outgoing(receiver: &Receiver, header: Feedback) -> Outgoing<Feedback> {
    Outgoing { header, size: receiver.params().feedback_bytes, ecn: Ecn::NotEct }
}
