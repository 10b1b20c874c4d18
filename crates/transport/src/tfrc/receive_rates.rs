//! What the receiver has lately received: `X_recv_set` (RFC 5348 4.3), and whether the sender had enough to
//! send (8.2.1).
//!
//! The sending rate is held to twice the largest rate received over the last two round trips. After an
//! interval in which the application had too little to send, the rate received says little, so the largest
//! is kept instead.

use cutline_units::{Duration, Instant};

/// Reports that can lie within two round trips, with one a round trip and those at loss events.
const MOST: usize = 4;

/// `X_recv_set`: rates in bytes per second, with the time of their report.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveRates {
    entries: [(Instant, f64); MOST],
    filled: usize,
}

impl ReceiveRates {
    /// The set before the first report: {infinity}.
    pub(super) const fn new(now: Instant) -> Self {
        Self { entries: [(now, f64::INFINITY); MOST], filled: 1 }
    }

    fn iter(&self) -> impl Iterator<Item = &(Instant, f64)> {
        self.entries[..self.filled].iter()
    }

    pub(super) fn largest(&self) -> f64 {
        self.iter().fold(0.0, |largest, entry| entry.1.max(largest))
    }

    /// The set is this one rate.
    pub(super) fn replace(&mut self, now: Instant, x: f64) {
        self.entries[0] = (now, x);
        self.filled = 1;
    }

    /// Keeps the reports of the last two round trips ("Update `X_recv_set`").
    pub(super) fn update(&mut self, now: Instant, x: f64, rtt: Duration) {
        let mut kept = Self { filled: 0, ..*self };
        for &entry in self.iter().filter(|entry| now.saturating_since(entry.0) <= rtt * 2) {
            kept.push(entry);
        }
        kept.push((now, x));
        *self = kept;
    }

    /// Keeps the largest alone ("Maximize `X_recv_set`"); the initial infinity does not count.
    pub(super) fn maximize(&mut self, now: Instant, x: f64) {
        let finite = self.iter().map(|entry| entry.1).filter(|x| x.is_finite());
        let largest = finite.fold(x, f64::max);
        self.replace(now, largest);
    }

    pub(super) fn halve(&mut self) {
        for entry in &mut self.entries {
            entry.1 /= 2.0;
        }
    }

    /// Appends; when full, the smaller of the two oldest gives way, so the largest is never lost.
    fn push(&mut self, entry: (Instant, f64)) {
        if self.filled == MOST {
            let smaller = usize::from(self.entries[1].1 < self.entries[0].1);
            self.entries.copy_within(smaller + 1.., smaller);
            self.filled -= 1;
        }
        self.entries[self.filled] = entry;
        self.filled += 1;
    }
}

/// Whether the interval that a report covers was limited by the application (RFC 5348 8.2.1).
///
/// Two times suffice at one report a round trip: the first at which the sender had more than it could send
/// among the packets that the next report covers, and the first among those that the one after covers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataLimits {
    not_limited_1: Option<Instant>,
    not_limited_2: Option<Instant>,
    /// The newest packet that a report has covered.
    t_new: Instant,
    /// When that report came: the next covers packets up to about here.
    t_next: Instant,
}

impl DataLimits {
    /// The sender sent all it was allowed to and had more.
    pub(super) fn not_limited(&mut self, now: Instant) {
        if self.not_limited_1.is_none_or(|first| first <= self.t_new) {
            self.not_limited_1 = Some(now);
        } else if self.not_limited_2.is_none_or(|second| second <= self.t_next) {
            self.not_limited_2 = Some(now);
        }
    }

    /// A report covers the packets up to the one that left at `echo`. True if all were data-limited.
    pub(super) fn covered(&mut self, now: Instant, echo: Instant) -> bool {
        let t_old = std::mem::replace(&mut self.t_new, echo);
        self.t_next = now;
        let within = |time: Option<Instant>| time.is_some_and(|time| t_old < time && time <= echo);
        let limited = !within(self.not_limited_1) && !within(self.not_limited_2);
        if self.not_limited_1.is_none_or(|first| first <= echo)
            && self.not_limited_2.is_some_and(|second| second > echo)
        {
            self.not_limited_1 = self.not_limited_2;
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn reports_of_two_round_trips_count() {
        let mut rates = ReceiveRates::new(ms(0));
        assert_eq!(rates.largest(), f64::INFINITY);
        rates.update(ms(100), 10.0, RTT);
        rates.update(ms(200), 40.0, RTT);
        assert_eq!(rates.largest(), f64::INFINITY);
        // RFC 5348 4.3: older than two round trips.
        rates.update(ms(300), 20.0, RTT);
        assert_eq!(rates.largest(), 40.0);
        rates.update(ms(401), 20.0, RTT);
        assert_eq!(rates.largest(), 20.0);
    }

    #[test]
    fn a_full_set_keeps_its_largest() {
        let mut rates = ReceiveRates::new(ms(0));
        rates.replace(ms(0), 1.0);
        for (i, x) in [9.0, 2.0, 3.0, 4.0, 5.0].into_iter().enumerate() {
            rates.update(ms(i as u64), x, RTT);
        }
        assert_eq!(rates.largest(), 9.0);
    }

    #[test]
    fn maximizing_keeps_one_and_forgets_infinity() {
        let mut rates = ReceiveRates::new(ms(0));
        rates.maximize(ms(10), 5.0);
        assert_eq!(rates.largest(), 5.0);
        rates.maximize(ms(20), 3.0);
        assert_eq!(rates.largest(), 5.0);
        rates.halve();
        assert_eq!(rates.largest(), 2.5);
    }

    #[test]
    fn an_interval_is_limited_unless_the_sender_had_more_in_it() {
        let mut limits = DataLimits::default();
        // RFC 5348 8.2.1: nothing but data-limited packets so far.
        assert!(limits.covered(ms(100), ms(50)));
        limits.not_limited(ms(120));
        assert!(!limits.covered(ms(200), ms(150)));
        assert!(limits.covered(ms(300), ms(250)));
    }

    #[test]
    fn the_report_after_the_next_is_told_apart() {
        let mut limits = DataLimits::default();
        limits.not_limited(ms(10));
        limits.not_limited(ms(120));
        // The first was before the echo, the second after it: each makes one interval unlimited.
        assert!(!limits.covered(ms(150), ms(50)));
        assert!(!limits.covered(ms(250), ms(150)));
        assert!(limits.covered(ms(350), ms(250)));
    }
}
