//! A flow whose hint follows the quality: it finds the hill, and nothing of it touches the others.

use crate::common::{Plan, audio, bulk};
use cutline_quality::{Class, HintParams};
use cutline_sim::{AdaptiveHint, FlowOutcome, SimulationSettings, Window, run};
use cutline_units::{Duration, Hint, HintBits, Instant};
use std::sync::Arc;

fn settings(seconds: u64, seed: u64) -> SimulationSettings {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO + duration.mul_f64(0.5), until: Instant::ZERO + duration };
    SimulationSettings { seed, duration, window, interval: Duration::from_secs(10) }
}

/// One audio conference that begins with a hint, among 19 transfers on a fifth of the paper's link.
fn plan(start: u16, adapts: bool) -> Plan {
    let params = HintParams { start: Hint::from_level(start), ..HintParams::new(HintBits::PAPER) };
    let adaptive = AdaptiveHint { class: Class::Audio, every: Duration::from_secs(1), params };
    let flows = [bulk(19), vec![audio(start)]].concat();
    Plan { flows, adaptive: adapts.then_some(adaptive), ..Plan::scaled(20) }
}

fn audio_of(plan: &Plan, seconds: u64, seed: u64) -> FlowOutcome {
    run(&plan.network(), &settings(seconds, seed)).unwrap().flows.remove(19)
}

/// Ten minutes on, the hint of a flow that waited like all others is well below; that of a flow that lost every fifth packet is on the way up.
#[test]
fn the_hint_leaves_either_end_of_its_range() {
    let ends = |start| -> Vec<u16> {
        (1..=4).map(|seed| audio_of(&plan(start, true), 600, seed).hint.level()).collect()
    };
    let (from_1, from_16) = (ends(1), ends(16));
    assert!(from_1.iter().filter(|level| (3..=12).contains(*level)).count() >= 3, "{from_1:?}");
    assert!(from_16.iter().filter(|level| (3..=12).contains(*level)).count() >= 3, "{from_16:?}");
}

#[test]
fn the_series_has_the_hint_over_time_and_the_trials() {
    let found = audio_of(&plan(16, true), 300, 1);
    let series = found.series.unwrap();
    let hints: Vec<u16> = series.iter().map(|interval| interval.hint.unwrap().level()).collect();
    assert_eq!(hints[0], 16, "the first interval has the first hint");
    assert!(hints.contains(&12), "span 4 below the largest is tried first: {hints:?}");
    assert_eq!(series[0].centre.map(Hint::level), Some(16));
    assert_eq!(series.last().unwrap().centre, Some(found.hint));
}

#[test]
fn the_same_seed_has_the_same_hints() {
    let hints = |seed| -> Vec<_> {
        let series = audio_of(&plan(8, true), 200, seed).series.unwrap();
        series.iter().map(|interval| (interval.hint, interval.packets)).collect()
    };
    assert_eq!(hints(1), hints(1));
    assert_ne!(hints(1), hints(2));
}

/// Reports leave and nothing is judged yet: all packets are treated exactly as without it.
#[test]
fn nothing_changes_before_the_first_trial() {
    let first = |adapts| run(&plan(6, adapts).network(), &settings(5, 1)).unwrap();
    let (adaptive, fixed) = (first(true), first(false));
    for (one, other) in adaptive.flows.iter().zip(&fixed.flows) {
        assert_eq!((one.record, &one.delays), (other.record, &other.delays));
    }
}

#[test]
fn a_parameter_outside_its_range_is_refused() {
    let mut network = plan(6, true).network();
    let mut flow = network.flows()[19].clone();
    let mut adaptive = AdaptiveHint::clone(flow.adaptive.as_ref().unwrap());
    adaptive.params.pairs = 1;
    flow.adaptive = Some(Arc::new(adaptive));
    let error = network.add_flow(flow).unwrap_err().to_string();
    assert_eq!(error, "flow `flow.20`: hint: pairs = 1: allowed is a whole number from 2 to 100");
}
