//! Stability of the feedback of a path with packets: step responses of 1 to 1,000 hosts, and the share of time inside the
//! region while a bottleneck halves, with and without prediction.
//!
//! `cargo bench -p cutline-sim --bench managed` runs everything; `-- steps`, `-- large`, `-- halving` or `-- calm` one
//! part. The table of steps has the quantities of the rules in `tests/managed.rs`.

#[path = "../tests/common/managed.rs"]
mod plan;

use cutline_manager::feedback::FeedbackParams;
use cutline_units::Duration;
use plan::{PathPlan, StepResponse, step_response};
use std::io::Write as _;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn step((hosts, flows_per_host): (usize, usize), messages: f64, delay: u64, loss: f64, seed: u64) {
    let delay_ms = ms(delay);
    let plan =
        PathPlan { hosts, flows_per_host, messages, delay: delay_ms, loss, seed, ..PathPlan::default() };
    let StepResponse { rates, inside, recovered, lowered, before } = step_response(plan);
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let within = rates.iter().filter(|rate| (0.7..=1.05).contains(*rate)).count() as f64 / rates.len() as f64;
    println!(
        "{hosts:>5} {flows_per_host:>5} {messages:>10} {delay:>8} {loss:>5} {seed:>4} {before:>7.3} {mean:>7.3} {within:>7.3} {inside:>7.4} {lowered:>8} {recovered:>9.3}"
    );
    drop(std::io::stdout().flush());
}

fn head() {
    println!("hosts flows messages/s delay/ms  loss seed  before    mean  within  inside  lowered recovered");
}

fn steps() {
    head();
    for (hosts, flows) in [(1, 4), (2, 2), (10, 1), (30, 1)] {
        for delay in [5, 100, 500] {
            for loss in [0.0, 0.3] {
                for seed in 1..=3 {
                    step((hosts, flows), 100.0, delay, loss, seed);
                }
            }
        }
    }
}

fn large() {
    head();
    for (hosts, delay) in [(100, 5), (100, 500), (1000, 20), (1000, 500)] {
        step((hosts, 1), 20.0, delay, 0.3, 1);
    }
}

/// Mean and 95 % interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, 1.984 * (variance / n).sqrt())
}

/// The share of half seconds inside of the region in the minute in which a bottleneck halves, over so many seconds.
fn inside_while_halving(over: u32, seed: u64, feedback: &FeedbackParams) -> f64 {
    let steps =
        (1..=over).map(|step| (30.0 + f64::from(step), 1.25 - 0.625 * f64::from(step) / f64::from(over)));
    let plan = PathPlan {
        flows_per_host: 4,
        capacity: [(0.0, 1.25)].into_iter().chain(steps).collect(),
        length: 92.0,
        feedback: feedback.clone(),
        seed,
        ..PathPlan::default()
    };
    plan.run().inside(30.0, 90.0)
}

fn halving() {
    for over in [1, 20] {
        let run = |feedback: &FeedbackParams| {
            let values: Vec<f64> = (1..=100).map(|seed| inside_while_halving(over, seed, feedback)).collect();
            values
        };
        let (with, without) = (run(&FeedbackParams::default()), run(&FeedbackParams::reacting()));
        let difference: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with - without).collect();
        let shown = |values: &[f64]| {
            let (mean, half) = interval(values);
            format!("{:.2} % +- {:.2}", mean * 100.0, half * 100.0)
        };
        println!(
            "halves over {over} s, 100 seeds: inside {} with prediction, {} without, difference {}",
            shown(&with),
            shown(&without),
            shown(&difference)
        );
    }
}

/// Times that flows are lowered in an hour of a path whose load is 80 % of the bottleneck.
fn calm() {
    for (hosts, flows) in [(1, 4), (4, 2)] {
        let hours = 2.0;
        let mut lowered = 0;
        for seed in 1..=4 {
            let plan = PathPlan {
                hosts,
                flows_per_host: flows,
                length: hours * 3600.0 / 4.0,
                seed,
                ..PathPlan::default()
            };
            lowered += plan.run().lowered;
        }
        println!(
            "stable path, {hosts} hosts with {flows} flows: lowered {} times an hour",
            lowered as f64 / hours
        );
    }
}

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let is_wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    for (name, run) in [("steps", steps as fn()), ("large", large), ("halving", halving), ("calm", calm)] {
        if is_wanted(name) {
            run();
        }
    }
}
