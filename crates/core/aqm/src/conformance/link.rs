//! A link for tests: it takes packets from a queue at its pace, and keeps the time of both.

use crate::{Arrival, Departure, Queue, Shed, Verdict};
use cutline_units::{Bytes, Duration, Hint, Instant, RandomStream, Rate, Serializer, Streams};

/// A queue, the link behind it, and the time.
#[derive(Debug)]
pub struct Link<Q> {
    /// The queue.
    pub queue: Q,
    /// The time of queue and link.
    pub now: Instant,
    /// Random stream of the queue.
    pub random: RandomStream,
    /// Packets that the link has sent, and their times.
    pub sent: Vec<(Instant, Departure<u32>)>,
    /// Packets that the queue has shed.
    pub shed: Vec<Shed<u32>>,
    wire: Serializer,
    next_packet: u32,
}

impl<Q: Queue<u32>> Link<Q> {
    /// An idle link of rate `rate` at time 0.
    pub fn new(queue: Q, rate: Rate) -> Self {
        let random = Streams::new(1).stream("queue", "drop");
        let wire = Serializer::new(rate);
        Self { queue, now: Instant::ZERO, random, sent: Vec::new(), shed: Vec::new(), wire, next_packet: 0 }
    }

    /// Offers the next packet; packets are numbered from 0. An idle link takes it at once. Each hint is a flow, and those
    /// of even hints are scalable.
    pub fn arrive(&mut self, size: u32, hint: u16, ecn_capable: bool) -> Verdict {
        let (flow, scalable) = (u32::from(hint), ecn_capable && hint.is_multiple_of(2));
        let arrival = Arrival { flow, ecn_capable, scalable, ..Arrival::new(size, Hint::from_level(hint)) };
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

    /// Changes the rate of the link, and reports it to the queue.
    pub fn set_rate(&mut self, rate: Rate) {
        self.wire.set_rate(self.now, rate);
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
