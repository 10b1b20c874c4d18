//! Groups of the process at the other end of a local socket (unix(7), `SO_PEERGROUPS`).
#![expect(unsafe_code, reason = "getsockopt with a list of groups, which no safe crate wraps")]

use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// The most groups of a process (Linux `NGROUPS_MAX`).
const MOST_GROUPS: usize = 65_536;

/// Returns the supplementary groups of the process at the other end of a local stream socket, at the time of the connection. The
/// primary group is in `SO_PEERCRED`.
///
/// # Errors
/// When the socket is not a connected local stream socket.
pub fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut length = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes to the list.
        let outcome = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let needed = length as usize / size_of::<libc::gid_t>();
        if outcome == 0 {
            groups.truncate(needed);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ERANGE) || needed <= groups.len() || needed > MOST_GROUPS {
            return Err(error);
        }
        groups.resize(needed, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    #[cfg_attr(miri, ignore = "needs local sockets, which Miri has not")]
    fn the_groups_are_those_of_the_process() {
        let (end, _other) = UnixStream::pair().unwrap();
        let mut found = peer_groups(&end).unwrap();
        let mut expected: Vec<u32> =
            rustix::process::getgroups().unwrap().into_iter().map(rustix::process::Gid::as_raw).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(peer_groups(&udp).is_err());
    }
}
