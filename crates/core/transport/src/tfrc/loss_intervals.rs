//! Loss events, the intervals between them, and the loss event rate p (RFC 5348 sections 5.2, 5.3, 5.4 and 5.5).
//!
//! Losses within one round trip of the first loss belong to the same event. The interval from event A to event B has
//! `S_B - S_A` packets. The open interval `I_0` runs from the last event to the newest packet. The newest eight have the
//! weights 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2:
//!
//! ```text
//! I_tot0 = sum I_i w_i (i = 0..7)     I_tot1 = sum I_i w_(i-1) (i = 1..8)
//! p = 1 / max(I_tot0 / W, I_tot1 / W)
//! ```
//!
//! So the open interval counts only if it lowers p. Worked: eight closed intervals of 100 packets and an open one of 10
//! give p = 0.01. An open one of 160 gives `I_tot0` = 660 with W = 6: p = 1/110.
//!
//! History discounting: if `I_0 > 2 I_mean` of the closed intervals, their weights are multiplied by
//! `DF = max(2 I_mean / I_0, THRESHOLD)`, so that p follows a lasting improvement faster. The intervals keep their discount
//! when the open interval closes (RFC 5348 section 5.5).
//!
//! Departures from RFC 5348: `THRESHOLD` is 0.5 as in RFC 3448, where RFC 5348 section 5.5 recommends 0.25; and a loss
//! exactly one round trip after the first begins a new event, where RFC 5348 section 5.2 counts it to the same event.

use cutline_units::{Duration, Instant};

/// The number of closed intervals that count.
const N: usize = 8;
/// The weights of the intervals, the newest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; N] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The least discount factor.
const THRESHOLD: f64 = 0.5;

/// A closed interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Its packets. The first interval is synthetic and need not be a whole number (RFC 5348 section 6.3.1).
    packets: f64,
    /// `DF_i`: the factor by which history discounting has reduced its weight.
    discount: f64,
}

/// The recent loss events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossIntervals {
    /// The newest first.
    closed: [Interval; N],
    filled: usize,
    /// The first loss of the last event.
    start: Option<(u64, Instant)>,
    discounting: bool,
}

impl LossIntervals {
    pub(crate) fn new(discounting: bool) -> Self {
        Self { discounting, ..Self::default() }
    }

    /// Adds the loss or the mark of the packet `seq` at the time `at`. Returns whether it begins a new event.
    /// `first_interval` is called for the first event of all (RFC 5348 section 6.3.1).
    pub(crate) fn add_loss(
        &mut self,
        seq: u64,
        at: Instant,
        rtt: Duration,
        first_interval: impl FnOnce() -> f64,
    ) -> bool {
        let packets = match self.start {
            // Losses within a round trip of the event's start belong to it (RFC 5348 section 5.2). So does an earlier
            // packet whose loss was detected after the mark of a later one.
            Some((start, began)) if seq <= start || at < began + rtt => return false,
            Some((start, _)) => (seq - start) as f64,
            None => first_interval(),
        };
        self.close(packets, seq);
        self.start = Some((seq, at));
        true
    }

    fn close(&mut self, packets: f64, seq: u64) {
        if let Some((start, _)) = self.start {
            let discount = self.discount_factor((seq - start) as f64);
            for interval in &mut self.closed {
                interval.discount *= discount;
            }
        }
        self.closed.rotate_right(1);
        self.closed[0] = Interval { packets, discount: 1.0 };
        self.filled = (self.filled + 1).min(N);
    }

    /// Returns the loss event rate when `highest` is the newest packet; 0 before the first loss (RFC 5348 section 5.4).
    pub(crate) fn rate(&self, highest: u64) -> f64 {
        let Some((start, _)) = self.start else {
            return 0.0;
        };
        let open = (highest + 1).saturating_sub(start) as f64;
        let discount = self.discount_factor(open);
        let without = self.mean_closed();
        let with = self.mean_with_open(open, discount);
        (1.0 / with.max(without)).min(1.0)
    }

    fn intervals(&self) -> &[Interval] {
        &self.closed[..self.filled]
    }

    /// Returns `I_tot1 / W_tot1`: the mean of the closed intervals with the discounts that they keep.
    fn mean_closed(&self) -> f64 {
        let (mut total, mut weights) = (0.0, 0.0);
        for (interval, weight) in self.intervals().iter().zip(WEIGHTS) {
            total += interval.packets * weight * interval.discount;
            weights += weight * interval.discount;
        }
        total / weights
    }

    /// Returns `I_tot0 / W_tot0`: the mean of the open interval and the closed ones, which are discounted.
    fn mean_with_open(&self, open: f64, discount: f64) -> f64 {
        let (mut total, mut weights) = (open * WEIGHTS[0], WEIGHTS[0]);
        for (interval, weight) in self.intervals().iter().zip(&WEIGHTS[1..]) {
            total += interval.packets * weight * interval.discount * discount;
            weights += weight * interval.discount * discount;
        }
        total / weights
    }

    /// Returns the discount factor DF (RFC 5348 section 5.5).
    fn discount_factor(&self, open: f64) -> f64 {
        let mean = self.mean_closed();
        if self.discounting && open > 2.0 * mean { (2.0 * mean / open).max(THRESHOLD) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Returns a history of events a second apart with these intervals, the first of which is synthetic.
    fn history(discounting: bool, intervals: &[u64]) -> (LossIntervals, u64) {
        let mut losses = LossIntervals::new(discounting);
        let mut seq = 1000;
        for (i, &packets) in intervals.iter().enumerate() {
            if i > 0 {
                seq += packets;
            }
            let at = Instant::ZERO + Duration::from_secs(i as u64);
            assert!(losses.add_loss(seq, at, RTT, || packets as f64));
        }
        (losses, seq)
    }

    fn close_to(p: f64, expected: f64) {
        assert!((p - expected).abs() < 1e-9, "{p} is not {expected}");
    }

    #[test]
    fn the_rate_is_zero_without_a_loss() {
        close_to(LossIntervals::new(true).rate(1_000_000), 0.0);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let (mut losses, seq) = history(true, &[100]);
        // RFC 5348 section 5.2: the event began at 0 s, and a round trip is 100 ms.
        assert!(!losses.add_loss(seq + 5, Instant::from_nanos(99_999_999), RTT, || 0.0));
        assert!(losses.add_loss(seq + 6, Instant::from_nanos(100_000_000), RTT, || 0.0));
    }

    #[test]
    fn the_worked_rates() {
        let (losses, seq) = history(true, &[100; 8]);
        // RFC 5348 section 5.4: the open interval does not count until it lowers p.
        close_to(losses.rate(seq + 9), 1.0 / 100.0);
        close_to(losses.rate(seq + 159), 6.0 / 660.0);
    }

    #[test]
    fn the_weights_fall_with_age() {
        let (losses, seq) = history(false, &[10, 20, 30, 40, 50, 60, 70, 80]);
        // RFC 5348 section 5.4, newest first: (80 + 70 + 60 + 50 + 0.8*40 + 0.6*30 + 0.4*20 + 0.2*10) / 6.
        close_to(losses.rate(seq), 6.0 / 320.0);
        // A ninth pushes the oldest out: (90 + 80 + 70 + 60 + 0.8*50 + 0.6*40 + 0.4*30 + 0.2*20) / 6.
        let (losses, seq) = history(false, &[10, 20, 30, 40, 50, 60, 70, 80, 90]);
        close_to(losses.rate(seq), 6.0 / 380.0);
    }

    #[test]
    fn discounting_lowers_the_rate_faster() {
        let open = 400;
        let (plain, seq) = history(false, &[100; 8]);
        close_to(plain.rate(seq + open - 1), 6.0 / 900.0);
        let (discounted, seq) = history(true, &[100; 8]);
        // RFC 5348 section 5.5: DF = max(2 * 100 / 400, 0.5) = 0.5, so (400 + 0.5 * 5 * 100) / (1 + 0.5 * 5).
        close_to(discounted.rate(seq + open - 1), 3.5 / 650.0);
    }

    #[test]
    fn intervals_keep_their_discount_when_the_open_interval_closes() {
        let (mut losses, seq) = history(true, &[100; 8]);
        let at = Instant::ZERO + Duration::from_secs(100);
        assert!(losses.add_loss(seq + 400, at, RTT, || 0.0));
        // RFC 5348 section 5.5: I_1 = 400 undiscounted, seven older of 100 at half weight.
        let weights = 1.0 + 0.5 * (1.0 + 1.0 + 1.0 + 0.8 + 0.6 + 0.4 + 0.2);
        let total = 400.0 + 100.0 * (weights - 1.0);
        close_to(losses.rate(seq + 400), weights / total);
    }
}
