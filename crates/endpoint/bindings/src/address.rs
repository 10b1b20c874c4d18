//! Addresses of sockets of all kinds, and the texts that select a kind.

use cutline_params::ParameterError;
use cutline_socket::{AddressTextError, DirectAddress, QosDirectListener, QosError, QosOptions};
use std::fmt;
use std::net::SocketAddr;

/// Beginning of the texts of addresses of frames below IP.
const DIRECT: &str = "direct:";

/// Form of an address to connect to.
const CONNECTING: &str = "direct:INTERFACE/LINK-ADDRESS:PORT, such as direct:eth0/02:00:00:00:00:01:7000";
/// Form of an address to listen at.
const LISTENING: &str = "direct:INTERFACE:PORT, such as direct:eth0:7000";

/// The address of an end of any kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyAddress {
    /// An address of IP.
    Ip(SocketAddr),
    /// An address of frames below IP.
    Direct(DirectAddress),
}

impl AnyAddress {
    /// Returns the address of IP. That of frames below IP is the link-local address of IPv6 that is derived from the link address.
    pub const fn socket_addr(self) -> SocketAddr {
        match self {
            Self::Ip(address) => address,
            Self::Direct(address) => address.socket_addr(),
        }
    }

    /// Returns the text without the port, for languages that have addresses of two parts.
    pub fn host(self) -> String {
        match self {
            Self::Ip(address) => address.ip().to_string(),
            Self::Direct(address) => {
                let text = address.to_string();
                text.rsplit_once(':').map_or(text.as_str(), |(host, _)| host).to_owned()
            }
        }
    }
}

impl fmt::Display for AnyAddress {
    /// Formats it as the text that connects to it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Direct(address) => address.fmt(f),
        }
    }
}

/// Returns whether a text, or a host of an address of two parts, is one of frames below IP.
pub fn is_direct(text: &str) -> bool {
    text.starts_with(DIRECT)
}

/// Parses an address to connect to: `direct:eth0/02:00:00:00:00:01:7000`.
pub fn direct_address(text: &str) -> Result<DirectAddress, QosError> {
    text.parse().map_err(|error| {
        let allowed = match error {
            AddressTextError::Malformed => CONNECTING.to_owned(),
            AddressTextError::Port(_) => "a port from 1 to 65535".to_owned(),
            AddressTextError::Interface { known, .. } => {
                format!("one of the interfaces {}", known.join(", "))
            }
        };
        ParameterError::new("address", text, allowed).into()
    })
}

/// Listens at an interface and a port, `direct:eth0:7000`, or at an address of this host, `direct:eth0/02:00:00:00:00:01:7000`.
pub fn listen_direct(text: &str, options: &QosOptions) -> Result<QosDirectListener, QosError> {
    let wrong = |allowed: String| QosError::from(ParameterError::new("address", text, allowed));
    let (place, port) = text
        .strip_prefix(DIRECT)
        .and_then(|place| place.rsplit_once(':'))
        .ok_or_else(|| wrong(LISTENING.to_owned()))?;
    let Ok(port) = port.parse::<u16>() else { return Err(wrong(LISTENING.to_owned())) };
    let Some((interface, _)) = place.split_once('/') else {
        return QosDirectListener::bind(place, port, options);
    };
    // With the port of a listener, or 0 for any.
    let own = direct_address(&format!("{DIRECT}{place}:{}", port.max(1)))?;
    let listener = QosDirectListener::bind(interface, port, options)?;
    match listener.local_addr() {
        Ok(bound) if bound.link == own.link => Ok(listener),
        Ok(bound) => Err(wrong(format!("that of the interface, {bound}"))),
        Err(source) => Err(QosError::System { doing: "the socket has no address", source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_texts_and_have_two_parts() {
        let ip = AnyAddress::Ip("[2001:db8::1]:53".parse().unwrap());
        assert_eq!((ip.host().as_str(), ip.to_string().as_str()), ("2001:db8::1", "[2001:db8::1]:53"));
        let text = "direct:lo/02:00:00:00:00:01:7000";
        let direct = AnyAddress::Direct(direct_address(text).unwrap());
        assert_eq!(
            (direct.host().as_str(), direct.to_string().as_str()),
            ("direct:lo/02:00:00:00:00:01", text)
        );
        assert_eq!(direct.socket_addr().port(), 7000);
        assert!(is_direct(text) && is_direct(&direct.host()) && !is_direct(&ip.host()));
    }

    #[test]
    fn texts_that_are_no_address_are_refused_with_the_right_form() {
        let says = |error: QosError| error.to_string();
        for text in ["direct:", "direct:lo", "direct:lo:", "direct:lo:x", "direct:lo:65536", "direct:lo:-1"] {
            let error = says(listen_direct(text, &QosOptions::default()).unwrap_err());
            assert!(error.contains("direct:INTERFACE:PORT") && error.contains(text), "{error}");
        }
        for text in ["direct:lo/x:7", "direct:nosuch0/02:00:00:00:00:01:7"] {
            let listening = says(listen_direct(text, &QosOptions::default()).unwrap_err());
            assert_eq!(listening, says(direct_address(text).unwrap_err()));
        }
    }
}
