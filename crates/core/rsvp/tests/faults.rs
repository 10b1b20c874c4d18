//! Faults of a network: lost messages, restarts, hosts that vanish, routes that change, messages of
//! strangers.

use crate::common::{SECOND, World, line, line_of, session, tspec};
use cutline_rsvp::encapsulation::{Carrier, Encapsulation};
use cutline_rsvp::engine::{Datagram, EngineParams, InterfaceId, Reservation, RsvpEvent};
use cutline_rsvp::integrity::{Algorithm, IntegrityConfig, SecurityKey};
use cutline_rsvp::intserv::Flowspec;
use cutline_rsvp::message::{Message, MessageType};
use cutline_rsvp::object::{Sender, Session, Style};
use cutline_units::{Duration, Rate};
use proptest::prelude::*;

const RATE: f32 = 100_000.0;
/// The longest time between two refreshes: one and a half of the period (RFC 2205 section 3.7).
const REFRESH: Duration = Duration::from_secs(45);
/// The lifetime of state: (K + 0.5) 1.5 R.
const LIFETIME: Duration = Duration::from_millis(157_500);

fn both() -> [EngineParams; 2] {
    [false, true].map(|refresh_reduction| EngineParams { refresh_reduction, ..Default::default() })
}

/// Returns the reserved rates along the way of the packets.
fn along(world: &World) -> Vec<u64> {
    let last = world.nodes.len() - 1;
    (0..last).map(|node| world.reserved(node, if node == 0 { 1 } else { 2 })).collect()
}

fn set_up(world: &mut World) -> (Session, Sender) {
    let last = world.nodes.len() - 1;
    let session = session(world.address(last, 1), 5004);
    let sender = world.send_path(0, session, tspec(RATE));
    world.reserve(last, session, Style::FixedFilter, &[sender], RATE);
    (session, sender)
}

/// RFC 2205 section 3.7: K = 3 lets two messages in a row get lost. Set-up takes longer, nothing ends.
#[test]
fn lost_messages_delay_and_do_not_end_a_reservation() {
    for (loss, lifetime) in [(0.1, 3), (0.3, 6)] {
        for params in both() {
            let refresh_reduction = params.refresh_reduction;
            let mut times = Vec::new();
            for seed in 0..10 {
                let mut world = line(seed, 2, &EngineParams { lifetime, ..params.clone() });
                world.set_loss(loss);
                set_up(&mut world);
                let is_there = |world: &World| along(world) == [100_000; 3];
                while !is_there(&world) && world.now.as_secs_f64() < 300.0 {
                    world.run(Duration::from_millis(10));
                }
                times.push(world.now.as_secs_f64());
                let mut missing = 0;
                for _ in 0..1200 {
                    world.run(SECOND);
                    missing += u32::from(!is_there(&world));
                }
                assert!(
                    missing == 0,
                    "loss {loss}, {refresh_reduction}, seed {seed}: missing for {missing} s of 1200"
                );
            }
            times.sort_by(f64::total_cmp);
            println!(
                "loss {loss}, refresh reduction {refresh_reduction}: set-up median {} s, most {} s",
                times[5], times[9]
            );
            assert!(times[9] < 3.0 * REFRESH.as_secs_f64(), "{times:?}");
        }
    }
}

/// A router that has lost everything has it again within a refresh.
#[test]
fn a_restarted_router_has_its_state_back_within_a_refresh() {
    for params in both() {
        for seed in 0..10 {
            let mut world = line(seed, 3, &params);
            set_up(&mut world);
            world.run(SECOND * 100);
            assert_eq!(along(&world), [100_000; 4]);
            world.restart(2);
            assert_eq!(along(&world), [100_000, 100_000, 0, 100_000]);
            world.run(REFRESH + Duration::from_millis(600));
            assert_eq!(along(&world), [100_000; 4], "{params:?}, seed {seed}");
        }
    }
}

/// No message is needed at the end: state without refreshes ends, everywhere, and all of it is free again.
#[test]
fn a_vanished_host_leaves_no_state() {
    for params in both() {
        for vanished in [0, 3] {
            let mut world = line(7, 2, &params);
            let (session, sender) = set_up(&mut world);
            world.run(SECOND * 100);
            world.vanish(vanished);
            world.run(LIFETIME / 2);
            assert_eq!(world.reserved(1, 2), 100_000, "lost refreshes do not end it at once");
            world.run(LIFETIME / 2 + REFRESH + SECOND * 2);
            assert_eq!((world.reserved(1, 2), world.reserved(2, 2)), (0, 0), "{params:?}, node {vanished}");
            world.end_path(0, session, sender);
            world.release(3, session);
            world.run(LIFETIME * 2);
            world.assert_empty();
        }
    }
}

/// A host (0), a router (1), two ways (2 or 3), a router (4), a host (5).
fn two_ways(params: &EngineParams) -> World {
    let mut world = World::new(3);
    for _ in 0..6 {
        world.add_node(params.clone());
    }
    for (a, b) in [(0, 1), (1, 2), (2, 4), (1, 3), (3, 4), (4, 5)] {
        world.join(a, b, Rate::from_mbps(10));
    }
    world
}

/// RFC 2205 section 3.6: after W the new way has the reservation, and the old way loses it.
#[test]
fn a_reservation_follows_its_route() {
    for params in both() {
        let mut world = two_ways(&params);
        let session = session(world.address(5, 1), 5004);
        let sender = world.send_path(0, session, tspec(RATE));
        world.reserve(5, session, Style::FixedFilter, &[sender], RATE);
        world.run(SECOND * 100);
        assert_eq!((world.reserved(1, 2), world.reserved(2, 2), world.reserved(3, 2)), (100_000, 100_000, 0));
        world.set_link(1, false);
        world.run(Duration::from_millis(2100));
        assert_eq!((world.reserved(1, 2), world.reserved(1, 3), world.reserved(3, 2)), (0, 100_000, 100_000));
        assert_eq!(world.reserved(4, 3), 100_000);
        world.run(LIFETIME + REFRESH);
        assert_eq!(world.reserved(2, 2), 0, "the old way forgets it");
        world.set_link(1, true);
        world.run(SECOND * 3);
        assert_eq!((world.reserved(1, 2), world.reserved(2, 2), world.reserved(1, 3)), (100_000, 100_000, 0));
        assert_eq!((world.reserved(4, 3), world.reserved(0, 1)), (100_000, 100_000));
    }
}

/// RFC 2961 section 2: a neighbour that stops using refresh reduction gets whole messages again.
#[test]
fn a_neighbour_may_lose_refresh_reduction() {
    let mut world = line(1, 1, &EngineParams::default());
    set_up(&mut world);
    world.run(SECOND * 100);
    let plain = EngineParams { refresh_reduction: false, ..Default::default() };
    world.set_params(1, plain);
    world.run(SECOND * 300);
    assert_eq!(along(&world), [100_000; 2]);
    let before = world.sent(MessageType::Srefresh);
    world.run(SECOND * 300);
    assert_eq!((along(&world), world.sent(MessageType::Srefresh)), (vec![100_000; 2], before));
}

fn keys(algorithm: Algorithm) -> IntegrityConfig {
    IntegrityConfig::new(vec![SecurityKey::new(7, algorithm, *b"a secret of both neighbours")])
}

/// RFC 2747: neighbours with a key set up a reservation, and no other node reacts.
#[test]
fn forged_and_repeated_messages_are_refused_and_counted() {
    for algorithm in [Algorithm::HmacMd5, Algorithm::HmacSha256] {
        let mut world = line(1, 2, &EngineParams::default());
        world.set_integrity(&keys(algorithm));
        world.keeps_messages = true;
        let (session, _) = set_up(&mut world);
        world.run(SECOND * 100);
        assert_eq!(along(&world), [100_000; 3], "after challenges");
        assert!(
            world.sent(MessageType::IntegrityChallenge) > 0
                && world.sent(MessageType::IntegrityChallenge) == world.sent(MessageType::IntegrityResponse)
        );
        // Everything that router 2 has received comes again; nothing of it counts.
        let before = world.nodes[2].engine.stats().clone();
        let recorded: Vec<_> = world.passed.iter().filter(|passed| passed.to == 2).cloned().collect();
        let is_challenge = |datagram: &Datagram| datagram.bytes[1] == MessageType::IntegrityChallenge as u8;
        let repeated: Vec<_> = recorded.iter().filter(|passed| !is_challenge(&passed.datagram)).collect();
        for passed in &repeated {
            let interface = InterfaceId(if passed.from == 1 { 1 } else { 2 });
            world.deliver((2, interface), &passed.datagram);
        }
        let stats = world.nodes[2].engine.stats();
        assert_eq!(stats.replayed - before.replayed, repeated.len() as u64);
        assert_eq!(stats.received, before.received);
        // A tear with a wrong digest, one without, one with an unknown key.
        let sender = Sender::new(world.address(0, 1), 5000);
        let hop = cutline_rsvp::object::Hop { address: world.address(1, 2), handle: 2 };
        let tear = cutline_rsvp::message::PathTear { session, hop, sender, tspec: None };
        let message = Message::new(60, cutline_rsvp::message::Body::PathTear(tear)).encode();
        let datagram = repeated[0].datagram.clone();
        let signed = |id, secret: &[u8]| {
            let mut bytes = message.clone();
            cutline_rsvp::integrity::sign(
                &mut bytes,
                &SecurityKey::new(id, algorithm, secret),
                1 << 60,
                false,
            );
            bytes
        };
        let forged = [message.clone(), signed(7, b"guessed"), signed(8, b"a secret of both neighbours")];
        for bytes in forged {
            world.deliver((2, InterfaceId(1)), &Datagram { bytes, ..datagram.clone() });
        }
        let stats = world.nodes[2].engine.stats();
        assert_eq!((stats.without_integrity, stats.forged, stats.unknown_key), (1, 1, 1));
        assert_eq!(along(&world), [100_000; 3]);
        // With the right key it is believed.
        let bytes = signed(7, b"a secret of both neighbours");
        world.deliver((2, InterfaceId(1)), &Datagram { bytes, ..datagram });
        assert_eq!(world.reserved(2, 2), 0);
    }
}

/// RFC 2747 section 4.3: a router that has restarted believes nothing that was recorded before, and has its state back.
#[test]
fn a_restarted_router_challenges_its_neighbours() {
    let mut world = line(1, 3, &EngineParams::default());
    world.set_integrity(&keys(Algorithm::HmacSha256));
    world.keeps_messages = true;
    set_up(&mut world);
    world.run(SECOND * 200);
    let recorded: Vec<_> =
        world.passed.iter().filter(|passed| passed.to == 2 && passed.from == 1).cloned().collect();
    world.restart(2);
    for passed in &recorded {
        if passed.datagram.bytes[1] == MessageType::Path as u8 {
            world.deliver((2, InterfaceId(1)), &passed.datagram);
        }
    }
    assert_eq!(world.nodes[2].engine.sizes().paths, 0);
    world.run(REFRESH * 2);
    assert_eq!(along(&world), [100_000; 4]);
}

/// RFC 2205 appendix C: a host without raw sockets behind a router that has them.
#[test]
fn hosts_without_raw_sockets_reserve_by_udp() {
    for params in both() {
        let mut world = line(1, 2, &params);
        let routers = [world.address(1, 1), world.address(2, 2)];
        world.set_udp(0, Encapsulation::Udp { router: Some(routers[0]) });
        world.set_udp(3, Encapsulation::Udp { router: Some(routers[1]) });
        // The receiver sends no Path messages that would tell the router (RFC 2205 appendix C).
        world.set_interface(2, 2, |interface| interface.encapsulation = Encapsulation::RawAndUdp);
        world.keeps_messages = true;
        set_up(&mut world);
        world.run(SECOND * 400);
        assert_eq!(along(&world), [100_000; 3]);
        assert_eq!(world.confirmations(3), 1);
        let carriers = |from: usize, to: usize| -> Vec<Carrier> {
            let of = world.passed.iter().filter(|passed| (passed.from, passed.to) == (from, to));
            let mut carriers: Vec<Carrier> = of.map(|passed| passed.datagram.carrier).collect();
            carriers.sort();
            carriers.dedup();
            carriers
        };
        assert_eq!(carriers(0, 1), [Carrier::Udp(1698)]);
        assert_eq!(carriers(1, 2), [Carrier::Raw]);
        assert!(carriers(2, 3).contains(&Carrier::Udp(1699)) && carriers(3, 2) == [Carrier::Udp(1698)]);
        let error = world.nodes[2].engine.stats().malformed;
        assert_eq!(error, 0);
    }
}

/// The same over IPv6.
#[test]
fn reservations_go_over_ipv6() {
    for params in both() {
        let mut empty = World::new(1);
        empty.is_v6 = true;
        let mut world = line_of(empty, 2, &params);
        set_up(&mut world);
        world.run(SECOND * 400);
        assert_eq!((along(&world), world.confirmations(3)), (vec![100_000; 3], 1));
    }
}

/// Limits are kept. New state beyond a limit replaces older unconfirmed state, or is refused, and is counted.
#[test]
fn state_is_limited() {
    let params = EngineParams { most_sessions: 10, most_per_session: 3, ..Default::default() };
    let mut world = line(1, 1, &EngineParams::default());
    world.set_params(1, params);
    let destination = world.address(2, 1);
    for port in 1..=20 {
        world.send_path(0, session(destination, port), tspec(1.0));
    }
    for port in 1..=6 {
        let sender = Sender::new(world.address(0, 1), 6000 + port);
        let local = cutline_rsvp::engine::LocalSender {
            sender,
            tspec: tspec(1.0),
            interface: InterfaceId(1),
            next_hop: None,
            advertise: false,
        };
        let now = world.now;
        world.engine(0).send_path(now, session(destination, 1), &local).unwrap();
        world.collect(0);
    }
    world.run(SECOND);
    let now = world.now;
    let senders: Vec<Sender> = (1..=4).map(|port| Sender::new(world.address(0, 1), 6000 + port)).collect();
    let flowspec = Flowspec::ControlledLoad(tspec(1.0));
    let wanted = Reservation { style: Style::FixedFilter, senders, flowspec, confirm: false };
    let error = world.engine(1).reserve(now, session(destination, 1), wanted).unwrap_err();
    assert_eq!(error.to_string(), "there are 3 senders already: allowed are at most 3");
    let engine = &world.nodes[1].engine;
    let sizes = engine.sizes();
    assert_eq!(sizes.sessions, 10);
    assert!((10..=12).contains(&sizes.paths), "{sizes:?}");
    assert!(engine.stats().evicted >= 14);
    world.assert_accounted();
    assert!(
        world
            .events
            .iter()
            .any(|(_, node, event)| *node == 0 && matches!(event, RsvpEvent::PathError { .. }))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// No link ever has more than its share reserved, whatever is requested at the same time; in the end all
    /// of it is free.
    #[test]
    fn never_more_than_the_share_is_reserved(
        requests in prop::collection::vec((0_u64..3000, 0_usize..4, 1_u16..6, 1_u32..150, 0_u8..4), 1..60),
        loss in 0.0_f64..0.3,
        refresh_reduction: bool,
        seed: u64,
    ) {
        // Hosts 0 to 3 at the routers 4 and 5, whose link is the bottleneck of 2 Mbit/s; half of it can be reserved.
        let params = EngineParams { refresh: SECOND * 3, refresh_reduction, ..Default::default() };
        let mut world = World::new(seed);
        for _ in 0..6 {
            world.add_node(params.clone());
        }
        for (a, b) in [(0, 4), (1, 4), (2, 5), (3, 5)] {
            world.join(a, b, Rate::from_mbps(10));
        }
        world.join(4, 5, Rate::from_mbps(2));
        for node in [4, 5] {
            world.set_interface(node, 3, |interface| interface.share.as_mut().unwrap().share = 0.5);
        }
        world.set_loss(loss);
        let mut requests = requests;
        requests.sort_by_key(|request| request.0);
        let mut sessions = Vec::new();
        for (at, pair, port, kbytes, action) in requests {
            while world.now.as_nanos() < at * 1_000_000 {
                world.run(Duration::from_millis(7));
                world.assert_accounted();
                for node in [4, 5] {
                    prop_assert!(world.reserved(node, 3) <= 125_000);
                }
            }
            // Both directions over the bottleneck.
            let (from, to) = [(0, 2), (1, 3), (2, 0), (3, 1)][pair];
            let session = session(world.address(to, 1), port);
            let rate = kbytes as f32 * 1000.0;
            if action == 0 { world.release(to, session) } else {
                let style = if port < 3 { Style::SharedExplicit } else { Style::FixedFilter };
                let sender = world.send_path(from, session, tspec(rate));
                world.reserve(to, session, style, &[sender], rate);
                sessions.push((from, to, session, sender));
            }
        }
        for _ in 0..200 {
            world.run(Duration::from_millis(50));
            for node in [4, 5] {
                prop_assert!(world.reserved(node, 3) <= 125_000);
            }
        }
        for (from, to, session, sender) in sessions {
            world.release(to, session);
            world.end_path(from, session, sender);
        }
        world.run(SECOND * 60);
        world.assert_empty();
    }

    /// Messages with changed bytes do no harm at any node.
    #[test]
    fn damaged_messages_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..80),
    ) {
        let params = EngineParams { refresh: SECOND * 2, whole_refresh: 4, ..Default::default() };
        let mut world = line(1, 2, &params);
        world.keeps_messages = true;
        set_up(&mut world);
        world.run(SECOND * 20);
        let recorded = world.passed.clone();
        for (which, at, byte) in changes {
            let passed = which.get(&recorded);
            let mut datagram = passed.datagram.clone();
            let at = at.index(datagram.bytes.len());
            datagram.bytes[at] = byte;
            datagram.bytes[2..4].fill(0);
            let interface = InterfaceId(if passed.to == 0 || passed.to > passed.from { 1 } else { 2 });
            world.deliver((passed.to, interface), &datagram);
            world.run(Duration::from_millis(300));
        }
        // State from damaged messages ends, and the previous state is there again.
        world.run(SECOND * 30);
        for node in 0..3 {
            prop_assert_eq!(world.nodes[node].engine.sizes().sessions, 1);
        }
        prop_assert_eq!(along(&world), vec![100_000; 3]);
    }
}
