//! What both ends of a flow have found.

use crate::histogram;
use cutline_sys::tcp::TcpInfo;
use cutline_units::{Duration, Histogram};
use serde::{Deserialize, Serialize};

/// The part of a run in which distributions and the counts of a window are kept: `from <= t < until`, both from the
/// run's zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The end of the warm-up.
    pub from: Duration,
    /// The end of measuring.
    pub until: Duration,
}

impl Window {
    /// The whole run.
    pub const ALL: Self = Self { from: Duration::ZERO, until: Duration::MAX };

    /// Whether a time lies in it.
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

/// What a flow's sender has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderReport {
    /// The flow's number and name.
    pub flow: u32,
    /// The flow's name.
    pub name: String,
    /// Payload bytes handed to the kernel.
    pub bytes: u64,
    /// Datagrams handed to the kernel; for TCP, data segments sent.
    pub packets: u64,
    /// Payload bytes handed to the kernel in the measuring window.
    pub window_bytes: u64,
    /// Datagrams handed to the kernel in the measuring window; zero for TCP, whose segments the kernel counts whole.
    pub window_packets: u64,
    /// Messages that the application wrote.
    pub messages: u64,
    /// Bytes that the application wrote and that found no room: in TFRC's or TCP's queue.
    pub refused_bytes: u64,
    /// Datagrams that the kernel did not take: its buffer was full, or the other end is not there.
    pub unsent: u64,
    /// Bytes added to datagrams that were drawn shorter than their header.
    pub added_bytes: u64,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Timeouts: of TCP's retransmission timer where the kernel counts them, of TFRC's nofeedback timer.
    pub timeouts: Option<u64>,
    /// Response times of files and pages that arrived whole in the measuring window: from their writing, or request, to
    /// their last byte at the receiver.
    pub responses: Histogram,
    /// How late the application was asked after it was due: the generator's own error.
    pub lateness: Histogram,
    /// What the kernel knew of the connection at the end.
    pub tcp: Option<TcpInfo>,
    /// TFRC's average round-trip time at the end.
    pub tfrc_rtt: Option<Duration>,
    /// What was sent in each interval from the run's zero, if it was asked for; missing ones at the end are empty.
    pub intervals: Vec<SentInterval>,
    /// What has ended the flow before its time.
    pub error: Option<String>,
}

/// What a flow's sender has done in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentInterval {
    /// Payload bytes handed to the kernel.
    pub bytes: u64,
    /// Datagrams handed to the kernel; zero for TCP.
    pub packets: u64,
}

/// All that a meter has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeterReport {
    /// The flows of which something came, in the order of their numbers.
    pub flows: Vec<ReceiverReport>,
    /// Datagrams and connections that were none of ours, or of flows that cannot be.
    pub strangers: u64,
    /// Datagrams that came and found the meter's own buffer full; the flows count them as lost.
    pub overflowed: u64,
}

/// What a flow's receiver has found.
///
/// Packets are datagrams; for TCP, messages. A message's delay counts from its writing by the application to its last
/// byte's reading at the other end, so it has the wait in the sender's buffers in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverReport {
    /// The flow's number.
    pub flow: u32,
    /// Payload bytes that came, in the whole run; those of duplicates are not counted.
    pub bytes: u64,
    /// Packets that came, in the whole run; duplicates are not counted.
    pub packets: u64,
    /// Packets missing below the highest that came.
    pub lost: u64,
    /// Packets that came after one that was sent later (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Packets that came again.
    pub duplicated: u64,
    /// Packets that a router marked (CE). TCP's are in the sender's report.
    pub marked: u64,
    /// Payload bytes of the measuring window.
    pub window_bytes: u64,
    /// Packets of the measuring window.
    pub window_packets: u64,
    /// Packets found missing in the measuring window, less those that came late in it.
    pub window_lost: i64,
    /// Packets marked in the measuring window.
    pub window_marked: u64,
    /// One-way delays in the measuring window.
    #[serde(with = "histogram")]
    pub delay: Histogram,
    /// Changes of the one-way delay between packets that came one after the other (RFC 3393, absolute), in the window.
    #[serde(with = "histogram")]
    pub ipdv: Histogram,
    /// When the first byte came, from the run's zero, ns.
    #[serde(with = "histogram::option")]
    pub first: Option<Duration>,
    /// When the last one came.
    #[serde(with = "histogram::option")]
    pub last: Option<Duration>,
    /// The traffic class of the packet that came last; `None` for TCP, and where the kernel did not tell.
    pub traffic_class: Option<u8>,
    /// TFRC's loss event rate at the end.
    pub loss_event_rate: Option<f64>,
    /// What came in each interval from the run's zero, if it was asked for; missing ones at the end are empty.
    pub intervals: Vec<ReceivedInterval>,
    /// What has ended the flow before its time.
    pub error: Option<String>,
}

/// What came of a flow in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedInterval {
    /// Payload bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets found missing, less those that came late.
    pub lost: i64,
    /// Packets marked.
    pub marked: u64,
    /// The sum of the packets' one-way delays, ns.
    pub delay_ns: u64,
    /// The sum of the changes of the delay, ns.
    pub ipdv_ns: u64,
}

impl ReceivedInterval {
    /// The mean one-way delay; `None` without packets.
    pub fn mean_delay(&self) -> Option<Duration> {
        self.delay_ns.checked_div(self.packets).map(Duration::from_nanos)
    }
}

/// The member of a series that a time falls into, made if it is not there; `None` if there is no series or the time is
/// beyond what one would keep.
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
