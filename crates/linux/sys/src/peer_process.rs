//! Process at the other end of a local socket, and its groups (unix(7), `SO_PEERCRED` and `SO_PEERGROUPS`).
#![expect(unsafe_code, reason = "getsockopt with a list of groups, which no safe crate wraps")]

use crate::sockopt::SO_PEERCRED;
use rustix::fd::{AsFd, AsRawFd};
use rustix::process::Pid;
use std::io;

/// Process at the other end of a local socket, at the time of the connection.
///
/// `rustix::net::sockopt::socket_peercred` does not serve here: its process number cannot be zero, which the kernel states for a
/// process without a number in the PID namespace of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerProcess {
    /// Process number; `None` if the process has none in the PID namespace of this process, as for a service in a container and a client outside
    /// of it.
    pub pid: Option<Pid>,
    /// User number.
    pub user: u32,
    /// Number of the primary group.
    pub group: u32,
}

impl PeerProcess {
    /// Returns the process at the other end of a local stream socket.
    ///
    /// # Errors
    /// When the socket is not a connected local stream socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let libc::ucred { pid, uid, gid } = SO_PEERCRED.get(socket)?;
        if uid == libc::uid_t::MAX {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(Self { pid: Pid::from_raw(pid), user: uid, group: gid })
    }
}

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
    fn the_process_is_that_of_the_other_end() {
        let (end, _other) = UnixStream::pair().unwrap();
        let user = rustix::process::getuid().as_raw();
        let group = rustix::process::getgid().as_raw();
        let expected = PeerProcess { pid: Some(rustix::process::getpid()), user, group };
        assert_eq!(PeerProcess::of(&end).unwrap(), expected);
        assert!(PeerProcess::of(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

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
