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
fn sparse_flows_are_served_first_at_any_hint() {
    promises::sparse_flows_are_served_first_at_any_hint::<Q>(0.0);
}

#[test]
fn a_flow_keeps_its_order() {
    promises::a_flow_keeps_its_order::<Q>();
}

#[test]
fn flows_with_higher_rates_lose_more() {
    promises::flows_with_higher_rates_lose_more::<Q>(0.01);
}

#[test]
fn a_flow_that_does_not_respond_keeps_its_share() {
    promises::a_flow_that_does_not_respond_keeps_its_share::<Q>(0.0, 0.02);
}

#[test]
fn a_host_that_splits_its_traffic_gains_only_where_flows_count() {
    let by = |key| SieveParams { key, ..SieveParams::default() };
    promises::a_host_that_splits_its_traffic_gains_only_where_flows_count::<Q>(
        (&by(Key::Flow), 0.01),
        (&by(Key::Source), 0.02),
    );
}

#[test]
fn pulses_gain_no_share() {
    promises::pulses_gain_no_share::<Q>(1.02);
}

#[test]
fn new_flows_share_an_allowance() {
    let [call, flow] = promises::flood_of_new_flows::<Q>(&SieveParams::default());
    assert!(call.lost() == 0.0 && call.longest <= Duration::from_millis(5), "{call:?}");
    // All new flows are one that sends too much: 0.05 + f + f = 1.
    assert!((f64::from(flow.received) / 20_000.0 - 0.475).abs() < 0.05, "{flow:?}");
}

#[test]
fn the_effect_of_a_surge_ends_soon() {
    promises::the_effect_of_a_surge_ends_soon::<Q>();
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
fn a_flow_that_ignores_marks_is_held_to_its_share() {
    // A flow that ignores marks is dropped above `MARK_UNTIL`, and gets its share; scalable or not.
    for is_scalable in [false, true] {
        let share = promises::share_of_a_flow_that_ignores_marks::<Q>(is_scalable);
        assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
    }
    // Nor does it help to stay a little above the share, and to claim to be scalable.
    let share = promises::share_of_a_scalable_flow_above_its_share::<Q>();
    assert!(share < 0.204, "{share}");
    promises::marks_come_before_drops::<Q>(2);
}

/// Flow 3 is a call; sixteen others flood from ids that have its sets by the first salt.
#[test]
fn an_attack_by_a_known_salt_ends_with_it() {
    let got = |seconds| {
        let mut bench = usual().flow(3, 0.05).flow(1, 0.6).flow(2, 0.6);
        // The first packet draws the salt.
        bench.send(0, 0);
        let ids: Vec<u32> = bench.queue.flows.collisions(3).take(16).collect();
        bench = ids.iter().fold(bench, |bench, &id| bench.flow(id, 0.1));
        bench.run(seconds).got[&3]
    };
    // Seconds 75 to 150.
    let after = got(150);
    assert!(after.lost() == 0.0 && after.longest <= Duration::from_millis(5), "{after:?}");
}

/// Eighty flows have thirty-two cells. They share accounts, also where the salt changes meanwhile.
#[test]
fn flows_that_share_an_account_keep_their_order() {
    let mut bench = with(SieveParams { memory: 1024, ..SieveParams::default() });
    bench = (1..=80).fold(bench, |bench, flow| bench.flow(flow, 0.03));
    bench.send(0, 0);
    let guests = |bench: &Bench| bench.queue.flows.has_guests(bench.now);
    bench = bench.run(70);
    assert!(guests(&bench) && bench.now > Instant::ZERO + Duration::from_secs(65));
    assert!((1..=80).all(|flow| bench.got[&flow].received > 0), "{:?}", bench.got);
}

#[test]
fn a_host_has_one_share_and_its_flows_a_fair_part_of_it() {
    let by_host = SieveParams { key: Key::SourceThenFlow, ..SieveParams::default() };
    promises::a_host_has_one_share_and_its_flows_a_fair_part_of_it::<Q>(&by_host, 0.02, 0.005);
}

#[test]
fn new_flows_of_a_host_have_its_share() {
    promises::new_flows_of_a_host_have_its_share::<Q>(&SieveParams {
        key: Key::SourceThenFlow,
        ..SieveParams::default()
    });
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
fn sparse_flows_are_served_first_after_a_fall_of_the_rate() {
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

/// A link of 8 Mbit/s on the mean that sends in slots: 40 Mbit/s for 4 ms of 20, and 40 kbit/s for the others. The queue is given each rate.
#[test]
fn a_rate_of_a_moment_causes_no_drop() {
    let mut bench = usual().flow(1, 0.45).flow(2, 0.45).flow(3, 0.01).run(4);
    bench.got.clear();
    for ms in 4000..14_000_u32 {
        bench.now = Instant::ZERO + Duration::from_millis(ms.into());
        match ms % 20 {
            0 => bench.queue.set_rate(bench.now, Rate::from_mbps(40)),
            4 => bench.queue.set_rate(bench.now, Rate::from_kbps(40)),
            _ => {}
        }
        if ms % 20 < 18 {
            bench.send(ms as usize % 2, 1_000_000 + ms);
        }
        if ms % 100 == 50 {
            bench.send(2, 1_000_000 + ms);
        }
        (0..5).filter(|_| ms % 20 < 4).for_each(|_| bench.depart());
    }
    // A slot's packets may still wait.
    assert!((1..=2).all(|flow| bench.got[&flow].lost() < 0.005), "{:?}", bench.got);
    assert!(bench.got[&3].longest <= Duration::from_millis(16), "{:?}", bench.got);
}

/// Flows that always have twenty packets of 40 to 1500 B waiting, and the bytes that each has got, with a queue that drops none of them.
fn backlogged(flows: u32, random: &mut RandomStream) -> (Sieve<u32>, Vec<u64>) {
    let rtt = Duration::from_secs(10);
    let params = SieveParams { rtt, newcomer_age: Duration::ZERO, ..SieveParams::default() };
    let rate = Rate::from_mbps(8);
    let mut queue = Sieve::build(&params, Limit::Packets(100_000), false, rate).unwrap();
    let mut now = Instant::ZERO;
    let mut arrive = |queue: &mut Sieve<u32>, now, flow| {
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

/// A link of 8 Mbit/s in front of which a scalable sender, flow 2, sends packets of 1000 B at parts of its rate, a second each, with or
/// without 20 packets of flow 1 that always wait. Returns for each second the times of marks (ms of that second) and the longest
/// wait of flow 2 (ms).
fn seconds_of_a_scalable_sender(rates: &[f64], beside: bool) -> Vec<(Vec<u64>, u64)> {
    let seconds: Vec<_> = rates.iter().map(|rate| (*rate, 1)).collect();
    seconds_on_a_link_with_slots(&seconds, beside)
}

/// The same on a link that sends so many packets together in a slot, with the rate of each second.
fn seconds_on_a_link_with_slots(rates: &[(f64, u64)], beside: bool) -> Vec<(Vec<u64>, u64)> {
    let mut queue: Q =
        Sieve::build(&SieveParams::default(), Limit::Packets(1000), true, Rate::from_mbps(8)).unwrap();
    let mut random = cutline_units::Streams::new(1).stream("queue", "drop");
    let arrival = |flow| Arrival { flow, ..Arrival::new(1000, largest()) };
    let mut seconds = Vec::new();
    let (mut credit, mut waiting) = (0.0, 0);
    for (second, (rate, packets)) in (0..).zip(rates) {
        let (mut marks, mut longest) = (Vec::new(), 0);
        for ms in 0..1000 {
            let now = Instant::ZERO + Duration::from_millis(1000 * second + ms);
            while beside && waiting < 20 {
                queue.enqueue(now, arrival(1), (1, 0), &mut random);
                while queue.shed().is_some() {}
                waiting += 1;
            }
            credit += rate;
            while credit >= 1.0 {
                credit -= 1.0;
                let arrival = Arrival { ecn_capable: true, scalable: true, ..arrival(2) };
                if queue.enqueue(now, arrival, (2, 0), &mut random) == Verdict::Mark {
                    marks.push(ms);
                }
            }
            // A packet leaves in each millisecond on average.
            let slot = if (ms + 1).is_multiple_of(*packets) { *packets } else { 0 };
            for sent in (0..slot).map_while(|_| queue.dequeue(now)).collect::<Vec<_>>() {
                if sent.packet.0 == 1 {
                    waiting = (queue.backlog().packets as usize).min(waiting - 1);
                } else {
                    longest = longest.max(now.saturating_since(sent.arrived).as_nanos() / 1_000_000);
                }
            }
        }
        seconds.push((marks, longest));
    }
    seconds
}

#[test]
fn a_scalable_sender_is_marked_when_its_rate_passes_its_share_and_soon_no_longer() {
    // Its share is a half. The first mark ends its slow start. Half a share more is kept for it when it begins to send too much again.
    let mut seconds = seconds_of_a_scalable_sender(&[0.8, 0.1, 0.1, 0.25, 0.25, 0.55, 0.45, 0.25], true);
    let begun: Vec<_> = seconds.drain(..3).collect();
    assert!(!begun[0].0.is_empty(), "{begun:?}");
    let marks: Vec<usize> = seconds.iter().map(|(marks, _)| marks.len()).collect();
    assert_eq!(marks[1], 0, "below its share, and no longer new: {marks:?}");
    // It sends a tenth too much: an eighth of tau is used after 190 ms, all of it after a second and a half.
    let (first, last) = (seconds[2].0[0], seconds[3].0.last());
    assert!((150..400).contains(&first), "{first}");
    assert!(last.is_none_or(|last| *last < 300), "{last:?}");
    assert_eq!(marks[4], 0, "{marks:?}");
    assert!(
        seconds[1..].iter().all(|(_, longest)| *longest <= 3),
        "it never waits behind its own packets: {seconds:?}"
    );
    // While no other flow waits, none is served later because of it.
    let alone = seconds_of_a_scalable_sender(&[0.25, 0.95, 0.95], false);
    assert!(alone.iter().all(|(marks, _)| marks.is_empty()), "{alone:?}");
}

/// Alone, with an excess of a half. Its packets wait for a third of `rtt`, the target, after 67 ms.
#[test]
fn slow_start_of_a_scalable_sender_ends_by_the_price() {
    let seconds = seconds_of_a_scalable_sender(&[1.5, 0.25, 0.25, 1.5], false);
    let [first, again] = [0, 3].map(|second: usize| seconds[second].0.first());
    assert!(first.is_some_and(|first| *first > 67), "{seconds:?}");
    // Its slow start is over. It has sent less than its share, so it is below V until V falls to the served bytes, after `rtt`. From then on it is
    // marked by the ramp, from 2.3 ms on.
    assert!(again.is_some_and(|again| (100..106).contains(again)), "{seconds:?}");
}

/// Alone, with an excess of a half again after its slow start. Where a third of its packets is dropped, p' is 0.58, and it waits for 19 ms more
/// than where the first ramp ends, 4.5 ms. From 38 ms on all are dropped.
#[test]
fn a_scalable_sender_that_ignores_marks_waits_briefly() {
    let seconds = seconds_of_a_scalable_sender(&[1.5, 0.25, 0.25, 1.5, 1.5, 1.5], false);
    assert!(seconds[4..].iter().all(|(_, longest)| (10..40).contains(longest)), "{seconds:?}");
}

/// Packets wait for the next slot, up to 19 ms, which is not their sender's doing. While it sends 5 % less than the link, hardly any packet is
/// marked. An excess is marked, and on a link without slots its queue of up to 19 ms is marked until it is gone.
#[test]
fn pauses_of_the_link_are_not_a_scalable_senders_own_wait() {
    let begun = [(1.5, 20), (0.25, 20), (0.25, 20)];
    let steady = seconds_on_a_link_with_slots(&[&begun[..], &[(0.95, 20); 3]].concat(), false);
    assert!(!steady[0].0.is_empty(), "its slow start ends by a mark: {steady:?}");
    let settled = &steady[4..];
    assert!(settled.iter().all(|(marks, longest)| marks.len() < 10 && *longest == 19), "{settled:?}");
    let excess = seconds_on_a_link_with_slots(&[&begun[..], &[(1.2, 20), (1.0, 1)]].concat(), false);
    let [slots, none] = &excess[3..] else { panic!("two seconds") };
    assert!(slots.0.len() > 500, "{slots:?}");
    assert!(none.0.last().is_some_and(|last| *last > 500), "{none:?}");
}

/// A tunnel in which every second packet is that of a scalable sender, with 1.005 times the rate of the link. Of the others up to 1 % is dropped, and a
/// few times as many of the scalable sender's are marked. By the ramps all would be, since the tunnel always waits for more than the target.
#[test]
fn a_scalable_sender_in_a_tunnel_has_the_price_of_the_others() {
    let mut queue: Q =
        Sieve::build(&SieveParams::default(), Limit::Packets(1000), true, Rate::from_mbps(8)).unwrap();
    let mut random = cutline_units::Streams::new(1).stream("queue", "drop");
    let (mut marks, mut drops, mut number) = (0, 0, 0_u32);
    let mut credit = 0.0;
    for ms in 0..60_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        credit += 1.005;
        while credit >= 1.0 {
            credit -= 1.0;
            number += 1;
            let is_scalable = number.is_multiple_of(2);
            let arrival = Arrival { flow: 1, ..Arrival::new(1000, largest()) };
            let arrival = Arrival { ecn_capable: is_scalable, scalable: is_scalable, ..arrival };
            match queue.enqueue(now, arrival, (1, 0), &mut random) {
                Verdict::Mark => marks += u32::from(ms > 10_000),
                Verdict::Drop(_) => drops += u32::from(ms > 10_000),
                Verdict::Pass => {}
            }
        }
        queue.dequeue(now);
    }
    let [marked, dropped] = [marks, drops].map(|count| f64::from(count) / 25_000.0);
    assert!((0.004..0.01).contains(&dropped), "{dropped}");
    assert!((3.0 * dropped..12.0 * dropped).contains(&marked), "{marked} of marks, {dropped} of drops");
}

/// A warning counts for two round trips, and not again when the ticks have wrapped.
#[test]
fn a_warning_of_long_ago_does_not_return() {
    let round_trip = Duration::from_millis(200);
    let begin = Instant::ZERO + Duration::from_secs(100);
    let mut account = super::accounts::Account::default();
    account.warn(begin, round_trip);
    assert!(account.was_warned() && account.is_warned(begin + Duration::from_millis(199), round_trip));
    for second in 1..68 {
        let now = begin + Duration::from_secs(second);
        assert!(!account.is_warned(now, round_trip), "after {second} s");
    }
}
