//! Measures of the benchmark, each by its own small experiment.

use crate::bed::{Bed, Carrier, cpu_nanos, softirq_nanos};
use crate::load::{Arrival, Pace, Sent, frame, receive, send};
use cutline_ports::{InterfacePort as _, PortError};
use cutline_units::{Duration, Instant};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;

/// Options of the router for measurements in which its rate should not matter: the default queue, TSQ over
/// PI.
const FREE: [&str; 3] = ["--rate", "40Gbit", "--tsq"];
/// Added to a frame on Ethernet, bytes (docs/guide/router.md).
const OVERHEAD: usize = 24;

/// Cost of a packet, ns of CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Cost of the router's process for a packet that it has received.
    pub router: f64,
    /// All that a packet takes from `p0` to host b's kernel, by the router and by the kernel's forwarding: with the
    /// sender, less the same without a carrier.
    pub router_way: f64,
    pub kernel_way: f64,
    /// Number of packets that the kernel has forwarded in a second.
    pub kernel_rate: f64,
}

/// One-way delays, us.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    pub p50: f64,
    pub p99: f64,
}

/// Precision of a rate.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Relative deviation of the measured rate from the configured one, in millionths.
    pub error_ppm: f64,
    /// Lateness of departures against the schedule, us.
    pub late: Delays,
    pub latest: f64,
    /// Time by which the schedule has slipped, ms, and the number of frames that the receiver has missed:
    /// above zero the rest means little.
    pub slipped_ms: f64,
    pub missed: u64,
}

/// CPU time for packets of a size at full load: the medians of some runs in turns.
pub fn cost(bed: &Bed, size: usize) -> Result<Cost, PortError> {
    const TURNS: usize = 5;
    let mut turns: [Vec<f64>; 5] = Default::default();
    for _ in 0..TURNS {
        let (idle, _) = loaded(bed, Carrier::Nobody, size)?;
        let (kernel, rate) = loaded(bed, Carrier::Kernel, size)?;
        let router = bed.router(&FREE)?;
        let before = cpu_nanos(router.process());
        let (sent, _) = loaded(bed, Carrier::Router, size)?;
        let busy = (cpu_nanos(router.process()) - before) as f64;
        let end = router.end();
        let taken = count(&end, "/forward/received/packets").max(1.0);
        let routed = [busy / taken, sent + busy / taken - idle, kernel - idle, rate];
        turns.iter_mut().zip(routed).for_each(|(turn, value)| turn.push(value));
    }
    let [router, router_way, kernel_way, kernel_rate, _] = turns.map(median);
    Ok(Cost { router, router_way, kernel_way, kernel_rate })
}

/// ns of the sender (and the kernel's threads) a frame, and frames carried a second.
fn loaded(bed: &Bed, carrier: Carrier, size: usize) -> Result<(f64, f64), PortError> {
    const LONG: Duration = Duration::from_millis(300);
    bed.forward(carrier == Carrier::Kernel)?;
    let mut source = bed.source()?;
    let (softirq, carried) = (softirq_nanos(), bed.carried()?);
    let Sent { frames, elapsed, cpu_ns } = send(&mut source, &frame(carrier, size), Pace::Flat, LONG)?;
    let cpu = cpu_ns + softirq_nanos() - softirq;
    let rate = (bed.carried()? - carried) as f64 / elapsed.as_secs_f64();
    bed.forward(false)?;
    Ok((cpu as f64 / frames as f64, rate))
}

/// Delays from the sender's system call to the receiver's interface, at a thousand packets a second.
pub fn latency(bed: &Bed, carrier: Carrier, size: usize) -> Result<Delays, PortError> {
    bed.forward(carrier == Carrier::Kernel)?;
    let router = (carrier == Carrier::Router).then(|| bed.router(&FREE)).transpose()?;
    let (mut source, mut sink) = (bed.source()?, bed.sink()?);
    send(&mut source, &frame(carrier, size), Pace::Exact(1000.0), Duration::from_secs(2))?;
    sleep(std::time::Duration::from_millis(20));
    let mut arrivals = Vec::new();
    receive(&mut sink, &mut arrivals)?;
    bed.forward(false)?;
    drop(router);
    let delay = |arrival: &Arrival| arrival.at.saturating_since(arrival.sent).as_nanos() as f64 / 1000.0;
    Ok(delays(arrivals.iter().map(delay).collect()))
}

/// Half as much again as the link takes, in packets of 1500 B, through drop-tail; `more` are further options.
pub fn rate(bed: &Bed, rate_bps: f64, more: &[&str]) -> Result<Kept, PortError> {
    const SIZE: usize = 1500;
    let long = Duration::from_secs(if rate_bps < 1e7 { 5 } else { 3 });
    let asked = format!("{}bit", rate_bps as u64);
    let router = bed.router(&[&["--rate", &asked, "--aqm", "drop-tail"], more].concat())?;
    let (mut source, mut sink) = (bed.source()?, bed.sink()?);
    let frame = frame(Carrier::Router, SIZE);
    let on_link = (frame.len() + OVERHEAD) as f64 * 8.0;
    let done = AtomicBool::new(false);
    let arrivals = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut arrivals = Vec::new();
            while !done.load(Ordering::Relaxed) {
                sleep(std::time::Duration::from_millis(2));
                receive(&mut sink, &mut arrivals)?;
            }
            Ok::<_, PortError>(arrivals)
        });
        let sent = send(&mut source, &frame, Pace::Relaxed(1.5 * rate_bps / on_link), long);
        done.store(true, Ordering::Relaxed);
        sent.and(receiver.join().expect("the receiver does not panic"))
    })?;
    assert!(arrivals.len() > 20, "only {} packets have come at {asked}", arrivals.len());
    // Before, the queue may have been empty at times.
    let settled = &arrivals[arrivals.len() / 10..];
    let times: Vec<Instant> = settled.iter().map(|arrival| arrival.at).collect();
    let missed = sink.stats()?.missed;
    let slipped_ms = count(&router.end(), "/forward/slipped_ms");
    let packet_ns = on_link * 1e9 / rate_bps;
    let span = (times[times.len() - 1] - times[0]).as_nanos() as f64;
    let late = lateness(&times, packet_ns);
    let latest = late.iter().copied().fold(0.0, f64::max);
    let error_ppm = ((times.len() - 1) as f64 * packet_ns / span - 1.0) * 1e6;
    Ok(Kept { error_ppm, late: delays(late), latest, slipped_ms, missed })
}

/// Returns the lateness of each packet against the schedule, us; the schedule is the earliest that all agree
/// with.
fn lateness(times: &[Instant], packet_ns: f64) -> Vec<f64> {
    let behind =
        |(number, at): (usize, &Instant)| (*at - times[0]).as_nanos() as f64 - number as f64 * packet_ns;
    let offsets: Vec<f64> = times.iter().enumerate().map(behind).collect();
    let earliest = offsets.iter().copied().fold(f64::INFINITY, f64::min);
    offsets.iter().map(|offset| (offset - earliest) / 1000.0).collect()
}

/// The highest rate that was tried of which nothing was lost, packets a second, by bisection.
pub fn lossless(bed: &Bed, size: usize) -> Result<f64, PortError> {
    const STEPS: usize = 8;
    let router = bed.router(&FREE)?;
    let mut source = bed.source()?;
    let frame = frame(Carrier::Router, size);
    let fastest = send(&mut source, &frame, Pace::Flat, Duration::from_millis(200))?;
    let (mut good, mut bad) = (0.0, fastest.frames as f64 / fastest.elapsed.as_secs_f64());
    for _ in 0..STEPS {
        let tried = f64::midpoint(good, bad);
        let mut all_came = false;
        // Other work on the machine may take the router's core for longer than its ring lasts.
        for _ in 0..3 {
            sleep(std::time::Duration::from_millis(30));
            let before = bed.carried()?;
            let sent = send(&mut source, &frame, Pace::Exact(tried), Duration::from_millis(400))?;
            sleep(std::time::Duration::from_millis(30));
            all_came = bed.carried()? - before == sent.frames;
            if all_came {
                break;
            }
        }
        if all_came {
            good = tried;
        } else {
            bad = tried;
        }
    }
    drop(router);
    Ok(good)
}

fn count(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or(0.0)
}

fn delays(mut values: Vec<f64>) -> Delays {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        values.get(((values.len() as f64 * share) as usize).min(values.len().max(1) - 1)).copied()
    };
    Delays { p50: at(0.5).unwrap_or(f64::NAN), p99: at(0.99).unwrap_or(f64::NAN) }
}

fn median(values: Vec<f64>) -> f64 {
    delays(values).p50
}
