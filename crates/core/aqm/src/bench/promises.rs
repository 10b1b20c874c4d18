//! Promises of Sieve's designs. Each test of a design calls one of these functions with the design's bounds, which are ratios: of lost
//! packets to sent ones, or of a rate to the link's.

use super::{Bench, Got, Id, largest};
use crate::{Discipline, Queue};
use cutline_units::{Duration, Hint};

/// Flow 3 sends far less than its share and the others far more; the hint of flow 1 requests the least delay.
pub(crate) fn sparse_flows_are_served_first_at_any_hint<Q: Sieving>(most_lost: f64) {
    let mut bench = usual::<Q>().flow(1, 0.9).flow(2, 0.9).flow(3, 0.05);
    bench.sources[0].2 = Hint::LEAST_DELAY;
    let got = bench.run(20).got;
    assert!(got[&3].lost() <= most_lost && got[&3].longest <= Duration::from_millis(3), "{:?}", got[&3]);
    assert!(got[&1].lost() > 0.3 && got[&2].lost() > 0.3, "{got:?}");
}

/// Rates from far below to far above the share, in bursts; `depart` checks the order.
pub(crate) fn a_flow_keeps_its_order<Q: Sieving>() {
    let rates = [0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5];
    let bench = rates.iter().zip(1..).fold(usual::<Q>(), |bench, (&rate, flow)| bench.flow(flow, rate));
    let bench = bench.run(30);
    assert!(
        bench.queue.readings().sieve.unwrap().below.packets > 1000
            && bench.queue.stats().dropped_in_all().packets > 1000
    );
}

/// A third of the link for each of three flows, whatever they send.
pub(crate) fn flows_with_higher_rates_lose_more<Q: Sieving>(tolerance: f64) {
    let got = usual::<Q>().flow(1, 0.4).flow(2, 0.6).flow(3, 1.2).run(60).got;
    for flow in 1..=3 {
        let share = f64::from(got[&flow].received) / 30_000.0;
        assert!((share - 1.0 / 3.0).abs() < tolerance, "flow {flow}: {share}");
    }
    assert!(got[&1].lost() < got[&2].lost() && got[&2].lost() < got[&3].lost());
}

/// 0.6 of the link for nine flows below the share; the tenth sends as much as the link has and gets the rest.
pub(crate) fn a_flow_that_does_not_respond_keeps_its_share<Q: Sieving>(most_lost: f64, tolerance: f64) {
    let bench = (2..=10).fold(usual::<Q>().flow(1, 1.0), |bench, flow| bench.flow(flow, 0.066));
    let got = bench.run(40).got;
    assert!((2..=10).all(|flow| got[&flow].lost() <= most_lost), "{got:?}");
    assert!((got[&1].lost() - 0.6).abs() < tolerance, "{}", got[&1].lost());
}

/// Flow 1 is a host of its own, flows 2 to 10 are those of another one: a tenth of the link by flows, and half of it by hosts.
pub(crate) fn a_host_that_splits_its_traffic_gains_only_where_flows_count<Q: Sieving>(
    (by_flow, of_flow): (&Q::Params, f64),
    (by_host, of_host): (&Q::Params, f64),
) {
    let received = |params| {
        let bench = Bench::<Q>::new(params);
        let got = (1..=10).fold(bench, |bench, flow| bench.flow(flow, 0.6)).run(40).got;
        f64::from(got[&1].received) / 20_000.0
    };
    assert!((received(by_flow) - 0.1).abs() < of_flow, "{}", received(by_flow));
    assert!((received(by_host) - 0.5).abs() < of_host, "{}", received(by_host));
}

/// Pulses with periods around tau = 250 ms.
pub(crate) fn pulses_gain_no_share<Q: Sieving>(most_gain: f64) {
    let received = |pulses: Option<u64>| {
        let mut bench = usual::<Q>().flow(1, 0.6).flow(2, 0.6).flow(3, 0.6);
        bench.pulses = pulses;
        f64::from(bench.run(60).got[&1].received)
    };
    for period in [20, 100, 250, 500] {
        let gain = received(Some(period)) / received(None);
        assert!(gain < most_gain, "pulses of {period} ms get {gain} times as much");
    }
}

/// Flow 3 is sparse, but for a second in which it sends ten times as much.
pub(crate) fn the_effect_of_a_surge_ends_soon<Q: Sieving>() {
    let mut bench = usual::<Q>().flow(1, 0.7).flow(2, 0.7).flow(3, 0.06);
    bench.surge = Some((2, 5000..6000));
    let got = bench.run(20).got;
    assert!(got[&3].longest <= Duration::from_millis(5), "four seconds later: {:?}", got[&3]);
}

/// Flow 3 ignores marks, and claims to be scalable or not. Returns its share of the link.
pub(crate) fn share_of_a_flow_that_ignores_marks<Q: Sieving>(is_scalable: bool) -> f64 {
    let mut bench = usual::<Q>().flow(1, 0.55).flow(2, 0.55).flow(3, 2.0);
    bench.scalable = is_scalable;
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    f64::from(bench.run(60).got[&3].received) / 30_000.0
}

/// Flow 1 stays a little above the share of a fifth, and claims to be scalable. Returns its share of the link.
pub(crate) fn share_of_a_scalable_flow_above_its_share<Q: Sieving>() -> f64 {
    let mut bench = (2..=5).fold(usual::<Q>().flow(1, 0.3), |bench, flow| bench.flow(flow, 0.21));
    (bench.scalable, bench.sources[0].3) = (true, true);
    f64::from(bench.run(60).got[&1].received) / 30_000.0
}

/// A little above the share, packets are marked and not dropped.
pub(crate) fn marks_come_before_drops<Q: Sieving>(least_ratio: u64) {
    let mut bench = usual::<Q>().flow(1, 0.51).flow(2, 0.51);
    bench.sources.iter_mut().for_each(|source| source.3 = true);
    let bench = bench.run(20);
    let (marked, dropped) =
        (bench.queue.stats().marked.packets, bench.queue.stats().dropped_in_all().packets);
    assert!(marked > least_ratio * dropped, "{marked} marked, {dropped} dropped");
}

/// Flows 2 to 11 are those of one host, of which flow 2 is sparse; flow 1 is another host.
pub(crate) fn a_host_has_one_share_and_its_flows_a_fair_part_of_it<Q: Sieving>(
    by_host: &Q::Params,
    of_host: f64,
    of_flow: f64,
) {
    let bench = Bench::<Q>::new(by_host).flow(1, 1.0).flow(2, 0.02).flow(3, 1.0);
    let got = (4..=11).fold(bench, |bench, flow| bench.flow(flow, 0.2)).run(60).got;
    let received = |flow: u32| f64::from(got[&flow].received) / 30_000.0;
    assert!((received(1) - 0.5).abs() < of_host, "{}", received(1));
    assert!(got[&2].lost() == 0.0 && got[&2].longest <= Duration::from_millis(5), "{:?}", got[&2]);
    // (0.5 - 0.02) / 9
    for flow in 3..=11 {
        assert!((received(flow) - 0.053).abs() < of_flow, "flow {flow}: {}", received(flow));
    }
}

/// Flow 1 is a host of its own, and all new flows come from another one.
pub(crate) fn new_flows_of_a_host_have_its_share<Q: Sieving>(by_host: &Q::Params) {
    let mut bench = Bench::<Q>::new(by_host).flow(1, 1.0);
    bench.sources.push((Id::NewFlows, 4.0, largest(), false));
    let got = bench.run(60).got;
    assert!((f64::from(got[&1].received) / 30_000.0 - 0.5).abs() < 0.06, "{got:?}");
}

/// A call at 0.05 of the link, a flow at 0.6, and new flows at twice the link. Returns the service of call and flow.
pub(crate) fn flood_of_new_flows<Q: Sieving>(params: &Q::Params) -> [Got; 2] {
    let mut bench = Bench::<Q>::new(params).flow(1, 0.05).flow(2, 0.6);
    bench.sources.push((Id::NewFlows, 2.0, largest(), false));
    let got = bench.run(40).got;
    [got[&1], got[&2]]
}

/// A queue of Sieve's designs.
pub(crate) trait Sieving: Discipline<Params: Default> + Queue<(u32, u32)> {}

impl<Q: Discipline<Params: Default> + Queue<(u32, u32)>> Sieving for Q {}

fn usual<Q: Sieving>() -> Bench<Q> {
    Bench::new(&Q::Params::default())
}
