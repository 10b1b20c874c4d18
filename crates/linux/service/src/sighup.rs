//! SIGHUP, on which a service reloads its file.

use cutline_sys::{SysError, signal};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};

/// Watches for SIGHUP, which no longer ends the process.
#[derive(Debug)]
pub struct SighupWatcher(&'static AtomicBool);

impl SighupWatcher {
    /// Catches SIGHUP from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> Result<Self, SysError> {
        let flag = signal::flag(Signal::HUP);
        flag.map(Self).map_err(|error| SysError::new("SIGHUP cannot be caught", error))
    }

    /// Returns whether SIGHUP has arrived since the last call. Signals that arrive in between count as one.
    pub fn take(&self) -> bool {
        // A load alone is cheaper, and there is seldom a signal.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, kill_process};

    #[test]
    fn a_signal_is_taken_once() {
        let watcher = SighupWatcher::new().unwrap();
        assert!(!watcher.take());
        kill_process(getpid(), Signal::HUP).unwrap();
        // It may be given to another thread of this process, which runs at its own time.
        let is_taken = (0..9000).any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
            watcher.take()
        });
        assert!(is_taken && !watcher.take());
    }
}
