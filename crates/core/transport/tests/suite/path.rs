//! A path for tests: the two ends of a flow, a delay in each direction, and a rule that decides what happens to a packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use cutline_transport::app::{self, App, Completion, TrafficSource as _, Write};
use cutline_transport::endpoint::{ReceivingEnd as _, SendingEnd as _, Transport};
use cutline_transport::{tcp, tfrc};
use cutline_units::{Duration, Instant, RandomStream, Streams};

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Arrives after the path's delay.
    Arrive,
    /// Never arrives.
    Lose,
    /// Arrives after the path's delay, marked.
    Mark,
    /// Arrives this much later than after the path's delay.
    Late(Duration),
    /// Arrives twice, the second time this much later.
    Twice(Duration),
}

/// Both ends of a flow, as the path drives them.
pub trait Flow {
    /// A packet in either direction.
    type Packet: Copy;
    /// Returns the time of the next action of either end.
    fn deadline(&self) -> Instant;
    /// Handles the deadlines that have expired.
    fn on_deadline(&mut self, now: Instant, out: &mut Vec<Self::Packet>);
    /// Delivers a packet to its receiver.
    fn arrive(&mut self, now: Instant, packet: Self::Packet, marked: bool, out: &mut Vec<Self::Packet>);
    /// Appends all packets that may leave now.
    fn transmit(&mut self, now: Instant, out: &mut Vec<Self::Packet>);
}

/// A flow over a path.
pub struct Path<F: Flow, R> {
    pub flow: F,
    pub now: Instant,
    one_way: Duration,
    rule: R,
    /// Arrival time, index of the packet, mark.
    heap: BinaryHeap<Reverse<(Instant, usize, bool)>>,
    packets: Vec<F::Packet>,
    out: Vec<F::Packet>,
}

impl<F: Flow, R: FnMut(Instant, &F::Packet) -> Fate> Path<F, R> {
    pub fn new(flow: F, one_way: Duration, rule: R) -> Self {
        let (heap, packets, out) = (BinaryHeap::new(), Vec::new(), Vec::new());
        Self { flow, now: Instant::ZERO, one_way, rule, heap, packets, out }
    }

    /// Runs until `end`, or until there are no more events.
    pub fn run(&mut self, end: Instant) {
        self.run_checked(end, |_, _| ());
    }

    /// Does the same as [`Path::run`], and calls `check` after each event.
    pub fn run_checked(&mut self, end: Instant, mut check: impl FnMut(Instant, &mut F)) {
        self.pump();
        while let Some(at) = self.next_event().filter(|&at| at <= end) {
            self.now = at;
            self.step();
            self.pump();
            check(self.now, &mut self.flow);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.heap.peek().map_or(Instant::FAR_FUTURE, |event| event.0.0);
        let at = arrival.min(self.flow.deadline());
        (at < Instant::FAR_FUTURE).then_some(at)
    }

    fn step(&mut self) {
        let due = self.heap.peek().is_some_and(|event| event.0.0 <= self.now);
        if due && let Some(Reverse((_, index, marked))) = self.heap.pop() {
            self.flow.arrive(self.now, self.packets[index], marked, &mut self.out);
        }
        self.flow.on_deadline(self.now, &mut self.out);
    }

    fn pump(&mut self) {
        self.flow.transmit(self.now, &mut self.out);
        for packet in std::mem::take(&mut self.out) {
            let fate = (self.rule)(self.now, &packet);
            self.put(packet, fate);
        }
    }

    fn put(&mut self, packet: F::Packet, fate: Fate) {
        let index = self.packets.len();
        self.packets.push(packet);
        let arrives = self.now + self.one_way;
        let marked = fate == Fate::Mark;
        match fate {
            Fate::Lose => {}
            Fate::Arrive | Fate::Mark => self.heap.push(Reverse((arrives, index, marked))),
            Fate::Late(by) => self.heap.push(Reverse((arrives + by, index, marked))),
            Fate::Twice(by) => {
                self.heap.push(Reverse((arrives, index, marked)));
                self.heap.push(Reverse((arrives + by, index, marked)));
            }
        }
    }
}

/// An application, its random numbers, and its completed transfers. Without an application nothing is written.
#[derive(Default)]
pub struct Source {
    app: Option<(App, RandomStream)>,
    pub completions: Vec<Completion>,
}

impl Source {
    fn new(params: &app::Params) -> Self {
        let mut rng = Streams::new(9).stream("source", "app");
        Self { app: Some((params.start(Instant::ZERO, &mut rng), rng)), completions: Vec::new() }
    }

    fn deadline(&self) -> Instant {
        self.app.as_ref().map_or(Instant::FAR_FUTURE, |source| source.0.deadline())
    }

    fn poll(&mut self, now: Instant) -> Option<Write> {
        let (app, rng) = self.app.as_mut()?;
        app.poll(now, rng)
    }

    fn delivered(&mut self, now: Instant, total: u64) {
        if let Some((app, _)) = &mut self.app {
            self.completions.extend(app.on_delivered(now, total));
        }
    }
}

/// Both ends of a flow of a transport, and its application.
pub struct Ends<T: Transport> {
    pub sender: T::Sender,
    pub receiver: T::Receiver,
    pub source: Source,
}

/// A TCP connection.
pub type Tcp = Ends<tcp::Tcp>;
/// A TFRC flow.
pub type Tfrc = Ends<tfrc::Tfrc>;

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub enum EndsPacket<D, R> {
    Data(D),
    Reply(R),
}

/// A packet of a TCP connection.
pub type TcpPacket = EndsPacket<tcp::Segment, tcp::Ack>;
/// A packet of a TFRC flow.
pub type TfrcPacket = EndsPacket<tfrc::Packet, tfrc::Feedback>;

impl<T: Transport> Ends<T> {
    pub fn new(params: T::Params) -> Self {
        let params = Arc::new(params);
        Self {
            sender: T::sender(&params, Instant::ZERO),
            receiver: T::receiver(&params),
            source: Source::default(),
        }
    }

    pub fn carrying(app: &app::Params, params: T::Params) -> Self {
        Self { source: Source::new(app), ..Self::new(params) }
    }
}

impl<T: Transport> Flow for Ends<T> {
    type Packet = EndsPacket<T::Data, T::Reply>;

    fn deadline(&self) -> Instant {
        self.sender.deadline().min(self.receiver.deadline()).min(self.source.deadline())
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Vec<Self::Packet>) {
        while let Some(write) = self.source.poll(now) {
            match write {
                Write::Bytes(bytes) => drop(self.sender.write(bytes)),
                Write::Unlimited => self.sender.write_unlimited(),
            }
        }
        self.sender.on_deadline(now);
        out.extend(self.receiver.on_deadline(now).map(|reply| EndsPacket::Reply(reply.header)));
    }

    fn arrive(&mut self, now: Instant, packet: Self::Packet, marked: bool, out: &mut Vec<Self::Packet>) {
        match packet {
            EndsPacket::Data(data) => {
                let reply = self.receiver.on_data(now, &data, marked);
                out.extend(reply.map(|reply| EndsPacket::Reply(reply.header)));
                self.source.delivered(now, self.receiver.delivered());
            }
            EndsPacket::Reply(reply) => self.sender.on_reply(now, &reply),
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut Vec<Self::Packet>) {
        let packets = std::iter::from_fn(|| self.sender.transmit(now));
        out.extend(packets.map(|packet| EndsPacket::Data(packet.header)));
    }
}
