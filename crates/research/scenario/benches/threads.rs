//! One run on several threads: the papers' dumbbell with 1,000, 10,000 and 100,000 flows, on one thread and on two, four, ... up to the
//! cores, in turn.
//!
//! ```text
//! cargo bench -p cutline-scenario --bench threads -- [FLOWS...]
//! ```
//! Prints the time of the simulation without its description, and the medians of the ratios to the run on one thread just before. Other
//! work on the machine costs more than its share: threads wait for each other at the end of each window.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark measures time")]

use cutline_scenario::{Scenario, ScenarioFile};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Runs on each number of threads.
const TURNS: usize = 5;

fn main() {
    let own: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let flows = if own.is_empty() { vec![1000, 10_000, 100_000] } else { own };
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let numbers: Vec<usize> = std::iter::successors(Some(2), |number| Some(number * 2))
        .take_while(|number| *number <= cores)
        .collect();
    for flows in flows {
        let scenario = scenario(flows);
        let one = NonZeroUsize::MIN;
        let mut alone = Vec::new();
        let mut ratios = vec![Vec::new(); numbers.len()];
        for _ in 0..TURNS {
            let before = seconds(&scenario, one);
            alone.push(before);
            for (number, ratios) in numbers.iter().zip(&mut ratios) {
                ratios.push(before / seconds(&scenario, NonZeroUsize::new(*number).unwrap_or(one)));
            }
        }
        let several: Vec<String> = numbers
            .iter()
            .zip(&mut ratios)
            .map(|(number, ratios)| format!("{number} threads {}", quartiles(ratios)))
            .collect();
        println!(
            "{flows} flows: one thread {} s; times as fast: {}",
            quartiles(&mut alone),
            several.join("; ")
        );
    }
}

/// The papers' dumbbell (TSQ section 4.1) with a rate of 100 kbit/s for each flow, and PI with TSQ.
fn scenario(flows: usize) -> Scenario {
    // About five million packets.
    let duration = (5_000_000 / (flows * 12)).clamp(4, 60);
    let text = format!(
        "name = \"threads\"\nduration = \"{duration} s\"\nwarm-up = \"1 s\"\n[dumbbell]\nrate = \"{} kbit/s\"\n\
         delay = \"50 ms\"\naccess-rate = \"10 Mbit/s\"\naccess-delay = \"25 ms\"\n\
         queue = {{ aqm = \"pi\", limit = \"{} packets\", tsq = true }}\n[[flow]]\nname = \"bulk\"\ncount = {flows}\n\
         start = {{ from = \"0 s\", to = \"1 s\" }}\napp = {{ kind = \"bulk\" }}\ntransport = {{ protocol = \"tcp\" }}\n",
        flows * 100,
        flows * 3,
    );
    ScenarioFile::parse(&text, "threads.toml")
        .and_then(|file| file.scenario())
        .expect("the scenario is allowed")
}

fn seconds(scenario: &Scenario, threads: NonZeroUsize) -> f64 {
    let network = scenario.network_of(1).expect("it can be simulated");
    let begin = Instant::now();
    let run = scenario.simulate_on(threads, &network, 1, &AtomicBool::new(false), |_| {});
    drop(run.expect("nothing cancels the run"));
    begin.elapsed().as_secs_f64()
}

/// Median, and the quartiles.
fn quartiles(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |share: usize| values[(values.len() - 1) * share / 4];
    format!("{:.2} ({:.2} to {:.2})", at(2), at(1), at(3))
}
