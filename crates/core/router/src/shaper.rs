//! One direction of the router: a queue, and a link with a rate.
//!
//! The shaper follows its schedule and not the times at which its caller wakes up. A frame that arrives at time t finds the
//! queue in its state at t, after all departures that were due before. The transmission of the next frame starts when the
//! last bit of the previous one has left, even if the caller looks later. So a late wake-up neither slows the link down
//! nor changes a verdict, and the same arrivals give the same verdicts and times as at the simulator's link.
//!
//! When the caller wakes up late, all frames that are due leave at once, in a burst. A caller that was stopped for a second
//! must not flood the network with the frames of a second. Therefore [`Shaper::wake`] lets the schedule slip, so that it is
//! never more than [`ShaperParams::burst`] behind. Frames that arrived earlier than that count as arriving then.
//!
//! A port may accept no frames for a while, for example because of Ethernet's flow control. Such a port holds the link: when
//! the outbox is full of frames that wait for the port, all others stay in the queue, under control of the AQM.
//!
//! Frames of reserved flows that conform to their token bucket do not go into the queue. They wait in a class that is served first
//! (`reserved.rs`).
//!
//! A change of the rate takes effect at once, and the queue keeps its frames. The rest of the frame that is on the link goes
//! at the new rate (ADR 53), and does not occupy the link for longer than the longest frame would at that rate, or for
//! [`ShaperParams::burst`] if that is longer. When the queue itself is
//! replaced, the old queue *retires*: it receives no more frames, and is served until it is empty. Only then is the new
//! queue served. So every frame is judged once, by the queue that was in use when it arrived, and no frame from before
//! the exchange is overtaken by one from after it. This has a cost: until the old queue is empty, the new one sees only its
//! own backlog, and the limits of both queues together bound the backlog.

use crate::frames::{Frames, Slot};
use crate::port::Port;
use crate::reserved::{
    CountedReservation, Judgement, Link, ReservationError, ReservationId, ReservedClass, Waiting,
};
use crate::shaper_params::{ShaperParams, check_rate};
use crate::stats::{Loss, ShaperStats};
use crate::top_flows::{FlowSlot, TopFlows};
use cutline_aqm::{AnyQueue, Arrival, Backlog, Departure, Limit, Queue, QueueSpec, Readings, Shed, Verdict};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_params::ParameterError;
use cutline_units::{
    Bytes, Duration, Ecn, HintTable, Instant, Probability, RandomStream, Rate, RemarkTable, Serializer,
};
use cutline_wire::{ETHERNET, FlowKeys, FragmentFlows, Headers, Ip};
use std::collections::VecDeque;

/// The queue of one direction, its link, and the frames in it.
#[derive(Debug)]
pub struct Shaper {
    params: ShaperParams,
    /// The queue that receives frames.
    queue: AnyQueue<Slot>,
    /// Replaced queues that are not empty yet, oldest first. They are served before `queue`.
    retired: VecDeque<AnyQueue<Slot>>,
    random: RandomStream,
    serializer: Serializer,
    /// True if a frame is on the link until the serializer is free.
    busy: bool,
    /// The latest time that the queue has seen.
    clock: Instant,
    /// The earliest time from which the schedule may catch up. Earlier arrivals count as arriving then.
    earliest: Instant,
    frames: Frames,
    /// The flows of fragmented packets.
    fragments: FragmentFlows,
    /// Reserved flows; `None` before the first reservation.
    reserved: Option<Box<ReservedClass>>,
    /// Frames whose transmission has started and that the port has not accepted yet, with their start times.
    outbox: VecDeque<(Slot, Instant)>,
    /// The port's reports about frames of the outbox, during a call of [`Port::send`].
    settled: Vec<bool>,
    stats: ShaperStats,
    /// Counters of the flows that send most.
    flows: TopFlows,
}

/// The most frames that wait for the port. More than fall due in the default burst at 1 Gbit/s, except for the shortest.
const OUTBOX: usize = 4096;
/// The most queues that retire at a time.
const RETIRED: usize = 32;

impl Shaper {
    /// Creates an idle link with an empty queue, which takes its random numbers from `random`.
    ///
    /// # Errors
    /// When the queue cannot be built, or a parameter is out of range; when there is no room for the frames.
    pub fn new(params: ShaperParams, random: RandomStream) -> Result<Self, ParameterError> {
        params.check()?;
        let no_room = || ParameterError::new("memory", params.memory, "the memory that the system has left");
        let frames = Frames::new(params.largest_frame as usize, params.memory).ok_or_else(no_room)?;
        Ok(Self {
            queue: build(&params.queue)?,
            retired: VecDeque::new(),
            serializer: Serializer::new(params.queue.rate),
            frames,
            fragments: FragmentFlows::default(),
            params,
            random,
            busy: false,
            clock: Instant::ZERO,
            earliest: Instant::ZERO,
            reserved: None,
            outbox: VecDeque::with_capacity(OUTBOX),
            settled: Vec::with_capacity(OUTBOX),
            stats: ShaperStats::new(),
            flows: TopFlows::default(),
        })
    }

    /// Advances the shaper to the current time. A schedule that is too far behind slips.
    pub fn wake(&mut self, now: Instant) {
        self.earliest = Instant::ZERO + now.saturating_since(Instant::ZERO + self.params.burst);
        let slip = self.earliest.saturating_since(self.serializer.free_at());
        if self.busy && slip > Duration::ZERO {
            self.stats.slipped += slip;
            self.serializer.skip_to(self.earliest);
        }
    }

    /// Receives a frame that arrived at `at`. Frames that were due before `at` leave first. A frame that is due exactly at
    /// `at` leaves afterwards, as in the simulator, where packets that were spaced by this link come back to it exactly when
    /// it is free.
    #[inline]
    pub fn receive(&mut self, at: Instant, bytes: &[u8]) {
        let arrived = at;
        let at = self.on_time(at.max(self.clock));
        self.clock = at;
        self.serve_while(|free_at| free_at < at);
        if self.busy && self.is_held() {
            self.hold(at);
        }
        self.stats.received.add(bytes.len() as u32);
        if bytes.len() < ETHERNET {
            self.stats.lose(Loss::Runt, bytes.len());
        } else if bytes.len() > self.params.largest_frame as usize {
            self.stats.lose(Loss::Oversize, bytes.len());
        } else {
            self.enqueue(at, arrived, bytes);
        }
    }

    /// Lets the schedule slip to `now`, because the port holds the link. No frame may start before it has arrived.
    #[cold]
    fn hold(&mut self, now: Instant) {
        let slip = now.saturating_since(self.serializer.free_at());
        if slip > Duration::ZERO {
            self.stats.slipped += slip;
            self.serializer.skip_to(now);
        }
    }

    /// Returns the time at which an arrival counts. An idle link would have started the frame when it arrived; if that is too
    /// long ago, the schedule slips as well.
    #[inline]
    fn on_time(&mut self, at: Instant) -> Instant {
        if at < self.earliest && !self.busy {
            self.stats.slipped += self.earliest - at;
        }
        at.max(self.earliest)
    }

    /// Queues a frame at `now`; `arrived` is when it came, which is earlier if the schedule has slipped.
    fn enqueue(&mut self, now: Instant, arrived: Instant, bytes: &[u8]) {
        let keys = FlowKeys { salt: self.params.salt, host_prefix: self.params.host_prefix };
        let headers = Headers::follow(bytes, keys, &mut self.fragments);
        let arrival = self.arrival(bytes.len() as u32, &headers);
        if headers.ip.is_none() {
            self.stats.not_ip.add(bytes.len() as u32);
        }
        let place = match headers.ip {
            Some(ip) => self.flows.arrive(now, headers.flow, arrival.hint, ip, bytes),
            None => FlowSlot::NONE,
        };
        if self.reserved.is_some() && self.is_reserved(now, arrived, bytes, &headers, (&arrival, place)) {
            return;
        }
        if !self.retired.is_empty() && self.is_full(arrival.size) {
            return self.drop_arrived(Loss::Overflow, &arrival, place, bytes.len());
        }
        let Some(slot) = self.frames.take(bytes.len()) else {
            return self.drop_arrived(Loss::Memory, &arrival, place, bytes.len());
        };
        let verdict = self.queue.enqueue(now, arrival, slot, &mut self.random);
        if let Verdict::Drop(reason) = verdict {
            self.frames.release(slot);
            self.drop_arrived(reason.into(), &arrival, place, bytes.len());
        } else {
            self.frames.fill(slot, bytes, headers, (arrival.hint, place));
            self.mark_and_remark(slot, &headers, bytes.len() as u32, verdict == Verdict::Mark);
            if !self.busy {
                self.start_next(now);
            }
        }
        self.drop_shed();
    }

    /// Counts a frame that was dropped when it arrived.
    #[inline]
    fn drop_arrived(&mut self, loss: Loss, arrival: &Arrival, place: FlowSlot, length: usize) {
        self.stats.drop_queued(loss, arrival.hint, length);
        self.flows.drop_frame((arrival.flow, place), length);
    }

    /// Puts a frame into the reserved class if it conforms to its reservation. Returns whether that has settled it.
    fn is_reserved(
        &mut self,
        now: Instant,
        arrived: Instant,
        bytes: &[u8],
        headers: &Headers,
        (arrival, flow_slot): (&Arrival, FlowSlot),
    ) -> bool {
        let (Some(class), Some(ip)) = (&mut self.reserved, headers.ip) else { return false };
        let length = bytes.len() as u32;
        let place = match class.judge(arrived, bytes, ip, arrival.size) {
            Judgement::BestEffort => return false,
            Judgement::Excess => {
                self.stats.reserved.excess.add(length);
                return false;
            }
            Judgement::Reserved(place) => place,
        };
        self.stats.reserved.conforming.add(length);
        let Some(slot) = self.frames.take(bytes.len()) else {
            class.lose(place, length);
            self.stats.reserved.dropped.add(length);
            self.stats.lose(Loss::Memory, bytes.len());
            self.flows.drop_frame((headers.flow, flow_slot), bytes.len());
            return true;
        };
        class.push(Waiting { slot, size: arrival.size, arrived: now });
        self.frames.fill(slot, bytes, *headers, (arrival.hint, flow_slot));
        self.mark_and_remark(slot, headers, length, false);
        if !self.busy {
            self.start_next(now);
        }
        true
    }

    /// Returns whether a frame of this size on the link would exceed the limit of the queue, all queues counted.
    #[cold]
    fn is_full(&self, size: u32) -> bool {
        let backlog = self.backlog();
        match self.params.queue.limit {
            Limit::Packets(limit) => backlog.packets >= limit,
            Limit::Bytes(limit) => backlog.bytes + u64::from(size) > limit,
        }
    }

    /// Returns the description of a frame for the queue. A frame that is not IP has the hint of the default code point.
    #[inline]
    fn arrival(&self, length: u32, headers: &Headers) -> Arrival {
        let ecn = headers.ip.as_ref().map_or(Ecn::NotEct, Ip::ecn);
        Arrival {
            size: self.params.overhead.size(length, headers),
            hint: self.params.hints.hint(headers.ip.as_ref().map(Ip::dscp).unwrap_or_default()),
            flow: headers.flow,
            hosts: headers.hosts,
            // Nothing in a packet says how long it has waited elsewhere.
            waited: Duration::ZERO,
            ecn_capable: ecn != Ecn::NotEct,
            // CE may have been ECT(1) and counts as such (RFC 9331 section 5.1).
            scalable: matches!(ecn, Ecn::Ect1 | Ecn::Ce),
        }
    }

    #[inline]
    fn mark_and_remark(&mut self, slot: Slot, headers: &Headers, length: u32, mark: bool) {
        if let Some(ip) = &headers.ip {
            let dscp = self.params.remark.remark(ip.dscp());
            if dscp != ip.dscp() {
                self.frames.get_mut(slot).set_dscp(dscp);
                self.stats.remarked.add(length);
            }
        }
        if mark {
            self.frames.get_mut(slot).set_ce();
            self.stats.marked.add(length);
            self.flows.mark(self.frames.flow(slot), length as usize);
        }
    }

    /// Starts every transmission that is due until `now`. Time never runs backwards.
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

    /// Starts the next transmission on a link that is free at `now`.
    #[inline]
    fn start_next(&mut self, now: Instant) {
        if let Some(waiting) = self.reserved.as_mut().and_then(|class| class.pop()) {
            return self.start_reserved(now, waiting);
        }
        let next = if self.retired.is_empty() { self.queue.dequeue(now) } else { self.next_of_all(now) };
        self.busy = next.is_some();
        let Some(Departure { packet: slot, size, arrived, marked }) = next else { return };
        self.serializer.send(now, Bytes::new(u64::from(size)));
        let length = self.frames.length(slot);
        if marked {
            self.frames.get_mut(slot).set_ce();
            self.stats.marked.add(length as u32);
            self.flows.mark(self.frames.flow(slot), length);
        }
        self.stats.depart(self.frames.hint(slot), length, now - arrived);
        self.flows.depart(self.frames.flow(slot), length, now - arrived);
        self.outbox.push_back((slot, now));
    }

    /// Starts the transmission of a reserved frame.
    fn start_reserved(&mut self, now: Instant, Waiting { slot, size, arrived }: Waiting) {
        self.busy = true;
        self.serializer.send(now, Bytes::new(u64::from(size)));
        self.stats.reserved.depart(self.frames.length(slot), now - arrived);
        self.flows.depart(self.frames.flow(slot), self.frames.length(slot), now - arrived);
        self.outbox.push_back((slot, now));
    }

    /// Dequeues the next frame while there are retired queues.
    #[cold]
    #[inline(never)]
    fn next_of_all(&mut self, now: Instant) -> Option<Departure<Slot>> {
        while let Some(oldest) = self.retired.front_mut() {
            let next = oldest.dequeue(now);
            if next.is_some() {
                return next;
            }
            // Frames that it has shed have left its backlog, but are still stored here.
            self.drop_shed();
            self.retired.pop_front();
        }
        self.queue.dequeue(now)
    }

    /// Drops the frames that the queue had stored and has shed since.
    #[inline]
    fn drop_shed(&mut self) {
        while let Some(shed) = self.shed() {
            let slot = shed.packet;
            self.stats.drop_queued(shed.reason.into(), self.frames.hint(slot), self.frames.length(slot));
            self.flows.drop_frame(self.frames.flow(slot), self.frames.length(slot));
            self.frames.release(slot);
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

    /// Returns whether the outbox is full, so that no further transmission may start.
    #[inline]
    fn is_held(&self) -> bool {
        self.outbox.len() >= OUTBOX
    }

    /// Returns the time at which the next transmission is due; [`Instant::FAR_FUTURE`] if the link is idle or held by the
    /// port.
    #[inline]
    pub fn deadline(&self) -> Instant {
        if self.busy && !self.is_held() { self.serializer.free_at() } else { Instant::FAR_FUTURE }
    }

    /// Returns the frames whose transmission has started and that the port has not accepted yet, in order.
    pub fn departed(&self) -> impl Iterator<Item = &[u8]> {
        self.outbox.iter().map(|&(slot, _)| self.frames.bytes(slot))
    }

    /// Sends these frames by a port. Frames that it does not accept now are offered again at the next call.
    ///
    /// # Errors
    /// When the port has failed.
    #[inline]
    pub fn send<P: Port>(&mut self, port: &mut P) -> Result<(), P::Error> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        let Self { outbox, frames, settled, .. } = self;
        let mut departed = outbox.iter().map(|&(slot, _)| frames.bytes(slot));
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

    /// Removes the first frame of the outbox, which the port has accepted or lost.
    fn settle(&mut self, now: Instant, sent: bool) {
        let (slot, due) = self.outbox.pop_front().expect("a port reports only frames that it was given");
        let length = self.frames.length(slot);
        if sent {
            self.stats.hand_over(length, now.saturating_since(due));
        } else {
            self.stats.lose(Loss::Unsent, length);
        }
        self.frames.release(slot);
    }

    /// Sets the link's rate, which must not be zero. The rest of a frame that is on the link continues at the new rate. No frame is lost.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.advance(now);
        self.serializer.set_rate(self.clock, rate);
        let longest = rate.transmission_time(Bytes::new(self.params.largest_frame.into()));
        self.serializer.free_by(self.clock.saturating_add(longest.max(self.params.burst)));
        self.queue.set_rate(self.clock, rate);
        self.retired.iter_mut().for_each(|queue| queue.set_rate(self.clock, rate));
        self.params.queue.rate = rate;
    }

    /// Replaces the queue, including its rate, for the frames that arrive from now on. The old queue retires. No frame is
    /// lost, judged twice or overtaken by a later one, unless too many queues retire at a time. If only the rate differs, the
    /// queue stays.
    ///
    /// # Errors
    /// When the queue cannot be built or its rate is out of range; then nothing has changed.
    pub fn set_queue(&mut self, now: Instant, spec: QueueSpec) -> Result<(), ParameterError> {
        let new = build(&spec)?;
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
        if self.retired.len() > RETIRED {
            self.drop_oldest();
        }
        self.params.queue = spec;
        Ok(())
    }

    /// Drops the frames of the oldest retired queue.
    fn drop_oldest(&mut self) {
        self.drop_shed();
        let Some(mut oldest) = self.retired.pop_front() else { return };
        let Self { frames, stats, clock, .. } = self;
        oldest.reset(*clock, &mut |slot| {
            stats.drop_queued(Loss::Overflow, frames.hint(slot), frames.length(slot));
            frames.release(slot);
        });
    }

    /// Reconfigures the shaper from the next frame on: replaces the queue as [`Shaper::set_queue`] does, and the overhead, the
    /// tables and the burst. The largest frame, the salt and the memory stay, because the port, the flows and the frames stay.
    /// Reservations stay, too, even if they are more than a new rate carries; then no further one is admitted.
    ///
    /// # Errors
    /// When the queue cannot be built or its rate is out of range; then nothing has changed.
    pub fn reconfigure(&mut self, now: Instant, params: ShaperParams) -> Result<(), ParameterError> {
        let ShaperParams { queue, overhead, hints, remark, burst, host_prefix, .. } = params;
        self.set_queue(now, queue)?;
        if let Some(class) = self.reserved.as_mut().filter(|_| overhead != self.params.overhead) {
            class.set_overhead(overhead);
        }
        self.params = ShaperParams { overhead, hints, remark, burst, host_prefix, ..self.params.clone() };
        Ok(())
    }

    /// Sets the hints of code points from the next frame on.
    pub fn set_hints(&mut self, hints: HintTable) {
        self.params.hints = hints;
    }

    /// Sets the new code points of outgoing frames from the next frame on.
    pub fn set_remark(&mut self, remark: RemarkTable) {
        self.params.remark = remark;
    }

    /// Reserves for the packets of these filters, from the next frame on. The token bucket is full at first.
    ///
    /// # Errors
    /// When a value is not allowed, the number or a filter is taken, or the link has too little left. Then nothing has changed.
    pub fn reserve(
        &mut self,
        id: ReservationId,
        bucket: TrafficSpec,
        filters: &[FlowSelector],
    ) -> Result<(), ReservationError> {
        let (limit, salt, link) = (self.params.reservations, self.params.salt, self.link());
        let class = self.reserved.get_or_insert_with(|| Box::new(ReservedClass::new(limit, salt)));
        class.add(&link, id, bucket, filters)
    }

    /// Changes the token bucket of a reservation from `now` on. Its tokens stay, as far as they fit.
    ///
    /// # Errors
    /// When a value is not allowed, there is no such reservation, or the link has too little left. Then nothing has changed.
    pub fn change_reservation(
        &mut self,
        now: Instant,
        id: ReservationId,
        bucket: TrafficSpec,
    ) -> Result<(), ReservationError> {
        let link = self.link();
        self.class(id)?.change(now, &link, id, bucket)
    }

    /// Lets the packets of a further filter use a reservation.
    ///
    /// # Errors
    /// When there is no such reservation, or the filter is taken. Then nothing has changed.
    pub fn add_filter(&mut self, id: ReservationId, filter: FlowSelector) -> Result<(), ReservationError> {
        self.class(id)?.add_filter(id, filter)
    }

    /// Removes a filter from a reservation, which stays even if it has no other filter.
    ///
    /// # Errors
    /// When the reservation or its filter is not there.
    pub fn remove_filter(
        &mut self,
        id: ReservationId,
        filter: &FlowSelector,
    ) -> Result<(), ReservationError> {
        self.class(id)?.remove_filter(id, filter)
    }

    /// Ends a reservation. Its frames that wait are sent.
    ///
    /// # Errors
    /// When there is no such reservation.
    pub fn end_reservation(&mut self, id: ReservationId) -> Result<(), ReservationError> {
        self.class(id)?.remove(id)
    }

    /// Ends up to `most` reservations of an owner. Returns whether none is left.
    pub fn end_owner(&mut self, owner: u64, most: usize) -> bool {
        let Some(class) = &mut self.reserved else { return true };
        for _ in 0..most {
            let Some(id) = class.first_of(owner) else { return true };
            class.remove(id).expect("it is among them");
        }
        class.first_of(owner).is_none()
    }

    /// Returns the reservations that follow `after` in the order of their numbers, or all.
    pub fn reservations(&self, after: Option<ReservationId>) -> impl Iterator<Item = CountedReservation> {
        self.reserved.iter().flat_map(move |class| class.list(after))
    }

    /// Returns the number of reservations.
    pub fn reservation_count(&self) -> usize {
        self.reserved.as_ref().map_or(0, |class| class.len())
    }

    /// Returns the part of the link's rate that is reserved, with overhead.
    pub fn reserved_rate(&self) -> Rate {
        self.reserved.as_ref().map_or(Rate::ZERO, |class| class.rate())
    }

    /// Returns the number of frames that wait in the reserved class.
    pub fn reserved_waiting(&self) -> usize {
        self.reserved.as_ref().map_or(0, |class| class.waiting())
    }

    fn class(&mut self, id: ReservationId) -> Result<&mut ReservedClass, ReservationError> {
        self.reserved.as_deref_mut().ok_or(ReservationError::Unknown(id.number))
    }

    const fn link(&self) -> Link {
        Link {
            rate: self.params.queue.rate,
            overhead: self.params.overhead,
            largest_packet: self.params.largest_packet,
        }
    }

    /// Returns the current configuration.
    pub const fn params(&self) -> &ShaperParams {
        &self.params
    }

    /// Returns the backlog of the queue and of the retired queues, without reserved frames, in frames and in the link's bytes.
    pub fn backlog(&self) -> Backlog {
        self.retired.iter().fold(self.queue.backlog(), |sum, queue| {
            let Backlog { packets, bytes } = queue.backlog();
            Backlog { packets: sum.packets + packets, bytes: sum.bytes + bytes }
        })
    }

    /// Returns the number of retired queues that still hold frames.
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Returns the number of frames that have arrived and have neither been sent nor lost.
    pub const fn queued(&self) -> usize {
        self.frames.stored()
    }

    /// Returns the drop probability of the AQM of the current queue as of the last frame.
    pub fn probability(&self) -> Option<Probability> {
        self.queue.probability()
    }

    /// Returns further values of the current queue.
    pub fn readings(&self) -> Readings {
        self.queue.readings()
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &ShaperStats {
        &self.stats
    }

    /// Returns the counters of the flows that send most.
    pub const fn flows(&self) -> &TopFlows {
        &self.flows
    }

    /// Returns the latest time that the queue has seen.
    pub const fn clock(&self) -> Instant {
        self.clock
    }
}

/// Builds a queue for a link whose rate is in range.
pub(crate) fn build(spec: &QueueSpec) -> Result<AnyQueue<Slot>, ParameterError> {
    check_rate(spec.rate)?;
    spec.build()
}
