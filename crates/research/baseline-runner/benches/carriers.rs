//! Throughput and processor time per message of UDP and of frames below IP, between two namespaces joined by a pair of virtual interfaces:
//! blocks of 1, 4, 8 and 64 KB, as fast as the socket takes them and at 50 Mbit/s. A repetition measures all points in turns, so that a busy
//! machine disturbs both kinds alike. Requires root. Usage: `cargo bench -p cutline-baseline-runner --bench carriers -- [REPETITIONS] [MS]`.

use cutline_baseline::{BaselineDocument, BaselineRow, QueueSize};
use cutline_baseline_runner::{BaselinePlan, FarEnd, FarEndKind, Runner};
use cutline_units::{Duration, Rate};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// The largest one is the longest datagram of UDP.
const BLOCKS: [u64; 4] = [1024, 4096, 8192, 65_507];
const LOAD: Rate = Rate::from_mbps(50);

/// Values of a point: throughput in Mbit/s, lost blocks in per cent, and processor time of sender and receiver in us per block.
type Values = [Vec<f64>; 4];

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let repetitions = numbers.first().copied().unwrap_or(5);
    let time = Duration::from_millis(numbers.get(1).copied().unwrap_or(1000));
    let mut points: BTreeMap<(bool, u64, String), Values> = BTreeMap::new();
    for repetition in 0..repetitions {
        for row in measure(time, repetition + 1).rows {
            let point = points.entry((row.load_bps.is_some(), row.block, row.protocol.clone())).or_default();
            for (values, value) in point.iter_mut().zip(values(&row)) {
                values.push(value);
            }
        }
    }
    println!("{repetitions} repetitions of {time}, seeds 1 to {repetitions}; median (smallest to largest)");
    println!("| load | block, B | carrier | Mbit/s | loss, % | sender, us | receiver, us |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for ((is_limited, block, protocol), values) in &mut points {
        let load = if *is_limited { "50 Mbit/s" } else { "no limit" };
        let cells: Vec<_> = values.iter_mut().map(|values| cell(values)).collect();
        println!("| {load} | {block} | {protocol} | {} |", cells.join(" | "));
    }
}

fn measure(time: Duration, seed: u64) -> BaselineDocument {
    let plan = BaselinePlan {
        protocols: vec!["udp".into(), "direct".into()],
        rates: vec![LOAD],
        shares: vec![],
        margins: vec![],
        blocks: BLOCKS.to_vec(),
        duration: time,
        least_blocks: 1,
        max_rate: Rate::from_mbps(100_000),
        unlimited_udp: true,
        seed,
    };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let far = FarEnd::new(FarEndKind::Namespaces).expect("this is root");
    let mut runner =
        Runner::new(&plan, far, &folder.path().join("table.json"), None, "bench").expect("there is a path");
    runner.run(&AtomicBool::new(false), |_| {}).expect("the measurements work");
    let mut document = runner.document().clone();
    // Buffers of 4 MiB: with the kernel's default both lose most blocks that are sent without a limit.
    document.rows.retain(|row| row.queue == QueueSize::Large);
    document
}

fn values(row: &BaselineRow) -> [f64; 4] {
    let blocks = row.blocks as f64;
    let received = blocks * (1.0 - row.loss_ratio.unwrap_or(0.0));
    let per_block =
        |cpu: Option<f64>, count: f64| cpu.map_or(f64::NAN, |cpu| cpu * row.duration_s * 1e6 / count);
    [
        row.throughput_bps / 1e6,
        row.loss_ratio.unwrap_or(0.0) * 100.0,
        per_block(row.sender_cpu, blocks),
        per_block(row.receiver_cpu, received),
    ]
}

fn cell(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let middle = values[values.len() / 2];
    format!("{middle:.1} ({:.1} to {:.1})", values[0], values[values.len() - 1])
}
