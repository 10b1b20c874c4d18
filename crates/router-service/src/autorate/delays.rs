//! Whether echo replies are later than usual.
//!
//! Each reflector has a usual round-trip time, which follows shorter times at once and longer ones slowly: a path may have become
//! longer, but a queue soon gets shorter. A reply that exceeds it by more than the limit is delayed, and three delayed ones among the
//! last six are a standing queue. One or two are the reflector's own.

use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// How many of the last replies count.
const LAST: usize = 6;
/// How many of them must be delayed.
const STANDING: usize = 3;
/// The part of a shorter time that the usual time takes over.
const FASTER: f64 = 0.9;
/// The part of a longer one: with ten replies a second a new path is the usual one after some minutes.
const SLOWER: f64 = 0.001;
/// How old the last reply may be. Without replies nothing is known.
const FRESH: Duration = Duration::from_secs(2);

/// The delays of the last replies.
#[derive(Debug)]
pub struct Delays {
    limit: Duration,
    /// The usual round-trip time of each reflector, s.
    usual: Vec<Option<f64>>,
    /// By how much the last replies exceeded it, the last one at the end.
    last: VecDeque<Duration>,
    at: Instant,
    replies: u64,
    delayed: u64,
}

impl Delays {
    /// Creates the delays of some reflectors, without a reply so far. A reply is delayed by more than `limit`.
    pub fn new(reflectors: usize, limit: Duration) -> Self {
        Self {
            limit,
            usual: vec![None; reflectors],
            last: VecDeque::with_capacity(LAST),
            at: Instant::ZERO,
            replies: 0,
            delayed: 0,
        }
    }

    /// Adds a reply of a reflector that took this time.
    pub fn add(&mut self, now: Instant, reflector: usize, time: Duration) {
        let time = time.as_secs_f64();
        let usual = self.usual[reflector].get_or_insert(time);
        *usual += (time - *usual) * if time < *usual { FASTER } else { SLOWER };
        let excess = Duration::from_secs_f64((time - *usual).max(0.0));
        if self.last.len() == LAST {
            self.last.pop_front();
        }
        self.last.push_back(excess);
        self.at = now;
        self.replies += 1;
        self.delayed += u64::from(excess > self.limit);
    }

    /// The delay of a standing queue in units of the limit: the median of the last replies' if enough of them are delayed.
    pub fn standing(&self, now: Instant) -> Option<f64> {
        let delayed = self.last.iter().filter(|excess| **excess > self.limit).count();
        if delayed < STANDING || now.saturating_since(self.at) > FRESH {
            return None;
        }
        let mut sorted: Vec<Duration> = self.last.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        Some(median.max(self.limit).as_secs_f64() / self.limit.as_secs_f64())
    }

    /// By how much the last reply exceeded the usual time.
    pub fn last(&self) -> Option<Duration> {
        self.last.back().copied()
    }

    /// The number of replies.
    pub const fn replies(&self) -> u64 {
        self.replies
    }

    /// The number of delayed ones.
    pub const fn delayed(&self) -> u64 {
        self.delayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn fed(times: &[u64]) -> Delays {
        let mut delays = Delays::new(1, ms(15));
        for time in times {
            delays.add(Instant::ZERO, 0, ms(*time));
        }
        delays
    }

    #[test]
    fn three_late_replies_of_six_are_a_queue_and_two_are_not() {
        assert_eq!(fed(&[20, 20, 20, 90, 90, 20]).standing(Instant::ZERO), None);
        let standing = fed(&[20, 20, 20, 80, 80, 80]).standing(Instant::ZERO);
        assert!(standing.is_some_and(|delay| (delay - 4.0).abs() < 0.1), "{standing:?}");
        assert_eq!(fed(&[20, 20, 20, 80, 80, 80]).standing(Instant::ZERO + ms(2001)), None, "too old");
    }

    #[test]
    fn a_shorter_path_is_the_usual_one_at_once_and_a_longer_one_slowly() {
        let mut delays = fed(&[100, 20, 20]);
        assert_eq!(delays.last(), Some(Duration::ZERO));
        delays.add(Instant::ZERO, 0, ms(60));
        assert!(delays.last().is_some_and(|excess| excess > ms(39)), "{delays:?}");
        (0..5000).for_each(|_| delays.add(Instant::ZERO, 0, ms(60)));
        assert!(delays.last().is_some_and(|excess| excess < ms(1)), "{delays:?}");
        assert!(delays.delayed() > 900 && delays.replies() == 5004, "{delays:?}");
    }

    #[test]
    fn each_reflector_has_its_own_usual_time() {
        let mut delays = Delays::new(2, ms(15));
        for _ in 0..6 {
            delays.add(Instant::ZERO, 0, ms(10));
            delays.add(Instant::ZERO, 1, ms(200));
        }
        assert_eq!((delays.standing(Instant::ZERO), delays.delayed()), (None, 0));
    }
}
