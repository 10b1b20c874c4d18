//! Plan of a gateway: its routes and limits.

use cutline_socket::{Peer, QosOptions};
use cutline_units::Duration;
use std::fmt;
use std::net::SocketAddr;

/// Side of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewaySide {
    /// Programs connect to it; it connects to the far gateway.
    Near,
    /// The near gateway connects to it; it connects to the server.
    Far,
}

impl GatewaySide {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Transport of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramTransport {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl ProgramTransport {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Route of connections: the address at which they arrive, and their destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayRoute {
    /// Transport of the programs.
    pub transport: ProgramTransport,
    /// Address at which the gateway listens.
    pub listen: SocketAddr,
    /// Destination, `HOST:PORT`: the far gateway, or the server. The name is looked up for each connection.
    pub to: String,
}

impl fmt::Display for GatewayRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport.name(), self.listen)
    }
}

/// Limits and times of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections at a time, of all routes.
    pub connections: usize,
    /// The most of them that one address, or one /64 network of IPv6, may have. It does not hold for programs of this host, nor where the
    /// other gateway has proved a key.
    pub of_one_address: usize,
    /// Time after which an idle exchange of datagrams ends. Streams end themselves.
    pub idle: Duration,
    /// Time to wait for a server to accept a connection.
    pub connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            of_one_address: 500,
            idle: Duration::from_secs(60),
            connect: Duration::from_secs(10),
        }
    }
}

/// Plan of a gateway.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Side of the gateway.
    pub side: GatewaySide,
    /// Routes of the gateway.
    pub routes: Vec<GatewayRoute>,
    /// The options of the QoS connections to the other gateway.
    pub options: QosOptions,
    /// Limits of the gateway.
    pub limits: Limits,
}

impl Plan {
    /// The most connections of one transport: three quarters where there are routes of both.
    pub(crate) fn limit_of_transport(&self) -> usize {
        let of = |transport| self.routes.iter().any(|route| route.transport == transport);
        let has_both = of(ProgramTransport::Tcp) && of(ProgramTransport::Udp);
        if has_both { (self.limits.connections * 3).div_ceil(4) } else { self.limits.connections }
    }

    /// The most connections of one address; `None` if there is no such limit.
    pub(crate) fn limit_of_one(&self) -> Option<usize> {
        let is_proven = self.side == GatewaySide::Far && self.options.has_key();
        (!is_proven).then_some(self.limits.of_one_address)
    }

    /// The options: the peer is known to be a gateway, so nothing is sent to find out, and anything else is refused.
    pub(crate) fn qos_options(&self) -> QosOptions {
        self.options.clone().peer(Peer::Speaks)
    }
}
