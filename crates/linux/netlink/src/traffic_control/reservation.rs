//! Reservations, and their rates on the wire.

use crate::Error;
use cutline_units::{Bytes, Rate};

/// A share of a link that is reserved: a token bucket of IP packets, as in a `TSpec` (RFC 2215 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedShare {
    /// The token rate r.
    pub rate: Rate,
    /// The bucket depth b.
    pub bucket: Bytes,
    /// The minimum policed unit m: the size that smaller packets count as.
    pub min_unit: Bytes,
    /// The maximum packet size M.
    pub max_packet: Bytes,
}

impl ReservedShare {
    /// Returns what this takes on a link on which each packet has `overhead` in addition: rate and bucket grow by that of the
    /// smallest packets, of which there are the most.
    ///
    /// ```
    /// # use cutline_netlink::ReservedShare;
    /// # use cutline_units::{Bytes, Rate};
    /// let [bucket, min_unit, max_packet] = [800, 200, 200].map(Bytes::new);
    /// let call = ReservedShare { rate: Rate::from_kbps(64), bucket, min_unit, max_packet };
    /// assert_eq!(call.on_wire(Bytes::new(14)).rate, Rate::from_bps(68_480));
    /// ```
    #[must_use]
    pub fn on_wire(&self, overhead: Bytes) -> Self {
        let unit = u128::from(self.min_unit.get().max(1));
        let grown = |value: u64| {
            let value = u128::from(value) * (unit + u128::from(overhead.get()));
            value.div_ceil(unit).try_into().unwrap_or(u64::MAX)
        };
        Self {
            rate: Rate::from_bps(grown(self.rate.as_bps())),
            bucket: Bytes::new(grown(self.bucket.get())),
            min_unit: self.min_unit + overhead,
            max_packet: self.max_packet + overhead,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        if self.rate.as_bps() < 8 {
            return Err(Error::invalid("rate", self.rate, "at least 8 bit/s"));
        }
        if self.min_unit == Bytes::ZERO {
            return Err(Error::invalid("min_unit", self.min_unit, "at least 1 B"));
        }
        if self.max_packet < self.min_unit {
            return Err(Error::invalid(
                "max_packet",
                self.max_packet,
                format!("at least min_unit, {}", self.min_unit),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(rate: u64, bucket: u64, min_unit: u64, max_packet: u64) -> ReservedShare {
        let [bucket, min_unit, max_packet] = [bucket, min_unit, max_packet].map(Bytes::new);
        ReservedShare { rate: Rate::from_bps(rate), bucket, min_unit, max_packet }
    }

    #[test]
    fn the_smallest_packets_need_the_most() {
        let wire = reservation(320_000, 1000, 200, 1500).on_wire(Bytes::new(38));
        assert_eq!(wire, reservation(380_800, 1190, 238, 1538));
        // Rounded up, and no more than there are numbers for.
        assert_eq!(reservation(1000, 1, 3, 3).on_wire(Bytes::new(1)).rate, Rate::from_bps(1334));
        assert_eq!(reservation(u64::MAX, 1, 1, 1).on_wire(Bytes::new(1)).rate, Rate::from_bps(u64::MAX));
    }

    #[test]
    fn values_are_checked() {
        reservation(8, 0, 1, 1).validate().unwrap();
        for (wrong, field) in [
            (reservation(7, 0, 1, 1), "rate"),
            (reservation(8, 0, 0, 1), "min_unit"),
            (reservation(8, 0, 2, 1), "max_packet"),
        ] {
            let message = wrong.validate().unwrap_err().to_string();
            assert!(message.starts_with(field), "{message}");
        }
    }
}
