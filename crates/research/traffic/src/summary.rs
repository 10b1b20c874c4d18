//! The sums and merged distributions of a group of flows.

use crate::report::{ReceivedInterval, ReceiverReport, SenderReport};
use cutline_units::{Duration, Histogram};

/// The measurements of a group of flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowsSummary {
    /// The number of flows.
    pub flows: u64,
    /// Flows with an error at either end.
    pub failed: u64,
    /// Payload bytes passed to the kernel.
    pub sent_bytes: u64,
    /// Datagrams sent; for TCP, data segments.
    pub sent_packets: u64,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Datagrams received; for TCP, messages.
    pub received_packets: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Duplicate datagrams.
    pub duplicated: u64,
    /// Datagrams that a router marked (CE); for TCP, segments acknowledged with an ECN echo.
    pub marked: u64,
    /// Segments that TCP retransmitted.
    pub retransmissions: u64,
    /// Bytes of the applications dropped because the queue of TFRC or TCP was full.
    pub refused_bytes: u64,
    /// Datagrams that the sender's kernel refused.
    pub unsent: u64,
    /// One-way delays.
    pub delay: Histogram,
    /// Absolute changes of the one-way delay.
    pub ipdv: Histogram,
    /// Response times of files and pages.
    pub responses: Histogram,
    /// Lateness of the generator: from the time at which an application was due to its call.
    pub lateness: Histogram,
    /// For TCP, waits of messages in the buffers of the sender, until their last byte was sent.
    pub buffer_wait: Histogram,
    /// The sum over packets of the mean delay of their flow without its mean wait in the sender's buffers, seconds.
    pub(crate) network_s: f64,
    /// The number of these packets.
    pub(crate) network_packets: u64,
    /// The counters of each interval; empty if no intervals were requested.
    pub intervals: Vec<ReceivedInterval>,
}

impl FlowsSummary {
    /// Adds a flow from the reports of its two ends. `received` is `None` if nothing arrived.
    pub fn add(&mut self, sent: &SenderReport, received: Option<&ReceiverReport>) {
        self.flows += 1;
        let failed = sent.error.is_some() || received.is_some_and(|received| received.error.is_some());
        add(&mut self.failed, u64::from(failed));
        add(&mut self.sent_bytes, sent.bytes);
        add(&mut self.sent_packets, sent.packets);
        add(&mut self.retransmissions, sent.retransmissions);
        add(&mut self.refused_bytes, sent.refused_bytes);
        add(&mut self.unsent, sent.unsent);
        add(&mut self.marked, sent.tcp.map_or(0, |tcp| u64::from(tcp.delivered_ce)));
        self.responses.merge(&sent.responses);
        self.lateness.merge(&sent.lateness);
        self.buffer_wait.merge(&sent.buffer_wait);
        if let Some(delay) = received.map(|received| &received.delay) {
            let mean = |of: &Histogram| of.mean().unwrap_or_default();
            let network = mean(delay).saturating_sub(mean(&sent.buffer_wait));
            self.network_s += network.as_secs_f64() * delay.count() as f64;
            add(&mut self.network_packets, delay.count());
        }
        match received {
            Some(received) => self.add_received(received),
            // No datagram arrived, so all are lost.
            None if sent.tcp.is_none() => add(&mut self.lost, sent.packets),
            None => {}
        }
        if let Some(received) = received.filter(|_| sent.tcp.is_none()) {
            // Losses after the last arrival leave no gap in the sequence numbers.
            let unseen = sent.packets.saturating_sub(received.packets.saturating_add(received.lost));
            add(&mut self.lost, unseen);
        }
    }

    /// Adds the receiver's report of a flow.
    pub fn add_received(&mut self, received: &ReceiverReport) {
        add(&mut self.received_bytes, received.bytes);
        add(&mut self.received_packets, received.packets);
        add(&mut self.lost, received.lost);
        add(&mut self.reordered, received.reordered);
        add(&mut self.duplicated, received.duplicated);
        add(&mut self.marked, received.marked);
        self.delay.merge(&received.delay);
        self.ipdv.merge(&received.ipdv);
        if self.intervals.len() < received.intervals.len() {
            self.intervals.resize(received.intervals.len(), ReceivedInterval::default());
        }
        for (sum, interval) in self.intervals.iter_mut().zip(&received.intervals) {
            add(&mut sum.bytes, interval.bytes);
            add(&mut sum.packets, interval.packets);
            sum.lost = sum.lost.saturating_add(interval.lost);
            add(&mut sum.marked, interval.marked);
            add(&mut sum.delay_ns, interval.delay_ns);
            add(&mut sum.ipdv_ns, interval.ipdv_ns);
        }
    }

    /// Adds the measurements of another group.
    pub fn merge(&mut self, other: &Self) {
        let received = ReceiverReport {
            bytes: other.received_bytes,
            packets: other.received_packets,
            lost: other.lost,
            reordered: other.reordered,
            duplicated: other.duplicated,
            marked: other.marked,
            delay: other.delay.clone(),
            ipdv: other.ipdv.clone(),
            intervals: other.intervals.clone(),
            ..ReceiverReport::default()
        };
        self.add_received(&received);
        add(&mut self.flows, other.flows);
        add(&mut self.failed, other.failed);
        add(&mut self.sent_bytes, other.sent_bytes);
        add(&mut self.sent_packets, other.sent_packets);
        add(&mut self.retransmissions, other.retransmissions);
        add(&mut self.refused_bytes, other.refused_bytes);
        add(&mut self.unsent, other.unsent);
        self.responses.merge(&other.responses);
        self.lateness.merge(&other.lateness);
        self.buffer_wait.merge(&other.buffer_wait);
        self.network_s += other.network_s;
        add(&mut self.network_packets, other.network_packets);
    }

    /// Returns the loss ratio of the datagrams, 0..=1; `None` if there were none.
    pub fn loss(&self) -> Option<f64> {
        let all = self.received_packets.saturating_add(self.lost);
        (all > 0).then(|| self.lost as f64 / all as f64)
    }

    /// Returns the mean one-way delay without the mean wait of a flow in its sender's buffers, which is at least zero for each
    /// flow; `None` without delays, or without the senders' reports.
    pub fn network_delay(&self) -> Option<Duration> {
        let packets = self.network_packets;
        (packets > 0).then(|| Duration::from_secs_f64(self.network_s / packets as f64))
    }

    /// Returns the mean rate of the received payload over `elapsed`, bit/s; zero if `elapsed` is zero.
    pub fn goodput_bps(&self, elapsed: Duration) -> f64 {
        if elapsed.is_zero() { 0.0 } else { self.received_bytes as f64 * 8.0 / elapsed.as_secs_f64() }
    }
}

/// Adds to a sum and saturates at the largest number. The report of another machine may have any numbers.
const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_foreign_numbers_saturate() {
        let interval = ReceivedInterval { packets: u64::MAX, lost: i64::MIN, ..ReceivedInterval::default() };
        let received = ReceiverReport {
            packets: u64::MAX,
            lost: u64::MAX,
            intervals: vec![interval],
            ..ReceiverReport::default()
        };
        let mut summary = FlowsSummary::default();
        summary.add(&SenderReport::default(), Some(&received));
        summary.merge(&summary.clone());
        assert_eq!((summary.received_packets, summary.lost, summary.loss()), (u64::MAX, u64::MAX, Some(1.0)));
        assert_eq!((summary.intervals[0].packets, summary.intervals[0].lost), (u64::MAX, i64::MIN));
    }

    #[test]
    fn datagrams_that_never_arrive_count_as_lost() {
        let sent = SenderReport { packets: 10, bytes: 1000, ..SenderReport::default() };
        let some = ReceiverReport { packets: 6, bytes: 600, lost: 1, ..ReceiverReport::default() };
        let mut group = FlowsSummary::default();
        group.add(&sent, Some(&some));
        group.add(&sent, None);
        assert_eq!((group.flows, group.lost, group.received_packets), (2, 4 + 10, 6));
        assert_eq!(group.loss(), Some(0.7));
        let mut both = group.clone();
        both.merge(&group);
        assert_eq!((both.flows, both.lost, both.sent_bytes), (4, 28, 4000));
    }

    #[test]
    fn the_wait_in_buffers_is_no_delay_of_the_network() {
        let of = |ms: &[u64]| {
            let mut histogram = Histogram::default();
            for ms in ms {
                histogram.record(Duration::from_millis(*ms));
            }
            histogram
        };
        let received = |ms: &[u64]| ReceiverReport { delay: of(ms), ..ReceiverReport::default() };
        let sent = |ms: &[u64]| SenderReport { buffer_wait: of(ms), ..SenderReport::default() };
        // Two messages over TCP with 20 ms in the network, and two datagrams, which do not wait, with 30 ms.
        let mut group = FlowsSummary::default();
        group.add(&sent(&[30, 50]), Some(&received(&[50, 70])));
        group.add(&sent(&[]), Some(&received(&[30, 30])));
        assert_eq!(group.network_delay(), Some(Duration::from_millis(25)));
        let mut both = FlowsSummary::default();
        both.add(&sent(&[900]), Some(&received(&[25])));
        assert_eq!(both.network_delay(), Some(Duration::ZERO));
        both.merge(&group);
        assert_eq!(both.network_delay(), Some(Duration::from_millis(20)));
        assert_eq!(FlowsSummary::default().network_delay(), None);
    }

    #[test]
    fn tcp_has_no_losses() {
        let tcp = Some(cutline_sys::tcp::TcpInfo { delivered_ce: 3, ..Default::default() });
        let sent = SenderReport { packets: 50, tcp, ..SenderReport::default() };
        let mut group = FlowsSummary::default();
        group.add(&sent, Some(&ReceiverReport { packets: 2, ..ReceiverReport::default() }));
        assert_eq!((group.lost, group.marked), (0, 3));
    }
}
