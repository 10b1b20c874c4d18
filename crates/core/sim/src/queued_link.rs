//! A queued link: a queue of the `aqm` crate with a transmitter behind it, simulated with an event per packet.

use crate::aal5::Aal5Params;
use crate::calendar::EventHandle;
use crate::deliveries::DeliveryClock;
use crate::fifo_link::LinkCounts;
use crate::impairment::{Fate, Impairment, ImpairmentCounts, LossUnit};
use crate::measure::{BacklogMeter, QueueInterval, Window};
use crate::route::Hop;
use crate::transmitter::Transmitter;
use cutline_aqm::{AnyQueue, Arrival, Departure, DropReason, Queue, Shed, Verdict};
use cutline_units::{Bytes, Duration, HintBudget, Histogram, Instant, Probability, RandomStream, Rate};

/// A queue, its transmitter and its measures.
pub(crate) struct QueuedLink {
    queue: AnyQueue<EventHandle>,
    random: RandomStream,
    transmitter: Transmitter,
    /// Delivery times of the link, if it has a record of deliveries; then it does not use the transmitter.
    pub(crate) deliveries: Option<Box<DeliveryClock>>,
    delay: Duration,
    window: Window,
    /// The hop of the event that ends a transmission.
    pub(crate) free: Hop,
    /// The last packet whose transmission started; [`EventHandle::MAX`] while the link waits for a delivery.
    pub(crate) sent_last: EventHandle,
    /// Reduces a packet's hint by its waiting time when it leaves; `None` leaves the hint unchanged.
    pub(crate) pass_on: Option<HintBudget>,
    /// Cells of ATM; `None` if packets are sent as they are.
    pub(crate) cells: Option<Aal5Params>,
    /// Impairment on the wire; `None` if every packet arrives after the delay.
    pub(crate) impairment: Option<Box<Impaired>>,
    /// True if a packet is being transmitted. The link's own event ends the transmission.
    pub(crate) busy: bool,
    pub(crate) counts: LinkCounts,
    pub(crate) meter: BacklogMeter,
    pub(crate) waits: Histogram,
    pub(crate) probability: ProbabilityMeter,
    series: Option<Vec<QueueInterval>>,
    open: QueueInterval,
}

/// An impairment and its counters.
pub(crate) struct Impaired {
    model: Impairment,
    /// Cells, if they are the unit of loss.
    cells: Option<Aal5Params>,
    pub(crate) counts: ImpairmentCounts,
}

/// The AQM's drop probability, sampled at each arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProbabilityMeter {
    arrivals: u64,
    sum: f64,
    sum_squares: f64,
}

/// A packet whose transmission has started.
pub(crate) struct Started {
    pub(crate) handle: EventHandle,
    /// Time that the packet waited in the queue.
    pub(crate) waited: Duration,
    /// True if the queue marked the packet at its departure.
    pub(crate) marked: bool,
    /// The hop of the event that ends the transmission.
    pub(crate) free: Hop,
    /// Time at which the last bit leaves and the link is free again.
    pub(crate) departs: Instant,
    /// Time at which the last bit reaches the other end.
    pub(crate) arrives: Instant,
}

impl QueuedLink {
    pub(crate) fn new(
        queue: AnyQueue<EventHandle>,
        random: RandomStream,
        transmitter: Transmitter,
        delay: Duration,
        window: Window,
        series: bool,
        free: Hop,
    ) -> Self {
        Self {
            queue,
            random,
            transmitter,
            deliveries: None,
            delay,
            window,
            free,
            sent_last: EventHandle::MAX,
            pass_on: None,
            cells: None,
            impairment: None,
            busy: false,
            counts: LinkCounts::default(),
            meter: BacklogMeter::new(window),
            waits: Histogram::default(),
            probability: ProbabilityMeter::default(),
            series: series.then(Vec::new),
            open: QueueInterval::default(),
        }
    }

    /// Offers a packet to the queue, which keeps its handle unless the verdict is to drop it.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, arrival: Arrival, handle: EventHandle) -> Verdict {
        let is_congested = arrival.ecn_capable && self.indicates_congestion();
        let verdict = match self.queue.enqueue(now, arrival, handle, &mut self.random) {
            Verdict::Pass if is_congested => Verdict::Mark,
            verdict => verdict,
        };
        self.open.arrived += 1;
        let is_measured = self.window.contains(now);
        if is_measured {
            self.counts.arrived += 1;
            if let Some(p) = self.queue.probability() {
                self.probability.record(p.get());
            }
        }
        if verdict != Verdict::Pass {
            self.note_verdict(now, verdict, is_measured);
        } else if self.busy {
            // A packet that arrives at an idle link starts at once and never waits.
            self.note_backlog(now);
        }
        verdict
    }

    /// Counts a packet that the queue has dropped or marked at its arrival.
    #[cold]
    fn note_verdict(&mut self, now: Instant, verdict: Verdict, is_measured: bool) {
        let is_dropped = matches!(verdict, Verdict::Drop(_));
        if self.busy && !is_dropped {
            self.note_backlog(now);
        }
        self.open.dropped += u64::from(is_dropped);
        self.open.marked += u64::from(!is_dropped);
        if is_measured {
            self.counts.dropped += u64::from(is_dropped);
            self.counts.overflowed += u64::from(verdict == Verdict::Drop(DropReason::Overflow));
            self.counts.marked += u64::from(!is_dropped);
        }
    }

    /// Returns whether a link of cells indicates congestion to a packet that arrives now.
    #[inline]
    fn indicates_congestion(&self) -> bool {
        let backlog = || Bytes::new(self.queue.backlog().bytes);
        self.cells.as_ref().is_some_and(|cells| cells.indicates_congestion(backlog()))
    }

    /// Returns the time at which the next packet's transmission can start; `None` if no packet waits. Only for a link with a record of
    /// deliveries.
    #[cold]
    pub(crate) fn next_delivery(&mut self, now: Instant) -> Option<Instant> {
        self.busy = self.queue.backlog().packets > 0;
        self.sent_last = EventHandle::MAX;
        if !self.busy {
            return None;
        }
        self.note_backlog(now);
        self.deliveries.as_mut().map(|deliveries| deliveries.ready(now))
    }

    /// Starts to transmit the next packet, if there is one. The link must be free.
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
        let departs = match &mut self.deliveries {
            None => {
                let on_link = self.cells.as_ref().map_or(size, |cells| cells.on_link(size));
                self.transmitter.send(now, Bytes::new(u64::from(on_link)))
            }
            Some(deliveries) => deliveries.send(size),
        };
        self.counts.sent(self.window, now, departs, size);
        Some(Started { handle, waited, marked, free: self.free, departs, arrives: departs + self.delay })
    }

    /// Gives memory of the queue back, in which few packets are left after a burst.
    #[cold]
    pub(crate) fn give_back(&mut self) {
        self.queue.give_back();
    }

    /// Returns whether a packet's transmission has started and not ended.
    pub(crate) fn has_started(&self) -> bool {
        self.busy && self.sent_last != EventHandle::MAX
    }

    /// Returns whether the queue may drop packets that it has stored.
    #[inline]
    pub(crate) const fn may_shed(&self) -> bool {
        self.queue.may_shed()
    }

    /// Takes a packet that the queue had stored and then dropped. The caller must call this until it returns `None` after
    /// each `arrive` and `start_next`.
    #[inline]
    pub(crate) fn shed(&mut self, now: Instant) -> Option<(EventHandle, DropReason)> {
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

    /// Reports the link's new rate to the queue.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.queue.set_rate(now, rate);
    }

    /// Closes the interval of the series that ends at `now`.
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

    /// Returns the number of packets marked since the interval began.
    pub(crate) fn marked_in_interval(&self) -> u64 {
        self.open.marked
    }

    /// Returns the interval of the series with this number, if it has ended.
    pub(crate) fn interval(&self, number: usize) -> Option<QueueInterval> {
        self.series.as_ref()?.get(number).copied()
    }

    /// Returns whether the link keeps an interval series.
    pub(crate) fn has_series(&self) -> bool {
        self.series.is_some()
    }

    /// Takes the series at the end of a run.
    pub(crate) fn take_series(&mut self) -> Option<Vec<QueueInterval>> {
        self.series.take()
    }

    /// Completes the measures at the end of a run.
    pub(crate) fn finish(&mut self, end: Instant) {
        self.note_backlog(end);
    }

    #[inline]
    fn note_backlog(&mut self, now: Instant) {
        let backlog = self.queue.backlog();
        self.meter.set(now, backlog.packets, backlog.bytes, self.window);
    }
}

impl Impaired {
    /// `cells` are those of the link.
    pub(crate) fn new(model: Impairment, unit: LossUnit, cells: Option<&Aal5Params>) -> Box<Self> {
        let cells = cells.filter(|_| unit == LossUnit::Cell).cloned();
        Box::new(Self { model, cells, counts: ImpairmentCounts::default() })
    }

    /// Sends a packet of `size` bytes whose last bit leaves at `departs`. Returns its arrival; `None` if it is lost.
    pub(crate) fn send(&mut self, departs: Instant, size: u32, window: Window) -> Option<Instant> {
        let units = self.cells.as_ref().map_or(1, |cells| cells.cells(size));
        match self.model.send_units(departs, units) {
            Fate::Lost => None,
            Fate::Arrives { at, overtakes } => {
                self.counts.reordered += if window.contains(departs) { overtakes } else { 0 };
                Some(at)
            }
        }
    }
}

impl ProbabilityMeter {
    #[inline]
    fn record(&mut self, p: f64) {
        self.arrivals += 1;
        self.sum += p;
        self.sum_squares += p * p;
    }

    /// Returns the mean and the standard deviation over the packets that arrived; `None` if none arrived.
    pub(crate) fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let n = self.arrivals as f64;
        let mean = self.sum / n;
        (self.arrivals > 0).then(|| (mean, (self.sum_squares / n - mean * mean).max(0.0).sqrt()))
    }
}
