//! COBALT: CoDel's law that decays step by step, with BLUE beside it against senders that do not respond.
//!
//! Source: T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE", IEEE LANMAN 2018, section III; J. Palmei et al., "Design and
//! evaluation of COBALT queue discipline", IEEE LANMAN 2019. Where they leave something open, as Linux's cake does it.
//!
//! ```text
//! late:     sojourn > target, > four packet times, > two packet times for each bulk flow (with `ingress` alone in Linux, here not)
//! CoDel:    late: the first drop an interval later, then after interval / sqrt(count), count + 1 with each
//!           not late: count falls by one at every time a drop would be due
//! BLUE:     the queue was full: p + 1/256; a flow was empty: p - 1/4096; each at most once per target
//! ```
//!
//! In Linux the inverse root is 0 until count has changed by a step, so the first drop of a place does not wait for an interval: it hits the
//! second packet that is late. A flow that comes back after an interval or more, and is late at once, is treated in the same way.

use cutline_units::{Duration, Instant, Probability, RandomStream};

/// The times of the law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// The time of a full-sized packet on the link.
    pub(super) mtu_time: Duration,
}

/// The state of one flow's law.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    count: u32,
    /// `1 / sqrt(count)` after the last step of count; 0 before the first.
    inverse_root: f64,
    dropping: bool,
    drop_next: Instant,
    /// BLUE's probability.
    p_drop: f64,
    blue_changed: Instant,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Sent,
    Marked,
    Dropped,
}

const BLUE_UP: f64 = 1.0 / 256.0;
const BLUE_DOWN: f64 = 1.0 / 4096.0;

impl Cobalt {
    pub(super) const NEW: Self = Self {
        count: 0,
        inverse_root: 0.0,
        dropping: false,
        drop_next: Instant::ZERO,
        p_drop: 0.0,
        blue_changed: Instant::ZERO,
    };

    fn after(&self, from: Instant, times: &Times) -> Instant {
        from.saturating_add(times.interval.mul_f64(self.inverse_root))
    }

    /// Count becomes another one, and the next drop is due later by the interval that belongs to it.
    fn step_to(&mut self, count: u32, times: &Times) {
        self.count = count;
        self.inverse_root = 1.0 / f64::from(count.max(1)).sqrt();
        self.drop_next = self.after(self.drop_next, times);
    }

    /// A packet of the flow had to make room.
    pub(super) fn was_full(&mut self, now: Instant, times: &Times) {
        if now.saturating_since(self.blue_changed) > times.target {
            self.p_drop = (self.p_drop + BLUE_UP).min(1.0);
            self.blue_changed = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The flow was empty in its turn.
    pub(super) fn was_empty(&mut self, now: Instant, times: &Times) {
        if self.p_drop > 0.0 && now.saturating_since(self.blue_changed) > times.target {
            self.p_drop = (self.p_drop - BLUE_DOWN).max(0.0);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step_to(self.count - 1, times);
        }
    }

    /// Returns whether the law has forgotten everything.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    /// Decides the fate of a packet whose sojourn time is `sojourn`.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        sojourn: Duration,
        may_mark: bool,
        times: &Times,
        random: &mut RandomStream,
    ) -> Outcome {
        let late = sojourn > times.target && sojourn > times.mtu_time * 4;
        let mut due = self.count > 0 && now >= self.drop_next;
        let mut overdue = now > self.drop_next;
        if late && !self.dropping {
            self.dropping = true;
            self.drop_next = self.after(now, times);
        } else if !late {
            self.dropping = false;
        }
        if late {
            self.count = self.count.max(1);
        }
        let mut outcome = Outcome::Sent;
        if due && self.dropping {
            outcome = if may_mark { Outcome::Marked } else { Outcome::Dropped };
            self.step_to(self.count.saturating_add(1), times);
            overdue = now > self.drop_next;
        } else {
            while due {
                self.step_to(self.count - 1, times);
                overdue = now > self.drop_next;
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        // BLUE never marks: it is for senders that do not respond.
        if outcome == Outcome::Sent && random.chance(Probability::clamped(self.p_drop)) {
            outcome = Outcome::Dropped;
        }
        if self.count == 0 {
            self.drop_next = now.saturating_add(times.interval);
        } else if overdue && outcome != Outcome::Dropped {
            // By the drop time before this packet, as in Linux, even if `drop_next` has just been set.
            self.drop_next = now;
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    const TIMES: Times = Times {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_time: Duration::from_millis(1),
    };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn drops_come_as_codel_s() {
        let mut random = Streams::new(1).stream("queue", "drop");
        let mut cobalt = Cobalt::NEW;
        let mut drops = |from: u64, until: u64, sojourn: u64| -> Vec<u64> {
            let sojourn = Duration::from_millis(sojourn);
            (from..until)
                .filter(|&ms| cobalt.judge(at(ms), sojourn, false, &TIMES, &mut random) == Outcome::Dropped)
                .map(|ms| ms - from)
                .collect()
        };
        // At first at once; then after 100 / sqrt(2) = 71 ms, 58 ms, 50 ms, 45 ms, 41 ms.
        assert_eq!(drops(0, 300, 20), [1, 71, 129, 179, 224, 264]);
        assert_eq!(drops(300, 2000, 3), [0; 0]);
        // From now on after 100 ms, as in CoDel.
        assert_eq!(drops(2000, 2400, 20), [100, 171, 229, 279, 324, 364]);
    }

    #[test]
    fn a_late_return_of_the_queue_is_hit_at_once() {
        let mut random = Streams::new(1).stream("queue", "drop");
        let mut cobalt = Cobalt::NEW;
        let mut judge = |ms: u64, sojourn: u64| {
            cobalt.judge(at(ms), Duration::from_millis(sojourn), false, &TIMES, &mut random)
        };
        (0..300).for_each(|ms| {
            judge(ms, 20);
        });
        (300..2000).for_each(|ms| assert_eq!(judge(ms, 3), Outcome::Sent));
        assert_eq!([judge(2101, 20), judge(2102, 20)], [Outcome::Sent, Outcome::Dropped]);
    }

    #[test]
    fn short_sojourn_times_are_not_hit_and_the_count_decays() {
        let mut random = Streams::new(1).stream("queue", "drop");
        let mut cobalt = Cobalt::NEW;
        (0..400).for_each(|ms| {
            cobalt.judge(at(ms), Duration::from_millis(20), true, &TIMES, &mut random);
        });
        assert!(cobalt.count > 5 && !cobalt.is_at_rest(at(400)));
        (400..2000).for_each(|ms| {
            assert_eq!(
                cobalt.judge(at(ms), Duration::from_millis(3), false, &TIMES, &mut random),
                Outcome::Sent
            );
        });
        assert_eq!(cobalt.count, 0);
        assert!(cobalt.is_at_rest(at(3000)));
    }

    #[test]
    fn blue_grows_while_the_queue_is_full() {
        let mut cobalt = Cobalt::NEW;
        (1..1000).for_each(|ms| cobalt.was_full(at(10 * ms), &TIMES));
        assert_eq!(cobalt.p_drop, 1.0, "999 steps of 1/256");
        (1000..1200).for_each(|ms| cobalt.was_empty(at(10 * ms), &TIMES));
        assert!((cobalt.p_drop - (1.0 - 200.0 / 4096.0)).abs() < 1e-9);
    }
}
