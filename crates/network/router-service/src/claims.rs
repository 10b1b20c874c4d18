//! Claims of routers on interfaces: an interface has one router at a time.
//!
//! A claim is a local socket with an abstract name (unix(7)) that contains the interface's number. Such names belong to the network
//! namespace, as interfaces do, and the kernel frees them when the process ends for any reason. A process that connects to the socket
//! learns from the kernel which process holds it.

use crate::error::ServiceError;
use cutline_sys::reactor::{self, PollFd, PollFlags};
use cutline_sys::{PeerProcess, SysError};
use cutline_units::Duration;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// An interface that no other router can have. The claim ends when this is dropped.
#[derive(Debug)]
pub struct Claim {
    _socket: OwnedFd,
}

/// The process that routes at an interface.
#[derive(Debug)]
pub struct Holder {
    /// The number of the process; `None` if it is in another PID namespace.
    process: Option<Pid>,
}

/// Time that a router may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(20);

impl Claim {
    /// Claims the interface of this name and number, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When another router has it.
    pub fn take(name: &str, index: u32) -> Result<Self, ServiceError> {
        let failed =
            |errno| SysError::new(format!("interface `{name}` cannot be claimed for this router"), errno);
        let socket = socket().map_err(failed)?;
        match bind(&socket, &address(index).map_err(failed)?) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                let process = holder(index).and_then(|holder| holder.id());
                return Err(ServiceError::Taken { name: name.to_owned(), process });
            }
            Err(errno) => return Err(failed(errno).into()),
        }
        listen(&socket, 1).map_err(failed)?;
        Ok(Self { _socket: socket })
    }
}

/// Returns the router at the interface of this number, if there is one.
pub fn holder(index: u32) -> Option<Holder> {
    let socket = socket().ok()?;
    match connect(&socket, &address(index).ok()?) {
        Ok(()) => {
            // A process of another PID namespace has no number here.
            Some(Holder { process: PeerProcess::of(&socket).ok()?.pid })
        }
        // Others are connected to it.
        Err(Errno::AGAIN) => Some(Holder { process: None }),
        Err(_) => None,
    }
}

impl Holder {
    /// Returns the number of the process; `None` if it is not known here.
    pub fn id(&self) -> Option<u32> {
        self.process.map(|process| process.as_raw_nonzero().get().unsigned_abs())
    }

    /// Ends the router by SIGTERM, and by SIGKILL if it does not end, and waits for its end.
    ///
    /// # Errors
    /// When this process may not, or the router is in another PID namespace.
    pub fn end(&self) -> Result<(), SysError> {
        let failed = |errno: Errno| SysError::new("the router cannot be ended", errno);
        let process = self.process.ok_or_else(|| failed(Errno::SRCH))?;
        let descriptor = match pidfd_open(process, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(()),
            opened => opened.map_err(failed)?,
        };
        for signal in [Signal::TERM, Signal::KILL] {
            match pidfd_send_signal(&descriptor, signal) {
                Err(Errno::SRCH) => return Ok(()),
                sent => sent.map_err(failed)?,
            }
            let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
            let until = cutline_sys::now() + PATIENCE;
            while !ended[0].revents().contains(PollFlags::IN) && cutline_sys::now() < until {
                reactor::wait(&mut ended, until.saturating_since(cutline_sys::now()))
                    .map_err(|error| SysError::new("waiting for the end of the router failed", error))?;
            }
            if ended[0].revents().contains(PollFlags::IN) {
                return Ok(());
            }
        }
        Err(SysError::new("the router does not end", std::io::Error::from(std::io::ErrorKind::TimedOut)))
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

fn address(index: u32) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(format!("cutline/router/{index}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_router_until_its_claim_ends() {
        let index = 0xffff_0000 | std::process::id();
        assert!(holder(index).is_none());
        let claim = Claim::take("eth0", index).unwrap();
        let own = std::process::id();
        for _ in 0..3 {
            let refused = Claim::take("eth0", index).unwrap_err().to_string();
            assert!(refused.contains("`eth0`") && refused.contains("another router"), "{refused}");
        }
        drop(claim);
        let claim = Claim::take("eth0", index).unwrap();
        assert_eq!(holder(index).unwrap().id(), Some(own));
        drop(claim);
        assert!(holder(index).is_none());
    }
}
