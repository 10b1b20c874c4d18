//! Path and reservation state along a path: set-up, merging of all styles, errors, blockade, confirmations, tearing down.

use crate::common::{SECOND, World, line, load, session, tspec};
use cutline_rsvp::engine::{Control, EngineParams, Reservation, RsvpEvent};
use cutline_rsvp::message::{Body, Message, MessageType};
use cutline_rsvp::object::{Style, code};
use cutline_units::{Duration, Rate};
use std::net::IpAddr;

const RATE: f32 = 100_000.0;

/// RFC 2205 sections 3.1.3, 3.1.4, 3.1.9: a reservation is set up along the path of the packets and confirmed, within a round-trip time.
#[test]
fn a_reservation_is_set_up_confirmed_and_released() {
    for refresh_reduction in [false, true] {
        let mut world = line(1, 2, &EngineParams { refresh_reduction, ..Default::default() });
        let session = session(world.address(3, 1), 5004);
        world.watch(0, session, true);
        world.watch(3, session, true);
        let sender = world.send_path(0, session, tspec(RATE));
        world.run(Duration::from_millis(20));
        let Some((_, 3, RsvpEvent::Path { adspec: Some(adspec), .. })) = world.events.last() else {
            panic!("no path")
        };
        assert_eq!((adspec.hops, adspec.bandwidth, adspec.mtu), (3, 1_250_000.0, 1500));
        world.reserve(3, session, Style::FixedFilter, &[sender], RATE);
        world.run(Duration::from_millis(35));
        assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [100_000; 3]);
        assert_eq!((world.reserved(1, 1), world.reserved(3, 1)), (0, 0), "the way back is not reserved");
        assert_eq!(world.confirmations(3), 1);
        let reserved = world
            .events
            .iter()
            .filter(|(_, node, event)| *node == 0 && matches!(event, RsvpEvent::Reserved { .. }));
        assert_eq!(reserved.count(), 1);
        world.run(SECOND * 600);
        assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [100_000; 3]);
        assert_eq!(world.confirmations(3), 1, "refreshes are not confirmed");
        world.release(3, session);
        world.run(SECOND);
        assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [0; 3]);
        world.end_path(0, session, sender);
        for node in [0, 3] {
            world.watch(node, session, false);
        }
        world.run(SECOND);
        world.assert_empty();
        let adds = world.controls.iter().filter(|(_, _, control)| matches!(control, Control::Add(_))).count();
        let deletes =
            world.controls.iter().filter(|(_, _, control)| matches!(control, Control::Delete { .. })).count();
        assert_eq!((adds, deletes), (3, 3));
    }
}

/// RFC 2205 section 3.1.5: the end of a path ends the reservations for it, everywhere.
#[test]
fn the_end_of_a_path_ends_its_reservations() {
    let mut world = line(1, 2, &EngineParams::default());
    let session = session(world.address(3, 1), 5004);
    let sender = world.send_path(0, session, tspec(RATE));
    world.reserve(3, session, Style::SharedExplicit, &[sender], RATE);
    world.run(SECOND);
    assert_eq!(world.reserved(2, 2), 100_000);
    world.end_path(0, session, sender);
    world.run(SECOND);
    assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [0; 3]);
    // The application still wants it: it is reserved again when the sender comes back.
    world.send_path(0, session, tspec(RATE));
    world.run(SECOND);
    assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [100_000; 3]);
}

/// Two senders (0, 1), a router (2), a router (3), two receivers (4, 5).
fn dumbbell(params: &EngineParams) -> World {
    let mut world = World::new(1);
    for _ in 0..6 {
        world.add_node(params.clone());
    }
    for (a, b) in [(0, 2), (1, 2), (2, 3), (3, 4), (3, 5)] {
        world.join(a, b, Rate::from_mbps(10));
    }
    world
}

/// A group with both receivers and both senders in it.
fn group(world: &mut World) -> cutline_rsvp::object::Session {
    let group = IpAddr::from([239, 1, 2, 3]);
    world.groups.insert(group, vec![4, 5]);
    session(group, 5004)
}

/// RFC 2205 section 2.4 and figures 4 to 6: reservations of the styles at nodes where flows meet and where they part.
#[test]
fn styles_merge_where_paths_meet_and_part() {
    // Bytes per second at: 3 to 4, 3 to 5, 2 to 3, 0 to 2, 1 to 2.
    let places = [(3, 2), (3, 3), (2, 3), (0, 1), (1, 1)];
    let expected = [
        // Each sender has its own: at the bottleneck the sum over senders of the largest request.
        (Style::FixedFilter, [100_000, 120_000, 120_000, 60_000, 60_000]),
        // All share one: the largest request.
        (Style::SharedExplicit, [50_000, 60_000, 60_000, 60_000, 60_000]),
        (Style::WildcardFilter, [50_000, 60_000, 60_000, 60_000, 60_000]),
    ];
    for (style, reserved) in expected {
        let mut world = dumbbell(&EngineParams::default());
        let session = group(&mut world);
        let senders = [0, 1].map(|node| world.send_path(node, session, tspec(RATE)));
        world.run(SECOND);
        let listed = if style == Style::WildcardFilter { &[][..] } else { &senders };
        world.reserve(4, session, style, listed, 50_000.0);
        world.reserve(5, session, style, listed, 60_000.0);
        world.run(SECOND);
        assert_eq!(places.map(|(node, at)| world.reserved(node, at)), reserved, "{style:?}");
        world.run(SECOND * 300);
        assert_eq!(places.map(|(node, at)| world.reserved(node, at)), reserved, "{style:?} after refreshes");
        // RFC 2205 section 3.1.6: the smaller request is left.
        world.release(5, session);
        world.run(SECOND);
        let left = match style {
            Style::FixedFilter => [100_000, 0, 100_000, 50_000, 50_000],
            _ => [50_000, 0, 50_000, 50_000, 50_000],
        };
        assert_eq!(places.map(|(node, at)| world.reserved(node, at)), left, "{style:?} after a release");
        world.release(4, session);
        [0, 1].iter().zip(senders).for_each(|(node, sender)| world.end_path(*node, session, sender));
        world.run(SECOND);
        world.assert_empty();
    }
}

/// RFC 2205 section 3.4: WF reservations towards two previous hops say for which senders they are.
#[test]
fn wildcard_reservations_have_scopes_where_previous_hops_differ() {
    let mut world = dumbbell(&EngineParams::default());
    let session = group(&mut world);
    let senders = [0, 1].map(|node| world.send_path(node, session, tspec(RATE)));
    world.run(SECOND);
    world.keeps_messages = true;
    world.reserve(4, session, Style::WildcardFilter, &[], RATE);
    world.run(SECOND);
    let scopes = world.passed.iter().filter_map(|passed| {
        match Message::decode(&passed.datagram.bytes).unwrap().body {
            Body::Resv(resv) => Some((passed.to, resv.scope)),
            _ => None,
        }
    });
    let mut scopes: Vec<_> = scopes.collect();
    scopes.sort();
    scopes.dedup();
    let expected =
        [(0, Some(vec![senders[0].address])), (1, Some(vec![senders[1].address])), (2, None), (3, None)];
    assert_eq!(scopes, expected);
}

/// RFC 2205 section 3.8: the places of policing.
#[test]
fn traffic_control_gets_the_places_of_policing() {
    let mut world = dumbbell(&EngineParams::default());
    world.set_interface(0, 1, |interface| interface.share = None);
    let session = group(&mut world);
    let senders = [0, 1].map(|node| world.send_path(node, session, tspec(RATE)));
    world.run(SECOND);
    world.reserve(4, session, Style::SharedExplicit, &senders, 50_000.0);
    world.run(SECOND);
    world.reserve(5, session, Style::SharedExplicit, &senders, 60_000.0);
    world.run(SECOND * 100);
    let last = |node: usize, interface: u32| {
        let mut flows = world.controls.iter().filter_map(|(_, at, control)| match control {
            Control::Add(flow) | Control::Modify(flow) if *at == node && flow.interface.0 == interface => {
                Some(flow)
            }
            _ => None,
        });
        flows.next_back().unwrap_or_else(|| panic!("nothing at {node}, {interface}")).police
    };
    let police = |entry, merge, branch| cutline_rsvp::engine::Police { entry, merge, branch };
    assert_eq!(last(2, 3), police(true, true, false), "node 0 cannot police, and two flows merge");
    assert_eq!(last(3, 3), police(false, true, false));
    assert_eq!(last(1, 1), police(false, false, false));
}

/// RFC 2205 section 3.5, figure 12: a request that fails upstream does not keep a smaller one from being reserved.
#[test]
fn a_large_request_does_not_block_a_small_one() {
    for style in [Style::FixedFilter, Style::SharedExplicit, Style::WildcardFilter] {
        let params = EngineParams { refresh: SECOND * 5, ..Default::default() };
        let mut world = dumbbell(&params);
        world.set_interface(2, 3, |interface| interface.rate = Rate::from_kbps(400));
        let session = group(&mut world);
        let sender = world.send_path(0, session, tspec(RATE));
        world.run(SECOND);
        let listed = if style == Style::WildcardFilter { vec![] } else { vec![sender] };
        world.reserve(4, session, style, &listed, 80_000.0);
        world.run(SECOND);
        assert_eq!(world.resv_errors(4).first(), Some(&(code::ADMISSION, code::BANDWIDTH)), "{style:?}");
        assert_eq!((world.reserved(3, 2), world.reserved(2, 3)), (80_000, 0));
        world.reserve(5, session, style, &listed, 40_000.0);
        world.run(SECOND);
        assert_eq!((world.reserved(2, 3), world.reserved(0, 1)), (40_000, 40_000), "{style:?}");
        // The blockade ends and comes again: the small one is there all the time.
        let errors = world.resv_errors(4).len();
        for _ in 0..600 {
            world.run(Duration::from_millis(100));
            assert_eq!(world.reserved(2, 3), 40_000, "{style:?} at {}", world.now);
        }
        assert!(world.resv_errors(4).len() > errors, "the large one is tried again");
        assert!(world.resv_errors(5).is_empty(), "{:?}", world.events);
    }
}

/// RFC 2205 section 3.1.8: a larger request that fails leaves the present reservation.
#[test]
fn a_refused_increase_keeps_the_reservation() {
    let mut world = line(1, 2, &EngineParams::default());
    world.set_interface(1, 2, |interface| interface.rate = Rate::from_kbps(1600));
    let session = session(world.address(3, 1), 5004);
    let sender = world.send_path(0, session, tspec(1e6));
    world.run(SECOND);
    world.reserve(3, session, Style::FixedFilter, &[sender], 150_000.0);
    world.run(SECOND);
    world.reserve(3, session, Style::FixedFilter, &[sender], 250_000.0);
    world.run(SECOND);
    assert_eq!(
        (world.reserved(1, 2), world.reserved(2, 2), world.reserved(0, 1)),
        (150_000, 250_000, 150_000)
    );
    let in_place = world.events.iter().any(|(_, node, event)| {
        matches!(event, RsvpEvent::ResvError { error, .. } if *node == 3 && error.in_place && error.code == code::ADMISSION)
    });
    assert!(in_place, "{:?}", world.events);
    world.run(SECOND * 300);
    assert_eq!(world.reserved(1, 2), 150_000);
    world.reserve(3, session, Style::FixedFilter, &[sender], 200_000.0);
    world.run(SECOND);
    assert_eq!(
        (world.reserved(1, 2), world.reserved(2, 2), world.reserved(0, 1)),
        (200_000, 200_000, 200_000)
    );
}

/// RFC 2211: the senders' announcement is reserved, if that is less.
#[test]
fn no_more_is_reserved_than_is_sent() {
    let mut world = line(1, 1, &EngineParams::default());
    let session = session(world.address(2, 1), 5004);
    let sender = world.send_path(0, session, tspec(30_000.0));
    world.run(SECOND);
    world.reserve(2, session, Style::FixedFilter, &[sender], 100_000.0);
    world.run(SECOND);
    assert_eq!(world.reserved(1, 2), 30_000);
    world.send_path(0, session, tspec(70_000.0));
    world.run(SECOND);
    assert_eq!(world.reserved(1, 2), 70_000, "it follows the sender");
}

/// RFC 2205 appendix B: requests that conflict are answered with their errors.
#[test]
fn conflicts_are_answered_with_their_errors() {
    let mut world = dumbbell(&EngineParams::default());
    let session = group(&mut world);
    let senders = [0, 1].map(|node| world.send_path(node, session, tspec(RATE)));
    world.run(SECOND);
    world.reserve(4, session, Style::FixedFilter, &senders, 50_000.0);
    world.run(SECOND);
    world.reserve(5, session, Style::WildcardFilter, &[], 50_000.0);
    world.run(SECOND);
    let vector = Style::FixedFilter.vector() as u16;
    assert_eq!(world.resv_errors(5).first(), Some(&(code::CONFLICTING_STYLE, vector)));
    // RFC 2205 section 3.2: a session with and one without ports.
    let other = cutline_rsvp::object::Session { port: 0, ..session };
    let sender = cutline_rsvp::object::Sender::new(senders[1].address, 0);
    let local = cutline_rsvp::engine::LocalSender {
        sender,
        tspec: tspec(RATE),
        interface: cutline_rsvp::engine::InterfaceId(1),
        next_hop: None,
        advertise: false,
    };
    let now = world.now;
    world.engine(1).send_path(now, other, &local).unwrap();
    world.collect(1);
    world.run(SECOND);
    let conflict = |event: &RsvpEvent| matches!(event, RsvpEvent::PathError { error, .. } if error.code == code::CONFLICTING_PORTS);
    assert!(world.events.iter().any(|(_, node, event)| *node == 1 && conflict(event)), "{:?}", world.events);
}

/// RFC 2205 section 3.8: nodes without RSVP are noticed by the TTL.
#[test]
fn a_gap_in_the_path_is_advertised() {
    let mut world = line(1, 2, &EngineParams::default());
    world.links[1].hidden_hops = 2;
    let session = session(world.address(3, 1), 5004);
    world.watch(3, session, true);
    world.send_path(0, session, tspec(RATE));
    world.run(SECOND);
    let Some((_, 3, RsvpEvent::Path { adspec: Some(adspec), .. })) = world.events.last() else {
        panic!("no path")
    };
    assert!(adspec.is_broken && adspec.has_controlled_load() == Some(false));
}

/// RFC 2205 section 3.11.2: a reservation that traffic control gives up is taken from the receiver.
#[test]
fn a_revoked_reservation_is_reported() {
    let mut world = line(1, 2, &EngineParams::default());
    let session = session(world.address(3, 1), 5004);
    let sender = world.send_path(0, session, tspec(RATE));
    world.reserve(3, session, Style::FixedFilter, &[sender], RATE);
    world.run(SECOND);
    let handle = world.controls.iter().find_map(|(_, node, control)| match control {
        Control::Add(flow) if *node == 1 => Some(flow.handle),
        _ => None,
    });
    let now = world.now;
    world.engine(1).revoke(now, handle.unwrap(), true);
    world.collect(1);
    world.run(SECOND);
    assert_eq!(world.resv_errors(3), [(code::PREEMPTED, 0)]);
    assert_eq!((world.reserved(1, 2), world.reserved(0, 1)), (0, 0));
}

/// A reservation that cannot be installed is confirmed nowhere, and the nodes towards the sender never learn
/// of it.
#[test]
fn nothing_is_confirmed_before_it_is_installed() {
    for (refusing, confirms) in [(0, false), (1, false), (2, false), (3, true)] {
        for refresh_reduction in [false, true] {
            let mut world = line(1, 2, &EngineParams { refresh_reduction, ..Default::default() });
            world.keeps_messages = true;
            world.refuses.insert(refusing);
            let session = session(world.address(3, 1), 5004);
            let sender = world.send_path(0, session, tspec(RATE));
            world.reserve(3, session, Style::FixedFilter, &[sender], RATE);
            world.run(SECOND);
            assert_eq!(world.confirmations(3) > 0, confirms, "node {refusing}");
            if confirms {
                continue;
            }
            // An early refresh may have tried it again.
            let errors = world.resv_errors(3);
            assert!(
                !errors.is_empty() && errors.iter().all(|error| *error == (code::SYSTEM, 0)),
                "{errors:?}"
            );
            let is_early = |kind: MessageType| {
                world
                    .passed
                    .iter()
                    .any(|passed| passed.from == refusing && passed.datagram.bytes[1] == kind as u8)
            };
            assert!(!is_early(MessageType::Resv) && !is_early(MessageType::ResvConf), "node {refusing}");
            let told = |event: &RsvpEvent| matches!(event, RsvpEvent::Reserved { flowspec: Some(_), .. });
            assert!(!world.events.iter().any(|(_, at, event)| *at == refusing && told(event)));
            for node in 0..=refusing {
                assert_eq!(world.reserved(node, if node == 0 { 1 } else { 2 }), 0);
            }
        }
    }
}

/// A reservation that grows and cannot be installed is taken back whole, and the nodes towards the sender hear that it has gone.
#[test]
fn a_change_that_cannot_be_installed_ends_the_reservation() {
    let mut world = line(1, 2, &EngineParams::default());
    let session = session(world.address(3, 1), 5004);
    let sender = world.send_path(0, session, tspec(2.0 * RATE));
    world.reserve(3, session, Style::FixedFilter, &[sender], RATE);
    world.run(SECOND);
    assert_eq!(world.reserved(0, 1), 100_000);
    world.refuses.insert(1);
    world.reserve(3, session, Style::FixedFilter, &[sender], 2.0 * RATE);
    world.run(SECOND);
    assert_eq!(world.resv_errors(3), [(code::SYSTEM, 0)]);
    assert_eq!((world.reserved(1, 2), world.reserved(0, 1)), (0, 0));
}

/// An application's mistake is named.
#[test]
fn a_call_with_an_impossible_value_is_refused() {
    let mut world = line(1, 1, &EngineParams::default());
    let session = session(world.address(2, 1), 5004);
    let sender = cutline_rsvp::object::Sender::new(world.address(0, 1), 5000);
    let now = world.now;
    let mut refused = |style, senders: &[_], flowspec| {
        let wanted = Reservation { style, senders: senders.to_vec(), flowspec, confirm: false };
        world.engine(2).reserve(now, session, wanted).unwrap_err().to_string()
    };
    assert_eq!(refused(Style::WildcardFilter, &[sender], load(1.0)), "senders = 1: allowed is none with WF");
    assert_eq!(
        refused(Style::FixedFilter, &[], load(1.0)),
        "senders = 0: allowed is at least one with FF and SE"
    );
    assert!(refused(Style::FixedFilter, &[sender], load(-1.0)).starts_with("rate = -1: allowed is"));
    let v6 = cutline_rsvp::object::Sender::new(IpAddr::from([1_u16; 8]), 1);
    assert!(
        refused(Style::FixedFilter, &[v6], load(1.0)).starts_with("sender = 1:1:1:1:1:1:1:1: allowed is")
    );
    assert_eq!(world.nodes[2].engine.sizes().sessions, 0);
}

/// RFC 2961: the cost of a refresh with summaries and without.
#[test]
fn summaries_replace_refreshes() {
    let count = |refresh_reduction| {
        let mut world = line(1, 2, &EngineParams { refresh_reduction, ..Default::default() });
        let destination = world.address(3, 1);
        for port in 1..=50 {
            let session = session(destination, port);
            let sender = world.send_path(0, session, tspec(1000.0));
            world.reserve(3, session, Style::FixedFilter, &[sender], 1000.0);
        }
        world.run(SECOND * 1200);
        let whole = |world: &World| world.sent(MessageType::Path) + world.sent(MessageType::Resv);
        let (before, all_before): (u64, u64) =
            (whole(&world), world.nodes.iter().map(|node| node.engine.stats().sent_messages()).sum());
        world.run(SECOND * 3000);
        assert_eq!([(0, 1), (1, 2), (2, 2)].map(|(node, at)| world.reserved(node, at)), [50_000; 3]);
        let all: u64 = world.nodes.iter().map(|node| node.engine.stats().sent_messages()).sum();
        (whole(&world) - before, all - all_before)
    };
    let (plain, all_plain) = count(false);
    let (reduced, all_reduced) = count(true);
    // 50 sessions, 3 hops, 2 directions, 100 refresh periods; with summaries whole messages come every 20 periods.
    assert!((29_500..=30_500).contains(&plain) && all_plain == plain, "{plain} {all_plain}");
    assert!((1300..=1700).contains(&reduced) && all_reduced < 3000, "{reduced} {all_reduced}");
}
