//! The page of one router.

use std::net::SocketAddr;

/// Address of the page, unless another one is chosen.
pub const DEFAULT: &str = "127.0.0.1:9467";

/// Reads an address of the loopback.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let expected = || {
        format!(
            "expected an address of this host's loopback with a port, such as {DEFAULT}; `cutline monitor` shows routers to other hosts"
        )
    };
    let address: SocketAddr = text.parse().map_err(|_| expected())?;
    if address.ip().to_canonical().is_loopback() { Ok(address) } else { Err(expected()) }
}
