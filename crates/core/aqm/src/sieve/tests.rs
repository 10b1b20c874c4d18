//! Sieve's promises, each by a queue in front of a link that is driven by hand.

use super::*;
use crate::bench::{Id, largest};
use cutline_units::Hint;

type Bench = crate::bench::Bench<Sieve<(u32, u32)>>;

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
    let mut bench = usual().flow(1, 0.9).flow(2, 0.9).flow(3, 0.05);
    bench.sources[0].2 = Hint::LEAST_DELAY;
    let got = bench.run(20).got;
    assert!(got[&3].lost() < 0.01 && got[&3].longest <= Duration::from_millis(3), "{:?}", got[&3]);
    assert!(got[&1].lost() > 0.3 && got[&2].lost() > 0.3, "{got:?}");
}

#[test]
fn a_flow_keeps_its_order() {
    // Rates from far below to far above the share, in bursts; `depart` looks at the order.
    let rates = [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5];
    let bench = rates.iter().zip(1..).fold(usual(), |bench, (&rate, flow)| bench.flow(flow, rate));
    let bench = bench.run(30);
    assert!(
        bench.queue.readings().sieve.unwrap().went_first.packets > 1000
            && bench.queue.stats().dropped_in_all().packets > 1000
    );
}

#[test]
fn who_sends_more_loses_more() {
    let got = usual().flow(1, 0.4).flow(2, 0.6).flow(3, 1.2).run(60).got;
    // A third of the link each, whatever they send.
    for flow in 1..=3 {
        let share = f64::from(got[&flow].received) / 30_000.0;
        assert!((share - 1.0 / 3.0).abs() < 0.06, "flow {flow}: {share}");
    }
    assert!(got[&1].lost() < got[&2].lost() && got[&2].lost() < got[&3].lost());
}

#[test]
fn a_flow_that_does_not_respond_keeps_its_share() {
    // 0.6 of the link for nine flows below the share; the tenth sends as much as the link has and gets what is left.
    let bench = (2..=10).fold(usual().flow(1, 1.0), |bench, flow| bench.flow(flow, 0.066));
    let got = bench.run(40).got;
    assert!((2..=10).all(|flow| got[&flow].lost() < 0.005), "{got:?}");
    assert!((got[&1].lost() - 0.6).abs() < 0.05, "{}", got[&1].lost());
}

#[test]
fn a_host_that_splits_its_traffic_gains_only_where_flows_count() {
    // Flow 1 is a host of its own, flows 2 to 10 are those of another one.
    let received = |key| {
        let bench = with(SieveParams { key, ..SieveParams::default() });
        let got = (1..=10).fold(bench, |bench, flow| bench.flow(flow, 0.6)).run(40).got;
        f64::from(got[&1].received) / 20_000.0
    };
    assert!((received(Key::Flow) - 0.1).abs() < 0.03, "{}", received(Key::Flow));
    assert!((received(Key::Source) - 0.5).abs() < 0.08, "{}", received(Key::Source));
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
    let received = |pulses: Option<u64>| {
        let mut bench = usual().flow(1, 0.6).flow(2, 0.6).flow(3, 0.6);
        bench.pulses = pulses;
        f64::from(bench.run(60).got[&1].received)
    };
    // Periods around tau = 250 ms.
    for period in [20, 100, 250, 500] {
        let gain = received(Some(period)) / received(None);
        assert!(gain < 1.1, "pulses of {period} ms get {gain} times as much");
    }
}

#[test]
fn new_flows_share_an_allowance() {
    let flood = |share| {
        let mut bench =
            with(SieveParams { newcomers: share, ..SieveParams::default() }).flow(1, 0.05).flow(2, 0.6);
        bench.sources.push((Id::NewFlows, 2.0, largest(), false));
        bench.run(40).got
    };
    let got = flood(0.125);
    assert!(got[&1].lost() < 0.01 && got[&1].longest <= Duration::from_millis(5), "{:?}", got[&1]);
    // All new flows are one that sends too much: 0.05 + f + f = 0.95 of the link.
    assert!((f64::from(got[&2].received) / 20_000.0 - 0.45).abs() < 0.06, "{:?}", got[&2]);
    // With the whole link for newcomers, they take most of it.
    assert!(flood(1.0)[&2].lost() > 0.5);
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
    // Flow 3 is sparse, but for a second in which it sends ten times as much.
    let mut bench = usual().flow(1, 0.7).flow(2, 0.7).flow(3, 0.06);
    bench.surge = Some((2, 5000..6000));
    let got = bench.run(20).got;
    assert!(got[&3].longest <= Duration::from_millis(5), "four seconds later: {:?}", got[&3]);
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
    let mut bench = usual().flow(1, 0.55).flow(2, 0.55).flow(3, 2.0);
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    let got = bench.run(60).got;
    assert!((f64::from(got[&3].received) / 30_000.0 - 1.0 / 3.0).abs() < 0.08, "{got:?}");
    // So is one that claims to be scalable.
    let mut bench = usual().flow(1, 0.55).flow(2, 0.55).flow(3, 2.0);
    bench.scalable = true;
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    let got = bench.run(60).got;
    assert!(f64::from(got[&3].received) / 30_000.0 < 0.42, "{got:?}");
    // Nor does it help to stay a little above the share, and to claim to be scalable.
    let mut bench = (2..=5).fold(usual().flow(1, 0.3), |bench, flow| bench.flow(flow, 0.21));
    (bench.scalable, bench.sources[0].3) = (true, true);
    let got = bench.run(60).got;
    assert!(f64::from(got[&1].received) / 30_000.0 < 0.21, "{got:?}");
    // A little above the share, packets are marked and not dropped.
    let mut bench = usual().flow(1, 0.51).flow(2, 0.51);
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    let bench = bench.run(20);
    let (marked, dropped) =
        (bench.queue.stats().marked.packets, bench.queue.stats().dropped_in_all().packets);
    assert!(marked > 10 * dropped, "{marked} marked, {dropped} dropped");
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

/// Flows 2 to 11 are those of one host, of which flow 2 is sparse; flow 1 is another host.
#[test]
fn a_host_has_one_share_and_its_flows_a_fair_part_of_it() {
    let bench = with(SieveParams { key: Key::SourceThenFlow, ..SieveParams::default() });
    let bench = bench.flow(1, 1.0).flow(2, 0.02).flow(3, 1.0);
    let got = (4..=11).fold(bench, |bench, flow| bench.flow(flow, 0.2)).run(60).got;
    let received = |flow: u32| f64::from(got[&flow].received) / 30_000.0;
    assert!((received(1) - 0.5).abs() < 0.05, "{}", received(1));
    assert!(got[&2].lost() == 0.0 && got[&2].longest <= Duration::from_millis(5), "{:?}", got[&2]);
    // (0.5 - 0.02) / 9
    for flow in 3..=11 {
        assert!((received(flow) - 0.053).abs() < 0.012, "flow {flow}: {}", received(flow));
    }
}

/// Flow 1 is a host of its own, and all new flows come from another one.
#[test]
fn new_flows_of_a_host_have_its_share() {
    let bench = with(SieveParams { key: Key::SourceThenFlow, ..SieveParams::default() });
    let mut bench = bench.flow(1, 1.0);
    bench.sources.push((Id::NewFlows, 4.0, largest(), false));
    let got = bench.run(60).got;
    assert!((f64::from(got[&1].received) / 30_000.0 - 0.5).abs() < 0.06, "{got:?}");
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
