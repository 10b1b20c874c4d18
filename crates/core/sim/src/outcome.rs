//! The result of a simulation: one record per flow, group and link, and the accounting of the whole run.

use crate::fifo_link::LinkCounts;
use crate::impairment::ImpairmentCounts;
use crate::measure::{BacklogMeter, DelayRecord, FlowInterval, FlowRecord, QueueInterval, Window};
use cutline_transport::endpoint::TransportCounts;
use cutline_units::{Duration, Hint, Histogram};

/// Everything measured in one run.
#[derive(Clone, Debug)]
pub struct SimulationOutcome {
    /// The flows, in the order of the network.
    pub flows: Vec<FlowOutcome>,
    /// The delays that the flows of a group share, in the order of the network's groups.
    pub groups: Vec<DelayRecord>,
    /// The links, in the order of the network.
    pub links: Vec<LinkOutcome>,
    /// The accounting of the run.
    pub work: Work,
}

/// The result of one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Its hint at the end; the centre of the trials for an adaptive hint.
    pub hint: Hint,
    /// Counts within the measuring window and of the whole run.
    pub record: FlowRecord,
    /// Its delays; `None` if the group records them.
    pub delays: Option<Box<DelayRecord>>,
    /// Its intervals; `None` if it kept no series.
    pub series: Option<Vec<FlowInterval>>,
    /// The counters of its transport over the whole run.
    pub transport: TransportCounts,
    /// Response times of a request/response or file application, by completion, over the whole run.
    pub responses: Option<Box<Histogram>>,
}

/// The result of one link and its queue, within the measuring window.
#[derive(Clone, Debug)]
pub struct LinkOutcome {
    /// Packets and bytes.
    pub counts: LinkCounts,
    /// The share of the window during which the link was transmitting, 0..1.
    pub utilisation: f64,
    /// Backlog over time; all zero if no packet ever waited.
    pub backlog: BacklogOutcome,
    /// Sojourn times of the packets that left the queue, without those of `unwaited`; `None` if there are no others.
    pub waited: Option<Box<Histogram>>,
    /// Packets that found a link with a plain FIFO queue free, and left it at once.
    pub unwaited: u64,
    /// Mean and standard deviation of the AQM's drop probability over the arrivals; `None` if it has none.
    pub probability: Option<(f64, f64)>,
    /// Packets lost and reordered on the wire; `None` without an impairment.
    pub impairment: Option<ImpairmentCounts>,
    /// The queue's intervals; `None` if it kept no series.
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

/// The accounting of a run, in counts that do not depend on the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Events handled.
    pub events: u64,
    /// Data packets put into the network.
    pub data_packets: u64,
    /// Links crossed, by all packets.
    pub hops: u64,
    /// Packets still in transit at the end.
    pub under_way: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Messages of agents without a destination: no agent is at their address, or no links lead there.
    pub undeliverable: u64,
}

impl LinkOutcome {
    /// Returns the sojourn times of the packets that left the queue.
    pub fn waits(&self) -> Histogram {
        let mut waits = self.waited.as_deref().cloned().unwrap_or_default();
        waits.record_zeros(self.unwaited);
        waits
    }
}

impl BacklogOutcome {
    /// Returns the backlog of samples that were taken at regular intervals: packets and bytes of each.
    pub fn from_samples(samples: &[(u32, u64)]) -> Self {
        let mean = |of: &dyn Fn(&(u32, u64)) -> f64| {
            samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
        };
        let mean_packets = mean(&|(packets, _)| f64::from(*packets));
        Self {
            mean_packets,
            deviation_packets: mean(&|(packets, _)| (f64::from(*packets) - mean_packets).powi(2)).sqrt(),
            mean_bytes: mean(&|(_, bytes)| *bytes as f64),
            max_packets: samples.iter().map(|(packets, _)| *packets).max().unwrap_or(0),
            max_bytes: samples.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0),
        }
    }

    /// Returns the backlog that a meter has measured over its window.
    pub(crate) fn from_meter(meter: &BacklogMeter, window: Window) -> Self {
        Self {
            mean_packets: meter.mean_packets(window),
            deviation_packets: meter.deviation_packets(window),
            mean_bytes: meter.mean_bytes(window),
            max_packets: meter.max_packets(),
            max_bytes: meter.max_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_did_not_wait_are_counted_beyond_32_bits() {
        let unwaited = (1_u64 << 32) + 5;
        let link = LinkOutcome {
            counts: LinkCounts::default(),
            utilisation: 0.0,
            backlog: BacklogOutcome::default(),
            waited: None,
            unwaited,
            probability: None,
            impairment: None,
            series: None,
        };
        assert_eq!(link.waits().count(), unwaited);
    }

    #[test]
    fn samples_have_a_mean_a_deviation_and_a_largest() {
        let backlog = BacklogOutcome::from_samples(&[(0, 0), (4, 4000), (2, 200)]);
        assert!((backlog.mean_packets - 2.0).abs() < 1e-12 && (backlog.mean_bytes - 1400.0).abs() < 1e-9);
        assert!((backlog.deviation_packets - (8.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!((backlog.max_packets, backlog.max_bytes), (4, 4000));
        assert_eq!(BacklogOutcome::from_samples(&[]), BacklogOutcome::default());
    }
}
