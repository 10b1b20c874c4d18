//! Stability of the feedback of a path, in a closed loop with the model of `model.rs`. The rules were set before the first run.

use crate::model::{Model, Setup};
use cutline_manager::feedback::FeedbackParams;
use cutline_units::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Behaviour after a bottleneck has halved.
#[derive(Debug)]
struct StepResponse {
    /// Times that flows were lowered before the step.
    false_alarms: u64,
    /// Rates of each second from 30 s after the step on, as shares of the capacity.
    rates: Vec<f64>,
    /// Times that flows were lowered from 30 s after the step on.
    lowered: u64,
    /// The share of intervals inside of the region from 30 s after the step on.
    inside: f64,
    /// Rate 180 s after the capacity has come back, as a share of the demand.
    recovered: f64,
}

/// Runs 60 s with a capacity of 1.25 of the demand, 240 s with half of that, and 180 s with the first one again.
fn step_response(setup: Setup) -> StepResponse {
    let demand = setup.demand * (setup.hosts * setup.flows_per_host) as f64;
    let mut model = Model::new(setup, demand * 1.25);
    model.run(60.0, |_| {});
    let false_alarms = model.lowered();
    model.capacity = demand * 0.625;
    model.run(30.0, |_| {});
    let before = model.lowered();
    let mut rates = Vec::new();
    model.run(210.0, |model| rates.push(model.rate() / model.capacity));
    let lowered = model.lowered() - before;
    let inside = model.inside(90.0, 300.0);
    model.capacity = demand * 1.25;
    model.run(180.0, |_| {});
    StepResponse { false_alarms, rates, lowered, inside, recovered: model.rate() / demand }
}

/// The rules for a step response:
///
/// 1. Nothing is lowered before the step.
/// 2. From 30 s after it on, the rate of all flows is 70 % to 105 % of the capacity in 95 % of the seconds, and at
///    least 80 % in the mean.
/// 3. In these 210 s flows are lowered at most 7 times: once in 30 s.
/// 4. 97 % of the intervals are inside of the region.
/// 5. 180 s after the capacity has come back, flows send at least 90 % of their demand.
fn assert_settles(name: &str, setup: Setup) {
    let response = step_response(setup);
    let StepResponse { false_alarms, rates, lowered, inside, recovered } = &response;
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let within = rates.iter().filter(|rate| (0.7..=1.05).contains(*rate)).count() as f64 / rates.len() as f64;
    println!(
        "{name}: mean {mean:.3}, within {within:.3}, lowered {lowered}, inside {inside:.4}, recovered {recovered:.3}, false {false_alarms}"
    );
    assert_eq!(*false_alarms, 0, "{name}: rule 1");
    assert!(within >= 0.95 && mean >= 0.8, "{name}: rule 2: {within}, {mean}: {rates:.2?}");
    assert!(*lowered <= 7, "{name}: rule 3: {lowered}: {rates:.2?}");
    assert!(*inside >= 0.97, "{name}: rule 4: {inside}: {rates:.2?}");
    assert!(*recovered >= 0.9, "{name}: rule 5: {recovered}");
}

#[test]
fn a_host_alone_settles_at_any_delay() {
    for delay in [5, 100, 500] {
        let setup = Setup { hosts: 1, flows_per_host: 4, delay: ms(delay), ..Setup::default() };
        assert_settles(&format!("1 host, {delay} ms"), setup);
    }
}

#[test]
fn two_hosts_settle_at_any_delay() {
    for delay in [5, 100, 500] {
        assert_settles(&format!("2 hosts, {delay} ms"), Setup { delay: ms(delay), ..Setup::default() });
    }
}

#[test]
fn thirty_hosts_settle_at_any_delay() {
    for delay in [5, 500] {
        let setup = Setup { hosts: 30, flows_per_host: 3, delay: ms(delay), ..Setup::default() };
        assert_settles(&format!("30 hosts, {delay} ms"), setup);
    }
}

#[test]
fn a_thousand_hosts_settle() {
    assert_settles("1000 hosts, 500 ms", Setup { hosts: 1000, delay: ms(500), ..Setup::default() });
}

/// The rules are the same where one of eight users lies in all of its reports: about the delay, which is always far beyond the region, and about deliveries.
#[test]
fn false_reports_of_a_user_do_not_disturb_others() {
    for seed in 0..3 {
        let setup = Setup { hosts: 1, flows_per_host: 8, liars: 1, seed, ..Setup::default() };
        assert_settles(&format!("a liar among eight, seed {seed}"), setup);
    }
}

/// The rule: no flow is lowered in 10 hours of a path with noise of 20 ms, whose quantiles go to 100 ms and more of 200
/// ms, and with a peak beyond the region in every 50th interval, at a load of 90 %.
#[test]
fn a_stable_noisy_path_raises_no_alarm() {
    for (hosts, flows) in [(1, 1), (1, 8), (4, 1)] {
        for seed in 0..4 {
            let setup =
                Setup { hosts, flows_per_host: flows, noise: ms(20), peaks: 0.02, seed, ..Setup::default() };
            let demand = setup.demand * (hosts * flows) as f64;
            let mut model = Model::new(setup, demand / 0.9);
            model.run(3000.0, |_| {});
            assert_eq!(model.lowered(), 0, "{hosts} hosts, {flows} flows, seed {seed}");
        }
    }
}

/// The rule: while a capacity falls by 1 % of the demand in a second from 1.1 to 0.5 of it, at least 99 % of the
/// intervals are inside the region with prediction. A controller without prediction, to which the median of three
/// intervals counts, has less in each of 20 seeds.
#[test]
fn prediction_lowers_flows_before_they_leave_their_region() {
    let inside = |params: FeedbackParams, seed| {
        let setup = Setup { hosts: 2, flows_per_host: 4, params, seed, ..Setup::default() };
        let demand = setup.demand * 8.0;
        let mut model = Model::new(setup, demand * 1.1);
        model.run(60.0, |model| model.capacity -= demand * 0.01);
        model.run(60.0, |_| {});
        model.inside(0.0, 120.0)
    };
    let predicting = FeedbackParams::default();
    let reacting = FeedbackParams::reacting();
    for seed in 0..20 {
        let (with, without) = (inside(predicting.clone(), seed), inside(reacting.clone(), seed));
        println!("seed {seed}: {with:.4} with prediction, {without:.4} without");
        assert!(with >= 0.99 && with > without, "seed {seed}: {with} {without}");
    }
}

/// The rule: after the step 12 of 16 flows of two hosts have to give up 37.5 % of all. Those of the lowest priority are
/// at their minimum, those of the highest keep 95 % of their demand, and the order is kept between.
#[test]
fn the_lowest_priority_is_lowered_first_at_all_hosts() {
    let setup = Setup { hosts: 2, flows_per_host: 8, minimum: 0.1, ..Setup::default() };
    let demand = setup.demand * 16.0;
    let mut model = Model::new(setup, demand * 1.25);
    model.run(60.0, |_| {});
    model.capacity = demand * 0.625;
    model.run(120.0, |_| {});
    let shares = [0, 4, 8, 12].map(|priority| model.share_of(priority));
    println!("{shares:.3?}");
    assert!(shares[0] < 0.15 && shares[3] >= 0.95, "{shares:?}");
    assert!(shares.is_sorted(), "{shares:?}");
}

/// The rule: the coordinator of four hosts is cut off at the step. The others settle as in rules 2 and 4 with 60 s in
/// the place of 30 s, and follow the first one again when it is back.
#[test]
fn another_host_takes_over_from_a_coordinator_that_is_cut_off() {
    let setup = Setup { hosts: 4, flows_per_host: 2, delay: ms(50), ..Setup::default() };
    let demand = setup.demand * 8.0;
    let mut model = Model::new(setup, demand * 1.25);
    model.run(60.0, |_| {});
    model.off.insert(0);
    model.capacity = demand * 0.625;
    model.run(60.0, |_| {});
    let mut within = 0;
    model.run(100.0, |model| within += u32::from((0.7..=1.05).contains(&(model.rate() / model.capacity))));
    assert!(within >= 95, "{within} of 100 s");
    assert_eq!(model.hosts[3].directive().coordinator.0, 1);
    model.off.clear();
    model.run(30.0, |_| {});
    let coordinators: Vec<u64> = model.hosts.iter().map(|host| host.directive().coordinator.0).collect();
    assert_eq!(coordinators, [0; 4]);
}

/// Mean of the share of intervals inside the region in the minute in which a bottleneck halves, over 20 s, with two
/// hosts of four flows.
fn inside_while_halving(region: Duration, params: &FeedbackParams, seeds: u64) -> f64 {
    let run = |seed| {
        let buffer = region + region;
        let params = params.clone();
        let setup = Setup { hosts: 2, flows_per_host: 4, params, seed, region, buffer, ..Setup::default() };
        let demand = setup.demand * 8.0;
        let mut model = Model::new(setup, demand * 1.25);
        model.run(30.0, |_| {});
        model.run(20.0, |model| model.capacity -= demand * 0.625 / 20.0);
        model.run(40.0, |_| {});
        model.inside(30.0, 90.0)
    };
    (0..seeds).map(run).sum::<f64>() / seeds as f64
}

/// Bounds that were set after the first measurement (0.967 and 0.914, 0.991 and 0.929 with 100 seeds), against
/// regressions: with prediction 95 % of the intervals are inside the region, and at least 3 % more than without.
#[test]
fn a_bottleneck_that_halves_in_20_s_is_followed() {
    let predicting = FeedbackParams::default();
    let reacting = FeedbackParams::reacting();
    for region in [ms(200), ms(1000)] {
        let [with, without] = [&predicting, &reacting].map(|params| inside_while_halving(region, params, 20));
        println!("region {region}: {with:.4} with prediction, {without:.4} without");
        assert!(with >= 0.95 && with >= without + 0.03, "{region}: {with} {without}");
    }
}
