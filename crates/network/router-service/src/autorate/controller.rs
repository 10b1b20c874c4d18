//! The rate of a direction.
//!
//! - **A standing queue, and the direction is busy**: it falls below the sent rate, by 10 % where the delay is just above the limit and
//!   by half where it is five times that. It waits until the queue shows whether that was enough, and while the delay falls it
//!   does not fall further.
//! - **No standing queue, and the direction has as much to send as it may**: it rises by 4 % each [`TICK`], so that it doubles in 3.5 s.
//! - **No replies**: nothing is known, so it does not rise. If it is above the rate that was configured, it falls to that by 1 % each tick; a
//!   direction that is busy, when there were replies before, falls to the lowest rate, because its own queue may be the reason.
//! - **Reflectors that disagree**: it stays.
//! - **Little to send**: it returns to the rate that was configured, 1 % each second, because its knowledge of the link
//!   becomes old.

use super::delays::Evidence;
use cutline_units::{Duration, Instant, Rate};
use std::ops::RangeInclusive;

/// Shortest time between changes of the rate.
pub const TICK: Duration = Duration::from_millis(200);
/// From this part of its rate a direction may be the reason of a queue.
const BUSY: f64 = 0.5;
/// From this part it has as much to send as it may.
const FULL: f64 = 0.75;
const RISE: f64 = 1.04;
/// The fall each tick while nothing is known.
const DECAY: f64 = 0.99;
/// The fall for each time that the delay contains the limit, and the largest fall.
const FALL: f64 = 0.1;
const LARGEST_FALL: f64 = 0.5;
/// The time until a fall shows in the replies.
const SETTLE: Duration = Duration::from_millis(800);
/// A delay below this part of that at the last fall is falling.
const FALLING: f64 = 0.95;
const RETURN: f64 = 0.01;
const RETURN_EVERY: Duration = Duration::from_secs(1);

/// The state of a direction.
#[derive(Clone, Debug)]
pub struct Controller {
    configured: Rate,
    range: RangeInclusive<Rate>,
    /// Time of the last call, and the bytes sent on the link until then.
    since: Instant,
    sent: Option<f64>,
    /// Time at which the rate may fall again, and the delay at the last consideration.
    settled: Instant,
    delay: f64,
    /// Time of the next step back.
    returns: Instant,
}

impl Controller {
    /// Creates the state of a direction that has the rate of its configuration.
    pub const fn new(configured: Rate, range: RangeInclusive<Rate>, now: Instant) -> Self {
        Self { configured, range, since: now, sent: None, settled: now, delay: 0.0, returns: now }
    }

    /// Returns the new rate if it changes. `sent` are the bytes on the link since the router's start, `evidence` is
    /// that of a queue behind the router.
    pub fn step(&mut self, now: Instant, rate: Rate, sent: f64, evidence: Evidence) -> Option<Rate> {
        let seconds = now.saturating_since(self.since).as_secs_f64();
        self.since = now;
        let before = self.sent.replace(sent)?;
        if seconds <= 0.0 {
            return None;
        }
        let achieved = (sent - before).max(0.0) * 8.0 / seconds;
        let bps = rate.as_bps() as f64;
        let load = achieved / bps;
        if !matches!(evidence, Evidence::Standing(_)) {
            self.delay = 0.0;
        }
        let new = match evidence {
            Evidence::Standing(delay) if load >= BUSY => self.falls(now, delay)?.min(1.0) * achieved.min(bps),
            Evidence::Standing(_) | Evidence::Disputed => return None,
            Evidence::Clear if load >= FULL => bps * RISE,
            Evidence::Clear => self.returns(now, bps)?,
            Evidence::Silent { ever } => {
                let least = if ever && load >= BUSY { self.range.start() } else { &self.configured };
                let least = least.as_bps() as f64;
                if bps <= least {
                    return None;
                }
                least.max(bps * DECAY)
            }
        };
        let new = Rate::from_bps(new as u64).clamp(*self.range.start(), *self.range.end());
        (new != rate).then_some(new)
    }

    /// The factor by which it falls, if it does now.
    fn falls(&mut self, now: Instant, delay: f64) -> Option<f64> {
        if now < self.settled {
            return None;
        }
        self.settled = now + SETTLE;
        let is_falling = delay < self.delay * FALLING;
        self.delay = delay;
        (!is_falling).then(|| 1.0 - (FALL * delay).min(LARGEST_FALL))
    }

    fn returns(&mut self, now: Instant, bps: f64) -> Option<f64> {
        if now < self.returns {
            return None;
        }
        self.returns = now + RETURN_EVERY;
        let configured = self.configured.as_bps() as f64;
        let step = bps * RETURN;
        Some(if bps < configured { configured.min(bps + step) } else { configured.max(bps - step) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of a capacity behind the shaper, whose sender has enough to send. Returns the shaper's rates, Mbit/s, and the delays
    /// behind it, ms, at each tick.
    fn run(start: f64, capacity: impl Fn(f64) -> f64, offered: f64, ticks: usize) -> Vec<(f64, f64)> {
        const LIMIT_MS: f64 = 15.0;
        let range = Rate::from_mbps(1)..=Rate::from_mbps(50);
        let mut now = Instant::ZERO;
        let mut rate = Rate::from_bps((start * 1e6) as u64);
        let mut controller = Controller::new(rate, range, now);
        let (mut sent, mut queued, mut seen) = (0.0, 0.0_f64, Vec::new());
        let mut delays = [0.0; 2];
        for tick in 0..ticks {
            now += TICK;
            let seconds = TICK.as_secs_f64();
            let sends = rate.as_bps().min((offered * 1e6) as u64) as f64 * seconds / 8.0;
            let drained = capacity(tick as f64 * seconds) * 1e6 * seconds / 8.0;
            sent += sends;
            queued = (queued + sends - drained).max(0.0);
            let delay_ms = queued / drained * seconds * 1e3;
            // Replies show the queue of some time before.
            let [shown, next] = delays;
            delays = [next, delay_ms];
            let evidence =
                if shown > LIMIT_MS { Evidence::Standing(shown / LIMIT_MS) } else { Evidence::Clear };
            rate = controller.step(now, rate, sent, evidence).unwrap_or(rate);
            seen.push((rate.as_bps() as f64 / 1e6, delay_ms));
        }
        seen
    }

    #[test]
    fn the_rate_follows_a_link_that_becomes_slower_and_faster_again() {
        let seen = run(20.0, |at| if (10.0..40.0).contains(&at) { 4.0 } else { 20.0 }, 100.0, 350);
        let mean = |part: &[(f64, f64)]| part.iter().map(|(rate, _)| rate).sum::<f64>() / part.len() as f64;
        let late = |part: &[(f64, f64)]| {
            part.iter().filter(|(_, delay)| *delay > 60.0).count() as f64 / part.len() as f64
        };
        let (slow, fast) = (&seen[100..200], &seen[250..]);
        assert!((3.0..=4.2).contains(&mean(slow)), "{slow:?}");
        assert!((15.0..=21.0).contains(&mean(fast)), "{fast:?}");
        assert!(late(slow) < 0.2 && late(fast) < 0.2, "{slow:?}\n{fast:?}");
    }

    #[test]
    fn a_direction_with_little_traffic_keeps_its_configured_rate() {
        let seen = run(20.0, |_| 20.0, 1.0, 100);
        assert!(seen.iter().all(|(rate, _)| *rate == 20.0), "{seen:?}");
        // Delayed by others: the direction is not the reason.
        let seen = run(20.0, |_| 0.9, 1.0, 20);
        assert!(seen.iter().all(|(rate, _)| *rate == 20.0), "{seen:?}");
    }

    /// The rate after this many ticks of the same evidence, Mbit/s, where 4 Mbit/s are configured and a part of the rate is sent.
    fn after(evidence: Evidence, start: f64, load: f64, ticks: usize) -> f64 {
        let (mut now, mut sent) = (Instant::ZERO, 0.0);
        let mut rate = Rate::from_bps((start * 1e6) as u64);
        let range = Rate::from_mbps(1)..=Rate::from_mbps(50);
        let mut controller = Controller::new(Rate::from_mbps(4), range, now);
        for _ in 0..ticks {
            now += TICK;
            sent += rate.as_bps() as f64 * load * TICK.as_secs_f64() / 8.0;
            rate = controller.step(now, rate, sent, evidence).unwrap_or(rate);
        }
        rate.as_bps() as f64 / 1e6
    }

    /// Half an hour without a reply, with more to send than the rate.
    #[test]
    fn without_replies_the_rate_never_rises() {
        for load in [0.1, 1.0] {
            for (start, ever, end) in [
                (4.0, false, 4.0),
                (50.0, false, 4.0),
                (2.0, false, 2.0),
                (50.0, true, if load > 0.5 { 1.0 } else { 4.0 }),
            ] {
                let silent = Evidence::Silent { ever };
                assert!((after(silent, start, load, 9000) - end).abs() < 0.01, "{start} Mbit/s, {load}");
                let first = after(silent, start, load, 10);
                assert!(first <= start && first > 0.9 * start, "it falls slowly: {first}");
            }
        }
        assert!((after(Evidence::Disputed, 9.0, 1.0, 9000) - 9.0).abs() < 0.01);
        assert!(
            (after(Evidence::Clear, 4.0, 1.0, 9000) - 50.0).abs() < 0.01,
            "it rises where there is evidence"
        );
    }

    #[test]
    fn the_range_is_kept() {
        assert!(run(20.0, |_| 0.1, 100.0, 100).iter().all(|(rate, _)| *rate >= 1.0));
        assert!(run(20.0, |_| 900.0, 900.0, 100).iter().all(|(rate, _)| *rate <= 50.0));
    }
}
