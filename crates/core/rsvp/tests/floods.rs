//! Floods of state: the state of a stranger displaces that of others only for a short time (`engine/budgets.rs`).

use crate::common::bed::{ALL_BUT_M, Bed, H1, H2, M, NONE, R, RATE};
use crate::common::{SECOND, session, tspec};
use cutline_rsvp::engine::{EngineParams, InterfaceId, LocalSender, RsvpEvent};
use cutline_rsvp::message::{Body, MessageType, Path};
use cutline_rsvp::object::{Hop, Sender, Session, Style, code};
use cutline_units::Duration;
use proptest::prelude::*;
use std::net::IpAddr;

/// The longest refresh period that a message can have.
const LONGEST: Duration = Duration::from_millis(0xffff_ffff);

impl Bed {
    /// The stranger announces a sender, as a node with this address.
    fn announces(&mut self, session: Session, sender: Sender, hop: IpAddr) {
        let Body::Path(path) = self.path(session, sender, M) else { unreachable!() };
        let hop = Hop { address: hop, handle: 1 };
        self.says(3, hop.address, Body::Path(Path { hop, refresh: LONGEST, ..path }));
    }

    /// The sender with this port at the stranger.
    fn strange(&self, port: u16) -> Sender {
        Sender::new(self.address(M), port)
    }

    fn is_there(&self, session: Session, sender: Sender) -> bool {
        self.world.nodes[R].engine.path(session, sender).is_some()
    }

    /// An honest sender at `h1` and a receiver at `h2` set up a reservation. Returns whether they have it.
    fn reserves(&mut self, session: Session, port: u16) -> bool {
        let sender = Sender::new(self.address(H1), port);
        let interface = InterfaceId(1);
        let local = LocalSender { sender, tspec: tspec(RATE), interface, next_hop: None, advertise: true };
        let (now, before) = (self.world.now, self.world.confirmations(H2));
        self.world.engine(H1).send_path(now, session, &local).unwrap();
        self.world.collect(H1);
        self.world.reserve(H2, session, Style::FixedFilter, &[sender], RATE);
        self.world.run(SECOND);
        self.world.assert_accounted();
        self.world.confirmations(H2) > before
    }

    /// The codes and values of errors about paths that `r` has sent to a node.
    fn path_errors_to(&self, node: usize) -> Vec<(u8, u16)> {
        let to = self.world.passed.iter().filter(|passed| (passed.from, passed.to) == (R, node));
        to.filter_map(|passed| {
            match cutline_rsvp::message::Message::decode(&passed.datagram.bytes).ok()?.body {
                Body::PathErr(error) => Some((error.error.code, error.error.value)),
                _ => None,
            }
        })
        .collect()
    }
}

/// RFC 2205 section 3.7 has the sender state its refresh period. The stated value is believed up to a limit.
#[test]
fn state_without_refreshes_ends_at_any_stated_period() {
    let params = EngineParams::default();
    assert_eq!(params.lifetime_of(LONGEST), params.lifetime_of(params.longest_refresh));
    let slow = EngineParams { refresh: Duration::from_secs(600), ..params.clone() };
    assert_eq!(slow.lifetime_of(LONGEST), Duration::from_secs(600).mul_f64(5.25), "its own is believed");
    let mut bed = Bed::new(NONE);
    let (other, sender) = (session(bed.address(H2), 7000), bed.strange(7000));
    bed.announces(other, sender, bed.address(M));
    bed.world.run(params.lifetime_of(params.longest_refresh) - SECOND);
    assert!(bed.is_there(other, sender));
    bed.world.run(SECOND * 2);
    assert!(!bed.is_there(other, sender));
    bed.assert_in_place("what is refreshed");
}

/// RFC 2205 section 3.2: one path for port 0, or from port 0, does not keep all others of the host away. It is refused where others are.
#[test]
fn a_path_without_ports_yields_to_those_with_ports() {
    for keys in [NONE, ALL_BUT_M] {
        let mut bed = Bed::new(keys);
        let h2 = bed.address(H2);
        let none = Session { protocol: 6, ..session(h2, 0) };
        bed.announces(none, bed.strange(0), bed.address(M));
        assert!(bed.is_there(none, bed.strange(0)), "nothing conflicts");
        let other = Session { protocol: 6, ..session(h2, 7000) };
        assert!(bed.reserves(other, 7000));
        assert!(!bed.is_there(none, bed.strange(0)));
        bed.announces(none, bed.strange(0), bed.address(M));
        assert!(!bed.is_there(none, bed.strange(0)));
        assert_eq!(bed.path_errors_to(M), [(code::PREEMPTED, 0), (code::CONFLICTING_PORTS, 0)]);

        let (next, its) = (session(h2, 7001), Sender::new(bed.address(H1), 0));
        bed.announces(next, its, bed.address(M));
        assert!(bed.is_there(next, its));
        assert!(bed.reserves(next, 7001));
        bed.announces(next, its, bed.address(M));
        assert!(!bed.is_there(next, its));
        assert_eq!(bed.path_errors_to(M).last(), Some(&(code::CONFLICTING_SENDER_PORTS, 0)));
        bed.assert_in_place_all(300_000);
    }
    // A protocol without ports: the reverse.
    let mut bed = Bed::new(NONE);
    let with = Session { protocol: 50, ..session(bed.address(H2), 7000) };
    let without = Session { port: 0, ..with };
    bed.announces(with, bed.strange(1), bed.address(M));
    assert!(bed.reserves(without, 0));
    assert!(!bed.is_there(with, bed.strange(1)));
}

/// A protocol without ports, such as ESP: more paths with ports than end for one newcomer do not keep a path without ports away.
#[test]
fn a_flood_of_paths_with_wrong_ports_is_bounded() {
    let mut bed = Bed::new(NONE);
    let h2 = bed.address(H2);
    let of_port = |port| Session { protocol: 50, ..session(h2, port) };
    for port in 1..=1500 {
        bed.announces(of_port(port), bed.strange(1), bed.address(M));
    }
    assert_eq!(bed.world.nodes[R].engine.sizes().paths, 1 + 100);
    assert!(bed.is_there(of_port(1500), bed.strange(1)), "the oldest have ended");
    assert!(bed.reserves(of_port(0), 0));
    assert_eq!(bed.world.nodes[R].engine.sizes().paths, 2);
    bed.assert_in_place_all(200_000);
}

/// A session that a stranger has filled takes an honest sender, which nothing of the flood ends afterwards.
#[test]
fn a_flood_of_senders_does_not_fill_a_session() {
    for keys in [NONE, ALL_BUT_M] {
        let mut bed = Bed::new(keys);
        let crowded = bed.session;
        for port in 1..=600 {
            bed.announces(crowded, bed.strange(port), bed.address(M));
        }
        assert_eq!(bed.world.nodes[R].engine.sizes().paths, 500);
        let is_there = [1, 101, 102, 600].map(|port| bed.is_there(crowded, bed.strange(port)));
        assert_eq!(is_there, [false, false, true, true], "the oldest have ended");
        assert!(bed.reserves(crowded, 7000));
        for port in 1..=600 {
            bed.announces(crowded, bed.strange(port + 1000), bed.address(M));
        }
        bed.world.run(SECOND);
        assert!(bed.is_there(crowded, Sender::new(bed.address(H1), 7000)));
        bed.assert_in_place("for the sender at port 7000");
        // The stranger hears why.
        assert!(bed.path_errors_to(M).iter().all(|error| *error == (code::PREEMPTED, 0)));
        assert_eq!(bed.sent_to(H1, MessageType::PathErr), 0);
    }
}

/// A neighbour exhausts only its own budget, and an interface only that of the interface.
#[test]
fn neighbours_and_interfaces_have_budgets() {
    let params = EngineParams {
        most_sessions: 1000,
        most_per_neighbour: 20,
        most_per_interface: 50,
        most_unconfirmed: 40,
        ..Default::default()
    };
    let mut bed = Bed::with(NONE, &params);
    let h2 = bed.address(H2);
    let hops: Vec<IpAddr> = (10..=14_u8).map(|last| IpAddr::from([10, 0, 2, last])).collect();
    for port in 1..=30 {
        bed.announces(session(h2, port), bed.strange(port), hops[0]);
    }
    let there = |bed: &Bed, ports: std::ops::RangeInclusive<u16>| {
        ports.filter(|port| bed.is_there(session(h2, *port), bed.strange(*port))).count()
    };
    assert_eq!((there(&bed, 1..=10), there(&bed, 11..=30)), (0, 20), "the oldest of the neighbour end");
    for (hop, first) in [(1, 100), (2, 200), (3, 300), (4, 400)] {
        for port in first..first + 18 {
            bed.announces(session(h2, port), bed.strange(port), hops[hop]);
        }
    }
    assert_eq!(bed.world.nodes[R].engine.sizes().paths, 1 + 40, "the oldest of the interface end");
    assert_eq!(there(&bed, 300..=417), 36);
    bed.assert_in_place("at another interface");
    assert!((0..5).all(|more| bed.reserves(session(h2, 8000 + more), 8000 + more)));
    bed.world.assert_accounted();
}

/// Reservations count, too. A reservation beyond a budget is refused, and the receiver hears why.
#[test]
fn a_reservation_without_room_is_refused_with_the_reason() {
    let mut bed = Bed::with(NONE, &EngineParams { most_per_neighbour: 3, ..Default::default() });
    let h2 = bed.address(H2);
    assert!(bed.reserves(session(h2, 7000), 7000) && bed.reserves(session(h2, 7001), 7001));
    assert!(!bed.reserves(session(h2, 7002), 7002), "`h1` has three paths, and none is unconfirmed");
    let errors = bed.path_errors_to(H1);
    assert!(!errors.is_empty() && errors.iter().all(|error| *error == (code::RSVP_SYSTEM, code::NO_ROOM)));
    let params = EngineParams { most_per_neighbour: 2, ..Default::default() };
    let mut bed = Bed::with(NONE, &params);
    // Two hosts announce a flow each, and `h2` may make two reservations.
    let other = session(h2, 7000);
    bed.announces(other, bed.strange(7000), bed.address(M));
    bed.world.reserve(H2, other, Style::FixedFilter, &[bed.strange(7000)], RATE);
    bed.world.run(SECOND);
    assert_eq!(bed.world.reserved(R, 2), 200_000);
    let third = session(h2, 7001);
    bed.announces(third, bed.strange(7001), bed.address(M));
    bed.world.reserve(H2, third, Style::FixedFilter, &[bed.strange(7001)], RATE);
    bed.world.run(SECOND);
    assert_eq!(bed.world.reserved(R, 2), 200_000);
    assert_eq!(bed.world.resv_errors(H2), [(code::RSVP_SYSTEM, code::NO_ROOM)]);
}

/// Authenticated state comes before that of strangers, confirmed or not, and never ends for a stranger.
#[test]
fn authenticated_state_comes_before_that_of_strangers() {
    let params = EngineParams { most_sessions: 10, ..Default::default() };
    let mut bed = Bed::with(ALL_BUT_M, &params);
    let h2 = bed.address(H2);
    // The stranger's flow is confirmed: `h2` reserves for it.
    let confirmed = session(h2, 9000);
    bed.announces(confirmed, bed.strange(9000), bed.address(M));
    bed.world.reserve(H2, confirmed, Style::FixedFilter, &[bed.strange(9000)], RATE);
    bed.world.run(SECOND);
    assert_eq!(bed.world.reserved(R, 2), 200_000);
    for port in 1..=50 {
        bed.announces(session(h2, port), bed.strange(port), bed.address(M));
    }
    assert!(bed.is_there(confirmed, bed.strange(9000)), "the unconfirmed ones end first");
    for port in 8000..8008 {
        assert!(bed.reserves(session(h2, port), port), "{port}");
    }
    let engine = &bed.world.nodes[R].engine;
    assert_eq!((engine.sizes().sessions, bed.is_there(confirmed, bed.strange(9000))), (10, true));
    assert_eq!(bed.world.resv_errors(H2), []);
    assert!(bed.reserves(session(h2, 8008), 8008), "the confirmed one of the stranger ends last");
    assert!(!bed.is_there(confirmed, bed.strange(9000)));
    // Its receiver hears why, and of which sender, before that is gone.
    assert_eq!(bed.world.resv_errors(H2), [(code::PREEMPTED, 0)]);
    let heard = bed.world.events.iter().filter(|(_, node, _)| *node == H2).map(|(_, _, event)| event);
    let heard: Vec<&RsvpEvent> = heard
        .filter(|event| match event {
            RsvpEvent::ResvError { session, .. } | RsvpEvent::PathEnded { session, .. } => {
                *session == confirmed
            }
            _ => false,
        })
        .collect();
    let stranger = bed.strange(9000);
    assert!(
        matches!(&heard[..], [RsvpEvent::ResvError { senders, .. }, RsvpEvent::PathEnded { sender, .. }]
            if (&senders[..], sender) == (&[stranger], &stranger)),
        "{heard:?}"
    );
    let full = bed.stats().full;
    bed.announces(session(h2, 60), bed.strange(60), bed.address(M));
    assert_eq!(bed.stats().full, full + 1, "nothing ends for a stranger");
    assert_eq!(bed.path_errors_to(M).last(), Some(&(code::RSVP_SYSTEM, code::NO_ROOM)));
    bed.assert_in_place_all(1_000_000);
}

/// The application of the refusing node that wants the sender is notified.
#[test]
fn a_receiver_gets_the_refusal_of_its_sender_at_its_node() {
    let mut bed = Bed::with(NONE, &EngineParams { most_per_neighbour: 1, ..Default::default() });
    let own = session(bed.world.address(R, 1), 7000);
    let sender = bed.strange(7000);
    bed.world.reserve(R, own, Style::FixedFilter, &[sender], RATE);
    // The neighbour has one path, which is confirmed, so another one finds no room.
    let hop = bed.address(M);
    bed.announces(own, sender, hop);
    let other = bed.strange(7001);
    bed.world.reserve(R, own, Style::FixedFilter, &[sender, other], RATE);
    bed.announces(own, other, hop);
    let heard = bed.world.events.iter().any(|(_, node, event)| {
        let RsvpEvent::ResvError { error, senders, .. } = event else { return false };
        *node == R && (error.code, &senders[..]) == (code::RSVP_SYSTEM, &[other])
    });
    assert!(heard, "{:?}", bed.world.events);
}

/// Neighbours with made-up addresses do not take the places of those at other interfaces.
#[test]
fn made_up_neighbours_leave_room_for_others() {
    let mut bed = Bed::with(NONE, &EngineParams { most_neighbours: 10, ..Default::default() });
    let h2 = bed.address(H2);
    for last in 1..=100_u8 {
        let hop = IpAddr::from([10, 0, 2, last]);
        bed.announces(session(h2, u16::from(last)), bed.strange(1), hop);
    }
    // Those of the flood have no numbers, so all are idle.
    assert!(bed.world.nodes[R].engine.sizes().neighbours <= 10);
    let before = bed.world.sent(MessageType::Srefresh);
    bed.world.run(SECOND * 200);
    assert!(bed.world.sent(MessageType::Srefresh) > before);
    bed.assert_in_place("with summaries");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Budgets agree with the state, and reservations stay, whatever a stranger announces and an honest host
    /// reserves.
    #[test]
    fn budgets_count_what_there_is(
        steps in prop::collection::vec((0_u8..4, 0_u16..6, 0_u16..6, 0_u8..4), 1..120),
        has_keys: bool,
    ) {
        let params = EngineParams {
            most_sessions: 6,
            most_per_session: 4,
            most_per_neighbour: 9,
            most_per_interface: 14,
            most_unconfirmed: 8,
            ..Default::default()
        };
        let mut bed = Bed::with(if has_keys { ALL_BUT_M } else { NONE }, &params);
        let h2 = bed.address(H2);
        for (action, at, port, hop) in steps {
            let its = session(h2, 8000 + at);
            match action {
                0 | 1 => bed.announces(its, bed.strange(port), IpAddr::from([10, 0, 2, 10 + hop])),
                2 => drop(bed.reserves(its, 8000 + port)),
                _ => {
                    bed.world.release(H2, its);
                    bed.world.end_path(H1, its, Sender::new(bed.address(H1), 8000 + port));
                    bed.world.run(Duration::from_millis(50));
                }
            }
            bed.world.assert_accounted();
            let sizes = bed.world.nodes[R].engine.sizes();
            prop_assert!(sizes.sessions <= 6 && sizes.paths <= 24, "{:?}", sizes);
            bed.assert_first_in_place();
        }
        bed.world.run(SECOND * 700);
        bed.world.assert_accounted();
        bed.assert_first_in_place();
    }
}
