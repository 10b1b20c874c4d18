//! Timeouts of calls that receive.

use crate::signals;
use crate::time::duration;
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_units::{Duration, Instant};
use rustix::fd::AsFd;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest time that a receiving call waits for the application's data. The kernel's own timeout starts again with each system
/// call, so with each control message.
#[derive(Debug, Default)]
pub struct Patience(AtomicU64);

/// Time at which a call ends its wait; `None` for never.
pub struct Until(Option<Instant>);

impl Patience {
    pub fn set(&self, time: Option<std::time::Duration>) {
        self.0.store(time.map_or(0, |time| duration(time).as_nanos()), Ordering::Relaxed);
    }

    /// Returns the deadline of a call that begins now.
    pub fn until(&self) -> Until {
        let time = self.0.load(Ordering::Relaxed);
        Until(signals::keep_until((time > 0).then(|| now().saturating_add(Duration::from_nanos(time)))))
    }
}

impl Until {
    /// Returns the time; `None` for never.
    pub const fn time(&self) -> Option<Instant> {
        self.0
    }

    /// Waits for data until the deadline. Without a deadline, it returns at once: the kernel waits in the call that receives.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing has arrived.
    pub fn wait(&self, socket: impl AsFd) -> io::Result<()> {
        if self.0.is_none() { Ok(()) } else { self.wait_until_ready(socket, PollFlags::IN) }
    }

    /// Waits until the socket is ready or the deadline has come, outside of the call that receives or sends.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] at the deadline; [`io::ErrorKind::Interrupted`] when the call returns for signals.
    pub fn wait_until_ready(&self, socket: impl AsFd, events: PollFlags) -> io::Result<()> {
        let mut ready = [PollFd::new(&socket, events)];
        loop {
            let left = self.0.map_or(Duration::MAX, |until| until.saturating_since(now()));
            // One wait is shorter than the whole time may be.
            if signals::wait(&mut ready, left)? {
                return Ok(());
            }
            if left.is_zero() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Waits again after an interruption, if there is time left.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when the call returns for signals; [`io::ErrorKind::WouldBlock`] when the time is over.
    pub fn wait_again(&self, socket: impl AsFd, error: io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        signals::on_signal()?;
        self.wait(socket)
    }
}
