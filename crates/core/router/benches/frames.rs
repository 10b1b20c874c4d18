//! Cost of a frame in the router: nanoseconds of CPU time from its arrival to its departure, without the
//! kernel.
//!
//! ```text
//! cargo bench -p cutline-router
//! ```
//!
//! A frame comes every packet time of the link, one waits and one goes: headers, verdict, copy into the buffer, departure.
//! The flows are a hundred, the hints uniform. Every figure is the median of many short runs. The last lines are with reservations:
//! for other flows, for one of the hundred, and for all of them.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_router::{Overhead, Port, ReservationId, Shaper, ShaperParams};
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
        frame[34..38].copy_from_slice(&[0x10, 0, 0x13, 0x8c]);
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
    let params = ShaperParams { overhead: Overhead::Ip, reservations: 20_000, ..ShaperParams::new(queue) };
    Shaper::new(params, Streams::new(1).stream("bench", "drop")).expect("its defaults are allowed")
}

fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reserves for `others` flows that do not come, and for `own` of the hundred that do, as much as they send.
fn reserve(shaper: &mut Shaper, others: u32, own: u32) {
    for number in 0..others + own {
        let filter = FlowSelector {
            destination: [10, 0, if number < own { 1 } else { 2 }, 1].into(),
            protocol: Some(17),
            destination_port: Some(5004),
            source: Some((0x0a00_0000 + number).to_be_bytes().into()),
            source_port: Some(0x1000),
            flow_label: None,
        };
        let rate = if number < own { Rate::from_kbps(8500) } else { Rate::from_kbps(1) };
        let bucket = TrafficSpec {
            rate,
            bucket: Bytes::new(20_000),
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        };
        let id = ReservationId { owner: 1, number: number.into() };
        shaper.reserve(id, bucket, &[filter]).expect("the link has room for it");
    }
}

/// The median over the runs, ns per frame.
fn measure(mut shaper: Shaper, size: usize) -> f64 {
    let frames = frames(size);
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
        let [short, long] = [64, 1500].map(|size| measure(shaper(aqm, tsq), size));
        println!("{name:<24} {short:>12.1} {long:>12.1}");
    }
    for (name, others, own) in [
        ("TSQ over pi, 1 other", 1, 0),
        ("10,000 others", 10_000, 0),
        ("10,000 others, 1 own", 10_000, 1),
        ("10,000 others, 100 own", 10_000, 100),
    ] {
        let [short, long] = [64, 1500].map(|size| {
            let mut shaper = shaper("pi", true);
            reserve(&mut shaper, others, own);
            measure(shaper, size)
        });
        println!("{name:<24} {short:>12.1} {long:>12.1}");
    }
}
