//! TUN interfaces (the kernel's Documentation/networking/tuntap.rst).

use crate::ethtool::driver_and_bus;
use crate::interface::has_ethernet_header;
use crate::ioctl::attach_tun;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use std::io;

/// Opens the far end of a TUN interface, and makes the interface if there is none of that name; then it is removed with
/// the file. Reading and writing does not block. Packets are whole: without a header in front, not aggregated, and with
/// their checksums filled in.
///
/// # Errors
/// `EINVAL` when the interface is of another kind; `EBUSY` when another process has it; and when the process may not.
pub fn attach(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open("/dev/net/tun", flags, Mode::empty())?;
    attach_tun(&file, name)?;
    Ok(file)
}

/// Returns whether an interface is a TUN interface, without opening it: another process may have it.
pub fn is_tun(name: &str) -> bool {
    match driver_and_bus(name) {
        // The driver of TAP interfaces is the same.
        Some(place) => place == ["tun", "tun"],
        // The driver has no such report; that of TUN interfaces has one wherever it can be requested.
        None => !has_ethernet_header(name).unwrap_or(true),
    }
}
