//! A packet as a capture shows it: an observation of the simulator as IPv4 with TCP or UDP and correct checksums.
//!
//! The headers are complete. The payload would be zeros, so only a datagram's own header is kept. The length in the IPv4
//! header is that of these headers and the payload, so that sequence numbers and lengths agree. Where a scenario simulates
//! another size (ns-2's packets have no headers at all), [`Frame::length`] differs from it.

use crate::{CaptureError, payload};
use cutline_sim::{Address, AgentMessage, SeenHeader, SeenPacket};
use cutline_transport::endpoint::{DataHeader, ReplyHeader};
use cutline_transport::tcp;
use cutline_units::{DscpPool2, Ecn, HintCodec};
use etherparse::{
    IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptionElement::Noop, UdpHeader,
};

/// The point of a queue at which a packet was captured. Each point has separate addresses. So Wireshark treats a connection
/// that is captured at two points as two connections, and analyses each of them correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CapturePoint {
    /// The arrival at the queue.
    Arrival = 0,
    /// The departure from the queue.
    Departure = 1,
    /// The drop of a packet that the queue had stored.
    Shed = 2,
}

/// TCP's port at the sink.
pub(crate) const TCP_PORT: u16 = 50_000;
/// The port of agents, at both ends. No transport has it, because 3 is the kind of TFRC's replies; see [`payload`].
const MESSAGE_PORT: u16 = 50_003;
/// The source's port of the first flows; see [`Ends`].
const SOURCE_PORT: u16 = 49_152;
/// Number of bits of a flow's number in its addresses.
const FLOW_BITS: u32 = 21;
/// Number of bits of a node's number in its address.
const NODE_BITS: u32 = 18;
/// The sequence number of the first byte of both endpoints, as if SYN had the number 0.
const FIRST_SEQUENCE_NUMBER: u32 = 1;
/// The window of an endpoint with an unlimited buffer. Without a handshake there is no window scaling.
const OPEN_WINDOW: u16 = u16::MAX;

/// Payload is zeros.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The part of a packet that is written to the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The headers.
    pub(crate) bytes: Vec<u8>,
    /// The length in the IPv4 header, payload included, bytes.
    pub(crate) length: u32,
    payload: Vec<u8>,
}

/// Addresses and the source's port of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    from: [u8; 4],
    to: [u8; 4],
    source_port: u16,
}

impl Frame {
    /// Becomes a packet seen at a place; `window` is the window of its TCP receiver, `number` the IPv4 identification.
    ///
    /// # Errors
    /// The length, when IPv4 cannot carry it.
    pub(crate) fn fill(
        &mut self,
        packet: &SeenPacket,
        place: CapturePoint,
        window: Option<u64>,
        number: u64,
    ) -> Result<(), usize> {
        match &packet.header {
            SeenHeader::Data(DataHeader::Tcp(segment)) => {
                self.fill_tcp(packet, place, number, segment.len, |port| data_header(port, segment))
            }
            SeenHeader::Reply(ReplyHeader::Tcp(ack)) => {
                let window = window.map_or(OPEN_WINDOW, |bytes| bytes.min(u64::from(OPEN_WINDOW)) as u16);
                self.fill_tcp(packet, place, number, 0, |port| ack_header(port, window, ack))
            }
            _ => self.fill_udp(packet, place, number),
        }
    }

    fn fill_tcp(
        &mut self,
        packet: &SeenPacket,
        place: CapturePoint,
        number: u64,
        len: u32,
        header: impl Fn(u16) -> TcpHeader,
    ) -> Result<(), usize> {
        let ends = Ends::from_packet(packet, place);
        let mut tcp = header(ends.source_port);
        let ip = ip_header(packet, ends, IpNumber::TCP, number, tcp.header_len() + len as usize)?;
        tcp.checksum =
            tcp.calc_checksum_ipv4(&ip, &ZEROS[..len as usize]).expect("what IPv4 can carry, TCP can");
        self.begin(&ip);
        self.bytes.extend_from_slice(&tcp.to_bytes());
        Ok(())
    }

    fn fill_udp(&mut self, packet: &SeenPacket, place: CapturePoint, number: u64) -> Result<(), usize> {
        let ends = Ends::from_packet(packet, place);
        let sink_port = self.write_payload_header(&packet.header);
        let kept = self.payload.len();
        let simulated = (packet.size as usize).saturating_sub(Ipv4Header::MIN_LEN + UdpHeader::LEN);
        self.payload.resize(simulated.max(kept), 0);
        let (from, to) = from_and_to(is_reply(&packet.header), ends.source_port, sink_port);
        let ip = ip_header(packet, ends, IpNumber::UDP, number, UdpHeader::LEN + self.payload.len())?;
        let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, &self.payload)
            .expect("what IPv4 can carry, UDP can");
        self.begin(&ip);
        self.bytes.extend_from_slice(&udp.to_bytes());
        self.bytes.extend_from_slice(&self.payload[..kept]);
        Ok(())
    }

    /// Writes the beginning of a datagram's payload. Returns the port at its sink.
    fn write_payload_header(&mut self, header: &SeenHeader) -> u16 {
        self.payload.clear();
        match header {
            SeenHeader::Data(data) => payload::data(data, &mut self.payload),
            SeenHeader::Reply(reply) => payload::reply(reply, &mut self.payload),
            SeenHeader::Message(message) => {
                payload::message(message, &mut self.payload);
                MESSAGE_PORT
            }
        }
    }

    fn begin(&mut self, ip: &Ipv4Header) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&ip.to_bytes());
        self.length = u32::from(ip.total_len);
    }
}

impl Ends {
    /// Flows have addresses of 10.0.0.0/8, divided into eight parts: sources and sinks at each capture point. The rest of the
    /// address is the flow's number, counted from 1. Its bits beyond 21 are in the source's port.
    fn from_packet(packet: &SeenPacket, place: CapturePoint) -> Self {
        if let SeenHeader::Message(message) = &packet.header {
            return Self::from_message(message, place);
        }
        let flow = packet.flow.expect("what is no message belongs to a flow") + 1;
        let host = flow & ((1 << FLOW_BITS) - 1);
        let address = |part: u32| (10 << 24 | part << FLOW_BITS | host).to_be_bytes();
        let part = 2 * place as u32;
        let (from, to) = from_and_to(is_reply(&packet.header), address(part), address(part + 1));
        Self { from, to, source_port: SOURCE_PORT + (flow >> FLOW_BITS) as u16 }
    }
}

impl Ends {
    /// Agents have addresses of 172.16.0.0/12, divided into four parts, one for each capture point. The rest is the node.
    fn from_message(message: &AgentMessage, place: CapturePoint) -> Self {
        let address = |address: Address| {
            let node = address.node.0 & ((1 << NODE_BITS) - 1);
            (172 << 24 | 16 << 16 | (place as u32) << NODE_BITS | node).to_be_bytes()
        };
        Self { from: address(message.from), to: address(message.to), source_port: MESSAGE_PORT }
    }
}

/// Returns the sender's and the receiver's value of a packet: those of source and sink, swapped for a reply.
fn from_and_to<T>(reply: bool, source: T, sink: T) -> (T, T) {
    if reply { (sink, source) } else { (source, sink) }
}

fn is_reply(header: &SeenHeader) -> bool {
    matches!(header, SeenHeader::Reply(_))
}

fn ip_header(
    packet: &SeenPacket,
    ends: Ends,
    protocol: IpNumber,
    number: u64,
    payload: usize,
) -> Result<Ipv4Header, usize> {
    const TIME_TO_LIVE: u8 = 64;
    let too_long = |_| payload + Ipv4Header::MIN_LEN;
    let len = u16::try_from(payload).map_err(|_| payload + Ipv4Header::MIN_LEN)?;
    let mut ip = Ipv4Header::new(len, TIME_TO_LIVE, protocol, ends.from, ends.to).map_err(too_long)?;
    ip.identification = number as u16;
    // A hint beyond the code points of pool 2 is in the comment alone.
    let dscp = DscpPool2.encode(packet.hint).map_or(0, cutline_units::Dscp::get);
    ip.dscp = IpDscp::try_new(dscp).expect("a code point has six bits");
    ip.ecn = match (packet.marked, packet.ecn) {
        (true, _) | (false, Ecn::Ce) => IpEcn::CongestionExperienced,
        (false, Ecn::Ect0) => IpEcn::Ect0,
        (false, Ecn::Ect1) => IpEcn::Ect1,
        (false, Ecn::NotEct) => IpEcn::NotEct,
    };
    ip.header_checksum = ip.calc_header_checksum();
    Ok(ip)
}

fn data_header(source_port: u16, segment: &tcp::Segment) -> TcpHeader {
    let mut header = TcpHeader::new(source_port, TCP_PORT, on_wire(segment.seq), OPEN_WINDOW);
    header.ack = true;
    header.acknowledgment_number = FIRST_SEQUENCE_NUMBER;
    (header.cwr, header.fin) = (segment.cwr, segment.fin);
    header
}

fn ack_header(source_port: u16, window: u16, ack: &tcp::Ack) -> TcpHeader {
    let mut header = TcpHeader::new(TCP_PORT, source_port, FIRST_SEQUENCE_NUMBER, window);
    header.ack = true;
    header.acknowledgment_number = on_wire(ack.ack);
    header.ece = ack.ece;
    let mut ranges = ack.sack.ranges(ack.ack).map(|(start, end)| (on_wire(start), on_wire(end)));
    if let Some(first) = ranges.next() {
        let rest = [ranges.next(), ranges.next(), None];
        let options = [Noop, Noop, TcpOptionElement::SelectiveAcknowledgement(first, rest)];
        header.set_options(&options).expect("three ranges are within the room for options");
    }
    header
}

/// A 64-bit sequence number of the simulator as TCP's 32 bits.
fn on_wire(number: u64) -> u32 {
    FIRST_SEQUENCE_NUMBER.wrapping_add(number as u32)
}

impl CaptureError {
    pub(crate) fn too_long(flow: &str, size: usize) -> Self {
        Self::TooLong { flow: flow.to_owned(), size }
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
