//! The queue that a description requests.

use crate::forward::forward_queue;
use crate::{AnyAqm, AnyDiscipline, AqmSpec, BandsSpec, Fifo, Limit, Tsq, TsqParams, drop_tail};
use cutline_params::{ParameterError, ParameterValue};
use cutline_units::Rate;

/// The description of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// Limit of the backlog.
    pub limit: Limit,
    /// True if packets that can be marked are marked instead of dropped early (RFC 3168).
    pub ecn: bool,
    /// The AQM.
    pub aqm: AqmSpec,
    /// TSQ on top of the AQM; without it the queue is first-in first-out.
    pub tsq: Option<TsqParams>,
    /// The rate of the link behind the queue.
    pub rate: Rate,
}

/// A queue built from a [`QueueSpec`]. Its tag is a separate number, as that of [`AnyAqm`] is.
#[derive(Clone, Debug)]
#[repr(u32)]
pub enum AnyQueue<P> {
    /// First in, first out.
    Fifo(Fifo<P, AnyAqm>),
    /// Cut in line and pay for it.
    Tsq(Tsq<P, AnyAqm>),
    /// A discipline, or any queue with an external AQM.
    Discipline(Box<AnyDiscipline<P>>),
}

impl QueueSpec {
    /// Drop-tail without ECN; change the fields for anything else.
    pub const fn drop_tail(limit: Limit, rate: Rate) -> Self {
        let aqm = AqmSpec::DropTail(drop_tail::DropTailParams {});
        Self { limit, ecn: false, aqm, tsq: None, rate }
    }

    /// Returns the queue for an interface whose longest frames have this many bytes, Ethernet header included: quanta and typical packets that
    /// have their default, a full Ethernet frame, have this size instead, as in Linux.
    #[must_use]
    pub fn at_interface(&self, frame: u64) -> Self {
        Self { aqm: self.aqm.at_interface(frame), ..self.clone() }
    }

    /// An empty queue of this description.
    ///
    /// # Errors
    /// When limit or rate is zero, a parameter of AQM or TSQ is not allowed, or TSQ is set on a discipline.
    pub fn build<P: Copy>(&self) -> Result<AnyQueue<P>, ParameterError> {
        if matches!(self.limit, Limit::Packets(0) | Limit::Bytes(0)) {
            return Err(zero("limit", "at least 1 packet or 1 B"));
        }
        if self.rate == Rate::ZERO {
            return Err(zero("rate", "at least 1 bit/s"));
        }
        self.aqm.build(self.tsq.as_ref(), self.limit, self.ecn, self.rate)
    }
}

/// The parameters that have the size of a full frame, where that is their default.
const FRAMES: [&str; 3] = ["quantum", "mtu", "mean-packet"];
/// The sizes of a full frame among the defaults, with the Ethernet header and without it, bytes.
const FULL: [u64; 2] = [1514, 1500];

impl AqmSpec {
    /// Returns the usual limit of a queue, packets: 1000, and for Sieve four times the backlog that is free of charge, if that is more.
    pub fn usual_limit(&self, rate: Rate) -> u32 {
        const USUAL: u32 = 1000;
        let Self::Sieve(sieve) = self else { return USUAL };
        sieve.usual_limit(rate).max(USUAL)
    }

    fn at_interface(&self, frame: u64) -> Self {
        match self {
            Self::Bands(BandsSpec { priority, below }) => {
                Self::Bands(BandsSpec { priority: *priority, below: Box::new(below.at_interface(frame)) })
            }
            Self::External(_) => self.clone(),
            _ => {
                let Ok(defaults) = Self::from_values(self.name(), []) else { return self.clone() };
                let is_full = |value: &ParameterValue| matches!(value, ParameterValue::Count(size) if FULL.contains(size));
                let adapted =
                    self.values().into_iter().zip(defaults.values()).map(|((name, value), (_, default))| {
                        let follows = FRAMES.contains(&name) && is_full(&default) && value == default;
                        (name, if follows { ParameterValue::Count(frame) } else { value })
                    });
                Self::from_values(self.name(), adapted).unwrap_or_else(|_| self.clone())
            }
        }
    }
}

fn zero(parameter: &str, allowed: &str) -> ParameterError {
    ParameterError::new(parameter, 0, allowed)
}

impl<P: Copy> AnyQueue<P> {
    /// Returns whether the queue may drop packets that it has stored, so that its caller must take them from [`Queue::shed`](crate::Queue::shed).
    #[inline]
    pub const fn may_shed(&self) -> bool {
        matches!(self, Self::Discipline(_))
    }

    /// Gives memory back after a burst. A queue does not do so by itself, because it must not allocate while it forwards. A simulator
    /// has many of them. Only the ring of a FIFO queue gives memory back.
    pub fn give_back(&mut self) {
        if let Self::Fifo(queue) = self {
            queue.give_back();
        }
    }
}

forward_queue!(
    #[inline]
    AnyQueue { Fifo, Tsq, Discipline }
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Queue as _, registry};
    use cutline_units::{Hint, Instant, Streams};

    fn spec(name: &str, values: &[(&str, ParameterValue)]) -> QueueSpec {
        let aqm = AqmSpec::from_values(name, values.iter().cloned()).unwrap();
        QueueSpec { aqm, ..QueueSpec::drop_tail(Limit::Packets(9), Rate::from_mbps(8)) }
    }

    fn count(spec: &QueueSpec, name: &str) -> Option<u64> {
        spec.aqm.values().into_iter().find_map(|(found, value)| match value {
            ParameterValue::Count(count) if found == name => Some(count),
            _ => None,
        })
    }

    /// The parameters in `FRAMES`, and no others, of every AQM.
    #[test]
    fn parameters_of_a_full_frame_follow_the_interface() {
        let mut adapted = Vec::new();
        for aqm in registry::describe() {
            let (before, jumbo) = (spec(aqm.name, &[]), spec(aqm.name, &[]).at_interface(9014));
            assert_eq!(before.at_interface(1514).aqm.name(), aqm.name);
            for ((name, old), (_, new)) in before.aqm.values().into_iter().zip(jumbo.aqm.values()) {
                if old != new {
                    assert_eq!(new, ParameterValue::Count(9014), "{}: {name}", aqm.name);
                    adapted.push(format!("{} {name}", aqm.name));
                }
            }
            jumbo.build::<u32>().unwrap();
        }
        adapted.sort();
        let expected = [
            "afd mean-packet",
            "cake mtu",
            "codel mtu",
            "drr quantum",
            "dual-pi2 mean-packet",
            "fq-codel mtu",
            "fq-codel quantum",
            "fq-pie mean-packet",
            "fq-pie quantum",
            "pie mean-packet",
            "protected-dual-pi2 mean-packet",
        ];
        assert_eq!(adapted, expected);
    }

    #[test]
    fn the_usual_limit_follows_the_rate_with_sieve_alone() {
        let limit = |name: &str, mbps| spec(name, &[]).aqm.usual_limit(Rate::from_mbps(mbps));
        assert_eq!([limit("sieve", 10), limit("sieve", 1000), limit("pie", 1000)], [1000, 11_111, 1000]);
    }

    #[test]
    fn memory_is_given_back_with_the_packets_in_their_order() {
        let rate = Rate::from_mbps(8);
        let mut queue: AnyQueue<u32> =
            QueueSpec::drop_tail(Limit::Packets(100_000), rate).build().expect("it is sound");
        let mut random = Streams::new(1).stream("queue", "drop");
        let arrival = Arrival::new(1000, Hint::LEAST_DELAY);
        for packet in 0..10_000 {
            queue.enqueue(Instant::ZERO, arrival, packet, &mut random);
        }
        let taken = (0..9_000).filter_map(|_| queue.dequeue(Instant::ZERO)).map(|it| it.packet);
        assert!((0..9_000).eq(taken));
        queue.give_back();
        let AnyQueue::Fifo(fifo) = &queue else { panic!("drop-tail is first in, first out") };
        assert!(fifo.room() < 2000, "room for {} packets", fifo.room());
        let rest = (0..2_000).filter_map(|_| queue.dequeue(Instant::ZERO)).map(|it| it.packet);
        assert!((9_000..10_000).eq(rest));
    }

    #[test]
    fn set_parameters_stay_and_laws_below_follow() {
        let set = spec("fq-codel", &[("quantum", ParameterValue::Count(300))]).at_interface(9014);
        assert_eq!((count(&set, "quantum"), count(&set, "mtu")), (Some(300), Some(9014)));
        assert_eq!(
            count(&spec("fq-codel", &[]).at_interface(1294), "quantum"),
            Some(1294),
            "a shorter MTU, too"
        );
        let over = |below: AqmSpec| {
            let bands =
                BandsSpec { priority: crate::StrictPriorityParams::default(), below: Box::new(below) };
            QueueSpec { aqm: AqmSpec::Bands(bands), ..spec("pie", &[]) }.at_interface(9014)
        };
        let AqmSpec::Bands(bands) = over(spec("pie", &[]).aqm).aqm else { panic!("it stays what it is") };
        assert!(bands.below.values().contains(&("mean-packet", ParameterValue::Count(9014))));
    }
}
