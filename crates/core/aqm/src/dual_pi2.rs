//! DualPI2: one queue for scalable and one for classic traffic, coupled so that both get their share.
//!
//! Source: RFC 9332 section 2 and appendix A.
//!
//! ```text
//! curq = the longer of the two queues' delays                             appendix A.2
//! p' += alpha (curq - target) + beta (curq - prevq)                       every t-update, clamped to 0..1
//! classic:   p_C = p'^2                dropped, or marked if it can be
//! scalable:  p_L = max(k p', ramp)     marked; ramp = (sojourn - min-th) / range, in 0..1
//! p_C >= p_Cmax = 1 / k^2:             overload: classic dropped even if it can be marked
//!   (where k p' >= 1)                  scalable dropped with p_C, marked if it is spared     appendix A.2
//! ```
//!
//! The scalable queue is served first, except for a share of the link that the classic one has when both wait.
//!
//! Worked numbers: a classic packet that has waited 30 ms where the last update found 20 ms gives
//! p' = 0.16 x 0.015 + 3.2 x 0.01 = 0.0344, p_C = 0.00118 and k p' = 0.0688 (`the_coupling`). One that came at
//! 24 ms and is never sent gives p' = 0, 0.02448, 0.07712, 0.13232, ... from 16 ms on (`a_queue_that_grows`).
//!
//! Packets that are scalable (ECT(1)), or whose hint is at most `low-delay-hints`, go to the scalable queue; section
//! 2.5.1.1 allows this for low-rate traffic.
//!
//! Linux and the RFC differ. The defaults are Linux's, as its `dualpi2` is since version 6.17:
//!
//! | parameter | Linux | RFC 9332 |
//! | --- | --- | --- |
//! | `hits`: which packets are hit | `random` | `even`: probabilities add up, and a packet is hit when the sum exceeds 1 (`recur`, appendix A.1) |
//! | `min-th`, `range`: the scalable queue's own marks | 1 ms, 0: all beyond the step | 800 us, 400 us: a ramp (appendix A.1) |
//! | `th-len`: the packets that must wait behind for these marks | 0, its `min_qlen_step` | 1 (appendix A.2) |
//! | `not-ect`: packets in the scalable queue that cannot be marked | `as-marks`: dropped where others are marked, by k p' and by the step | `as-classic`: dropped with p_C; `spare`: never, if something else protects the queue (section 2.5.1.1) |
//! | `mean-packet`: with less than two of these waiting p' hits nothing | the MTU and the Ethernet header | 0: no such rule |
//! | `drop-overload`: drops in overload | `true`; `false`: p' is at most 1 / k | `true` (appendix A.2) |
//! | `classic-share` | 10: 10 % | 16, "its exact value is unimportant" (appendix A.2) |
//!
//! Other differences from Linux's `dualpi2`: the limit is that of the queue's description, and refuses newcomers
//! (Linux: 10000 packets and a limit on memory; the RFC: 250 ms of both); the classic share is kept by the credit of
//! the classic queue which is reset when one of the queues is empty; `th-len` looks at the backlog when a packet
//! leaves, not when it comes; packets that arrive with a mark (CE) go where their ECT would; `drop_early` (at arrival),
//! steps in packets, filters and `split_gso` are not implemented. Linux always marks; here the queue's `ecn` must be
//! on. A queue's delay at an update is the sojourn time so far of its head, as in Linux. The recorded probability is
//! p_C.
//!
//! # Validation
//!
//! - The equations of appendix A.1 by hand: `the_coupling`, `a_queue_that_grows`.
//! - Properties of the pseudo-code of appendices A.1 and A.2:
//!   `scalable_packets_are_marked_and_classic_ones_dropped_by_the_law`, `the_larger_of_ramp_and_coupling_marks`,
//!   `the_ramp_marks_packets_that_waited_a_millisecond`, `in_overload_a_quarter_is_dropped_on_either_side`,
//!   `unresponsive_traffic_is_dropped_beyond_the_largest_mark_probability`, `scalable_packets_are_served_first_and_classic_ones_have_their_share`.
//! - Linux's choices: `packets_that_cannot_be_marked_in_the_scalable_queue`, `the_step_marks_all_beyond_a_millisecond`,
//!   `a_short_backlog_is_not_hit`, `overload_without_drops_caps_the_coupling`, `hits_are_random_or_even`.
//! - Not compared with another engine: the kernel of `docs/validation/linux.md` has none.

use crate::delay_control::{COUPLING, Controller, DelayControlParams};
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::sample_clock::SampleClock;
use crate::{Arrival, Backlog, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate, Streams};

const RAMP: (Duration, Duration) = (Duration::ZERO, Duration::from_secs(10));
const A_1: &str = "RFC 9332 appendix A.1";

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct DualPi2Params {
    /// The controller of p'.
    #[group(
        default = DelayControlParams {
            target: Duration::from_millis(15),
            t_update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
        },
        source = A_1
    )]
    pub control: DelayControlParams,
    /// k: scalable packets are marked with probability k p', classic ones hit with p'^2.
    #[param(default = 2.0, range = COUPLING, source = "RFC 9332 section 2.1")]
    pub coupling: f64,
    /// Sojourn time from which scalable packets are marked at any p'.
    #[param(
        default = Duration::from_millis(1),
        range = RAMP,
        source = "Linux's step_thresh; RFC 9332 appendix A.1 has 800 us"
    )]
    pub min_th: Duration,
    /// Width of the marking ramp: the sojourn time above the threshold at which all packets are marked; 0 is
    /// a step.
    #[param(default = Duration::ZERO, range = RAMP, source = "Linux has a step; RFC 9332 appendix A.1 has 400 us")]
    pub range: Duration,
    /// Number of scalable packets that must wait behind the packet for its sojourn time to count.
    #[param(
        default = 0,
        range = (0, 1_000_000),
        unit = "packets",
        source = "Linux's min_qlen_step; RFC 9332 appendix A.2 has 1"
    )]
    pub th_len: u64,
    /// Treatment of packets in the scalable queue that cannot be marked: dropped where others are marked,
    /// dropped with p_C, or spared.
    #[param(default = NotEct::AsMarks, source = "Linux; RFC 9332 section 2.5.1.1 has as-classic")]
    pub not_ect: NotEct,
    /// Choice of the packets that are hit: by chance, or spaced evenly.
    #[param(default = Hits::Random, source = "Linux; RFC 9332 appendix A.1 has even")]
    pub hits: Hits,
    /// Size of a typical packet; p' hits no packet while the backlog is less than two of them.
    #[param(
        default = 1514,
        range = (0, 1_000_000),
        unit = "B",
        source = "Linux: the MTU and the Ethernet header; RFC 9332 has no such rule, which is 0"
    )]
    pub mean_packet: u64,
    /// Drops in overload, where k p' has reached 1; without them p' is at most 1 / k, and the queue grows to its limit.
    #[param(default = true, source = "Linux and RFC 9332 appendix A.2")]
    pub drop_overload: bool,
    /// Number of bytes of both queues of which the classic queue sends at least one.
    #[param(
        default = 10,
        range = (2, 1000),
        source = "Linux: 10 %; RFC 9332 appendix A.2 has 16 as an example"
    )]
    pub classic_share: u64,
    /// Largest hint of packets that go to the scalable queue without ECT(1); 0 for none.
    #[param(default = 0, range = (0, 16), source = "0: RFC 9332 section 2.5.1 goes by ECT(1) alone")]
    pub low_delay_hints: u64,
}

/// Treatment of packets in the scalable queue that cannot be marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum NotEct {
    /// Dropped where others are marked (Linux).
    AsMarks,
    /// Dropped with the probability of classic packets (RFC 9332 section 2.5.1.1).
    AsClassic,
    /// Nothing (Linux's class 2; RFC 9332 section 2.5.1.1 where something else protects the queue).
    Spare,
}

/// Choice of the packets that are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Hits {
    /// By chance (Linux).
    Random,
    /// Spaced evenly (RFC 9332 appendix A.1).
    Even,
}

/// Chooses the packets that are hit.
#[derive(Clone, Debug)]
struct Dice {
    hits: Hits,
    /// Random numbers of hits; `None` before the first packet, and if hits are even.
    random: Option<RandomStream>,
}

/// The sum of the probabilities since the last hit (`recur` of RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum(f64);

impl Dice {
    /// Draws a stream of its own with the first packet: packets leave when no random numbers are at hand.
    #[inline]
    fn prepare(&mut self, random: &mut RandomStream) {
        if self.hits == Hits::Random && self.random.is_none() {
            let seed = (random.uniform() * (1_u64 << 53) as f64) as u64;
            self.random = Some(Streams::new(seed).stream("dual-pi2", "hits"));
        }
    }

    #[inline]
    fn roll(&mut self, sum: &mut Sum, likelihood: f64) -> bool {
        if let Some(random) = &mut self.random {
            return random.chance(Probability::clamped(likelihood));
        }
        sum.0 += likelihood;
        let hit = sum.0 > 1.0;
        if hit {
            sum.0 -= 1.0;
        }
        hit
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug)]
struct Side {
    list: List,
    marks: Sum,
    drops: Sum,
}

impl Side {
    const EMPTY: Self = Self { list: List::EMPTY, marks: Sum(0.0), drops: Sum(0.0) };
}

/// DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    params: DualPi2Params,
    controller: Controller,
    clock: SampleClock,
    scalable: Side,
    classic: Side,
    /// Credit of the classic queue, in bytes times `classic_share`.
    owed: i64,
    dice: Dice,
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for DualPi2<P> {
    type Params = DualPi2Params;
    const NAME: &'static str = "dual-pi2";
    const TITLE: &'static str = "DualPI2";
    const SOURCE: &'static str = "RFC 9332";

    fn build(params: &DualPi2Params, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            params: *params,
            controller: Controller::new(params.control),
            clock: SampleClock::new(Instant::ZERO, params.control.t_update),
            scalable: Side::EMPTY,
            classic: Side::EMPTY,
            owed: 0,
            dice: Dice { hits: params.hits, random: None },
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }

    fn standing_delay(params: &DualPi2Params, _limit: Limit, _rate: Rate) -> Option<Duration> {
        Some(params.control.target)
    }
}

/// Fate of a packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Sent { marked: bool },
    Dropped,
}

impl<P: Copy> DualPi2<P> {
    /// RFC 9332 appendix A.2: `p_CL` = k p' has reached 1, and so p_C has reached `p_Cmax`.
    fn is_overloaded(&self) -> bool {
        self.params.drop_overload && self.params.coupling * self.controller.p_prime >= 1.0
    }

    fn update(&mut self, now: Instant) {
        let Self { params, controller, clock, scalable, classic, pool, .. } = self;
        let most = if params.drop_overload { 1.0 } else { 1.0 / params.coupling };
        let came = |side: &Side| pool.head(&side.list).map(|held| held.arrived);
        let first = came(scalable).into_iter().chain(came(classic)).min();
        clock.catch_up_at(now, |at| {
            let delay = first.map_or(Duration::ZERO, |arrived| at.saturating_since(arrived));
            let changed = controller.update(delay.as_secs_f64());
            controller.p_prime = controller.p_prime.min(most);
            changed
        });
    }

    /// Returns whether the classic queue is next (RFC 9332 section 2.5.2).
    #[inline]
    fn classic_is_next(&self) -> bool {
        let Some(classic) = self.pool.head(&self.classic.list) else { return false };
        let share = self.params.classic_share as i64;
        self.scalable.list.is_empty() || self.owed >= (share - 1) * i64::from(classic.size)
    }

    /// Updates the credit of the classic queue, which is zero unless both queues have packets.
    #[inline]
    fn settle(&mut self, classic_sent: bool, size: u32) {
        let both = !self.scalable.list.is_empty() && !self.classic.list.is_empty();
        let share = self.params.classic_share as i64;
        self.owed += if classic_sent { -(share - 1) } else { 1 } * i64::from(size);
        if !both {
            self.owed = 0;
        }
    }

    /// p', or 0 while so little waits that nothing is hit. `held` is still counted.
    fn p_prime(&self, held: &Held<P>) -> f64 {
        let behind = self.core.backlog.bytes - u64::from(held.size);
        if behind < 2 * self.params.mean_packet { 0.0 } else { self.controller.p_prime }
    }

    fn judge_classic(&mut self, held: &Held<P>) -> Outcome {
        let p_prime = self.p_prime(held);
        let hit = self.dice.roll(&mut self.classic.drops, p_prime * p_prime);
        match hit {
            false => Outcome::Sent { marked: false },
            true if held.may_mark && !self.is_overloaded() => Outcome::Sent { marked: true },
            true => Outcome::Dropped,
        }
    }

    fn judge_scalable(&mut self, now: Instant, held: &Held<P>) -> Outcome {
        let (p_prime, overloaded) = (self.p_prime(held), self.is_overloaded());
        let Self { params, dice, scalable, .. } = self;
        let few = u64::from(scalable.list.backlog.packets) < params.th_len;
        let ramp = if few { 0.0 } else { ramp(params, now.saturating_since(held.arrived)) };
        let (as_classic, as_marks) = match params.not_ect {
            _ if held.may_mark => (overloaded, (params.coupling * p_prime).max(ramp)),
            // In overload drops with p_C take the place of the coupled ones.
            NotEct::AsMarks if overloaded => (true, ramp),
            NotEct::AsMarks => (false, (params.coupling * p_prime).max(ramp)),
            NotEct::AsClassic => (true, 0.0),
            NotEct::Spare => (false, 0.0),
        };
        if as_classic && dice.roll(&mut scalable.drops, p_prime * p_prime) {
            return Outcome::Dropped;
        }
        match dice.roll(&mut scalable.marks, as_marks.min(1.0)) {
            false => Outcome::Sent { marked: false },
            true if held.may_mark => Outcome::Sent { marked: true },
            true => Outcome::Dropped,
        }
    }
}

/// The scalable queue's own probability (RFC 9332 appendix A.1, `laqm`); a step if `range` is 0.
fn ramp(params: &DualPi2Params, sojourn: Duration) -> f64 {
    let beyond = sojourn.saturating_sub(params.min_th);
    if params.range.is_zero() {
        return if beyond.is_zero() { 0.0 } else { 1.0 };
    }
    (beyond.as_nanos() as f64 / params.range.as_nanos() as f64).min(1.0)
}

impl<P: Copy> DualPi2<P> {
    /// Returns whether the packet goes to the scalable queue.
    #[inline]
    pub(crate) fn has_low_delay(&self, arrival: &Arrival) -> bool {
        arrival.scalable || u64::from(arrival.hint.level()) <= self.params.low_delay_hints
    }

    /// Returns the backlog of the scalable queue.
    pub(crate) const fn low_delay_backlog(&self) -> Backlog {
        self.scalable.list.backlog
    }

    /// Returns the scalable queue's own probability at a sojourn time, and the sojourn time from which it is 1.
    pub(crate) fn ramp_at(&self, sojourn: Duration) -> (f64, Duration) {
        (ramp(&self.params, sojourn), self.params.min_th + self.params.range)
    }

    /// Takes the scalable queue's own ramp from `params`.
    pub(crate) const fn set_ramp(&mut self, params: &DualPi2Params) {
        (self.params.min_th, self.params.range) = (params.min_th, params.range);
    }

    /// Offers a packet to the scalable queue, or to the classic one.
    #[inline]
    pub(crate) fn enqueue_in(
        &mut self,
        low_delay: bool,
        now: Instant,
        arrival: Arrival,
        packet: P,
        random: &mut RandomStream,
    ) -> Verdict {
        self.update(now);
        self.dice.prepare(random);
        let size = arrival.size;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        let side = if low_delay { &mut self.scalable } else { &mut self.classic };
        let may_mark = self.core.ecn && arrival.ecn_capable;
        self.pool.push(&mut side.list, Held { packet, size, arrived: now, may_mark });
        self.core.count_arrival(Verdict::Pass, size)
    }
}

impl<P: Copy> Queue<P> for DualPi2<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.enqueue_in(self.has_low_delay(&arrival), now, arrival, packet, random)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.update(now);
        loop {
            let classic = self.classic_is_next();
            let side = if classic { &mut self.classic } else { &mut self.scalable };
            let held = self.pool.pop(&mut side.list)?;
            let outcome = if classic { self.judge_classic(&held) } else { self.judge_scalable(now, &held) };
            match outcome {
                Outcome::Dropped => self.core.count_shed(held, DropReason::Early),
                Outcome::Sent { marked } => {
                    self.settle(classic, held.size);
                    return Some(self.core.count_departure(held.leave(marked)));
                }
            }
        }
    }

    forward_to_core!(P);

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.controller.squared()))
    }

    fn advance(&mut self, now: Instant) {
        self.update(now);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        for side in [&mut self.scalable, &mut self.classic] {
            self.pool.drain(&mut side.list, |held| self.core.count_flushed(held, discard));
            *side = Side::EMPTY;
        }
        (self.owed, self.dice.random) = (0, None);
        self.controller.reset();
        self.clock.restart(now);
    }
}

#[cfg(test)]
#[path = "dual_pi2_tests.rs"]
mod tests;
