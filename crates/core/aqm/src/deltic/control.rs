//! The control law of DelTiC, and its estimate of jitter.
//!
//! ```text
//! sigma = (sojourn - target) interval,  delta = sojourn - sojourn of the last packet
//! accumulator = max(0, accumulator + (sigma + delta) f)
//! oscillator += accumulator interval f;  a turn is a signal
//! ```
//!
//! `f` is the resonance, and `target` is 1 / f. All times are in seconds.

use cutline_units::Instant;

/// Longest time between two packets that counts, s.
const LONGEST: f64 = 1.0;
/// The part of the accumulator that is left when the oscillator is faster than the packets.
const KEPT: f64 = 15.0 / 16.0;

/// Controller of one signal to one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Controller {
    /// Frequency of the signals, in units of the resonance.
    pub(super) accumulator: f64,
    /// Sojourn time of the last packet, s.
    pub(super) history: f64,
    /// Phase of the oscillator, in turns.
    pub(super) oscillator: f64,
}

impl Controller {
    /// Returns whether a packet of this sojourn time gets the signal, `interval` after the last packet.
    pub(super) fn step(&mut self, interval: f64, sojourn: f64, frequency: f64) -> bool {
        let target = frequency.recip();
        let interval = if interval <= LONGEST {
            interval
        } else if sojourn < target {
            self.accumulator = 0.0;
            0.0
        } else {
            LONGEST
        };
        let (sigma, delta) = ((sojourn - target) * interval, sojourn - self.history);
        self.accumulator += (sigma + delta) * frequency;
        if self.accumulator < 0.0 {
            (self.accumulator, self.oscillator) = (0.0, 0.0);
        }
        self.history = sojourn;
        if sojourn < target / 2.0 {
            return false;
        }
        self.oscillator += self.accumulator * interval * frequency;
        let is_due = self.oscillator >= 1.0;
        if is_due {
            self.oscillator -= 1.0;
        }
        if self.oscillator > 1.0 {
            self.accumulator *= KEPT;
        }
        is_due
    }
}

/// Average time between departures, weighted by that time, over one second. Bursts count as the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Jitter {
    since: Instant,
    /// The estimate, s.
    estimate: f64,
}

impl Jitter {
    /// Begins an interval with the packet that ends an idle time, which does not count.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// Counts a departure, and returns the estimate, s.
    pub(super) fn update(&mut self, now: Instant) -> f64 {
        let interval = now.saturating_since(self.since).as_secs_f64().min(LONGEST);
        self.estimate = interval * interval + self.estimate * (1.0 - interval);
        self.since = now;
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    const HZ: f64 = 40.0;

    /// Number of signals to `packets` packets of this sojourn time, one in a millisecond.
    fn signals(controller: &mut Controller, packets: u32, sojourn: f64) -> usize {
        (0..packets).filter(|_| controller.step(0.001, sojourn, HZ)).count()
    }

    #[test]
    fn a_queue_at_its_target_has_signals_at_the_resonance() {
        let mut controller = Controller::default();
        // The rise from 0 to 25 ms is 1 in the accumulator, and the error is 0 from then on.
        let found = signals(&mut controller, 1000, 0.025);
        assert!((39..=40).contains(&found), "{found}");
        assert!((controller.accumulator - 1.0).abs() < 1e-9, "{controller:?}");
    }

    #[test]
    fn a_rise_counts_at_once_and_an_error_with_time() {
        let mut controller = Controller::default();
        signals(&mut controller, 1000, 0.025);
        // 25 ms more: delta adds 1 at once, and sigma adds 1 in a second. The mean is 2.5 in this second.
        let found = signals(&mut controller, 1000, 0.05);
        assert!((99..=101).contains(&found), "{found}");
        assert!((controller.accumulator - 3.0).abs() < 1e-9, "{controller:?}");
    }

    #[test]
    fn a_fall_damps_at_once_and_a_short_queue_ends_the_signals() {
        let mut controller = Controller { accumulator: 3.0, history: 0.05, oscillator: 0.5 };
        signals(&mut controller, 1, 0.025);
        assert!((controller.accumulator - 2.0).abs() < 1e-9, "{controller:?}");
        assert_eq!(signals(&mut controller, 1100, 0.0), 0);
        assert_eq!(controller, Controller::default(), "the oscillator is at rest, too");
    }

    #[test]
    fn below_half_of_the_target_there_are_no_signals() {
        let mut controller = Controller { accumulator: 100.0, history: 0.012, oscillator: 0.9 };
        assert!(!controller.step(0.001, 0.012, HZ));
        assert_eq!(controller.oscillator, 0.9, "it stands still");
        assert!(controller.step(0.001, 0.013, HZ));
    }

    #[test]
    fn an_oscillator_that_is_faster_than_the_packets_slows_down() {
        let mut controller = Controller { accumulator: 100.0, history: 0.025, oscillator: 0.0 };
        // 100 x 40 Hz x 1 ms are four turns: one signal, and three turns are left.
        assert!(controller.step(0.001, 0.025, HZ));
        assert!((controller.accumulator - 100.0 * KEPT).abs() < 1e-6, "{controller:?}");
        assert!((controller.oscillator - 3.0).abs() < 1e-6, "{controller:?}");
    }

    #[test]
    fn after_an_idle_second_a_short_queue_begins_at_zero() {
        let busy = Controller { accumulator: 5.0, history: 0.01, oscillator: 0.5 };
        let mut controller = busy;
        assert!(!controller.step(f64::INFINITY, 0.001, HZ));
        assert_eq!((controller.accumulator, controller.oscillator), (0.0, 0.0));
        // A long queue counts for one second: (0.005 + 0.02) x 40 = 1.
        let mut controller = busy;
        assert!(controller.step(100.0, 0.03, HZ));
        assert!((controller.accumulator - 6.0 * KEPT).abs() < 1e-6, "{controller:?}");
    }

    #[test]
    fn jitter_is_the_time_between_packets_or_bursts() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        for (burst, gap, expected) in [(1, 1, 0.001), (5, 10, 0.01)] {
            let mut jitter = Jitter::default();
            for turn in 1..=10_000 / gap {
                (0..burst).for_each(|_| {
                    jitter.update(ms(turn * gap));
                });
            }
            assert!((jitter.estimate - expected).abs() < 1e-5, "{jitter:?}");
            // An idle time does not count.
            let before = jitter.estimate;
            jitter.restart(ms(20_000));
            assert!((jitter.update(ms(20_001)) - before).abs() < 1e-4);
        }
    }
}
