//! One direction: a frame comes, the queue decides, and the link's rate says when it goes.
//!
//! The shaper lives in the schedule, not in the moment of its caller's waking up. A frame that comes at time t meets the
//! queue as it is at t, after everything that was due until then has gone; the next frame's sending begins when the
//! last one's last bit has left, and not when somebody looked. So late wake-ups neither slow the link down nor
//! change a verdict, and the same arrivals give the same verdicts and times as in the simulator's link.
//!
//! What has been due goes out at once, in a burst, when the caller wakes up late. A caller that was stopped for a second
//! must not flood what comes behind with a second's worth: [`Shaper::wake`] lets the schedule slip so that it is never
//! more than [`ShaperParams::burst`] behind, and frames that came before that count as coming then.
//!
//! A port that takes nothing for a while, because the other side told its card to pause, holds the link: once as many
//! frames as the outbox has room for wait for the port, the rest stay in the queue, under the AQM.
//!
//! A change of the rate takes effect from the next frame on; the queue keeps what it holds. When the queue itself is
//! exchanged, the old one *retires*: it takes no arrivals any more, and is served until it is empty; only then is the new
//! one. So every frame is judged once, by the queue that was there when it came, and none that came before the
//! exchange is overtaken by one that came after it. The price is paid once: until the old queue is empty, the new one knows
//! only of what it holds itself, and as much may wait as both their limits allow.

use crate::frames::{Frames, Slot};
use crate::headers::{ETHERNET, Headers, Ip};
use crate::overhead::Overhead;
use crate::port::Port;
use crate::stats::{Loss, ShaperStats};
use cutline_aqm::{AnyQueue, Arrival, Backlog, Departure, Queue, QueueSpec, Shed, Verdict};
use cutline_params::ParameterError;
use cutline_units::{
    Bytes, Duration, Ecn, HintTable, Instant, Probability, RandomStream, Rate, RemarkTable, Serializer,
};
use std::collections::VecDeque;

/// How one direction is to work.
#[derive(Clone, Debug)]
pub struct ShaperParams {
    /// The queue, with the rate of the link.
    pub queue: QueueSpec,
    /// What the link adds to a frame.
    pub overhead: Overhead,
    /// The longest frame that the outgoing port takes, Ethernet header included, bytes.
    pub largest_frame: u32,
    /// Which hint a code point stands for.
    pub hints: HintTable,
    /// What a code point becomes on the way out.
    pub remark: RemarkTable,
    /// How far behind its schedule the link may be and still catch up; 10 ms by default, about the lateness of a
    /// process that a busy machine does not let run for two of its time slices.
    pub burst: Duration,
    /// What the hash of the flow is salted with.
    pub salt: u64,
}

/// The queue of one direction, its link, and the frames in it.
#[derive(Clone, Debug)]
pub struct Shaper {
    params: ShaperParams,
    /// What frames come to.
    queue: AnyQueue<Slot>,
    /// What was exchanged and is not empty yet, the oldest first; served before `queue`.
    retired: VecDeque<AnyQueue<Slot>>,
    random: RandomStream,
    serializer: Serializer,
    /// Whether a frame is on the link until the serializer is free.
    busy: bool,
    /// The latest moment the queue has been told of.
    clock: Instant,
    /// What came before has been waiting too long to catch up with.
    earliest: Instant,
    frames: Frames,
    /// Frames whose sending has begun and that the port has not taken yet, with the time of that beginning.
    outbox: VecDeque<(Slot, Instant)>,
    /// What the port says of them, while it is asked.
    settled: Vec<bool>,
    stats: ShaperStats,
}

/// How many frames may wait for the port: more than fall due in the default burst at 1 Gbit/s, but for the shortest.
const OUTBOX: usize = 4096;

impl ShaperParams {
    /// The default of [`ShaperParams::burst`].
    pub const BURST: Duration = Duration::from_millis(10);

    /// Frames of up to 1500 B of payload with a VLAN tag over Ethernet, standard hints, nothing re-marked.
    pub fn new(queue: QueueSpec) -> Self {
        Self {
            queue,
            overhead: Overhead::Ethernet,
            largest_frame: 1518,
            hints: HintTable::standard(),
            remark: RemarkTable::unchanged(),
            burst: Self::BURST,
            salt: 0,
        }
    }
}

impl Shaper {
    /// An idle link with an empty queue; `random` is what the queue draws from.
    ///
    /// # Errors
    /// When the queue cannot be built.
    pub fn new(params: ShaperParams, random: RandomStream) -> Result<Self, ParameterError> {
        Ok(Self {
            queue: params.queue.build()?,
            retired: VecDeque::new(),
            serializer: Serializer::new(params.queue.rate),
            frames: Frames::new(params.largest_frame as usize),
            params,
            random,
            busy: false,
            clock: Instant::ZERO,
            earliest: Instant::ZERO,
            outbox: VecDeque::new(),
            settled: Vec::new(),
            stats: ShaperStats::default(),
        })
    }

    /// The caller looks at the clock, and it is `now`: a schedule too far behind slips.
    pub fn wake(&mut self, now: Instant) {
        self.earliest = Instant::ZERO + now.saturating_since(Instant::ZERO + self.params.burst);
        let slip = self.earliest.saturating_since(self.serializer.free_at());
        if self.busy && slip > Duration::ZERO {
            self.stats.slipped += slip;
            self.serializer.skip_to(self.earliest);
        }
    }

    /// A frame has come in at `at`. What was due before goes first; what is due at this very moment goes after it, as
    /// in the simulator, where packets that were spaced by this link come back to it exactly when it is free.
    #[inline]
    pub fn receive(&mut self, at: Instant, bytes: &[u8]) {
        let at = self.on_time(at.max(self.clock));
        self.clock = at;
        self.serve_while(|free_at| free_at < at);
        self.stats.received.add(bytes.len() as u32);
        if bytes.len() < ETHERNET {
            self.stats.lose(Loss::Runt, bytes.len());
        } else if bytes.len() > self.params.largest_frame as usize {
            self.stats.lose(Loss::Oversize, bytes.len());
        } else {
            self.enqueue(at, bytes);
        }
    }

    /// An idle link would have begun with a frame when it came. If that is too long ago, its schedule slips as well.
    #[inline]
    fn on_time(&mut self, at: Instant) -> Instant {
        if at < self.earliest && !self.busy {
            self.stats.slipped += self.earliest - at;
        }
        at.max(self.earliest)
    }

    fn enqueue(&mut self, now: Instant, bytes: &[u8]) {
        let headers = Headers::of(bytes, self.params.salt);
        let arrival = self.arrival(bytes.len() as u32, &headers);
        let slot = self.frames.take();
        let verdict = self.queue.enqueue(now, arrival, slot, &mut self.random);
        if headers.ip.is_none() {
            self.stats.not_ip.add(bytes.len() as u32);
        }
        if let Verdict::Drop(reason) = verdict {
            self.frames.release(slot);
            self.stats.drop_queued(reason.into(), arrival.hint, bytes.len());
        } else {
            self.keep(slot, bytes, headers, arrival, verdict == Verdict::Mark);
            if !self.busy {
                self.start_next(now);
            }
        }
        self.drop_shed();
    }

    /// What the queue is told of a frame. One that is not IP has the hint of the default code point.
    #[inline]
    fn arrival(&self, length: u32, headers: &Headers) -> Arrival {
        let ecn = headers.ip.as_ref().map_or(Ecn::NotEct, Ip::ecn);
        Arrival {
            size: self.params.overhead.size(length, headers),
            hint: self.params.hints.hint(headers.ip.as_ref().map(Ip::dscp).unwrap_or_default()),
            flow: headers.ip.map_or(0, |ip| ip.flow),
            ecn_capable: ecn != Ecn::NotEct,
            // CE may have been ECT(1), and counts as such: RFC 9331 section 5.1.
            scalable: matches!(ecn, Ecn::Ect1 | Ecn::Ce),
        }
    }

    #[inline]
    fn keep(&mut self, slot: Slot, bytes: &[u8], headers: Headers, arrival: Arrival, mark: bool) {
        let length = bytes.len() as u32;
        let frame = self.frames.fill(slot, bytes, headers, arrival.hint);
        if let Some(ip) = &headers.ip {
            let dscp = self.params.remark.remark(ip.dscp());
            if dscp != ip.dscp() {
                frame.set_dscp(dscp);
                self.stats.remarked.add(length);
            }
        }
        if mark {
            frame.set_ce();
            self.stats.marked.add(length);
        }
    }

    /// Begins every sending that is due until `now`. Time does not run backwards.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        self.clock = self.clock.max(now);
        let clock = self.clock;
        self.serve_while(|free_at| free_at <= clock);
    }

    #[inline]
    fn serve_while(&mut self, is_due: impl Fn(Instant) -> bool) {
        while self.busy && !self.is_held() && is_due(self.serializer.free_at()) {
            self.start_next(self.serializer.free_at());
            self.drop_shed();
        }
    }

    /// The link is free at `now`.
    #[inline]
    fn start_next(&mut self, now: Instant) {
        let next = if self.retired.is_empty() { self.queue.dequeue(now) } else { self.next_of_all(now) };
        self.busy = next.is_some();
        let Some(Departure { packet: slot, size, arrived, marked }) = next else { return };
        self.serializer.send(now, Bytes::new(u64::from(size)));
        let frame = self.frames.get_mut(slot);
        let length = frame.bytes().len();
        if marked {
            frame.set_ce();
            self.stats.marked.add(length as u32);
        }
        self.stats.depart(frame.hint, length, now - arrived);
        self.outbox.push_back((slot, now));
    }

    /// The next frame while there are retired queues.
    #[cold]
    #[inline(never)]
    fn next_of_all(&mut self, now: Instant) -> Option<Departure<Slot>> {
        while let Some(oldest) = self.retired.front_mut() {
            let next = oldest.dequeue(now);
            if next.is_some() {
                return next;
            }
            // What it has thrown away instead is not in its backlog any more, but still here.
            self.drop_shed();
            self.retired.pop_front();
        }
        self.queue.dequeue(now)
    }

    /// Drops what the queue had kept and has thrown away since.
    #[inline]
    fn drop_shed(&mut self) {
        while let Some(shed) = self.shed() {
            let frame = self.frames.get(shed.packet);
            self.stats.drop_queued(shed.reason.into(), frame.hint, frame.bytes().len());
            self.frames.release(shed.packet);
        }
    }

    #[inline]
    fn shed(&mut self) -> Option<Shed<Slot>> {
        if self.retired.is_empty() { self.queue.shed() } else { self.shed_of_all() }
    }

    #[cold]
    #[inline(never)]
    fn shed_of_all(&mut self) -> Option<Shed<Slot>> {
        self.retired.iter_mut().chain([&mut self.queue]).find_map(Queue::shed)
    }

    /// Whether too much waits for the port to begin with more.
    #[inline]
    fn is_held(&self) -> bool {
        self.outbox.len() >= OUTBOX
    }

    /// When the next sending is due; [`Instant::FAR_FUTURE`] when nothing is on the link, or the port holds it up.
    #[inline]
    pub fn deadline(&self) -> Instant {
        if self.busy && !self.is_held() { self.serializer.free_at() } else { Instant::FAR_FUTURE }
    }

    /// The frames whose sending has begun and that no port has taken yet, in order.
    pub fn departed(&self) -> impl Iterator<Item = &[u8]> {
        self.outbox.iter().map(|&(slot, _)| self.frames.get(slot).bytes())
    }

    /// Gives these frames to a port. What it does not take now is offered again the next time.
    ///
    /// # Errors
    /// When the port is gone.
    #[inline]
    pub fn send<P: Port>(&mut self, port: &mut P) -> Result<(), P::Error> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        let Self { outbox, frames, settled, .. } = self;
        let mut departed = outbox.iter().map(|&(slot, _)| frames.get(slot).bytes());
        let result = port.send(&mut departed, &mut |sent| settled.push(sent));
        if !self.settled.is_empty() {
            let now = port.clock().unwrap_or(self.clock);
            for place in 0..self.settled.len() {
                self.settle(now, self.settled[place]);
            }
            self.settled.clear();
        }
        result
    }

    /// The first frame of the outbox has been taken by the port, or lost there.
    fn settle(&mut self, now: Instant, sent: bool) {
        let (slot, due) = self.outbox.pop_front().expect("a port tells only of frames that it was given");
        let length = self.frames.get(slot).bytes().len();
        if sent {
            self.stats.hand_over(length, now.saturating_since(due));
        } else {
            self.stats.lose(Loss::Unsent, length);
        }
        self.frames.release(slot);
    }

    /// The link's rate from the next frame on. No frame is lost. Must not be zero.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.advance(now);
        self.serializer.set_rate(rate);
        self.queue.set_rate(self.clock, rate);
        self.retired.iter_mut().for_each(|queue| queue.set_rate(self.clock, rate));
        self.params.queue.rate = rate;
    }

    /// Another queue, its rate included, for the frames that come from now on; the old one retires. No frame is lost,
    /// judged twice or overtaken by one that comes later. If it is the same queue but for the rate, it stays.
    ///
    /// # Errors
    /// When the queue cannot be built; then nothing has changed.
    pub fn set_queue(&mut self, now: Instant, spec: QueueSpec) -> Result<(), ParameterError> {
        let new = spec.build()?;
        let is_same = QueueSpec { rate: self.params.queue.rate, ..spec.clone() } == self.params.queue;
        if spec.rate != self.params.queue.rate {
            self.set_rate(now, spec.rate);
        }
        if is_same {
            return Ok(());
        }
        self.advance(now);
        let old = std::mem::replace(&mut self.queue, new);
        if old.backlog().packets > 0 {
            self.retired.push_back(old);
        }
        self.params.queue = spec;
        Ok(())
    }

    /// Works as `params` say, from the next frame on: as [`Shaper::set_queue`], and with their overhead, tables and burst.
    /// The largest frame and the salt stay, for the port stays and so do flows.
    ///
    /// # Errors
    /// When the queue cannot be built; then nothing has changed.
    pub fn reconfigure(&mut self, now: Instant, params: ShaperParams) -> Result<(), ParameterError> {
        let ShaperParams { queue, overhead, hints, remark, burst, .. } = params;
        self.set_queue(now, queue)?;
        self.params = ShaperParams { overhead, hints, remark, burst, ..self.params.clone() };
        Ok(())
    }

    /// The hints of code points from the next frame on.
    pub fn set_hints(&mut self, hints: HintTable) {
        self.params.hints = hints;
    }

    /// What code points become from the next frame on.
    pub fn set_remark(&mut self, remark: RemarkTable) {
        self.params.remark = remark;
    }

    /// How it works now.
    pub const fn params(&self) -> &ShaperParams {
        &self.params
    }

    /// What waits in the queue, and in those that it has replaced, in frames and the link's bytes.
    pub fn backlog(&self) -> Backlog {
        self.retired.iter().fold(self.queue.backlog(), |sum, queue| {
            let Backlog { packets, bytes } = queue.backlog();
            Backlog { packets: sum.packets + packets, bytes: sum.bytes + bytes }
        })
    }

    /// How many queues that were exchanged still hold frames.
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Frames that have come in and neither gone out nor been lost.
    pub const fn queued(&self) -> usize {
        self.frames.taken()
    }

    /// The AQM's drop probability as of the last frame; after an exchange the new one's.
    pub fn probability(&self) -> Option<Probability> {
        self.queue.probability()
    }

    /// What has been counted.
    pub const fn stats(&self) -> &ShaperStats {
        &self.stats
    }
}
