//! Tests of the capture: structure, headers, comments, and the counts of the run.

use crate::common::{SEED, captured, scenario};
use cutline_scenario::SimulateError;
use cutline_trace::{Capture, CaptureError, link_named, simulate_captured, with_return};
use cutline_units::{Dscp, DscpPool2, Hint, HintCodec};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

struct File {
    interfaces: Vec<InterfaceDescriptionBlock<'static>>,
    packets: Vec<EnhancedPacketBlock<'static>>,
}

fn read(bytes: &[u8]) -> File {
    let mut reader = PcapNgReader::new(bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("every block is complete").into_owned() {
            packets.push(packet);
        }
    }
    File { interfaces: reader.interfaces().to_vec(), packets }
}

fn comment<'p>(packet: &'p EnhancedPacketBlock<'_>) -> BTreeMap<&'p str, &'p str> {
    let [EnhancedPacketOption::Comment(text)] = packet.options.as_slice() else { panic!("one comment") };
    text.split(' ').map(|pair| pair.split_once('=').expect("key=value")).collect()
}

fn count(file: &File, interface: u32, key: &str, value: &str) -> u64 {
    let hits = file.packets.iter().filter(|packet| packet.interface_id == interface);
    hits.filter(|packet| comment(packet).get(key) == Some(&value)).count() as u64
}

fn total(file: &File, interface: u32) -> u64 {
    file.packets.iter().filter(|packet| packet.interface_id == interface).count() as u64
}

#[test]
fn there_is_an_interface_for_each_capture_point() {
    let (bytes, _) = captured(&scenario("pie"));
    let file = read(&bytes);
    let name = |interface: &InterfaceDescriptionBlock<'_>| {
        assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)), "nanoseconds");
        assert!(interface.options.contains(&InterfaceDescriptionOption::IfSpeed(2_000_000)));
        interface.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
            _ => None,
        })
    };
    let names: Vec<String> = file.interfaces.iter().filter_map(name).collect();
    let expected = ["arrivals", "departures", "shed"];
    let expected = ["r1->r2", "r2->r1"].map(|link| expected.map(|place| format!("{link} {place}")));
    assert_eq!(names, expected.concat());
}

/// PIE drops arrivals, CoDel drops and marks at departure, FQ-CoDel also sheds stored packets when it is full.
#[test]
fn counts_are_those_of_the_run() {
    for aqm in ["pie", "codel", "fq-codel", "drop-tail"] {
        let (bytes, run) = captured(&scenario(aqm));
        let file = read(&bytes);
        assert_eq!(run.queues.len(), 2);
        for (base, queue) in [0, 3].into_iter().zip(&run.queues) {
            let (arrivals, departures, shed) = (base, base + 1, base + 2);
            assert_eq!(total(&file, arrivals), queue.arrived, "{aqm} {}", queue.link);
            assert_eq!(total(&file, departures), queue.departed, "{aqm} {}", queue.link);
            let dropped = count(&file, arrivals, "verdict", "dropped");
            assert_eq!(dropped + total(&file, shed), queue.dropped, "{aqm} {}", queue.link);
            let full = ["overflow"]
                .map(|why| count(&file, arrivals, "reason", why) + count(&file, shed, "reason", why));
            assert_eq!(full, [queue.dropped_full], "{aqm} {}", queue.link);
        }
        let bottleneck = &run.queues[0];
        assert!(bottleneck.dropped > 0, "{aqm}");
        assert_eq!(bottleneck.marked > 0, aqm != "drop-tail", "{aqm}");
        if aqm == "codel" {
            assert_eq!(count(&file, 1, "verdict", "marked"), bottleneck.marked);
            assert!(total(&file, 2) > 0, "CoDel drops at the head");
        }
        if aqm == "pie" {
            assert_eq!(count(&file, 0, "verdict", "marked"), bottleneck.marked);
        }
    }
}

#[test]
fn every_packet_has_the_headers_of_its_comment() {
    let (bytes, _) = captured(&scenario("pie"));
    let file = read(&bytes);
    let mut last = std::time::Duration::ZERO;
    for packet in &file.packets {
        assert!(packet.timestamp >= last, "packets come in the order of time");
        last = packet.timestamp;
        let mut whole = packet.data.to_vec();
        whole.resize(packet.original_len as usize, 0);
        let sliced = SlicedPacket::from_ip(&whole).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let said = comment(packet);
        let hint = DscpPool2.decode(Dscp::from_traffic_class(header.dscp.value() << 2));
        assert_eq!(hint.map(Hint::level), said["hint"].parse().ok());
        assert_eq!(header.identification, said["packet"].parse::<u64>().unwrap() as u16);
        let may_be_marked = said["flow"] == "ecn" && packet.interface_id < 3;
        assert!(may_be_marked || header.ecn.value() == 0, "{said:?}");
        match sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let tcp_header = tcp.to_header();
                assert_eq!(Ok(tcp_header.checksum), tcp_header.calc_checksum_ipv4(&header, tcp.payload()));
                assert!(said["flow"].starts_with("bulk") || said["flow"] == "ecn");
                let reply = packet.interface_id >= 3;
                assert_eq!(reply && said["flow"] == "ecn", tcp_header.window_size == 20_000);
            }
            Some(TransportSlice::Udp(udp)) => {
                let udp_header = udp.to_header();
                assert_eq!(Ok(udp_header.checksum), udp_header.calc_checksum_ipv4(&header, udp.payload()));
                assert!(["audio", "game"].contains(&said["flow"]) && udp.payload().starts_with(b"CUTL"));
            }
            _ => panic!("TCP or UDP"),
        }
    }
}

/// A departing packet has CE if the comment says that the queue marked it, and its waiting time agrees with
/// the comment.
#[test]
fn arrival_and_departure_of_a_packet_agree() {
    let (bytes, _) = captured(&scenario("pie"));
    let file = read(&bytes);
    let arrivals: BTreeMap<&str, &EnhancedPacketBlock<'_>> = file
        .packets
        .iter()
        .filter(|packet| packet.interface_id == 0)
        .map(|packet| (comment(packet)["packet"], packet))
        .collect();
    let mut marked = 0;
    for departure in file.packets.iter().filter(|packet| packet.interface_id == 1) {
        let said = comment(departure);
        let arrival = arrivals[said["packet"]];
        let before = comment(arrival);
        assert_eq!((said["flow"], said["verdict"]), (before["flow"], before["verdict"]));
        let waited = departure.timestamp.checked_sub(arrival.timestamp).expect("it came first").as_nanos();
        assert_eq!(said["sojourn_ms"], format!("{}.{:06}", waited / 1_000_000, waited % 1_000_000));
        let ecn = |packet: &EnhancedPacketBlock<'_>| packet.data[1] & 0b11;
        let expected = if said["verdict"] == "marked" { 0b11 } else { ecn(arrival) };
        assert_eq!(ecn(departure), expected);
        marked += u64::from(said["verdict"] == "marked");
    }
    assert!(marked > 0);
}

#[test]
fn capturing_changes_no_result_and_gives_the_same_bytes() {
    let scenario = scenario("fq-codel");
    let (bytes, run) = captured(&scenario);
    assert_eq!(bytes, captured(&scenario).0);
    assert_eq!(run, scenario.simulate(SEED, &AtomicBool::new(false)).unwrap());
}

/// A file that requests an end of the run when it has got so much.
struct Interrupting<'i> {
    bytes: &'i mut Vec<u8>,
    at: usize,
    cancel: &'i AtomicBool,
}

impl Write for Interrupting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        read(self.bytes);
        self.cancel.store(self.bytes.len() > self.at, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_interrupted_file_is_valid_at_every_moment() {
    let scenario = scenario("pie");
    let (whole, _) = captured(&scenario);
    let (mut bytes, cancel) = (Vec::new(), AtomicBool::new(false));
    let link = link_named(&scenario.network().unwrap(), None).unwrap();
    let capture = Capture { link, application: "cutline test" };
    let out = Interrupting { bytes: &mut bytes, at: 300_000, cancel: &cancel };
    let error = simulate_captured(&scenario, SEED, &cancel, capture, out, |_| ()).unwrap_err();
    assert!(matches!(error, CaptureError::Simulate(SimulateError::Interrupted)), "{error}");
    assert!(bytes.len() > 300_000 && bytes.len() < whole.len() && whole.starts_with(&bytes));
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_run() {
    let scenario = scenario("pie");
    let link = link_named(&scenario.network().unwrap(), None).unwrap();
    let capture = Capture { link, application: "cutline test" };
    let error =
        simulate_captured(&scenario, SEED, &AtomicBool::new(false), capture, Full, |_| ()).unwrap_err();
    assert!(matches!(error, CaptureError::Io(_)), "{error}");
}

#[test]
fn a_link_is_found_by_its_name_and_with_the_one_back() {
    let network = scenario("pie").network().unwrap();
    let name = |link| network.link_name(link);
    assert_eq!(name(link_named(&network, None).unwrap()), "r1->r2");
    let access = link_named(&network, Some("d2->r2")).unwrap();
    let both: Vec<String> = with_return(&network, access).into_iter().map(name).collect();
    assert_eq!(both, ["d2->r2", "r2->d2"]);
    let error = link_named(&network, Some("r1->r9")).unwrap_err().to_string();
    assert!(
        error.contains("`r1->r9`; there are: r1->r2, r2->r1, s1->r1") && error.ends_with("more"),
        "{error}"
    );
}
