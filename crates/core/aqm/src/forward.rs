//! Forwarding: an enum of queues, or of laws, implements their trait by passing each call to its variant.
//!
//! Every method of a trait is listed here once, and the enums name their variants. A method with a default body is
//! easily forgotten in such a list, and nothing fails to compile. So each `impl` denies
//! `clippy::missing_trait_methods`: `make lint` refuses a list that is not complete.
//!
//! The crates `enum_dispatch` and `ambassador` write such lists too, but take one inlining attribute for all
//! methods of a trait. Here it differs: the attributes are meant for the methods called for every packet.

/// Implements [`Queue`](crate::Queue) for an enum with one type parameter, the packet's handle.
///
/// The attribute in brackets is that of `enqueue`, `dequeue` and `shed`.
macro_rules! forward_queue {
    (#[$per_packet:meta] $any:ident { $($variant:ident),+ $(,)? }) => {
        #[deny(clippy::missing_trait_methods)]
        impl<P: Copy> $crate::Queue<P> for $any<P> {
            #[$per_packet]
            fn enqueue(
                &mut self,
                now: cutline_units::Instant,
                arrival: $crate::Arrival,
                packet: P,
                random: &mut cutline_units::RandomStream,
            ) -> $crate::Verdict {
                match self { $(Self::$variant(queue) => queue.enqueue(now, arrival, packet, random)),+ }
            }
            #[$per_packet]
            fn dequeue(&mut self, now: cutline_units::Instant) -> Option<$crate::Departure<P>> {
                match self { $(Self::$variant(queue) => queue.dequeue(now)),+ }
            }
            #[$per_packet]
            fn shed(&mut self) -> Option<$crate::Shed<P>> {
                match self { $(Self::$variant(queue) => queue.shed()),+ }
            }
            #[inline]
            fn backlog(&self) -> $crate::Backlog {
                match self { $(Self::$variant(queue) => queue.backlog()),+ }
            }
            fn probability(&self) -> Option<cutline_units::Probability> {
                match self { $(Self::$variant(queue) => queue.probability()),+ }
            }
            fn readings(&self) -> $crate::Readings {
                match self { $(Self::$variant(queue) => queue.readings()),+ }
            }
            fn advance(&mut self, now: cutline_units::Instant) {
                match self { $(Self::$variant(queue) => queue.advance(now)),+ }
            }
            fn set_rate(&mut self, now: cutline_units::Instant, rate: cutline_units::Rate) {
                match self { $(Self::$variant(queue) => queue.set_rate(now, rate)),+ }
            }
            fn reset(&mut self, now: cutline_units::Instant, discard: &mut dyn FnMut(P)) {
                match self { $(Self::$variant(queue) => queue.reset(now, discard)),+ }
            }
            fn stats(&self) -> &$crate::QueueStats {
                match self { $(Self::$variant(queue) => queue.stats()),+ }
            }
        }
    };
}

/// Implements [`DropProbability`](crate::DropProbability) for an enum.
///
/// Methods called for every packet are always inlined: a call and a jump cost more than most laws do.
macro_rules! forward_law {
    ($any:ident { $($variant:ident),+ $(,)? }) => {
        #[deny(clippy::missing_trait_methods)]
        impl $crate::DropProbability for $any {
            #[inline(always)]
            fn advance(&mut self, now: cutline_units::Instant, backlog: $crate::Backlog) {
                match self { $(Self::$variant(law) => law.advance(now, backlog)),+ }
            }
            #[inline(always)]
            fn arrive(
                &mut self,
                now: cutline_units::Instant,
                arrival: $crate::Arrival,
                backlog: $crate::Backlog,
            ) -> cutline_units::Probability {
                match self { $(Self::$variant(law) => law.arrive(now, arrival, backlog)),+ }
            }
            #[inline(always)]
            fn probability(&self) -> Option<cutline_units::Probability> {
                match self { $(Self::$variant(law) => law.probability()),+ }
            }
            #[inline(always)]
            fn may_mark(&self) -> bool {
                match self { $(Self::$variant(law) => law.may_mark()),+ }
            }
            fn readings(&self) -> $crate::Readings {
                match self { $(Self::$variant(law) => law.readings()),+ }
            }
            #[inline(always)]
            fn judged(
                &mut self,
                now: cutline_units::Instant,
                arrival: $crate::Arrival,
                verdict: $crate::Verdict,
            ) {
                match self { $(Self::$variant(law) => law.judged(now, arrival, verdict)),+ }
            }
            #[inline(always)]
            fn departed(
                &mut self,
                now: cutline_units::Instant,
                size: u32,
                arrived: cutline_units::Instant,
                backlog: $crate::Backlog,
            ) {
                match self { $(Self::$variant(law) => law.departed(now, size, arrived, backlog)),+ }
            }
            fn reorders(&mut self) {
                match self { $(Self::$variant(law) => law.reorders()),+ }
            }
            fn set_rate(&mut self, now: cutline_units::Instant, rate: cutline_units::Rate) {
                match self { $(Self::$variant(law) => law.set_rate(now, rate)),+ }
            }
            fn reset(&mut self, now: cutline_units::Instant) {
                match self { $(Self::$variant(law) => law.reset(now)),+ }
            }
        }
    };
}

pub(crate) use {forward_law, forward_queue};

#[cfg(test)]
mod tests {
    use crate::{Arrival, Backlog, Departure, DropProbability, Queue, QueueStats, Readings, Shed, Verdict};
    use cutline_units::{Hint, Instant, Probability, RandomStream, Rate, Streams};
    use std::cell::RefCell;
    use std::marker::PhantomData;

    /// The methods that were called.
    #[derive(Default)]
    struct Calls(RefCell<Vec<&'static str>>);

    /// A queue that notes its calls. Its answers differ from every default.
    #[derive(Default)]
    struct QueueProbe<P> {
        calls: Calls,
        stats: QueueStats,
        packets: PhantomData<P>,
    }

    /// A law that notes its calls.
    #[derive(Default)]
    struct LawProbe {
        calls: Calls,
    }

    const READINGS: Readings =
        Readings { average: Some(1.0), max_p: Some(0.5), target: Some(2.0), sieve: None };

    impl Calls {
        fn note(&self, method: &'static str) {
            self.0.borrow_mut().push(method);
        }
    }

    impl<P: Copy> Queue<P> for QueueProbe<P> {
        fn enqueue(&mut self, _: Instant, _: Arrival, _: P, _: &mut RandomStream) -> Verdict {
            self.calls.note("enqueue");
            Verdict::Mark
        }
        fn dequeue(&mut self, _: Instant) -> Option<Departure<P>> {
            self.calls.note("dequeue");
            None
        }
        fn shed(&mut self) -> Option<Shed<P>> {
            self.calls.note("shed");
            None
        }
        fn backlog(&self) -> Backlog {
            self.calls.note("backlog");
            Backlog::default()
        }
        fn probability(&self) -> Option<Probability> {
            self.calls.note("probability");
            Some(Probability::ONE)
        }
        fn readings(&self) -> Readings {
            self.calls.note("readings");
            READINGS
        }
        fn advance(&mut self, _: Instant) {
            self.calls.note("advance");
        }
        fn set_rate(&mut self, _: Instant, _: Rate) {
            self.calls.note("set_rate");
        }
        fn reset(&mut self, _: Instant, _: &mut dyn FnMut(P)) {
            self.calls.note("reset");
        }
        fn stats(&self) -> &QueueStats {
            self.calls.note("stats");
            &self.stats
        }
    }

    impl DropProbability for LawProbe {
        fn advance(&mut self, _: Instant, _: Backlog) {
            self.calls.note("advance");
        }
        fn arrive(&mut self, _: Instant, _: Arrival, _: Backlog) -> Probability {
            self.calls.note("arrive");
            Probability::ONE
        }
        fn probability(&self) -> Option<Probability> {
            self.calls.note("probability");
            Some(Probability::ONE)
        }
        fn may_mark(&self) -> bool {
            self.calls.note("may_mark");
            false
        }
        fn readings(&self) -> Readings {
            self.calls.note("readings");
            READINGS
        }
        fn judged(&mut self, _: Instant, _: Arrival, _: Verdict) {
            self.calls.note("judged");
        }
        fn departed(&mut self, _: Instant, _: u32, _: Instant, _: Backlog) {
            self.calls.note("departed");
        }
        fn reorders(&mut self) {
            self.calls.note("reorders");
        }
        fn set_rate(&mut self, _: Instant, _: Rate) {
            self.calls.note("set_rate");
        }
        fn reset(&mut self, _: Instant) {
            self.calls.note("reset");
        }
    }

    enum AnyQueueProbe<P> {
        Only(QueueProbe<P>),
    }

    enum AnyLawProbe {
        Only(LawProbe),
    }

    forward_queue!(
        #[inline]
        AnyQueueProbe { Only }
    );
    forward_law!(AnyLawProbe { Only });

    const NOW: Instant = Instant::ZERO;

    #[test]
    fn every_method_of_a_queue_reaches_the_variant() {
        let mut any = AnyQueueProbe::Only(QueueProbe::default());
        let mut random = Streams::new(1).stream("queue", "drop");
        assert_eq!(any.enqueue(NOW, Arrival::new(1, Hint::LEAST_DELAY), 7, &mut random), Verdict::Mark);
        assert!(any.dequeue(NOW).is_none() && any.shed().is_none());
        assert_eq!(any.backlog(), Backlog::default());
        assert_eq!((any.probability(), any.readings()), (Some(Probability::ONE), READINGS));
        any.advance(NOW);
        any.set_rate(NOW, Rate::from_mbps(1));
        any.reset(NOW, &mut |_| ());
        assert_eq!(*any.stats(), QueueStats::default());
        let AnyQueueProbe::Only(probe) = any;
        let methods =
            ["enqueue", "dequeue", "shed", "backlog", "probability", "readings", "advance", "set_rate"];
        assert_eq!(*probe.calls.0.borrow(), [&methods[..], &["reset", "stats"]].concat());
    }

    #[test]
    fn every_method_of_a_law_reaches_the_variant() {
        let mut any = AnyLawProbe::Only(LawProbe::default());
        let (arrival, backlog) = (Arrival::new(1, Hint::LEAST_DELAY), Backlog::default());
        any.advance(NOW, backlog);
        assert_eq!(any.arrive(NOW, arrival, backlog), Probability::ONE);
        assert_eq!((any.probability(), any.readings()), (Some(Probability::ONE), READINGS));
        assert!(!any.may_mark());
        any.judged(NOW, arrival, Verdict::Pass);
        any.departed(NOW, 1, NOW, backlog);
        any.reorders();
        any.set_rate(NOW, Rate::from_mbps(1));
        any.reset(NOW);
        let AnyLawProbe::Only(probe) = any;
        let methods = ["advance", "arrive", "probability", "readings", "may_mark", "judged", "departed"];
        assert_eq!(*probe.calls.0.borrow(), [&methods[..], &["reorders", "set_rate", "reset"]].concat());
    }
}
