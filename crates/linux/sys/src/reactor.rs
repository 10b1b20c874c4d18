//! Waiting for file descriptors and a deadline at the same time.
//!
//! A [`Reactor`] is for many descriptors that come and go: `epoll` keeps them, and the wait is `ppoll` on the epoll
//! descriptor, because its timeout is in nanoseconds where that of `epoll_wait` is in milliseconds. [`wait`] alone is for
//! one or two descriptors: it saves the second system call.
//!
//! No wait is longer than [`LONGEST_WAIT`], so a loop that looks at a flag after each wait stops in time. Nothing wakes it
//! when the flag is set by another thread. A signal ends a wait early.

use crate::clock::{now, timespec};
use crate::thread;
use cutline_units::{Duration, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;

pub use rustix::event::epoll::EventFlags;
pub use rustix::event::{PollFd, PollFlags};

/// The longest wait, and so the longest time until a flag is looked at.
pub const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Number of ready descriptors that one wait returns.
const EVENTS: usize = 256;

/// Waits until one of the descriptors is ready, at most for `timeout` and [`LONGEST_WAIT`]. Returns whether a
/// descriptor is ready; an interrupted wait returns false.
///
/// # Errors
/// When the kernel cannot wait for them.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    match wait_once(fds, timeout.min(LONGEST_WAIT)) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        outcome => outcome,
    }
}

/// Waits until the other end of a connection has gone, at most for `timeout`, without the limit of [`LONGEST_WAIT`]. Returns whether it has.
/// Data from the other end does not end the wait.
///
/// # Errors
/// When the kernel cannot wait for it.
pub fn wait_for_hangup(fd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let until = now().saturating_add(timeout);
    loop {
        let left = until.saturating_since(now());
        match poll(&mut [PollFd::new(&fd, PollFlags::empty())], Some(&timespec(left))) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) if !left.is_zero() => {}
            Err(Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits until one of the descriptors is ready, at most for `timeout`. Returns whether one is.
///
/// # Errors
/// When the kernel cannot wait for them; [`io::ErrorKind::Interrupted`] when a signal handler has run.
pub fn wait_once(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    Ok(poll(fds, Some(&timespec(timeout)))? > 0)
}

/// File descriptors that are waited for, each with a number.
pub struct Reactor {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
}

impl Reactor {
    /// A reactor without descriptors, for the calling thread, whose timers are exact from now on
    /// ([`thread::set_exact_timers`]).
    ///
    /// # Errors
    /// When the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        thread::set_exact_timers();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, ready: Vec::with_capacity(EVENTS) })
    }

    /// Adds a descriptor under a number, until it is closed.
    ///
    /// # Errors
    /// When it has been added already, or is of a kind that cannot be waited for.
    pub fn add(&self, fd: impl AsFd, number: u32, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(u64::from(number)), flags)?)
    }

    /// Changes the events for which a descriptor is waited on. With no flags it is ready only when its other end has gone.
    ///
    /// # Errors
    /// When it has not been added.
    pub fn change(&self, fd: impl AsFd, number: u32, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(u64::from(number)), flags)?)
    }

    /// Waits until a descriptor is ready or `deadline` has come, at most for [`LONGEST_WAIT`]. The numbers of descriptors
    /// that are ready, with their events. With a deadline in the past it only looks.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait(&mut self, deadline: Instant) -> io::Result<impl Iterator<Item = (u32, EventFlags)> + '_> {
        self.ready.clear();
        let mut fds = [PollFd::new(&self.epoll, PollFlags::IN)];
        if wait(&mut fds, deadline.saturating_since(now()))? {
            self.take()?;
        }
        Ok(self.ready.iter().map(|event| (event.data.u64() as u32, event.flags)))
    }

    fn take(&mut self) -> io::Result<()> {
        let no_wait = Timespec::default();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&no_wait)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn pair() -> [UdpSocket; 2] {
        let [a, b] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        [a, b]
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs epoll and datagram sockets, which Miri has not")]
    fn a_socket_that_is_ready_ends_the_wait() {
        let [a, b] = pair();
        let mut reactor = Reactor::new().unwrap();
        reactor.add(&b, 7, EventFlags::IN).unwrap();
        assert_eq!(reactor.wait(Instant::ZERO).unwrap().count(), 0);
        a.send(b"x").unwrap();
        let ready: Vec<u32> = reactor.wait(Instant::FAR_FUTURE).unwrap().map(|(number, _)| number).collect();
        assert_eq!(ready, [7]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs epoll and datagram sockets, which Miri has not")]
    fn a_descriptor_is_waited_for_as_it_was_changed() {
        let [a, b] = pair();
        let mut reactor = Reactor::new().unwrap();
        reactor.add(&b, 7, EventFlags::IN).unwrap();
        a.send(b"x").unwrap();
        reactor.change(&b, 7, EventFlags::empty()).unwrap();
        assert_eq!(reactor.wait(Instant::ZERO).unwrap().count(), 0);
        reactor.change(&b, 8, EventFlags::OUT).unwrap();
        let ready: Vec<_> = reactor.wait(Instant::ZERO).unwrap().collect();
        assert_eq!(ready, [(8, EventFlags::OUT)]);
        assert!(reactor.change(&a, 7, EventFlags::IN).is_err(), "it was not added");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs epoll and datagram sockets, which Miri has not")]
    fn one_descriptor_needs_no_reactor() {
        let [a, b] = pair();
        let mut fds = [PollFd::new(&b, PollFlags::IN)];
        assert!(!wait(&mut fds, Duration::ZERO).unwrap());
        a.send(b"x").unwrap();
        assert!(wait(&mut fds, Duration::from_secs(3600)).unwrap());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs epoll and datagram sockets, which Miri has not")]
    fn a_wait_lasts_until_its_deadline_or_the_longest_wait() {
        let mut reactor = Reactor::new().unwrap();
        let start = now();
        let deadline = start + Duration::from_micros(1_500);
        assert_eq!(reactor.wait(deadline).unwrap().count(), 0);
        assert!(now() >= deadline);
        let start = now();
        assert_eq!(reactor.wait(Instant::FAR_FUTURE).unwrap().count(), 0);
        assert!(now().saturating_since(start) >= LONGEST_WAIT);
    }
}
