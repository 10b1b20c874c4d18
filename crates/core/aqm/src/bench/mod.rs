//! A queue in front of a manually driven link: flows of fixed rates, and the throughput of each. For the tests of Sieve's designs.

pub(crate) mod promises;

use crate::{Arrival, Discipline, Limit, Queue, Verdict};
use cutline_units::{Duration, Hint, HintBits, Instant, RandomStream, Rate, Streams};
use std::collections::BTreeMap;

/// 8 Mbit/s: a packet of 1000 B takes a millisecond.
pub(crate) const RATE: Rate = Rate::from_mbps(8);
pub(crate) const SIZE: u32 = 1000;

/// Service of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Got {
    pub(crate) sent: u32,
    pub(crate) received: u32,
    pub(crate) marked: u32,
    pub(crate) longest: Duration,
}

impl Got {
    /// The share of its packets that the flow has lost.
    pub(crate) fn lost(self) -> f64 {
        1.0 - f64::from(self.received) / f64::from(self.sent)
    }
}

/// A queue, the link behind it, and flows of fixed rate.
pub(crate) struct Bench<Q> {
    pub(crate) queue: Q,
    pub(crate) random: RandomStream,
    pub(crate) now: Instant,
    /// The flow of each source, packets per millisecond, hint.
    pub(crate) sources: Vec<(Id, f64, Hint, bool)>,
    pub(crate) got: BTreeMap<u32, Got>,
    /// True if packets that can be marked are scalable.
    pub(crate) scalable: bool,
    /// The period of the first flow, ms, if it sends twice its rate in half of the time.
    pub(crate) pulses: Option<u64>,
    /// A source that sends ten times as much for a time, ms.
    pub(crate) surge: Option<(usize, std::ops::Range<u64>)>,
    /// The number of the packet that left last, by flow.
    last: BTreeMap<u32, u32>,
}

#[derive(Clone, Copy)]
pub(crate) enum Id {
    Flow(u32),
    /// A flow of its own for every packet; they are counted as flow 0.
    NewFlows,
}

/// The hint of unmarked traffic.
pub(crate) fn largest() -> Hint {
    HintBits::PAPER.largest()
}

impl<Q: Discipline + Queue<(u32, u32)>> Bench<Q> {
    /// A queue without flows.
    pub(crate) fn new(params: &Q::Params) -> Self {
        let queue = Q::build(params, Limit::Packets(2000), true, RATE).unwrap();
        let random = Streams::new(1).stream("queue", "drop");
        let (sources, got, last) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            queue,
            random,
            now: Instant::ZERO,
            sources,
            got,
            scalable: false,
            pulses: None,
            surge: None,
            last,
        }
    }

    /// Adds a flow of `rate` packets in a millisecond.
    pub(crate) fn flow(mut self, flow: u32, rate: f64) -> Self {
        self.sources.push((Id::Flow(flow), rate, largest(), false));
        self
    }

    /// Runs for a time, of which the second half counts.
    pub(crate) fn run(mut self, seconds: u64) -> Self {
        let steps = seconds * 1000;
        let mut owed = vec![0.5; self.sources.len()];
        let mut number = 0;
        for step in 0..steps {
            if step == steps / 2 {
                self.got.clear();
            }
            self.now = Instant::ZERO + Duration::from_millis(step);
            for (source, owed) in owed.iter_mut().enumerate() {
                let pulse = match self.pulses.filter(|_| source == 0) {
                    None => 1.0,
                    Some(period) if step % period < period / 2 => 2.0,
                    Some(_) => 0.0,
                };
                let is_surge =
                    self.surge.as_ref().is_some_and(|(of, time)| *of == source && time.contains(&step));
                *owed += if is_surge { 10.0 } else { pulse } * self.sources[source].1;
                while *owed >= 1.0 {
                    *owed -= 1.0;
                    number += 1;
                    self.send(source, number);
                }
            }
            self.depart();
        }
        self
    }

    pub(crate) fn send(&mut self, source: usize, number: u32) {
        let (id, _, hint, ecn_capable) = self.sources[source];
        let (flow, named) = match id {
            Id::Flow(flow) => (flow, flow),
            Id::NewFlows => (1_000_000 + number, 0),
        };
        let scalable = ecn_capable && self.scalable;
        // Flow 1 comes from a host of its own.
        let hosts = [u32::from(flow == 1); 2];
        let arrival = Arrival { flow, hosts, ecn_capable, scalable, ..Arrival::new(SIZE, hint) };
        let verdict = self.queue.enqueue(self.now, arrival, (named, number), &mut self.random);
        while self.queue.shed().is_some() {}
        let got = self.got.entry(named).or_default();
        got.sent += 1;
        got.marked += u32::from(verdict == Verdict::Mark);
    }

    /// Serves a packet.
    pub(crate) fn depart(&mut self) {
        let Some(departure) = self.queue.dequeue(self.now) else { return };
        let (flow, number) = departure.packet;
        let got = self.got.entry(flow).or_default();
        got.received += 1;
        got.longest = got.longest.max(self.now.saturating_since(departure.arrived));
        let before = self.last.insert(flow, number);
        assert!(flow == 0 || before.is_none_or(|before| before < number), "flow {flow} is reordered");
    }
}
