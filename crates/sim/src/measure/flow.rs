//! What is recorded of one flow.

use super::{FlowSeries, Histogram, Window};
use cutline_units::{Duration, Instant};

/// Counts of a whole run, so that every packet can be accounted for: sent = received + dropped + under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Data packets that the source put into the network.
    pub sent: u64,
    /// Data packets that reached the sink.
    pub received: u64,
    /// Data packets that a queue dropped.
    pub dropped: u64,
}

/// The distributions of a flow's (or of a group's) delays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayRecord {
    /// Time spent waiting in queues, over the whole path.
    pub queuing: Histogram,
    /// From the source's sending to the sink's receiving.
    pub one_way: Histogram,
    /// Change of the one-way delay between packets received one after the other (RFC 3393, absolute).
    pub ipdv: Histogram,
}

/// One flow's counts within the measuring window, and its series.
#[derive(Clone, Debug)]
pub struct FlowRecord {
    /// Of the whole run.
    pub totals: FlowTotals,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Bytes of these on the wire, headers included.
    pub sent_bytes: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Data packets dropped by queues.
    pub dropped_packets: u64,
    /// Data packets that arrived marked (CE).
    pub marked_packets: u64,
    /// Payload bytes delivered to the application: in order for TCP, received for TFRC and UDP.
    pub delivered_bytes: u64,
    /// The sum of the queuing delays of the packets received.
    pub queuing_sum: Duration,
    /// The sum of their one-way delays.
    pub one_way_sum: Duration,
    last_one_way: Duration,
    /// Interval series, where the flow keeps one.
    pub series: Option<Box<FlowSeries>>,
}

impl FlowRecord {
    /// Nothing yet; with `interval`, a series of that width.
    pub fn new(interval: Option<Duration>) -> Self {
        Self {
            totals: FlowTotals::default(),
            sent_packets: 0,
            sent_bytes: 0,
            received_packets: 0,
            dropped_packets: 0,
            marked_packets: 0,
            delivered_bytes: 0,
            queuing_sum: Duration::ZERO,
            one_way_sum: Duration::ZERO,
            last_one_way: Duration::MAX,
            series: interval.map(|width| Box::new(FlowSeries::new(width))),
        }
    }

    /// The source put a packet of `size` bytes into the network.
    #[inline]
    pub fn sent(&mut self, now: Instant, window: Window, size: u32) {
        self.totals.sent += 1;
        if window.contains(now) {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(size);
        }
        if let Some(series) = &mut self.series {
            let interval = series.at(now);
            interval.sent_packets += 1;
            interval.sent_bytes += u64::from(size);
        }
    }

    /// A queue dropped a packet.
    #[inline]
    pub fn dropped(&mut self, now: Instant, window: Window) {
        self.totals.dropped += 1;
        if window.contains(now) {
            self.dropped_packets += 1;
        }
        if let Some(series) = &mut self.series {
            series.at(now).dropped += 1;
        }
    }

    /// A packet reached the sink; `delivered` payload bytes became available to the application by it.
    #[inline]
    pub fn received(&mut self, now: Instant, window: Window, arrival: &Received, delays: &mut DelayRecord) {
        self.totals.received += 1;
        let ipdv = arrival.one_way.abs_diff(self.last_one_way);
        let first = self.last_one_way == Duration::MAX;
        self.last_one_way = arrival.one_way;
        if window.contains(now) {
            self.received_packets += 1;
            self.marked_packets += u64::from(arrival.marked);
            self.delivered_bytes += arrival.delivered;
            self.queuing_sum += arrival.queuing;
            self.one_way_sum += arrival.one_way;
            delays.queuing.record(arrival.queuing);
            delays.one_way.record(arrival.one_way);
            if !first {
                delays.ipdv.record(ipdv);
            }
        }
        if let Some(series) = &mut self.series {
            let interval = series.at(now);
            interval.delivered_bytes += arrival.delivered;
            interval.packets += 1;
            interval.marked += u32::from(arrival.marked);
            interval.queuing_ns += arrival.queuing.as_nanos();
            interval.one_way_ns += arrival.one_way.as_nanos();
            interval.ipdv_ns += if first { 0 } else { ipdv.as_nanos() };
        }
    }
}

/// What the sink learns of a packet's journey.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Time spent waiting in queues.
    pub queuing: Duration,
    /// From sending to receiving.
    pub one_way: Duration,
    /// Payload bytes that the application got by this packet.
    pub delivered: u64,
    /// Whether the packet carried a congestion mark.
    pub marked: bool,
}
