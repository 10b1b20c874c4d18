//! Flows inside of tunnels, behind labels and tags, in fragments, and the hosts that they come from.

use crate::common::Memory;
use cutline_aqm::{AqmSpec, Limit, QueueSpec};
use cutline_router::{Shaper, ShaperParams};
use cutline_units::{Duration, Instant, Rate, Streams};
use cutline_wire::{FlowKeys, FragmentFlows, Headers};
use proptest::prelude::*;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ETHERNET: u16 = 0x6558;
const MPLS: u16 = 0x8847;

fn half(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    cat(&[&half(ports[0]), &half(ports[1]), &half(8 + payload.len() as u16), &[0, 0], payload])
}

/// An IPv4 packet. `fragment` is the identification, and the flags with the offset.
fn v4(protocol: u8, ends: [u8; 2], fragment: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = half(20 + payload.len() as u16);
    let [id, place] = fragment.map(half);
    let [from, to] = ends.map(|end| [10, 0, 0, end]);
    cat(&[&[0x45, 0], &length, &id, &place, &[64, protocol, 0, 0], &from, &to, payload])
}

fn v6(next: u8, label: u32, [from, to]: [[u8; 16]; 2], payload: &[u8]) -> Vec<u8> {
    let head = (0x6000_0000 | label).to_be_bytes();
    cat(&[&head, &half(payload.len() as u16), &[next, 64], &from, &to, payload])
}

fn frame(kind: u16, packet: &[u8]) -> Vec<u8> {
    cat(&[&[2; 12], &half(kind), packet])
}

/// More fragments follow (RFC 791 section 3.1).
const MORE: u16 = 0x2000;
const WHOLE: [u16; 2] = [7, 0x4000];
const HERE: [[u8; 16]; 2] = [[0x20; 16], [0x21; 16]];

fn plain4(payload: &[u8]) -> Vec<u8> {
    v4(17, [1, 2], WHOLE, payload)
}

fn plain6(payload: &[u8]) -> Vec<u8> {
    v6(17, 0, HERE, payload)
}

/// Builds a frame around a datagram.
type Build = fn(&[u8]) -> Vec<u8>;

/// Frames of each kind around the datagram of an inner flow.
fn kinds() -> Vec<(&'static str, Build)> {
    fn around(protocol: u8, inner: &[u8]) -> Vec<u8> {
        frame(IPV4, &v4(protocol, [9, 8], WHOLE, inner))
    }
    fn tags(number: usize, datagram: &[u8]) -> Vec<u8> {
        let tags = [0x81, 0, 0, 1].repeat(number);
        cat(&[&[2; 12], &tags, &frame(IPV4, &plain4(datagram))[12..]])
    }
    fn labels(number: usize, inner: &[u8]) -> Vec<u8> {
        cat(&[&[0, 6, 0x40, 64].repeat(number - 1), &[0, 6, 0x41, 64], inner])
    }
    vec![
        ("plain", |datagram| frame(IPV4, &plain4(datagram))),
        ("IPv6", |datagram| frame(IPV6, &plain6(datagram))),
        ("3 tags", |datagram| tags(3, datagram)),
        ("8 tags", |datagram| tags(8, datagram)),
        ("IPIP", |datagram| around(4, &plain4(datagram))),
        ("6in4", |datagram| around(41, &plain6(datagram))),
        ("4in6", |datagram| frame(IPV6, &v6(4, 0, HERE, &plain4(datagram)))),
        ("6in6 behind options", |datagram| {
            let inner = cat(&[&[41, 0, 1, 4, 0, 0, 0, 0], &plain6(datagram)]);
            frame(IPV6, &v6(60, 0, HERE, &inner))
        }),
        ("GRE", |datagram| around(47, &cat(&[&[0, 0, 8, 0], &plain4(datagram)]))),
        ("GRE with key, sequence and checksum", |datagram| {
            around(47, &cat(&[&[0xb0, 0, 0x86, 0xdd, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9], &plain6(datagram)]))
        }),
        ("Ethernet in GRE", |datagram| {
            let inner = frame(IPV4, &plain4(datagram));
            around(47, &cat(&[&[0, 0], &half(ETHERNET), &inner]))
        }),
        ("PPTP", |datagram| {
            around(
                47,
                &cat(&[
                    &[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 3, 0, 0x21],
                    &plain4(datagram),
                ]),
            )
        }),
        ("MPLS", |datagram| frame(MPLS, &labels(1, &plain4(datagram)))),
        ("MPLS with 4 labels and IPv6", |datagram| frame(MPLS, &labels(4, &plain6(datagram)))),
        ("MPLS in GRE", |datagram| around(47, &cat(&[&[0, 0], &half(MPLS), &labels(2, &plain4(datagram))]))),
        ("MPLS in IP", |datagram| around(137, &labels(2, &plain4(datagram)))),
        ("VXLAN", |datagram| {
            let inner = frame(IPV4, &plain4(datagram));
            around(17, &udp([5000, 4789], &cat(&[&[8, 0, 0, 0, 0, 0, 5, 0], &inner])))
        }),
        ("VXLAN at Linux's first port", |datagram| {
            let inner = frame(IPV6, &plain6(datagram));
            around(17, &udp([5000, 8472], &cat(&[&[8, 0, 0, 0, 0, 0, 5, 0], &inner])))
        }),
        ("GENEVE", |datagram| {
            let inner = frame(IPV4, &plain4(datagram));
            let head = [1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 3, 4];
            around(17, &udp([5000, 6081], &cat(&[&head, &inner])))
        }),
        ("four in each other", |datagram| {
            let three = (0..3).fold(plain4(datagram), |inner, _| v4(4, [9, 8], WHOLE, &inner));
            around(4, &three)
        }),
    ]
}

fn flow(frame: &[u8]) -> u32 {
    Headers::parse(frame, 7).flow
}

#[test]
fn inner_flows_are_distinguished_in_each_tunnel() {
    for (kind, build) in kinds() {
        let of = |port: u16, payload: usize| flow(&build(&udp([port, 9], &vec![3; payload])));
        assert_ne!(of(1000, 10), 0, "{kind}");
        assert_eq!(of(1000, 10), of(1000, 1200), "{kind}: one flow");
        let flows: std::collections::BTreeSet<u32> = (1000..1100).map(|port| of(port, 20)).collect();
        assert_eq!(flows.len(), 100, "{kind}");
        // The outer packet's marks are set in the outer packet, and hosts are those of the outer one.
        let headers = Headers::parse(&build(&udp([1, 2], b"x")), 7);
        assert_eq!(headers.ip.is_some(), !kind.starts_with("MPLS") || kind.starts_with("MPLS in"), "{kind}");
        assert!(headers.hosts[0] != headers.hosts[1], "{kind}");
    }
}

#[test]
fn keys_of_tunnels_and_outer_addresses_distinguish_flows() {
    let datagram = udp([1, 2], b"x");
    let gre = |key: u8| {
        frame(IPV4, &v4(47, [9, 8], WHOLE, &cat(&[&[0x20, 0, 8, 0, 0, 0, 0, key], &plain4(&datagram)])))
    };
    assert_ne!(flow(&gre(1)), flow(&gre(2)));
    let vxlan = |network: u8| {
        let inner = cat(&[&[8, 0, 0, 0, 0, 0, network, 0], &frame(IPV4, &plain4(&datagram))]);
        frame(IPV4, &v4(17, [9, 8], WHOLE, &udp([5000, 4789], &inner)))
    };
    assert_ne!(flow(&vxlan(1)), flow(&vxlan(2)));
    let ipip = |end: u8| frame(IPV4, &v4(4, [end, 8], WHOLE, &plain4(&datagram)));
    assert_ne!(flow(&ipip(1)), flow(&ipip(3)), "the same private addresses in two tunnels");
    let hosts = |frame: &[u8]| Headers::parse(frame, 7).hosts;
    assert_ne!(hosts(&ipip(1))[0], hosts(&ipip(3))[0], "who sends a tunnel is its host");
    assert_eq!(hosts(&ipip(1)), hosts(&frame(IPV4, &v4(17, [1, 8], WHOLE, &datagram))));
}

/// Encrypted packets, and packets that only look like tunnels, are distinguished by their visible headers.
#[test]
fn encrypted_packets_are_one_flow_for_each_association() {
    let ipsec = |protocol: u8, index: u8| {
        let head = if protocol == 51 { vec![17, 4, 0, 0, 0, 0, 0, index] } else { vec![0, 0, 0, index] };
        flow(&frame(IPV4, &v4(protocol, [1, 2], WHOLE, &cat(&[&head, &[0; 40]]))))
    };
    for protocol in [50, 51] {
        assert_eq!(ipsec(protocol, 1), ipsec(protocol, 1));
        assert_ne!(ipsec(protocol, 1), ipsec(protocol, 2), "two security associations");
    }
    // WireGuard: a datagram like any other.
    let wireguard = |byte: u8| flow(&frame(IPV4, &plain4(&udp([51820, 51820], &[byte; 90]))));
    assert_eq!(wireguard(1), wireguard(2));
    // L2TPv3: the place of the frame in a session depends on what both ends have agreed on (RFC 3931 section 4.1).
    let l2tp = |port| {
        let inner = frame(IPV4, &plain4(&udp([port, 1], b"")));
        flow(&frame(IPV4, &v4(115, [1, 2], WHOLE, &cat(&[&[0, 0, 0, 9], &inner]))))
    };
    assert_eq!(l2tp(1), l2tp(2));
    // Five packets in each other: the innermost is not looked at.
    let five = |port| {
        let inner = (0..5).fold(plain4(&udp([port, 1], b"")), |inner, _| v4(4, [9, 8], WHOLE, &inner));
        flow(&frame(IPV4, &inner))
    };
    assert_eq!(five(1), five(2));
    let outer = |port: u16| flow(&frame(IPV4, &plain4(&udp([5000, port], &[0; 60]))));
    for port in [4789, 6081] {
        assert_ne!(outer(port), 0, "no network, no Ethernet: a datagram");
    }
    let no_ip_in_mpls = Headers::parse(&frame(MPLS, &[0, 6, 0x41, 64, 0x12, 0, 0, 0]), 7);
    assert_eq!(no_ip_in_mpls, Headers { payload: 14, ..Headers::default() });
}

#[test]
fn a_flow_label_is_in_the_place_of_ports_and_no_replacement() {
    let of = |next, label, payload: &[u8]| flow(&frame(IPV6, &v6(next, label, HERE, payload)));
    assert_ne!(of(50, 1, &[0; 8]), of(50, 0, &[1; 8]));
    assert_ne!(of(59, 1, &[]), of(59, 2, &[]));
    let datagram = udp([1, 2], b"x");
    assert_eq!(of(17, 1, &datagram), of(17, 2, &datagram), "a sender cannot make a flow of each packet");
}

#[test]
fn fragments_belong_to_the_flow_of_their_first_one() {
    let mut fragments = FragmentFlows::default();
    let mut follow = |frame: &[u8]| Headers::follow(frame, FlowKeys::new(7), &mut fragments).flow;
    let first4 = |port, id| frame(IPV4, &v4(17, [1, 2], [id, MORE], &udp([port, 9], &[0; 40])));
    let later4 = |id, more: u16| frame(IPV4, &v4(17, [1, 2], [id, more | 6], &[0xee; 48]));
    let first6 = |port, id: u8| {
        let fragment = [17, 0, 0, 1, 0, 0, 0, id];
        frame(IPV6, &v6(44, 0, HERE, &cat(&[&fragment, &udp([port, 9], &[0; 40])])))
    };
    let later6 = |id: u8, more: u8| {
        let fragment = [17, 0, 0, 0x30 | more, 0, 0, 0, id];
        frame(IPV6, &v6(44, 0, HERE, &cat(&[&fragment, &[0xee; 48]])))
    };
    let whole = |port| flow(&frame(IPV4, &plain4(&udp([port, 9], b"x"))));
    let unknown = follow(&later4(99, 0));
    for id in 0..200 {
        let port = 1000 + id;
        let found = follow(&first4(port, id));
        assert_eq!(found, whole(port), "also with whole packets of the flow");
        assert_eq!((follow(&later4(id, MORE)), follow(&later4(id, 0))), (found, found));
    }
    assert_eq!(follow(&later4(777, 0)), unknown, "no first one has come");
    for id in 0..200 {
        let found = follow(&first6(1000 + u16::from(id), id));
        assert_eq!((follow(&later6(id, 1)), follow(&later6(id, 0))), (found, found));
    }
    // Two flows at the same time.
    let found = [follow(&first4(1, 1)), follow(&first4(2, 2))];
    assert_ne!(found[0], found[1]);
    assert_eq!([follow(&later4(1, 0)), follow(&later4(2, 0))], found);
    // A tunnel's packet that is too long for the way: the inner headers are in the first fragment alone.
    let long = v4(4, [9, 8], [5, MORE], &plain4(&udp([1, 9], &[0; 1400]))[..600]);
    let found = follow(&frame(IPV4, &long));
    let same = flow(&frame(IPV4, &v4(4, [9, 8], WHOLE, &plain4(&udp([1, 9], b"x")))));
    assert_eq!(found, same);
    assert_eq!(follow(&frame(IPV4, &v4(4, [9, 8], [5, 75], &[0; 800]))), found);
    // A packet in a single fragment is whole.
    let atomic = |port| {
        let fragment = [17, 0, 0, 0, 0, 0, 0, 1];
        flow(&frame(IPV6, &v6(44, 0, HERE, &cat(&[&fragment, &udp([port, 9], b"x")]))))
    };
    assert_ne!(atomic(1), atomic(2));
}

#[test]
fn an_ipv6_host_is_a_prefix_of_its_address() {
    let of = |address: [u8; 16], host_prefix: u8| {
        let frame = frame(IPV6, &v6(17, 0, [address, HERE[1]], &udp([1, 2], b"x")));
        let keys = FlowKeys { salt: 7, host_prefix };
        Headers::follow(&frame, keys, &mut FragmentFlows::default())
    };
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0x12, 0x34, 1, 2, 3, 4, 5, 6, 7, 8];
    for prefix in FlowKeys::HOST_PREFIXES {
        for bit in 0..128_u8 {
            let mut other = address;
            other[usize::from(bit / 8)] ^= 0x80 >> (bit % 8);
            let (one, other) = (of(address, prefix), of(other, prefix));
            assert_eq!(one.hosts[0] == other.hosts[0], bit >= prefix, "bit {bit} of /{prefix}");
            assert_ne!(one.flow, other.flow, "flows have whole addresses");
            assert_eq!(one.hosts[1], other.hosts[1]);
        }
    }
    let default = |address| {
        Headers::parse(&frame(IPV6, &v6(17, 0, [address, HERE[1]], &udp([1, 2], b"x"))), 7).hosts[0]
    };
    assert_eq!(default(address), of(address, 64).hosts[0], "a /64 without an option");
}

/// In every queue that separates flows, a sparse flow in a tunnel does not wait behind a busy one in the same tunnel.
#[test]
fn a_sparse_flow_in_a_tunnel_does_not_wait_behind_a_busy_one() {
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    for name in ["fq-codel", "fq-pie", "cake", "drr", "sieve"] {
        let aqm = AqmSpec::from_values(name, []).unwrap();
        let (limit, rate) = (Limit::Packets(1000), Rate::from_mbps(4));
        let queue = QueueSpec { limit, ecn: false, aqm, tsq: None, rate };
        for (kind, build) in kinds() {
            let params = ShaperParams::new(queue.clone());
            let mut shaper = Shaper::new(params, Streams::new(3).stream("queue", "drop")).unwrap();
            let (busy, sparse) = (build(&udp([1000, 9], &[1; 1200])), build(&udp([2000, 9], &[2; 60])));
            let (mut sent_at, mut longest, mut came) = (0, 0, 0);
            // A quarter more than the link carries for four seconds, and a sparse datagram each 100 ms.
            for now in 0..4000 {
                if now % 2 == 0 {
                    shaper.receive(ms(now), &busy);
                }
                if now % 100 == 99 {
                    shaper.receive(ms(now), &sparse);
                    sent_at = now;
                }
                shaper.advance(ms(now));
                let mut port = Memory { room: usize::MAX, ..Memory::default() };
                shaper.send(&mut port).unwrap();
                // Sieve has to know a flow before it goes before others that are known.
                if port.sent.contains(&sparse) && now > 1000 {
                    longest = longest.max(now - sent_at);
                    came += 1;
                }
            }
            assert!(came >= 29 && longest <= 10, "{name}, {kind}: {came} came, {longest} ms");
        }
    }
}

proptest! {
    /// Frames of every kind, cut off and with changed bytes: nothing panics, and the parser stays in the frame and in its packet.
    #[test]
    fn damaged_tunnels_are_read_without_harm(
        kind in 0..20_usize,
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let (_, build) = kinds()[kind];
        let mut frame = build(&udp([1, 2], &[4; 30]));
        for (place, byte) in changes {
            let place = place.index(frame.len());
            frame[place] = byte;
        }
        frame.truncate(cut.index(frame.len()) + 1);
        let mut fragments = FragmentFlows::default();
        let headers = Headers::follow(&frame, FlowKeys::new(7), &mut fragments);
        if let Some(ip) = headers.ip {
            let end = usize::from(ip.at) + ip.length as usize;
            prop_assert!(end <= frame.len());
            prop_assert_eq!(Headers::parse(&frame[..end], 7), Headers::parse(&frame, 7));
        }
        prop_assert_eq!(headers.flow == 0, headers.hosts == [0; 2]);
    }
}
