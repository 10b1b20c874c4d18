//! The published records.

use cutline_records::{BucketCounts, record};
use serde::{Deserialize, Serialize};

/// Upper bounds of the buckets of one-way delays, ms.
pub const DELAY_BOUNDS_MS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0];

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// A [`SocketRow`].
    Socket,
    /// A [`ProgramRow`].
    Program,
    /// The statistics of a router.
    Router,
}

/// Returns the unit of a measure that has a limit ([`LimitRow`], [`ViolationRow`]), by its name.
pub fn unit_of(measure: &str) -> &'static str {
    match measure {
        "rate" => "messages/s",
        "loss" => "%",
        _ => "ms",
    }
}

record! {
    schema is a feature;

    /// A QoS socket, at one of its two ends.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct SocketRow {
        socket: u64, label, "Number of the socket in its process.";
        transport: String, label, "The transport: `tcp`, `udp` or `direct`.", shown("transport");
        local: String, label, "Local address and port.", shown("local");
        peer: String, label, "Address and port of the peer.", shown("peer");
        opened_unix_s: f64, gauge("s"), "Time at which the socket was connected, since 1970.";
        state: String, label, "State of the connection: `joining` before the ends have agreed, `agreed`, `alone` if the peer takes no part, or `reconnecting`.", shown("state");
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<u16>, gauge("level"), "Delay hint of the packets that this end sends; null if they have none.", shown("hint");
        #[serde(skip_serializing_if = "Option::is_none")]
        rtt_ms: Option<f64>, gauge("ms"), "The latest round-trip time; null if it is not known.", shown("RTT ms");
        #[serde(skip_serializing_if = "Option::is_none")]
        clock_error_ms: Option<f64>, gauge("ms"), "The largest error of the delays because of the two clocks; null if it is not known.";
        #[serde(skip_serializing_if = "Option::is_none")]
        retransmissions: Option<u64>, counter("packets"), "Segments that TCP has sent again; null for datagrams.";
        reconnections: u64, counter("reconnections"), "Number of reconnections.";
        #[serde(skip_serializing_if = "Option::is_none")]
        target_rate: Option<f64>, gauge("messages/s"), "Rate at which the application should send; null if no limit is in effect.";
        send_queue_bytes: u64, gauge("B"), "Data in the socket's send queue.";
        waits: u64, counter("waits"), "Number of times that sending had to wait: for room in the send queue, or for the agreed rate.";
        reservation: String, label, "State of the reservation: `none`, `waiting`, `reserved`, `refused`, or `ended` if it was held and is lost.", shown("reservation");
        #[serde(skip_serializing_if = "Option::is_none")]
        reserved_bps: Option<u64>, gauge("bit/s"), "Rate that the network has reserved for the traffic sent; null without a reservation.";
        #[serde(skip_serializing_if = "Option::is_none")]
        refusal: Option<String>, label, "Reason why the reservation was refused; null if it was not.";
        managed: bool, label, "True if managers of the host may request weaker limits.";
        send: DirectionRow, part, "The direction in which this end sends, as the peer reports it.";
        receive: DirectionRow, part, "The direction in which this end receives.";
    }

    /// A direction of a QoS socket: the request, and the delivery.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct DirectionRow {
        #[serde(skip_serializing_if = "String::is_empty")]
        offered: String, label, "Specification of this end. Empty if it demands nothing.";
        #[serde(skip_serializing_if = "String::is_empty")]
        requested: String, label, "Specification of the peer. Empty if it demands nothing, or has not stated it.";
        #[serde(skip_serializing_if = "String::is_empty")]
        effective: String, label, "The specification that holds. Empty if nothing is demanded.";
        sent_messages: u64, counter("messages"), "Messages sent.";
        sent_bytes: u64, counter("B"), "Bytes of the messages sent.";
        held_ms: f64, counter("ms"), "Time in which the sending application was held back.";
        received_messages: u64, counter("messages"), "Messages received, without duplicates.";
        received_bytes: u64, counter("B"), "Bytes of the messages received.";
        lost_messages: u64, counter("messages"), "Messages lost.";
        late_messages: u64, counter("messages"), "Messages received after one with a higher number.";
        unread_ms: f64, counter("ms"), "Time in which received data waited because the application did not read.";
        overflowed_datagrams: u64, counter("datagrams"), "Datagrams that the receiving host dropped because the receive buffer of the socket was full.";
        #[serde(skip_serializing_if = "Option::is_none")]
        rate: Option<f64>, gauge("messages/s"), "Messages received per second in the last interval; null before the first.";
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput_bps: Option<u64>, gauge("bit/s"), "Throughput received in the last interval; null before the first.", shown("Mbit/s", 1e-6);
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_percent: Option<f64>, gauge("%"), "Messages lost of those sent in the last interval; null if none was sent.", shown("loss %");
        #[serde(skip_serializing_if = "Option::is_none")]
        gap_ms: Option<f64>, gauge("ms"), "The longest time without an arrival in the last interval; null before the first.";
        #[serde(skip_serializing_if = "Option::is_none")]
        last_delay: Option<SpreadRow>, part, "One-way delays of the last interval; null if no message has arrived, or the clocks are not compared yet.";
        #[serde(skip_serializing_if = "Option::is_none")]
        last_jitter: Option<SpreadRow>, part, "Jitters of the last interval; null without any.";
        #[serde(skip_serializing_if = "Option::is_none")]
        delay: Option<SpreadRow>, part, "One-way delays since the beginning; null where the peer receives.";
        #[serde(skip_serializing_if = "Option::is_none")]
        jitter: Option<SpreadRow>, part, "Jitters since the beginning; null where the peer receives.";
        #[serde(skip_serializing_if = "Option::is_none")]
        delay_buckets_ms: Option<BucketCounts>, histogram("ms"), "Messages by their one-way delay since the beginning. Bounds are exact to 3 %. Null before the first delay, and where the peer receives.";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        limits: Vec<LimitRow>, part, "The measures that have limits: the region of operation, and the measurements in it.";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        violations: Vec<ViolationRow>, part, "The violations under way.";
        violations_begun: u64, counter("violations"), "Number of violations since the beginning, of all measures.";
    }

    /// Distribution of times.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct SpreadRow {
        mean_ms: f64, gauge("ms"), "The mean.";
        #[serde(skip_serializing_if = "Option::is_none")]
        p50_ms: Option<f64>, gauge("ms"), "The median; null of an interval.";
        #[serde(skip_serializing_if = "Option::is_none")]
        p90_ms: Option<f64>, gauge("ms"), "The 90th percentile; null of an interval.";
        p99_ms: f64, gauge("ms"), "The 99th percentile; of an interval the quantile that is compared with the limit.";
        max_ms: f64, gauge("ms"), "The longest.";
    }

    /// A measure that has a limit, in its unit: messages/s, ms or per cent.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct LimitRow {
        measure: String, label, "The measure: `rate`, `delay`, `gap`, `jitter`, `loss` or `recovery`.";
        best: f64, gauge, "The best value; a better one has no further use.";
        worst: f64, gauge, "The worst acceptable value.";
        #[serde(skip_serializing_if = "Option::is_none")]
        best_measured: Option<f64>, gauge, "The best value measured since the specification holds; null before the first.";
        #[serde(skip_serializing_if = "Option::is_none")]
        worst_measured: Option<f64>, gauge, "The worst value measured since then; null before the first.";
        begun: u64, counter("violations"), "Number of violations of this measure.";
    }

    /// A violation under way.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct ViolationRow {
        measure: String, label, "The measure.";
        limit: f64, gauge, "The worst acceptable value.";
        measured: f64, gauge, "The worst value since the violation began.";
        origin: String, label, "Origin of the violation: `sending-host`, `network` or `receiving-host`.";
        for_s: f64, gauge("s"), "Time since the violation began.";
    }

    /// A program that runs under `cutline exec`.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct ProgramRow {
        process: u64, label, "Number of the process.";
        program: String, label, "The command.", shown("program");
        method: String, label, "Method by which the sockets of the program are reached: `preload` or `cgroup`.", shown("method");
        hint: Option<u16>, gauge("level"), "Delay hint of its packets; null if they have none.", shown("hint");
        is_counted: bool, label, "True if messages are counted: with `preload`, not with `cgroup`.";
        rate_bps: Option<u64>, gauge("bit/s"), "Rate at which its datagrams are paced; null without pacing.";
        sockets: Option<u64>, counter("sockets"), "Sockets that were marked; null where nothing is counted.", shown("sockets");
        messages: Option<u64>, counter("messages"), "Datagrams sent, and segments with payload of TCP; null where nothing is counted. Those of a TCP connection are counted when it is closed.", shown("messages");
        bytes: Option<u64>, counter("B"), "Payload of these messages; null where nothing is counted.", shown("bytes");
        waits: Option<u64>, counter("waits"), "Number of datagrams that had to wait for their time; null where nothing is counted.";
    }
}
