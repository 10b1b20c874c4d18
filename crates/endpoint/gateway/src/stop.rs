//! Signal for the end of the gateway: a descriptor that becomes readable for all threads that wait.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use cutline_sys::clock::timespec;
use cutline_units::Duration;

/// State of the signal.
#[derive(Debug)]
pub struct Stop {
    ours: UnixStream,
    theirs: UnixStream,
    is_set: AtomicBool,
}

impl Stop {
    pub fn new() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Self { ours, theirs, is_set: AtomicBool::new(false) })
    }

    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        // It is connected, so this works; a thread that polls sees the end of the stream.
        let _connected = self.ours.shutdown(Shutdown::Both);
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Waits until one of the descriptors is ready, the gateway ends, or the time is over. Returns the events of each descriptor.
    pub fn poll<const N: usize>(
        &self,
        descriptors: [(BorrowedFd<'_>, PollFlags); N],
        timeout: Option<Duration>,
    ) -> io::Result<[PollFlags; N]> {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(N + 1);
        fds.push(PollFd::from_borrowed_fd(self.theirs.as_fd(), PollFlags::IN));
        fds.extend(descriptors.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
        match poll(&mut fds, timeout.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(std::array::from_fn(|place| fds[place + 1].revents()))
    }

    /// The same for any number of descriptors. Returns of each if it is ready, or has failed.
    pub fn poll_all<'a>(
        &'a self,
        descriptors: impl Iterator<Item = (BorrowedFd<'a>, PollFlags)>,
        timeout: Option<Duration>,
    ) -> io::Result<Vec<bool>> {
        let all = std::iter::once((self.theirs.as_fd(), PollFlags::IN)).chain(descriptors);
        let mut fds: Vec<PollFd<'_>> = all.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        match poll(&mut fds, timeout.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    /// Waits for one descriptor to become readable.
    pub fn readable(&self, fd: impl AsFd, timeout: Option<Duration>) -> io::Result<()> {
        self.poll([(fd.as_fd(), PollFlags::IN)], timeout).map(drop)
    }
}
