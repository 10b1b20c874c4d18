//! The router at work, beside the kernel's own forwarding, between virtual interfaces in network namespaces.
//!
//! ```text
//! sudo -E cargo bench -p cutline-cli --bench router [-- --json FILE]
//! ```
//!
//! Measured, by packet size: CPU time and added delay, in turns with the kernel, and the number of packets a second that one core
//! carries without loss; and by rate, how exact the rate and the departures are. The file is a list of
//! `{id, value, unit, peer, peer_value, ratio}`, as `validate/bench.py` writes it. It takes some two minutes, in which the
//! router has a core of its own and is scheduled before all ordinary threads (`SCHED_FIFO`; not with `--spin`), and the load
//! has a nice value of -20 on another: the router is measured, not the rest of the machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints its tables")]

mod bed;
mod load;
mod measures;

use bed::{Bed, Carrier};
use cutline_ports::PortError;
use rustix::process::{geteuid, setpriority_process};
use serde_json::{Value, json};

/// IP packets, bytes.
const SIZES: [usize; 5] = [64, 256, 512, 1024, 1500];
const RATES: [f64; 4] = [1.5e6, 15e6, 100e6, 1e9];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let file =
        arguments.iter().position(|argument| argument == "--json").and_then(|at| arguments.get(at + 1));
    if !geteuid().is_root() {
        println!("skipped: network namespaces need root; run: sudo -E make bench-router");
        return;
    }
    // The receiver's thread inherits both.
    bed::pin(bed::LOADS_CORE);
    setpriority_process(None, -20).expect("root may have priority");
    println!("load of the machine before: {}", load_average());
    let figures = measure().expect("the test bed works");
    println!("load of the machine after: {}", load_average());
    if let Some(file) = file {
        let text = serde_json::to_string_pretty(&figures).expect("the keys are text");
        std::fs::write(file, text + "\n").expect("the file can be written");
        println!("written to {file}");
    }
}

fn measure() -> Result<Vec<Value>, PortError> {
    let bed = Bed::new()?;
    let mut figures = costs(&bed)?;
    figures.extend(latencies(&bed)?);
    figures.extend(rates(&bed)?);
    figures.extend(lossless(&bed)?);
    Ok(figures)
}

fn costs(bed: &Bed) -> Result<Vec<Value>, PortError> {
    println!("\nCPU time for a packet at full load, ns; both ways from one interface to the other's host");
    println!(
        "{:>6} {:>14} {:>14} {:>14} {:>8}",
        "B", "router process", "way by router", "by the kernel", "ratio"
    );
    let mut figures = Vec::new();
    for size in SIZES {
        let cost = measures::cost(bed, size)?;
        let ratio = cost.kernel_way / cost.router_way;
        println!(
            "{size:>6} {:>14.0} {:>14.0} {:>14.0} {ratio:>8.2}",
            cost.router, cost.router_way, cost.kernel_way
        );
        figures.push(figure(&format!("router.process.{size}"), cost.router, "ns", None));
        figures.push(figure(&format!("router.way.{size}"), cost.router_way, "ns", Some(cost.kernel_way)));
        figures.push(figure(&format!("router.kernel-rate.{size}"), cost.kernel_rate, "packets/s", None));
    }
    Ok(figures)
}

fn latencies(bed: &Bed) -> Result<Vec<Value>, PortError> {
    println!("\none-way delay at 1000 packets/s, us");
    println!("{:>6} {:>14} {:>14} {:>14} {:>14}", "B", "router p50", "p99", "kernel p50", "p99");
    let mut figures = Vec::new();
    for size in SIZES {
        let kernel = measures::latency(bed, Carrier::Kernel, size)?;
        let router = measures::latency(bed, Carrier::Router, size)?;
        println!(
            "{size:>6} {:>14.1} {:>14.1} {:>14.1} {:>14.1}",
            router.p50, router.p99, kernel.p50, kernel.p99
        );
        figures.push(figure(&format!("router.delay.p50.{size}"), router.p50, "us", Some(kernel.p50)));
        figures.push(figure(&format!("router.delay.p99.{size}"), router.p99, "us", Some(kernel.p99)));
    }
    Ok(figures)
}

fn rates(bed: &Bed) -> Result<Vec<Value>, PortError> {
    println!("\nthe shaper's rate, packets of 1500 B, and how late packets depart");
    println!(
        "{:>14} {:>6} {:>12} {:>10} {:>10} {:>10} {:>10} {:>8}",
        "Mbit/s", "", "error, ppm", "p50, us", "p99, us", "max, us", "slip, ms", "missed"
    );
    let mut figures = Vec::new();
    for (asked, spin) in RATES.into_iter().flat_map(|rate| [(rate, false), (rate, true)]) {
        let (more, word): (&[&str], _) = if spin { (&["--spin"], "spin") } else { (&[], "sleep") };
        let kept = measures::rate(bed, asked, more)?;
        println!(
            "{:>14} {word:>6} {:>12.1} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>8}",
            asked / 1e6,
            kept.error_ppm,
            kept.late.p50,
            kept.late.p99,
            kept.latest,
            kept.slipped_ms,
            kept.missed
        );
        let id = |what: &str| format!("router.{what}.{word}.{}", asked as u64);
        figures.push(figure(&id("rate-error"), kept.error_ppm, "ppm", None));
        figures.push(figure(&id("departure.p50"), kept.late.p50, "us", None));
        figures.push(figure(&id("departure.p99"), kept.late.p99, "us", None));
        figures.push(figure(&id("slipped"), kept.slipped_ms, "ms", None));
    }
    Ok(figures)
}

fn lossless(bed: &Bed) -> Result<Vec<Value>, PortError> {
    println!("\nthe most that is carried without a loss, by one core");
    println!("{:>6} {:>14} {:>14}", "B", "packets/s", "Mbit/s");
    let mut figures = Vec::new();
    for size in SIZES {
        let rate = measures::lossless(bed, size)?;
        println!("{size:>6} {rate:>14.0} {:>14.1}", rate * size as f64 * 8e-6);
        figures.push(figure(&format!("router.lossless.{size}"), rate, "packets/s", None));
    }
    Ok(figures)
}

/// A figure, beside the kernel's where there is one; smaller is better where there is.
fn figure(id: &str, value: f64, unit: &str, kernel: Option<f64>) -> Value {
    let peer = kernel.map(|_| "the kernel's forwarding");
    let ratio = kernel.map(|kernel| kernel / value);
    json!({ "id": id, "value": value, "unit": unit, "peer": peer, "peer_value": kernel, "ratio": ratio })
}

/// Of the last minute, five, fifteen, as the kernel tells.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
