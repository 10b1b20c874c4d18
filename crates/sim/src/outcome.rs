//! What a simulation found: one record per flow, group and link, and the accounting of the whole run.

use crate::fifo_link::LinkCounts;
use crate::measure::{BacklogMeter, DelayRecord, FlowInterval, FlowRecord, QueueInterval};
use cutline_transport::endpoint::TransportCounts;
use cutline_units::{Duration, Hint, Histogram};

/// Everything measured in one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order of the network's flows.
    pub flows: Vec<FlowOutcome>,
    /// In the order of the network's groups: the delays of the flows that share them.
    pub groups: Vec<DelayRecord>,
    /// In the order of the network's links.
    pub links: Vec<LinkOutcome>,
    /// What the run took.
    pub work: Work,
}

/// What one flow got.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Its hint at the end; of a hint that adapts, the one that trials go out from.
    pub hint: Hint,
    /// Counts within the measuring window and of the whole run.
    pub record: FlowRecord,
    /// Its delays; `None` where the group keeps them.
    pub delays: Option<DelayRecord>,
    /// Its intervals, where it kept a series.
    pub series: Option<Vec<FlowInterval>>,
    /// What its protocol counted over the whole run.
    pub transport: TransportCounts,
    /// Response times of a request/response or file application, by completion, over the whole run.
    pub responses: Option<Histogram>,
}

/// What one link and its queue did, within the measuring window.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Packets and bytes.
    pub counts: LinkCounts,
    /// The share of the window that the link was sending.
    pub utilisation: f64,
    /// Backlog over time; all zero where no packet ever waited.
    pub backlog: BacklogOutcome,
    /// Time in the queue of the packets that left it.
    pub waits: Histogram,
    /// Mean and standard deviation of the AQM's probability, as arriving packets met it.
    pub probability: Option<(f64, f64)>,
    /// The queue's intervals, where it kept a series.
    pub series: Option<Vec<QueueInterval>>,
}

/// A backlog over the measuring window; the packet in service is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BacklogOutcome {
    /// Time-weighted mean, packets.
    pub mean_packets: f64,
    /// Time-weighted standard deviation, packets.
    pub deviation_packets: f64,
    /// Time-weighted mean, bytes.
    pub mean_bytes: f64,
    /// The most packets that waited.
    pub max_packets: u32,
    /// The most bytes that waited.
    pub max_bytes: u64,
}

/// What a run took, in counts that do not depend on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Events handled.
    pub events: u64,
    /// Data packets put into the network.
    pub data_packets: u64,
    /// Links crossed, by all packets.
    pub hops: u64,
    /// Packets still on their way at the end.
    pub under_way: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Messages of agents that had nowhere to go: no agent at their address, or no links that lead there.
    pub undeliverable: u64,
}

impl From<&BacklogMeter> for BacklogOutcome {
    fn from(meter: &BacklogMeter) -> Self {
        Self {
            mean_packets: meter.mean_packets(),
            deviation_packets: meter.deviation_packets(),
            mean_bytes: meter.mean_bytes(),
            max_packets: meter.max_packets(),
            max_bytes: meter.max_bytes(),
        }
    }
}
