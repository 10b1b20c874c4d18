//! CoDel, controlled delay: drops at the head of the queue when the wait has exceeded a target for an interval.
//!
//! Source: RFC 8289 sections 3 and 5. With the sojourn time of each packet that leaves:
//!
//! ```text
//! sojourn >= target for a whole interval (and more than one packet waits)  ->  drop one, begin to drop
//! while dropping, the next drop comes after interval / sqrt(count), count = drops since it began
//! sojourn < target  ->  stop; soon again (within 16 intervals), count continues from where it was
//! ```
//!
//! Worked numbers: drops follow the first after 100 ms, 70.7 ms, 57.7 ms, 50 ms (`the_interval_between_drops_shrinks`).
//!
//! With ECN, a packet that can be marked is marked and sent instead of being dropped.
//!
//! CoDel has no drop probability, and decides when packets leave. TSQ charges packets when they arrive, so it does not
//! work on top of CoDel.
//!
//! A full queue refuses newcomers, as in the RFC.
//!
//! Differences from Linux's `codel`: the square root is exact. With `root = "newton"` it is as in Linux, one step of Newton's
//! method with 16 bits for each drop: the second interval is 50 ms instead of 70.7 ms, the third 56.3 instead of 57.7, and
//! later ones agree within 3 % (`newton_takes_a_few_drops`). The limit is that of the queue's description (Linux: 1000
//! packets). `ce_threshold`, off by default in Linux, is not implemented.
//!
//! # Validation
//!
//! - The times of the RFC's control law: `the_interval_between_drops_shrinks`, with marks
//!   `packets_that_can_be_marked_are_marked_at_the_same_times`.
//! - Packets that its pseudo-code does not drop: `a_queue_that_was_short_within_the_interval_has_no_drops`,
//!   `one_packet_left_is_none_too_many`.
//! - The memory of count (section 5.5, delta): `dropping_resumes_near_its_last_count`.
//! - Against Linux's own, in a virtual machine: `docs/validation/linux.md`.

use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Instant, RandomStream, Rate};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct CoDelParams {
    /// Sojourn time up to which no packet is dropped.
    #[param(
        default = Duration::from_millis(5),
        range = (Duration::from_micros(10), Duration::from_secs(10)),
        source = "RFC 8289 section 4.3"
    )]
    pub target: Duration,
    /// Time for which the target may be exceeded: about the longest round-trip time.
    #[param(
        default = Duration::from_millis(100),
        range = (Duration::from_micros(100), Duration::from_secs(100)),
        source = "RFC 8289 section 4.2"
    )]
    pub interval: Duration,
    /// Backlog up to which no packet is dropped.
    #[param(
        default = 1514,
        range = (1, 1_000_000),
        unit = "B",
        source = "Linux: the MTU and the Ethernet header; RFC 8289 section 5 has the MTU"
    )]
    pub mtu: u64,
    /// The square root of the control law: exact, or as Linux approximates it.
    #[param(default = Root::Exact, source = "RFC 8289 section 5.6; Linux has newton")]
    pub root: Root,
}

/// Computation of the square root in the control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Root {
    /// As it is.
    Exact,
    /// By a step of Newton's method in 16 bits for each drop (Linux).
    Newton,
}

/// Backlog that must exceed `mtu` for a packet to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Spare {
    /// Backlog of the whole queue (Linux).
    QdiscBacklog,
    /// Backlog of the packet's flow behind it (RFC 8289 section 5.6, ns-3).
    FlowBacklog,
}

/// The control law, one for each queue (RFC 8289 section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Control {
    /// Time at which the sojourn time will have been above the target for an interval.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    dropping: bool,
    /// 1 / sqrt(count) as Linux has it, of 2^16.
    inverse_root: u16,
}

/// One list of a queue, seen from where packets leave.
pub(crate) struct Exit<'a, P> {
    pub(crate) pool: &'a mut Pool<P>,
    pub(crate) list: &'a mut List,
    pub(crate) core: &'a mut QueueCore<P>,
    pub(crate) spare: Spare,
}

impl<P> Exit<'_, P> {
    /// Returns the backlog that is compared with `mtu` after `held` has left, B.
    #[inline]
    fn behind(&self, held: &Held<P>) -> u64 {
        match self.spare {
            // The core counts a packet until it has departed or been shed.
            Spare::QdiscBacklog => self.core.backlog.bytes - u64::from(held.size),
            Spare::FlowBacklog => self.list.backlog.bytes,
        }
    }
}

impl Control {
    pub(crate) const NEW: Self = Self {
        first_above: None,
        drop_next: Instant::ZERO,
        count: 0,
        last_count: 0,
        dropping: false,
        inverse_root: u16::MAX,
    };

    /// The packet to send, after those to drop have been dropped.
    #[inline]
    pub(crate) fn dequeue<P: Copy>(
        &mut self,
        params: &CoDelParams,
        now: Instant,
        exit: &mut Exit<'_, P>,
    ) -> Option<Departure<P>> {
        if exit.spare == Spare::QdiscBacklog && exit.list.is_empty() {
            // Linux remembers since when the flow has been above its target, also while it is empty.
            self.dropping = false;
            return None;
        }
        let (held, too_long) = self.look(params, now, exit)?;
        self.dropping &= too_long;
        if self.dropping {
            self.go_on(params, now, held, exit)
        } else if too_long {
            self.begin(params, now, held, exit)
        } else {
            Some(held.leave(false))
        }
    }

    /// RFC 8289 section 5.6: the head, and whether it may be dropped.
    #[inline]
    fn look<P: Copy>(
        &mut self,
        params: &CoDelParams,
        now: Instant,
        exit: &mut Exit<'_, P>,
    ) -> Option<(Held<P>, bool)> {
        let Some(held) = exit.pool.pop(exit.list) else {
            (self.first_above, self.dropping) = (None, false);
            return None;
        };
        let sojourn = now.saturating_since(held.arrived);
        if sojourn < params.target || exit.behind(&held) <= params.mtu {
            self.first_above = None;
            return Some((held, false));
        }
        let first_above = *self.first_above.get_or_insert(now.saturating_add(params.interval));
        Some((held, now >= first_above))
    }

    /// RFC 8289 section 5.5, the second half: the first drop.
    fn begin<P: Copy>(
        &mut self,
        params: &CoDelParams,
        now: Instant,
        held: Held<P>,
        exit: &mut Exit<'_, P>,
    ) -> Option<Departure<P>> {
        let sent = if held.may_mark {
            Some(held.leave(true))
        } else {
            exit.core.count_shed(held, DropReason::Early);
            self.look(params, now, exit).map(|(held, _)| held.leave(false))
        };
        let since = self.count - self.last_count;
        let recently = now.saturating_since(self.drop_next) < params.interval * 16;
        if since > 1 && recently {
            self.count = since;
            self.step_root();
        } else {
            (self.count, self.inverse_root) = (1, u16::MAX);
        }
        self.last_count = self.count;
        self.drop_next = self.next_after(now, params);
        self.dropping = true;
        sent
    }

    /// RFC 8289 section 5.5, the first half: the drops that are due.
    fn go_on<P: Copy>(
        &mut self,
        params: &CoDelParams,
        now: Instant,
        mut held: Held<P>,
        exit: &mut Exit<'_, P>,
    ) -> Option<Departure<P>> {
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.step_root();
            if held.may_mark {
                self.drop_next = self.next_after(self.drop_next, params);
                return Some(held.leave(true));
            }
            exit.core.count_shed(held, DropReason::Early);
            let too_long;
            (held, too_long) = self.look(params, now, exit)?;
            self.dropping = too_long;
            if too_long {
                self.drop_next = self.next_after(self.drop_next, params);
            }
        }
        Some(held.leave(false))
    }

    /// Counts packets that a full queue has dropped as drops of this law (Linux's FQ-CoDel).
    pub(crate) const fn count_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The control law, RFC 8289 section 5.6.
    fn next_after(&self, time: Instant, params: &CoDelParams) -> Instant {
        let share = match params.root {
            Root::Exact => 1.0 / f64::from(self.count).sqrt(),
            Root::Newton => f64::from(self.inverse_root) / 65_536.0,
        };
        time.saturating_add(params.interval.mul_f64(share))
    }

    /// A step of Newton's method towards x = 1 / sqrt(count): x (3 - count x^2) / 2. Where count has grown so much that
    /// count x^2 is above 3, it goes astray, as Linux's does.
    fn step_root(&mut self) {
        let x = u64::from(self.inverse_root) << 16;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul((x * x) >> 32));
        self.inverse_root = ((rest >> 2).wrapping_mul(x) >> 47) as u16;
    }
}

/// CoDel.
#[derive(Clone, Debug)]
pub struct CoDel<P> {
    params: CoDelParams,
    control: Control,
    pool: Pool<P>,
    list: List,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for CoDel<P> {
    type Params = CoDelParams;
    const NAME: &'static str = "codel";
    const TITLE: &'static str = "CoDel";
    const SOURCE: &'static str = "RFC 8289";

    fn build(params: &CoDelParams, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let (pool, list, core) = (Pool::new(), List::EMPTY, QueueCore::new(limit, ecn));
        Ok(Self { params: *params, control: Control::NEW, pool, list, core })
    }

    fn standing_delay(params: &CoDelParams, _limit: Limit, _rate: Rate) -> Option<Duration> {
        Some(params.target)
    }
}

impl<P: Copy> Queue<P> for CoDel<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, _random: &mut RandomStream) -> Verdict {
        let Arrival { size, ecn_capable, .. } = arrival;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        let may_mark = self.core.ecn && ecn_capable;
        self.pool.push(&mut self.list, Held { packet, size, arrived: now, may_mark });
        self.core.count_arrival(Verdict::Pass, size)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        let Self { params, control, pool, list, core } = self;
        let departure =
            control.dequeue(params, now, &mut Exit { pool, list, core, spare: Spare::FlowBacklog })?;
        Some(self.core.count_departure(departure))
    }

    forward_to_core!(P);

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        self.pool.drain(&mut self.list, |held| self.core.count_flushed(held, discard));
        self.control = Control::NEW;
    }
}

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
