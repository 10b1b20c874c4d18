//! The measurements of both ends of a flow.

use crate::histogram;
use cutline_sys::tcp::TcpInfo;
use cutline_units::{Duration, Histogram};
use serde::{Deserialize, Serialize};

/// The measuring window: the part of a run that distributions and window counters cover, `from <= t < until`. Both
/// times count from the run's zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end of the warm-up.
    pub from: Duration,
    /// The end of the measurement.
    pub until: Duration,
}

impl Window {
    /// The whole run.
    pub const ALL: Self = Self { from: Duration::ZERO, until: Duration::MAX };

    /// Returns whether a time is in the window.
    #[inline]
    pub fn contains(self, time: Duration) -> bool {
        self.from <= time && time < self.until
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::ALL
    }
}

/// The measurements of a flow's sender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderReport {
    /// The flow's number.
    pub flow: u32,
    /// The flow's name.
    pub name: String,
    /// Payload bytes passed to the kernel.
    pub bytes: u64,
    /// Datagrams passed to the kernel; for TCP, data segments sent.
    pub packets: u64,
    /// Payload bytes passed to the kernel in the measuring window.
    pub window_bytes: u64,
    /// Datagrams passed to the kernel in the measuring window; zero for TCP, whose segments the kernel counts for the
    /// whole run.
    pub window_packets: u64,
    /// Messages that the application wrote.
    pub messages: u64,
    /// Bytes of the application dropped because the queue of TFRC or TCP was full, or datagrams above the generator's largest
    /// rate.
    pub refused_bytes: u64,
    /// Datagrams that the kernel refused because its buffer was full or the peer does not exist.
    pub unsent: u64,
    /// Bytes added to datagrams whose random size was below the header.
    pub added_bytes: u64,
    /// Segments that TCP retransmitted.
    pub retransmissions: u64,
    /// Timeouts of TCP's retransmission timer, where the kernel counts them, or of TFRC's nofeedback timer; `None`
    /// otherwise.
    pub timeouts: Option<u64>,
    /// Response times of files and pages that were complete in the measuring window: from the time of writing or of the
    /// request to the arrival of the last byte.
    #[serde(with = "histogram")]
    pub responses: Histogram,
    /// Lateness of the generator: from the time at which the application was due to its call.
    #[serde(with = "histogram")]
    pub lateness: Histogram,
    /// For TCP, how long messages waited in the buffers of the process and of the kernel before their last byte was sent for the
    /// first time, in the measuring window. Empty if it was not measured ([`crate::Generator::with_buffer_waits`]).
    #[serde(with = "histogram")]
    pub buffer_wait: Histogram,
    /// The kernel's data about the connection at the end (`TCP_INFO`).
    #[serde(with = "crate::sent::tcp_info")]
    pub tcp: Option<TcpInfo>,
    /// TFRC's average round-trip time at the end.
    #[serde(with = "histogram::option")]
    pub tfrc_rtt: Option<Duration>,
    /// The counters of each interval since the run's zero; empty if no intervals were requested. Intervals that are
    /// missing at the end had no packets.
    pub intervals: Vec<SentInterval>,
    /// The error that ended the flow early.
    pub error: Option<String>,
}

/// The counters of a flow's sender in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentInterval {
    /// Payload bytes passed to the kernel.
    pub bytes: u64,
    /// Datagrams passed to the kernel; zero for TCP.
    pub packets: u64,
}

/// The measurements of a meter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeterReport {
    /// The flows whose data arrived, in the order of their numbers.
    pub flows: Vec<ReceiverReport>,
    /// Datagrams and connections that belong to no flow of this run.
    pub strangers: u64,
    /// Datagrams that overflowed the meter's buffer. The flows count them as lost.
    pub overflowed: u64,
}

/// The measurements of a flow's receiver.
///
/// Packets are datagrams; for TCP, messages. A message's delay is the time from its writing by the application to the
/// reading of its last byte at the receiver. It includes the wait in the sender's buffers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverReport {
    /// The flow's number.
    pub flow: u32,
    /// Payload bytes received in the whole run, without those of duplicates.
    pub bytes: u64,
    /// Packets received in the whole run, without duplicates.
    pub packets: u64,
    /// Packets missing below the highest that was received.
    pub lost: u64,
    /// Packets that arrived after one that was sent later (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Duplicate packets.
    pub duplicated: u64,
    /// Packets that a router marked (CE). TCP's are in the sender's report.
    pub marked: u64,
    /// Payload bytes received in the measuring window.
    pub window_bytes: u64,
    /// Packets received in the measuring window.
    pub window_packets: u64,
    /// Packets found missing in the measuring window, minus late arrivals in it.
    pub window_lost: i64,
    /// Packets marked in the measuring window.
    pub window_marked: u64,
    /// One-way delays in the measuring window.
    #[serde(with = "histogram")]
    pub delay: Histogram,
    /// Absolute changes of the one-way delay between packets received one after the other (RFC 3393), in the measuring
    /// window.
    #[serde(with = "histogram")]
    pub ipdv: Histogram,
    /// The arrival time of the first byte, since the run's zero.
    #[serde(with = "histogram::option")]
    pub first: Option<Duration>,
    /// The arrival time of the last byte, since the run's zero.
    #[serde(with = "histogram::option")]
    pub last: Option<Duration>,
    /// The traffic class of the last packet; `None` for TCP, or if the kernel did not report it.
    pub traffic_class: Option<u8>,
    /// TFRC's loss event rate at the end.
    pub loss_event_rate: Option<f64>,
    /// The counters of each interval since the run's zero; empty if no intervals were requested. Intervals that are
    /// missing at the end had no packets.
    pub intervals: Vec<ReceivedInterval>,
    /// The error that ended the flow early.
    pub error: Option<String>,
}

/// The counters of a flow's receiver in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedInterval {
    /// Payload bytes received.
    pub bytes: u64,
    /// Packets received.
    pub packets: u64,
    /// Packets found missing, minus late arrivals.
    pub lost: i64,
    /// Packets that a router marked (CE).
    pub marked: u64,
    /// The sum of the packets' one-way delays, ns.
    pub delay_ns: u64,
    /// The sum of the changes of the delay, ns.
    pub ipdv_ns: u64,
}

impl ReceivedInterval {
    /// Returns the mean one-way delay; `None` without packets.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.delay_ns.checked_div(self.packets).map(Duration::from_nanos)
    }
}

/// Returns the interval of `series` that contains `time`, and adds it if it is missing. Returns `None` if `width` is
/// `None` or `time` is after the last interval that a series can have.
pub(crate) fn interval_at<T: Clone + Default>(
    series: &mut Vec<T>,
    width: Option<Duration>,
    time: Duration,
) -> Option<&mut T> {
    const MOST: u64 = 10_000_000;
    let index = time.as_nanos() / width?.as_nanos().max(1);
    if index >= MOST {
        return None;
    }
    let index = index as usize;
    if index >= series.len() {
        series.resize(index + 1, T::default());
    }
    Some(&mut series[index])
}
