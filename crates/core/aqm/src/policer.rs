//! Policing: which packets of a reserved flow conform to its token bucket (RFC 2211, RFC 2215).
//!
//! A bucket of depth b fills at the rate r. A packet conforms if the bucket holds as many tokens as the packet has bytes, which it
//! then takes. Over any interval T the packets that conform have r T + b bytes at most. Two sizes change what is counted:
//!
//! - A packet shorter than the minimum policed unit m counts as m bytes.
//! - A packet longer than the largest packet M does not conform.
//!
//! What a packet's size is, the caller decides: for Integrated Services it is the length of the IP datagram.
//!
//! The arithmetic is exact. A byte is 8 x 10^9 bit-nanoseconds, and in t nanoseconds a bucket of r bit/s fills by r t of them, so
//! nothing is divided and nothing is rounded. Example: r = 640 kbit/s and b = 2000 B. Two packets of 1000 B at once conform. A third
//! one conforms after 8000 / 640000 s = 12.5 ms, and not a nanosecond earlier.
//!
//! The peak rate p of a `TSpec` is not policed. The service may ignore it (RFC 2211 section 5), and packets that left their sender at p
//! arrive in bursts behind other routers.

use cutline_params::ParameterError;
use cutline_units::{Bytes, Duration, Instant, Rate};

/// Token bucket of a policer: traffic within it conforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerParams {
    /// The token rate r.
    pub rate: Rate,
    /// The bucket's depth b.
    pub bucket: Bytes,
    /// The minimum policed unit m, bytes.
    pub min_unit: u32,
    /// The largest packet M, bytes.
    pub max_packet: u32,
}

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

/// A token bucket with the sizes of a `TSpec`.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    params: PolicerParams,
    bucket: TokenBucket,
}

/// A byte in bit-nanoseconds.
const BYTE: u128 = 8_000_000_000;

impl PolicerParams {
    /// The largest rate: 40 terabytes per second (RFC 2211 section 5).
    pub const MAX_RATE: Rate = Rate::from_bps(8 * 40_000_000_000_000);
    /// The deepest bucket: 250 gigabytes (RFC 2211 section 5).
    pub const MAX_BUCKET: Bytes = Bytes::new(250_000_000_000);
    /// The longest packet: that of IPv4, and of IPv6 without jumbograms.
    pub const LONGEST: u32 = 65_575;

    /// Checks each value.
    ///
    /// # Errors
    /// Names the first value that is not allowed (RFC 2211 section 5).
    pub fn check(&self) -> Result<(), ParameterError> {
        let wrong = |name, value: String, allowed: String| Err(ParameterError::new(name, value, allowed));
        if self.rate == Rate::ZERO || self.rate > Self::MAX_RATE {
            return wrong("rate", self.rate.to_string(), format!("from 1 bit/s to {}", Self::MAX_RATE));
        }
        if self.max_packet == 0 || self.max_packet > Self::LONGEST {
            return wrong(
                "max-packet",
                format!("{} B", self.max_packet),
                format!("from 1 to {} B", Self::LONGEST),
            );
        }
        if self.min_unit == 0 || self.min_unit > self.max_packet {
            return wrong(
                "min-unit",
                format!("{} B", self.min_unit),
                format!("from 1 to {} B", self.max_packet),
            );
        }
        // In a shallower bucket the smallest packet would never conform.
        let least = Bytes::new(self.min_unit.into());
        if self.bucket < least || self.bucket > Self::MAX_BUCKET {
            return wrong("bucket", self.bucket.to_string(), format!("from {least} to {}", Self::MAX_BUCKET));
        }
        Ok(())
    }
}

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
    /// When a parameter is out of range.
    pub fn new(params: PolicerParams) -> Result<Self, ParameterError> {
        params.check()?;
        Ok(Self { params, bucket: TokenBucket::new(params.rate, params.bucket) })
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &PolicerParams {
        &self.params
    }

    /// Returns whether a packet of `size` bytes that arrived at `now` conforms (RFC 2211 section 7). If so, it has taken its tokens.
    #[inline]
    pub fn conforms(&mut self, now: Instant, size: u32) -> bool {
        let PolicerParams { min_unit, max_packet, .. } = self.params;
        size <= max_packet && self.bucket.take(now, size.max(min_unit).into())
    }

    /// Changes the parameters from `now` on. The tokens stay, as far as they fit, so that no change grants a second burst.
    ///
    /// # Errors
    /// When a parameter is out of range; then nothing has changed.
    pub fn change(&mut self, now: Instant, params: PolicerParams) -> Result<(), ParameterError> {
        params.check()?;
        self.bucket.change(now, params.rate, params.bucket);
        self.params = params;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn params() -> PolicerParams {
        PolicerParams { rate: Rate::from_kbps(640), bucket: Bytes::new(2000), min_unit: 64, max_packet: 1000 }
    }

    fn at_us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// The header's example.
    #[test]
    fn a_token_arrives_to_the_nanosecond() {
        let mut policer = Policer::new(params()).unwrap();
        assert_eq!([(); 3].map(|()| policer.conforms(at_us(0), 1000)), [true, true, false]);
        assert!(!policer.conforms(at_us(12_500) - Duration::from_nanos(1), 1000));
        assert!(policer.conforms(at_us(12_500), 1000));
        assert!(!policer.conforms(at_us(3), 1), "time that runs backwards brings no tokens");
    }

    // RFC 2211 section 7: packets smaller than m count as m; RFC 2211 section 5: M is the largest packet that conforms.
    #[test]
    fn short_packets_count_as_the_unit_and_long_ones_do_not_conform() {
        let mut policer = Policer::new(params()).unwrap();
        assert!(!policer.conforms(at_us(0), 1001));
        assert_eq!((0..40).filter(|_| policer.conforms(at_us(0), 1)).count(), 2000 / 64);
    }

    #[test]
    fn a_change_grants_no_second_burst() {
        let mut policer = Policer::new(params()).unwrap();
        assert!(policer.conforms(at_us(0), 1000) && policer.conforms(at_us(0), 1000));
        let wider = PolicerParams { rate: Rate::from_mbps(8), bucket: Bytes::new(9000), ..params() };
        policer.change(at_us(0), wider).unwrap();
        assert!(!policer.conforms(at_us(999), 1000) && policer.conforms(at_us(1000), 1000));
        policer.change(at_us(100_000), params()).unwrap();
        assert_eq!([(); 3].map(|()| policer.conforms(at_us(100_000), 1000)), [true, true, false]);
    }

    // RFC 2211 section 5.
    #[test]
    fn a_value_that_is_not_allowed_is_named() {
        let refusal = |params: PolicerParams| Policer::new(params).unwrap_err().to_string();
        for (wrong, why) in [
            (
                PolicerParams { rate: Rate::ZERO, ..params() },
                "rate = 0 bit/s: allowed is from 1 bit/s to 320000 Gbit/s",
            ),
            (
                PolicerParams { bucket: Bytes::new(63), ..params() },
                "bucket = 63 B: allowed is from 64 B to 250000000000 B",
            ),
            (PolicerParams { min_unit: 0, ..params() }, "min-unit = 0 B: allowed is from 1 to 1000 B"),
            (PolicerParams { min_unit: 1001, ..params() }, "min-unit = 1001 B: allowed is from 1 to 1000 B"),
            (
                PolicerParams { max_packet: 70_000, ..params() },
                "max-packet = 70000 B: allowed is from 1 to 65575 B",
            ),
        ] {
            assert_eq!(refusal(wrong), why);
        }
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let (rate, bucket) = (PolicerParams::MAX_RATE, PolicerParams::MAX_BUCKET);
        let mut policer = Policer::new(PolicerParams { rate, bucket, ..params() }).unwrap();
        assert!(policer.conforms(Instant::FAR_FUTURE, 1000) && policer.conforms(Instant::FAR_FUTURE, 1));
    }

    proptest! {
        // RFC 2211 section 7: over all time periods, r T + b at most.
        #[test]
        fn in_no_interval_more_conforms_than_the_bucket_allows(
            arrivals in prop::collection::vec((0..3_000_000_u64, 1..1100_u32), 1..200),
            bps in 1..2_000_000_u64,
            bucket in 64..5000_u64,
        ) {
            let params = PolicerParams { rate: Rate::from_bps(bps), bucket: Bytes::new(bucket), ..params() };
            let mut policer = Policer::new(params).unwrap();
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
