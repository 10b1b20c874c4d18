//! A served link: a queue of the `aqm` crate with a transmitter behind it, simulated packet by packet.

use crate::calendar::Handle;
use crate::measure::{BacklogMeter, QueueInterval, Window};
use crate::route::Stop;
use crate::wire::LinkCounts;
use cutline_aqm::{AnyQueue, Arrival, Departure, DropReason, Queue, Shed, Verdict};
use cutline_units::{
    Bytes, Duration, HintBudget, Histogram, Instant, Probability, RandomStream, Rate, Serializer,
};

/// A queue, its transmitter, and its measures.
pub(crate) struct Served {
    queue: AnyQueue<Handle>,
    random: RandomStream,
    serializer: Serializer,
    delay: Duration,
    window: Window,
    /// The stop of the event that ends a sending.
    free: Stop,
    /// The last packet whose sending began.
    pub(crate) sent_last: Handle,
    /// What a packet's hint becomes when it leaves.
    pub(crate) pass_on: Option<HintBudget>,
    /// Whether a packet is being sent; the link's own event ends that.
    pub(crate) busy: bool,
    pub(crate) counts: LinkCounts,
    pub(crate) meter: BacklogMeter,
    pub(crate) waits: Histogram,
    pub(crate) probability: ProbabilityMeter,
    series: Option<Vec<QueueInterval>>,
    open: QueueInterval,
}

/// The AQM's probability as arriving packets met it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProbabilityMeter {
    arrivals: u64,
    sum: f64,
    sum_squares: f64,
}

/// A packet whose sending has begun.
pub(crate) struct Started {
    pub(crate) handle: Handle,
    /// How long it waited.
    pub(crate) waited: Duration,
    /// Whether the queue has marked it on its way out.
    pub(crate) marked: bool,
    /// The stop of the event that ends its sending.
    pub(crate) free: Stop,
    /// When its last bit leaves, and the link is free again.
    pub(crate) departs: Instant,
    /// When its last bit is at the other end.
    pub(crate) arrives: Instant,
}

impl Served {
    pub(crate) fn new(
        queue: AnyQueue<Handle>,
        random: RandomStream,
        rate: Rate,
        delay: Duration,
        window: Window,
        series: bool,
        free: Stop,
    ) -> Self {
        Self {
            queue,
            random,
            serializer: Serializer::new(rate),
            delay,
            window,
            free,
            sent_last: Handle::MAX,
            pass_on: None,
            busy: false,
            counts: LinkCounts::default(),
            meter: BacklogMeter::new(window),
            waits: Histogram::default(),
            probability: ProbabilityMeter::default(),
            series: series.then(Vec::new),
            open: QueueInterval::default(),
        }
    }

    /// A packet comes to the queue, which keeps its handle unless the verdict is to drop it.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, arrival: Arrival, handle: Handle) -> Verdict {
        let verdict = self.queue.enqueue(now, arrival, handle, &mut self.random);
        self.open.arrived += 1;
        let (dropped, marked) = match verdict {
            Verdict::Pass => (0, 0),
            Verdict::Mark => (0, 1),
            Verdict::Drop(_) => (1, 0),
        };
        self.open.dropped += dropped;
        self.open.marked += marked;
        if self.window.contains(now) {
            self.counts.arrived += 1;
            self.counts.dropped += dropped;
            self.counts.overflowed += u64::from(verdict == Verdict::Drop(DropReason::Overflow));
            self.counts.marked += marked;
            if let Some(p) = self.queue.probability() {
                self.probability.record(p.get());
            }
        }
        // What comes to an idle link starts at this very moment, and never waits.
        if dropped == 0 && self.busy {
            self.note_backlog(now);
        }
        verdict
    }

    /// The link is free: begins to send the next packet, if there is one.
    #[inline]
    pub(crate) fn start_next(&mut self, now: Instant) -> Option<Started> {
        let next = self.queue.dequeue(now);
        self.busy = next.is_some();
        let Departure { packet: handle, size, arrived, marked } = next?;
        self.sent_last = handle;
        self.note_backlog(now);
        if marked {
            self.note_mark(now);
        }
        let waited = now - arrived;
        self.open.sent += 1;
        self.open.sent_bytes += u64::from(size);
        self.open.waited += waited;
        if self.window.contains(now) {
            self.waits.record(waited);
        }
        let departs = self.serializer.send(now, Bytes::new(u64::from(size)));
        self.counts.sent(self.window, now, departs, size);
        Some(Started { handle, waited, marked, free: self.free, departs, arrives: departs + self.delay })
    }

    /// A packet that the queue had kept and has dropped since; to be asked after `arrive` and `start_next`.
    #[inline]
    pub(crate) fn shed(&mut self, now: Instant) -> Option<(Handle, DropReason)> {
        let Shed { packet, reason, .. } = self.queue.shed()?;
        self.open.dropped += 1;
        if self.window.contains(now) {
            self.counts.dropped += 1;
            self.counts.overflowed += u64::from(reason == DropReason::Overflow);
        }
        self.note_backlog(now);
        Some((packet, reason))
    }

    fn note_mark(&mut self, now: Instant) {
        self.open.marked += 1;
        self.counts.marked += u64::from(self.window.contains(now));
    }

    /// The link's rate from the next packet on.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.serializer.set_rate(rate);
        self.queue.set_rate(now, rate);
    }

    /// An interval of the series ends at `now`.
    pub(crate) fn close_interval(&mut self, now: Instant) {
        let Some(series) = &mut self.series else { return };
        self.queue.advance(now);
        let backlog = self.queue.backlog();
        series.push(QueueInterval {
            backlog_packets: backlog.packets,
            backlog_bytes: backlog.bytes,
            probability: self.queue.probability().map(Probability::get),
            readings: self.queue.readings(),
            ..std::mem::take(&mut self.open)
        });
    }

    /// How many packets it has marked since the interval began.
    pub(crate) fn marked_in_interval(&self) -> u64 {
        self.open.marked
    }

    /// Whether it keeps an interval series.
    pub(crate) fn has_series(&self) -> bool {
        self.series.is_some()
    }

    /// Takes the series out, at the end of a run.
    pub(crate) fn take_series(&mut self) -> Option<Vec<QueueInterval>> {
        self.series.take()
    }

    /// Settles the measures at the end of a run.
    pub(crate) fn finish(&mut self, end: Instant) {
        self.note_backlog(end);
    }

    #[inline]
    fn note_backlog(&mut self, now: Instant) {
        let backlog = self.queue.backlog();
        self.meter.set(now, backlog.packets, backlog.bytes);
    }
}

impl ProbabilityMeter {
    #[inline]
    fn record(&mut self, p: f64) {
        self.arrivals += 1;
        self.sum += p;
        self.sum_squares += p * p;
    }

    /// The mean, and the standard deviation, over the packets that arrived; `None` without any.
    pub(crate) fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let n = self.arrivals as f64;
        let mean = self.sum / n;
        (self.arrivals > 0).then(|| (mean, (self.sum_squares / n - mean * mean).max(0.0).sqrt()))
    }
}
