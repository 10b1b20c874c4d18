//! The recent receive rates `X_recv_set` (RFC 5348 section 4.3), and whether the application limited the sender
//! (RFC 5348 section 8.2.1).
//!
//! The sending rate is limited to twice the largest receive rate of the last two round trips. A data-limited interval, in
//! which the application had too little to send, shows little of the path's capacity. Then the largest rate is kept
//! instead.

use cutline_units::{Duration, Instant};

/// The most reports that are kept of two round trips. RFC 5348 section 8.2.2 finds three sufficient.
const MOST: usize = 4;

/// `X_recv_set`: rates in bytes per second, with the times of their reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveRates {
    entries: [(Instant, f64); MOST],
    filled: usize,
}

impl ReceiveRates {
    /// Creates the set before the first report: {infinity}.
    pub(super) const fn new(now: Instant) -> Self {
        Self { entries: [(now, f64::INFINITY); MOST], filled: 1 }
    }

    fn iter(&self) -> impl Iterator<Item = &(Instant, f64)> {
        self.entries[..self.filled].iter()
    }

    pub(super) fn largest(&self) -> f64 {
        self.iter().fold(0.0, |largest, entry| entry.1.max(largest))
    }

    /// Replaces the set with one rate.
    pub(super) fn replace(&mut self, now: Instant, x: f64) {
        self.entries[0] = (now, x);
        self.filled = 1;
    }

    /// Adds a rate and keeps those of the last two round trips (`Update X_recv_set` in RFC 5348 section 4.3).
    pub(super) fn update(&mut self, now: Instant, x: f64, rtt: Duration) {
        let mut kept = Self { filled: 0, ..*self };
        for &entry in self.iter().filter(|entry| now.saturating_since(entry.0) <= rtt * 2) {
            kept.push(entry);
        }
        kept.push((now, x));
        *self = kept;
    }

    /// Adds a rate and keeps the largest only, but not the initial infinity (`Maximize X_recv_set` in RFC 5348 section 4.3).
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

    /// Appends an entry. If the set is full, the smaller of the two oldest is removed, so the largest always stays.
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

/// Determines whether the interval that a report covers was data-limited (RFC 5348 section 8.2.1).
///
/// With one report per round trip, two times are enough: the first time at which the application did not limit the sender
/// in the interval that the next report covers, and the first in the interval that the report after that covers.
///
/// The interval of a report begins where that of the report before ended. RFC 5348 section 8.2.1 estimates that as one
/// round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataLimits {
    not_limited_1: Option<Instant>,
    not_limited_2: Option<Instant>,
    /// Time at which the newest packet that a report has covered left.
    t_new: Instant,
    /// Time at which that report arrived. The next report covers packets up to about this time.
    t_next: Instant,
}

impl DataLimits {
    /// Notes that the sender has sent all that it may and has more to send (RFC 5348 section 8.2.1).
    pub(super) fn note_not_limited(&mut self, now: Instant) {
        if self.not_limited_1.is_none_or(|first| first <= self.t_new) {
            self.not_limited_1 = Some(now);
        } else if self.not_limited_2.is_none_or(|second| second <= self.t_next) {
            self.not_limited_2 = Some(now);
        }
    }

    /// Handles a report that covers the packets up to the one that left at `echo`. Returns whether the interval was
    /// data-limited (RFC 5348 section 8.2.1).
    pub(super) fn on_feedback(&mut self, now: Instant, echo: Instant) -> bool {
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
        // RFC 5348 section 4.3: infinity is older than two round trips, and then 40 is.
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
    fn maximizing_keeps_the_largest_rate_and_removes_infinity() {
        let mut rates = ReceiveRates::new(ms(0));
        // RFC 5348 section 4.3, Maximize X_recv_set, and `Halve entries` of step 4.
        rates.maximize(ms(10), 5.0);
        assert_eq!(rates.largest(), 5.0);
        rates.maximize(ms(20), 3.0);
        assert_eq!(rates.largest(), 5.0);
        rates.halve();
        assert_eq!(rates.largest(), 2.5);
    }

    #[test]
    fn an_interval_is_data_limited_unless_the_sender_had_more_to_send_in_it() {
        let mut limits = DataLimits::default();
        // RFC 5348 section 8.2.1: no time without a data limit so far.
        assert!(limits.on_feedback(ms(100), ms(50)));
        limits.note_not_limited(ms(120));
        assert!(!limits.on_feedback(ms(200), ms(150)));
        assert!(limits.on_feedback(ms(300), ms(250)));
    }

    #[test]
    fn the_times_of_two_reports_are_kept() {
        let mut limits = DataLimits::default();
        limits.note_not_limited(ms(10));
        limits.note_not_limited(ms(120));
        // RFC 5348 section 8.2.1: the first time is before the echo, the second after it. Neither interval is data-limited.
        assert!(!limits.on_feedback(ms(150), ms(50)));
        assert!(!limits.on_feedback(ms(250), ms(150)));
        assert!(limits.on_feedback(ms(350), ms(250)));
    }
}
