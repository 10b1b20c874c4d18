//! Evidence of echo replies about a queue behind the router.
//!
//! **Each reflector votes for itself.** It has a usual round-trip time, which follows shorter times at once and longer ones slowly: a path
//! may have become longer, but a queue soon gets shorter. A reply that exceeds it by more than the limit is delayed. A reflector sees a queue
//! if half of its last replies are delayed, and at least two; of a single reflector six replies count, of two reflectors three of each, of more
//! two of each.
//!
//! **The majority decides.** A queue behind the router delays all replies, so more than half of the reflectors see it. As many on both
//! sides decide nothing.
//!
//! **A reflector that disagrees is distrusted.** Who often sees something else than the majority, or sees a queue where as many see
//! none, has no vote until it agrees for some time.
//!
//! **Shifts of the path**, as of a satellite's: if all replies of a reflector have been delayed for [`SHIFT`] and the delay is not falling, the
//! path has become longer, and the lowest of these times is the usual one. A queue of the router's own traffic does not last
//! so long, because the rate falls by at least 10 % each 800 ms.
//!
//! **Without replies nothing is known.** So too few reflectors that reply are no evidence that there is no queue.

use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// Number of the last replies of all reflectors that count.
const LAST: usize = 6;
/// The least number of replies of a reflector that count.
const LEAST: usize = 2;
/// The part of a shorter time that the usual time takes over.
const FASTER: f64 = 0.9;
/// The part of a longer one: with ten replies a second a new path is the usual one after some minutes.
const SLOWER: f64 = 0.001;
/// Largest age of a reflector's last reply, in time and in its turns.
const FRESH: Duration = Duration::from_secs(2);
const FRESH_TURNS: u64 = 3;
/// The time between two requests, of all reflectors together.
pub const EVERY: Duration = Duration::from_millis(100);
/// The time after which a path has become longer.
pub const SHIFT: Duration = Duration::from_secs(10);
/// Increase of a reflector's distrust at each look at which it disagrees, and decrease at each other one.
const DISAGREES: f64 = 1.0;
const AGREES: f64 = 0.25;
/// From here on it has no vote, and when its distrust is zero it has one again. At five looks a second, this is five seconds.
const DISTRUSTED: f64 = 25.0;

/// Evidence about a queue behind the router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// No reflector replies; `ever` is true if one has replied before.
    Silent {
        /// True if a reflector has ever replied.
        ever: bool,
    },
    /// No queue.
    Clear,
    /// Reflectors disagree, or too few of them reply.
    Disputed,
    /// A queue, with this delay in units of the limit.
    Standing(f64),
}

/// The delays of the last replies.
#[derive(Debug)]
pub struct Delays {
    limit: Duration,
    reflectors: Vec<Reflector>,
    /// Excess of the last reply over the usual time.
    last: Option<Duration>,
    replies: u64,
    delayed: u64,
}

/// One reflector.
#[derive(Clone, Debug, Default)]
struct Reflector {
    /// The usual round-trip time, s.
    usual: Option<f64>,
    /// Excesses of the last replies over it, the last one at the end.
    last: VecDeque<Duration>,
    at: Option<Instant>,
    late: Option<Late>,
    distrust: f64,
    is_distrusted: bool,
}

/// Replies that are all delayed.
#[derive(Clone, Copy, Debug)]
struct Late {
    since: Instant,
    /// The lowest times of the first and of the second half of [`SHIFT`], s.
    lowest: [f64; 2],
}

impl Delays {
    /// Creates the delays of some reflectors, without a reply so far. A reply is delayed by more than `limit`.
    pub fn new(reflectors: usize, limit: Duration) -> Self {
        let reflectors = vec![Reflector::default(); reflectors];
        Self { limit, reflectors, last: None, replies: 0, delayed: 0 }
    }

    /// Adds a reply of a reflector that took this time.
    pub fn add(&mut self, now: Instant, reflector: usize, time: Duration) {
        let kept = self.kept();
        let reflector = &mut self.reflectors[reflector];
        let excess = reflector.add(now, time.as_secs_f64(), self.limit);
        while reflector.last.len() > kept {
            reflector.last.pop_front();
        }
        self.last = Some(excess);
        self.replies += 1;
        self.delayed += u64::from(excess > self.limit);
    }

    /// Returns the evidence of a queue. It is called at each step of the rate.
    pub fn evidence(&mut self, now: Instant) -> Evidence {
        let needed = LEAST.max(self.kept().div_ceil(2));
        let (limit, all) = (self.limit, self.reflectors.len());
        let live: Vec<usize> = (0..all).filter(|&at| self.is_fresh(at, now)).collect();
        if live.is_empty() {
            return Evidence::Silent { ever: self.replies > 0 };
        }
        let sees = |at: usize| self.reflectors[at].sees(limit, needed);
        let trusted: Vec<usize> =
            live.iter().copied().filter(|&at| !self.reflectors[at].is_distrusted).collect();
        let voters = if trusted.is_empty() { &live } else { &trusted };
        let for_queue: Vec<usize> = voters.iter().copied().filter(|&at| sees(at)).collect();
        let verdict = (2 * for_queue.len()).cmp(&voters.len());
        let is_few = 2 * live.len() < all;
        let evidence = if verdict.is_gt() {
            Evidence::Standing(self.standing(&for_queue))
        } else if verdict.is_eq() || is_few {
            Evidence::Disputed
        } else {
            Evidence::Clear
        };
        let seen: Vec<bool> = live.iter().map(|&at| sees(at)).collect();
        for (&at, sees) in live.iter().zip(seen) {
            self.reflectors[at].judge(if verdict.is_gt() { !sees } else { sees });
        }
        evidence
    }

    /// Returns the number of reflectors that reply at present.
    pub fn replying(&self, now: Instant) -> usize {
        (0..self.reflectors.len()).filter(|&at| self.is_fresh(at, now)).count()
    }

    /// Excess of the last reply over the usual time.
    pub const fn last(&self) -> Option<Duration> {
        self.last
    }

    /// The number of replies.
    pub const fn replies(&self) -> u64 {
        self.replies
    }

    /// The number of delayed ones.
    pub const fn delayed(&self) -> u64 {
        self.delayed
    }

    /// Returns the number of replies of each reflector that count.
    fn kept(&self) -> usize {
        LEAST.max(LAST / self.reflectors.len().max(1))
    }

    fn is_fresh(&self, reflector: usize, now: Instant) -> bool {
        let turns = EVERY * (self.reflectors.len() as u64 * FRESH_TURNS);
        self.reflectors[reflector].at.is_some_and(|at| now.saturating_since(at) <= FRESH.max(turns))
    }

    /// The median of the delays that these reflectors see, in units of the limit.
    fn standing(&self, reflectors: &[usize]) -> f64 {
        let mut delays: Vec<Duration> =
            reflectors.iter().flat_map(|&at| self.reflectors[at].last.iter().copied()).collect();
        delays.sort_unstable();
        delays[delays.len() / 2].max(self.limit).as_secs_f64() / self.limit.as_secs_f64()
    }
}

impl Reflector {
    /// Adds a reply. Returns by how much it exceeds the usual time.
    fn add(&mut self, now: Instant, time: f64, limit: Duration) -> Duration {
        let usual = self.usual.get_or_insert(time);
        *usual += (time - *usual) * if time < *usual { FASTER } else { SLOWER };
        let mut excess = Duration::from_secs_f64((time - *usual).max(0.0));
        if excess <= limit {
            self.late = None;
        } else if let Some(new) = self.shifted(now, time, limit) {
            self.usual = Some(new);
            self.last.clear();
            excess = Duration::from_secs_f64((time - new).max(0.0));
        }
        self.last.push_back(excess);
        self.at = Some(now);
        excess
    }

    /// Notes a delayed reply. Returns the new usual time if the path has become longer.
    fn shifted(&mut self, now: Instant, time: f64, limit: Duration) -> Option<f64> {
        let late = self.late.get_or_insert(Late { since: now, lowest: [f64::INFINITY; 2] });
        let age = now.saturating_since(late.since);
        let half = usize::from(age > SHIFT / 2);
        late.lowest[half] = late.lowest[half].min(time);
        if age < SHIFT {
            return None;
        }
        let [first, second] = late.lowest;
        self.late = None;
        // A queue that drains is no path.
        (second >= first - limit.as_secs_f64()).then(|| first.min(second))
    }

    /// Returns whether the reflector sees a queue.
    fn sees(&self, limit: Duration, needed: usize) -> bool {
        self.last.iter().filter(|excess| **excess > limit).count() >= needed
    }

    fn judge(&mut self, disagrees: bool) {
        self.distrust = if disagrees {
            (self.distrust + DISAGREES).min(2.0 * DISTRUSTED)
        } else {
            (self.distrust - AGREES).max(0.0)
        };
        self.is_distrusted = self.distrust >= DISTRUSTED || (self.is_distrusted && self.distrust > 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time between two looks.
    const LOOK: Duration = Duration::from_millis(200);

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

    /// Asks reflectors in turn for some time; `reply` has the time of the reply of one at a time, ms. Returns the evidence at each look.
    fn watch(
        delays: &mut Delays,
        now: &mut Instant,
        seconds: u64,
        reply: impl Fn(usize, u64) -> Option<u64>,
    ) -> Vec<Evidence> {
        let (mut seen, start) = (Vec::new(), *now);
        let reflectors = delays.reflectors.len();
        let mut turn = 0;
        while now.saturating_since(start) < Duration::from_secs(seconds) {
            *now += EVERY;
            if let Some(time) = reply(turn % reflectors, now.saturating_since(start).as_millis_f64() as u64) {
                delays.add(*now, turn % reflectors, ms(time));
            }
            turn += 1;
            if turn % 2 == 0 {
                seen.push(delays.evidence(*now));
            }
        }
        assert_eq!(EVERY * 2, LOOK);
        seen
    }

    fn count(seen: &[Evidence], what: fn(&Evidence) -> bool) -> usize {
        seen.iter().filter(|evidence| what(evidence)).count()
    }

    const fn is_standing(evidence: &Evidence) -> bool {
        matches!(evidence, Evidence::Standing(_))
    }

    #[test]
    fn three_late_replies_of_six_are_a_queue_and_two_are_not() {
        assert_eq!(fed(&[20, 20, 20, 90, 90, 20]).evidence(Instant::ZERO), Evidence::Clear);
        let standing = fed(&[20, 20, 20, 80, 80, 80]).evidence(Instant::ZERO);
        assert!(matches!(standing, Evidence::Standing(delay) if (delay - 4.0).abs() < 0.1), "{standing:?}");
        let late = fed(&[20, 20, 20, 80, 80, 80]).evidence(Instant::ZERO + ms(2001));
        assert_eq!(late, Evidence::Silent { ever: true }, "too old");
        assert_eq!(fed(&[]).evidence(Instant::ZERO), Evidence::Silent { ever: false });
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
        let (mut delays, mut now) = (Delays::new(2, ms(15)), Instant::ZERO);
        let seen =
            watch(&mut delays, &mut now, 20, |reflector, _| Some(if reflector == 0 { 10 } else { 200 }));
        // The very first look has the reply of the first one only.
        assert_eq!((count(&seen[1..], |of| *of == Evidence::Clear), delays.delayed()), (seen.len() - 1, 0));
    }

    /// A queue behind the router delays the replies of all.
    #[test]
    fn the_majority_of_reflectors_decides() {
        for reflectors in [1, 2, 3, 5, 16] {
            for bad in 0..reflectors {
                let (mut delays, mut now) = (Delays::new(reflectors, ms(15)), Instant::ZERO);
                // The first ones have delays of their own, which vary, from 10 s on.
                let own = |reflector: usize, at: u64| {
                    if reflector < bad && at > 10_000 { 20 + (at * 7919 % 400) } else { 20 }
                };
                let seen = watch(&mut delays, &mut now, 40, |reflector, at| Some(own(reflector, at)));
                let standing = count(&seen, is_standing);
                if 2 * bad <= reflectors {
                    assert_eq!(standing, 0, "{bad} of {reflectors} have delays of their own");
                    let clear = count(&seen[seen.len() - 50..], |of| *of == Evidence::Clear);
                    assert!(
                        clear >= 45,
                        "{bad} of {reflectors}: a distrusted one does not hold the rate: {clear}"
                    );
                }
                // A queue of 60 ms behind the router.
                let seen = watch(&mut delays, &mut now, 6, |reflector, at| Some(60 + own(reflector, at)));
                if 2 * bad <= reflectors {
                    assert!(count(&seen, is_standing) > seen.len() / 3, "{bad} of {reflectors}: {seen:?}");
                }
            }
        }
    }

    #[test]
    fn a_reflector_that_does_not_see_the_queue_is_outvoted() {
        let (mut delays, mut now) = (Delays::new(3, ms(15)), Instant::ZERO);
        watch(&mut delays, &mut now, 5, |_, _| Some(20));
        let seen = watch(&mut delays, &mut now, 8, |reflector, _| Some(if reflector == 1 { 20 } else { 90 }));
        assert!(count(&seen, is_standing) > seen.len() * 8 / 10, "{seen:?}");
    }

    #[test]
    fn reflectors_that_fall_silent_are_no_evidence_of_an_empty_queue() {
        let (mut delays, mut now) = (Delays::new(3, ms(15)), Instant::ZERO);
        watch(&mut delays, &mut now, 5, |_, _| Some(20));
        assert_eq!(delays.replying(now), 3);
        let seen = watch(&mut delays, &mut now, 10, |reflector, _| (reflector == 0).then_some(20));
        assert_eq!(
            (delays.replying(now), seen.last()),
            (1, Some(&Evidence::Disputed)),
            "one of three is too few"
        );
        let seen = watch(&mut delays, &mut now, 10, |_, _| None);
        assert_eq!((delays.replying(now), seen.last()), (0, Some(&Evidence::Silent { ever: true })));
    }

    /// As with satellites: the path becomes longer by 30 ms, and shorter again.
    #[test]
    fn a_path_that_becomes_longer_is_the_usual_one_after_ten_seconds() {
        for reflectors in [1, 3] {
            let (mut delays, mut now) = (Delays::new(reflectors, ms(15)), Instant::ZERO);
            watch(&mut delays, &mut now, 30, |_, at| Some(40 + at % 3));
            let seen = watch(&mut delays, &mut now, 30, |_, at| Some(70 + at % 5));
            // The replies of a round before and after.
            let standing = count(&seen, is_standing);
            assert!((45..=56).contains(&standing), "{standing} looks of 200 ms, {reflectors} reflectors");
            assert_eq!(count(&seen[60..], |of| *of == Evidence::Clear), seen.len() - 60);
            let seen = watch(&mut delays, &mut now, 10, |_, at| Some(40 + at % 3));
            assert_eq!(count(&seen, is_standing), 0, "a shorter path is the usual one at once");
        }
    }

    /// A queue of two seconds drains at its own pace; it is no path.
    #[test]
    fn a_queue_that_drains_is_not_the_usual_time() {
        let (mut delays, mut now) = (Delays::new(1, ms(15)), Instant::ZERO);
        watch(&mut delays, &mut now, 5, |_, _| Some(20));
        let seen = watch(&mut delays, &mut now, 18, |_, at| Some(20 + 2000 - at / 10));
        assert_eq!(count(&seen[3..], is_standing), seen.len() - 3, "{seen:?}");
    }
}
