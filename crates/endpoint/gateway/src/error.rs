//! Errors of starting a gateway.

use std::io;
use std::net::SocketAddr;

/// Reason why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The gateway cannot listen.
    #[error("cannot listen at {transport} {address}: {source}")]
    Listen {
        /// Transport of the programs.
        transport: &'static str,
        /// Address of the route.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses a thread or a descriptor.
    #[error("the gateway cannot start: {0}")]
    System(#[from] io::Error),
}
