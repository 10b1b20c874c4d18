//! Like flows together: sums, and distributions merged.

use crate::report::{ReceivedInterval, ReceiverReport, SenderReport};
use cutline_units::{Duration, Histogram};

/// What a group of flows did and got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many flows.
    pub flows: u64,
    /// Of these, with an error at either end.
    pub failed: u64,
    /// Payload bytes that left the applications for the kernel.
    pub sent_bytes: u64,
    /// Datagrams sent; for TCP, data segments.
    pub sent_packets: u64,
    /// Payload bytes that came.
    pub received_bytes: u64,
    /// Datagrams that came; for TCP, messages.
    pub received_packets: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams that came after one that was sent later.
    pub reordered: u64,
    /// Datagrams that came again.
    pub duplicated: u64,
    /// Datagrams that a router marked; for TCP, segments acknowledged with an ECN echo.
    pub marked: u64,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Bytes that applications wrote and that found no room.
    pub refused_bytes: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// One-way delays.
    pub delay: Histogram,
    /// Changes of the one-way delay.
    pub ipdv: Histogram,
    /// Response times of files and pages.
    pub responses: Histogram,
    /// How late applications were asked.
    pub lateness: Histogram,
    /// What came in each interval, if it was asked for.
    pub intervals: Vec<ReceivedInterval>,
}

impl Summary {
    /// Counts a flow, by what its two ends say. Nothing may have come of it.
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
        match received {
            Some(received) => self.add_received(received),
            // Of datagrams of which none came all are lost.
            None if sent.tcp.is_none() => self.lost += sent.packets,
            None => {}
        }
        if let Some(received) = received.filter(|_| sent.tcp.is_none()) {
            // Those behind the last that came have left no gap.
            let unseen = sent.packets.saturating_sub(received.packets.saturating_add(received.lost));
            add(&mut self.lost, unseen);
        }
    }

    /// Counts what came of a flow whose sender is not known.
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

    /// Adds another group.
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
    }

    /// The share of datagrams that were lost, 0..=1; `None` where there were none.
    pub fn loss(&self) -> Option<f64> {
        let all = self.received_packets.saturating_add(self.lost);
        (all > 0).then(|| self.lost as f64 / all as f64)
    }

    /// Bits of payload a second that came, over a time.
    pub fn goodput_bps(&self, elapsed: Duration) -> f64 {
        if elapsed.is_zero() { 0.0 } else { self.received_bytes as f64 * 8.0 / elapsed.as_secs_f64() }
    }
}

/// Adds to a sum, which stays at the greatest number when it cannot hold more: a report of another machine may have any
/// numbers.
const fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_another_machine_add_up_to_the_greatest_at_most() {
        let interval = ReceivedInterval { packets: u64::MAX, lost: i64::MIN, ..ReceivedInterval::default() };
        let received = ReceiverReport {
            packets: u64::MAX,
            lost: u64::MAX,
            intervals: vec![interval],
            ..ReceiverReport::default()
        };
        let mut summary = Summary::default();
        summary.add(&SenderReport::default(), Some(&received));
        summary.merge(&summary.clone());
        assert_eq!((summary.received_packets, summary.lost, summary.loss()), (u64::MAX, u64::MAX, Some(1.0)));
        assert_eq!((summary.intervals[0].packets, summary.intervals[0].lost), (u64::MAX, i64::MIN));
    }

    #[test]
    fn what_never_came_is_lost_too() {
        let sent = SenderReport { packets: 10, bytes: 1000, ..SenderReport::default() };
        let some = ReceiverReport { packets: 6, bytes: 600, lost: 1, ..ReceiverReport::default() };
        let mut group = Summary::default();
        group.add(&sent, Some(&some));
        group.add(&sent, None);
        assert_eq!((group.flows, group.lost, group.received_packets), (2, 4 + 10, 6));
        assert_eq!(group.loss(), Some(0.7));
        let mut both = group.clone();
        both.merge(&group);
        assert_eq!((both.flows, both.lost, both.sent_bytes), (4, 28, 4000));
    }

    #[test]
    fn tcp_loses_nothing_in_the_end() {
        let tcp = Some(cutline_sys::tcp::TcpInfo { delivered_ce: 3, ..Default::default() });
        let sent = SenderReport { packets: 50, tcp, ..SenderReport::default() };
        let mut group = Summary::default();
        group.add(&sent, Some(&ReceiverReport { packets: 2, ..ReceiverReport::default() }));
        assert_eq!((group.lost, group.marked), (0, 3));
    }
}
