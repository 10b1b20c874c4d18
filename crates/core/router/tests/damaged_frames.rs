//! Damaged frames of every protocol that the router knows: each passes or is dropped with a reason, and a frame that passes has
//! the bytes it came with, but for its traffic class and the checksum that covers it.

use crate::common::{Memory, frame};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_router::{Loss, Overhead, Shaper, ShaperParams};
use cutline_units::{Dscp, Duration, Instant, IpVersion, Rate, RemarkTable, Streams};
use cutline_wire::{ETHERNET, Headers, Ip};
use proptest::prelude::*;
use proptest::sample::select;

/// The longest frame that the outgoing port takes: a jumbo frame with a tag.
const LARGEST: usize = 8018;
/// A packet takes tens of milliseconds, so that some dozens are an overload that `CoDel` marks for.
const RATE: Rate = Rate::from_kbps(100);
const QUEUES: [(&str, bool); 5] =
    [("drop-tail", true), ("pi", true), ("codel", false), ("fq-codel", false), ("dual-pi2", false)];

/// An IPv4 packet, with options, whose checksum is right.
fn ipv4() -> impl Strategy<Value = Vec<u8>> {
    let protocol = select(vec![1, 6, 17, 33, 132, 136, 253_u8]);
    let size = prop_oneof![0..200_usize, 1400..1500_usize, 7900..9000_usize];
    (0..=10_u8, any::<u8>(), protocol, any::<u16>(), size).prop_map(
        |(options, traffic_class, protocol, fragment, size)| {
            let header = 20 + usize::from(options) * 4;
            let mut packet = vec![1; header + size];
            packet[..2].copy_from_slice(&[0x45 + options, traffic_class]);
            packet[2..4].copy_from_slice(&((header + size) as u16).to_be_bytes());
            // Two thirds of the packets are whole.
            let fragment = if fragment % 3 == 0 { fragment } else { 0x4000 };
            packet[6..8].copy_from_slice(&fragment.to_be_bytes());
            packet[8..12].copy_from_slice(&[64, protocol, 0, 0]);
            let checksum = !(sum(&packet[..header]) as u16);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet
        },
    )
}

/// An IPv6 packet behind a chain of extension headers, some of them longer than the packet says.
fn ipv6() -> impl Strategy<Value = Vec<u8>> {
    let next = select(vec![0, 6, 17, 43, 44, 50, 51, 59, 60, 135, 139, 253_u8]);
    let chain = prop::collection::vec((next.clone(), 0..4_u8), 0..12);
    (any::<u8>(), next, chain, 0..200_usize).prop_map(|(traffic_class, first, chain, size)| {
        let mut rest = Vec::new();
        for (next, units) in chain {
            rest.extend_from_slice(&[next, units]);
            rest.extend(std::iter::repeat_n(3, 6 + usize::from(units) * 8));
        }
        rest.extend(std::iter::repeat_n(4, size));
        let length = (rest.len() as u16).to_be_bytes();
        let head = [0x60 | traffic_class >> 4, traffic_class << 4, 0, 0, length[0], length[1], first, 64];
        [&head[..], &[5; 32], &rest].concat()
    })
}

/// A frame as some host might send it: tags or a PPPoE session before a packet, or something else altogether.
fn whole() -> impl Strategy<Value = Vec<u8>> {
    let packet = prop_oneof![
        4 => ipv4().prop_map(|packet| (0x0800_u16, packet)),
        4 => ipv6().prop_map(|packet| (0x86dd, packet)),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(|bytes| (0x0806, bytes)),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 0..9000)),
    ];
    (packet, 0..5_usize, any::<bool>(), prop::bool::weighted(0.2), 0..20_usize).prop_map(
        |((kind, packet), tags, service, pppoe, padding)| {
            let (mut kind, mut bytes) = (kind, packet);
            if pppoe {
                let protocol: u16 = if kind == 0x86dd { 0x0057 } else { 0x0021 };
                let length = (bytes.len() as u16 + 2).to_be_bytes();
                let head = [&[0x11, 0, 0, 1][..], &length, &protocol.to_be_bytes()].concat();
                (kind, bytes) = (0x8864, [head, bytes].concat());
            }
            for _ in 0..tags {
                bytes.splice(0..0, [&[0x20, 0x64][..], &kind.to_be_bytes()].concat());
                kind = if service { 0x88a8 } else { 0x8100 };
            }
            bytes.extend(std::iter::repeat_n(0, padding));
            frame(kind, &bytes)
        },
    )
}

/// A frame with bytes changed where headers are, cut off, or made of nothing but noise.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((12..90_usize, any::<u8>()), 0..5);
    let cut = prop_oneof![3 => Just(usize::MAX), 1 => 0..100_usize, 1 => 0..9000_usize];
    let broken = (whole(), changes, cut).prop_map(|(mut frame, changes, cut)| {
        for (place, byte) in changes {
            if let Some(old) = frame.get_mut(place) {
                *old = byte;
            }
        }
        frame.truncate(cut);
        frame
    });
    prop_oneof![9 => broken, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

/// The one's complement sum of a header's 16-bit words, which 0xffff says is right.
fn sum(header: &[u8]) -> u32 {
    let sum: u32 = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16)
}

/// Re-marks whatever can be: every code point becomes its neighbour.
fn shaper((aqm, tsq): (&str, bool), overhead: Overhead) -> Shaper {
    let queue = QueueSpec {
        limit: Limit::Packets(20),
        ecn: true,
        aqm: AqmSpec::from_values(aqm, []).unwrap(),
        tsq: tsq.then(TsqParams::default),
        rate: RATE,
    };
    let mut remark = RemarkTable::unchanged();
    for bits in 0..64 {
        remark.set(Dscp::new(bits).unwrap(), Dscp::new(bits ^ 1).unwrap());
    }
    let params = ShaperParams { overhead, largest_frame: LARGEST as u32, remark, ..ShaperParams::new(queue) };
    Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap()
}

/// Everything but the traffic class and IPv4's checksum.
fn other_bytes(frame: &[u8], ip: Ip) -> Vec<u8> {
    let (mut bytes, at) = (frame.to_vec(), usize::from(ip.at));
    match ip.version {
        IpVersion::V4 => {
            bytes[at + 1] = 0;
            bytes[at + 10..at + 12].fill(0);
        }
        IpVersion::V6 => {
            bytes[at] &= 0xf0;
            bytes[at + 1] &= 0x0f;
        }
    }
    bytes
}

fn check_passed(sent: &[u8], came: &[u8]) -> Result<(), TestCaseError> {
    let Some(ip) = Headers::parse(came, 0).ip else {
        prop_assert_eq!(sent, came, "what is not IP passes untouched");
        return Ok(());
    };
    prop_assert_eq!(other_bytes(sent, ip), other_bytes(came, ip));
    let after = Headers::parse(sent, 0).ip.expect("it is still IP");
    prop_assert_eq!(after.traffic_class >> 2, (ip.traffic_class >> 2) ^ 1, "re-marked");
    let ecn = after.traffic_class & 3;
    prop_assert!(ecn == ip.traffic_class & 3 || ecn == 3 && ip.traffic_class & 3 != 0, "marked if capable");
    if ip.version == IpVersion::V4 {
        let at = usize::from(ip.at);
        let header = at..at + usize::from(came[at] & 0x0f) * 4;
        // A sum of 0 and one of 0xffff are the same number, but only the latter is right.
        let right = |frame: &[u8]| sum(&frame[header.clone()]) % 0xffff;
        prop_assert_eq!(right(sent), right(came), "a right checksum stays right, a wrong one as wrong");
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_frame_passes_whole_or_is_dropped_for_a_reason(
        queue in select(&QUEUES[..]),
        overhead in select(&Overhead::NAMED[..]),
        frames in prop::collection::vec((damaged(), 0..60_u64), 1..60),
    ) {
        let mut shaper = shaper(queue, overhead);
        let mut port = Memory { room: usize::MAX, ..Memory::default() };
        let (mut now, mut came) = (Instant::ZERO, Vec::new());
        for (number, (mut bytes, wait_ms)) in frames.into_iter().enumerate() {
            // The sender's address, which is not read, distinguishes the frames.
            if let Some(source) = bytes.get_mut(6..12) {
                source.copy_from_slice(&(number as u64).to_be_bytes()[2..]);
            }
            shaper.wake(now);
            shaper.receive(now, &bytes);
            let stats = shaper.stats();
            prop_assert_eq!(stats.received.packets, stats.sent.packets + stats.dropped().packets + shaper.queued() as u64);
            came.push(bytes);
            now += Duration::from_millis(wait_ms);
        }
        while shaper.deadline() != Instant::FAR_FUTURE {
            shaper.advance(shaper.deadline());
        }
        shaper.send(&mut port).unwrap();

        let stats = shaper.stats();
        prop_assert_eq!((stats.received.packets, shaper.queued()), (came.len() as u64, 0));
        prop_assert_eq!(stats.sent.packets + stats.dropped().packets, stats.received.packets);
        prop_assert_eq!(stats.sent.bytes + stats.dropped().bytes, stats.received.bytes);
        let short = came.iter().filter(|bytes| bytes.len() < ETHERNET).count() as u64;
        let long = came.iter().filter(|bytes| bytes.len() > LARGEST).count() as u64;
        prop_assert_eq!((stats.lost(Loss::Runt).packets, stats.lost(Loss::Oversize).packets), (short, long));
        prop_assert_eq!(port.sent.len() as u64, stats.sent.packets);
        for sent in &port.sent {
            let number = u64::from_be_bytes([&[0, 0], &sent[6..12]].concat().try_into().unwrap());
            check_passed(sent, &came[number as usize])?;
        }
    }
}
