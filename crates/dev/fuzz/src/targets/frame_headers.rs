//! Frames from the network, as the router sees them: `cutline_wire::Headers`.
//!
//! - Headers lie within the frame, and an IP packet has the length in its header.
//! - Nothing behind the packet matters: padding is neither read nor missed.
//! - The salt changes the flow's number and nothing else.
//! - The traffic class does not distinguish flows, so a mark or a new code point leaves a flow one flow.
//! - Fragments that are remembered give the same packets, and the same flows to everything that is no fragment.
//! - An overhead makes a size of every frame.

use cutline_router::Overhead;
use cutline_units::IpVersion;
use cutline_wire::{ETHERNET, FlowKeys, FragmentFlows, Headers, Ip};

/// Behind the frame, where nothing may look.
const OTHER_BYTES: [u8; 3] = [0, 0xff, 0x45];

pub fn parse(frame: &[u8]) -> bool {
    let headers = Headers::parse(frame, 0);
    assert!(usize::from(headers.payload) <= frame.len().max(ETHERNET), "the payload begins in the frame");
    for overhead in Overhead::NAMED {
        assert!(overhead.size(frame.len() as u32, &headers) < 1 << 20, "a size on the link");
    }
    check_fragments(frame, &headers);
    let Some(ip) = headers.ip else { return headers.flow != 0 };
    let end = usize::from(ip.at) + ip.length as usize;
    let header = match ip.version {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    assert!(usize::from(ip.at) >= usize::from(headers.payload), "the packet is in the payload");
    assert!(ip.length >= header && end <= frame.len(), "the packet ends in the frame");
    check_padding(&frame[..end], &headers);
    check_salt(frame, ip);
    check_traffic_class(frame, ip);
    true
}

fn check_padding(packet: &[u8], headers: &Headers) {
    assert_eq!(Headers::parse(packet, 0), *headers, "without what is behind the packet");
    for byte in OTHER_BYTES {
        assert_eq!(
            Headers::parse(&[packet, &[byte; 40]].concat(), 0),
            *headers,
            "with other bytes behind the packet"
        );
    }
}

/// Checks that a repeated fragment has its earlier flow.
fn check_fragments(frame: &[u8], headers: &Headers) {
    let mut fragments = FragmentFlows::default();
    for _ in 0..2 {
        assert_eq!(Headers::follow(frame, FlowKeys::new(0), &mut fragments), *headers);
    }
}

fn check_salt(frame: &[u8], ip: Ip) {
    let salted = Headers::parse(frame, 0x5eed).ip.expect("salt does not hide a packet");
    assert_eq!(salted, ip, "salt is for flow and hosts alone");
}

fn check_traffic_class(frame: &[u8], ip: Ip) {
    let (mut marked, at) = (frame.to_vec(), usize::from(ip.at));
    match ip.version {
        IpVersion::V4 => marked[at + 1] ^= 0xff,
        IpVersion::V6 => {
            marked[at] ^= 0x0f;
            marked[at + 1] ^= 0xf0;
        }
    }
    let (found, before) = (Headers::parse(&marked, 0), Headers::parse(frame, 0));
    let changed = Ip { traffic_class: !ip.traffic_class, ..ip };
    assert_eq!(
        found,
        Headers { ip: Some(changed), ..before },
        "a traffic class hides no packet and makes no flow"
    );
}
