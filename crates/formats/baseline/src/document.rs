//! The table: host, path, plan, and a row for each measurement. Rates count payload unless stated otherwise.

use crate::HostFingerprint;
use cutline_records::record;
use cutline_translate::{Baseline, BaselinePoint, Protocol};
use cutline_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const FORMAT: u32 = 1;

/// The measured performance of a host and a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BaselineDocument {
    /// The version of the format: 1.
    pub format: u32,
    /// The version of the program that has measured it.
    pub program: String,
    /// The host that sent.
    pub host: HostFingerprint,
    /// The path to the receiver.
    pub path: PathFingerprint,
    /// The measurements that were requested.
    pub plan: PlanDocument,
    /// Beginning of the first measurement, seconds since 1970-01-01T00:00:00Z.
    pub began_s: u64,
    /// End of the last measurement, seconds since 1970-01-01T00:00:00Z.
    pub ended_s: u64,
    /// True if every measurement of the plan is there.
    pub complete: bool,
    /// The loads that were chosen for this host, by protocol.
    pub host_rates: Vec<HostRates>,
    /// The measurements, in the order in which they were made.
    pub rows: Vec<BaselineRow>,
}

/// The loads that were chosen for a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostRates {
    /// The protocol: `tcp`, `udp` or `direct`.
    pub protocol: String,
    /// Payload rates, bit/s: shares of the rate that the protocol carried without a limit.
    pub rates_bps: Vec<u64>,
}

/// The size of the buffers of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum QueueSize {
    /// Default buffers of the kernel.
    #[default]
    Default,
    /// Larger buffers, with the sizes of the plan.
    Large,
}

impl QueueSize {
    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Large => "large",
        }
    }
}

record! {
    schema is a feature;

    /// The path of the measurements.
    #[derive(Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PathFingerprint {
        receiver: String, label, "Address of the receiver, or `loopback` or `namespaces` for a receiver in the same process.";
        mtu: u32, label("B"), "The longest IP packet of the path when the measurement began.";
    }

    /// The measurements that were requested.
    #[derive(Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PlanDocument {
        protocols: Vec<String>, label, "The protocols.";
        rates_bps: Vec<u64>, label("bit/s"), "Loads, beside those that are chosen for the host.";
        blocks: Vec<u64>, label("B"), "Sizes of blocks: the data that an application passes to one write.";
        shares_percent: Vec<u32>, label("%"), "Loads that are chosen for the host, relative to a protocol's rate without a limit.";
        margins_percent: Vec<u32>, label("%"), "Requested bandwidths, relative to the load with its headers.";
        duration_ms: u64, label("ms"), "Least duration of a measurement.";
        least_blocks: u32, label("blocks"), "Least number of blocks of a measurement with a fixed load: it lasts longer if the duration has fewer.";
        max_rate_bps: u64, label("bit/s"), "The largest load.";
        unlimited_udp: bool, label, "True if UDP is measured without rate control: as fast as the socket takes it.";
        default_buffer: u64, label("B"), "Receive buffer of UDP as by default (`SO_RCVBUF` before the kernel doubles it).";
        large_buffer: u64, label("B"), "The larger buffers (`SO_RCVBUF` and `SO_SNDBUF` before the kernel doubles them).";
        shaper_queue: u64, label("B"), "Payload that may wait for the requested bandwidth; at least two blocks.";
        seed: u64, label, "Seed of the random numbers.";
    }

    /// A measurement.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct BaselineRow {
        protocol: String, label, "The protocol: `tcp`, `udp` or `direct`.", shown("protocol");
        queue: QueueSize, label, "The buffers: `default` or `large`.", shown("buffers");
        block: u64, label("B"), "Size of a block: the data of one write of the application.", shown("block B");
        load_bps: Option<u64>, label("bit/s"), "Payload rate of the application; null if it wrote as fast as its socket took the blocks.", shown("load Mbit/s", 1e-6);
        requested_percent: Option<u32>, label("%"), "Rate limit below the application, relative to the load with its headers; null without such a limit.", shown("requested %");
        duration_s: f64, gauge("s"), "Duration of sending.";
        blocks: u64, counter("blocks"), "Blocks that the application wrote.";
        throughput_bps: f64, gauge("bit/s"), "Payload received, until the last byte arrived.", shown("received Mbit/s", 1e-6);
        loss_ratio: Option<f64>, gauge("0..1"), "Blocks that were written and not received; null for TCP, or if none were written.", shown("lost %", 100.0);
        not_written: u64, counter("blocks"), "Blocks that the application was too late to write: lost in the application.", shown("late");
        lost_sender_queue: u64, counter("blocks"), "Blocks lost in the sender's queue: that of its socket, or that in front of the requested rate.", shown("queue");
        lost_interface: u64, counter("blocks"), "Blocks lost at interfaces of either host, by their counters: an upper bound.", shown("interface");
        lost_receive_buffer: u64, counter("blocks"), "Blocks lost because the receiver's buffer was full.", shown("buffer");
        lost_path: u64, counter("blocks"), "Blocks lost elsewhere: on the path.", shown("path");
        not_reassembled: u64, counter("blocks"), "Blocks that arrived in part at the receiver's host, by its counter.";
        segments: u64, counter("segments"), "Data segments that TCP sent; 0 for UDP.";
        retransmissions: u64, counter("segments"), "Segments that TCP retransmitted.", shown("resent");
        delay_ms: Option<f64>, gauge("ms"), "Mean time from writing a block to its arrival: over UDP at the receiver's socket, over TCP until its last byte is read; null if none arrived.", shown("delay ms");
        delay_p99_ms: Option<f64>, gauge("ms"), "99th percentile of that time.";
        rtt_ms: Option<f64>, gauge("ms"), "Mean round-trip time of a block: its delay, and that of a datagram of 64 B back; null if either is unknown.", shown("RTT ms");
        kernel_rtt_ms: Option<f64>, gauge("ms"), "TCP's own smoothed round-trip time at the end; null for UDP.";
        sender_cpu: Option<f64>, gauge("0..1"), "Processor time of the thread that sent, over the duration.", shown("CPU % sent", 100.0);
        receiver_cpu: Option<f64>, gauge("0..1"), "Processor time of the thread that received, over the duration.", shown("received", 100.0);
        sender_busy: Option<f64>, gauge("0..1"), "Share of all processors' time of the sender's host that was used by all programs.";
        receiver_busy: Option<f64>, gauge("0..1"), "Share of all processors' time of the receiver's host that was used by all programs.";
        receive_buffer: Option<u64>, gauge("B"), "Receive buffer of datagrams that the kernel gave, as it counts.";
        clock_error_ms: f64, gauge("ms"), "The largest possible error of the delay from the clocks of both ends.";
        late_p99_ms: Option<f64>, gauge("ms"), "99th percentile of the lateness of the application's writes; null without a fixed load.";
    }
}

/// Properties that distinguish a measurement from the others of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The protocol's name.
    pub protocol: String,
    /// The buffers.
    pub queue: QueueSize,
    /// Size of a block, bytes.
    pub block: u64,
    /// Load, bit/s; `None` for none.
    pub load_bps: Option<u64>,
    /// Requested bandwidth, per cent of the load; `None` for none.
    pub requested_percent: Option<u32>,
}

impl BaselineRow {
    /// Returns the key of the measurement.
    pub fn key(&self) -> RowKey {
        RowKey {
            protocol: self.protocol.clone(),
            queue: self.queue,
            block: self.block,
            load_bps: self.load_bps,
            requested_percent: self.requested_percent,
        }
    }

    /// Converts the measurement for the translators; `None` if its protocol is unknown.
    fn point(&self) -> Option<BaselinePoint> {
        Some(BaselinePoint {
            protocol: Protocol::parse(&self.protocol).ok()?,
            block: Bytes::new(self.block),
            load: self.load_bps.map(Rate::from_bps),
            requested: self.requested_percent.map(|percent| f64::from(percent) / 100.0),
            has_large_buffer: self.queue == QueueSize::Large,
            throughput: Rate::from_bps(self.throughput_bps as u64),
            loss: self.loss_ratio.unwrap_or(0.0),
            delay: self.delay_ms.map(|ms| Duration::from_secs_f64(ms * 1e-3)),
        })
    }
}

impl BaselineDocument {
    /// Converts the measurements for the translators.
    pub fn baseline(&self) -> Baseline {
        Baseline {
            points: self.rows.iter().filter_map(BaselineRow::point).collect(),
            large_buffer: Bytes::new(self.plan.large_buffer),
        }
    }

    /// Returns the measurement with a key.
    pub fn row(&self, key: &RowKey) -> Option<&BaselineRow> {
        self.rows.iter().find(|row| row.key() == *key)
    }
}
