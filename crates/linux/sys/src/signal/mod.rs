//! Signals as flags that a program reads when it has time, and signals that are passed on to a child.
//!
//! ```text
//! mod         flags
//! forwarding  signals to this process are passed on to a child
//! witness     whether a signal was sent to the whole process group
//! inherited   the signal state that this process was started with, for its children
//! ```
#![expect(unsafe_code, reason = "sigaction, which no safe crate of the workspace wraps")]

mod forwarding;
mod inherited;
mod witness;

pub use forwarding::Forwarding;

use rustix::process::Signal;
use std::io;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that have arrived, by number. They belong to the process, so there is one table.
static ARRIVED: [AtomicBool; 32] = [const { AtomicBool::new(false) }; 32];

/// Returns a flag that is set when `signal` arrives. From now on the signal does nothing else.
///
/// # Errors
/// When the kernel does not let this signal be caught.
pub fn flag(signal: Signal) -> io::Result<&'static AtomicBool> {
    let number = signal.as_raw();
    let flag = usize::try_from(number).ok().and_then(|number| ARRIVED.get(number));
    let flag = flag.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: all-zero bits are a valid sigaction: no flags, no signal masked.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = set_flag as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is complete and lives through the call; the handler only stores into an atomic, which a signal
    // handler may do.
    let code = unsafe { libc::sigaction(number, &raw const action, std::ptr::null_mut()) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(flag) }
}

extern "C" fn set_flag(number: libc::c_int) {
    if let Some(flag) = ARRIVED.get(number as usize) {
        flag.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};
    use std::time::Duration;

    #[test]
    #[cfg_attr(miri, ignore = "needs sigaction, which Miri has not")]
    fn a_signal_sets_its_flag() {
        let flag = flag(Signal::USR2).unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        kill_process(getpid(), Signal::USR2).unwrap();
        // It may be given to another thread of this process, which runs at its own time.
        let is_set = (0..9000).any(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            flag.load(Ordering::Relaxed)
        });
        assert!(is_set);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs sigaction, which Miri has not")]
    fn a_signal_that_cannot_be_caught_is_an_error() {
        assert!(flag(Signal::KILL).is_err());
    }
}
