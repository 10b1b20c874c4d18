//! The tables: one row per flow, per queue, per interval of either, per bucket of a distribution, per swept key.
//!
//! Values are measured between `warm-up` and `measure-until`, unless their meaning states otherwise. The series cover the
//! whole run. A cell is null if there was nothing to measure: a flow without a packet has no delay.

use crate::column::{Row, row};
use crate::key::RunKey;
use crate::quantity::distributed_quantity;
use std::sync::Arc;

/// A row that belongs to a run.
pub trait RunRow: Row {
    /// Writes the key of its run into the row.
    fn stamp(&mut self, key: &RunKey);

    /// Returns the identifier of the run, and the label of the point under which the run was stored.
    fn run_and_point(&self) -> (&str, &str);
}

macro_rules! rows_of_a_run {
    ($($row:ident),+) => {
        $(impl RunRow for $row {
            fn stamp(&mut self, key: &RunKey) {
                self.run = Arc::clone(&key.run);
                self.point = Arc::clone(&key.point);
                self.seed = key.seed;
            }

            fn run_and_point(&self) -> (&str, &str) {
                (&self.run, &self.point)
            }
        })+
    };
}

rows_of_a_run!(FlowRow, QueueRow, SeriesRow, QueueSeriesRow, DistributionRow, TimingRow);

row! {
    /// The measurements of one flow in one run.
    FlowRow in "flows.parquet", one per "flow and run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        flow: Arc<str>, "-", "Name of the flow.";
        group: Arc<str>, "-", "Name of the group it belongs to.";
        class: Arc<str>, "-", "Quality class.";
        hint: u64, "level", "Delay hint of its packets; if the hint adapts, the centre of the trials at the end.";
        goodput_bps: f64, "bit/s", "Payload that reached the application at the sink, each byte counted once.", shown("goodput kbit/s", 1e-3);
        sent_bps: f64, "bit/s", "Rate at which the source sent, including headers and retransmissions.", measure;
        refused_bps: Option<f64>, "bit/s", "Payload dropped because the sender's buffer was full, over the whole run; null for UDP.";
        loss_ratio: Option<f64>, "-", "Packets dropped or lost in the network over those dropped, lost or received.", shown("loss %", 100.0);
        mark_ratio: Option<f64>, "-", "Packets that arrived marked (ECN) over packets that arrived.", measure;
        packets_sent: u64, "packets", "Data packets that left the source.";
        packets_received: u64, "packets", "Data packets that reached the sink.";
        packets_dropped: u64, "packets", "Data packets dropped in a queue, or lost on a link with an impairment.";
        packets_marked: u64, "packets", "Data packets that arrived marked.";
        retransmissions: Option<u64>, "packets", "Data packets retransmitted, over the whole run; null if the transport does not retransmit.";
        timeouts: Option<u64>, "-", "Retransmission or nofeedback timeouts, over the whole run; null for UDP.", measure;
        queuing_mean_ms: Option<f64>, "ms", "Queuing delay, mean over the packets received.", shown("queuing ms: mean", 1.0);
        queuing_p50_ms: Option<f64>, "ms", "Queuing delay, median.", shown("p50", 1.0);
        queuing_p90_ms: Option<f64>, "ms", "Queuing delay, 90th percentile.";
        queuing_p95_ms: Option<f64>, "ms", "Queuing delay, 95th percentile.";
        queuing_p99_ms: Option<f64>, "ms", "Queuing delay, 99th percentile.", shown("p99", 1.0);
        queuing_max_ms: Option<f64>, "ms", "Queuing delay, largest.";
        one_way_mean_ms: Option<f64>, "ms", "One-way delay, mean over the packets received.", shown("one-way ms", 1.0);
        one_way_p50_ms: Option<f64>, "ms", "One-way delay, median.";
        one_way_p95_ms: Option<f64>, "ms", "One-way delay, 95th percentile.";
        one_way_p99_ms: Option<f64>, "ms", "One-way delay, 99th percentile.";
        one_way_max_ms: Option<f64>, "ms", "One-way delay, largest.";
        ipdv_mean_ms: Option<f64>, "ms", "Delay variation between consecutive packets (RFC 3393), mean of its absolute value.", measure;
        ipdv_p95_ms: Option<f64>, "ms", "Delay variation between consecutive packets, 95th percentile of its absolute value.";
        transfers: Option<u64>, "-", "Files or responses completed; null if the application has none.";
        transfer_mean_ms: Option<f64>, "ms", "Time from a transfer's start to its end, mean.";
        transfer_p95_ms: Option<f64>, "ms", "Time from a transfer's start to its end, 95th percentile.";
        transfer_bytes: Option<u64>, "B", "Size of the flow's only transfer; null for another application, or a random size.";
        qd: Option<f64>, "0..1", "Quality by delay, which the scenario's `quality-delay` defines; null for the class none.", measure;
        qt: Option<f64>, "0..1", "Quality by throughput; null for the class none.", measure;
        q: Option<f64>, "0..1", "Quality, the lesser of the two; null for the class none.", shown("Q", 1.0);
    }
}

row! {
    /// The measurements of one queue in one run.
    QueueRow in "queues.parquet", one per "queue and run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        link: Arc<str>, "-", "The link behind the queue, such as `r1->r2`.";
        aqm: Arc<str>, "-", "Name of the AQM.";
        tsq: bool, "0 or 1", "True (1) if TSQ is on top of the AQM.";
        rate_bps: f64, "bit/s", "Rate of the link, mean over time.";
        utilisation: f64, "0..1", "Share of the time in which the link was sending.", shown("utilisation %", 100.0);
        backlog_mean_packets: f64, "packets", "Packets waiting, mean over time.", shown("backlog packets", 1.0);
        backlog_sd_packets: f64, "packets", "Packets waiting, standard deviation over time.", measure;
        backlog_max_packets: u64, "packets", "Packets waiting, largest.";
        backlog_mean_bytes: f64, "B", "Bytes waiting, mean over time.";
        backlog_max_bytes: u64, "B", "Bytes waiting, largest.";
        delay_mean_ms: Option<f64>, "ms", "Queuing delay of the packets that departed, mean.", shown("delay ms", 1.0);
        delay_p50_ms: Option<f64>, "ms", "Queuing delay, median.";
        delay_p95_ms: Option<f64>, "ms", "Queuing delay, 95th percentile.";
        delay_p99_ms: Option<f64>, "ms", "Queuing delay, 99th percentile.", measure;
        delay_max_ms: Option<f64>, "ms", "Queuing delay, largest.";
        drop_ratio: Option<f64>, "-", "Packets dropped over packets arrived.", shown("drops %", 100.0);
        mark_ratio: Option<f64>, "-", "Packets marked over packets arrived.", shown("marks %", 100.0);
        probability_mean: Option<f64>, "0..1", "The AQM's probability, mean over the packets that arrived; null if it has none.", shown("p %", 100.0);
        probability_sd: Option<f64>, "0..1", "The AQM's probability, standard deviation over the packets that arrived.";
        average_mean_packets: Option<f64>, "packets", "Average queue of RED and its variants, mean over the ends of the measured intervals.", measure;
        max_p_mean: Option<f64>, "0..1", "max_p of RED and its variants, mean over the ends of the measured intervals.", measure;
        arrived: u64, "packets", "Packets that arrived.";
        departed: u64, "packets", "Packets that left over the link.";
        dropped: u64, "packets", "Packets dropped for any reason.";
        dropped_early: u64, "packets", "Packets dropped by the AQM.";
        dropped_full: u64, "packets", "Packets dropped because the queue was full.";
        marked: u64, "packets", "Packets marked by the AQM.";
        lost: Option<u64>, "packets", "Packets that left the queue and were lost on the link; null if the link has no impairment.";
        lost_ratio: Option<f64>, "-", "Packets lost on the link over packets that left the queue; null if the link has no impairment.", measure;
        reordered: Option<u64>, "packets", "Packets that one sent later overtook on the link; null if the link has no impairment.";
        reordered_ratio: Option<f64>, "-", "Packets overtaken on the link over packets that arrived at its end; null if the link has no impairment.", measure;
    }
}

row! {
    /// The measurements of one flow in one interval.
    SeriesRow in "series.parquet", one per "interval, flow and run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        flow: Arc<str>, "-", "Name of the flow, or of the group if only the group's series is kept.";
        group: Arc<str>, "-", "Name of the group it belongs to.";
        start_s: f64, "s", "Start of the interval, since the simulation's start.";
        end_s: f64, "s", "End of the interval.";
        goodput_bps: f64, "bit/s", "Payload that reached the application at the sink.";
        sent_bps: f64, "bit/s", "Rate at which the source sent, including headers and retransmissions.";
        packets_sent: u64, "packets", "Data packets that left the source.";
        packets_received: u64, "packets", "Data packets that reached the sink.";
        packets_dropped: u64, "packets", "Data packets dropped in a queue, or lost on a link with an impairment.";
        packets_marked: u64, "packets", "Data packets that arrived marked.";
        queuing_mean_ms: Option<f64>, "ms", "Queuing delay, mean over the packets received.";
        one_way_mean_ms: Option<f64>, "ms", "One-way delay, mean over the packets received.";
        ipdv_mean_ms: Option<f64>, "ms", "Delay variation between consecutive packets, mean of its absolute value.";
        hint: Option<u64>, "level", "Delay hint of its packets at the interval's end.";
        hint_centre: Option<u64>, "level", "Centre of the trials of the hint, at the interval's end; null if the hint does not adapt.";
    }
}

row! {
    /// The measurements of one queue in one interval.
    QueueSeriesRow in "queue_series.parquet", one per "interval, queue and run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        link: Arc<str>, "-", "The link behind the queue.";
        start_s: f64, "s", "Start of the interval, since the simulation's start.";
        end_s: f64, "s", "End of the interval.";
        utilisation: f64, "0..1", "Bytes whose transmission started, over the capacity of the link.";
        backlog_packets: u64, "packets", "Packets waiting at the interval's end.";
        backlog_bytes: u64, "B", "Bytes waiting at the interval's end.";
        delay_mean_ms: Option<f64>, "ms", "Queuing delay of the packets that departed, mean.";
        probability: Option<f64>, "0..1", "The AQM's probability at the interval's end; null if it has none.";
        average_packets: Option<f64>, "packets", "Average queue of RED and its variants, at the interval's end.";
        max_p: Option<f64>, "0..1", "max_p of RED and its variants, at the interval's end.";
        target_packets: Option<f64>, "packets", "Target queue of Adaptive RED or RED-Worcester, at the interval's end.";
        arrived: u64, "packets", "Packets that arrived.";
        departed: u64, "packets", "Packets that left over the link.";
        dropped: u64, "packets", "Packets dropped for any reason.";
        marked: u64, "packets", "Packets marked by the AQM.";
    }
}

row! {
    /// One bucket of a full distribution. Empty buckets are left out.
    DistributionRow in "distributions.parquet", one per "bucket that is not empty, quantity, subject and run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        subject_kind: Arc<str>, "-", "`flow`, `group` or `queue`.";
        subject: Arc<str>, "-", "Name of the flow or group, or the link behind the queue.";
        quantity: Arc<str>, "-", "The quantity, whose last word is its unit, such as `queuing_ms` or `goodput_bps`.";
        low: f64, "unit of the quantity", "Lower end of the bucket, inclusive.";
        high: f64, "unit of the quantity", "Upper end of the bucket, exclusive.";
        count: u64, "-", "Number of observations in the bucket.";
    }
}

row! {
    /// The timing of one run in the laboratory. Simulations have no such table.
    TimingRow in "timing.parquet", one per "run" {
        run: Arc<str>, "-", "Identifier of the run.";
        point: Arc<str>, "-", "Label of the sweep's point; `base` without a sweep.";
        seed: u64, "-", "Seed of the run.";
        timing_ok: bool, "0 or 1", "True (1) if the timing is valid; if not, `problem` has the reason.";
        problem: Arc<str>, "-", "Reason why the timing is not valid; empty if it is valid.";
        departure_error_p50_ms: Option<f64>, "ms", "Lateness of packets leaving the network, median.";
        departure_error_p99_ms: Option<f64>, "ms", "Lateness of packets leaving the network, 99th percentile.";
        departure_error_max_ms: Option<f64>, "ms", "Lateness of packets leaving the network, largest.";
        departure_bound_ms: f64, "ms", "Upper bound of the 99th percentile of the lateness.";
        reading_delay_p99_ms: Option<f64>, "ms", "Time from a packet's arrival until it was read, 99th percentile.";
        source_lateness_p99_ms: Option<f64>, "ms", "Lateness of the applications' writes, 99th percentile over all writes.";
        network_cpu: f64, "0..1", "Share of a core used by the links.";
        machine_busy: Option<f64>, "0..1", "Share of the time of all cores in which they were busy, with any process, or stolen.";
        machine_stolen: Option<f64>, "0..1", "Share of the time of all cores that the host of a virtual machine gave to others while a process was ready to run.";
        frames: u64, "packets", "Packets received from the hosts.";
        missed: u64, "packets", "Packets lost because they arrived faster than they were read.";
        failed_flows: u64, "-", "Flows that ended with an error.";
    }
}

row! {
    /// The value of one key at one point of the sweep. Empty without a sweep.
    PointRow in "points.parquet", one per "swept key and point" {
        point: Arc<str>, "-", "Label of the point, as in the other tables.";
        key: Arc<str>, "-", "Path of the key, such as `flow.audio.hint`.";
        value: Arc<str>, "-", "Value of the key, as the scenario writes it.";
        number: Option<f64>, "-", "Value as a number; null if it is not one.";
    }
}

impl DistributionRow {
    /// Returns the row of a quantity of a flow with a single value.
    pub fn single(flow: &str, quantity: &str, value: f64) -> Self {
        debug_assert!(distributed_quantity(quantity).is_some(), "quantity.rs does not describe {quantity}");
        Self {
            subject_kind: "flow".into(),
            subject: flow.into(),
            quantity: quantity.into(),
            low: value,
            high: value,
            count: 1,
            ..Self::default()
        }
    }
}

impl PointRow {
    /// Returns the rows of one point from its label and its settings, which are paths and values.
    pub fn from_settings(label: &str, settings: &[(String, String)]) -> Vec<Self> {
        let point: Arc<str> = label.into();
        let row = |(key, value): &(String, String)| Self {
            point: Arc::clone(&point),
            key: key.as_str().into(),
            value: value.as_str().into(),
            number: number(value),
        };
        settings.iter().map(row).collect()
    }
}

/// Returns the value as a number. A flag is 1 or 0. A quantity with a unit is not a number.
fn number(value: &str) -> Option<f64> {
    match value {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => value.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swept_numbers_and_flags_are_numbers() {
        assert_eq!(number("6"), Some(6.0));
        assert_eq!(number("true"), Some(1.0));
        assert_eq!(number("15 Mbit/s"), None);
        assert_eq!(number("inf"), None);
    }
}
