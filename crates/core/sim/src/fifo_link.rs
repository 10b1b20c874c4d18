//! A FIFO link: a link with a drop-tail queue, simulated by arithmetic instead of events.
//!
//! The departure time of a packet in a FIFO queue is known when the packet arrives: its transmission starts when the
//! packet before it has left. A packet therefore crosses the link in one step, without an event for its departure. The
//! result is exact: times, drops and backlog are the same as with an event per departure. The queue of an AQM cannot be
//! folded in this way, because it reorders packets or decides at their departure.
//!
//! A large network has four FIFO links for each flow, which most packets find idle, and most packets of a link have the same size. So a
//! link counts those of one small and of one large size in four bytes. All other packets are counted beside its queue.

use crate::measure::{BacklogMeter, SmallBacklogMeter, Window};
use crate::places::NONE;
use crate::waiting::{WaitingList, WaitingPackets};
use cutline_aqm::Limit;
use cutline_units::{Bytes, Duration, Histogram, HistogramShape, Instant, Line, Pace, Rate};

/// Packets that a link received, dropped, marked and sent within the measuring window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets that arrived at the queue.
    pub arrived: u64,
    /// Packets that were dropped, for any reason.
    pub dropped: u64,
    /// Packets that were dropped because the queue was full.
    pub overflowed: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets whose transmission started.
    pub sent: u64,
    /// Bytes of the packets whose transmission started.
    pub sent_bytes: u64,
    /// Time during which the link was transmitting.
    pub busy: Duration,
}

impl LinkCounts {
    /// Counts a packet that is transmitted from `starts` to `departs`.
    #[inline]
    pub(crate) fn sent(&mut self, window: Window, starts: Instant, departs: Instant, size: u32) {
        if window.covers(starts, departs) {
            self.sent += 1;
            self.sent_bytes += u64::from(size);
            self.busy += departs - starts;
        } else {
            self.sent_at_edge(window, starts, departs, size);
        }
    }

    /// Counts a packet that is not transmitted within the window, or only in part.
    #[cold]
    #[inline(never)]
    fn sent_at_edge(&mut self, window: Window, starts: Instant, departs: Instant, size: u32) {
        if window.contains(starts) {
            self.sent += 1;
            self.sent_bytes += u64::from(size);
        }
        self.busy += window.overlap(starts, departs);
    }
}

/// The parameters that equal links share. A large network has thousands of equal links.
#[derive(Clone, Debug)]
pub(crate) struct FifoClass {
    pace: Pace,
    delay: Duration,
    limit: Limit,
    /// The transmission times of the last small and of the last large size, for acknowledgements and data.
    known: [Transmission; 2],
}

/// The transmission time of a packet size on an idle link: whole nanoseconds, and the remainder of the division.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    size: u32,
    /// The number of the size, as the upper bits of a tally; [`OTHER`] without a number.
    number: u16,
    ns: u64,
    remainder: u64,
}

/// The first sizes of packets, by whose numbers FIFO links count. Most networks have few sizes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PacketSizes {
    sizes: Vec<u32>,
}

/// The number of sizes that have a number.
const NUMBERS: u16 = 15;
/// Stands for all other sizes. It differs from every tally by at least [`MOST`], also from [`NOTHING`].
const OTHER: u16 = NOTHING | MOST;

impl PacketSizes {
    /// Returns the number of a size, as the upper bits of a tally.
    fn number(&mut self, size: u32) -> u16 {
        let place = self.sizes.iter().position(|known| *known == size).unwrap_or(self.sizes.len());
        if place == usize::from(NUMBERS) {
            return OTHER;
        }
        if place == self.sizes.len() {
            self.sizes.push(size);
        }
        (place as u16) << COUNT_BITS
    }
}

/// Counts of packets of one small and of one large size: the number of the size in the upper four bits, and the count in the others.
#[derive(Clone, Copy, Debug)]
struct Tally([u16; 2]);

/// The bits of a count.
const COUNT_BITS: u16 = 12;
/// The largest count.
const MOST: u16 = (1 << COUNT_BITS) - 1;
/// The tally before the first packet. No size has its number.
const NOTHING: u16 = NUMBERS << COUNT_BITS;

impl Tally {
    /// Counts a packet of the size with this number. Returns false, and counts nothing, if the tally is that of another size, or full.
    #[inline]
    fn count(&mut self, part: usize, number: u16) -> bool {
        let tally = &mut self.0[part];
        // Without the number this is the count, and more than that if the number is another one.
        if *tally ^ number >= MOST {
            return false;
        }
        *tally += 1;
        true
    }
}

/// Returns the part of a tally for packets of this size.
#[inline]
fn part_of(size: u32) -> usize {
    const LARGE: u32 = 256;
    usize::from(size >= LARGE)
}

impl FifoClass {
    pub(crate) fn new(rate: Rate, delay: Duration, limit: Limit) -> Self {
        let nothing = Transmission { size: 0, number: OTHER, ns: 0, remainder: 0 };
        Self { pace: Pace::new(rate), delay, limit, known: [nothing; 2] }
    }

    /// Returns whether links with these parameters belong to this class.
    pub(crate) fn is(&self, rate: Rate, delay: Duration, limit: Limit) -> bool {
        (self.pace.rate(), self.delay, self.limit) == (rate, delay, limit)
    }

    /// Returns the transmission of a packet of the small sizes (part 0) or of the large ones (1).
    #[inline]
    fn transmission(&mut self, part: usize, size: u32, sizes: &mut PacketSizes) -> Transmission {
        let known = &mut self.known[part];
        if known.size != size {
            let (ns, remainder) = self.pace.divide(Pace::bit_nanos(Bytes::new(u64::from(size))));
            *known = Transmission { size, number: sizes.number(size), ns, remainder };
        }
        *known
    }
}

/// A link with a drop-tail queue; see the module's documentation. Two of them fit in one cache line, because a large network has
/// four of them per flow and each packet touches each of them once.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(crate) struct FifoLink {
    line: Line,
    /// Index of the link's class. While packets of the queue have places in the store, [`WAITING`] is added, which makes the index invalid:
    /// so the check of its bounds finds such links, and other links need no further check.
    pub(crate) class: u32,
    /// Packets that found the link idle, arrived and departed within the window, and have the size of the tally.
    tally: Tally,
    /// Allocated when a packet first has to wait, or has another size, because most links of a large network never queue.
    queue: Option<Box<FifoQueue>>,
}

/// Added to the class of a link whose waiting packets have places in the store.
const WAITING: u32 = 1 << 31;

/// Returns a link's class, with or without the mark of waiting packets.
fn class_of(class: u32, queue: WaitingList) -> u32 {
    if queue.is_empty() { class & !WAITING } else { class | WAITING }
}

const _: () = assert!(size_of::<FifoLink>() == 32, "a FIFO link is half a cache line");

/// Packets that a FIFO link received and did not drop.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    sent: u64,
    sent_bytes: u64,
    busy: Duration,
    /// The number of packets that arrived within the window, less those whose transmission started within it.
    unstarted: i32,
}

/// The same of the last packets, as long as each number fits in 32 bits. They arrived and started within the window.
#[derive(Clone, Copy, Debug, Default)]
struct LastPassed {
    sent: u32,
    sent_bytes: u32,
    busy_ns: u32,
}

impl Passed {
    /// Returns the same as the last packets; `None` if a number does not fit.
    fn as_last(&self) -> Option<LastPassed> {
        let sent = u32::try_from(self.sent).ok()?;
        let sent_bytes = u32::try_from(self.sent_bytes).ok()?;
        let busy_ns = u32::try_from(self.busy.as_nanos()).ok()?;
        Some(LastPassed { sent, sent_bytes, busy_ns })
    }

    /// Returns these packets together with the last ones.
    fn with_last(self, last: LastPassed) -> Self {
        Self {
            sent: self.sent + u64::from(last.sent),
            sent_bytes: self.sent_bytes + u64::from(last.sent_bytes),
            busy: self.busy + Duration::from_nanos(u64::from(last.busy_ns)),
            unstarted: self.unstarted,
        }
    }

    /// Counts packets that arrived and departed within the window, and were each transmitted for this time.
    #[inline]
    fn add(&mut self, packets: u64, size: u32, busy: Duration) {
        self.sent += packets;
        self.sent_bytes += packets * u64::from(size);
        self.busy += busy * packets;
    }
}

/// The queue of a FIFO link: the waiting packets, whose number the meter has, and the measures of the queue and of packets that are not
/// in the link's tally. Numbers are small, and moved when they no longer fit.
#[derive(Clone, Debug)]
pub(crate) struct FifoQueue {
    last_passed: LastPassed,
    waiting: WaitingList,
    meter: SmallBacklogMeter,
    /// The sum of the last waits, as long as it fits in 32 bits.
    waited_ns: u32,
    waits: HistogramShape,
    /// `None` for most links.
    large: Option<Box<LargeNumbers>>,
}

// A flow of a large network has two of them or more. With its header, an allocation has 128 bytes.
const _: () = assert!(
    size_of::<FifoQueue>() <= 76 + size_of::<SmallBacklogMeter>(),
    "the queue of a FIFO link has 76 bytes beside its meter"
);

/// The numbers that have no room in a queue of a FIFO link.
#[derive(Clone, Debug, Default)]
struct LargeNumbers {
    /// Packets before those of [`FifoQueue::last_passed`], and packets at the ends of the window.
    passed: Passed,
    /// The sum of the waits before those of [`FifoQueue::waited_ns`].
    waited: Duration,
    /// In place of the small one.
    meter: Option<Box<BacklogMeter>>,
}

/// The measures of a queue in which packets have waited.
pub(crate) struct QueueMeasures {
    pub(crate) meter: BacklogMeter,
    pub(crate) waits: Histogram,
}

/// The times of a packet's passage over a FIFO link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Time that the packet waited in the queue.
    pub(crate) waited: Duration,
    /// Time at which the packet's last bit reaches the other end.
    pub(crate) arrives: Instant,
}

impl FifoLink {
    pub(crate) fn new(class: u32) -> Self {
        Self { line: Line::default(), class, tally: Tally([NOTHING; 2]), queue: None }
    }

    /// Returns the index of the link's class.
    pub(crate) const fn class_index(&self) -> usize {
        (self.class & !WAITING) as usize
    }

    /// Returns whether packets of the queue have places in the store.
    #[inline]
    pub(crate) const fn has_waiting(&self) -> bool {
        self.class >= WAITING
    }

    /// Returns the place of the last packet in the queue, for reading ahead; [`NONE`] without a queue.
    #[inline]
    pub(crate) fn last_waiting(&self) -> u32 {
        self.queue.as_ref().map_or(NONE, |queue| queue.waiting.last())
    }

    /// Passes a packet as most packets are: one that arrives at the idle link and has the last size of its class. Returns its arrival at the
    /// other end; `None`, without any change, for all others, and for those at the ends of the window. `class` must be the class of this link.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, a packet in transit stays in registers")]
    pub(crate) fn pass(
        &mut self,
        class: &FifoClass,
        now: Instant,
        size: u32,
        window: Window,
    ) -> Option<Instant> {
        let part = part_of(size);
        let known = &class.known[part];
        if self.line.free_at() >= now || known.size != size {
            return None;
        }
        let departs = now + Duration::from_nanos(known.ns);
        let is_counted = if window.covers(now, departs) {
            self.tally.count(part, known.number)
        } else {
            // Before the window, nothing is counted.
            departs <= window.from
        };
        if !is_counted {
            return None;
        }
        self.line = Line::new(departs, known.remainder);
        Some(departs + class.delay)
    }

    /// Offers a packet of `size` bytes that arrives at `now`, which is not before the previous arrival. Returns `None` when
    /// the queue is full. `class` must be the class of this link, `waiting` the store of its packets, `sizes` those of the network.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        class: &mut FifoClass,
        waiting: &mut WaitingPackets,
        sizes: &mut PacketSizes,
        now: Instant,
        size: u32,
        window: Window,
    ) -> Option<Passage> {
        if self.line.free_at() >= now {
            return self.offer_busy(class, waiting, now, size, window);
        }
        let part = part_of(size);
        let transmission = class.transmission(part, size, sizes);
        let departs = now + Duration::from_nanos(transmission.ns);
        self.line = Line::new(departs, transmission.remainder);
        if !window.covers(now, departs) {
            self.count_at_edge(now, departs, size, window);
        } else if !self.tally.count(part, transmission.number) {
            self.count_apart(part, &transmission, window);
        }
        Some(Passage { waited: Duration::ZERO, arrives: departs + class.delay })
    }

    /// Counts a packet that found the link idle, and is transmitted before the window, after it or over one of its ends.
    #[cold]
    #[inline(never)]
    fn count_at_edge(&mut self, now: Instant, departs: Instant, size: u32, window: Window) {
        if window.contains(now) || !window.overlap(now, departs).is_zero() {
            let queue = self.queue.get_or_insert_with(|| Box::new(FifoQueue::new(window)));
            queue.count_at_edge(now, now, departs, size, window);
        }
    }

    /// Counts a packet that found the link idle, and is not counted by the tally: the first one, one of another size, or one for which
    /// there is no room.
    #[cold]
    #[inline(never)]
    fn count_apart(&mut self, part: usize, transmission: &Transmission, window: Window) {
        let Transmission { size, number, ns, .. } = *transmission;
        let (tally, busy) = (&mut self.tally.0[part], Duration::from_nanos(ns));
        if *tally == NOTHING && number != OTHER {
            *tally = number | 1;
            return;
        }
        let queue = self.queue.get_or_insert_with(|| Box::new(FifoQueue::new(window)));
        if *tally == (number | MOST) {
            // It is full.
            queue.pass(u64::from(MOST), size, busy);
            *tally -= MOST - 1;
        } else {
            queue.pass(1, size, busy);
        }
    }

    /// Handles a packet that arrives while another one is transmitted, or at the very time at which the other one's last
    /// bit leaves. In the latter case the packet does not wait, but inherits the remainder of a nanosecond.
    #[cold]
    fn offer_busy(
        &mut self,
        class: &FifoClass,
        waiting: &mut WaitingPackets,
        now: Instant,
        size: u32,
        window: Window,
    ) -> Option<Passage> {
        let starts = self.line.free_at();
        let queue = self.queue.get_or_insert_with(|| Box::new(FifoQueue::new(window)));
        if starts > now {
            let is_admitted = queue.admit(class.limit, waiting, now, starts, size, window);
            self.class = class_of(self.class, queue.waiting);
            if !is_admitted {
                return None;
            }
        }
        let departs = self.line.send(now, Bytes::new(u64::from(size)), class.pace);
        queue.count(now, starts, departs, size, window);
        Some(Passage { waited: starts - now, arrives: departs + class.delay })
    }

    /// Gives back the places of the waiting packets if the link is idle at `now`.
    pub(crate) fn release_if_idle(&mut self, waiting: &mut WaitingPackets, now: Instant, window: Window) {
        if let Some(queue) = &mut self.queue
            && self.line.free_at() < now
        {
            queue.release(waiting, now, window);
            self.class = class_of(self.class, queue.waiting);
        }
    }

    /// Returns whether a packet has ever arrived.
    pub(crate) fn is_used(&self) -> bool {
        self.line.free_at() > Instant::ZERO
    }

    /// Returns the counts within the measuring window. `class` must be the class of this link, `sizes` those of the network, and `dropped`
    /// the number of packets that found its queue full.
    pub(crate) fn counts(&self, class: &FifoClass, sizes: &PacketSizes, dropped: u64) -> LinkCounts {
        let mut passed = self.queue.as_deref().map_or_else(Passed::default, FifoQueue::passed);
        for tally in self.tally.0.iter().filter(|tally| **tally != NOTHING) {
            let size = sizes.sizes[usize::from(*tally >> COUNT_BITS)];
            let (ns, _) = class.pace.divide(Pace::bit_nanos(Bytes::new(u64::from(size))));
            passed.add(u64::from(*tally & MOST), size, Duration::from_nanos(ns));
        }
        let Passed { sent, sent_bytes, busy, unstarted } = passed;
        LinkCounts {
            arrived: sent.wrapping_add_signed(i64::from(unstarted)) + dropped,
            dropped,
            overflowed: dropped,
            marked: 0,
            sent,
            sent_bytes,
            busy,
        }
    }

    /// Removes the queue, and returns its measures at `end`; `None` when no packet ever waited.
    pub(crate) fn finish(
        &mut self,
        waiting: &mut WaitingPackets,
        end: Instant,
        window: Window,
    ) -> Option<QueueMeasures> {
        let mut queue = *self.queue.take()?;
        queue.release(waiting, end, window);
        if !queue.waiting.was_used() {
            return None;
        }
        let mut meter = queue.meter();
        meter.set(end, meter.packets(), meter.bytes(), window);
        let (packets, waited) = (queue.waits.count(), queue.waited());
        Some(QueueMeasures { meter, waits: queue.waits.into_histogram(packets, waited) })
    }
}

impl FifoQueue {
    fn new(window: Window) -> Self {
        Self {
            last_passed: LastPassed::default(),
            waiting: WaitingList::default(),
            meter: SmallBacklogMeter::new(window),
            waited_ns: 0,
            waits: HistogramShape::default(),
            large: None,
        }
    }

    /// Returns the packets that are not in the link's tally.
    fn passed(&self) -> Passed {
        let before = self.large.as_ref().map_or_else(Passed::default, |large| large.passed);
        before.with_last(self.last_passed)
    }

    /// Returns the sum of all waits.
    fn waited(&self) -> Duration {
        let before = self.large.as_ref().map_or(Duration::ZERO, |large| large.waited);
        before + Duration::from_nanos(u64::from(self.waited_ns))
    }

    /// Returns the meter of the waiting packets.
    #[inline]
    fn meter(&self) -> BacklogMeter {
        let large = self.large.as_ref().and_then(|large| large.meter.as_deref());
        large.copied().unwrap_or_else(|| self.meter.to_meter())
    }

    /// Returns the numbers of waiting packets and bytes.
    #[inline]
    fn backlog(&self) -> (u32, u64) {
        match self.large.as_deref() {
            Some(LargeNumbers { meter: Some(meter), .. }) => (meter.packets(), meter.bytes()),
            _ => self.meter.backlog(),
        }
    }

    /// Sets the numbers of waiting packets and bytes from `now` on.
    fn set_backlog(&mut self, now: Instant, packets: u32, bytes: u64, window: Window) {
        if let Some(LargeNumbers { meter: Some(meter), .. }) = self.large.as_deref_mut() {
            meter.set(now, packets, bytes, window);
            return;
        }
        if !self.meter.set(now, packets, bytes, window) {
            self.set_rare_backlog(now, packets, bytes, window);
        }
    }

    /// Sets numbers that the small meter does not set.
    #[cold]
    #[inline(never)]
    fn set_rare_backlog(&mut self, now: Instant, packets: u32, bytes: u64, window: Window) {
        let mut meter = self.meter.to_meter();
        meter.set(now, packets, bytes, window);
        if let Some(small) = meter.to_small() {
            self.meter = small;
        } else {
            self.large.get_or_insert_default().meter = Some(Box::new(meter));
        }
    }

    /// Records the wait of a packet.
    fn record_wait(&mut self, wait: Duration) {
        self.waits.record(wait);
        let sum = u64::from(self.waited_ns) + wait.as_nanos();
        if let Ok(sum) = u32::try_from(sum) {
            self.waited_ns = sum;
        } else {
            self.waited_ns = 0;
            self.large.get_or_insert_default().waited += Duration::from_nanos(sum);
        }
    }

    /// Counts packets that arrived and started within the window, and were each transmitted for this time within it.
    #[inline]
    fn pass(&mut self, packets: u64, size: u32, busy: Duration) {
        let mut last = Passed::default().with_last(self.last_passed);
        last.add(packets, size, busy);
        if let Some(last) = last.as_last() {
            self.last_passed = last;
        } else {
            self.pass_many(packets, size, busy);
        }
    }

    /// Counts packets with which a number of the last packets does not fit in 32 bits.
    #[cold]
    #[inline(never)]
    fn pass_many(&mut self, packets: u64, size: u32, busy: Duration) {
        let mut passed = self.passed();
        passed.add(packets, size, busy);
        self.last_passed = LastPassed::default();
        self.large.get_or_insert_default().passed = passed;
    }

    /// Counts a packet that arrives at `now` and is transmitted from `starts` to `departs`.
    #[inline]
    fn count(&mut self, now: Instant, starts: Instant, departs: Instant, size: u32, window: Window) {
        if !window.covers(now, departs) {
            self.count_at_edge(now, starts, departs, size, window);
            return;
        }
        self.pass(1, size, departs - starts);
    }

    /// Counts a packet that arrives before the window or departs after it.
    #[cold]
    fn count_at_edge(&mut self, now: Instant, starts: Instant, departs: Instant, size: u32, window: Window) {
        let (arrives, begins) = (window.contains(now), window.contains(starts));
        let busy = window.overlap(starts, departs);
        if arrives == begins && (begins || busy.is_zero()) {
            // Both in the window, or all of it outside.
            if begins {
                self.pass(1, size, busy);
            }
            return;
        }
        let passed = &mut self.large.get_or_insert_default().passed;
        passed.unstarted += i32::from(arrives) - i32::from(begins);
        passed.sent += u64::from(begins);
        passed.sent_bytes += if begins { u64::from(size) } else { 0 };
        passed.busy += busy;
    }

    /// Queues a packet whose transmission will start at `starts`. Returns false when the queue is full.
    fn admit(
        &mut self,
        limit: Limit,
        waiting: &mut WaitingPackets,
        now: Instant,
        starts: Instant,
        size: u32,
        window: Window,
    ) -> bool {
        self.release(waiting, now, window);
        let (packets, bytes) = self.backlog();
        let bytes = bytes + u64::from(size);
        let room = match limit {
            Limit::Packets(most) => packets < most,
            Limit::Bytes(most) => bytes <= most,
        };
        if room {
            waiting.push(&mut self.waiting, starts, size);
            self.set_backlog(now, packets + 1, bytes, window);
            if window.contains(now) {
                self.record_wait(starts - now);
            }
        }
        room
    }

    /// Releases the packets that have started by `now`.
    fn release(&mut self, waiting: &mut WaitingPackets, now: Instant, window: Window) {
        while let Some((starts, size)) = waiting.pop_started(&mut self.waiting, now) {
            let (packets, bytes) = self.backlog();
            self.set_backlog(starts, packets - 1, bytes - u64::from(size), window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::BacklogOutcome;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const ALWAYS: Window = Window { from: Instant::ZERO, until: Instant::FAR_FUTURE };
    /// 8 Mbit/s: a microsecond a byte.
    const RATE: Rate = Rate::from_mbps(8);

    /// A FIFO link, its class, its waiting packets, their sizes, and the number of packets dropped within the window.
    struct Alone(FifoLink, FifoClass, WaitingPackets, PacketSizes, u64);

    impl Alone {
        fn offer(&mut self, now: Instant, size: u32) -> Option<Passage> {
            self.offer_within(now, size, ALWAYS)
        }

        fn offer_within(&mut self, now: Instant, size: u32, window: Window) -> Option<Passage> {
            let passage = self.0.offer(&mut self.1, &mut self.2, &mut self.3, now, size, window);
            self.4 += u64::from(passage.is_none() && window.contains(now));
            passage
        }

        fn counts(&self) -> LinkCounts {
            self.0.counts(&self.1, &self.3, self.4)
        }
    }

    fn fifo_link(limit: Limit) -> Alone {
        let class = FifoClass::new(RATE, Duration::from_millis(1), limit);
        Alone(FifoLink::new(0), class, WaitingPackets::default(), PacketSizes::default(), 0)
    }

    fn us(n: u64) -> Instant {
        Instant::from_nanos(n * 1000)
    }

    #[test]
    fn a_packet_waits_for_the_one_before_it() {
        let mut fifo_link = fifo_link(Limit::Packets(10));
        assert_eq!(
            fifo_link.offer(us(0), 100).unwrap(),
            Passage { waited: Duration::ZERO, arrives: us(1100) }
        );
        let second = fifo_link.offer(us(40), 100).unwrap();
        assert_eq!(second, Passage { waited: Duration::from_micros(60), arrives: us(1200) });
    }

    #[test]
    fn a_full_queue_drops_and_the_packet_in_service_does_not_count() {
        let mut fifo_link = fifo_link(Limit::Packets(1));
        assert!(fifo_link.offer(us(0), 100).is_some(), "in service");
        assert!(fifo_link.offer(us(1), 100).is_some(), "waiting");
        assert!(fifo_link.offer(us(2), 100).is_none(), "no room");
        assert!(fifo_link.offer(us(100), 100).is_some(), "the waiting one has started");
        let busy = Duration::from_micros(300);
        assert_eq!(
            fifo_link.counts(),
            LinkCounts { arrived: 4, dropped: 1, overflowed: 1, marked: 0, sent: 3, sent_bytes: 300, busy }
        );
    }

    #[test]
    fn thousands_of_packets_of_one_size_need_no_queue_until_the_tally_is_full() {
        let mut fifo_link = fifo_link(Limit::Packets(10));
        let mut now = us(0);
        for packets in 1..=20_000_u64 {
            let size = if packets.is_multiple_of(2) { 1000 } else { 40 };
            now += Duration::from_micros(2000);
            assert_eq!(fifo_link.offer(now, size).unwrap().waited, Duration::ZERO);
            assert_eq!(fifo_link.0.queue.is_some(), packets > 2 * u64::from(MOST), "{packets} packets");
            let sent_bytes = packets / 2 * 1000 + packets.div_ceil(2) * 40;
            let (arrived, busy) = (packets, Duration::from_micros(sent_bytes));
            let expected = LinkCounts { arrived, sent: packets, sent_bytes, busy, ..LinkCounts::default() };
            assert_eq!(fifo_link.counts(), expected);
        }
        assert!(fifo_link.0.finish(&mut fifo_link.2, now, ALWAYS).is_none(), "no packet has waited");
    }

    #[test]
    fn sums_beyond_32_bits_are_exact() {
        let mut fifo_link = fifo_link(Limit::Packets(10));
        let mut sent_bytes = 0;
        // Packets of two seconds. The tally has those of one size.
        for packet in 0..5000 {
            let size = 2_000_000 + (packet % 2) as u32;
            assert!(fifo_link.offer(us(1 + packet * 3_000_000), size).is_some());
            sent_bytes += u64::from(size);
        }
        let queue = fifo_link.0.queue.as_ref().expect("it counts the packets of the other size");
        assert!(queue.passed().sent_bytes >> u32::BITS > 0 && queue.large.is_some());
        let busy = Duration::from_micros(sent_bytes);
        let expected = LinkCounts { arrived: 5000, sent: 5000, sent_bytes, busy, ..LinkCounts::default() };
        assert_eq!(fifo_link.counts(), expected);
    }

    #[test]
    fn a_long_queue_is_measured_exactly() {
        const PACKETS: u32 = 70_000;
        let window = Window { from: us(0), until: us(100_000) };
        let (mut fifo_link, mut meter) = (fifo_link(Limit::Packets(PACKETS)), BacklogMeter::new(window));
        for packets in 0..PACKETS {
            // The first one does not wait.
            assert!(fifo_link.offer_within(us(1), 1, window).is_some());
            meter.set(us(1), packets, u64::from(packets), window);
        }
        for packets in (0..PACKETS - 1).rev() {
            meter.set(us(u64::from(PACKETS - packets)), packets, u64::from(packets), window);
        }
        meter.set(us(90_000), 0, 0, window);
        let Alone(link, _, waiting, ..) = &mut fifo_link;
        let found = link.finish(waiting, us(90_000), window).expect("packets have waited");
        let [found_backlog, backlog] =
            [found.meter, meter].map(|meter| BacklogOutcome::from_meter(&meter, window));
        assert_eq!((found_backlog, backlog.max_packets), (backlog, PACKETS - 1));
        let sum = u64::from(PACKETS) * u64::from(PACKETS - 1) / 2;
        assert_eq!((found.waits.count(), found.waits.sum()), (69_999, Duration::from_micros(sum)));
    }

    proptest! {
        /// Against sums, with packets of many sizes that find the link idle or busy, in the window and around its ends.
        #[test]
        fn every_packet_is_counted_once(
            packets in prop::collection::vec((0u64..400, 0usize..20), 1..200),
            from in 0u64..20_000,
            length in 1u64..20_000,
        ) {
            let window = Window { from: us(from), until: us(from + length) };
            let mut fifo_link = fifo_link(Limit::Packets(1000));
            let (mut now, mut free) = (us(0), us(0));
            let mut expected = LinkCounts::default();
            for (gap, number) in packets {
                let size = [40, 52, 1000, 1500].get(number).copied().unwrap_or(30 + 37 * number as u32);
                now += Duration::from_micros(gap);
                let starts = free.max(now);
                free = starts + Duration::from_micros(u64::from(size));
                fifo_link.offer_within(now, size, window).unwrap();
                expected.arrived += u64::from(window.contains(now));
                expected.sent(window, starts, free, size);
            }
            prop_assert_eq!(fifo_link.counts(), expected);
        }

        /// Against a queue simulated step by step, a microsecond at a time.
        #[test]
        fn folding_is_exact(arrivals in prop::collection::vec((0u64..300, 1u32..200), 1..60), limit in 1u32..5) {
            let mut fifo_link = fifo_link(Limit::Packets(limit));
            let mut now = 0;
            let mut queue: VecDeque<(usize, u32)> = VecDeque::new();
            let (mut in_service, mut clock) = (None::<(usize, u64)>, 0u64);
            let mut expected = vec![None; arrivals.len()];
            let mut passages = Vec::new();
            let mut run = |until: u64, queue: &mut VecDeque<(usize, u32)>, expected: &mut Vec<Option<u64>>| {
                while if until == u64::MAX { in_service.is_some() || !queue.is_empty() } else { clock < until } {
                    if let Some((packet, ends)) = in_service && ends == clock { expected[packet] = Some(ends); in_service = None; }
                    if in_service.is_none() && let Some((packet, size)) = queue.pop_front() {
                        in_service = Some((packet, clock + u64::from(size)));
                    }
                    clock += 1;
                }
                // What ends or starts at this very moment does so before an arrival.
                if let Some((packet, ends)) = in_service && ends == clock { expected[packet] = Some(ends); in_service = None; }
                if in_service.is_none() && let Some((packet, size)) = queue.pop_front() {
                    in_service = Some((packet, clock + u64::from(size)));
                }
                in_service.is_some()
            };
            for (packet, &(gap, size)) in arrivals.iter().enumerate() {
                now += gap;
                let busy = run(now, &mut queue, &mut expected);
                if !busy || queue.len() < limit as usize { queue.push_back((packet, size)); }
                passages.push(fifo_link.offer(us(now), size));
                run(now, &mut queue, &mut expected);
            }
            run(u64::MAX, &mut queue, &mut expected);
            let folded: Vec<_> = passages.iter().map(|p| p.map(|p| (p.arrives.as_nanos() - 1_000_000) / 1000)).collect();
            prop_assert_eq!(folded, expected);
        }
    }
}
