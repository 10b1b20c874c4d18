//! Strict priority whose classes are queues of another AQM each: PIE, CoDel, PI and so on below strict priority.
//!
//! Source: RFC 2474 section 4.2.2.2 for the order; Linux's `prio` has such queues in its bands.
//!
//! A packet joins the queue of its class, which judges it by its own backlog. The first class with a packet is served. The
//! rate that a law is given is the link's, although the classes before it take a part: choose a law that measures
//! sojourn times where that matters.
//!
//! The limit is that of all classes together. A packet that does not fit is refused, unless the classes after its own
//! can make room: these are then shed from the last class on, from the head, as without queues below. With one class
//! the queue is exactly the one below (`one_class_is_the_queue_below`), and over drop-tail it is strict priority
//! (`over_drop_tail_it_is_strict_priority`).

use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::strict_priority::{StrictPriorityParams, class_of};
use crate::{AnyQueue, AqmSpec, Arrival, Backlog, Departure, DropReason, Held, Limit, Queue, Shed, Verdict};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Instant, Probability, RandomStream, Rate};

/// Strict priority and the AQM of its classes.
#[derive(Clone, Debug, PartialEq)]
pub struct BandsSpec {
    /// Parameters of the order of classes.
    pub priority: StrictPriorityParams,
    /// The AQM of each class.
    pub below: Box<AqmSpec>,
}

/// Strict priority over queues.
#[derive(Clone, Debug)]
pub struct Bands<P> {
    bands: Vec<AnyQueue<P>>,
    core: QueueCore<P>,
}

impl BandsSpec {
    /// Empty queues in front of a link of rate `rate`.
    ///
    /// # Errors
    /// When a parameter was set in code to a value that is not allowed.
    pub(crate) fn build<P: Copy>(
        &self,
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<Bands<P>, ParameterError> {
        self.priority.validate()?;
        let band = |_| self.below.build(None, limit, ecn, rate);
        let bands = (0..self.priority.classes).map(band).collect::<Result<_, _>>()?;
        Ok(Bands { bands, core: QueueCore::new(limit, ecn) })
    }
}

impl<P: Copy> Bands<P> {
    /// Returns whether a packet of `size` fits once the classes after `class` have left, or its own queue is
    /// full and decides itself.
    #[inline]
    fn may_join(&self, class: usize, size: u32) -> bool {
        if self.core.admits(size) {
            return true;
        }
        let limit = self.core.limit;
        let kept = self.bands[..=class].iter().fold(Backlog::default(), |mut sum, band| {
            let Backlog { packets, bytes } = band.backlog();
            sum.packets += packets;
            sum.bytes += bytes;
            sum
        });
        limit.admits(kept, size) || !limit.admits(self.bands[class].backlog(), size)
    }

    /// Counts the stored packets that a class has dropped.
    #[inline]
    fn collect_shed(&mut self, class: usize, now: Instant) {
        while let Some(Shed { packet, size, reason }) = self.bands[class].shed() {
            self.core.count_shed(Held { packet, size, arrived: now, may_mark: false }, reason);
        }
    }

    /// Sheds packets of the last classes, none of which is before `class`, until the limit holds.
    #[cold]
    fn make_room(&mut self, class: usize, now: Instant) {
        for last in (class..self.bands.len()).rev() {
            while !self.core.limit.holds(self.core.backlog) {
                let Some(Departure { packet, size, arrived, .. }) = self.bands[last].dequeue(now) else {
                    break;
                };
                self.core.count_shed(Held { packet, size, arrived, may_mark: false }, DropReason::Overflow);
                self.collect_shed(last, now);
            }
        }
    }
}

impl<P: Copy> Queue<P> for Bands<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let class = class_of(arrival.hint, self.bands.len());
        if !self.may_join(class, arrival.size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), arrival.size);
        }
        let verdict = self.bands[class].enqueue(now, arrival, packet, random);
        self.core.count_arrival(verdict, arrival.size);
        self.collect_shed(class, now);
        if !self.core.limit.holds(self.core.backlog) {
            self.make_room(class, now);
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        for class in 0..self.bands.len() {
            if self.bands[class].backlog().packets == 0 {
                continue;
            }
            // A class may drop all that waits instead of sending it.
            let departure = self.bands[class].dequeue(now);
            self.collect_shed(class, now);
            if let Some(departure) = departure {
                return Some(self.core.count_departure(departure));
            }
        }
        None
    }

    forward_to_core!(P);

    /// The largest of the classes.
    fn probability(&self) -> Option<Probability> {
        self.bands.iter().filter_map(Queue::probability).max_by(|a, b| a.get().total_cmp(&b.get()))
    }

    fn advance(&mut self, now: Instant) {
        self.bands.iter_mut().for_each(|band| band.advance(now));
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.bands.iter_mut().for_each(|band| band.set_rate(now, rate));
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        self.bands.iter_mut().for_each(|band| band.reset(now, discard));
        self.core.count_all_flushed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueStats;
    use crate::{QueueSpec, registry};
    use cutline_params::ParameterValue;
    use cutline_units::{Duration, Hint, Streams};

    const RATE: Rate = Rate::from_mbps(8);

    fn aqm(name: &str) -> AqmSpec {
        AqmSpec::from_values(name, []).unwrap()
    }

    fn priority(classes: u64, below: Option<AqmSpec>) -> AqmSpec {
        let priority =
            AqmSpec::from_values("strict-priority", [("classes", ParameterValue::Count(classes))]).unwrap();
        below.map_or(priority.clone(), |below| priority.with_below(below).unwrap())
    }

    fn build(aqm: AqmSpec, limit: Limit) -> AnyQueue<u32> {
        QueueSpec { limit, ecn: true, aqm, tsq: None, rate: RATE }.build().unwrap()
    }

    /// All answers of a queue in an overload by packets of all hints, some of them small, and its counters.
    fn answers(mut queue: AnyQueue<u32>, small: u32) -> (Vec<String>, QueueStats) {
        let (mut random, mut draws) =
            (Streams::new(1).stream("queue", "drop"), Streams::new(2).stream("a", "b"));
        let mut said = Vec::new();
        for i in 0..20_000_u32 {
            let now = Instant::ZERO + Duration::from_micros(600) * u64::from(i);
            let hint = Hint::from_level(1 + (draws.uniform() * 16.0) as u16);
            let size = if draws.uniform() < 0.3 { small } else { 1000 };
            let arrival = Arrival { ecn_capable: i % 3 == 0, flow: i % 7, ..Arrival::new(size, hint) };
            said.push(format!("{:?}", queue.enqueue(now, arrival, i, &mut random)));
            said.extend(shed(&mut queue));
            if draws.uniform() < 0.7 {
                said.push(format!("{:?}", queue.dequeue(now)));
                said.extend(shed(&mut queue));
            }
        }
        (said, queue.stats().clone())
    }

    /// Returns the packets that were shed, in an order that does not depend on the time of each report.
    fn shed(queue: &mut AnyQueue<u32>) -> Vec<String> {
        let mut all: Vec<_> = std::iter::from_fn(|| queue.shed()).collect();
        all.sort_by_key(|shed| shed.packet);
        all.iter().map(|shed| format!("{shed:?}")).collect()
    }

    #[test]
    fn over_drop_tail_it_is_strict_priority() {
        for limit in [Limit::Packets(50), Limit::Bytes(20_000)] {
            let spec = StrictPriorityParams { classes: 4 };
            let bands = BandsSpec { priority: spec, below: Box::new(aqm("drop-tail")) };
            let bands = AnyQueue::Discipline(Box::new(registry::AnyDiscipline::Bands(
                bands.build(limit, true, RATE).unwrap(),
            )));
            // A limit in bytes with packets of one size: strict priority sheds smaller ones even where that does not suffice.
            let small = if matches!(limit, Limit::Packets(_)) { 200 } else { 1000 };
            let (said, stats) = answers(bands, small);
            let (expected, counted) = answers(build(priority(4, None), limit), small);
            assert_eq!(stats, counted);
            assert!(said == expected, "packet by packet");
            assert!(stats.shed().packets > 100, "later classes made room");
        }
    }

    #[test]
    fn one_class_is_the_queue_below() {
        for about in registry::describe() {
            if about.name == "strict-priority" {
                continue;
            }
            for limit in [Limit::Packets(50), Limit::Bytes(20_000)] {
                let alone = answers(build(aqm(about.name), limit), 200);
                let below = answers(build(priority(1, Some(aqm(about.name))), limit), 200);
                assert!(alone.1.dropped_in_all().packets > 0, "{}", about.name);
                assert_eq!(alone.1, below.1, "{}", about.name);
                assert!(alone.0 == below.0, "packet by packet: {}", about.name);
            }
        }
    }

    #[test]
    fn each_class_has_a_queue_of_its_own() {
        // The last class stands and is hit; the first never waits and is not.
        let mut queue = build(priority(2, Some(aqm("pie"))), Limit::Packets(400));
        let mut random = Streams::new(1).stream("queue", "drop");
        let mut dropped = [0, 0];
        for i in 0..20_000_u32 {
            let now = Instant::ZERO + Duration::from_micros(1000) * u64::from(i);
            for (class, level) in [(1, 16), (1, 16), (0, 1)] {
                if class == 0 && i % 2 == 1 {
                    continue;
                }
                let verdict = queue.enqueue(now, Arrival::new(1000, Hint::from_level(level)), i, &mut random);
                dropped[class] += u32::from(verdict == Verdict::Drop(DropReason::Early));
            }
            queue.dequeue(now);
        }
        assert_eq!(dropped[0], 0);
        assert!(dropped[1] > 5000, "{dropped:?}");
        assert!(queue.probability().unwrap().get() > 0.3);
    }

    #[test]
    fn an_impossible_queue_below_is_refused() {
        let refused = |on: &str, below: AqmSpec| aqm(on).with_below(below).unwrap_err().to_string();
        let nested = "below = strict-priority: allowed is an AQM other than strict-priority";
        assert_eq!(refused("strict-priority", aqm("strict-priority")), nested);
        assert_eq!(refused("strict-priority", priority(2, Some(aqm("pie")))), nested);
        assert_eq!(
            refused("pie", aqm("codel")),
            "below = codel: allowed is nothing with pie: only strict-priority has queues below it"
        );
        assert_eq!(priority(4, Some(aqm("drop-tail"))), priority(4, None));
    }
}
