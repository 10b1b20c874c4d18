//! DualPI2: one queue for scalable traffic, one for classic, coupled so that both get their share.
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
//! Hits are not drawn but spaced evenly: probabilities add up, and each time the sum exceeds 1 a packet is hit (`recur`,
//! appendix A.1). The scalable queue goes first, except for a share of the link that the classic one has when both wait.
//!
//! Worked numbers: a classic packet that has waited 30 ms where the last update found 20 ms gives
//! p' = 0.16 x 0.015 + 3.2 x 0.01 = 0.0344, p_C = 0.00118 and k p' = 0.0688 (`the_coupling`). One that came at
//! 24 ms and is never sent gives p' = 0, 0.02448, 0.07712, 0.13232, ... from 16 ms on (`a_queue_that_grows`).
//!
//! Packets that are scalable (ECT(1)), or whose hint is at most `low-delay-hints`, go to the scalable queue; section
//! 2.5.1.1 allows this for low-rate traffic. A packet there that cannot be marked is dropped with p_C.
//!
//! Departures: the classic share is kept by bytes (what the classic queue was owed while both waited), one of the
//! schedulers that the RFC leaves open. The ramp applies while another packet waits behind (`Th_len` of one packet). A
//! queue's delay at an update is the sojourn time so far of its head. Marks and drops of the scalable queue in overload
//! are spaced separately, where the RFC lets them share one sum. The limit is the one of the queue's description (the RFC
//! has 250 ms of both), and refuses newcomers. The recorded probability is p_C.
//!
//! # Validation
//!
//! - The equations of appendix A.1 by hand: `the_coupling`, `a_queue_that_grows`.
//! - Properties of the pseudo-code of appendices A.1 and A.2:
//!   `scalable_packets_are_marked_and_classic_ones_dropped_by_the_law`, `the_larger_of_ramp_and_coupling_marks`,
//!   `the_ramp_marks_packets_that_waited_a_millisecond`, `in_overload_a_quarter_is_dropped_on_either_side`,
//!   `unresponsive_traffic_is_dropped_beyond_the_largest_mark_probability`, `scalable_goes_first_and_classic_has_its_share`.
//! - Not checked: the figures of appendix A were read in other people's renderings of them, not in the RFC itself. No
//!   comparison with another engine, and no scalable transport here (DCTCP, Prague) to drive it with.

use crate::delay_control::{COUPLING, Controller, DelayControlParams};
use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::sample_clock::SampleClock;
use crate::{Arrival, Backlog, Departure, Discipline, DropReason, Limit, Queue, QueueStats, Shed, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate};

const RAMP: (Duration, Duration) = (Duration::from_micros(1), Duration::from_secs(10));
const A_1: &str = "RFC 9332 appendix A.1";

/// What can be set.
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
    /// The sojourn time from which scalable packets are marked whatever p' is.
    #[param(default = Duration::from_micros(800), range = RAMP, source = A_1)]
    pub min_th: Duration,
    /// How much longer the sojourn time must be for all of them to be marked.
    #[param(default = Duration::from_micros(400), range = RAMP, source = A_1)]
    pub range: Duration,
    /// The classic queue sends at least one byte in this many.
    #[param(
        default = 16,
        range = (2, 1000),
        source = "as in its authors' first implementation; Linux has 10 %"
    )]
    pub classic_share: u64,
    /// Packets with hints up to this go to the scalable queue too.
    #[param(default = 0, range = (0, 16), source = "0: RFC 9332 section 2.5.1 goes by ECT(1) alone")]
    pub low_delay_hints: u64,
}

/// Spaces hits evenly (`recur` of RFC 9332 appendix A.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Recur(f64);

impl Recur {
    #[inline]
    fn hits(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let hit = self.0 > 1.0;
        if hit {
            self.0 -= 1.0;
        }
        hit
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug)]
struct Side {
    list: List,
    marks: Recur,
    drops: Recur,
}

impl Side {
    const EMPTY: Self = Self { list: List::EMPTY, marks: Recur(0.0), drops: Recur(0.0) };
}

/// DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    params: DualPi2Params,
    controller: Controller,
    clock: SampleClock,
    scalable: Side,
    classic: Side,
    /// What the classic queue is owed, in bytes times `classic_share`.
    owed: i64,
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
            pool: Pool::new(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

/// What happens to a packet that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Sent { marked: bool },
    Dropped,
}

impl<P: Copy> DualPi2<P> {
    /// RFC 9332 appendix A.2: `p_CL` = k p' has reached 1, and so p_C has reached `p_Cmax`.
    fn is_overloaded(&self) -> bool {
        self.params.coupling * self.controller.p_prime >= 1.0
    }

    fn update(&mut self, now: Instant) {
        let Self { controller, clock, scalable, classic, pool, .. } = self;
        let came = |side: &Side| pool.head(&side.list).map(|held| held.arrived);
        let first = came(scalable).into_iter().chain(came(classic)).min();
        clock.catch_up_at(now, |at| {
            let delay = first.map_or(Duration::ZERO, |arrived| at.saturating_since(arrived));
            controller.update(delay.as_secs_f64())
        });
    }

    /// Whether the classic queue is next (RFC 9332 section 2.5.2).
    #[inline]
    fn classic_is_next(&self) -> bool {
        let Some(classic) = self.pool.head(&self.classic.list) else { return false };
        let share = self.params.classic_share as i64;
        self.scalable.list.is_empty() || self.owed >= (share - 1) * i64::from(classic.size)
    }

    /// Updates what the classic queue is owed, which is nothing unless both wait.
    #[inline]
    fn settle(&mut self, classic_sent: bool, size: u32) {
        let both = !self.scalable.list.is_empty() && !self.classic.list.is_empty();
        let share = self.params.classic_share as i64;
        self.owed += if classic_sent { -(share - 1) } else { 1 } * i64::from(size);
        if !both {
            self.owed = 0;
        }
    }

    fn judge_classic(&mut self, held: &Held<P>) -> Outcome {
        let hit = self.classic.drops.hits(self.controller.squared());
        match hit {
            false => Outcome::Sent { marked: false },
            true if held.may_mark && !self.is_overloaded() => Outcome::Sent { marked: true },
            true => Outcome::Dropped,
        }
    }

    fn judge_scalable(&mut self, now: Instant, held: &Held<P>) -> Outcome {
        let coupled = self.params.coupling * self.controller.p_prime;
        if (!held.may_mark || self.is_overloaded()) && self.scalable.drops.hits(self.controller.squared()) {
            return Outcome::Dropped;
        }
        let alone = self.scalable.list.is_empty();
        let ramp = if alone { 0.0 } else { ramp(&self.params, now.saturating_since(held.arrived)) };
        Outcome::Sent { marked: held.may_mark && self.scalable.marks.hits(coupled.max(ramp).min(1.0)) }
    }
}

/// The scalable queue's own probability (RFC 9332 appendix A.1, `laqm`).
fn ramp(params: &DualPi2Params, sojourn: Duration) -> f64 {
    let beyond = sojourn.saturating_sub(params.min_th);
    (beyond.as_nanos() as f64 / params.range.as_nanos() as f64).min(1.0)
}

impl<P: Copy> Queue<P> for DualPi2<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, _random: &mut RandomStream) -> Verdict {
        self.update(now);
        let size = arrival.size;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        let low_delay = arrival.scalable || u64::from(arrival.hint.level()) <= self.params.low_delay_hints;
        let side = if low_delay { &mut self.scalable } else { &mut self.classic };
        let may_mark = self.core.ecn && arrival.ecn_capable;
        self.pool.push(&mut side.list, Held { packet, size, arrived: now, may_mark });
        self.core.count_arrival(Verdict::Pass, size)
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

    #[inline]
    fn shed(&mut self) -> Option<Shed<P>> {
        self.core.next_shed()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.core.backlog
    }

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
        self.owed = 0;
        self.controller.reset();
        self.clock.restart(now);
    }

    fn stats(&self) -> &QueueStats {
        &self.core.stats
    }
}

#[cfg(test)]
#[path = "dual_pi2_tests.rs"]
mod tests;
