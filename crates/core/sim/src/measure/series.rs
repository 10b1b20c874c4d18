//! Interval series: measures for each interval of a fixed width, starting at time zero.

use super::flow::Received;
use cutline_aqm::Readings;
use cutline_units::{Duration, Hint, Instant};

/// The measures of one flow in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowInterval {
    /// Data packets that the source put into the network.
    pub sent_packets: u32,
    /// Bytes of the packets sent, on the wire, headers included.
    pub sent_bytes: u64,
    /// Payload bytes delivered to the application.
    pub delivered_bytes: u64,
    /// Data packets received.
    pub packets: u32,
    /// Data packets received with a mark.
    pub marked: u32,
    /// Sum of the queuing delays of the packets received, ns.
    pub queuing_ns: u64,
    /// Sum of the one-way delays of the packets received, ns.
    pub one_way_ns: u64,
    /// Sum of the changes of the one-way delay from packet to packet, ns. The first packet of the flow has none.
    pub ipdv_ns: u64,
    /// Packets of the flow dropped by queues or lost on links.
    pub dropped: u32,
    /// The hint of its packets at the interval's end.
    pub hint: Option<Hint>,
    /// The centre of the trials of an adaptive hint at the interval's end; `None` if the hint is constant.
    pub centre: Option<Hint>,
}

/// The measures of one queue in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueInterval {
    /// Packets waiting at the interval's end.
    pub backlog_packets: u32,
    /// Bytes waiting at the interval's end.
    pub backlog_bytes: u64,
    /// The AQM's drop probability at the interval's end; `None` if it has none.
    pub probability: Option<f64>,
    /// Further state of the AQM at the interval's end.
    pub readings: Readings,
    /// Packets that arrived in the interval.
    pub arrived: u64,
    /// Packets dropped in the interval.
    pub dropped: u64,
    /// Packets marked in the interval.
    pub marked: u64,
    /// Packets whose transmission started in the interval.
    pub sent: u64,
    /// Bytes of the packets whose transmission started.
    pub sent_bytes: u64,
    /// Sum of the waiting times of the packets whose transmission started.
    pub waited: Duration,
}

/// The series of a flow while it is recorded. Its source, its sink and the links count into it, and need not do so in the order of
/// time: the interval of the last call is at hand, another one is looked up.
#[derive(Clone, Debug)]
pub struct FlowSeries {
    width: Duration,
    /// All intervals until the latest with a count.
    intervals: Vec<FlowInterval>,
    /// The interval of the last call, and the time at which it begins.
    at_hand: usize,
    begins: Instant,
    /// The hint and the centre of its trials, from the interval with this number on.
    hints: Vec<(usize, Hint, Option<Hint>)>,
}

impl FlowSeries {
    /// Creates a series with intervals of `width` from time zero, for a flow with this initial hint.
    pub fn new(width: Duration, hint: Hint) -> Self {
        assert!(!width.is_zero(), "an interval must have a width");
        Self {
            width,
            intervals: vec![FlowInterval::default()],
            at_hand: 0,
            begins: Instant::ZERO,
            hints: vec![(0, hint, None)],
        }
    }

    /// Records that the source sent a packet of `size` bytes.
    pub(crate) fn sent(&mut self, now: Instant, size: u32) {
        let interval = self.at(now);
        interval.sent_packets += 1;
        interval.sent_bytes += u64::from(size);
    }

    /// Records that a packet reached the sink; its one-way delay changed by `ipdv`.
    pub(crate) fn received(&mut self, now: Instant, arrival: &Received, ipdv: Duration) {
        let interval = self.at(now);
        interval.delivered_bytes += arrival.delivered;
        interval.packets += 1;
        interval.marked += u32::from(arrival.marked);
        interval.queuing_ns += arrival.queuing.as_nanos();
        interval.one_way_ns += arrival.one_way.as_nanos();
        interval.ipdv_ns += ipdv.as_nanos();
    }

    /// Sets the hint of the flow's packets from now on, and the centre of its trials. Calls are in the order of time.
    pub(crate) fn adapted(&mut self, now: Instant, hint: Hint, centre: Hint) {
        self.hints.push((self.number(now), hint, Some(centre)));
    }

    /// Records that a queue dropped a packet, or that a link lost it.
    pub(crate) fn dropped(&mut self, now: Instant) {
        self.at(now).dropped += 1;
    }

    /// Adds the counts of another series of the same flow, which other stages have counted.
    pub(crate) fn add(&mut self, other: &Self) {
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), FlowInterval::default());
        }
        for (sum, counts) in self.intervals.iter_mut().zip(&other.intervals) {
            // The hints are not in the intervals while they are counted.
            let FlowInterval {
                sent_packets,
                sent_bytes,
                delivered_bytes,
                packets,
                marked,
                queuing_ns,
                one_way_ns,
                ipdv_ns,
                dropped,
                hint: _,
                centre: _,
            } = counts;
            sum.sent_packets += sent_packets;
            sum.sent_bytes += sent_bytes;
            sum.delivered_bytes += delivered_bytes;
            sum.packets += packets;
            sum.marked += marked;
            sum.queuing_ns += queuing_ns;
            sum.one_way_ns += one_way_ns;
            sum.ipdv_ns += ipdv_ns;
            sum.dropped += dropped;
        }
    }

    /// Returns the interval that contains `now`, for counting.
    #[inline]
    pub fn at(&mut self, now: Instant) -> &mut FlowInterval {
        if now < self.begins || now - self.begins >= self.width {
            self.look_up(now);
        }
        &mut self.intervals[self.at_hand]
    }

    #[cold]
    fn look_up(&mut self, now: Instant) {
        self.at_hand = self.number(now);
        self.begins = Instant::ZERO + self.width * self.at_hand as u64;
        if self.at_hand >= self.intervals.len() {
            self.intervals.resize(self.at_hand + 1, FlowInterval::default());
        }
    }

    fn number(&self, at: Instant) -> usize {
        (at.as_nanos() / self.width.as_nanos()) as usize
    }

    /// Returns the interval with this number, from zero, as far as it is recorded.
    pub(crate) fn get(&self, number: usize) -> FlowInterval {
        let until = self.hints.partition_point(|(from, ..)| *from <= number);
        let (_, hint, centre) = self.hints[until - 1];
        let counts = self.intervals.get(number).copied().unwrap_or_default();
        FlowInterval { hint: Some(hint), centre, ..counts }
    }

    /// Returns every interval that ended by `end`.
    pub fn finish(self, end: Instant) -> Vec<FlowInterval> {
        (0..self.number(end)).map(|number| self.get(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_includes_silent_intervals() {
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let mut series = FlowSeries::new(Duration::from_millis(300), Hint::LEAST_DELAY);
        series.at(ms(299)).packets += 1;
        series.at(ms(300)).packets += 2;
        series.at(ms(1000)).packets += 3;
        assert_eq!([0, 2, 3, 4].map(|number| series.get(number).packets), [1, 0, 3, 0]);
        let packets: Vec<u32> = series.finish(ms(1200)).iter().map(|interval| interval.packets).collect();
        assert_eq!(packets, [1, 2, 0, 3]);
    }

    #[test]
    fn counts_and_hints_go_to_the_interval_of_their_time_in_any_order() {
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let mut series = FlowSeries::new(Duration::from_millis(100), Hint::LEAST_DELAY);
        let hint = Hint::from_level(9);
        series.at(ms(350)).dropped += 1;
        series.adapted(ms(120), hint, hint);
        series.at(ms(99)).packets += 1;
        series.at(ms(301)).packets += 1;
        let found = series.finish(ms(450));
        let expected = |packets, dropped, hint, centre| FlowInterval {
            packets,
            dropped,
            hint: Some(hint),
            centre,
            ..FlowInterval::default()
        };
        let adapted = |packets, dropped| expected(packets, dropped, hint, Some(hint));
        let first = expected(1, 0, Hint::LEAST_DELAY, None);
        assert_eq!(found, [first, adapted(0, 0), adapted(0, 0), adapted(1, 1)]);
    }
}
