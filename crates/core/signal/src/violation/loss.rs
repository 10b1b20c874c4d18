//! The loss of the latest messages.

use std::collections::VecDeque;

/// The most intervals that are remembered.
const MOST: usize = 64;

/// The latest intervals: the messages sent in each, and those of them that are lost.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentLoss {
    intervals: VecDeque<(u64, i64)>,
    sent: u64,
    lost: i64,
}

impl RecentLoss {
    /// Adds an interval, and forgets those that are not needed: without them, so many messages were sent that a limit of so
    /// many per cent allows `allowed` lost ones.
    pub(super) fn add(&mut self, sent: u64, lost: i64, limit: f64, allowed: u32) {
        self.intervals.push_back((sent, lost));
        self.sent = self.sent.saturating_add(sent);
        self.lost = self.lost.saturating_add(lost);
        // No number of messages allows a lost one at a limit of 0, so the latest interval is enough.
        let needed = if limit > 0.0 { 100.0 * f64::from(allowed) / limit } else { 1.0 };
        while let Some(&(oldest, oldest_lost)) = self.intervals.front() {
            let rest = self.sent.saturating_sub(oldest);
            if (rest as f64) < needed && self.intervals.len() <= MOST {
                break;
            }
            self.intervals.pop_front();
            (self.sent, self.lost) = (rest, self.lost.saturating_sub(oldest_lost));
        }
    }

    /// The messages that are lost, per cent.
    pub(super) fn percent(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { 100.0 * self.lost.max(0) as f64 / self.sent as f64 }
    }

    /// Returns the unused part of the allowed losses: 1 if no message is lost, 0 if as many as are allowed,
    /// below 0 if more. So few messages that not even `allowed` lost ones are within the limit do not make it
    /// narrower. At a limit of 0 it is 1 or -1.
    pub(super) fn position(&self, limit: f64, allowed: u32) -> f64 {
        let lost = self.lost.max(0) as f64;
        if limit <= 0.0 {
            return if lost > 0.0 { -1.0 } else { 1.0 };
        }
        let budget = (limit * self.sent as f64 / 100.0).max(f64::from(allowed));
        1.0 - lost / budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lost_message_of_a_few_is_no_violation_and_many_are_at_once() {
        // 50 messages/s with a limit of 1 %: the latest 200 messages, 8 intervals of 0.5 s.
        let mut loss = RecentLoss::default();
        loss.add(25, 1, 1.0, 2);
        assert_eq!((loss.percent(), loss.position(1.0, 2)), (4.0, 0.5));
        for _ in 0..7 {
            loss.add(25, 0, 1.0, 2);
        }
        assert_eq!((loss.percent(), loss.position(1.0, 2)), (0.5, 0.5));
        loss.add(25, 0, 1.0, 2);
        assert_eq!((loss.sent, loss.percent(), loss.position(1.0, 2)), (200, 0.0, 1.0));
        loss.add(25, 3, 1.0, 2);
        assert_eq!((loss.percent(), loss.position(1.0, 2)), (1.5, -0.5));
        loss.add(25, -3, 1.0, 2);
        assert_eq!(loss.percent(), 0.0, "they were late, not lost");
    }

    #[test]
    fn with_many_messages_an_interval_is_enough() {
        let mut loss = RecentLoss::default();
        loss.add(1000, 900, 5.0, 2);
        loss.add(1000, 40, 5.0, 2);
        assert_eq!((loss.percent(), loss.intervals.len()), (4.0, 1));
        assert!((loss.position(5.0, 2) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_limit_of_zero_allows_none_and_a_tiny_one_needs_no_endless_memory() {
        let mut loss = RecentLoss::default();
        loss.add(25, 1, 0.0, 2);
        assert_eq!(loss.position(0.0, 2), -1.0);
        loss.add(0, 0, 0.0, 2);
        assert_eq!(loss.position(0.0, 2), -1.0, "nothing was sent since");
        loss.add(25, 0, 0.0, 2);
        assert_eq!(loss.position(0.0, 2), 1.0);
        for _ in 0..1000 {
            loss.add(1, 0, 1e-9, 2);
        }
        assert_eq!((loss.intervals.len(), loss.sent), (MOST, MOST as u64));
    }
}
