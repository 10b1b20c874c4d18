//! A condition that threads wait for, in waits that signals end.
//!
//! A [`std::sync::Condvar`] waits on when a signal handler has run. Calls of C end with `EINTR` then, so they need another one. This one
//! counts its notifications, and a thread waits while the count is as it was when the thread had the lock (futex(2)).
//!
//! ```
//! use cutline_sys::condition::{InterruptibleCondvar, WaitEnd};
//! use cutline_sys::lock;
//! use cutline_units::Duration;
//! use std::sync::Mutex;
//!
//! let (ready, changed) = (Mutex::new(false), InterruptibleCondvar::new());
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         *lock(&ready) = true;
//!         changed.notify_all();
//!     });
//!     let mut state = lock(&ready);
//!     while !*state {
//!         (state, _) = changed.wait(&ready, state, Duration::from_secs(60));
//!     }
//! });
//! let (_state, end) = changed.wait(&ready, lock(&ready), Duration::from_millis(1));
//! assert_eq!(end, WaitEnd::TimedOut);
//! ```

use crate::clock::timespec;
use crate::lock;
use cutline_units::Duration;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A condition variable whose waits end when a signal handler has run.
#[derive(Debug, Default)]
pub struct InterruptibleCondvar {
    /// Number of notifications.
    notified: AtomicU32,
}

/// Reason of the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A notification, or none: a wait may end without a reason.
    Notified,
    /// The time is over.
    TimedOut,
    /// A signal handler has run.
    Interrupted,
}

impl InterruptibleCondvar {
    /// A condition that no thread waits for.
    pub const fn new() -> Self {
        Self { notified: AtomicU32::new(0) }
    }

    /// Ends all waits. The state that they wait for was changed before, under its lock.
    pub fn notify_all(&self) {
        self.notified.fetch_add(1, Ordering::SeqCst);
        // Without a thread that waits, it wakes none.
        let _none = futex::wake(&self.notified, Flags::PRIVATE, i32::MAX.unsigned_abs());
    }

    /// Unlocks the mutex of the guard, waits for a notification, at most for `time`, and locks the mutex again.
    pub fn wait<'m, T>(
        &self,
        mutex: &'m Mutex<T>,
        guard: MutexGuard<'m, T>,
        time: Duration,
    ) -> (MutexGuard<'m, T>, WaitEnd) {
        // A notification after this ends the wait, since it changes the number.
        let notified = self.notified.load(Ordering::SeqCst);
        drop(guard);
        let end = match futex::wait(&self.notified, Flags::PRIVATE, notified, Some(&timespec(time))) {
            Err(Errno::TIMEDOUT) => WaitEnd::TimedOut,
            Err(Errno::INTR) => WaitEnd::Interrupted,
            Ok(()) | Err(_) => WaitEnd::Notified,
        };
        (lock(mutex), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Two threads take turns: a lost notification would stop both.
    #[test]
    #[cfg_attr(miri, ignore = "needs futex(2) with a time, and takes long")]
    fn no_notification_is_lost() {
        let (turn, changed) = (Mutex::new(0), InterruptibleCondvar::default());
        thread::scope(|scope| {
            for own in 0..2 {
                let (turn, changed) = (&turn, &changed);
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        let mut state = lock(turn);
                        while *state % 2 != own {
                            let end;
                            (state, end) = changed.wait(turn, state, Duration::from_secs(60));
                            assert_ne!(end, WaitEnd::TimedOut);
                        }
                        *state += 1;
                        drop(state);
                        changed.notify_all();
                    }
                });
            }
        });
        assert_eq!(*lock(&turn), 20_000);
    }
}
