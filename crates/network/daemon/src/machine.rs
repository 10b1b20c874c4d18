//! Checks of this machine before a start.

use cutline_service::SocketFile;
use cutline_sys::SysError;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;

/// Checks that an address is one of this machine. Its port may be in use, by an agent that runs.
pub fn check_address(address: SocketAddr) -> Result<(), SysError> {
    // The system chooses the port. An IPv6 scope is kept.
    let mut free = address;
    free.set_port(0);
    let failed = |error| SysError::new(format!("listen = {address}: cannot listen there"), error);
    UdpSocket::bind(free).map(drop).map_err(failed)
}

/// Checks that a socket could be bound to a path whose folder is made at the start.
pub fn check_socket(path: &Path) -> Result<(), SysError> {
    let has_folder = path.parent().is_some_and(Path::exists);
    if has_folder { SocketFile::check(path) } else { Ok(()) }
}
