//! The backlog of a queue over time: its time-weighted mean, standard deviation and maximum.

use super::Window;
use cutline_units::{Duration, Instant};

/// Integrates a backlog that changes at arrivals and departures.
///
/// Its owner has the window, which is the same in every call: a large network has many meters.
#[derive(Clone, Copy, Debug)]
pub struct BacklogMeter {
    since: Instant,
    packets: u32,
    max_packets: u32,
    bytes: u64,
    max_bytes: u64,
    sums: BacklogSums,
}

/// Sums over the part of the window that has passed.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "they end with their unit")]
struct BacklogSums {
    packet_seconds: f64,
    packet_square_seconds: f64,
    byte_seconds: f64,
}

/// A [`BacklogMeter`] whose numbers are small. A large network has many of them.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(crate) struct SmallBacklogMeter {
    since: Instant,
    sums: BacklogSums,
    bytes: u32,
    max_bytes: u32,
    packets: u16,
    max_packets: u16,
}

const _: () = assert!(
    size_of::<SmallBacklogMeter>() == 20 + size_of::<BacklogSums>(),
    "a small meter has 20 bytes beside its sums"
);

impl SmallBacklogMeter {
    /// Creates a meter for an empty queue.
    pub(crate) fn new(window: Window) -> Self {
        Self {
            since: window.from,
            sums: BacklogSums::default(),
            bytes: 0,
            max_bytes: 0,
            packets: 0,
            max_packets: 0,
        }
    }

    /// Returns the same meter for any numbers.
    #[inline]
    pub(crate) fn to_meter(self) -> BacklogMeter {
        BacklogMeter {
            since: self.since,
            packets: u32::from(self.packets),
            max_packets: u32::from(self.max_packets),
            bytes: u64::from(self.bytes),
            max_bytes: u64::from(self.max_bytes),
            sums: self.sums,
        }
    }

    /// Returns the numbers of waiting packets and bytes.
    #[inline]
    pub(crate) fn backlog(&self) -> (u32, u64) {
        (u32::from(self.packets), u64::from(self.bytes))
    }

    /// Sets the backlog from `now` on. Returns false, and changes nothing, if a number does not fit, or `now` lies outside of the window.
    #[inline]
    pub(crate) fn set(&mut self, now: Instant, packets: u32, bytes: u64, window: Window) -> bool {
        let (Ok(packets), Ok(bytes)) = (u16::try_from(packets), u32::try_from(bytes)) else { return false };
        if !window.contains(now) {
            return false;
        }
        // Copies, because the fields are not aligned.
        let Self { since, mut sums, .. } = *self;
        if now > since {
            sums.add(u32::from(self.packets), u64::from(self.bytes), now - since);
            (self.sums, self.since) = (sums, now);
        }
        (self.packets, self.bytes) = (packets, bytes);
        (self.max_packets, self.max_bytes) = (self.max_packets.max(packets), self.max_bytes.max(bytes));
        true
    }
}

impl BacklogMeter {
    /// Returns the same meter with small numbers; `None` if one of them does not fit.
    #[inline]
    pub(crate) fn to_small(self) -> Option<SmallBacklogMeter> {
        Some(SmallBacklogMeter {
            since: self.since,
            sums: self.sums,
            bytes: u32::try_from(self.bytes).ok()?,
            max_bytes: u32::try_from(self.max_bytes).ok()?,
            packets: u16::try_from(self.packets).ok()?,
            max_packets: u16::try_from(self.max_packets).ok()?,
        })
    }

    /// Creates a meter for an empty queue.
    pub fn new(window: Window) -> Self {
        Self {
            since: window.from,
            packets: 0,
            max_packets: 0,
            bytes: 0,
            max_bytes: 0,
            sums: BacklogSums::default(),
        }
    }

    /// Sets the backlog from `now` on.
    #[inline]
    pub fn set(&mut self, now: Instant, packets: u32, bytes: u64, window: Window) {
        if !window.contains(now) {
            return self.set_outside(now, packets, bytes, window);
        }
        self.settle(now);
        (self.packets, self.bytes) = (packets, bytes);
        self.max_packets = self.max_packets.max(packets);
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// Sets the backlog from `now` on, which lies outside of the window.
    #[cold]
    #[inline(never)]
    fn set_outside(&mut self, now: Instant, packets: u32, bytes: u64, window: Window) {
        self.settle(now.min(window.until));
        (self.packets, self.bytes) = (packets, bytes);
    }

    /// Returns the number of waiting packets.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns the number of waiting bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the mean number of packets over the window; call [`BacklogMeter::set`] at the end first.
    pub fn mean_packets(&self, window: Window) -> f64 {
        self.sums.packet_seconds / window.length().as_secs_f64()
    }

    /// Returns the mean number of bytes over the window.
    pub fn mean_bytes(&self, window: Window) -> f64 {
        self.sums.byte_seconds / window.length().as_secs_f64()
    }

    /// Returns the standard deviation of the number of packets over the window.
    pub fn deviation_packets(&self, window: Window) -> f64 {
        let mean = self.mean_packets(window);
        let mean_square = self.sums.packet_square_seconds / window.length().as_secs_f64();
        (mean_square - mean * mean).max(0.0).sqrt()
    }

    /// Returns the most packets that waited within the window.
    pub fn max_packets(&self) -> u32 {
        self.max_packets
    }

    /// Returns the most bytes that waited within the window.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Counts the time since the last change, or since the beginning of the window, until `end`, which is not after the window.
    #[inline]
    fn settle(&mut self, end: Instant) {
        if end > self.since {
            self.sums.add(self.packets, self.bytes, end - self.since);
            self.since = end;
        }
    }
}

impl BacklogSums {
    /// Counts a time in which the backlog was constant.
    #[inline]
    fn add(&mut self, packets: u32, bytes: u64, time: Duration) {
        // Signed: that is one instruction to convert, and no run takes 292 years.
        let seconds = time.as_nanos().cast_signed() as f64 * 1e-9;
        let packets = f64::from(packets);
        self.packet_seconds += packets * seconds;
        self.packet_square_seconds += packets * packets * seconds;
        self.byte_seconds += bytes.cast_signed() as f64 * seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weighs_by_time_within_the_window() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let window = Window { from: at(10), until: at(20) };
        let mut meter = BacklogMeter::new(window);
        meter.set(at(5), 4, 4000, window); // counts from 10 on
        meter.set(at(15), 0, 0, window);
        meter.set(at(25), 100, 100_000, window); // beyond the window
        assert!((meter.mean_packets(window) - 2.0).abs() < 1e-12);
        assert!((meter.mean_bytes(window) - 2000.0).abs() < 1e-9);
        assert!((meter.deviation_packets(window) - 2.0).abs() < 1e-12);
        assert_eq!(meter.max_packets(), 0, "four packets came before the window and 100 after it");
    }
}
