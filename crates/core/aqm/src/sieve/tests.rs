//! Sieve's promises, each by a queue in front of a link that is driven by hand.

use super::*;
use crate::bench::{Id, largest, promises};
use cutline_units::Hint;

type Q = Sieve<(u32, u32)>;
type Bench = crate::bench::Bench<Q>;

fn usual() -> Bench {
    with(SieveParams::default())
}

fn with(params: SieveParams) -> Bench {
    Bench::new(&params)
}

#[test]
fn gains_follow_the_round_trip() {
    let params = SieveParams { rtt: Duration::from_millis(300), ..SieveParams::default() };
    let control = params.pi2(Rate::from_mbps(15)).control;
    assert_eq!(control.target, Duration::from_millis(100));
    assert!((control.alpha - 0.01).abs() < 1e-9 && (control.beta - 0.75).abs() < 1e-9, "{control:?}");
    // Three packets of 1500 B at 100 kbit/s.
    assert_eq!(params.target(Rate::from_kbps(100)), Duration::from_millis(360));
}

#[test]
fn the_sparse_go_first_whatever_their_hint() {
    promises::the_sparse_go_first_whatever_their_hint::<Q>(0.009);
}

#[test]
fn a_flow_keeps_its_order() {
    promises::a_flow_keeps_its_order::<Q>();
}

#[test]
fn who_sends_more_loses_more() {
    promises::who_sends_more_loses_more::<Q>(0.06);
}

#[test]
fn a_flow_that_does_not_respond_keeps_its_share() {
    promises::a_flow_that_does_not_respond_keeps_its_share::<Q>(0.004, 0.05);
}

#[test]
fn a_host_that_splits_its_traffic_gains_only_where_flows_count() {
    let by = |key| SieveParams { key, ..SieveParams::default() };
    promises::a_host_that_splits_its_traffic_gains_only_where_flows_count::<Q>(
        (&by(Key::Flow), 0.03),
        (&by(Key::Source), 0.08),
    );
}

/// A flow that sends a tenth more than the others, all of which the cap leaves their share, is not the one that loses less in the end.
#[test]
fn who_stays_above_the_share_is_led_back() {
    let received = |surcharge| {
        let bench = with(SieveParams { surcharge, ..SieveParams::default() });
        let bench = (2..=8).fold(bench.flow(1, 0.6), |bench, flow| bench.flow(flow, 0.14));
        f64::from(bench.run(60).got[&1].received) / 30_000.0
    };
    // An eighth of the link each, of which the seven need a little more.
    let (with, without) = (received(0.5), received(0.0));
    assert!(with < without && with < 0.16, "with the surcharge {with}, without {without}");
}

#[test]
fn pulses_gain_nothing() {
    promises::pulses_gain_nothing::<Q>(1.1);
}

#[test]
fn new_flows_share_an_allowance() {
    let flood =
        |newcomers| promises::flood_of_new_flows::<Q>(&SieveParams { newcomers, ..SieveParams::default() });
    let [call, flow] = flood(0.125);
    assert!(call.lost() < 0.01 && call.longest <= Duration::from_millis(5), "{call:?}");
    // All new flows are one that sends too much: 0.05 + f + f = 0.95 of the link.
    assert!((f64::from(flow.received) / 20_000.0 - 0.45).abs() < 0.06, "{flow:?}");
    // With the whole link for newcomers, they take most of it.
    assert!(flood(1.0)[1].lost() > 0.5);
}

#[test]
fn the_lanes_are_sure_of_their_share() {
    let first_delay = Duration::from_secs(1);
    let mut bench = with(SieveParams { first_delay, newcomer_age: Duration::ZERO, ..SieveParams::default() });
    bench.sources = vec![(Id::Flow(1), 0.0, largest(), false)];
    (0..900).for_each(|number| bench.send(0, number));
    // Packets that came while the flow was below its share are served first; the others wait in the lanes.
    while bench.queue.lanes.backlog().packets < bench.queue.backlog().packets {
        bench.queue.dequeue(bench.now);
    }
    assert!(bench.queue.lanes.backlog().packets > 100);
    bench.now = Instant::ZERO + Duration::from_millis(1);
    for flow in 0..240 {
        bench.sources = vec![(Id::Flow(1000 + flow), 0.0, largest(), false)];
        bench.send(0, 1000 + flow);
    }
    let departures = (0..160).filter_map(|_| bench.queue.dequeue(bench.now));
    let of_lanes = departures.filter(|departure| departure.packet.0 == 1).count();
    assert!((18..=22).contains(&of_lanes), "an eighth of 160, and what was saved up: {of_lanes}");
}

#[test]
fn who_has_stood_once_gets_out_again() {
    promises::a_surge_is_soon_forgotten::<Q>();
}

#[test]
fn who_waits_longer_pays_less() {
    // Two flows above their share in the same lanes, one of which always lets the other pass.
    let run = |surcharge| {
        let mut bench = with(SieveParams { surcharge, ..SieveParams::default() }).flow(1, 0.7).flow(2, 0.7);
        bench.sources[0].2 = Hint::LEAST_DELAY;
        bench.run(40)
    };
    let bench = run(0.0);
    assert!(bench.queue.waits[15] > bench.queue.waits[0] * 2, "{:?}", bench.queue.waits);
    assert!(bench.got[&1].lost() > bench.got[&2].lost() + 0.02, "{:?}", bench.got);
    // Both send the same, so in time both get the same.
    let got = run(1.0).got;
    assert!((got[&1].lost() - got[&2].lost()).abs() < 0.02, "{got:?}");
}

#[test]
fn marks_are_no_way_to_stay() {
    // A flow that ignores marks is dropped above `mark-until`, and gets its share.
    let share = promises::share_of_a_flow_that_ignores_marks::<Q>(false);
    assert!((share - 1.0 / 3.0).abs() < 0.08, "{share}");
    // So is one that claims to be scalable.
    let share = promises::share_of_a_flow_that_ignores_marks::<Q>(true);
    assert!(share < 0.42, "{share}");
    // Nor does it help to stay a little above the share, and to claim to be scalable.
    let share = promises::share_of_a_scalable_flow_above_its_share::<Q>();
    assert!(share < 0.21, "{share}");
    promises::marks_come_before_drops::<Q>(10);
}

/// Flow 3 is a call; flow 4 floods from an id that has its cell by the first salt.
#[test]
fn an_attack_by_a_known_salt_ends_with_it() {
    let got = |seconds| {
        let mut bench = usual().flow(3, 0.05).flow(1, 0.6).flow(2, 0.6).flow(4, 1.0);
        // The first packet draws the salt.
        bench.send(0, 0);
        let id = bench.queue.rates.collisions(3, true).next().unwrap();
        bench.sources[3].0 = Id::Flow(id);
        bench.run(seconds).got[&3]
    };
    // The second half of a minute: the call is a part of the flood, and loses as it does.
    assert!(got(58).lost() > 0.3, "{:?}", got(58));
    // Seconds 75 to 150.
    let after = got(150);
    assert!(after.lost() == 0.0 && after.longest <= Duration::from_millis(5), "{after:?}");
}

#[test]
fn a_host_has_one_share_and_its_flows_a_fair_part_of_it() {
    let by_host = SieveParams { key: Key::SourceThenFlow, ..SieveParams::default() };
    promises::a_host_has_one_share_and_its_flows_a_fair_part_of_it::<Q>(&by_host, 0.05, 0.012);
}

#[test]
fn new_flows_of_a_host_have_its_share() {
    promises::new_flows_of_a_host_have_its_share::<Q>(&SieveParams {
        key: Key::SourceThenFlow,
        ..SieveParams::default()
    });
}

#[test]
fn an_emptied_queue_is_a_new_one() {
    let mut bench = usual().flow(1, 1.5).flow(2, 0.1).run(5);
    let waiting = bench.queue.backlog().packets;
    let mut flushed = 0;
    bench.queue.reset(bench.now, &mut |_| flushed += 1);
    assert_eq!((flushed, bench.queue.backlog()), (waiting, Backlog::default()));
    assert_eq!(bench.queue.share.get(), 1e6);
    assert_eq!(bench.queue.probability(), Some(Probability::ZERO));
}
