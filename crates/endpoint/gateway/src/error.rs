//! Why a gateway does not start.

use std::io;
use std::net::SocketAddr;

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// It cannot listen.
    #[error("cannot listen at {transport} {address}: {source}")]
    Listen {
        /// What programs speak.
        transport: &'static str,
        /// Where.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system refuses a thread or a descriptor.
    #[error("the gateway cannot start: {0}")]
    System(#[from] io::Error),
}
