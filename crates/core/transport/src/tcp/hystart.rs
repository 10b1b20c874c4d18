//! `HyStart`: CUBIC's first slow start ends before the queue overflows, as in Linux (Ha and Rhee, "Taming the elephants", 2011).
//!
//! In each round of acknowledgements, two signs that the path is full are looked for:
//! - *A train.* Acknowledgements that follow each other within 2 ms last for longer than half the least round trip, so the window's
//!   segments leave the path one behind the other.
//! - *Delay.* The least round trip of this round is above that of the connection by an eighth of it, but by 4 to 16 ms at most.
//!
//! Then slow start ends, and congestion avoidance continues from the same window. Below 16 segments nothing is looked for. A timeout
//! begins again with nothing.
//!
//! Linux behaves like this without pacing. `HyStart++` (RFC 9406), which continues slowly after the delay's sign, is another algorithm.

use super::congestion::Acknowledgement;
use cutline_units::{Duration, Instant};

/// Acknowledgements that follow within this time belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Allowance of Linux for acknowledgements that wait for each other, added to the least round trip before it
/// is halved.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Number of samples in a round before its delay counts.
const SAMPLES: u32 = 8;
/// The bounds of the increase of delay that ends slow start.
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
/// The smallest window that slow start ends with, segments.
const LEAST_WINDOW: u64 = 16;

/// State of the round trips of a slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hystart {
    /// The smallest window that slow start ends with, bytes.
    least_window: u64,
    /// The least round trip of the connection, since the last timeout.
    least: Duration,
    /// Begin of this round, and the sequence number whose acknowledgement ends it.
    round_began: Instant,
    round_ends: u64,
    /// The least round trip of this round, and its number of samples.
    least_of_round: Duration,
    samples: u32,
    /// The last acknowledgement of the train that began with the round.
    train: Instant,
    /// A sign was seen.
    is_full: bool,
}

impl Hystart {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            least_window: LEAST_WINDOW * u64::from(mss),
            least: Duration::MAX,
            round_began: Instant::ZERO,
            round_ends: 0,
            least_of_round: Duration::MAX,
            samples: 0,
            train: Instant::ZERO,
            is_full: false,
        }
    }

    /// Begins again with nothing.
    pub(super) fn reset(&mut self) {
        *self = Self { least_window: self.least_window, ..Self::new(0) };
    }

    /// Looks at an acknowledgement of new data.
    pub(super) fn acknowledged(&mut self, ack: &Acknowledgement) {
        let sample = ack.now.saturating_since(ack.echo);
        self.least = self.least.min(sample);
        if ack.una > self.round_ends {
            self.round_began = ack.now;
            self.train = ack.now;
            self.round_ends = ack.next;
            self.least_of_round = Duration::MAX;
            self.samples = 0;
        }
        if ack.now.saturating_since(self.train) <= TRAIN_GAP {
            self.train = ack.now;
            self.is_full |= ack.now.saturating_since(self.round_began) > (self.least + ACK_DELAY) / 2;
        }
        self.least_of_round = self.least_of_round.min(sample);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let increase = (self.least / 8).clamp(LEAST_INCREASE, MOST_INCREASE);
            self.is_full |= self.least_of_round > self.least + increase;
        }
    }

    /// Returns whether slow start ends with this window.
    pub(super) fn ends_slow_start(&mut self, cwnd: u64) -> bool {
        let is_full = std::mem::take(&mut self.is_full);
        is_full && cwnd >= self.least_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// Acknowledges a segment at a time, with these round trips, after `from` segments.
    fn feed(
        hystart: &mut Hystart,
        from: u64,
        next: u64,
        times: impl IntoIterator<Item = (u64, u64)>,
    ) -> Vec<bool> {
        let acknowledge = |(segment, (now, round_trip)): (usize, (u64, u64))| {
            let ack = Acknowledgement {
                now: at(now),
                bytes: MSS,
                marked: false,
                una: (from + segment as u64 + 1) * MSS,
                next: next * MSS,
                echo: at(now - round_trip),
            };
            hystart.acknowledged(&ack);
            hystart.ends_slow_start(20 * MSS)
        };
        times.into_iter().enumerate().map(acknowledge).collect()
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = Hystart::new(MSS as u32);
        // 100 ms of round trip, an acknowledgement each millisecond: 50.5 ms after the round began.
        let ends = feed(&mut hystart, 0, 100, (0..60).map(|i| (100 + i, 100)));
        assert_eq!(ends.iter().position(|end| *end), Some(51));
        // 3 ms between two is no train.
        let mut hystart = Hystart::new(MSS as u32);
        assert!(!feed(&mut hystart, 0, 100, (0..60).map(|i| (100 + 3 * i, 100))).contains(&true));
    }

    #[test]
    fn a_round_whose_least_round_trip_has_grown_ends_slow_start() {
        let round = |increase: u64| {
            let mut hystart = Hystart::new(MSS as u32);
            assert!(!feed(&mut hystart, 0, 10, (0..10).map(|i| (100 + 5 * i, 100))).contains(&true));
            // An eighth of 100 ms is 12.5 ms.
            feed(&mut hystart, 10, 40, (0..12).map(|i| (250 + 5 * i, 100 + increase)))
        };
        // The ninth sample of the round is the first that says something.
        assert_eq!(round(13).iter().position(|end| *end), Some(8));
        assert!(!round(12).contains(&true));
    }

    #[test]
    fn a_small_window_grows_on() {
        let mut hystart = Hystart { is_full: true, ..Hystart::new(MSS as u32) };
        assert!(!hystart.ends_slow_start(15 * MSS));
        let mut hystart = Hystart { is_full: true, ..Hystart::new(MSS as u32) };
        assert!(hystart.ends_slow_start(16 * MSS));
    }
}
