//! Sieve's promises, each by a queue in front of a link that is driven by hand.

use super::*;
use crate::bench::{Id, largest};
use cutline_units::Hint;

type Bench = crate::bench::Bench<SieveAccount<(u32, u32)>>;

fn usual() -> Bench {
    with(SieveAccountParams::default())
}

fn with(params: SieveAccountParams) -> Bench {
    Bench::new(&params)
}

#[test]
fn the_sparse_go_first_whatever_their_hint() {
    let mut bench = usual().flow(1, 0.9).flow(2, 0.9).flow(3, 0.05);
    bench.sources[0].2 = Hint::LEAST_DELAY;
    let got = bench.run(20).got;
    assert!(got[&3].lost() == 0.0 && got[&3].longest <= Duration::from_millis(3), "{:?}", got[&3]);
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
        assert!((share - 1.0 / 3.0).abs() < 0.01, "flow {flow}: {share}");
    }
    assert!(got[&1].lost() < got[&2].lost() && got[&2].lost() < got[&3].lost());
}

#[test]
fn a_flow_that_does_not_respond_keeps_its_share() {
    // 0.6 of the link for nine flows below the share; the tenth sends as much as the link has and gets what is left.
    let bench = (2..=10).fold(usual().flow(1, 1.0), |bench, flow| bench.flow(flow, 0.066));
    let got = bench.run(40).got;
    assert!((2..=10).all(|flow| got[&flow].lost() == 0.0), "{got:?}");
    assert!((got[&1].lost() - 0.6).abs() < 0.02, "{}", got[&1].lost());
}

#[test]
fn a_host_that_splits_its_traffic_gains_only_where_flows_count() {
    // Flow 1 is a host of its own, flows 2 to 10 are those of another one.
    let received = |key| {
        let bench = with(SieveAccountParams { key, ..SieveAccountParams::default() });
        let got = (1..=10).fold(bench, |bench, flow| bench.flow(flow, 0.6)).run(40).got;
        f64::from(got[&1].received) / 20_000.0
    };
    assert!((received(Key::Flow) - 0.1).abs() < 0.01, "{}", received(Key::Flow));
    assert!((received(Key::Source) - 0.5).abs() < 0.02, "{}", received(Key::Source));
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
        assert!(gain < 1.02, "pulses of {period} ms get {gain} times as much");
    }
}

#[test]
fn new_flows_share_an_allowance() {
    let mut bench = usual().flow(1, 0.05).flow(2, 0.6);
    bench.sources.push((Id::NewFlows, 2.0, largest(), false));
    let got = bench.run(40).got;
    assert!(got[&1].lost() == 0.0 && got[&1].longest <= Duration::from_millis(5), "{:?}", got[&1]);
    // All new flows are one that sends too much: 0.05 + f + f = 1.
    assert!((f64::from(got[&2].received) / 20_000.0 - 0.475).abs() < 0.05, "{:?}", got[&2]);
}

#[test]
fn a_surge_is_soon_forgotten() {
    // Flow 3 is sparse, but for a second in which it sends ten times as much.
    let mut bench = usual().flow(1, 0.7).flow(2, 0.7).flow(3, 0.06);
    bench.surge = Some((2, 5000..6000));
    let got = bench.run(20).got;
    assert!(got[&3].longest <= Duration::from_millis(5), "four seconds later: {:?}", got[&3]);
}

/// A flow that claims to mind delay waits less and loses more, and does not get more.
#[test]
fn a_hint_is_a_target() {
    let mut bench = usual().flow(1, 0.36).flow(2, 0.36).flow(3, 0.36);
    bench.sources[0].2 = Hint::LEAST_DELAY;
    let got = bench.run(60).got;
    assert!(got[&1].longest * 10 < got[&2].longest * 9, "{got:?}");
    assert!(got[&1].lost() >= got[&2].lost() - 0.01, "{got:?}");
}

#[test]
fn marks_are_no_way_to_stay() {
    // A flow that ignores marks is dropped above `MARK_UNTIL`, and gets its share; scalable or not.
    for scalable in [false, true] {
        let mut bench = usual().flow(1, 0.55).flow(2, 0.55).flow(3, 2.0);
        bench.scalable = scalable;
        bench.sources.iter_mut().for_each(|source| source.3 = true);
        let got = bench.run(60).got;
        assert!((f64::from(got[&3].received) / 30_000.0 - 1.0 / 3.0).abs() < 0.01, "{got:?}");
    }
    // Nor does it help to stay a little above the share, and to claim to be scalable.
    let mut bench = (2..=5).fold(usual().flow(1, 0.3), |bench, flow| bench.flow(flow, 0.21));
    (bench.scalable, bench.sources[0].3) = (true, true);
    let got = bench.run(60).got;
    assert!(f64::from(got[&1].received) / 30_000.0 < 0.204, "{got:?}");
    // A little above the share, packets are marked and not dropped.
    let mut bench = usual().flow(1, 0.51).flow(2, 0.51);
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    let bench = bench.run(20);
    let (marked, dropped) =
        (bench.queue.stats().marked.packets, bench.queue.stats().dropped_in_all().packets);
    assert!(marked > 2 * dropped, "{marked} marked, {dropped} dropped");
}

/// Flow 3 is a call; flows 101 to 108 flood from ids that have its set by the first salt.
#[test]
fn an_attack_by_a_known_salt_ends_with_it() {
    let got = |seconds| {
        let mut bench = usual().flow(3, 0.05).flow(1, 0.6).flow(2, 0.6);
        // The first packet draws the salt.
        bench.send(0, 0);
        let ids: Vec<u32> = bench.queue.flows.collisions(3).take(8).collect();
        bench = ids.iter().fold(bench, |bench, &id| bench.flow(id, 0.2));
        bench.run(seconds).got[&3]
    };
    // Seconds 75 to 150.
    let after = got(150);
    assert!(after.lost() == 0.0 && after.longest <= Duration::from_millis(5), "{after:?}");
}

/// Flows 2 to 11 are those of one host, of which flow 2 is sparse; flow 1 is another host.
#[test]
fn a_host_has_one_share_and_its_flows_a_fair_part_of_it() {
    let bench = with(SieveAccountParams { key: Key::SourceThenFlow, ..SieveAccountParams::default() });
    let bench = bench.flow(1, 1.0).flow(2, 0.02).flow(3, 1.0);
    let got = (4..=11).fold(bench, |bench, flow| bench.flow(flow, 0.2)).run(60).got;
    let received = |flow: u32| f64::from(got[&flow].received) / 30_000.0;
    assert!((received(1) - 0.5).abs() < 0.02, "{}", received(1));
    assert!(got[&2].lost() == 0.0 && got[&2].longest <= Duration::from_millis(5), "{:?}", got[&2]);
    // (0.5 - 0.02) / 9
    for flow in 3..=11 {
        assert!((received(flow) - 0.053).abs() < 0.005, "flow {flow}: {}", received(flow));
    }
}

/// Flow 1 is a host of its own, and all new flows come from another one.
#[test]
fn new_flows_of_a_host_have_its_share() {
    let bench = with(SieveAccountParams { key: Key::SourceThenFlow, ..SieveAccountParams::default() });
    let mut bench = bench.flow(1, 1.0);
    bench.sources.push((Id::NewFlows, 4.0, largest(), false));
    let got = bench.run(60).got;
    assert!((f64::from(got[&1].received) / 30_000.0 - 0.5).abs() < 0.06, "{got:?}");
}

/// Three calls begin with ten flows that send a burst each 20 ms, beside two flows that fill the link.
#[test]
fn calls_that_begin_do_not_wait_for_slow_starts() {
    let mut bench = usual().flow(1, 0.7).flow(2, 0.7).run(4);
    bench.sources = (11..21).map(|flow| (Id::Flow(flow), 0.0, largest(), false)).collect();
    bench.sources.extend((21..24).map(|flow| (Id::Flow(flow), 0.0, largest(), false)));
    bench.got.clear();
    for ms in 0..400 {
        bench.now += Duration::from_millis(1);
        if ms < 200 && ms % 20 == 0 {
            for number in 0..10 {
                (0..10).for_each(|source| bench.send(source, ms * 100 + number));
            }
        }
        if ms < 200 && ms % 20 == 5 {
            (10..13).for_each(|source| bench.send(source, ms));
        }
        bench.depart();
    }
    for call in 21..24 {
        let got = bench.got[&call];
        assert!(got.lost() == 0.0 && got.longest <= Duration::from_millis(100), "flow {call}: {got:?}");
    }
}

/// From 8 to 0.8 Mbit/s.
#[test]
fn after_a_fall_of_the_rate_the_sparse_go_first_at_once() {
    let mut bench = usual().flow(1, 0.9).flow(2, 0.9).flow(3, 0.01).run(10);
    bench.queue.set_rate(bench.now, Rate::from_kbps(800));
    bench.got.clear();
    let mut longest = Duration::ZERO;
    for ms in 1..5000_u32 {
        bench.now += Duration::from_millis(1);
        (0..2).filter(|_| ms % 2 == 0).for_each(|source| bench.send(source, 1_000_000 + ms));
        if ms % 100 == 0 {
            bench.send(2, 1_000_000 + ms);
        }
        if ms % 10 == 0 {
            bench.depart();
        }
        longest = longest.max(bench.got.get(&3).map_or(Duration::ZERO, |got| got.longest));
    }
    // A packet takes 10 ms.
    assert!(longest <= Duration::from_millis(30), "{longest:?}");
}

/// Flows that always have twenty packets of 40 to 1500 B waiting, and what each has got, with a queue that drops none of them.
fn backlogged(flows: u32, random: &mut RandomStream) -> (SieveAccount<u32>, Vec<u64>) {
    let rtt = Duration::from_secs(10);
    let params = SieveAccountParams { rtt, newcomer_age: Duration::ZERO, ..SieveAccountParams::default() };
    let rate = Rate::from_mbps(8);
    let mut queue = SieveAccount::build(&params, Limit::Packets(100_000), false, rate).unwrap();
    let mut now = Instant::ZERO;
    let mut arrive = |queue: &mut SieveAccount<u32>, now, flow| {
        let size = 40 + (random.uniform() * 1461.0) as u32;
        queue.enqueue(now, Arrival { flow, ..Arrival::new(size, largest()) }, flow, random);
    };
    (0..20 * flows).for_each(|number| arrive(&mut queue, now, number % flows));
    let mut sent = vec![0; flows as usize];
    for round in 0..20_000 {
        let departure = queue.dequeue(now).expect("packets wait");
        now += rate.transmission_time(cutline_units::Bytes::new(departure.size.into()));
        sent[departure.packet as usize] += u64::from(departure.size) * u64::from(round >= 1000);
        arrive(&mut queue, now, departure.packet);
    }
    (queue, sent)
}

/// Goyal, Vin, Cheng 1996, theorem 1, and the width of a slot. The flows are backlogged all of the time, so in every interval the
/// bytes that two of them got differ by at most the sum of their largest packets and the packets that are sorted wrongly.
#[test]
fn backlogged_flows_get_the_same_to_two_packets() {
    for flows in [2, 3, 7, 20] {
        let mut random = cutline_units::Streams::new(flows.into()).stream("queue", "drop");
        let (queue, sent) = backlogged(flows, &mut random);
        let (least, most) = (*sent.iter().min().unwrap(), *sent.iter().max().unwrap());
        let bound = 2 * 1500 + queue.calendar.width() as u64 * 2;
        assert!(most - least <= bound, "{flows} flows, {bound} B: {sent:?}");
        assert!(least > 100_000, "{sent:?}");
    }
}

/// Of n sparse flows each waits for at most a packet of each other one and the packet in service, whatever three others send.
#[test]
fn a_sparse_flow_waits_for_sparse_flows_alone() {
    for sparse in [1, 5, 20] {
        let mut bench = usual().flow(1, 0.5).flow(2, 1.0).flow(3, 3.0);
        for flow in 0..sparse {
            bench = bench.flow(100 + flow, 0.01);
        }
        let got = bench.run(20).got;
        for flow in 100..100 + sparse {
            let bound = Duration::from_millis(u64::from(sparse) + 1);
            assert!(got[&flow].lost() == 0.0 && got[&flow].longest <= bound, "{sparse}: {:?}", got[&flow]);
        }
    }
}

/// A flow gets a third of what three flows get, to 2 %, for any claim and any rate of its own.
#[test]
fn no_claim_gains_a_share() {
    for hint in [1, 4, 16] {
        for (ecn, scalable) in [(false, false), (true, false), (true, true)] {
            for rate in [0.4, 0.8, 4.0] {
                let mut bench = usual().flow(1, rate).flow(2, 0.6).flow(3, 0.6);
                bench.sources[0].2 = Hint::from_level(hint);
                (bench.sources[0].3, bench.scalable) = (ecn, scalable);
                let received = f64::from(bench.run(30).got[&1].received) / 15_000.0;
                assert!(received < 1.02 / 3.0, "hint {hint}, {ecn}, {scalable}, {rate}: {received}");
            }
        }
    }
}

#[test]
fn an_emptied_queue_is_a_new_one() {
    let mut bench = usual().flow(1, 1.5).flow(2, 0.1).run(5);
    let waiting = bench.queue.backlog().packets;
    let mut flushed = 0;
    bench.queue.reset(bench.now, &mut |_| flushed += 1);
    assert_eq!((flushed, bench.queue.backlog()), (waiting, Backlog::default()));
    assert_eq!(bench.queue.share, 1e6);
    assert!(bench.queue.calendar.is_empty());
}
