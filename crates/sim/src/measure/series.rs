//! Interval series: what happened in each interval of a fixed width, counted from time zero.

use super::flow::Received;
use cutline_aqm::Readings;
use cutline_units::{Duration, Hint, Instant};

/// What one flow sent and received in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowInterval {
    /// Data packets that the source put into the network.
    pub sent_packets: u32,
    /// Bytes of these on the wire, headers included.
    pub sent_bytes: u64,
    /// Payload bytes delivered to the application.
    pub delivered_bytes: u64,
    /// Data packets received.
    pub packets: u32,
    /// Of these, marked.
    pub marked: u32,
    /// The sum of their queuing delays, ns.
    pub queuing_ns: u64,
    /// The sum of their one-way delays, ns.
    pub one_way_ns: u64,
    /// The sum of the changes of the one-way delay from packet to packet, ns; the first packet of all has none.
    pub ipdv_ns: u64,
    /// Packets of the flow dropped by queues.
    pub dropped: u32,
    /// The hint of its packets at the interval's end.
    pub hint: Option<Hint>,
    /// The hint that trials go out from, at the interval's end; `None` where the hint does not adapt.
    pub centre: Option<Hint>,
}

/// What one queue did in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueInterval {
    /// Packets waiting at the interval's end.
    pub backlog_packets: u32,
    /// Bytes waiting at the interval's end.
    pub backlog_bytes: u64,
    /// The AQM's probability at the interval's end; `None` where it has none.
    pub probability: Option<f64>,
    /// What else the AQM knows, at the interval's end.
    pub readings: Readings,
    /// Packets that arrived in the interval.
    pub arrived: u64,
    /// Of these, dropped.
    pub dropped: u64,
    /// Of these, marked.
    pub marked: u64,
    /// Packets whose sending began in the interval.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// The sum of the times that these waited.
    pub waited: Duration,
}

/// A flow's intervals as they fill: the open one is kept apart and closed by the first event beyond it.
#[derive(Clone, Debug)]
pub struct FlowSeries {
    width: Duration,
    ends: Instant,
    open: FlowInterval,
    closed: Vec<FlowInterval>,
    hint: Hint,
    centre: Option<Hint>,
}

impl FlowSeries {
    /// Intervals of `width`, the first one beginning at time zero, of a flow that begins with this hint.
    pub fn new(width: Duration, hint: Hint) -> Self {
        assert!(!width.is_zero(), "an interval must have a width");
        Self {
            width,
            ends: Instant::ZERO + width,
            open: FlowInterval::default(),
            closed: Vec::new(),
            hint,
            centre: None,
        }
    }

    /// The source put a packet of `size` bytes into the network.
    pub(crate) fn sent(&mut self, now: Instant, size: u32) {
        let interval = self.at(now);
        interval.sent_packets += 1;
        interval.sent_bytes += u64::from(size);
    }

    /// A packet reached the sink; its one-way delay changed by `ipdv`.
    pub(crate) fn received(&mut self, now: Instant, arrival: &Received, ipdv: Duration) {
        let interval = self.at(now);
        interval.delivered_bytes += arrival.delivered;
        interval.packets += 1;
        interval.marked += u32::from(arrival.marked);
        interval.queuing_ns += arrival.queuing.as_nanos();
        interval.one_way_ns += arrival.one_way.as_nanos();
        interval.ipdv_ns += ipdv.as_nanos();
    }

    /// The flow's packets have this hint from now on, and trials go out from `centre`.
    pub(crate) fn adapted(&mut self, now: Instant, hint: Hint, centre: Hint) {
        self.at(now);
        (self.hint, self.centre) = (hint, Some(centre));
    }

    /// A queue dropped a packet.
    pub(crate) fn dropped(&mut self, now: Instant) {
        self.at(now).dropped += 1;
    }

    /// The interval that `now` lies in, open for counting.
    #[inline]
    pub fn at(&mut self, now: Instant) -> &mut FlowInterval {
        while now >= self.ends {
            self.close();
        }
        &mut self.open
    }

    /// Every interval that ended by `end`.
    pub fn finish(mut self, end: Instant) -> Vec<FlowInterval> {
        while end >= self.ends {
            self.close();
        }
        self.closed
    }

    #[inline(never)]
    fn close(&mut self) {
        self.closed.push(FlowInterval {
            hint: Some(self.hint),
            centre: self.centre,
            ..std::mem::take(&mut self.open)
        });
        self.ends += self.width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_intervals_are_there_too() {
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let mut series = FlowSeries::new(Duration::from_millis(300), Hint::LEAST_DELAY);
        series.at(ms(299)).packets += 1;
        series.at(ms(300)).packets += 2;
        series.at(ms(1000)).packets += 3;
        let packets: Vec<u32> = series.finish(ms(1200)).iter().map(|interval| interval.packets).collect();
        assert_eq!(packets, [1, 2, 0, 3]);
    }
}
