//! A path for tests: both directions with a delay, and a rule that says what happens to each packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use cutline_transport::tcp::{Ack, Params, Receiver, Segment, Sender};
use cutline_units::{Duration, Instant};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Arrives after the path's delay.
    Arrive,
    /// Never arrives.
    Lose,
    /// Arrives in time, marked.
    Mark,
    /// Arrives this much later than it should.
    Late(Duration),
    /// Arrives, and once more this much later.
    Twice(Duration),
}

/// Something on the path, in the order of time, then of sending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event(Instant, u64, usize);

#[derive(Clone, Copy)]
enum Packet {
    Data(Segment, bool),
    Ack(Ack),
}

/// A TCP connection over a path with a fixed one-way delay.
pub struct Connection<F> {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Instant,
    one_way: Duration,
    fate: F,
    heap: BinaryHeap<Reverse<Event>>,
    packets: Vec<Packet>,
}

impl<F: FnMut(Instant, &Packet2) -> Fate> Connection<F> {
    /// A connection whose packets meet the fate that `fate` decides.
    pub fn new(params: &Params, one_way: Duration, fate: F) -> Self {
        let params = Arc::new(*params);
        Self {
            sender: Sender::new(&params, Instant::ZERO),
            receiver: Receiver::new(&params),
            now: Instant::ZERO,
            one_way,
            fate,
            heap: BinaryHeap::new(),
            packets: Vec::new(),
        }
    }

    /// Runs until `end`, or until nothing more will happen. `check` sees the connection after each event.
    pub fn run(&mut self, end: Instant, mut check: impl FnMut(&mut Self)) {
        self.pump();
        while let Some(at) = self.next_event().filter(|&at| at <= end) {
            self.now = at;
            self.step();
            self.pump();
            check(self);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let packet = self.heap.peek().map_or(Instant::FAR_FUTURE, |event| event.0.0);
        let at = packet.min(self.sender.deadline()).min(self.receiver.deadline());
        (at < Instant::FAR_FUTURE).then_some(at)
    }

    fn step(&mut self) {
        let due = self.heap.peek().is_some_and(|event| event.0.0 <= self.now);
        if due {
            let Reverse(Event(_, _, index)) = self.heap.pop().expect("peeked");
            match self.packets[index] {
                Packet::Data(segment, ce) => {
                    if let Some(ack) = self.receiver.on_segment(self.now, &segment, ce) {
                        self.send_ack(ack);
                    }
                }
                Packet::Ack(ack) => self.sender.on_ack(self.now, &ack),
            }
        }
        self.sender.on_deadline(self.now);
        if let Some(ack) = self.receiver.on_deadline(self.now) {
            self.send_ack(ack);
        }
    }

    fn pump(&mut self) {
        while let Some(segment) = self.sender.transmit(self.now) {
            let fate = (self.fate)(self.now, &Packet2::Data(segment));
            self.put(Packet::Data(segment, fate == Fate::Mark), fate);
        }
    }

    fn send_ack(&mut self, ack: Ack) {
        let fate = (self.fate)(self.now, &Packet2::Ack(ack));
        self.put(Packet::Ack(ack), fate);
    }

    fn put(&mut self, packet: Packet, fate: Fate) {
        let arrives = self.now + self.one_way;
        match fate {
            Fate::Lose => {}
            Fate::Arrive | Fate::Mark => self.schedule(arrives, packet),
            Fate::Late(by) => self.schedule(arrives + by, packet),
            Fate::Twice(by) => {
                self.schedule(arrives, packet);
                self.schedule(arrives + by, packet);
            }
        }
    }

    fn schedule(&mut self, at: Instant, packet: Packet) {
        let index = self.packets.len();
        self.packets.push(packet);
        self.heap.push(Reverse(Event(at, index as u64, index)));
    }
}

/// What a rule sees.
#[derive(Clone, Copy, Debug)]
pub enum Packet2 {
    Data(Segment),
    Ack(Ack),
}
