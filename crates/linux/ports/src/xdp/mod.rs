//! Parts of a port on `AF_XDP`.
//!
//! ```text
//! program   directs an interface's frames to the sockets
//! queue     a socket for one receive queue of the interface
//! sender    how one of them sends
//! ```

pub(crate) mod program;
pub(crate) mod queue;
mod sender;

use cutline_sys::clock;
use cutline_units::Duration;
use rustix::io::Errno;
use rustix::thread::nanosleep;
use std::io;

/// Time for which an interface may have the program of a process that has ended. The kernel detaches it while the process ends; another
/// process may have a copy of the descriptor for a moment.
pub(crate) const PROGRAM_PATIENCE: Duration = Duration::from_secs(1);
/// Time for which a receive queue may have the socket of a process that has ended. The kernel frees the queue later, in a work queue that
/// waits for all processors (RCU) and for the lock of all network configuration, so on a busy machine it takes seconds. A
/// socket that is in use is not waited for: its interface has a program, which is found before.
pub(crate) const QUEUE_PATIENCE: Duration = Duration::from_secs(30);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Repeats an attempt, for at most `patience`, as long as the kernel reports a busy resource.
pub(crate) fn while_busy<T>(patience: Duration, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = clock::now() + patience;
    loop {
        match attempt() {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) && clock::now() < end => {
                // Interrupted or not, it is tried again.
                let _slept = nanosleep(&clock::timespec(PAUSE));
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_queue_is_tried_again() {
        let mut left = 3;
        let mut attempt = |error: Errno| {
            left -= 1;
            if left == 0 { Ok(left) } else { Err(error.into()) }
        };
        assert_eq!(while_busy(QUEUE_PATIENCE, || attempt(Errno::BUSY)).unwrap(), 0);
        left = 3;
        let mut attempt = |error: Errno| -> io::Result<()> {
            left -= 1;
            Err(error.into())
        };
        assert_eq!(
            while_busy(QUEUE_PATIENCE, || attempt(Errno::PERM)).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(left, 2);
    }
}
