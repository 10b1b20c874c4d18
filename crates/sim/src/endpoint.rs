//! The two ends of a flow: any transport's sender and receiver behind one face.

use crate::calendar::Handle;
use crate::network::TransportSpec;
use crate::outcome::TransportCounts;
use crate::packet::{Header, Packet, Reading, WideHeader, WideHeaders};
use cutline_transport::app::Write;
use cutline_transport::{tcp, tfrc, udp};
use cutline_units::{Bytes, Instant};

/// A sender. TFRC's is boxed: it is large, and rare beside TCP's.
#[expect(
    clippy::large_enum_variant,
    reason = "TCP is what most flows are: a pointer more would cost each of its packets"
)]
pub(crate) enum Source {
    Tcp(tcp::Sender),
    Tfrc(Box<tfrc::Sender>),
    Udp(Box<udp::Sender>, udp::Params),
}

/// A receiver.
pub(crate) enum Sink {
    Tcp(tcp::Receiver),
    Tfrc(Box<tfrc::Receiver>),
    Udp(udp::Receiver),
}

/// A packet to be sent, its header and its size on the wire in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    pub(crate) size: u32,
    pub(crate) ecn_capable: bool,
    pub(crate) header: Header,
    /// The header, where it is too long for the packet.
    pub(crate) wide: Option<WideHeader>,
}

/// What a data packet's arrival comes to.
pub(crate) struct Receipt {
    /// When the packet left its source.
    pub(crate) sent_at: Instant,
    /// What goes back at once, if anything does.
    pub(crate) reply: Option<Outgoing>,
}

impl Outgoing {
    #[inline]
    fn of_ack(size: u32, ack: tcp::Ack) -> Self {
        match Header::of_ack(&ack) {
            Some(header) => Self { size, ecn_capable: false, header, wide: None },
            None => Self::wide(size, false, WideHeader::Ack(ack)),
        }
    }

    pub(crate) fn wide(size: u32, ecn_capable: bool, header: WideHeader) -> Self {
        Self { size, ecn_capable, header: Header::WIDE, wide: Some(header) }
    }
}

const fn wire(size: Bytes) -> u32 {
    size.get() as u32
}

impl Source {
    pub(crate) fn new(spec: &TransportSpec, now: Instant) -> Self {
        match spec {
            TransportSpec::Tcp(params) => Self::Tcp(tcp::Sender::new(params, now)),
            TransportSpec::Tfrc(params) => Self::Tfrc(Box::new(tfrc::Sender::new(params, now))),
            TransportSpec::Udp(params) => Self::Udp(Box::new(udp::Sender::new(params)), *params),
        }
    }

    /// The application writes.
    pub(crate) fn write(&mut self, write: Write) {
        match (self, write) {
            (Self::Tcp(tcp), Write::Bytes(bytes)) => {
                // What found no room is counted by the sender as refused.
                tcp.write(bytes);
            }
            (Self::Tcp(tcp), Write::Unlimited) => tcp.write_unlimited(),
            (Self::Tfrc(tfrc), Write::Bytes(bytes)) => {
                tfrc.write(bytes);
            }
            (Self::Tfrc(tfrc), Write::Unlimited) => tfrc.write_unlimited(),
            (Self::Udp(udp, _), Write::Bytes(bytes)) => udp.write(bytes),
            (Self::Udp(..), Write::Unlimited) => unreachable!("a network refuses bulk data over UDP"),
        }
    }

    /// The application stops: what was written is still sent, an endless supply ends.
    pub(crate) fn end_supply(&mut self) {
        match self {
            Self::Tcp(tcp) => tcp.end_supply(),
            Self::Tfrc(tfrc) => tfrc.end_supply(),
            Self::Udp(..) => {}
        }
    }

    /// An acknowledgement or feedback arrives.
    #[inline]
    pub(crate) fn receive(&mut self, now: Instant, handle: Handle, header: &Header, wide: &WideHeaders) {
        match (self, header.read()) {
            (Self::Tcp(tcp), Reading::Ack(ack)) => tcp.on_ack(now, &ack),
            (source, Reading::Wide) => source.receive_wide(now, wide.get(handle)),
            _ => unreachable!("a flow's two ends speak the same protocol"),
        }
    }

    fn receive_wide(&mut self, now: Instant, header: &WideHeader) {
        match (self, header) {
            (Self::Tcp(tcp), WideHeader::Ack(ack)) => tcp.on_ack(now, ack),
            (Self::Tfrc(tfrc), WideHeader::TfrcFeedback(feedback)) => tfrc.on_feedback(now, feedback),
            _ => unreachable!("a flow's two ends speak the same protocol"),
        }
    }

    /// The next packet that may leave now.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant) -> Option<Outgoing> {
        match self {
            Self::Tcp(tcp) => {
                let segment = tcp.transmit(now)?;
                let params = tcp.params();
                let (size, ecn_capable) = (wire(params.wire_bytes(&segment)), params.ecn_capable(&segment));
                Some(Outgoing { size, ecn_capable, header: Header::of_segment(&segment), wide: None })
            }
            Self::Tfrc(tfrc) => {
                let packet = tfrc.transmit(now)?;
                let params = tfrc.params();
                let size = wire(params.wire_bytes(&packet));
                Some(Outgoing::wide(size, params.ecn, WideHeader::TfrcPacket(packet)))
            }
            Self::Udp(udp, params) => {
                let datagram = udp.transmit(now)?;
                let size = wire(params.wire_bytes(&datagram));
                Some(Outgoing {
                    size,
                    ecn_capable: false,
                    header: Header::of_datagram(&datagram),
                    wide: None,
                })
            }
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.deadline(),
            Self::Tfrc(tfrc) => tfrc.deadline(),
            Self::Udp(udp, _) => udp.deadline(),
        }
    }

    pub(crate) fn on_deadline(&mut self, now: Instant) {
        match self {
            Self::Tcp(tcp) => tcp.on_deadline(now),
            Self::Tfrc(tfrc) => tfrc.on_deadline(now),
            Self::Udp(udp, _) => udp.on_deadline(now),
        }
    }

    pub(crate) fn counts(&self) -> TransportCounts {
        match self {
            Self::Tcp(tcp) => {
                let stats = tcp.stats();
                TransportCounts {
                    retransmissions: u64::from(stats.retransmissions),
                    timeouts: u64::from(stats.timeouts),
                    refused_bytes: stats.refused_bytes,
                }
            }
            Self::Tfrc(tfrc) => {
                let stats = tfrc.stats();
                let refused_bytes = stats.dropped_at_sender * u64::from(tfrc.params().segment_size);
                TransportCounts { retransmissions: 0, timeouts: stats.nofeedback, refused_bytes }
            }
            Self::Udp(..) => TransportCounts::default(),
        }
    }
}

impl Sink {
    pub(crate) fn new(spec: &TransportSpec) -> Self {
        match spec {
            TransportSpec::Tcp(params) => Self::Tcp(tcp::Receiver::new(params)),
            TransportSpec::Tfrc(params) => Self::Tfrc(Box::new(tfrc::Receiver::new(params))),
            TransportSpec::Udp(_) => Self::Udp(udp::Receiver::default()),
        }
    }

    /// Of a flow whose ends are outside, where TFRC's packets are datagrams like others.
    pub(crate) fn outside(spec: &TransportSpec) -> Self {
        match spec {
            TransportSpec::Tcp(params) => Self::Tcp(tcp::Receiver::new(params)),
            TransportSpec::Tfrc(_) | TransportSpec::Udp(_) => Self::Udp(udp::Receiver::default()),
        }
    }

    /// A data packet arrives.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        handle: Handle,
        packet: &Packet,
        wide: &WideHeaders,
    ) -> Receipt {
        match (self, packet.header.read()) {
            (Self::Tcp(tcp), Reading::Segment(segment)) => {
                let reply = tcp.on_segment(now, &segment, packet.marked).map(|ack| acknowledgement(tcp, ack));
                Receipt { sent_at: segment.sent_at, reply }
            }
            (Self::Udp(udp), Reading::Datagram(datagram)) => {
                udp.on_datagram(&datagram, packet.marked);
                Receipt { sent_at: datagram.sent_at, reply: None }
            }
            (Self::Tfrc(tfrc), Reading::Wide) => {
                let WideHeader::TfrcPacket(data) = wide.get(handle) else {
                    unreachable!("a TFRC sender sends TFRC packets")
                };
                let reply = tfrc.on_packet(now, data, packet.marked).map(|feedback| report(tfrc, feedback));
                Receipt { sent_at: data.sent_at, reply }
            }
            _ => unreachable!("a flow's two ends speak the same protocol"),
        }
    }

    /// Payload bytes that the application has got so far: in order for TCP.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        match self {
            Self::Tcp(tcp) => tcp.delivered(),
            Self::Tfrc(tfrc) => tfrc.delivered(),
            Self::Udp(udp) => udp.delivered(),
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        match self {
            Self::Tcp(tcp) => tcp.deadline(),
            Self::Tfrc(tfrc) => tfrc.deadline(),
            Self::Udp(_) => Instant::FAR_FUTURE,
        }
    }

    /// A delayed acknowledgement or a report is due.
    pub(crate) fn on_deadline(&mut self, now: Instant) -> Option<Outgoing> {
        match self {
            Self::Tcp(tcp) => tcp.on_deadline(now).map(|ack| acknowledgement(tcp, ack)),
            Self::Tfrc(tfrc) => tfrc.on_deadline(now).map(|feedback| report(tfrc, feedback)),
            Self::Udp(_) => None,
        }
    }
}

#[inline]
fn acknowledgement(receiver: &tcp::Receiver, ack: tcp::Ack) -> Outgoing {
    Outgoing::of_ack(receiver.params().ack_bytes, ack)
}

fn report(receiver: &tfrc::Receiver, feedback: tfrc::Feedback) -> Outgoing {
    Outgoing::wide(receiver.params().feedback_bytes, false, WideHeader::TfrcFeedback(feedback))
}
