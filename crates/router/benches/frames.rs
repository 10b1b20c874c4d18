//! What a frame costs in the router: nanoseconds of CPU time from its arrival to its departure, without the kernel.
//!
//! ```text
//! cargo bench -p cutline-router
//! ```
//!
//! A frame comes every packet time of the link, one waits and one goes: headers, verdict, copy into the buffer, departure.
//! The flows are a hundred, the hints uniform. Every figure is the median of many short runs.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_router::{Overhead, Port, Shaper, ShaperParams};
use cutline_units::{Bytes, Instant, Rate, Streams};
use rustix::time::{ClockId, clock_gettime};
use std::convert::Infallible;
use std::hint::black_box;

const RATE: Rate = Rate::from_mbps(1_000);
const FRAMES_A_RUN: u64 = 20_000;
const RUNS: usize = 31;
/// Frames that wait when a run begins.
const BACKLOG: usize = 100;

/// Takes everything, and reads a byte of it.
struct Sink;

impl Port for Sink {
    type Error = Infallible;

    fn receive(&mut self, _: Instant, _: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, Infallible> {
        Ok(0)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), Infallible> {
        for frame in frames {
            black_box(frame[frame.len() - 1]);
            each(true);
        }
        Ok(())
    }
}

/// Frames of an IPv4 packet of `size` bytes with UDP, of a hundred flows and all hints.
fn frames(size: usize) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let mut frame = vec![0; 14 + size];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14..16].copy_from_slice(&[0x45, (number % 16) as u8 * 16 + 12]);
        frame[16..18].copy_from_slice(&(size as u16).to_be_bytes());
        frame[22..24].copy_from_slice(&[64, 17]);
        frame[26..34].copy_from_slice(&[10, 0, 0, number as u8, 10, 0, 1, 1]);
        frame
    };
    (0..100).map(frame).collect()
}

fn shaper(aqm: &str, tsq: bool) -> Shaper {
    let queue = QueueSpec {
        limit: Limit::Packets(1000),
        ecn: true,
        aqm: AqmSpec::from_values(aqm, []).expect("the registry has it"),
        tsq: tsq.then(TsqParams::default),
        rate: RATE,
    };
    let params = ShaperParams { overhead: Overhead::Ip, ..ShaperParams::new(queue) };
    Shaper::new(params, Streams::new(1).stream("bench", "drop")).expect("its defaults are allowed")
}

fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The median over the runs, ns per frame.
fn measure(aqm: &str, tsq: bool, size: usize) -> f64 {
    let (mut shaper, frames) = (shaper(aqm, tsq), frames(size));
    let packet_time = RATE.transmission_time(Bytes::new(size as u64));
    let mut now = Instant::ZERO;
    for number in 0..BACKLOG {
        shaper.receive(now, &frames[number % frames.len()]);
    }
    let mut run = || {
        let start = cpu_nanos();
        for number in 0..FRAMES_A_RUN {
            now += packet_time;
            shaper.receive(now, &frames[number as usize % frames.len()]);
            let Ok(()) = shaper.send(&mut Sink);
        }
        (cpu_nanos() - start) as f64 / FRAMES_A_RUN as f64
    };
    let mut figures: Vec<f64> = (0..RUNS).map(|_| run()).collect();
    figures.sort_by(f64::total_cmp);
    figures[RUNS / 2]
}

fn main() {
    println!("{:<24} {:>12} {:>12}", "queue", "64 B, ns", "1500 B, ns");
    for (aqm, tsq) in [
        ("drop-tail", false),
        ("drop-tail", true),
        ("pi", false),
        ("pi", true),
        ("codel", false),
        ("fq-codel", false),
    ] {
        let name = if tsq { format!("TSQ over {aqm}") } else { aqm.to_owned() };
        println!("{name:<24} {:>12.1} {:>12.1}", measure(aqm, tsq, 64), measure(aqm, tsq, 1500));
    }
}
