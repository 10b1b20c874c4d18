use super::*;
use cutline_transport::{tfrc, udp};
use cutline_units::{Dscp, Duration, Hint, Instant};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

fn segment(seq: u64, len: u32) -> SeenHeader {
    let sent_at = Instant::from_nanos(5);
    SeenHeader::Data(DataHeader::Tcp(tcp::Segment {
        seq,
        sent_at,
        len,
        retransmission: false,
        cwr: true,
        fin: false,
    }))
}

fn packet(header: SeenHeader, size: u32) -> SeenPacket {
    SeenPacket { flow: Some(4), size, hint: Hint::from_level(6), ecn: Ecn::Ect0, marked: false, header }
}

fn filled(packet: &SeenPacket, place: CapturePoint, window: Option<u64>) -> Frame {
    let mut frame = Frame::default();
    frame.fill(packet, place, window, 70_000).unwrap();
    frame
}

/// The frame with the payload that was left out, so that it can be checked as a whole.
fn whole(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.bytes.clone();
    bytes.resize(frame.length as usize, 0);
    bytes
}

/// Parses a frame; its checksums must be right.
fn parsed<T>(frame: &Frame, look: impl Fn(Ipv4Header, TransportSlice<'_>) -> T) -> T {
    let bytes = whole(frame);
    let sliced = SlicedPacket::from_ip(&bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("it is IPv4") };
    let ip = ip.header().to_header();
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    let transport = sliced.transport.expect("TCP or UDP");
    match &transport {
        TransportSlice::Tcp(tcp) => {
            let header = tcp.to_header();
            assert_eq!(Ok(header.checksum), header.calc_checksum_ipv4(&ip, tcp.payload()));
        }
        TransportSlice::Udp(udp) => {
            let header = udp.to_header();
            assert_eq!(Ok(header.checksum), header.calc_checksum_ipv4(&ip, udp.payload()));
        }
        _ => panic!("TCP or UDP"),
    }
    look(ip, transport)
}

fn tcp_of(transport: &TransportSlice<'_>) -> TcpHeader {
    let TransportSlice::Tcp(tcp) = transport else { panic!("TCP") };
    tcp.to_header()
}

#[test]
fn a_segment_has_its_numbers_and_its_length() {
    let frame = filled(&packet(segment(3000, 1000), 1040), CapturePoint::Arrival, None);
    assert_eq!((frame.length, frame.bytes.len()), (1040, 40));
    parsed(&frame, |ip, transport| {
        let tcp = tcp_of(&transport);
        assert_eq!((tcp.sequence_number, tcp.acknowledgment_number), (3001, 1));
        assert!(tcp.ack && tcp.cwr && !tcp.fin && !tcp.syn && !tcp.ece);
        assert_eq!((tcp.source_port, tcp.destination_port), (49_152, 50_000));
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 5], [10, 32, 0, 5]));
        assert_eq!(ip.identification, 70_000u32 as u16);
    });
}

#[test]
fn sequence_numbers_wrap() {
    let frame = filled(&packet(segment((1 << 32) + 9, 1), 41), CapturePoint::Arrival, None);
    parsed(&frame, |_, transport| assert_eq!(tcp_of(&transport).sequence_number, 10));
}

#[test]
fn the_code_point_has_the_hint_and_the_ecn_bits_of_the_packet() {
    let look = |hint, ecn, marked| {
        let packet = SeenPacket { hint: Hint::from_level(hint), ecn, marked, ..packet(segment(0, 9), 49) };
        parsed(&filled(&packet, CapturePoint::Arrival, None), |ip, _| (ip.dscp.value(), ip.ecn.value()))
    };
    for level in 1..=16 {
        let (dscp, ecn) = look(level, Ecn::Ect0, false);
        let read = DscpPool2.decode(Dscp::from_traffic_class(dscp << 2));
        assert_eq!((read, ecn), (Some(Hint::from_level(level)), 0b10));
    }
    assert_eq!(look(17, Ecn::NotEct, false), (0, 0b00), "pool 2 has no seventeenth level");
    assert_eq!(look(1, Ecn::Ect0, true), (0b11, 0b11));
}

#[test]
fn an_acknowledgement_has_window_and_blocks() {
    let sack = tcp::SackBlocks::from_ranges(2000, [(5000, 6000), (3000, 4000)]);
    let ack = |sack| {
        SeenHeader::Reply(ReplyHeader::Tcp(tcp::Ack {
            ack: 2000,
            echo: Instant::ZERO,
            sack,
            ece: true,
            marked: 0,
        }))
    };
    let frame = filled(&packet(ack(sack), 40), CapturePoint::Departure, Some(20_000));
    assert_eq!(frame.length, 40 + 20, "two blocks and what aligns them");
    parsed(&frame, |ip, transport| {
        let tcp = tcp_of(&transport);
        assert_eq!((tcp.acknowledgment_number, tcp.sequence_number, tcp.window_size), (2001, 1, 20_000));
        assert!(tcp.ece && tcp.ack);
        let blocks = tcp.options_iterator().find_map(|option| match option {
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, rest)) => Some((first, rest[0])),
            _ => None,
        });
        assert_eq!(blocks, Some(((5001, 6001), Some((3001, 4001)))));
        assert_eq!((ip.source, ip.destination), ([10, 96, 0, 5], [10, 64, 0, 5]), "from the sink");
        assert_eq!((tcp.source_port, tcp.destination_port), (50_000, 49_152));
    });
    let plain = filled(&packet(ack(tcp::SackBlocks::NONE), 40), CapturePoint::Arrival, None);
    parsed(&plain, |_, transport| assert_eq!(tcp_of(&transport).window_size, 65_535));
}

#[test]
fn datagrams_keep_their_own_header_alone() {
    let header = tfrc::Packet { seq: 7, sent_at: Instant::ZERO, rtt: Duration::ZERO, len: 160 };
    let frame = filled(&packet(SeenHeader::Data(DataHeader::Tfrc(header)), 200), CapturePoint::Arrival, None);
    assert_eq!((frame.length, frame.bytes.len()), (200, 20 + 8 + 32));
    parsed(&frame, |_, transport| {
        let TransportSlice::Udp(udp) = transport else { panic!("UDP") };
        assert_eq!((udp.source_port(), udp.destination_port()), (49_152, 50_002));
        assert_eq!((udp.payload().len(), &udp.payload()[..4]), (172, b"CUTL".as_slice()));
    });
    let datagram = udp::Datagram { seq: 7, sent_at: Instant::ZERO, len: 4 };
    let small = filled(&packet(SeenHeader::Data(DataHeader::Udp(datagram)), 32), CapturePoint::Arrival, None);
    assert_eq!(small.length, 20 + 8 + 24, "no shorter than its own header");
    parsed(&small, |ip, _| assert_eq!(ip.total_len, 52));
}

#[test]
fn feedback_comes_from_the_sink() {
    let feedback = tfrc::Feedback { echo: Instant::ZERO, t_delay: Duration::ZERO, x_recv: 1.0, p: 0.0 };
    let frame = filled(&packet(SeenHeader::Reply(ReplyHeader::Tfrc(feedback)), 40), CapturePoint::Shed, None);
    parsed(&frame, |ip, transport| {
        let TransportSlice::Udp(udp) = transport else { panic!("UDP") };
        assert_eq!((udp.source_port(), udp.destination_port()), (50_002, 49_152));
        assert_eq!((ip.source, ip.destination), ([10, 160, 0, 5], [10, 128, 0, 5]));
    });
}

#[test]
fn packets_that_ipv4_cannot_carry_are_refused() {
    let mut frame = Frame::default();
    let packet = packet(segment(0, 65_535), 65_575);
    assert_eq!(frame.fill(&packet, CapturePoint::Arrival, None, 1), Err(65_575));
}

#[test]
fn no_two_flows_share_addresses_and_port() {
    let ends = |flow| {
        let packet = SeenPacket { flow: Some(flow), ..packet(segment(0, 1), 41) };
        Ends::from_packet(&packet, CapturePoint::Departure)
    };
    let last = (1 << 28) - 2;
    assert_eq!(ends(0).from, [10, 64, 0, 1]);
    assert_eq!(ends((1 << 21) - 1), Ends { source_port: 49_153, from: [10, 64, 0, 0], to: [10, 96, 0, 0] });
    assert_ne!(ends(1 << 21), ends(0));
    assert_eq!(ends(last).source_port, 49_152 + 127);
}
