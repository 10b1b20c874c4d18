//! Policing: which packets of a reserved flow conform to its token bucket (RFC 2211, RFC 2215).
//!
//! A bucket of depth b fills at the rate r. A packet conforms if the bucket holds as many tokens as the packet has bytes, which it
//! then takes. Over any interval T the packets that conform have r T + b bytes at most. Two sizes change the counted bytes:
//!
//! - A packet shorter than the minimum policed unit m counts as m bytes.
//! - A packet longer than the largest packet M does not conform.
//!
//! The caller decides on the size of a packet: for Integrated Services it is the length of the IP datagram.
//!
//! The arithmetic is exact. A byte is 8 x 10^9 bit-nanoseconds, and in t nanoseconds a bucket of r bit/s fills by r t of them, so
//! nothing is divided and nothing is rounded. Example: r = 640 kbit/s and b = 2000 B. Two packets of 1000 B at once conform. A third
//! one conforms after 8000 / 640000 s = 12.5 ms, and not a nanosecond earlier.
//!
//! The peak rate p of a `TSpec` is not policed. The service may ignore it (RFC 2211 section 5), and packets that left their sender at p
//! arrive in bursts behind other routers.

use cutline_flow::TrafficSpec;
use cutline_params::ParameterError;
use cutline_units::{Bytes, Duration, Instant, Rate};

/// A token bucket: tokens arrive at a rate, and a limited number of them is kept.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    rate: Rate,
    /// Tokens now and at most, in bit-nanoseconds.
    tokens: u128,
    depth: u128,
    /// The time of `tokens`.
    updated: Instant,
}

/// A token bucket with the sizes of a [`TrafficSpec`].
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    spec: TrafficSpec,
    bucket: TokenBucket,
}

/// A byte in bit-nanoseconds.
const BYTE: u128 = 8_000_000_000;

impl TokenBucket {
    /// Creates a full bucket.
    pub const fn new(rate: Rate, depth: Bytes) -> Self {
        let depth = depth.get() as u128 * BYTE;
        Self { rate, tokens: depth, depth, updated: Instant::ZERO }
    }

    /// Takes tokens for `bytes` at `now` if there are as many; otherwise takes none. Time that runs backwards counts as none.
    #[inline]
    pub fn take(&mut self, now: Instant, bytes: u64) -> bool {
        self.fill(now);
        let cost = u128::from(bytes) * BYTE;
        let has = cost <= self.tokens;
        if has {
            self.tokens -= cost;
        }
        has
    }

    /// Changes rate and depth from `now` on. The tokens stay, as far as they fit.
    pub fn change(&mut self, now: Instant, rate: Rate, depth: Bytes) {
        self.fill(now);
        self.rate = rate;
        self.depth = u128::from(depth.get()) * BYTE;
        self.tokens = self.tokens.min(self.depth);
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        let elapsed: Duration = now.saturating_since(self.updated);
        // Both factors are below 2^64.
        let arrived = u128::from(self.rate.as_bps()) * u128::from(elapsed.as_nanos());
        self.tokens = self.tokens.saturating_add(arrived).min(self.depth);
        self.updated = self.updated.max(now);
    }
}

impl Policer {
    /// Creates a policer with a full bucket.
    ///
    /// # Errors
    /// When a value is out of range.
    pub fn new(spec: TrafficSpec) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(Self { spec, bucket: TokenBucket::new(spec.rate, spec.bucket) })
    }

    /// Returns the traffic that conforms.
    pub const fn spec(&self) -> &TrafficSpec {
        &self.spec
    }

    /// Returns whether a packet of `size` bytes that arrived at `now` conforms (RFC 2211 section 7). If so, it has taken its tokens.
    #[inline]
    pub fn conforms(&mut self, now: Instant, size: u32) -> bool {
        let TrafficSpec { min_policed, max_packet, .. } = self.spec;
        let size = u64::from(size);
        size <= max_packet.get() && self.bucket.take(now, size.max(min_policed.get()))
    }

    /// Changes the values from `now` on. The tokens stay, as far as they fit, so that no change grants a second burst.
    ///
    /// # Errors
    /// When a value is out of range; then nothing has changed.
    pub fn change(&mut self, now: Instant, spec: TrafficSpec) -> Result<(), ParameterError> {
        spec.check()?;
        self.bucket.change(now, spec.rate, spec.bucket);
        self.spec = spec;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec() -> TrafficSpec {
        let [bucket, min_policed, max_packet] = [2000, 64, 1000].map(Bytes::new);
        TrafficSpec {
            rate: Rate::from_kbps(640),
            bucket,
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed,
            max_packet,
        }
    }

    fn at_us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// The header's example.
    #[test]
    fn a_token_arrives_to_the_nanosecond() {
        let mut policer = Policer::new(spec()).unwrap();
        assert_eq!([(); 3].map(|()| policer.conforms(at_us(0), 1000)), [true, true, false]);
        assert!(!policer.conforms(at_us(12_500) - Duration::from_nanos(1), 1000));
        assert!(policer.conforms(at_us(12_500), 1000));
        assert!(!policer.conforms(at_us(3), 1), "time that runs backwards brings no tokens");
    }

    // RFC 2211 section 7: packets smaller than m count as m; RFC 2211 section 5: M is the largest packet that conforms.
    #[test]
    fn short_packets_count_as_the_unit_and_long_ones_do_not_conform() {
        let mut policer = Policer::new(spec()).unwrap();
        assert!(!policer.conforms(at_us(0), 1001));
        assert_eq!((0..40).filter(|_| policer.conforms(at_us(0), 1)).count(), 2000 / 64);
    }

    #[test]
    fn a_change_grants_no_second_burst() {
        let mut policer = Policer::new(spec()).unwrap();
        assert!(policer.conforms(at_us(0), 1000) && policer.conforms(at_us(0), 1000));
        let wider = TrafficSpec { rate: Rate::from_mbps(8), bucket: Bytes::new(9000), ..spec() };
        policer.change(at_us(0), wider).unwrap();
        assert!(!policer.conforms(at_us(999), 1000) && policer.conforms(at_us(1000), 1000));
        policer.change(at_us(100_000), spec()).unwrap();
        assert_eq!([(); 3].map(|()| policer.conforms(at_us(100_000), 1000)), [true, true, false]);
    }

    #[test]
    fn a_value_that_is_not_allowed_is_refused_and_changes_nothing() {
        let wrong = TrafficSpec { rate: Rate::ZERO, ..spec() };
        assert!(Policer::new(wrong).unwrap_err().to_string().starts_with("rate = 0 bit/s"));
        let mut policer = Policer::new(spec()).unwrap();
        policer.change(at_us(0), wrong).unwrap_err();
        assert_eq!(*policer.spec(), spec());
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let (rate, bucket) = (TrafficSpec::MAX_RATE, TrafficSpec::MAX_BUCKET);
        let mut policer = Policer::new(TrafficSpec { rate, bucket, ..spec() }).unwrap();
        assert!(policer.conforms(Instant::FAR_FUTURE, 1000) && policer.conforms(Instant::FAR_FUTURE, 1));
    }

    proptest! {
        // RFC 2211 section 7: over all time periods, r T + b at most.
        #[test]
        fn in_no_interval_more_conforms_than_the_bucket_allows(
            arrivals in prop::collection::vec((0..3_000_000_u64, 1..1100_u32), 1..200),
            bps in 8..2_000_000_u64,
            bucket in 64..5000_u64,
        ) {
            let spec = TrafficSpec { rate: Rate::from_bps(bps), bucket: Bytes::new(bucket), ..spec() };
            let mut policer = Policer::new(spec).unwrap();
            let (mut now, mut passed) = (Instant::ZERO, Vec::new());
            for (gap, size) in arrivals {
                now += Duration::from_nanos(gap);
                if policer.conforms(now, size) {
                    passed.push((now, u128::from(size.max(64)) * BYTE));
                }
            }
            for first in 0..passed.len() {
                let mut sum = 0;
                for &(at, cost) in &passed[first..] {
                    sum += cost;
                    let time = u128::from((at - passed[first].0).as_nanos());
                    prop_assert!(sum <= u128::from(bps) * time + u128::from(bucket) * BYTE);
                }
            }
        }
    }
}
