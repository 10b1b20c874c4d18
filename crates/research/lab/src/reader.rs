//! Reads the frames between the hosts: the flow of each frame, and its role in the flow.
//!
//! The ports identify the flow: a source's port is [`FIRST_PORT`] plus the flow's number. On the links a packet has the size
//! that the scenario specifies, its payload plus the header of the flow's transport, and not its size in Linux. Otherwise a
//! scenario without headers (such as the papers') would have another load here than in the simulation. Only the packets of QoS
//! connections have their size in Linux, as those of the simulator's have.

use crate::NetworkSide;
use cutline_sim::{FlowSpec, InjectedPacket, PacketRole};
use cutline_units::{Hint, HintTable};
use cutline_wire::{ETHERNET, Headers};
use etherparse::{NetSlice, SlicedPacket, TcpSlice, TransportSlice};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The port of the first flow's source.
pub const FIRST_PORT: u16 = 20_000;
/// The port of all sinks.
pub const SINK_PORT: u16 = 5_001;
/// The port of the sinks of QoS connections.
pub const QOS_PORT: u16 = 5_002;
/// The headers of UDP and IPv4, bytes.
const UDP_HEADERS: u32 = 8 + 20;

/// Reads frames of all flows.
pub struct FrameReader {
    flows: Vec<FlowReader>,
    pairs: Vec<HostPair>,
    hints: HintTable,
}

/// Two hosts of which any packet is read.
struct HostPair {
    flow: usize,
    /// Host at the sources, and host at the sinks.
    hosts: [Ipv4Addr; 2],
    /// The hint of packets whose code point has no meaning; `None`: the usual hint of such packets.
    hint: Option<Hint>,
}

/// The properties and the state of a flow.
struct FlowReader {
    /// Size of a data packet's header, bytes.
    header: u32,
    /// Size of an acknowledgement or feedback, bytes.
    answer: u32,
    stream: Stream,
    /// Number of packets of its source with each hint, if it is a QoS connection.
    hints: BTreeMap<Hint, u64>,
}

/// The sequence numbers of a connection, unfolded.
#[derive(Default)]
struct Stream {
    /// The number of the first data byte, from the SYN.
    first: Option<u32>,
    /// The greatest so far, counted from the first.
    highest: u64,
}

impl FrameReader {
    /// Creates a reader for these flows.
    pub fn new(flows: &[FlowSpec]) -> Self {
        let reader = |flow: &FlowSpec| FlowReader {
            header: flow.transport.header_size(),
            answer: flow.transport.reply_size(),
            stream: Stream::default(),
            hints: BTreeMap::new(),
        };
        Self { flows: flows.iter().map(reader).collect(), pairs: Vec::new(), hints: HintTable::standard() }
    }

    /// Reads any IPv4 packet between two hosts as a packet of the flow with this index, in its size in Linux. `hint` is that of packets
    /// whose code point is 0, if they are to have another than anywhere.
    pub fn with_host_pair(mut self, flow: usize, hosts: [Ipv4Addr; 2], hint: Option<Hint>) -> Self {
        self.pairs.push(HostPair { flow, hosts, hint });
        self
    }

    /// Reads a frame that arrived from one side; `None` if it belongs to no flow.
    pub fn read(&mut self, from: NetworkSide, frame: &[u8], key: u32) -> Option<InjectedPacket> {
        let ip = Headers::parse(frame, 0).ip?;
        let packet = SlicedPacket::from_ip(frame.get(usize::from(ip.at)..)?).ok()?;
        if let Some(pair) = packet.net.as_ref().and_then(|net| self.pair_of(from, net)) {
            let (flow, size) = (pair.flow as u32, ip.length.max(1));
            let hint =
                pair.hint.filter(|_| ip.dscp().get() == 0).unwrap_or_else(|| self.hints.hint(ip.dscp()));
            let role = match from {
                // All of it counts as data, as its contents are unknown.
                NetworkSide::Sources => PacketRole::Datagram { len: size },
                NetworkSide::Sinks => PacketRole::Return,
            };
            return Some(InjectedPacket { flow, role, size, hint, ecn: ip.ecn(), key });
        }
        let transport = packet.transport?;
        let (number, is_connection) = number_of(from, &transport)?;
        let flow = self.flows.get_mut(usize::from(number))?;
        let hint = self.hints.hint(ip.dscp());
        if is_connection {
            let TransportSlice::Udp(datagram) = &transport else { return None };
            // Arrivals are known from the connection.
            let role = if from == NetworkSide::Sources { PacketRole::Control } else { PacketRole::Return };
            if from == NetworkSide::Sources {
                *flow.hints.entry(hint).or_default() += 1;
            }
            let size = datagram.payload().len() as u32 + UDP_HEADERS;
            return Some(InjectedPacket { flow: u32::from(number), role, size, hint, ecn: ip.ecn(), key });
        }
        let role = match (from, &transport) {
            (NetworkSide::Sinks, _) => PacketRole::Return,
            (NetworkSide::Sources, TransportSlice::Tcp(segment)) => flow.stream.role(segment),
            (NetworkSide::Sources, TransportSlice::Udp(datagram)) => {
                PacketRole::Datagram { len: datagram.payload().len() as u32 }
            }
            _ => return None,
        };
        let size = match role {
            PacketRole::Segment { len, .. } | PacketRole::Datagram { len } => len + flow.header,
            PacketRole::Control | PacketRole::Return => flow.answer,
        };
        Some(InjectedPacket { flow: u32::from(number), role, size: size.max(1), hint, ecn: ip.ecn(), key })
    }

    fn pair_of(&self, from: NetworkSide, packet: &NetSlice<'_>) -> Option<&HostPair> {
        let NetSlice::Ipv4(packet) = packet else { return None };
        let (source, destination) = (packet.header().source_addr(), packet.header().destination_addr());
        let hosts = match from {
            NetworkSide::Sources => [source, destination],
            NetworkSide::Sinks => [destination, source],
        };
        self.pairs.iter().find(|pair| pair.hosts == hosts)
    }

    /// Returns the number of packets of a QoS connection's source with each hint.
    pub fn hints_of(&self, flow: usize) -> BTreeMap<Hint, u64> {
        self.flows.get(flow).map(|flow| flow.hints.clone()).unwrap_or_default()
    }
}

/// Returns the number of a frame's flow, and whether it is a QoS connection.
fn number_of(from: NetworkSide, transport: &TransportSlice<'_>) -> Option<(u16, bool)> {
    let (source, destination) = match transport {
        TransportSlice::Tcp(tcp) => (tcp.source_port(), tcp.destination_port()),
        TransportSlice::Udp(udp) => (udp.source_port(), udp.destination_port()),
        _ => return None,
    };
    let (of_source, of_sink) = match from {
        NetworkSide::Sources => (source, destination),
        NetworkSide::Sinks => (destination, source),
    };
    let is_connection = of_sink == QOS_PORT;
    let number = (is_connection || of_sink == SINK_PORT).then(|| of_source.checked_sub(FIRST_PORT))??;
    Some((number, is_connection))
}

impl Stream {
    /// Returns the role of a segment from the source. A SYN restarts the count of sequence numbers. Segments before the first
    /// SYN count as control packets.
    fn role(&mut self, segment: &TcpSlice<'_>) -> PacketRole {
        if segment.syn() {
            *self = Self { first: Some(segment.sequence_number().wrapping_add(1)), highest: 0 };
        }
        let len = segment.payload().len() as u32;
        let Some(first) = self.first.filter(|_| len > 0) else { return PacketRole::Control };
        let seq = self.unfold(segment.sequence_number().wrapping_sub(first));
        self.highest = self.highest.max(seq);
        PacketRole::Segment { seq, len }
    }

    /// Returns the number with these low bits that is nearest to the greatest so far.
    fn unfold(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.highest as u32) as i32;
        self.highest.saturating_add_signed(i64::from(ahead))
    }
}

/// The longest header that Ethernet, IPv4 and TCP put before the payload, bytes.
pub const LONGEST_HEADERS: u32 = ETHERNET as u32 + 60 + 60;

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_scenario::ScenarioFile;
    use cutline_units::{Dscp, Ecn, Hint};
    use etherparse::PacketBuilder;

    const SCENARIO: &str = r#"
name = "reader"
duration = "10 s"
[dumbbell]
rate = "1 Mbit/s"
delay = "10 ms"
access-rate = "10 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "drop-tail", limit = "10 packets" }
[[flow]]
name = "tcp"
transport = { protocol = "tcp", mss = "500 B", header = "0 B" }
app = { kind = "bulk" }
[[flow]]
name = "udp"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"#;

    fn reader() -> FrameReader {
        let scenario = ScenarioFile::parse(SCENARIO, "reader.toml").unwrap().scenario().unwrap();
        FrameReader::new(scenario.network().unwrap().flows())
    }

    fn tcp(from: NetworkSide, seq: u32, syn: bool, payload: usize) -> Vec<u8> {
        let (source, sink) = (FIRST_PORT, SINK_PORT);
        let (source, sink) = if from == NetworkSide::Sources { (source, sink) } else { (sink, source) };
        let builder = PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([10, 1, 0, 1], [10, 2, 0, 1], 64);
        let builder = builder.tcp(source, sink, seq, 1000);
        let builder = if syn { builder.syn() } else { builder };
        let mut frame = Vec::new();
        builder.write(&mut frame, &vec![0; payload]).unwrap();
        frame
    }

    #[test]
    fn sequence_numbers_count_from_the_first_byte_and_beyond_32_bits() {
        let mut reader = reader();
        let role = |reader: &mut FrameReader, seq, syn, len| {
            reader.read(NetworkSide::Sources, &tcp(NetworkSide::Sources, seq, syn, len), 0).unwrap()
        };
        assert_eq!(role(&mut reader, u32::MAX - 499, true, 0).role, PacketRole::Control);
        let first = role(&mut reader, u32::MAX - 498, false, 500);
        assert_eq!((first.role, first.size), (PacketRole::Segment { seq: 0, len: 500 }, 500));
        // Over the fold, and back for a retransmission.
        assert_eq!(role(&mut reader, 1, false, 500).role, PacketRole::Segment { seq: 500, len: 500 });
        assert_eq!(
            role(&mut reader, u32::MAX - 498, false, 500).role,
            PacketRole::Segment { seq: 0, len: 500 }
        );
        let mut expected = 500_u64;
        for step in 1..=6_u32 {
            expected += 1 << 30;
            let seq = 1_u32.wrapping_add(step.wrapping_mul(1 << 30));
            assert_eq!(
                role(&mut reader, seq, false, 500).role,
                PacketRole::Segment { seq: expected, len: 500 }
            );
        }
        assert_eq!(role(&mut reader, 7, false, 0).role, PacketRole::Control);
    }

    #[test]
    fn returning_packets_are_answers_and_unknown_packets_are_of_no_flow() {
        let mut reader = reader();
        let answer = reader.read(NetworkSide::Sinks, &tcp(NetworkSide::Sinks, 5, false, 0), 3).unwrap();
        assert_eq!((answer.role, answer.size, answer.flow, answer.key), (PacketRole::Return, 40, 0, 3));
        assert_eq!(reader.read(NetworkSide::Sources, &tcp(NetworkSide::Sinks, 5, false, 0), 0), None);
        assert_eq!(reader.read(NetworkSide::Sources, &[0; 60], 0), None);
    }

    #[test]
    fn packets_of_a_qos_connection_have_their_size_in_both_directions_and_their_hints_are_counted() {
        let mut reader = reader();
        let udp = |source, sink, len: usize| {
            let builder = PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([10, 1, 0, 2], [10, 2, 0, 2], 64);
            let mut frame = Vec::new();
            builder.udp(source, sink).write(&mut frame, &vec![0; len]).unwrap();
            frame
        };
        let source = FIRST_PORT + 1;
        let sent = reader.read(NetworkSide::Sources, &udp(source, QOS_PORT, 184), 0).unwrap();
        assert_eq!((sent.flow, sent.role, sent.size), (1, PacketRole::Control, 212));
        let report = reader.read(NetworkSide::Sinks, &udp(QOS_PORT, source, 204), 0).unwrap();
        assert_eq!((report.flow, report.role, report.size), (1, PacketRole::Return, 232));
        assert_eq!(reader.hints_of(1), BTreeMap::from([(sent.hint, 1)]));
        assert!(reader.hints_of(0).is_empty());
        assert_eq!(reader.read(NetworkSide::Sources, &tcp(NetworkSide::Sinks, 5, false, 0), 0), None);
    }

    #[test]
    fn any_packet_between_the_hosts_of_a_pair_is_the_pairs() {
        let hosts = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 2, 0, 2)];
        let mut reader = reader().with_host_pair(1, hosts, None);
        let ping = |source: Ipv4Addr, destination: Ipv4Addr| {
            let builder =
                PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4(source.octets(), destination.octets(), 64);
            let mut frame = Vec::new();
            builder.icmpv4_echo_request(1, 1).write(&mut frame, &[0; 56]).unwrap();
            frame
        };
        let there = reader.read(NetworkSide::Sources, &ping(hosts[0], hosts[1]), 0).unwrap();
        assert_eq!((there.flow, there.role, there.size), (1, PacketRole::Datagram { len: 84 }, 84));
        let back = reader.read(NetworkSide::Sinks, &ping(hosts[1], hosts[0]), 0).unwrap();
        assert_eq!((back.flow, back.role), (1, PacketRole::Return));
        assert_eq!(
            reader.read(NetworkSide::Sinks, &ping(hosts[0], hosts[1]), 0),
            None,
            "from the wrong side"
        );
        assert_eq!(reader.read(NetworkSide::Sources, &ping(hosts[0], Ipv4Addr::new(10, 2, 0, 1)), 0), None);
        // What says nothing has the hint of the pair, if it has one; other packets have their own.
        let mut reader = self::reader().with_host_pair(1, hosts, Some(Hint::from_level(2)));
        let mut frame = ping(hosts[0], hosts[1]);
        let mut hint = |frame: &[u8]| reader.read(NetworkSide::Sources, frame, 0).unwrap().hint.level();
        assert_eq!(hint(&frame), 2);
        let mut ip = Headers::parse(&frame, 0).ip.unwrap();
        cutline_wire::set_dscp(&mut frame, &mut ip, "hint-9".parse::<Dscp>().unwrap());
        assert_eq!(hint(&frame), 9);
        // Other flows are read as before.
        assert_eq!(
            reader.read(NetworkSide::Sources, &tcp(NetworkSide::Sources, 9, true, 0), 0).unwrap().flow,
            0
        );
    }

    #[test]
    fn hint_and_ecn_are_read_from_the_packet() {
        let mut reader = reader();
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([10, 1, 0, 2], [10, 2, 0, 2], 64);
        builder.udp(FIRST_PORT + 1, SINK_PORT).write(&mut frame, &[0; 160]).unwrap();
        let mut ip = Headers::parse(&frame, 0).ip.unwrap();
        cutline_wire::set_dscp(&mut frame, &mut ip, "hint-3".parse::<Dscp>().unwrap());
        let read = reader.read(NetworkSide::Sources, &frame, 0).unwrap();
        assert_eq!((read.hint, read.ecn, read.flow), (Hint::from_level(3), Ecn::NotEct, 1));
        assert_eq!((read.role, read.size), (PacketRole::Datagram { len: 160 }, 188));
        cutline_wire::set_ce(&mut frame, &mut ip);
        assert!(reader.read(NetworkSide::Sources, &frame, 0).unwrap().ecn.is_capable());
    }
}
