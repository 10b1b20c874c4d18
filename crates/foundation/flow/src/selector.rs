//! Selector of a flow's packets.

use cutline_params::ParameterError;
use std::fmt;
use std::net::IpAddr;

/// The packets of a flow, or of several flows. `None` matches any value. A packet must match all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowSelector {
    /// The destination, a host or a group.
    pub destination: IpAddr,
    /// The number of the protocol above IP, such as 17 for UDP.
    pub protocol: Option<u8>,
    /// The destination port, at least 1.
    pub destination_port: Option<u16>,
    /// The source, of the destination's version of IP.
    pub source: Option<IpAddr>,
    /// The source port, at least 1.
    pub source_port: Option<u16>,
    /// The flow label of IPv6 (RFC 6437), 0 to 1048575.
    pub flow_label: Option<u32>,
}

impl FlowSelector {
    /// The largest flow label of IPv6: 20 bits.
    pub const MAX_LABEL: u32 = 0x000f_ffff;

    /// Selects all packets to a destination.
    pub const fn to(destination: IpAddr) -> Self {
        Self {
            destination,
            protocol: None,
            destination_port: None,
            source: None,
            source_port: None,
            flow_label: None,
        }
    }

    /// Checks that packets can match.
    ///
    /// # Errors
    /// When the addresses have different versions of IP, a port is 0 or has no protocol, or a flow label is too large or
    /// has an IPv4 destination. The error names the field.
    pub fn check(&self) -> Result<(), ParameterError> {
        let is_v4 = self.destination.is_ipv4();
        if let Some(source) = self.source.filter(|source| source.is_ipv4() != is_v4) {
            return Err(ParameterError::new(
                "source",
                source,
                "an address of the destination's version of IP",
            ));
        }
        for (field, port) in [("destination-port", self.destination_port), ("source-port", self.source_port)]
        {
            match port {
                Some(0) => return Err(ParameterError::new(field, 0, "from 1 to 65535, or none")),
                Some(port) if self.protocol.is_none() => {
                    return Err(ParameterError::new(field, port, "none without a protocol"));
                }
                _ => {}
            }
        }
        match self.flow_label {
            Some(label) if is_v4 => Err(ParameterError::new("flow-label", label, "none with IPv4")),
            Some(label) if label > Self::MAX_LABEL => {
                Err(ParameterError::new("flow-label", label, format!("from 0 to {}", Self::MAX_LABEL)))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for FlowSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = |port: Option<u16>| port.map(|port| format!("port {port}"));
        let source = match (self.source, port(self.source_port)) {
            (Some(source), Some(port)) => format!("from {source} {port} "),
            (Some(source), None) => format!("from {source} "),
            (None, Some(port)) => format!("from {port} of any host "),
            (None, None) => String::new(),
        };
        write!(f, "{source}to {}", self.destination)?;
        let rest = [
            port(self.destination_port).map(|port| format!(" {port}")),
            self.protocol.map(|protocol| format!(", protocol {protocol}")),
            self.flow_label.map(|label| format!(", flow label {label}")),
        ];
        rest.into_iter().flatten().try_for_each(|part| f.write_str(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn a_selector_that_no_packet_matches_is_refused() {
        let v4 = FlowSelector { protocol: Some(17), ..FlowSelector::to(Ipv4Addr::LOCALHOST.into()) };
        let v6 = FlowSelector { protocol: Some(17), ..FlowSelector::to(Ipv6Addr::LOCALHOST.into()) };
        let fine = [
            v4,
            FlowSelector { protocol: None, ..v4 },
            FlowSelector { destination_port: Some(1), source_port: Some(65_535), ..v4 },
            FlowSelector { source: Some(Ipv6Addr::LOCALHOST.into()), flow_label: Some(0xf_ffff), ..v6 },
        ];
        for selector in fine {
            selector.check().unwrap();
        }
        for (wrong, why) in [
            (
                FlowSelector { source: Some(Ipv6Addr::LOCALHOST.into()), ..v4 },
                "source = ::1: allowed is an address of the destination's version of IP",
            ),
            (
                FlowSelector { source_port: Some(0), ..v4 },
                "source-port = 0: allowed is from 1 to 65535, or none",
            ),
            (
                FlowSelector { protocol: None, destination_port: Some(5), ..v4 },
                "destination-port = 5: allowed is none without a protocol",
            ),
            (FlowSelector { flow_label: Some(7), ..v4 }, "flow-label = 7: allowed is none with IPv4"),
            (
                FlowSelector { flow_label: Some(1 << 20), ..v6 },
                "flow-label = 1048576: allowed is from 0 to 1048575",
            ),
        ] {
            assert_eq!(wrong.check().unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn the_text_names_every_field() {
        let all = FlowSelector::to(Ipv4Addr::LOCALHOST.into());
        assert_eq!(all.to_string(), "to 127.0.0.1");
        let one = FlowSelector {
            protocol: Some(6),
            destination_port: Some(80),
            source: Some(Ipv6Addr::LOCALHOST.into()),
            source_port: Some(9),
            flow_label: Some(3),
            ..FlowSelector::to(Ipv6Addr::LOCALHOST.into())
        };
        assert_eq!(one.to_string(), "from ::1 port 9 to ::1 port 80, protocol 6, flow label 3");
    }
}
