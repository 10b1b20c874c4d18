//! Pacing of an application, so that it keeps to the agreement (QUANTA section 5.2: rate control per
//! connection).
//!
//! A limit of the host's resource manager is a third bucket, of bytes.
//!
//! A [`Pacer`] is two leaky buckets (ITU-T I.371, the generic cell rate algorithm): one for the highest useful rate, which
//! allows bursts, and one for the peak rate, which allows two messages in a row, since an application's timers are late now and
//! then. It gives the time at which the next message may be sent. The caller decides if the sender waits until then or gets an error.

use cutline_quality::spec::Specification;
use cutline_units::{Duration, Instant, Rate};

/// Time for which an application may send at its peak rate after a pause: an interval of measurement
/// (QoSockets eq. 2).
const BURST: Duration = Duration::from_millis(500);
/// Time for which messages may be sent ahead of a limit.
const LIMIT_TOLERANCE: Duration = Duration::from_millis(2);
const SECOND: f64 = 1e9;
/// Number of bits of a byte.
const BITS: f64 = 8.0;

/// Limits the rate of messages.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    sustained: Option<Bucket>,
    peak: Option<Bucket>,
    /// Limit beside the specification, by bytes.
    limit: Option<Bucket>,
}

#[derive(Clone, Debug)]
struct Bucket {
    /// Time per byte, or per message, ns.
    cost: f64,
    /// True if messages are counted instead of bytes.
    by_message: bool,
    /// Largest lead of the schedule over the clock.
    tolerance: Duration,
    /// Time at which all traffic so far would have been sent at the rate.
    schedule: Instant,
}

impl Pacer {
    /// Returns the pacer of a sender with this specification; it limits nothing where both rates are open. Where the size is
    /// open, too, it counts messages, otherwise bytes.
    pub fn new(spec: &Specification) -> Self {
        let size = spec.size.map(|size| size.get() as f64);
        let bucket = |rate: f64, tolerance: Duration| Bucket {
            cost: SECOND / (rate * size.unwrap_or(1.0)),
            by_message: size.is_none(),
            tolerance,
            schedule: Instant::ZERO,
        };
        let message = |rate: f64| Duration::from_nanos((SECOND / rate) as u64);
        let sustained = spec.max_rate.map(|rate| {
            let excess = spec.peak_rate.map_or(0.0, |peak| (peak / rate - 1.0).max(0.0));
            bucket(rate, message(rate).max(BURST.mul_f64(excess)))
        });
        Self { sustained, peak: spec.peak_rate.map(|rate| bucket(rate, message(rate))), limit: None }
    }

    /// Another specification holds from now on. Messages already sent still count.
    pub fn renegotiate(&mut self, spec: &Specification) {
        let schedule = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.schedule);
        let (sustained, peak) = (schedule(&self.sustained), schedule(&self.peak));
        *self = Self { limit: self.limit.take(), ..Self::new(spec) };
        for (bucket, schedule) in [(&mut self.sustained, sustained), (&mut self.peak, peak)] {
            if let (Some(bucket), Some(schedule)) = (bucket, schedule) {
                bucket.schedule = schedule;
            }
        }
    }

    /// Replaces the highest useful rate by another one, messages/s. Messages already sent still count.
    pub fn set_rate(&mut self, spec: &Specification, rate: f64) {
        self.renegotiate(&Specification { max_rate: Some(rate), ..spec.clone() });
    }

    /// Limits the rate of bytes, beside the specification; `None` lifts the limit. The bytes that were sent ahead of an
    /// earlier limit count on.
    pub fn set_limit(&mut self, now: Instant, limit: Option<Rate>) {
        let ahead = self
            .limit
            .as_ref()
            .map_or(0.0, |bucket| bucket.schedule.saturating_since(now).as_nanos() as f64 / bucket.cost);
        self.limit = limit.map(|limit| {
            let cost = SECOND * BITS / limit.as_bps().max(1) as f64;
            let schedule = now.saturating_add(Duration::from_nanos((ahead * cost) as u64));
            Bucket { cost, by_message: false, tolerance: LIMIT_TOLERANCE, schedule }
        });
    }

    /// Returns the time at which a message may be sent: `now`, or a later time.
    #[inline]
    pub fn ready_at(&self, now: Instant) -> Instant {
        let wait = |bucket: &Bucket| bucket.schedule.saturating_since(now).saturating_sub(bucket.tolerance);
        let waits = self.sustained.iter().chain(&self.peak).chain(&self.limit).map(wait);
        now.saturating_add(waits.max().unwrap_or(Duration::ZERO))
    }

    /// Takes note of a message of so many bytes that was sent.
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        for bucket in [&mut self.sustained, &mut self.peak, &mut self.limit].into_iter().flatten() {
            let units = if bucket.by_message { 1.0 } else { bytes as f64 };
            let cost = Duration::from_nanos((units * bucket.cost).ceil() as u64);
            bucket.schedule = bucket.schedule.max(now).saturating_add(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Bytes;

    /// Returns the number of messages that a greedy sender sends within a time.
    fn greedy(spec: &Specification, bytes: u64, time: Duration) -> u64 {
        let mut pacer = Pacer::new(spec);
        let (mut now, mut sent) = (Instant::from_nanos(1_000_000_000), 0);
        let end = now + time;
        loop {
            now = pacer.ready_at(now);
            if now >= end {
                return sent;
            }
            pacer.on_send(now, bytes);
            sent += 1;
        }
    }

    #[test]
    fn a_sender_keeps_to_its_rates() {
        // NetVideo (QoSockets section IV): 80 messages/s, 100 at the peak; the burst of half a second has 50 messages, 10
        // more than the rate allows.
        let spec = Specification::builder().rates(60.0, 80.0, 100.0).size(Bytes::new(1280)).build().unwrap();
        let second = Duration::from_secs(1);
        assert_eq!(greedy(&spec, 1280, second), 90);
        let (ten, hundred) = (greedy(&spec, 1280, second * 10), greedy(&spec, 1280, second * 100));
        assert_eq!((ten, hundred), (810, 8010));
        // Messages of half the length may come twice as often, up to the peak.
        assert_eq!(greedy(&spec, 640, second * 10), 2 * 810);
        // Without a size, messages count.
        let messages = Specification { size: None, ..spec };
        assert_eq!(greedy(&messages, 1, second * 10), 810);
    }

    #[test]
    fn an_open_specification_has_no_pacing() {
        let mut pacer = Pacer::new(&Specification::OPEN);
        let now = Instant::from_nanos(5);
        (0..1000).for_each(|_| pacer.on_send(now, 1_000_000));
        assert_eq!(pacer.ready_at(now), now);
    }

    /// A limit holds beside the specification, and is lifted again.
    #[test]
    fn a_limit_is_a_rate_of_bytes() {
        let spec = Specification::builder().rates(60.0, 80.0, 100.0).size(Bytes::new(1250)).build().unwrap();
        for spec in [spec, Specification::OPEN] {
            let mut pacer = Pacer::new(&spec);
            let mut now = Instant::from_nanos(1);
            pacer.set_limit(now, Some(Rate::from_kbps(100)));
            for _ in 0..21 {
                now = pacer.ready_at(now);
                pacer.on_send(now, 1250);
            }
            // 10 messages a second, of which the last one leaves 2 ms early.
            assert_eq!(now.saturating_since(Instant::ZERO).as_millis_f64().round() as u64, 1998);
            pacer.renegotiate(&spec);
            assert!(pacer.ready_at(now) > now, "another specification does not lift it");
            // 102 ms ahead at 100 kbit/s are 10.2 ms at 1 Mbit/s.
            pacer.set_limit(now, Some(Rate::from_mbps(1)));
            assert_eq!(pacer.ready_at(now).saturating_since(now).as_millis_f64().round() as u64, 8);
            pacer.set_limit(now, None);
            let later = now + Duration::from_millis(1);
            assert_eq!(pacer.ready_at(later), later);
        }
    }

    #[test]
    fn a_rate_can_be_lowered_while_sending() {
        let spec = Specification::builder().rates(1.0, 10.0, 10.0).size(Bytes::new(100)).build().unwrap();
        let mut pacer = Pacer::new(&spec);
        pacer.set_rate(&spec, 2.0);
        let mut now = Instant::from_nanos(1);
        for _ in 0..20 {
            now = pacer.ready_at(now);
            pacer.on_send(now, 100);
        }
        // Two messages at once, then two a second, with a burst of (10 / 2 - 1) x 0.5 s.
        assert_eq!(now.saturating_since(Instant::ZERO).as_secs_f64().round() as u64, 8);
    }
}
