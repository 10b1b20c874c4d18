//! A record of deliveries: the times at which a link can deliver bytes, as in Mahimahi's format.
//!
//! Each delivery carries up to 1500 B of the packets that wait at its time: several small packets, one whole packet, or the next
//! part of a large one, which arrives with its last part. The unused rest of a delivery is lost. So under saturation the bytes
//! delivered are those recorded, for every size of packet. The record restarts at its end.

use crate::measure::Window;
use cutline_units::{Duration, Instant};
use std::sync::Arc;

/// The bytes of a delivery.
pub const DELIVERY_BYTES: u32 = 1500;

/// The times of the deliveries of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deliveries {
    /// In the order of time, milliseconds; the last one is the record's length.
    times_ms: Vec<u64>,
}

impl Deliveries {
    /// A record with these times in milliseconds, of which the last is its length.
    ///
    /// # Panics
    /// If the times are not in order, or the record has no length.
    pub fn new(times_ms: Vec<u64>) -> Self {
        assert!(times_ms.is_sorted(), "deliveries are in the order of time");
        assert!(times_ms.last().is_some_and(|last| *last > 0), "a record has a length");
        Self { times_ms }
    }

    /// Returns the times, in milliseconds.
    pub fn times_ms(&self) -> &[u64] {
        &self.times_ms
    }
}

/// The deliveries of a link during a run.
pub(crate) struct DeliveryClock {
    record: Arc<Deliveries>,
    window: Window,
    /// The next delivery: its place in the record, and the time at which this round of the record began.
    place: usize,
    round: Instant,
    /// The delivery that is open: its time, and the bytes that are left of it.
    at: Instant,
    left: u32,
    /// The bytes of all deliveries in the window so far, and those that packets used.
    offered: u64,
    used: u64,
}

impl DeliveryClock {
    pub(crate) fn new(record: Arc<Deliveries>, window: Window) -> Self {
        Self {
            record,
            window,
            place: 0,
            round: Instant::ZERO,
            at: Instant::ZERO,
            left: 0,
            offered: 0,
            used: 0,
        }
    }

    /// Returns the time of the next delivery.
    fn next(&self) -> Instant {
        self.round.saturating_add(Duration::from_millis(self.record.times_ms[self.place]))
    }

    /// Opens the next delivery. The rest of the previous one is lost.
    fn open(&mut self) {
        self.at = self.next();
        self.left = DELIVERY_BYTES;
        self.offered += if self.window.contains(self.at) { u64::from(DELIVERY_BYTES) } else { 0 };
        self.place += 1;
        if self.place == self.record.times_ms.len() {
            (self.place, self.round) = (0, self.at);
        }
    }

    /// Returns the time, not before `now`, at which a packet can next be sent.
    pub(crate) fn ready(&mut self, now: Instant) -> Instant {
        while self.next() < now {
            self.open();
        }
        if self.at == now && self.left > 0 {
            return now;
        }
        if self.next() == now {
            self.open();
            return now;
        }
        self.next()
    }

    /// Sends a packet, for which a delivery is open. Returns the time of the delivery that carries its last byte.
    pub(crate) fn send(&mut self, size: u32) -> Instant {
        let mut rest = size;
        loop {
            let part = rest.min(self.left);
            rest -= part;
            self.left -= part;
            self.used += if self.window.contains(self.at) { u64::from(part) } else { 0 };
            if rest == 0 {
                return self.at;
            }
            self.open();
        }
    }

    /// Returns the share of the window's deliveries that packets used until `end`.
    pub(crate) fn utilisation(&mut self, end: Instant) -> f64 {
        while self.next() < end.min(self.window.until) {
            self.open();
        }
        if self.offered == 0 { 0.0 } else { self.used as f64 / self.offered as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALWAYS: Window = Window { from: Instant::ZERO, until: Instant::FAR_FUTURE };

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn clock(times: &[u64]) -> DeliveryClock {
        DeliveryClock::new(Arc::new(Deliveries::new(times.to_vec())), ALWAYS)
    }

    #[test]
    fn a_packet_leaves_with_the_delivery_of_its_last_byte() {
        let mut clock = clock(&[10, 20, 20, 50]);
        assert_eq!(clock.ready(ms(0)), ms(10));
        assert_eq!(clock.ready(ms(10)), ms(10));
        assert_eq!((clock.send(1000), clock.ready(ms(10))), (ms(10), ms(10)), "500 B are left");
        assert_eq!(clock.send(1000), ms(20), "the rest of it goes with the next delivery");
        assert_eq!((clock.ready(ms(20)), clock.send(1000)), (ms(20), ms(20)));
        assert_eq!((clock.ready(ms(20)), clock.send(1500)), (ms(20), ms(20)), "two deliveries at one time");
        assert_eq!(clock.ready(ms(20)), ms(50));
        assert_eq!(
            clock.ready(ms(55)),
            ms(60),
            "an idle link loses its deliveries, and the record begins anew"
        );
    }

    proptest! {
        #[test]
        fn a_busy_link_delivers_the_bytes_of_its_record(
            gaps in prop::collection::vec(0u64..400, 1..50),
            size in 1u32..9_000,
        ) {
            let mut time = 1;
            let times: Vec<u64> = gaps.iter().map(|gap| { time += gap; time }).collect();
            let mut clock = clock(&times);
            let (mut now, mut sent) = (Instant::ZERO, 0);
            for _ in 0..300 {
                let open = clock.ready(now);
                prop_assert_eq!(clock.ready(open), open);
                now = clock.send(size);
                sent += u64::from(size);
                // The deliveries until then, the last of which may have bytes left, and others may be at the same time.
                let length = times[times.len() - 1];
                let elapsed = now.as_nanos() / 1_000_000;
                let before = |limit: u64, closed: bool| {
                    let rounds = 0..=elapsed / length;
                    let all = rounds.flat_map(|round| times.iter().map(move |time| round * length + time));
                    all.filter(|time| *time < limit || (closed && *time == limit)).count() as u64 * 1500
                };
                prop_assert!(before(elapsed, false) < sent && sent <= before(elapsed, true));
            }
        }
    }
}
