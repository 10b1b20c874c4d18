//! A wire: a link with a drop-tail queue, as arithmetic.
//!
//! A FIFO's future is known when a packet arrives: it starts when the packet before it has left. So a packet is
//! put through in one step, with no event for its departure, and this is exact: the same times, drops and backlog
//! as an event at each departure would give. (An AQM's queue cannot be folded this way: it reorders, or decides at
//! departure.)

use crate::measure::{BacklogMeter, Window};
use cutline_aqm::Limit;
use cutline_units::{Bytes, Duration, Histogram, Instant, Line, Pace, Rate};
use std::collections::VecDeque;

/// What passed a link, or did not, within the measuring window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets that came to the queue.
    pub arrived: u64,
    /// Of these, dropped.
    pub dropped: u64,
    /// Of the dropped, those for which the queue was full.
    pub overflowed: u64,
    /// Of these, marked.
    pub marked: u64,
    /// Packets whose sending began.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// How long the link was sending.
    pub busy: Duration,
}

impl LinkCounts {
    /// A packet is sent from `starts` to `departs`.
    #[inline]
    pub(crate) fn sent(&mut self, window: Window, starts: Instant, departs: Instant, size: u32) {
        if window.contains(starts) {
            self.sent += 1;
            self.sent_bytes += u64::from(size);
        }
        self.busy += window.overlap(starts, departs);
    }
}

/// What wires have in common: in a large network thousands are alike.
#[derive(Clone, Debug)]
pub(crate) struct WireClass {
    pace: Pace,
    delay: Duration,
    limit: Limit,
    /// What was worked out for the last small and for the last large size: acknowledgements and data.
    known: [Transmission; 2],
}

/// How long a size takes on an idle wire: nanoseconds, and what is left over of the last.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    size: u32,
    ns: u64,
    remainder: u64,
}

impl WireClass {
    pub(crate) fn new(rate: Rate, delay: Duration, limit: Limit) -> Self {
        Self { pace: Pace::new(rate), delay, limit, known: [Transmission::default(); 2] }
    }

    /// Whether it is the class of such wires.
    pub(crate) fn is(&self, rate: Rate, delay: Duration, limit: Limit) -> bool {
        (self.pace.rate(), self.delay, self.limit) == (rate, delay, limit)
    }

    #[inline]
    fn transmission(&mut self, size: u32) -> Transmission {
        const LARGE: u32 = 256;
        let known = &mut self.known[usize::from(size >= LARGE)];
        if known.size != size {
            let (ns, remainder) = self.pace.divide(Pace::bit_nanos(Bytes::new(u64::from(size))));
            *known = Transmission { size, ns, remainder };
        }
        *known
    }
}

/// A link with a drop-tail queue; see the module's text. One cache line: a large network has four of them a flow,
/// and each is touched once a packet.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Wire {
    line: Line,
    /// Its class, by the owner's count.
    pub(crate) class: u32,
    /// Without those that found no room.
    arrived: u64,
    sent: u64,
    sent_bytes: u64,
    busy: Duration,
    /// Made when a packet first has to wait: most wires of a large network never queue.
    queue: Option<Box<WireQueue>>,
}

const _: () = assert!(size_of::<Wire>() == 64, "a wire is one cache line");

/// The queue of a wire: when each waiting packet will start, and what there is to measure.
#[derive(Clone, Debug)]
pub(crate) struct WireQueue {
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
    /// Packets that found no room, within the measuring window.
    dropped: u64,
    pub(crate) meter: BacklogMeter,
    pub(crate) waits: Histogram,
}

/// How a packet got over a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// How long it waited in the queue.
    pub(crate) waited: Duration,
    /// When its last bit is at the other end.
    pub(crate) arrives: Instant,
}

impl Wire {
    pub(crate) fn new(class: u32) -> Self {
        Self {
            line: Line::default(),
            class,
            arrived: 0,
            sent: 0,
            sent_bytes: 0,
            busy: Duration::ZERO,
            queue: None,
        }
    }

    /// A packet of `size` bytes comes at `now`, no earlier than the one before; `None` when there is no room.
    /// `class` is this wire's.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        class: &mut WireClass,
        now: Instant,
        size: u32,
        window: Window,
    ) -> Option<Passage> {
        if self.line.free_at() >= now {
            return self.offer_busy(class, now, size, window);
        }
        let Transmission { ns, remainder, .. } = class.transmission(size);
        let departs = now + Duration::from_nanos(ns);
        self.line = Line::new(departs, remainder);
        self.count(now, now, departs, size, window);
        Some(Passage { waited: Duration::ZERO, arrives: departs + class.delay })
    }

    /// A packet comes while another one is sent, or just when its last bit leaves: then it need not wait, but takes
    /// over what is left of a nanosecond.
    #[cold]
    fn offer_busy(&mut self, class: &WireClass, now: Instant, size: u32, window: Window) -> Option<Passage> {
        let starts = self.line.free_at();
        if starts > now {
            let queue = self.queue.get_or_insert_with(|| Box::new(WireQueue::new(window)));
            if !queue.admit(class.limit, now, starts, size, window) {
                return None;
            }
        }
        let departs = self.line.send(now, Bytes::new(u64::from(size)), class.pace);
        self.count(now, starts, departs, size, window);
        Some(Passage { waited: starts - now, arrives: departs + class.delay })
    }

    #[inline]
    fn count(&mut self, now: Instant, starts: Instant, departs: Instant, size: u32, window: Window) {
        if !window.covers(now, departs) {
            self.count_at_edge(now, starts, departs, size, window);
            return;
        }
        self.arrived += 1;
        self.sent += 1;
        self.sent_bytes += u64::from(size);
        self.busy += departs - starts;
    }

    /// Counts a packet that came before the window, or leaves after it.
    #[cold]
    fn count_at_edge(&mut self, now: Instant, starts: Instant, departs: Instant, size: u32, window: Window) {
        self.arrived += u64::from(window.contains(now));
        if window.contains(starts) {
            self.sent += 1;
            self.sent_bytes += u64::from(size);
        }
        self.busy += window.overlap(starts, departs);
    }

    /// What passed, within the measuring window.
    pub(crate) fn counts(&self) -> LinkCounts {
        let dropped = self.queue.as_ref().map_or(0, |queue| queue.dropped);
        LinkCounts {
            arrived: self.arrived + dropped,
            dropped,
            overflowed: dropped,
            marked: 0,
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            busy: self.busy,
        }
    }

    /// The queue's measures, settled at `end`; `None` when no packet ever waited.
    pub(crate) fn finish(&mut self, end: Instant) -> Option<&WireQueue> {
        let queue = self.queue.as_deref_mut()?;
        queue.release(end);
        queue.meter.set(end, queue.waiting.len() as u32, queue.bytes);
        Some(queue)
    }
}

impl WireQueue {
    fn new(window: Window) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            meter: BacklogMeter::new(window),
            waits: Histogram::default(),
        }
    }

    /// A packet that would start at `starts` waits, if there is room.
    fn admit(&mut self, limit: Limit, now: Instant, starts: Instant, size: u32, window: Window) -> bool {
        self.release(now);
        let room = match limit {
            Limit::Packets(most) => self.waiting.len() < most as usize,
            Limit::Bytes(most) => self.bytes + u64::from(size) <= most,
        };
        if room {
            self.waiting.push_back((starts, size));
            self.bytes += u64::from(size);
            self.meter.set(now, self.waiting.len() as u32, self.bytes);
            if window.contains(now) {
                self.waits.record(starts - now);
            }
        } else {
            self.dropped += u64::from(window.contains(now));
        }
        room
    }

    /// Lets go of the packets that have started by `now`.
    fn release(&mut self, now: Instant) {
        while let Some(&(starts, size)) = self.waiting.front()
            && starts <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(size);
            self.meter.set(starts, self.waiting.len() as u32, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALWAYS: Window = Window { from: Instant::ZERO, until: Instant::FAR_FUTURE };
    /// 8 Mbit/s: a microsecond a byte.
    const RATE: Rate = Rate::from_mbps(8);

    /// A wire with its class.
    struct Alone(Wire, WireClass);

    impl Alone {
        fn offer(&mut self, now: Instant, size: u32) -> Option<Passage> {
            self.0.offer(&mut self.1, now, size, ALWAYS)
        }
    }

    fn wire(limit: Limit) -> Alone {
        Alone(Wire::new(0), WireClass::new(RATE, Duration::from_millis(1), limit))
    }

    fn us(n: u64) -> Instant {
        Instant::from_nanos(n * 1000)
    }

    #[test]
    fn a_packet_waits_for_the_one_before_it() {
        let mut wire = wire(Limit::Packets(10));
        assert_eq!(wire.offer(us(0), 100).unwrap(), Passage { waited: Duration::ZERO, arrives: us(1100) });
        let second = wire.offer(us(40), 100).unwrap();
        assert_eq!(second, Passage { waited: Duration::from_micros(60), arrives: us(1200) });
    }

    #[test]
    fn a_full_queue_drops_and_the_packet_in_service_does_not_count() {
        let mut wire = wire(Limit::Packets(1));
        assert!(wire.offer(us(0), 100).is_some(), "in service");
        assert!(wire.offer(us(1), 100).is_some(), "waiting");
        assert!(wire.offer(us(2), 100).is_none(), "no room");
        assert!(wire.offer(us(100), 100).is_some(), "the waiting one has started");
        let busy = Duration::from_micros(300);
        assert_eq!(
            wire.0.counts(),
            LinkCounts { arrived: 4, dropped: 1, overflowed: 1, marked: 0, sent: 3, sent_bytes: 300, busy }
        );
    }

    proptest! {
        /// Against a queue simulated step by step, a microsecond at a time.
        #[test]
        fn folding_is_exact(arrivals in prop::collection::vec((0u64..300, 1u32..200), 1..60), limit in 1u32..5) {
            let mut wire = wire(Limit::Packets(limit));
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
                passages.push(wire.offer(us(now), size));
                run(now, &mut queue, &mut expected);
            }
            run(u64::MAX, &mut queue, &mut expected);
            let folded: Vec<_> = passages.iter().map(|p| p.map(|p| (p.arrives.as_nanos() - 1_000_000) / 1000)).collect();
            prop_assert_eq!(folded, expected);
        }
    }
}
