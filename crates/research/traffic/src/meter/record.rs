//! The measurements of a flow at its receiver, packet by packet. A packet's sequence number
//! shows if it is lost, late or a duplicate ([`Numbers`]).

use crate::report::{ReceivedInterval, ReceiverReport, Window, interval_at};
use cutline_signal::monitor::{MessageArrival, Numbers};
use cutline_units::Duration;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The arrival time, since the run's zero.
    pub(crate) at: Duration,
    pub(crate) bytes: u64,
    pub(crate) delay: Duration,
    pub(crate) marked: bool,
}

/// The measurements of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    report: ReceiverReport,
    window: Window,
    interval: Option<Duration>,
    numbers: Numbers,
    last_delay: Option<Duration>,
}

impl Record {
    pub(crate) fn new(flow: u32, window: Window, interval: Option<Duration>) -> Self {
        let report = ReceiverReport { flow, ..ReceiverReport::default() };
        Self { report, window, interval, numbers: Numbers::default(), last_delay: None }
    }

    /// Records a datagram. Returns false if it is a duplicate or its number is impossible.
    pub(crate) fn datagram(&mut self, seq: u64, packet: &Packet) -> bool {
        match self.numbers.arrive(seq) {
            MessageArrival::Impossible => return false,
            MessageArrival::Duplicate => {
                self.report.duplicated += 1;
                return false;
            }
            MessageArrival::InOrder { missing } => self.lose(packet.at, missing as i64),
            MessageArrival::Late => {
                self.report.reordered += 1;
                self.lose(packet.at, -1);
            }
        }
        self.payload(packet.at, packet.bytes);
        self.packet(packet);
        true
    }

    /// Records payload.
    pub(crate) fn payload(&mut self, at: Duration, bytes: u64) {
        self.report.bytes += bytes;
        self.report.first.get_or_insert(at);
        self.report.last = Some(at);
        if self.window.contains(at) {
            self.report.window_bytes += bytes;
        }
        if let Some(interval) = self.interval_at(at) {
            interval.bytes += bytes;
        }
    }

    /// Records a message without a time of writing.
    pub(crate) fn short_message(&mut self, at: Duration) {
        self.count(at, false);
    }

    /// Records a packet or message and its delay, without its payload.
    pub(crate) fn packet(&mut self, packet: &Packet) {
        let Packet { at, delay, marked, .. } = *packet;
        self.count(at, marked);
        let ipdv = self.last_delay.replace(delay).map(|last| delay.abs_diff(last));
        if self.window.contains(at) {
            self.report.delay.record(delay);
            if let Some(ipdv) = ipdv {
                self.report.ipdv.record(ipdv);
            }
        }
        if let Some(interval) = self.interval_at(at) {
            interval.delay_ns = interval.delay_ns.saturating_add(delay.as_nanos());
            let ipdv = ipdv.unwrap_or_default().as_nanos();
            interval.ipdv_ns = interval.ipdv_ns.saturating_add(ipdv);
        }
    }

    pub(crate) fn traffic_class(&mut self, octet: Option<u8>) {
        self.report.traffic_class = octet;
    }

    pub(crate) fn loss_event_rate(&mut self, rate: f64) {
        self.report.loss_event_rate = Some(rate);
    }

    pub(crate) fn fail(&mut self, error: String) {
        self.report.error.get_or_insert(error);
    }

    /// Returns the payload bytes received so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.report.bytes
    }

    pub(crate) fn finish(self) -> ReceiverReport {
        self.report
    }

    fn count(&mut self, at: Duration, marked: bool) {
        self.report.packets += 1;
        self.report.marked += u64::from(marked);
        if self.window.contains(at) {
            self.report.window_packets += 1;
            self.report.window_marked += u64::from(marked);
        }
        if let Some(interval) = self.interval_at(at) {
            interval.packets += 1;
            interval.marked += u64::from(marked);
        }
    }

    fn lose(&mut self, at: Duration, change: i64) {
        self.report.lost = self.report.lost.saturating_add_signed(change);
        if self.window.contains(at) {
            self.report.window_lost += change;
        }
        if let Some(interval) = self.interval_at(at) {
            interval.lost += change;
        }
    }

    fn interval_at(&mut self, at: Duration) -> Option<&mut ReceivedInterval> {
        interval_at(&mut self.report.intervals, self.interval, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(ms: u64, delay_ms: u64) -> Packet {
        let (at, delay) = (Duration::from_millis(ms), Duration::from_millis(delay_ms));
        Packet { at, bytes: 100, delay, marked: false }
    }

    fn record() -> Record {
        let window = Window { from: Duration::from_millis(10), until: Duration::from_millis(40) };
        Record::new(1, window, Some(Duration::from_millis(20)))
    }

    #[test]
    fn lost_late_and_duplicate_packets_are_counted_separately() {
        let mut record = record();
        for (i, seq) in [0, 1, 4, 3, 3, 5].into_iter().enumerate() {
            assert_eq!(record.datagram(seq, &packet(11 + i as u64, 5)), i != 4);
        }
        let report = record.finish();
        assert_eq!((report.packets, report.bytes, report.lost), (5, 500, 1));
        assert_eq!((report.reordered, report.duplicated, report.window_lost), (1, 1, 1));
    }

    #[test]
    fn window_and_intervals_count_their_packets() {
        let mut record = record();
        for (seq, (at, delay)) in [(5, 1), (15, 4), (25, 2), (45, 9)].into_iter().enumerate() {
            assert!(record.datagram(seq as u64 * 2, &packet(at, delay)));
        }
        let report = record.finish();
        assert_eq!((report.packets, report.window_packets, report.lost, report.window_lost), (4, 2, 3, 2));
        // |4 - 1| and |2 - 4|: the change relative to the last packet before the window counts in the window.
        assert_eq!(report.ipdv.mean(), Some(Duration::from_micros(2500)));
        assert_eq!(report.delay.mean(), Some(Duration::from_millis(3)));
        let of =
            |i: usize| (report.intervals[i].packets, report.intervals[i].bytes, report.intervals[i].lost);
        assert_eq!([of(0), of(1), of(2)], [(2, 200, 1), (1, 100, 1), (1, 100, 1)]);
        assert_eq!(report.intervals[0].mean_delay(), Some(Duration::from_micros(2500)));
        assert_eq!(report.last, Some(Duration::from_millis(45)));
    }

    #[test]
    fn an_impossible_number_is_refused() {
        let mut record = record();
        assert!(!record.datagram(u64::MAX, &packet(20, 1)));
        assert_eq!(record.finish().packets, 0);
    }

    proptest! {
        #[test]
        fn every_packet_is_counted_once(numbers in prop::collection::vec(0_u64..900, 1..400)) {
            let mut subject = Record::new(0, Window::ALL, None);
            for &seq in &numbers {
                subject.datagram(seq, &packet(1, 1));
            }
            let report = subject.finish();
            let distinct = numbers.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
            let highest = numbers.iter().max().unwrap() + 1;
            prop_assert_eq!((report.packets, report.lost), (distinct, highest - distinct));
            prop_assert_eq!(report.duplicated, numbers.len() as u64 - distinct);
        }
    }
}
