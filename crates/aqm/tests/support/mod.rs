//! What the tests share: a link that takes packets from a queue at its pace, and a law for tests.

#![allow(dead_code, reason = "every test binary uses a part")]

use cutline_aqm::{Arrival, Backlog, Departure, DropProbability, Queue, Shed, Verdict};
use cutline_units::{Bytes, Duration, Hint, Instant, Probability, RandomStream, Rate, Serializer, Streams};

/// A queue, the link behind it, and the clock of both.
pub struct Link<Q> {
    pub queue: Q,
    pub now: Instant,
    pub random: RandomStream,
    pub sent: Vec<(Instant, Departure<u32>)>,
    pub shed: Vec<Shed<u32>>,
    wire: Serializer,
    next_packet: u32,
}

impl<Q: Queue<u32>> Link<Q> {
    pub fn new(queue: Q, rate: Rate) -> Self {
        let random = Streams::new(1).stream("queue", "drop");
        let wire = Serializer::new(rate);
        Self { queue, now: Instant::ZERO, random, sent: Vec::new(), shed: Vec::new(), wire, next_packet: 0 }
    }

    /// Offers the next packet; packets are numbered from 0. An idle link takes it at once.
    pub fn arrive(&mut self, size: u32, hint: u16, ecn_capable: bool) -> Verdict {
        // A flow for each hint, every second of which is scalable.
        let (flow, scalable) = (u32::from(hint), ecn_capable && hint.is_multiple_of(2));
        let arrival = Arrival { ecn_capable, scalable, flow, ..Arrival::new(size, Hint::from_level(hint)) };
        self.offer(arrival)
    }

    /// Offers the next packet, whatever it is.
    pub fn offer(&mut self, arrival: Arrival) -> Verdict {
        let verdict = self.queue.enqueue(self.now, arrival, self.next_packet, &mut self.random);
        self.next_packet += 1;
        self.collect_shed();
        self.wait(Duration::ZERO);
        verdict
    }

    fn collect_shed(&mut self) {
        self.shed.extend(std::iter::from_fn(|| self.queue.shed()));
    }

    /// Offers packets of 1000 B at once.
    pub fn arrive_many(&mut self, packets: u32, hint: u16) {
        for _ in 0..packets {
            self.arrive(1000, hint, false);
        }
    }

    /// Lets time pass; the link takes a packet whenever it is free.
    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.wire.free_at() <= until && self.queue.backlog().packets > 0 {
            self.now = self.now.max(self.wire.free_at());
            self.pull();
        }
        self.now = until;
    }

    /// Takes a packet now, whether the link is free or not.
    pub fn pull(&mut self) {
        let next = self.queue.dequeue(self.now);
        self.collect_shed();
        if let Some(departure) = next {
            self.wire.send(self.now, Bytes::new(u64::from(departure.size)));
            self.sent.push((self.now, departure));
        }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        self.wire.set_rate(rate);
        self.queue.set_rate(self.now, rate);
    }

    /// Waits until nothing is left.
    pub fn drain(&mut self) {
        while self.queue.backlog().packets > 0 {
            self.now = self.now.max(self.wire.free_at());
            self.pull();
        }
    }
}

/// A law whose probability changes every millisecond, and is 0 and 1 now and then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wave {
    p: f64,
}

impl DropProbability for Wave {
    fn advance(&mut self, now: Instant, _backlog: Backlog) {
        const WAVE: [f64; 8] = [0.0, 0.02, 0.4, 0.001, 1.0, 0.1, 0.0, 0.7];
        self.p = WAVE[(now.as_nanos() / 1_000_000 % 8) as usize];
    }

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::clamped(self.p)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.p))
    }

    fn reset(&mut self, _now: Instant) {}
}

/// The same probability always.
#[derive(Clone, Copy, Debug)]
pub struct Always(pub f64);

impl DropProbability for Always {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::clamped(self.0)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.0))
    }

    fn reset(&mut self, _now: Instant) {}
}
