//! The cost of monitoring a message: nanoseconds per message received and sent, and per interval with its report.
//!
//! `cargo bench -p cutline-signal`. The budget is that of QoSockets, 1 % of what the application does: at 20,000 messages/s, which
//! fill 200 Mbit/s, a message may cost 500 ns. Each number is the best of several rounds, because the machine may be busy.

use cutline_quality::spec::Specification;
use cutline_signal::clock::{ClockOffset, Stamps};
use cutline_signal::monitor::{Arrivals, Departures, MonitorParams, PeerReports, Report};
use cutline_signal::violation::{Watch, WatchParams};
use cutline_units::{Bytes, Duration, Instant};
use std::hint::black_box;

const ROUNDS: u32 = 200;
const MESSAGES: u64 = 100_000;
const INTERVALS: u64 = 1_000;

/// The time of the best round, in nanoseconds per item.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
fn best_of(items: u64, mut run: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = std::time::Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / items as f64
        })
        .fold(f64::INFINITY, f64::min)
}

/// Messages that are sent every 50 us and take 10 to 13 ms.
fn receive(arrivals: &mut Arrivals, from: u64, swap: bool) {
    for number in from..from + MESSAGES {
        let sent = Instant::from_nanos(number * 50_000);
        let delay = Duration::from_nanos(10_000_000 + number.wrapping_mul(0x9e37_79b9) % 3_000_000);
        let number = if swap { number ^ 1 } else { number };
        let arrived = sent + delay;
        black_box(arrivals.on_message(arrived, number, sent, 1250, Some(black_box(ClockOffset::NONE))));
    }
    while arrivals.take().is_some() {}
}

fn main() {
    let params = MonitorParams::default();
    let new = || (Arrivals::new(Instant::ZERO, &params), Departures::new(Instant::ZERO, &params));
    for (name, swap) in [("received, in order", false), ("received, every second one late", true)] {
        let mut arrivals = new().0.expect("the defaults are allowed");
        let mut from = 0;
        let ns = best_of(MESSAGES, || {
            receive(&mut arrivals, from, swap);
            from += MESSAGES;
        });
        println!("{name:<34} {ns:>7.1} ns per message");
    }
    let mut departures = new().1.expect("the defaults are allowed");
    let mut number = 0;
    let ns = best_of(MESSAGES, || {
        for _ in 0..MESSAGES {
            departures.on_send(Instant::from_nanos(number * 50_000), 1250);
            number += 1;
        }
    });
    println!("{:<34} {ns:>7.1} ns per message", "sent");
    let ns = best_of(INTERVALS, intervals);
    println!("{:<34} {ns:>7.1} ns per interval", "an interval with report and watch");
}

/// Intervals with a message each, reported and compared with a specification at both ends.
fn intervals() {
    let ms = Duration::from_millis;
    let spec = Specification::builder().rates(1.0, 4.0, 8.0).size(Bytes::new(1250)).max_delay(ms(100));
    let spec = spec.max_gap(ms(600)).jitter(ms(50)).loss(1.0).recovery(ms(5000)).build();
    let spec = spec.expect("the specification is allowed");
    let params = MonitorParams::default();
    let mut arrivals = Arrivals::new(Instant::ZERO, &params).expect("the defaults are allowed");
    let mut departures = Departures::new(Instant::ZERO, &params).expect("the defaults are allowed");
    let watch = || Watch::new(&spec, WatchParams::default()).expect("the defaults are allowed");
    let (mut here, mut there, mut reports) = (watch(), watch(), PeerReports::default());
    for number in 0..INTERVALS {
        let sent = Instant::ZERO + ms(number * 500);
        departures.on_send(sent, 1250);
        arrivals.on_message(sent + ms(20), number, sent, 1250, Some(ClockOffset::NONE));
        let now = sent + ms(500);
        arrivals.on_deadline(now);
        departures.on_deadline(now);
        let delivery = arrivals.take().expect("an interval is over");
        black_box(here.on_interval(&delivery, Duration::ZERO, None));
        let report =
            Report::new(number as u32 + 1, &arrivals, &departures, None, Stamps { sent: now, echo: None });
        let report = Report::decode(&black_box(report.encode())).expect("it was written by us");
        let told = reports.accept(now, report, departures.total(), None).expect("it is no lie");
        black_box(there.on_interval(&told, Duration::ZERO, reports.demand()));
    }
}
