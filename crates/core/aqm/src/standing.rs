//! Delay of sparse traffic without a hint behind flows that fill the link, as far as it is predictable.
//!
//! Each AQM answers for itself ([`Aqm::standing_delay`](crate::Aqm::standing_delay)); the functions here turn limits and lengths
//! into delays.

use crate::{Limit, QueueSpec};
use cutline_units::{Bytes, Duration, Rate};

/// Assumed size of a packet where a length is in packets, B.
pub const PACKET_BYTES: f64 = 1500.0;

/// Returns the time that a full queue takes to leave.
pub fn full(limit: Limit, rate: Rate) -> Duration {
    match limit {
        Limit::Packets(most) => packets(f64::from(most), rate),
        Limit::Bytes(most) => rate.transmission_time(Bytes::new(most)),
    }
}

/// Returns the time that this many packets of [`PACKET_BYTES`] take to leave.
pub fn packets(packets: f64, rate: Rate) -> Duration {
    bytes(packets * PACKET_BYTES, rate)
}

/// Returns the time that this many bytes take to leave.
pub fn bytes(bytes: f64, rate: Rate) -> Duration {
    rate.transmission_time(Bytes::new(bytes as u64))
}

impl QueueSpec {
    /// Returns the delay at which the queue settles for packets of a sparse flow without a hint while other flows fill the link:
    /// the target of its law, or all of the limit if it has none. `None` if such packets do not wait behind the others, as with
    /// Sieve and with a queue for every flow, or if the AQM does not know it.
    pub fn standing_delay(&self) -> Option<Duration> {
        self.aqm.standing_delay(self.limit, self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AqmSpec;
    use cutline_params::ParameterValue;

    fn queue(aqm: AqmSpec) -> QueueSpec {
        let limit = Limit::Packets(1000);
        QueueSpec { limit, ecn: true, aqm, tsq: None, rate: Rate::from_mbps(15) }
    }

    fn delay(aqm: &str, values: &[(&str, ParameterValue)]) -> Option<u64> {
        let spec = queue(AqmSpec::from_values(aqm, values.iter().cloned()).unwrap());
        spec.standing_delay().map(|delay| delay.as_nanos() / 1_000_000)
    }

    /// 1000 and 200 packets of 1500 B at 15 Mbit/s take 800 and 160 ms.
    #[test]
    fn the_standing_delay_is_the_target_or_the_limit() {
        let expected = [
            ("drop-tail", Some(800)),
            ("pi", Some(160)),
            // The middle of 5 and 15 packets of 1000 B.
            ("red", Some(5)),
            // Automatic thresholds: twice the target delay.
            ("ared", Some(10)),
            ("red-worcester", Some(10)),
            ("blue", Some(800)),
            // 200 packets of 1000 B.
            ("sfc", Some(106)),
            ("pie", Some(15)),
            ("pi2", Some(20)),
            ("codel", Some(5)),
            ("fq-codel", None),
            ("fq-pie", None),
            ("cake", None),
            ("strict-priority", Some(800)),
            ("drr", None),
            ("afd", Some(20)),
            ("dual-pi2", Some(15)),
            ("protected-dual-pi2", Some(15)),
            ("deltic", None),
            ("abe", Some(800)),
            ("sieve", None),
        ];
        for (name, expected) in expected {
            assert_eq!(delay(name, &[]), expected, "{name}");
        }
    }

    #[test]
    fn the_standing_delay_follows_the_parameters() {
        let thresholds =
            [("min-th", ParameterValue::Number(50.0)), ("max-th", ParameterValue::Number(150.0))];
        assert_eq!(delay("red", &thresholds), Some(53));
        // 200 packets of 500 B.
        assert_eq!(delay("pi", &[("mean-packet", ParameterValue::Count(500))]), Some(53));
        assert_eq!(
            delay("pie", &[("target", ParameterValue::Duration(Duration::from_millis(30)))]),
            Some(30)
        );
    }

    #[test]
    fn strict_priority_has_that_of_the_queues_below_it() {
        let of = |name| AqmSpec::from_values(name, []).unwrap();
        let below = |aqm, below| queue(of(aqm).with_below(of(below)).unwrap()).standing_delay();
        assert_eq!(below("strict-priority", "pie"), Some(Duration::from_millis(15)));
    }
}
