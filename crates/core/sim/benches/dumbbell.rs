//! The speed of the simulator: the papers' dumbbell (TSQ section 4.1) with TCP `NewReno` and PI, for a number of flows.
//!
//! ```text
//! cargo bench -p cutline-sim --bench dumbbell -- [FLOWS [SECONDS [tsq] [flow|group]]]
//! ```
//! Runs FLOWS flows at 150 kbit/s each for SECONDS simulated seconds, and prints one line of JSON: CPU seconds of the setup
//! and of the run, data packets, events, link crossings, resident memory per flow. `make bench` starts one process per
//! size, so that memory is measured separately, and compares the results with ns-2. Delays are recorded by flow or by group; without
//! a word for it, by flow up to 1,000 flows.
//!
//! `bytes_per_flow` is the memory at the end of the run, without the description of the network; `peak_bytes_per_flow` is the most that
//! the process ever had, with the description and the outcome.

#[path = "../tests/common/mod.rs"]
mod common;

use common::Plan;
use cutline_sim::{Distributions, Simulation, SimulationSettings, Window};
use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    // cargo bench adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (flows, seconds) = (number(0, 100), number(1, 100));
    let has = |word: &str| arguments.iter().skip(2).any(|argument| argument == word);
    let mut plan = Plan { tsq: has("tsq"), ..Plan::scaled(flows as usize) };
    for (word, distributions) in [("flow", Distributions::PerFlow), ("group", Distributions::PerGroup)] {
        if has(word) {
            plan.distributions = distributions;
        }
    }
    measure(plan, seconds);
}

fn measure(plan: Plan, seconds: u64) {
    let flows = plan.flows.len();
    let memory_before = memory_bytes("VmRSS:");
    let started = cpu_seconds();
    let network = plan.network();
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO + duration / 5, until: Instant::ZERO + duration };
    let settings = SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(300) };
    let mut simulation = Simulation::new(&network, &settings).expect("the papers' network is sound");
    // The simulation no longer needs its description.
    drop((plan, network));
    let set_up = cpu_seconds();
    simulation.advance(Instant::ZERO + duration);
    let ran = cpu_seconds();
    let memory = memory_bytes("VmRSS:") - memory_before;
    let outcome = simulation.finish();
    let peak = memory_bytes("VmHWM:") - memory_before;
    let work = outcome.work;
    println!(
        "{{\"flows\": {flows}, \"seconds\": {seconds}, \"setup_cpu_s\": {:.6}, \"run_cpu_s\": {:.6}, \
         \"data_packets\": {}, \"events\": {}, \"hops\": {}, \"bytes_per_flow\": {}, \
         \"peak_bytes_per_flow\": {}, \"ns_per_packet\": {:.1}, \
         \"utilisation\": {:.4}, \"mean_backlog\": {:.1}}}",
        set_up - started,
        ran - set_up,
        work.data_packets,
        work.events,
        work.hops,
        memory / flows as u64,
        peak / flows as u64,
        (ran - set_up) * 1e9 / work.data_packets as f64,
        outcome.links[0].utilisation,
        outcome.links[0].backlog.mean_packets,
    );
}

/// CPU time of this process, without that of other processes.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Resident memory of this process: the present one (`VmRSS:`) or its maximum (`VmHWM:`). (Not `statm` times the page size: requesting the
/// latter fails under valgrind.)
fn memory_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells a process its memory");
    let line = status.lines().find_map(|line| line.strip_prefix(key)).expect("the resident set has a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("and is a number of kB");
    kib * 1024
}
