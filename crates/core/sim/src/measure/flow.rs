//! The records of one flow.

use super::Window;
use cutline_units::{Duration, Histogram, HistogramShape, Instant, UncountedHistogram};

/// Counts of a whole run, so that every packet can be accounted for: sent = received + dropped + under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Data packets that the source put into the network.
    pub sent: u64,
    /// Data packets that reached the sink.
    pub received: u64,
    /// Data packets that a queue dropped or a link lost.
    pub dropped: u64,
}

/// The distributions of a flow's (or of a group's) delays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayRecord {
    /// Time spent waiting in queues, over the whole path.
    pub queuing: Histogram,
    /// One-way delay, from the source to the sink.
    pub one_way: Histogram,
    /// Change of the one-way delay between packets received one after the other (RFC 3393, absolute).
    pub ipdv: Histogram,
}

/// The delays of a flow that has a record of its own, while it is measured. The flow's [`ReceivedRecord`] has the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnDelays {
    queuing: HistogramShape,
    one_way: HistogramShape,
    ipdv: UncountedHistogram,
}

/// A record of the delays of a flow or of a group.
pub(crate) trait RecordDelays {
    /// Records the delays of a packet; `ipdv` is `None` for the first packet of a flow.
    fn record(&mut self, queuing: Duration, one_way: Duration, ipdv: Option<Duration>);

    /// Returns a number whose reading brings the memory for recording these delays into the cache.
    fn read_ahead(&self, queuing: Duration, one_way: Duration) -> u64;
}

/// One flow's counts within the measuring window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// Counts of the whole run.
    pub totals: FlowTotals,
    /// Data packets sent.
    pub sent_packets: u64,
    /// Bytes of these on the wire, headers included.
    pub sent_bytes: u64,
    /// Data packets received.
    pub received_packets: u64,
    /// Data packets dropped by queues or lost on links.
    pub dropped_packets: u64,
    /// Data packets that arrived marked (CE).
    pub marked_packets: u64,
    /// Payload bytes delivered to the application: in order for TCP, received for TFRC and UDP.
    pub delivered_bytes: u64,
    /// The sum of the queuing delays of the packets received.
    pub queuing_sum: Duration,
    /// The sum of their one-way delays.
    pub one_way_sum: Duration,
}

/// The part of a [`FlowRecord`] that is recorded at the source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentRecord {
    total: u64,
    packets: u64,
    bytes: u64,
}

/// The part of a [`FlowRecord`] that is recorded at the sink and at the queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedRecord {
    total: u64,
    packets: u64,
    marked_packets: u64,
    delivered_bytes: u64,
    queuing_sum: Duration,
    one_way_sum: Duration,
    /// One-way delay of the previous packet; [`Duration::MAX`] before the first.
    last_one_way: Duration,
    total_dropped: u64,
    dropped_packets: u64,
}

impl FlowRecord {
    pub(crate) fn new(sent: SentRecord, received: ReceivedRecord) -> Self {
        let totals =
            FlowTotals { sent: sent.total, received: received.total, dropped: received.total_dropped };
        Self {
            totals,
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            received_packets: received.packets,
            dropped_packets: received.dropped_packets,
            marked_packets: received.marked_packets,
            delivered_bytes: received.delivered_bytes,
            queuing_sum: received.queuing_sum,
            one_way_sum: received.one_way_sum,
        }
    }
}

impl OwnDelays {
    /// Returns the delays of the flow with this record.
    pub(crate) fn finish(self, received: &ReceivedRecord) -> DelayRecord {
        let Self { queuing, one_way, ipdv } = self;
        DelayRecord {
            queuing: queuing.into_histogram(received.packets, received.queuing_sum),
            one_way: one_way.into_histogram(received.packets, received.one_way_sum),
            // All packets have one but the first of the flow, which may have come before the window.
            ipdv: ipdv.into_histogram(received.packets.saturating_sub(1)),
        }
    }
}

/// Implements [`RecordDelays`] for a structure with three histograms.
macro_rules! record_delays {
    ($record:ident) => {
        impl RecordDelays for $record {
            #[inline]
            fn record(&mut self, queuing: Duration, one_way: Duration, ipdv: Option<Duration>) {
                self.queuing.record(queuing);
                self.one_way.record(one_way);
                if let Some(ipdv) = ipdv {
                    self.ipdv.record(ipdv);
                }
            }

            #[inline]
            fn read_ahead(&self, queuing: Duration, one_way: Duration) -> u64 {
                self.queuing.read_ahead(queuing)
                    ^ self.one_way.read_ahead(one_way)
                    ^ self.ipdv.sum().as_nanos()
            }
        }
    };
}

record_delays!(DelayRecord);
record_delays!(OwnDelays);

impl SentRecord {
    /// Returns the number of packets sent so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Records that the source sent a packet of `size` bytes.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, window: Window, size: u32) {
        self.total += 1;
        if window.contains(now) {
            self.packets += 1;
            self.bytes += u64::from(size);
        }
    }
}

impl ReceivedRecord {
    pub(crate) const NOTHING: Self = Self {
        total: 0,
        packets: 0,
        marked_packets: 0,
        delivered_bytes: 0,
        queuing_sum: Duration::ZERO,
        one_way_sum: Duration::ZERO,
        last_one_way: Duration::MAX,
        total_dropped: 0,
        dropped_packets: 0,
    };

    /// Returns a number whose reading brings the record into the cache.
    #[inline]
    pub(crate) fn first_word(&self) -> u64 {
        self.total ^ self.dropped_packets
    }

    /// Records that a queue dropped a packet, or that a link lost it.
    pub(crate) fn dropped(&mut self, now: Instant, window: Window) {
        self.total_dropped += 1;
        self.dropped_packets += u64::from(window.contains(now));
    }

    /// Adds the drops of another record of the same flow.
    pub(crate) fn add_drops(&mut self, other: &Self) {
        self.total_dropped += other.total_dropped;
        self.dropped_packets += other.dropped_packets;
    }

    /// Returns the change of the one-way delay since the previous packet for an arrival with delay `one_way`; zero for the
    /// first packet.
    #[inline]
    pub(crate) fn ipdv(&self, one_way: Duration) -> Duration {
        if self.is_first() { Duration::ZERO } else { one_way.abs_diff(self.last_one_way) }
    }

    /// Records that a packet reached the sink.
    #[inline]
    pub(crate) fn received(
        &mut self,
        now: Instant,
        window: Window,
        arrival: &Received,
        delays: &mut impl RecordDelays,
    ) {
        if window.contains(now) {
            self.packets += 1;
            self.marked_packets += u64::from(arrival.marked);
            self.delivered_bytes += arrival.delivered;
            self.queuing_sum += arrival.queuing;
            self.one_way_sum += arrival.one_way;
            let ipdv = (!self.is_first()).then(|| self.ipdv(arrival.one_way));
            delays.record(arrival.queuing, arrival.one_way, ipdv);
        }
        self.total += 1;
        self.last_one_way = arrival.one_way;
    }

    #[inline]
    fn is_first(&self) -> bool {
        self.last_one_way == Duration::MAX
    }
}

/// The measures of a packet that arrives at the sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Time spent waiting in queues.
    pub(crate) queuing: Duration,
    /// One-way delay.
    pub(crate) one_way: Duration,
    /// Payload bytes delivered to the application by this packet.
    pub(crate) delivered: u64,
    /// True if the packet carried a congestion mark.
    pub(crate) marked: bool,
}
