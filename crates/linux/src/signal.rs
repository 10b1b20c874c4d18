//! SIGHUP as a wish that somebody looks at when there is time.
#![expect(unsafe_code, reason = "a signal's handler has no safe face in the crates that are here")]

use crate::LinuxError;
use std::io;
use std::mem::zeroed;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGHUP has come since the last [`Hangup::take`].
static HUNG_UP: AtomicBool = AtomicBool::new(false);

/// SIGHUP, caught. It is the process's, so there is one.
#[derive(Debug)]
pub struct Hangup(());

impl Hangup {
    /// From now on SIGHUP ends the process no more.
    ///
    /// # Errors
    /// When the kernel refuses, which it does not.
    pub fn catch() -> Result<Self, LinuxError> {
        // SAFETY: all-zero bits are a valid sigaction: no flags, no signal masked.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: `action` is whole and lives through the call; the handler only stores into an atomic, which is
        // allowed in a signal's handler.
        let code = unsafe { libc::sigaction(libc::SIGHUP, &raw const action, std::ptr::null_mut()) };
        if code < 0 {
            return Err(LinuxError::of("SIGHUP cannot be caught", io::Error::last_os_error()));
        }
        Ok(Self(()))
    }

    /// Whether it has come since the last time. However often it came in between, this is true once.
    pub fn take(&self) -> bool {
        HUNG_UP.load(Ordering::Relaxed) && HUNG_UP.swap(false, Ordering::Relaxed)
    }
}

extern "C" fn note(_: libc::c_int) {
    HUNG_UP.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[test]
    fn a_signal_is_told_once() {
        let hangup = Hangup::catch().unwrap();
        assert!(!hangup.take());
        kill_process(getpid(), Signal::HUP).unwrap();
        // It may be given to another thread of this process, which runs at its own time.
        let told = (0..500).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
            hangup.take()
        });
        assert!(told && !hangup.take());
    }
}
