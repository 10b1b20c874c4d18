//! `AF_XDP` (the kernel's `Documentation/networking/af_xdp.rst`): frames in memory that is shared with the kernel, or with
//! the card itself.
//!
//! ```text
//!            fill ring: empty chunks          receive ring: chunks with frames
//! process ───────────────────────────> kernel ───────────────────────────────> process
//!            send ring: chunks with frames    completion ring: empty chunks
//! process ───────────────────────────> kernel ───────────────────────────────> process
//! ```
//!
//! ```text
//! program   leads an interface's frames to the sockets
//! umem      the memory, in chunks
//! rings     the four rings
//! queue     a socket for one receive queue of an interface
//! sender    what one of them sends by
//! ```

pub(crate) mod program;
pub(crate) mod queue;
pub(crate) mod rings;
pub(crate) mod sender;
pub(crate) mod umem;

use crate::clock;
use cutline_units::Duration;
use rustix::thread::nanosleep;
use std::io;

/// How long a former owner's queues and programs may stay taken after it has ended.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Tries again for a while as long as the kernel says that it is busy.
pub(crate) fn while_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = clock::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && clock::now() < end => {
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
    fn what_is_busy_is_tried_again_and_nothing_else_is() {
        let mut left = 3;
        let mut attempt = |code: i32| {
            left -= 1;
            if left == 0 { Ok(left) } else { Err(io::Error::from_raw_os_error(code)) }
        };
        assert_eq!(while_busy(|| attempt(libc::EBUSY)).unwrap(), 0);
        left = 3;
        let mut attempt = |code: i32| -> io::Result<()> {
            left -= 1;
            Err(io::Error::from_raw_os_error(code))
        };
        assert_eq!(while_busy(|| attempt(libc::EPERM)).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(left, 2);
    }
}
