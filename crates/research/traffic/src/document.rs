//! The measurements as documents: times in ms, sizes of payload in bytes, rates of payload in bit/s.
//!
//! Packets are datagrams; for TCP, data segments where a sender counts them, and messages where a receiver does.

use crate::control::{ClockReport, SenderSession};
use crate::plan::PlanDirection;
use crate::report::{MeterReport, ReceivedInterval, ReceiverReport, SenderReport};
use crate::summary::FlowsSummary;
use cutline_records::record;
use cutline_sys::tcp::TcpInfo;
use cutline_units::{Duration, Histogram, Rate};
use schemars::JsonSchema;
use serde::Serialize;

/// The measurements of both ends of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SendDocument {
    /// The receiver's address and port.
    pub receiver: String,
    /// The seed of the flows' random numbers.
    pub seed: u64,
    /// The planned duration of sending, seconds.
    pub duration_s: f64,
    /// The actual duration of sending, seconds.
    pub elapsed_s: f64,
    /// The relation of the clocks of both ends.
    pub clock: Clock,
    /// The groups of flows.
    pub groups: Vec<GroupTotals>,
    /// All groups together.
    pub total: Totals,
    /// Each flow.
    pub flows: Vec<FlowDocument>,
    /// Datagrams that overflowed the receiver's buffer and count as lost; null without a report of the receiver.
    pub overflowed: Option<u64>,
    /// Datagrams and connections that belong to no flow of this run; null without a report of the receiver.
    pub strangers: Option<u64>,
    /// The error that ended the run early; null if there was none.
    pub error: Option<String>,
}

/// The measurements of a group of flows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GroupTotals {
    /// The group's name.
    pub name: String,
    /// The name of its transport.
    pub transport: String,
    /// `forward` if this end sends, `reverse` if the receiver does.
    pub direction: String,
    /// Its sums and distributions.
    #[serde(flatten)]
    pub totals: Totals,
}

/// One flow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlowDocument {
    /// The flow's name.
    pub name: String,
    /// The flow's number.
    pub flow: u32,
    /// `forward` if this end sends, `reverse` if the receiver does.
    pub direction: String,
    /// The measurements of the end that sends it.
    pub sent: SenderDocument,
    /// The measurements of the end that receives it; null if nothing arrived, or without a report of the receiver.
    pub received: Option<ReceiverDocument>,
}

/// The measurements of a receiver for the run of one sender.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReceiveDocument {
    /// The sender's address and port.
    pub sender: String,
    /// The planned duration of sending, seconds.
    pub duration_s: f64,
    /// Datagrams that overflowed the receiver's buffer and count as lost.
    pub overflowed: u64,
    /// Datagrams and connections that belong to no flow of this run.
    pub strangers: u64,
    /// The flows whose data arrived.
    pub flows: Vec<ReceiverDocument>,
    /// The flows that the receiver sent, by their numbers.
    pub sent: Vec<SentDocument>,
    /// The error that ended the run early; null if there was none.
    pub error: Option<String>,
}

/// A flow that a receiver sent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SentDocument {
    /// The flow's number.
    pub flow: u32,
    /// The measurements of its sender.
    #[serde(flatten)]
    pub sent: SenderDocument,
}

record! {
    /// Sums and distributions over flows.
    pub struct Totals {
        flows: u64, counter("flows"), "The number of flows.", shown("number");
        failed: u64, counter("flows"), "Flows with an error at either end.";
        sent_bytes: u64, counter("B"), "Payload passed to the kernel.";
        sent_bps: f64, gauge("bit/s"), "Mean rate over the time of sending.", shown("sent Mbit/s", 1e-6);
        sent_packets: u64, counter("packets"), "Datagrams sent; for TCP, data segments.";
        received_bytes: u64, counter("B"), "Payload received.";
        goodput_bps: f64, gauge("bit/s"), "Mean rate over the time of sending.", shown("received Mbit/s", 1e-6);
        received_packets: u64, counter("packets"), "Datagrams received; for TCP, messages.", shown("packets");
        lost: u64, counter("packets"), "Datagrams lost.", shown("lost");
        loss_ratio: Option<f64>, gauge("0..1"), "Datagrams lost over those received or lost; null for TCP, or if there were none.", shown("lost %", 100.0);
        reordered: u64, counter("packets"), "Datagrams that arrived after one that was sent later (RFC 4737, type-P-reordered).", shown("late");
        duplicated: u64, counter("packets"), "Duplicate datagrams.";
        marked: u64, counter("packets"), "Datagrams that a router marked (CE); for TCP, segments acknowledged with an ECN echo.", shown("marked");
        retransmissions: u64, counter("packets"), "Segments that TCP retransmitted.", shown("resent");
        refused_bytes: u64, counter("B"), "Bytes of the applications dropped because the queue of TFRC, NADA or TCP was full.", shown("refused KB", 1e-3);
        unsent: u64, counter("packets"), "Datagrams that the sender's kernel refused.";
        delay_ms: Option<DistributionDocument>, gauge("ms"), "One-way delays; null if empty.";
        ipdv_ms: Option<DistributionDocument>, gauge("ms"), "Changes of the one-way delay between packets received one after the other (RFC 3393), absolute; null if empty.";
        response_ms: Option<DistributionDocument>, gauge("ms"), "Response times of files and pages; null if empty.";
        lateness_ms: Option<DistributionDocument>, gauge("ms"), "Lateness of the generator: from the time at which an application was due to its call; null if empty.";
        buffer_wait_ms: Option<DistributionDocument>, gauge("ms"), "For TCP, waits of messages in the sender's own buffers, of the process and of the kernel, until their last byte was sent; null if empty.";
        network_mean_ms: Option<f64>, gauge("ms"), "Mean one-way delay without the waits in the sender's own buffers, at least 0; null without delays.";
        intervals: Option<Vec<IntervalDocument>>, part, "The measurements of each interval; null if none were requested.";
    }

    /// The measurements of a flow's sender.
    pub struct SenderDocument {
        bytes: u64, counter("B"), "Payload passed to the kernel.";
        packets: u64, counter("packets"), "Datagrams passed to the kernel; for TCP, data segments sent.";
        messages: u64, counter("messages"), "Messages that the application wrote.";
        refused_bytes: u64, counter("B"), "Bytes of the application dropped because the queue of TFRC, NADA or TCP was full.";
        unsent: u64, counter("packets"), "Datagrams that the kernel refused because its buffer was full or the peer does not exist.";
        added_bytes: u64, counter("B"), "Bytes added to datagrams whose random size was below the header.";
        retransmissions: u64, counter("packets"), "Segments that TCP retransmitted.";
        timeouts: Option<u64>, counter("timeouts"), "Timeouts of TCP's retransmission timer, where the kernel counts them, or of TFRC's or NADA's reports; null otherwise.";
        response_ms: Option<DistributionDocument>, gauge("ms"), "Response times of files and pages; null if empty.";
        lateness_ms: Option<DistributionDocument>, gauge("ms"), "Lateness of the generator: from the time at which the application was due to its call; null if empty.";
        buffer_wait_ms: Option<DistributionDocument>, gauge("ms"), "For TCP, waits of messages in the buffers of the process and of the kernel until their last byte was sent; null if empty.";
        tcp: Option<TcpDocument>, part, "The kernel's data about the connection at the end (`TCP_INFO`); null without TCP.";
        tfrc_rtt_ms: Option<f64>, gauge("ms"), "Average round-trip time of TFRC or NADA at the end; null with other transports.";
        error: Option<String>, label, "The error that ended the flow early; null if there was none.";
    }

    /// The measurements of a flow's receiver.
    pub struct ReceiverDocument {
        flow: u32, label, "The flow's number.";
        bytes: u64, counter("B"), "Payload received, without that of duplicates.";
        packets: u64, counter("packets"), "Datagrams received, without duplicates; for TCP, messages.";
        lost: u64, counter("packets"), "Packets missing below the highest that was received.";
        reordered: u64, counter("packets"), "Packets that arrived after one that was sent later (RFC 4737, type-P-reordered).";
        duplicated: u64, counter("packets"), "Duplicate packets.";
        marked: u64, counter("packets"), "Packets that a router marked (CE); TCP's are in the sender's report.";
        first_s: Option<f64>, gauge("s"), "Arrival time of the first byte since the run's start; null if none arrived.";
        last_s: Option<f64>, gauge("s"), "Arrival time of the last byte since the run's start; null if none arrived.";
        traffic_class: Option<u8>, gauge("-"), "The traffic class of the last packet; null for TCP, or if the kernel did not report it.";
        loss_event_rate: Option<f64>, gauge("0..1"), "TFRC's loss event rate at the end; null without TFRC.";
        delay_ms: Option<DistributionDocument>, gauge("ms"), "One-way delays; null if empty.";
        ipdv_ms: Option<DistributionDocument>, gauge("ms"), "Changes of the one-way delay between packets received one after the other (RFC 3393), absolute; null if empty.";
        intervals: Option<Vec<IntervalDocument>>, part, "The measurements of each interval; null if none were requested.";
        error: Option<String>, label, "The error that ended the flow early; null if there was none.";
    }

    /// The measurements of an interval.
    pub struct IntervalDocument {
        from_s: f64, label("s"), "Start of the interval, since the run's start.", shown("from s");
        bytes: u64, gauge("B"), "Payload received.";
        goodput_bps: f64, gauge("bit/s"), "Mean rate.", shown("Mbit/s", 1e-6);
        packets: u64, gauge("packets"), "Packets received.", shown("packets");
        lost: i64, gauge("packets"), "Packets found missing, minus late arrivals.", shown("lost");
        marked: u64, gauge("packets"), "Packets that a router marked (CE).", shown("marked");
        mean_delay_ms: Option<f64>, gauge("ms"), "Mean one-way delay; null without packets.", shown("mean delay ms");
        mean_ipdv_ms: Option<f64>, gauge("ms"), "Mean change of the one-way delay, absolute; null without packets.";
    }

    /// A distribution of times, all but `count` in ms.
    pub struct DistributionDocument {
        count: u64, counter("-"), "The number of values.", shown("number");
        min: Option<f64>, gauge("ms"), "The least.", shown("least");
        mean: Option<f64>, gauge("ms"), "The mean.", shown("mean");
        standard_deviation: Option<f64>, gauge("ms"), "The standard deviation.";
        p50: Option<f64>, gauge("ms"), "The median.", shown("median");
        p95: Option<f64>, gauge("ms"), "The 95th percentile.", shown("95 %");
        p99: Option<f64>, gauge("ms"), "The 99th percentile.", shown("99 %");
        max: Option<f64>, gauge("ms"), "The greatest.", shown("greatest");
        buckets: Vec<(f64, f64, u64)>, part, "Buckets of at most 3.1 % width: inclusive lower end, exclusive upper end, number of values.";
    }

    /// The relation of the clocks of both ends. Delays are corrected by the offset.
    pub struct Clock {
        same: bool, label, "True if both ends have the same clock.";
        error_ms: f64, gauge("ms"), "The largest possible error of one-way delays.";
        offset_ms: f64, gauge("ms"), "The receiver's clock minus the sender's before the run.";
        drift_ms: Option<f64>, gauge("ms"), "Change of the offset during the run; null if it is not known.";
        round_trip_ms: f64, gauge("ms"), "The round-trip time of the exchange that gave the offset.";
    }

    /// The kernel's data about a TCP connection at its end (`TCP_INFO`).
    pub struct TcpDocument {
        rtt_ms: f64, gauge("ms"), "Smoothed round-trip time.";
        rtt_deviation_ms: f64, gauge("ms"), "Mean deviation of the round-trip time.";
        min_rtt_ms: f64, gauge("ms"), "Smallest round-trip time seen recently.";
        rto_ms: f64, gauge("ms"), "Retransmission timeout.";
        congestion_window: u32, gauge("segments"), "Congestion window.";
        slow_start_threshold: u32, gauge("segments"), "Slow-start threshold.";
        max_segment: u32, gauge("B"), "Payload of a full segment.";
        data_segments: u32, counter("segments"), "Data segments sent, including retransmissions.";
        retransmissions: u32, counter("segments"), "Segments retransmitted.";
        timeouts: Option<u32>, counter("timeouts"), "Retransmission timeouts; null where the kernel does not count them (before 6.7).";
        delivered: u32, counter("segments"), "Segments that the peer has acknowledged.";
        delivered_ce: u32, counter("segments"), "Delivered segments that were acknowledged with an ECN echo.";
        bytes_sent: u64, counter("B"), "Bytes sent, including retransmissions.";
        bytes_retransmitted: u64, counter("B"), "Bytes retransmitted.";
        bytes_acked: u64, counter("B"), "Bytes acknowledged.";
        not_sent: u32, gauge("B"), "Bytes in the socket's buffer that have not been sent yet.";
        pacing_rate_bps: u64, gauge("bit/s"), "The rate that segments are paced to; zero if they are not paced.";
        delivery_rate_bps: u64, gauge("bit/s"), "The delivery rate measured last.";
        ecn: bool, label, "True if both ends have agreed on ECN.";
        sack: bool, label, "True if both ends have agreed on selective acknowledgements.";
    }
}

impl Totals {
    /// Returns the document of a summary. `elapsed` is the duration of sending, `interval` the width of the intervals.
    pub fn new(of: &FlowsSummary, elapsed: Duration, interval: Option<Duration>) -> Self {
        Self {
            flows: of.flows,
            failed: of.failed,
            sent_bytes: of.sent_bytes,
            sent_bps: rate_bps(of.sent_bytes, elapsed),
            sent_packets: of.sent_packets,
            received_bytes: of.received_bytes,
            goodput_bps: of.goodput_bps(elapsed),
            received_packets: of.received_packets,
            lost: of.lost,
            loss_ratio: of.loss(),
            reordered: of.reordered,
            duplicated: of.duplicated,
            marked: of.marked,
            retransmissions: of.retransmissions,
            refused_bytes: of.refused_bytes,
            unsent: of.unsent,
            delay_ms: DistributionDocument::new(&of.delay),
            ipdv_ms: DistributionDocument::new(&of.ipdv),
            response_ms: DistributionDocument::new(&of.responses),
            lateness_ms: DistributionDocument::new(&of.lateness),
            buffer_wait_ms: DistributionDocument::new(&of.buffer_wait),
            network_mean_ms: of.network_delay().map(Duration::as_millis_f64),
            intervals: series(&of.intervals, interval),
        }
    }

    /// Returns the same totals without a loss ratio. TCP retransmits lost data, so it has none.
    pub fn without_loss_ratio(self) -> Self {
        Self { loss_ratio: None, ..self }
    }
}

impl ReceiveDocument {
    /// Returns the document of a session whose report is `report`.
    pub fn new(session: &SenderSession, report: &MeterReport) -> Self {
        let SenderSession { peer, until, interval, ref sent, ref error, .. } = *session;
        Self {
            sender: peer.to_string(),
            duration_s: until.as_secs_f64(),
            overflowed: report.overflowed,
            strangers: report.strangers,
            flows: report.flows.iter().map(|flow| ReceiverDocument::new(flow, interval)).collect(),
            sent: sent.iter().map(|sent| SentDocument { flow: sent.flow, sent: sent.into() }).collect(),
            error: error.as_ref().map(ToString::to_string),
        }
    }
}

impl FlowDocument {
    /// Returns the document of a flow from the reports of its two ends.
    pub fn new(
        sent: &SenderReport,
        received: Option<&ReceiverReport>,
        direction: PlanDirection,
        interval: Option<Duration>,
    ) -> Self {
        Self {
            name: sent.name.clone(),
            flow: sent.flow,
            direction: direction.name().to_owned(),
            sent: sent.into(),
            received: received.map(|received| ReceiverDocument::new(received, interval)),
        }
    }
}

impl From<&SenderReport> for SenderDocument {
    fn from(report: &SenderReport) -> Self {
        Self {
            bytes: report.bytes,
            packets: report.packets,
            messages: report.messages,
            refused_bytes: report.refused_bytes,
            unsent: report.unsent,
            added_bytes: report.added_bytes,
            retransmissions: report.retransmissions,
            timeouts: report.timeouts,
            response_ms: DistributionDocument::new(&report.responses),
            lateness_ms: DistributionDocument::new(&report.lateness),
            buffer_wait_ms: DistributionDocument::new(&report.buffer_wait),
            tcp: report.tcp.as_ref().map(TcpDocument::from),
            tfrc_rtt_ms: report.tfrc_rtt.map(Duration::as_millis_f64),
            error: report.error.clone(),
        }
    }
}

impl ReceiverDocument {
    fn new(report: &ReceiverReport, interval: Option<Duration>) -> Self {
        Self {
            flow: report.flow,
            bytes: report.bytes,
            packets: report.packets,
            lost: report.lost,
            reordered: report.reordered,
            duplicated: report.duplicated,
            marked: report.marked,
            first_s: report.first.map(Duration::as_secs_f64),
            last_s: report.last.map(Duration::as_secs_f64),
            traffic_class: report.traffic_class,
            loss_event_rate: report.loss_event_rate,
            delay_ms: DistributionDocument::new(&report.delay),
            ipdv_ms: DistributionDocument::new(&report.ipdv),
            intervals: series(&report.intervals, interval),
            error: report.error.clone(),
        }
    }
}

impl DistributionDocument {
    /// Returns the document of a distribution; `None` if it is empty.
    pub(crate) fn new(of: &Histogram) -> Option<Self> {
        let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
        let buckets = of
            .buckets()
            .map(|bucket| (bucket.low.as_millis_f64(), bucket.high.as_millis_f64(), bucket.count));
        (of.count() > 0).then(|| Self {
            count: of.count(),
            min: ms(of.min()),
            mean: ms(of.mean()),
            standard_deviation: ms(of.standard_deviation()),
            p50: ms(of.quantile(0.5)),
            p95: ms(of.quantile(0.95)),
            p99: ms(of.quantile(0.99)),
            max: ms(of.max()),
            buckets: buckets.collect(),
        })
    }
}

impl From<&ClockReport> for Clock {
    fn from(clock: &ClockReport) -> Self {
        Self {
            same: clock.same,
            error_ms: clock.error().as_millis_f64(),
            offset_ms: clock.offset().as_nanos() as f64 * 1e-6,
            drift_ms: clock.after.map(|_| clock.drift_ns() as f64 * 1e-6),
            round_trip_ms: clock.before.round_trip.as_millis_f64(),
        }
    }
}

impl From<&TcpInfo> for TcpDocument {
    fn from(info: &TcpInfo) -> Self {
        Self {
            rtt_ms: info.rtt.as_millis_f64(),
            rtt_deviation_ms: info.rtt_deviation.as_millis_f64(),
            min_rtt_ms: info.min_rtt.as_millis_f64(),
            rto_ms: info.rto.as_millis_f64(),
            congestion_window: info.congestion_window,
            slow_start_threshold: info.slow_start_threshold,
            max_segment: info.max_segment,
            data_segments: info.data_segments,
            retransmissions: info.retransmissions,
            timeouts: info.timeouts,
            delivered: info.delivered,
            delivered_ce: info.delivered_ce,
            bytes_sent: info.bytes_sent,
            bytes_retransmitted: info.bytes_retransmitted,
            bytes_acked: info.bytes_acked,
            not_sent: info.not_sent,
            pacing_rate_bps: Rate::as_bps(info.pacing_rate),
            delivery_rate_bps: Rate::as_bps(info.delivery_rate),
            ecn: info.ecn,
            sack: info.sack,
        }
    }
}

fn series(intervals: &[ReceivedInterval], width: Option<Duration>) -> Option<Vec<IntervalDocument>> {
    let width = width?;
    let one = |(i, of): (u64, &ReceivedInterval)| {
        let ipdv = of.ipdv_ns.checked_div(of.packets).map(|ns| Duration::from_nanos(ns).as_millis_f64());
        IntervalDocument {
            from_s: i as f64 * width.as_secs_f64(),
            bytes: of.bytes,
            goodput_bps: rate_bps(of.bytes, width),
            packets: of.packets,
            lost: of.lost,
            marked: of.marked,
            mean_delay_ms: of.mean_delay().map(Duration::as_millis_f64),
            mean_ipdv_ms: ipdv,
        }
    };
    Some((0..).zip(intervals).map(one).collect())
}

/// Returns the mean rate in bit/s; zero if `time` is zero.
pub(crate) fn rate_bps(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sums_rates_and_distributions_agree() {
        let mut delay = Histogram::default();
        delay.record(Duration::from_millis(20));
        let interval =
            ReceivedInterval { bytes: 250_000, packets: 5, delay_ns: 100_000_000, ..Default::default() };
        let of = FlowsSummary {
            sent_bytes: 500_000,
            received_bytes: 250_000,
            received_packets: 3,
            lost: 1,
            delay,
            intervals: vec![interval; 2],
            ..FlowsSummary::default()
        };
        let totals = Totals::new(&of, Duration::from_secs(2), Some(Duration::from_secs(1)));
        assert_eq!((totals.sent_bps, totals.goodput_bps, totals.loss_ratio), (2e6, 1e6, Some(0.25)));
        let of_delay = totals.delay_ms.as_ref().unwrap();
        assert_eq!((of_delay.count, of_delay.min, of_delay.max), (1, Some(20.0), Some(20.0)));
        assert_eq!((of_delay.buckets.len(), &totals.ipdv_ms), (1, &None));
        let second = &totals.intervals.as_ref().unwrap()[1];
        assert_eq!((second.from_s, second.goodput_bps, second.mean_delay_ms), (1.0, 2e6, Some(20.0)));
        let group = GroupTotals {
            name: "a".into(),
            transport: "tcp".into(),
            direction: "forward".into(),
            totals: totals.without_loss_ratio(),
        };
        let document = json!(group);
        assert_eq!((&document["sent_bytes"], &document["loss_ratio"]), (&json!(500_000), &json!(null)));
    }

    #[test]
    fn without_intervals_there_is_no_series() {
        let totals = Totals::new(&FlowsSummary::default(), Duration::ZERO, None);
        assert_eq!((totals.intervals, totals.delay_ms, totals.goodput_bps), (None, None, 0.0));
    }
}
