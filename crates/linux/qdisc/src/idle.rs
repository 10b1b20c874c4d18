//! Gauges of an empty queue. The program runs with packets only, so the gauges of its statistics are those of the last packet. A reader follows the idle
//! time by the rules by which the next packet would: `bpf/include/cutline/pi.h`, `pi2.h` and `sieve.h`.

use crate::KernelQueue;
use crate::layout::{
    LawLayout, PACKET_BITS, PROBABILITY_BITS, Pi2Layout, PiLayout, QdiscConfig, QdiscCounters,
};
use cutline_units::Instant;

/// A probability of 1.
const ONE: f64 = (1_u64 << PROBABILITY_BITS) as f64;
/// The least bytes over which Sieve takes the fair share: four large packets.
const KEPT: f64 = 4.0 * 1500.0;
/// The most that counts of the idle time, in times over which Sieve takes the fair share.
const MOST_TIMES: f64 = 32.0;

/// Brings p of PI and PI2, and Sieve's fair share, of a queue that is empty since its latest packet up to `now`. p is too large by the part of one sample that
/// belongs to the previous one, which the statistics do not have. RED has values at arrivals alone.
pub(crate) fn follow_idle_time(
    counters: &mut QdiscCounters,
    config: &QdiscConfig,
    queue: KernelQueue,
    now: Instant,
) {
    if counters.backlog.packets > 0 {
        return;
    }
    let idle = now.saturating_since(Instant::from_nanos(counters.latest)).as_nanos();
    if queue == KernelQueue::Sieve {
        let is_unused = counters.latest == 0;
        counters.fair_share_bps =
            if is_unused { rate(config) } else { share(counters.fair_share_bps, config, idle) };
        return;
    }
    let p = counters.probability as f64 / ONE;
    let p = match LawLayout::of(config) {
        Some(LawLayout::Pi(pi)) => pi_p(p, &pi, idle),
        Some(LawLayout::Pi2(pi2)) => pi2_p(p, &pi2, idle),
        _ => return,
    };
    counters.probability = (p * ONE) as u64;
}

/// Returns the rate of the laws, bit/s.
fn rate(config: &QdiscConfig) -> u64 {
    if config.shape_bps == 0 { config.link_bps } else { config.shape_bps }
}

/// Returns the fair share, bit/s, after an idle time, ns: it grows up to the rate of the link.
fn share(before: u64, config: &QdiscConfig, idle: u64) -> u64 {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    // A share of no bit is taken over an endless time.
    let over = seconds(config.sieve.tau).max(KEPT * 8.0 / before as f64);
    let times = (seconds(idle) / over).min(MOST_TIMES);
    let grown = before as f64 * (1.0 + times + times * times / 2.0);
    (grown as u64).min(rate(config))
}

/// Returns p of PI after samples of an empty queue: each subtracts (a - b) qref.
fn pi_p(p: f64, pi: &PiLayout, idle: u64) -> f64 {
    let q_ref = pi.q_ref as f64 / f64::from(1 << PACKET_BITS);
    let step = pi.a.saturating_sub(pi.b) as f64 / ONE * q_ref;
    (p - samples(idle, pi.period) * step).max(0.0)
}

/// Returns p of PI2 after updates without a delay: each subtracts alpha times the target from its root.
fn pi2_p(p: f64, pi2: &Pi2Layout, idle: u64) -> f64 {
    let step = pi2.alpha as f64 / ONE * pi2.target as f64;
    (p.sqrt() - samples(idle, pi2.t_update) * step).max(0.0).powi(2)
}

/// Returns the number of samples in an idle time.
fn samples(idle: u64, period: u64) -> f64 {
    idle.checked_div(period).unwrap_or_default() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QdiscStatus;
    use crate::testing::{NOW, status};
    use cutline_units::Duration;

    /// Returns the status of the tests with an empty queue, this long after its latest packet.
    fn after(queue: QdiscStatus, idle: Duration) -> QdiscCounters {
        let QdiscStatus { config, mut counters, queue, .. } = queue;
        counters.backlog.packets = 0;
        follow_idle_time(&mut counters, &config, queue, NOW + idle);
        counters
    }

    fn p(counters: &QdiscCounters) -> f64 {
        counters.probability as f64 / ONE
    }

    /// p = 0.25 at first. The default PI subtracts (a - b) qref, and PI2 alpha times the target from p' = 0.5, each sample.
    #[test]
    fn the_probability_falls_while_the_link_is_idle() {
        for (aqm, seconds) in [("pi", 60), ("pi2", 2)] {
            let at = |idle| p(&after(status(aqm, true), idle));
            let later = [0, 1, 2, 1000].map(|part| at(Duration::from_secs(seconds) * part / 4));
            assert_eq!(later[0], 0.25, "{aqm}");
            assert!(later.is_sorted_by(|one, next| one > next), "{aqm}: {later:?}");
            assert_eq!(later[3], 0.0, "{aqm}");
        }
        let pi2 = p(&after(status("pi2", true), Duration::from_millis(320)));
        // Ten updates of 0.3125 per s times 20 ms.
        assert!((pi2 - (0.5 - 10.0 * 0.3125 * 0.02_f64).powi(2)).abs() < 1e-6, "{pi2}");
    }

    #[test]
    fn the_fair_share_grows_to_the_link_s_rate() {
        let at = |before, idle| {
            let mut queue = status("sieve", false);
            queue.counters.fair_share_bps = before;
            after(queue, idle).fair_share_bps
        };
        assert_eq!(at(1_000_000, Duration::ZERO), 1_000_000);
        assert_eq!(at(1_000_000, Duration::from_secs(1000)), 10_000_000);
        let some = at(1_000_000, Duration::from_millis(100));
        assert!((1_000_001..10_000_000).contains(&some), "{some}");
        assert_eq!(at(0, Duration::from_secs(1)), 0);
        let mut unused = status("sieve", false);
        unused.counters.latest = 0;
        assert_eq!(after(unused, Duration::ZERO).fair_share_bps, 10_000_000);
    }

    #[test]
    fn the_gauges_of_a_queue_with_packets_are_those_of_the_program() {
        for (aqm, tsq) in [("pi2", true), ("sieve", false), ("red-worcester", true)] {
            let QdiscStatus { config, mut counters, queue, .. } = status(aqm, tsq);
            let before = counters.clone();
            follow_idle_time(&mut counters, &config, queue, NOW + Duration::from_secs(9));
            assert_eq!(counters, before, "{aqm}");
        }
        let red = after(status("red-worcester", true), Duration::from_secs(9));
        assert_eq!(p(&red), 0.25, "RED has no samples between arrivals");
    }
}
