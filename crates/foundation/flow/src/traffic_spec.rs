//! Largest traffic of a flow.

use cutline_params::ParameterError;
use cutline_units::{Bytes, Rate};

/// Largest traffic of a flow, a token bucket: the `TOKEN_BUCKET_TSPEC` of Integrated Services (RFC 2215 section 3.6).
/// Packets are those of IP, headers included; without IP, frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(from = "document::TrafficSpec", into = "document::TrafficSpec"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "document::TrafficSpec"))]
pub struct TrafficSpec {
    /// The token rate r.
    pub rate: Rate,
    /// The bucket depth b: the burst above the rate.
    pub bucket: Bytes,
    /// The peak rate p, the rate of a burst; [`UNKNOWN_PEAK`](Self::UNKNOWN_PEAK) if it is not known.
    pub peak: Rate,
    /// The minimum policed unit m: shorter packets count as this size.
    pub min_policed: Bytes,
    /// The maximum packet size M.
    pub max_packet: Bytes,
}

impl TrafficSpec {
    /// The smallest rate: a byte per second (RFC 2215 section 3.6).
    pub const MIN_RATE: Rate = Rate::from_bps(8);
    /// The largest rate: 40 terabytes per second (RFC 2215 section 3.6).
    pub const MAX_RATE: Rate = Rate::from_bps(8 * 40_000_000_000_000);
    /// The deepest bucket: 250 gigabytes (RFC 2215 section 3.6).
    pub const MAX_BUCKET: Bytes = Bytes::new(250_000_000_000);
    /// The largest packet: that of IPv4, and of IPv6 without jumbograms.
    pub const MAX_PACKET: Bytes = Bytes::new(65_575);
    /// The peak rate of a flow whose peak rate is not known.
    pub const UNKNOWN_PEAK: Rate = Rate::from_bps(u64::MAX);

    /// Checks the values that a policer uses, which are all but the peak rate.
    ///
    /// # Errors
    /// Names the first value that is not allowed (RFC 2211 section 5).
    pub fn check(&self) -> Result<(), ParameterError> {
        let check = |name, value: Bytes, least: Bytes, most: Bytes| {
            let allowed = || format!("from {least} to {most}");
            let is_allowed = (least..=most).contains(&value);
            if is_allowed { Ok(()) } else { Err(ParameterError::new(name, value, allowed())) }
        };
        if !(Self::MIN_RATE..=Self::MAX_RATE).contains(&self.rate) {
            let allowed = format!("from {} to {}", Self::MIN_RATE, Self::MAX_RATE);
            return Err(ParameterError::new("rate", self.rate, allowed));
        }
        check("max-packet", self.max_packet, Bytes::new(1), Self::MAX_PACKET)?;
        check("min-policed", self.min_policed, Bytes::new(1), self.max_packet)?;
        // In a shallower bucket the smallest packet would never conform.
        check("bucket", self.bucket, self.min_policed, Self::MAX_BUCKET)
    }

    /// Returns the nearest values that [`check`](Self::check) accepts. The bucket holds the largest packet, which would
    /// never conform otherwise.
    #[must_use]
    pub fn installable(self) -> Self {
        let max_packet = self.max_packet.clamp(Bytes::new(1), Self::MAX_PACKET);
        Self {
            rate: self.rate.clamp(Self::MIN_RATE, Self::MAX_RATE),
            bucket: self.bucket.clamp(max_packet, Self::MAX_BUCKET),
            peak: self.peak,
            min_policed: self.min_policed.clamp(Bytes::new(1), max_packet),
            max_packet,
        }
    }

    /// Returns the traffic on a link on which each packet has `overhead` in addition: rate and bucket grow by that of the
    /// smallest packets, of which there are the most. Values are rounded up.
    ///
    /// ```
    /// # use cutline_flow::TrafficSpec;
    /// # use cutline_units::{Bytes, Rate};
    /// let [bucket, min_policed, max_packet] = [800, 200, 200].map(Bytes::new);
    /// let rate = Rate::from_kbps(64);
    /// let call = TrafficSpec { rate, bucket, peak: rate, min_policed, max_packet };
    /// assert_eq!(call.on_link(Bytes::new(14)).rate, Rate::from_bps(68_480));
    /// ```
    #[must_use]
    pub fn on_link(self, overhead: Bytes) -> Self {
        let unit = u128::from(self.min_policed.get().max(1));
        let grown = |value: u64| {
            let value = u128::from(value) * (unit + u128::from(overhead.get()));
            value.div_ceil(unit).try_into().unwrap_or(u64::MAX)
        };
        Self {
            rate: Rate::from_bps(grown(self.rate.as_bps())),
            bucket: Bytes::new(grown(self.bucket.get())),
            peak: Rate::from_bps(grown(self.peak.as_bps())),
            min_policed: self.min_policed + overhead,
            max_packet: self.max_packet + overhead,
        }
    }
}

/// The form in documents.
#[cfg(feature = "serde")]
mod document {
    use cutline_units::{Bytes, Rate};

    /// Largest traffic of a flow, a token bucket (RFC 2215 section 3.6). Headers of IP count.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(deny_unknown_fields)]
    pub struct TrafficSpec {
        /// The token rate (r), bits per second.
        rate_bps: u64,
        /// The bucket depth (b): the burst above the rate, bytes.
        bucket_bytes: u64,
        /// The peak rate (p), bits per second; the largest number if it is not known.
        peak_bps: u64,
        /// The minimum policed unit (m): shorter packets count as this size, bytes.
        min_policed_bytes: u64,
        /// The maximum packet size (M), bytes.
        max_packet_bytes: u64,
    }

    impl From<super::TrafficSpec> for TrafficSpec {
        fn from(spec: super::TrafficSpec) -> Self {
            Self {
                rate_bps: spec.rate.as_bps(),
                bucket_bytes: spec.bucket.get(),
                peak_bps: spec.peak.as_bps(),
                min_policed_bytes: spec.min_policed.get(),
                max_packet_bytes: spec.max_packet.get(),
            }
        }
    }

    impl From<TrafficSpec> for super::TrafficSpec {
        fn from(document: TrafficSpec) -> Self {
            Self {
                rate: Rate::from_bps(document.rate_bps),
                bucket: Bytes::new(document.bucket_bytes),
                peak: Rate::from_bps(document.peak_bps),
                min_policed: Bytes::new(document.min_policed_bytes),
                max_packet: Bytes::new(document.max_packet_bytes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(bps: u64, bucket: u64, min_policed: u64, max_packet: u64) -> TrafficSpec {
        let [bucket, min_policed, max_packet] = [bucket, min_policed, max_packet].map(Bytes::new);
        let rate = Rate::from_bps(bps);
        TrafficSpec { rate, bucket, peak: rate, min_policed, max_packet }
    }

    #[test]
    fn a_value_that_is_not_allowed_is_named() {
        spec(8, 64, 64, 1000).check().unwrap();
        for (wrong, why) in [
            (spec(7, 64, 64, 1000), "rate = 7 bit/s: allowed is from 8 bit/s to 320000 Gbit/s"),
            (spec(8, 63, 64, 1000), "bucket = 63 B: allowed is from 64 B to 250000000000 B"),
            (spec(8, 64, 0, 1000), "min-policed = 0 B: allowed is from 1 B to 1000 B"),
            (spec(8, 64, 1001, 1000), "min-policed = 1001 B: allowed is from 1 B to 1000 B"),
            (spec(8, 64, 64, 70_000), "max-packet = 70000 B: allowed is from 1 B to 65575 B"),
        ] {
            assert_eq!(wrong.check().unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn the_smallest_packets_need_the_most() {
        let on_link = spec(320_000, 1000, 200, 1500).on_link(Bytes::new(38));
        assert_eq!(on_link, spec(380_800, 1190, 238, 1538));
        // Rounded up, and no more than the largest number.
        assert_eq!(spec(1000, 1, 3, 3).on_link(Bytes::new(1)).rate, Rate::from_bps(1334));
        assert_eq!(spec(u64::MAX, 1, 1, 1).on_link(Bytes::new(1)).rate, Rate::from_bps(u64::MAX));
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_document_has_units_and_nothing_else() {
        let text = serde_json::to_string(&spec(8000, 100, 40, 50)).unwrap();
        let expected = concat!(
            r#"{"rate_bps":8000,"bucket_bytes":100,"peak_bps":8000,"#,
            r#""min_policed_bytes":40,"max_packet_bytes":50}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<TrafficSpec>(&text).unwrap(), spec(8000, 100, 40, 50));
        assert!(serde_json::from_str::<TrafficSpec>(&text.replacen('{', r#"{"x":1,"#, 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_spec_becomes_one_that_can_be_installed(
            bps: u64, bucket: u64, min_policed: u64, max_packet: u64, small in 0..3_000_u64,
        ) {
            for spec in [spec(bps, bucket, min_policed, max_packet), spec(small, small, bps % 3000, max_packet % 3000)] {
                let installed = spec.installable();
                prop_assert!(installed.check().is_ok(), "{spec:?} became {installed:?}");
                prop_assert!(installed.bucket >= installed.max_packet);
                prop_assert_eq!(installed.installable(), installed);
                if spec.check().is_ok() && spec.bucket >= spec.max_packet {
                    prop_assert_eq!(installed, spec);
                }
            }
        }
    }
}
