//! Interfaces by name, in the network namespace of the calling thread.

use crate::LinuxError;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The names of all interfaces, in order.
pub fn names() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    // Two lines of heading; then a name and a colon each.
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    let mut names: Vec<String> = table.lines().skip(2).filter_map(name).collect();
    names.sort();
    names
}

/// A socket of no protocol, to ask about interfaces with.
pub(crate) fn any_socket() -> Result<OwnedFd, LinuxError> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| LinuxError::of("a socket to ask about interfaces cannot be opened", errno))
}

/// An interface's number.
///
/// # Errors
/// When there is no such interface.
pub fn index(name: &str) -> Result<u32, LinuxError> {
    name_to_index(any_socket()?, name).map_err(|errno| match errno {
        Errno::NODEV | Errno::INVAL => LinuxError::NoInterface { name: name.to_owned(), known: names() },
        errno => LinuxError::of(format!("interface `{name}` cannot be looked up"), errno),
    })
}

/// The most bytes that an interface carries behind its own header.
///
/// # Errors
/// When there is no such interface.
pub fn mtu(name: &str) -> Result<u32, LinuxError> {
    index(name)?;
    crate::socket::mtu(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_a_stranger_is_not() {
        assert!(names().contains(&"lo".to_owned()));
        assert!(index("lo").unwrap() > 0);
        let error = index("nosuch0").unwrap_err().to_string();
        assert!(error.contains("`nosuch0`; there are: ") && error.contains("lo"), "{error}");
    }
}
