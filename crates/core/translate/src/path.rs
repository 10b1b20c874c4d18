//! Properties of a path.

use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Duration, IpVersion, Rate};

const MINUTE: Duration = Duration::from_secs(60);

/// The round-trip time that is assumed where it is not known: that of a path within a continent.
const ASSUMED_RTT: Duration = Duration::from_millis(50);
/// The packet size that is assumed: Ethernet's.
const ASSUMED_MTU: u64 = 1500;
/// The share of packets lost that is assumed: the limit of the classes 0 to 4 of ITU-T Y.1541.
const ASSUMED_LOSS: f64 = 0.001;
/// The smallest MTU of a path with IPv6 (RFC 8200 section 5), B.
const LEAST_MTU_IPV6: u64 = 1280;

/// Properties of a path. Unknown properties are assumed, as the parameters say. A value that is only assumed
/// never limits a throughput: it would be wrong on a faster or longer path.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = Path::check)]
pub struct Path {
    /// The round-trip time without queues; off: 50 ms are assumed, and TCP's send buffer is left to the kernel.
    #[param(default = None, range = (Duration::ZERO, MINUTE), source = "a path within a continent")]
    pub rtt: Option<Duration>,
    /// The rate of the bottleneck; off: it is not known, and limits nothing.
    #[param(default = None, range = (1_000, 1_000_000_000_000), unit = "bit/s", source = "nothing is assumed")]
    pub rate: Option<Rate>,
    /// The longest packet, IP header included; off: 1500 B are assumed, and TCP finds out by itself.
    #[param(default = None, range = (576, 65_535), unit = "B", source = "Ethernet")]
    pub mtu: Option<Bytes>,
    /// The share of packets lost; off: 0.1 % is assumed for the hint.
    #[param(default = None, range = (0.0, 100.0), unit = "%", source = "ITU-T Y.1541, classes 0 to 4")]
    pub loss: Option<f64>,
    /// The version of IP.
    #[param(default = IpVersion::V4, source = "the more common one")]
    pub ip: IpVersion,
}

impl Path {
    fn check(&self) -> Result<(), ParameterError> {
        match self.mtu {
            Some(mtu) if self.ip == IpVersion::V6 && mtu.get() < LEAST_MTU_IPV6 => {
                let allowed = format!("at least {LEAST_MTU_IPV6} B with IPv6 (RFC 8200 section 5)");
                Err(ParameterError::new("mtu", mtu, allowed))
            }
            _ => Ok(()),
        }
    }

    /// The time to the other end, without queues.
    pub(crate) fn propagation(&self) -> Duration {
        self.rtt.unwrap_or(ASSUMED_RTT) / 2
    }

    /// The longest packet with its IP header, B.
    pub(crate) fn packet(&self) -> u64 {
        self.mtu.map_or(ASSUMED_MTU, Bytes::get)
    }

    /// The share of packets lost, 0 to 1.
    pub(crate) fn loss_ratio(&self) -> f64 {
        self.loss.map_or(ASSUMED_LOSS, |percent| percent / 100.0)
    }

    /// The IP header, B.
    pub(crate) fn ip_header(&self) -> u64 {
        u64::from(self.ip.header_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::{ParameterValue, conformance};

    #[test]
    fn the_parameters_are_described_and_bad_ones_refused() {
        let parameters = Path::describe();
        let make = |values: &[(&str, ParameterValue)]| {
            Path::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|path| path.values())
        };
        conformance::parameters_are_complete("path", &parameters);
        conformance::defaults_are_what_the_description_says("path", &parameters, &make);
        conformance::bad_parameters_are_refused_by_name("path", &parameters, &make);
        let error =
            make(&[("mtu", ParameterValue::Count(1000)), ("ip", ParameterValue::Choice("ipv6".into()))])
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "mtu = 1000 B: allowed is at least 1280 B with IPv6 (RFC 8200 section 5)"
        );
    }
}
