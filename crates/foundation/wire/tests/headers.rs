//! The walk over a frame's headers: beside etherparse on frames that are right, and unharmed by those that are not.

use cutline_units::{Dscp, Ecn, IpVersion};
use cutline_wire::Headers;
use etherparse::{
    EtherType, Ethernet2Header, IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header,
    LaxSlicedPacket, NetSlice, SingleVlanHeader, VlanId,
};
use proptest::prelude::*;

const SALT: u64 = 7;

#[derive(Clone, Debug)]
struct Recipe {
    tags: usize,
    pppoe: bool,
    v6: bool,
    traffic_class: u8,
    ends: [u8; 2],
    ports: [u16; 2],
    payload: usize,
    padding: usize,
    fragment: bool,
    extensions: usize,
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let link = (0..=2_usize, prop::bool::weighted(0.2), any::<bool>(), 0..8_usize);
    let net = (any::<u8>(), any::<[u8; 2]>(), any::<[u16; 2]>(), 0..300_usize, any::<bool>(), 0..3_usize);
    (link, net).prop_map(
        |((tags, pppoe, v6, padding), (traffic_class, ends, ports, payload, fragment, extensions))| Recipe {
            tags,
            pppoe,
            v6,
            traffic_class,
            ends,
            ports,
            payload,
            padding,
            fragment,
            extensions,
        },
    )
}

/// Builds a frame; returns the offset of its IP packet, and the frame.
fn build(recipe: &Recipe) -> (usize, Vec<u8>) {
    let mut frame = Vec::new();
    let inner = match (recipe.pppoe, recipe.v6) {
        (true, _) => EtherType(0x8864),
        (false, true) => EtherType::IPV6,
        (false, false) => EtherType::IPV4,
    };
    let tag = EtherType::VLAN_TAGGED_FRAME;
    let first = if recipe.tags > 0 { tag } else { inner };
    Ethernet2Header { source: [2; 6], destination: [4; 6], ether_type: first }.write(&mut frame).unwrap();
    for left in (0..recipe.tags).rev() {
        let ether_type = if left > 0 { tag } else { inner };
        let vlan_id = VlanId::try_new(100).unwrap();
        let vlan = SingleVlanHeader { ether_type, vlan_id, ..SingleVlanHeader::default() };
        frame.extend_from_slice(&vlan.to_bytes());
    }
    let packet = if recipe.v6 { packet_v6(recipe) } else { packet_v4(recipe) };
    if recipe.pppoe {
        let protocol = if recipe.v6 { 0x0057_u16 } else { 0x0021 };
        frame.extend_from_slice(&[0x11, 0, 0, 1]);
        frame.extend_from_slice(&(packet.len() as u16 + 2).to_be_bytes());
        frame.extend_from_slice(&protocol.to_be_bytes());
    }
    let at = frame.len();
    frame.extend_from_slice(&packet);
    frame.extend(std::iter::repeat_n(0, recipe.padding));
    (at, frame)
}

fn udp(recipe: &Recipe) -> Vec<u8> {
    let mut bytes = Vec::new();
    recipe.ports.iter().for_each(|port| bytes.extend_from_slice(&port.to_be_bytes()));
    bytes.extend_from_slice(&(8 + recipe.payload as u16).to_be_bytes());
    bytes.extend(std::iter::repeat_n(0, 2 + recipe.payload));
    bytes
}

fn packet_v4(recipe: &Recipe) -> Vec<u8> {
    let payload = udp(recipe);
    let [a, b] = recipe.ends.map(|end| [10, 0, 0, end]);
    let mut header = Ipv4Header::new(payload.len() as u16, 64, IpNumber::UDP, a, b).unwrap();
    header.options =
        std::iter::repeat_n(1_u8, recipe.extensions * 4).collect::<Vec<_>>()[..].try_into().unwrap();
    if recipe.fragment {
        header.fragment_offset = IpFragOffset::try_new(8).unwrap();
    }
    let mut bytes = header.to_bytes().to_vec();
    bytes[1] = recipe.traffic_class;
    bytes[2..4].copy_from_slice(&((header.header_len() + payload.len()) as u16).to_be_bytes());
    bytes.extend_from_slice(&payload);
    bytes
}

fn packet_v6(recipe: &Recipe) -> Vec<u8> {
    const DESTINATION_OPTIONS: u8 = 60;
    const FRAGMENT: u8 = 44;
    let mut next = 17;
    let mut rest = udp(recipe);
    if recipe.fragment {
        // Not the first one.
        rest.splice(0..0, [next, 0, 0, 9, 0, 0, 0, 9]);
        next = FRAGMENT;
    }
    for _ in 0..recipe.extensions {
        rest.splice(0..0, [next, 0, 1, 4, 0, 0, 0, 0]);
        next = DESTINATION_OPTIONS;
    }
    let [source, destination] = recipe.ends.map(|end| [end; 16]);
    let header = Ipv6Header {
        traffic_class: recipe.traffic_class,
        flow_label: Ipv6FlowLabel::try_new(0xf_ffff).unwrap(),
        payload_length: rest.len() as u16,
        next_header: IpNumber(next),
        hop_limit: 64,
        source,
        destination,
    };
    [&header.to_bytes()[..], &rest].concat()
}

fn flow_of(recipe: &Recipe) -> u32 {
    let (_, frame) = build(recipe);
    let headers = Headers::parse(&frame, SALT);
    assert!(headers.ip.is_some(), "the frame is IP");
    headers.flow
}

proptest! {
    #[test]
    fn a_right_frame_is_read_as_it_was_built(recipe in recipes()) {
        let (at, frame) = build(&recipe);
        let headers = Headers::parse(&frame, SALT);
        let ip = headers.ip.expect("the frame is IP");
        prop_assert_eq!(usize::from(headers.payload), 14 + 4 * recipe.tags);
        prop_assert_eq!(usize::from(ip.at), at);
        prop_assert_eq!(ip.version, if recipe.v6 { IpVersion::V6 } else { IpVersion::V4 });
        prop_assert_eq!(ip.traffic_class, recipe.traffic_class);
        prop_assert_eq!(ip.length as usize, frame.len() - at - recipe.padding);
        prop_assert_eq!(ip.dscp(), Dscp::new(recipe.traffic_class >> 2).unwrap());
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(recipe.traffic_class & 3)];
        prop_assert_eq!(ip.ecn(), ecn);
    }

    /// Our parser and etherparse agree on the IP header and the traffic class of any damaged frame.
    #[test]
    fn etherparse_agrees_on_damaged_frames(
        recipe in recipes(),
        damage in prop::collection::vec((0..80_usize, any::<u8>()), 0..6),
        cut in 0..400_usize,
    ) {
        let (_, mut frame) = build(&recipe);
        for (place, byte) in damage {
            if let Some(old) = frame.get_mut(place) {
                *old = byte;
            }
        }
        frame.truncate(cut.max(1));
        let Some(ip) = Headers::parse(&frame, SALT).ip else { return Ok(()) };
        let packet = &frame[usize::from(ip.at)..];
        prop_assert!(ip.length as usize <= packet.len());
        let other = LaxSlicedPacket::from_ip(packet).expect("etherparse reads it");
        let traffic_class = match other.net {
            Some(etherparse::LaxNetSlice::Ipv4(slice)) => slice.header().dcp().value() << 2 | slice.header().ecn().value(),
            Some(etherparse::LaxNetSlice::Ipv6(slice)) => slice.header().traffic_class(),
            _ => return Err(TestCaseError::fail("etherparse finds no IP")),
        };
        prop_assert_eq!(traffic_class, ip.traffic_class);
    }

    /// And where etherparse, which is strict here, says IP behind Ethernet and at most two tags, ours does too.
    #[test]
    fn ip_packets_of_etherparse_are_ip_packets(
        recipe in recipes(),
        damage in prop::collection::vec((0..60_usize, any::<u8>()), 0..4),
    ) {
        let (_, mut frame) = build(&Recipe { pppoe: false, ..recipe });
        for (place, byte) in damage {
            if let Some(old) = frame.get_mut(place) {
                *old = byte;
            }
        }
        let Ok(sliced) = etherparse::SlicedPacket::from_ethernet(&frame) else { return Ok(()) };
        let tags = sliced.vlan_ids().len();
        if matches!(sliced.net, Some(NetSlice::Ipv4(_) | NetSlice::Ipv6(_))) && tags <= 2 && sliced.link_exts.len() == tags {
            let jumbo = matches!(&sliced.net, Some(NetSlice::Ipv6(ip)) if ip.header().payload_length() == 0);
            // 0x9100 is a tag to etherparse; to IEEE 802.1Q it is none.
            let unknown_tag = frame.windows(2).take(24).any(|two| two == [0x91, 0x00]);
            prop_assert!(jumbo || unknown_tag || Headers::parse(&frame, SALT).ip.is_some());
        }
    }

    #[test]
    fn no_bytes_cause_a_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(ip) = Headers::parse(&frame, SALT).ip {
            prop_assert!(usize::from(ip.at) + ip.length as usize <= frame.len());
        }
    }

    #[test]
    fn a_flow_is_its_addresses_protocol_and_ports(recipe in recipes(), port in any::<u16>()) {
        let flow = flow_of(&recipe);
        let same = Recipe { traffic_class: 0, payload: 5, tags: 0, pppoe: false, ..recipe.clone() };
        prop_assert_eq!(flow_of(&same), flow);
        let other = Recipe { ports: [recipe.ports[0], port], ..recipe.clone() };
        let is_same = recipe.fragment || port == recipe.ports[1];
        prop_assert_eq!(flow_of(&other) == flow, is_same);
    }
}

#[test]
fn flows_spread_over_a_thousand_buckets() {
    let recipe = Recipe {
        tags: 0,
        pppoe: false,
        v6: false,
        traffic_class: 0,
        ends: [1, 2],
        ports: [0, 443],
        payload: 0,
        padding: 0,
        fragment: false,
        extensions: 0,
    };
    let mut buckets = [0; 1024];
    for port in 0..10_240 {
        let flow = flow_of(&Recipe { ports: [port, 443], ..recipe.clone() });
        buckets[(flow % 1024) as usize] += 1;
    }
    // Mean 10, deviation 3.2: seven of them.
    assert!(buckets.iter().all(|&flows| flows < 33), "{:?}", buckets.iter().max());
}

#[test]
fn frames_without_ip_have_no_ip_header() {
    let arp = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06], &[0; 46]].concat();
    assert_eq!(Headers::parse(&arp, SALT), Headers { payload: 14, ..Headers::default() });
    let nine_tags = [&[2; 12][..], &[0x81, 0, 0, 1].repeat(9), &[0x08, 0], &[0x45; 40]].concat();
    assert_eq!(Headers::parse(&nine_tags, SALT).ip, None);
    assert_eq!(Headers::parse(&[], SALT), Headers::default());
}
