//! How long sparse traffic without a hint waits behind flows that fill the link, as far as that can be said in advance.

use crate::{AqmSpec, Limit, QueueSpec, RedParams};
use cutline_units::{Bytes, Duration, Rate};

/// The size that a packet is taken to have where a length is in packets, B.
const PACKET: f64 = 1500.0;

impl QueueSpec {
    /// The delay at which the queue settles for packets of a sparse flow without a hint while others fill the link: the target of its
    /// law, or all of the limit if it has none. `None` if such packets do not stand behind the others, as with Sieve and with a queue
    /// for every flow, or if nobody knows, as with AQMs of other crates.
    pub fn standing_delay(&self) -> Option<Duration> {
        self.of(&self.aqm)
    }

    fn of(&self, aqm: &AqmSpec) -> Option<Duration> {
        let packets = |packets: f64| Some(transmission(self.rate, packets * PACKET));
        match aqm {
            AqmSpec::DropTail(_) | AqmSpec::Blue(_) | AqmSpec::Abe(_) | AqmSpec::StrictPriority(_) => {
                Some(match self.limit {
                    Limit::Packets(most) => transmission(self.rate, f64::from(most) * PACKET),
                    Limit::Bytes(most) => self.rate.transmission_time(Bytes::new(most)),
                })
            }
            AqmSpec::Pi(pi) => packets(pi.q_ref),
            AqmSpec::Sfc(sfc) => packets(sfc.q_ref),
            AqmSpec::Red(red) => Some(self.between_thresholds(red)),
            AqmSpec::Ared(ared) => Some(self.between_thresholds(&ared.red)),
            AqmSpec::RedWorcester(redw) => Some(self.between_thresholds(&redw.ared.red)),
            AqmSpec::Pie(pie) => Some(pie.control.target),
            AqmSpec::Pi2(pi2) => Some(pi2.control.target),
            AqmSpec::DualPi2(dual) => Some(dual.control.target),
            AqmSpec::CoDel(codel) => Some(codel.target),
            AqmSpec::Bands(bands) => self.of(&bands.below),
            AqmSpec::FqCoDel(_)
            | AqmSpec::FqPie(_)
            | AqmSpec::Cake(_)
            | AqmSpec::Drr(_)
            | AqmSpec::Sieve(_)
            | AqmSpec::SieveOver(_)
            | AqmSpec::External(_) => None,
        }
    }

    /// The middle of RED's thresholds.
    fn between_thresholds(&self, red: &RedParams) -> Duration {
        match (red.min_th, red.max_th) {
            (Some(min), Some(max)) => {
                transmission(self.rate, f64::midpoint(min, max) * red.mean_packet as f64)
            }
            // An automatic min-th is at the target delay, and max-th at three times that.
            _ => red.target_delay * 2,
        }
    }
}

fn transmission(rate: Rate, bytes: f64) -> Duration {
    rate.transmission_time(Bytes::new(bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::Value;

    fn delay(aqm: &str, values: &[(&str, Value)]) -> Option<u64> {
        let aqm = AqmSpec::from_values(aqm, values.iter().cloned()).unwrap();
        let limit = Limit::Packets(1000);
        let spec = QueueSpec { limit, ecn: true, aqm, tsq: None, rate: Rate::from_mbps(15) };
        spec.standing_delay().map(|delay| delay.as_nanos() / 1_000_000)
    }

    #[test]
    fn it_is_the_target_or_the_limit() {
        // 1000 and 200 packets of 1500 B at 15 Mbit/s.
        assert_eq!(delay("drop-tail", &[]), Some(800));
        assert_eq!(delay("pi", &[]), Some(160));
        assert_eq!(
            delay("red", &[("min-th", Value::Number(50.0)), ("max-th", Value::Number(150.0))]),
            Some(53)
        );
        assert_eq!(delay("pie", &[]), Some(15));
        assert_eq!(delay("codel", &[]), Some(5));
        for own_place in ["sieve", "fq-codel", "drr"] {
            assert_eq!(delay(own_place, &[]), None, "{own_place}");
        }
    }
}
