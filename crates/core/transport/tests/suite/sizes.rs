//! The sizes of headers and ends: a packet of the simulator has one header inline, and 100,000 flows must fit in memory.

use std::mem::size_of;

use cutline_transport::{app, tcp, tfrc, udp};

#[test]
fn headers_fit_a_cache_line() {
    assert_eq!((size_of::<tcp::Segment>(), size_of::<tcp::Ack>()), (24, 48));
    assert_eq!((size_of::<tfrc::Packet>(), size_of::<tfrc::Feedback>()), (32, 32));
    assert_eq!(size_of::<udp::Datagram>(), 24);
}

#[test]
fn a_flow_takes_less_than_a_kilobyte() {
    let tcp = size_of::<tcp::Sender>() + size_of::<tcp::Receiver>();
    let tfrc = size_of::<tfrc::Sender>() + size_of::<tfrc::Receiver>();
    assert!(tcp <= 272 && tfrc <= 672, "TCP {tcp} B, TFRC {tfrc} B");
    assert!(size_of::<app::App>() <= 128, "an application takes {} B", size_of::<app::App>());
}
