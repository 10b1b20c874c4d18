//! RSVP messages, read alone and by a router that has a reservation.
//!
//! - Accepted messages can be written, and read back the same.
//! - Whatever arrives, the router continues: it sends valid messages, and its reservations stay within its share.
//! - One message leaves little behind: a session more at most.

use cutline_rsvp::encapsulation::Carrier;
use cutline_rsvp::engine::{
    ArrivedMessage, Engine, EngineOutput, EngineParams, EngineStart, InterfaceConfig, InterfaceId, Route,
};
use cutline_rsvp::intserv::{Adspec, Flowspec, Tspec};
use cutline_rsvp::message::{Body, Descriptor, Message, MessageType, Path, Resv};
use cutline_rsvp::object::{Hop, Sender, Session, Style};
use cutline_units::{Duration, Instant, Rate, Streams};
use std::net::IpAddr;

pub fn parse(bytes: &[u8]) -> bool {
    let decoded = Message::decode(bytes);
    if let Ok(message) = &decoded {
        assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(message));
    }
    feed(bytes);
    decoded.is_ok()
}

/// The address of one end of a link of the router.
fn address(link: u8, end: u8) -> IpAddr {
    IpAddr::from([10, 0, link, end])
}

/// Gives the bytes to a router between the links 1 and 2, from both sides.
fn feed(bytes: &[u8]) {
    let mut engine = router();
    let sessions = engine.sizes().sessions;
    let mut now = Instant::ZERO + Duration::from_secs(1);
    for link in [1, 2] {
        let arrival = ArrivedMessage {
            interface: InterfaceId(u32::from(link)),
            source: address(link, 2),
            destination: address(link, 1),
            ttl: Some(64),
            carrier: Carrier::Raw,
            bytes,
        };
        engine.receive(now, &arrival);
        collect(&mut engine, now);
    }
    assert!(engine.sizes().sessions <= sessions + bytes.len() / 40 + 2);
    for _ in 0..20 {
        now = now.max(engine.deadline().min(now + Duration::from_secs(100)));
        engine.handle_deadline(now);
        collect(&mut engine, now);
    }
}

fn router() -> Engine {
    let random = Streams::new(1).stream("fuzz", "rsvp");
    let start = EngineStart { params: EngineParams::default(), secret: [1; 32], sequence: 0, random };
    let mut engine = Engine::new(start).expect("the defaults are allowed");
    for link in [1, 2] {
        let config = InterfaceConfig::new(address(link, 1), Rate::from_mbps(1));
        engine.add_interface(config).expect("the defaults are allowed");
    }
    for (link, message) in [(1, path()), (2, resv())] {
        let bytes = message.encode();
        let arrival = ArrivedMessage {
            interface: InterfaceId(link),
            source: address(link as u8, 2),
            destination: address(2, 2),
            ttl: Some(64),
            carrier: Carrier::Raw,
            bytes: &bytes,
        };
        engine.receive(Instant::ZERO, &arrival);
        collect(&mut engine, Instant::ZERO);
    }
    assert_eq!(engine.sizes().controls, 1, "the reservation is there");
    engine
}

const TSPEC: Tspec = Tspec::new(10_000.0, 1000.0);

fn session() -> Session {
    Session { destination: address(2, 2), protocol: 17, port: 5004 }
}

/// A message that installs a path.
fn path() -> Message {
    let hop = Hop { address: address(1, 2), handle: 9 };
    let path = Path {
        session: session(),
        polices_entry: false,
        hop,
        refresh: Duration::from_secs(30),
        policy: Vec::new(),
        sender: Sender::new(address(1, 2), 5000),
        tspec: TSPEC,
        adspec: Some(Adspec::new(1500)),
    };
    Message { reduces_refreshes: true, ..Message::new(64, Body::Path(path)) }
}

/// A message that reserves on it.
fn resv() -> Message {
    let sender = Sender::new(address(1, 2), 5000);
    let flow = Descriptor { flowspec: Some(Flowspec::ControlledLoad(TSPEC)), filters: vec![sender] };
    let resv = Resv {
        session: session(),
        hop: Hop { address: address(2, 2), handle: 2 },
        refresh: Duration::from_secs(30),
        confirm: Some(address(2, 2)),
        scope: None,
        policy: Vec::new(),
        style: Style::FixedFilter,
        flows: vec![flow],
    };
    Message { reduces_refreshes: true, ..Message::new(64, Body::Resv(resv)) }
}

fn collect(engine: &mut Engine, now: Instant) {
    while let Some(output) = engine.poll() {
        match output {
            EngineOutput::Send(datagram) => {
                // An error about a session of a type that is not known has it as it came.
                let is_error = [MessageType::PathErr, MessageType::ResvErr]
                    .map(|kind| kind as u8)
                    .contains(&datagram.bytes[1]);
                let sent = Message::decode(&datagram.bytes);
                assert!(sent.is_ok() || is_error, "what is sent is a message: {sent:?}");
            }
            EngineOutput::AskRoute(key) => {
                let to_second = key.destination == address(2, 2);
                let outgoing = to_second.then_some((InterfaceId(2), Some(address(2, 2))));
                let route =
                    Route { incoming: Some(InterfaceId(1)), outgoing: outgoing.into_iter().collect() };
                engine.set_route(now, key, &route);
            }
            EngineOutput::Control(_) | EngineOutput::ForgetRoute(_) | EngineOutput::Event(_) => {}
        }
    }
    for interface in [1, 2] {
        let share = engine.share(InterfaceId(interface)).expect("there is a share");
        assert!(share.reserved() <= share.reservable());
    }
}
