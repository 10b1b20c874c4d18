//! Both ends of a flow on a link with a drop-tail queue.

use super::*;
use cutline_units::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A link of 50 ms each way, whose rate changes.
struct Link {
    /// Rates and the times from which on they hold.
    rates: Vec<(u64, Rate)>,
    /// Packets that may wait.
    limit: usize,
    /// Departures of the waiting packets.
    waiting: VecDeque<Instant>,
}

impl Link {
    fn rate(&self, now: Instant) -> Rate {
        let seconds = now.as_nanos() / 1_000_000_000;
        self.rates.iter().rfind(|(from, _)| *from <= seconds).expect("there is one from the start").1
    }

    /// Returns the time at which a packet arrives; `None` if it is dropped.
    fn carry(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        while self.waiting.front().is_some_and(|departure| *departure <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= self.limit {
            return None;
        }
        let begins = self.waiting.back().map_or(now, |last| now.max(*last));
        let departure = begins + self.rate(begins).transmission_time(Bytes::new(bytes));
        self.waiting.push_back(departure);
        Some(departure + MS(50))
    }
}

/// A second of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    /// Received with headers, kbit/s.
    kbps: f64,
    /// Mean one-way delay, ms.
    delay_ms: f64,
    dropped: u64,
}

/// Runs a flow with an encoder over a link.
fn run(params: Params, mut link: Link, seconds: u64) -> Vec<Second> {
    let params = Arc::new(params);
    let (mut sender, mut receiver) = (Sender::new(&params, Instant::ZERO), Receiver::new(&params));
    sender.write_unlimited();
    let mut arriving: VecDeque<(Instant, Packet)> = VecDeque::new();
    let mut reports: VecDeque<(Instant, Feedback)> = VecDeque::new();
    let mut all = vec![Second::default(); seconds as usize];
    let mut counts = vec![0_u32; seconds as usize];
    let second = |at: Instant| (at.as_nanos() / 1_000_000_000) as usize;
    let mut now = Instant::ZERO;
    loop {
        let next = [
            arriving.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at),
            reports.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at),
            sender.deadline(),
            receiver.deadline(),
        ];
        now = next.into_iter().min().expect("there are four").max(now);
        if second(now) >= all.len() {
            break;
        }
        if let Some((_, packet)) = arriving.pop_front_if(|(at, _)| *at <= now) {
            receiver.on_packet(now, &packet, false);
            all[second(now)].kbps += f64::from(packet.len + 40) * 8e-3;
            all[second(now)].delay_ms += now.saturating_since(packet.sent_at).as_millis_f64();
            counts[second(now)] += 1;
        }
        if let Some(report) = receiver.on_deadline(now) {
            reports.push_back((now + MS(50), report));
        }
        if let Some((_, report)) = reports.pop_front_if(|(at, _)| *at <= now) {
            sender.on_feedback(now, &report);
        }
        sender.on_deadline(now);
        while let Some(packet) = sender.transmit(now) {
            match link.carry(now, u64::from(packet.len + 40)) {
                Some(at) => arriving.push_back((at, packet)),
                None => all[second(now)].dropped += 1,
            }
        }
    }
    for (second, count) in all.iter_mut().zip(counts) {
        second.delay_ms /= f64::from(count.max(1));
    }
    all
}

/// 1 Mbit/s, from 40 s on 2.5, from 60 s on 0.6, and from 80 s on 1 Mbit/s again; the queue is 300 ms long at 1 Mbit/s.
fn link() -> Link {
    let rates = [(0, 1000), (40, 2500), (60, 600), (80, 1000)];
    let rates = rates.map(|(from, kbps)| (from, Rate::from_kbps(kbps))).to_vec();
    Link { rates, limit: 37, waiting: VecDeque::new() }
}

/// The means of some seconds, and the sum of drops.
fn mean(seconds: &[Second]) -> Second {
    let count = seconds.len() as f64;
    Second {
        kbps: seconds.iter().map(|second| second.kbps).sum::<f64>() / count,
        delay_ms: seconds.iter().map(|second| second.delay_ms).sum::<f64>() / count,
        dropped: seconds.iter().map(|second| second.dropped).sum(),
    }
}

/// At the equilibrium the signal is 10 ms times 1500 kbit/s over the rate (RFC 8698 section 4.3): 15 ms of queue at 1 Mbit/s, and
/// 25 ms at 0.6 Mbit/s. It is measured as the least of 15 packets, so the mean is a little more.
#[test]
fn a_flow_follows_the_rate_of_its_link() {
    let seconds = run(Params::default(), link(), 100);
    let settled = mean(&seconds[20..40]);
    assert!(settled.kbps > 980.0 && (60.0..80.0).contains(&settled.delay_ms), "{settled:?}");
    let best = mean(&seconds[45..60]);
    assert!(best.kbps > 1480.0 && best.delay_ms < 55.0, "{best:?}");
    assert_eq!(mean(&seconds[..60]).dropped, 0);
    // The queue overflows when the rate falls to 0.6 Mbit/s, and never again.
    let narrow = mean(&seconds[65..80]);
    assert!(narrow.kbps > 580.0 && (60.0..95.0).contains(&narrow.delay_ms), "{narrow:?}");
    assert_eq!(mean(&seconds[63..100]).dropped, 0);
    let again = mean(&seconds[95..100]);
    assert!(again.kbps > 970.0 && again.delay_ms < 80.0, "{again:?}");
}

/// The formulas of RFC 8698 alone: when the losses of the overflow fade, the rate jumps and the queue overflows again.
#[test]
fn without_a_bound_losses_come_again() {
    let params = Params { bounded_increase: false, ..Params::default() };
    let seconds = run(params, link(), 80);
    assert!(mean(&seconds[63..80]).dropped > 50, "{seconds:?}");
}
