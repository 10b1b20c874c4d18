//! A transmitter whose rate changes at known times.
//!
//! All changes of a link's rate are known before the run, so the time at which a packet's last bit leaves is known when its
//! first bit does: the part of the packet that is left at a change continues at the new rate. The division's remainder is carried
//! over each change and each packet, so a busy link sends exactly the bits of its course of rates.

use cutline_units::{Bytes, Instant, Rate, Serializer};

/// A transmitter and the changes of its rate.
pub(crate) struct Transmitter {
    serializer: Serializer,
    /// The changes, in the order of time, and the number of those that have been made.
    changes: Vec<(Instant, Rate)>,
    made: usize,
    /// Time of the next change; the far future without one.
    next_change: Instant,
}

impl Transmitter {
    pub(crate) fn new(rate: Rate, changes: &[(Instant, Rate)]) -> Self {
        let mut new = Self {
            serializer: Serializer::new(rate),
            changes: changes.to_vec(),
            made: 0,
            next_change: Instant::FAR_FUTURE,
        };
        new.next_change = new.change_after(0);
        new
    }

    /// Puts `size` on the wire at `now`, when the wire is free. Returns the time at which the last bit leaves.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, size: Bytes) -> Instant {
        if self.next_change <= now {
            self.change_rate_until(now);
        }
        let departs = self.serializer.send(now, size);
        if departs > self.next_change { self.cross_changes() } else { departs }
    }

    #[cold]
    fn change_rate_until(&mut self, now: Instant) {
        while self.next_change <= now {
            self.change_rate();
        }
    }

    /// Makes the changes that happen while the packet is on the wire.
    #[cold]
    fn cross_changes(&mut self) -> Instant {
        while self.next_change < self.serializer.free_at() {
            self.change_rate();
        }
        self.serializer.free_at()
    }

    fn change_rate(&mut self) {
        let (at, rate) = self.changes[self.made];
        self.serializer.set_rate(at, rate);
        self.made += 1;
        self.next_change = self.change_after(self.made);
    }

    fn change_after(&self, made: usize) -> Instant {
        self.changes.get(made).map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, Pace};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// The bit-nanoseconds that a course of rates carries until `at`.
    fn carried(rate: u64, changes: &[(Instant, Rate)], at: Instant) -> u128 {
        let (mut rate, mut since, mut sum) = (rate, Instant::ZERO, 0);
        for &(change, next) in changes.iter().filter(|(change, _)| *change < at) {
            sum += u128::from(rate) * u128::from((change - since).as_nanos());
            (rate, since) = (next.as_bps(), change);
        }
        sum + u128::from(rate) * u128::from((at - since).as_nanos())
    }

    proptest! {
        /// Under saturation each packet leaves in the nanosecond in which the course has carried the bits of all packets until then,
        /// for every size of packet and every course, however short its steps.
        #[test]
        fn a_busy_link_sends_the_bits_of_its_course(
            rate in 1u64..20_000_000,
            steps in prop::collection::vec((1u64..3_000 * MS, 1u64..20_000_000), 0..40),
            sizes in prop::collection::vec(1u64..9_000, 1..60),
        ) {
            let mut at = Instant::ZERO;
            let changes: Vec<(Instant, Rate)> = steps
                .iter()
                .map(|(step, rate)| {
                    at += Duration::from_nanos(*step);
                    (at, Rate::from_bps(*rate))
                })
                .collect();
            let mut transmitter = Transmitter::new(Rate::from_bps(rate), &changes);
            let (mut now, mut sent) = (Instant::ZERO, 0_u128);
            for size in sizes {
                now = transmitter.send(now, Bytes::new(size));
                sent += u128::from(Pace::bit_nanos(Bytes::new(size)));
                let next = now + Duration::from_nanos(1);
                prop_assert!(carried(rate, &changes, now) <= sent, "too late");
                prop_assert!(sent < carried(rate, &changes, next), "too early");
            }
        }
    }

    #[test]
    fn a_packet_at_the_end_of_an_outage_does_not_keep_its_rate() {
        // 2400 bit/s until 10 s, then 12 Mbit/s: a packet of 1500 B at 9.5 s has 1200 bits behind it at 10 s.
        let second = |n: u64| Instant::ZERO + Duration::from_secs(n);
        let mut link = Transmitter::new(Rate::from_bps(2400), &[(second(10), Rate::from_mbps(12))]);
        let departs = link.send(second(9) + Duration::from_millis(500), Bytes::new(1500));
        assert_eq!(departs, second(10) + Duration::from_micros(900));
        assert_eq!(link.send(second(20), Bytes::new(1500)), second(20) + Duration::from_millis(1));
    }
}
