//! One direction of a connection, in the packets of a protocol.

use crate::delay_budget::DelayBudget;
use crate::path::Path;
use cutline_quality::spec::Specification;
use cutline_units::{Bytes, Duration, Rate};

/// The largest rate that buffers are computed for: beyond it they would exceed any limit anyway.
const FASTEST: u64 = 1_000_000_000_000;

/// Packets of a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    /// Headers of a packet, B: those of transport and IP, or that of the frame if there is no IP.
    pub(crate) headers: u64,
    /// The longest payload, B; above 0.
    pub(crate) payload: u64,
}

/// One direction of a connection over a path, in the packets of a protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<'a> {
    pub(crate) spec: &'a Specification,
    pub(crate) path: &'a Path,
    pub(crate) packets: Packets,
}

impl Stream<'_> {
    /// The delay budget; `None` where any delay is acceptable.
    pub(crate) fn budget(&self) -> Option<DelayBudget> {
        DelayBudget::new(self.spec, self.path)
    }

    /// Returns whether the time of a message matters.
    pub(crate) fn is_timely(&self) -> bool {
        let Specification { max_delay, max_gap, jitter, .. } = *self.spec;
        max_delay.or(max_gap).or(jitter).is_some()
    }

    /// Messages per second that are useful for long: `max-rate`, else the least demanded, else the peak.
    pub(crate) fn sustained_rate(&self) -> Option<f64> {
        self.spec.max_rate.or(self.spec.min_rate).or(self.spec.peak_rate)
    }

    /// Messages per second in a burst; `None` where nothing limits them.
    pub(crate) fn peak_rate(&self) -> Option<f64> {
        self.spec.peak_rate.or(self.spec.max_rate)
    }

    /// Payload per second in a burst; `None` where nothing limits it.
    pub(crate) fn peak_throughput(&self) -> Option<Rate> {
        self.spec.peak_throughput().or(self.spec.max_throughput())
    }

    /// The rate at which a buffer of the sender empties, payload: the peak, but no more than the path takes.
    pub(crate) fn drain_rate(&self) -> Option<Rate> {
        let rates = [self.peak_throughput(), self.path_payload()];
        let least = rates.into_iter().flatten().min()?;
        Some(Rate::from_bps(least.as_bps().clamp(1, FASTEST)))
    }

    /// The payload per second that the path carries, if its rate is known.
    pub(crate) fn path_payload(&self) -> Option<Rate> {
        let payload = u128::from(self.longest_payload());
        let packet = payload + u128::from(self.packets.headers);
        let of = |rate: Rate| (u128::from(rate.as_bps()) * payload / packet) as u64;
        self.path.rate.map(|rate| Rate::from_bps(of(rate)))
    }

    /// Returns the number of packets of a message of this length.
    pub(crate) const fn packets_of(&self, size: Bytes) -> u64 {
        size.get().div_ceil(self.packets.payload)
    }

    /// A message with the headers of its packets, B.
    pub(crate) const fn with_headers(&self, size: Bytes) -> u64 {
        size.get() + self.packets_of(size) * self.packets.headers
    }

    /// The payload of the longest packet that messages of this specification fill, B.
    pub(crate) fn longest_payload(&self) -> u64 {
        self.spec.size.map_or(self.packets.payload, |size| size.get().min(self.packets.payload))
    }

    /// Returns the rate at which payload has to leave: the peak, or faster if a message of several packets
    /// would take longer than its share of the delay; `margin` is left for repetitions. Never faster than the
    /// path.
    pub(crate) fn pace(&self, margin: f64) -> Option<Rate> {
        let peak = self.peak_throughput()?;
        let message = self.message_pace().unwrap_or_default();
        let rate = (peak.max(message).as_bps() as f64 * margin).round() as u64;
        let most = self.path_payload().map_or(rate, Rate::as_bps);
        Some(Rate::from_bps(rate.min(most).max(1)))
    }

    /// The rate at which a message of several packets leaves within its share of the delay.
    fn message_pace(&self) -> Option<Rate> {
        let size = self.spec.size.filter(|size| self.packets_of(*size) > 1)?;
        let share = self.budget()?.share;
        let longest = self.spec.peak_throughput().or(self.spec.max_throughput())?;
        // A share of nothing requests no rate: the demand cannot be met whatever the pace.
        let per_second = size.bits() as f64 / share.as_secs_f64();
        per_second.is_finite().then(|| Rate::from_bps((per_second as u64).max(longest.as_bps()).min(FASTEST)))
    }

    /// Returns whether the path takes longer than the longest acceptable delay.
    pub(crate) fn is_too_far(&self) -> bool {
        self.spec.max_delay.is_some_and(|limit| self.path.propagation() >= limit)
    }

    /// The least demanded rate with its headers, if the path is known to carry less.
    pub(crate) fn beyond_the_path(&self) -> Option<(Rate, Rate)> {
        let least = self.spec.min_rate? * self.with_headers(self.spec.size?) as f64 * 8.0;
        let (least, path) = (Rate::from_bps(least as u64), self.path.rate?);
        (least > path).then_some((least, path))
    }

    /// The longest time between two messages at the useful rate.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.sustained_rate().map(|rate| Duration::from_secs_f64(1.0 / rate))
    }
}

/// Returns the size that the kernel counts for a datagram of this payload in a socket's buffer, B: a
/// descriptor of 256 B, and a block for the data with 400 B of headers and bookkeeping. Blocks have 576 B or
/// a power of two (measured with Linux 6.18).
pub(crate) const fn true_size(payload: u64) -> u64 {
    let data = payload + 400;
    256 + if data <= 576 { 576 } else { data.next_power_of_two() }
}
