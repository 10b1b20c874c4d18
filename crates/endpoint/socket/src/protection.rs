//! Protection of receiving threads against other work of the processor (QUANTA section 4.2).
//!
//! A receiver that waits for the processor is late, and loses data that its buffer cannot hold meanwhile. A protected thread runs before normal
//! threads, and so does the thread that serves connections while one is protected.

use crate::keeper;
use cutline_sys::process::PerProcess;
use cutline_sys::thread::{RaisedPriority, RaisedThread};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of protected threads.
static PROTECTED: PerProcess<AtomicUsize> = PerProcess::new();

/// Protection of the thread that has made this, until it is dropped. Threads and processes that the thread starts are not protected.
///
/// For threads that receive and do a bounded amount of work for each message. A protected thread that computes without waiting delays all
/// other work of its processor. Linux leaves normal threads 5 % of the time (`kernel.sched_rt_runtime_us`).
///
/// ```
/// use cutline_socket::ProtectedThread;
///
/// match ProtectedThread::new() {
///     Ok(protected) => println!("this thread has priority: {:?}", protected.priority()),
///     Err(error) => println!("no protection: {error}"),
/// }
/// ```
#[derive(Debug)]
pub struct ProtectedThread {
    priority: RaisedPriority,
    _counted: Counted,
    _raised: RaisedThread,
}

/// One of the protected threads.
#[derive(Debug)]
struct Counted;

impl ProtectedThread {
    /// Protects the calling thread: with real-time scheduling (`SCHED_RR`), or with a larger share of the processor (`nice` of -10) where the
    /// process may not have that.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if the process has neither `CAP_SYS_NICE` nor a limit that allows one of them (`RLIMIT_RTPRIO`,
    /// `RLIMIT_NICE`). Nothing has changed then.
    pub fn new() -> io::Result<Self> {
        Self::with(RaisedPriority::RealTime).or_else(|_| Self::with(RaisedPriority::Nice))
    }

    /// Protects the calling thread with this priority.
    ///
    /// # Errors
    /// As [`ProtectedThread::new`].
    pub fn with(priority: RaisedPriority) -> io::Result<Self> {
        let raised = RaisedThread::raise(priority)?;
        PROTECTED.get().fetch_add(1, Ordering::Relaxed);
        keeper::wake();
        Ok(Self { priority, _counted: Counted, _raised: raised })
    }

    /// The priority of the thread.
    pub const fn priority(&self) -> RaisedPriority {
        self.priority
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // A copy of the process by fork has none of its other threads, and counts from zero.
        let less = |count: usize| Some(count.saturating_sub(1));
        let _counted = PROTECTED.get().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        keeper::wake();
    }
}

/// Priority of the thread that serves connections: raised while another one is protected.
#[derive(Debug, Default)]
pub struct ServicePriority {
    raised: Option<RaisedThread>,
    /// True if raising it has failed.
    is_refused: bool,
}

impl ServicePriority {
    /// Raises or restores the priority of the calling thread.
    pub fn follow(&mut self) {
        if PROTECTED.get().load(Ordering::Relaxed) == 0 {
            *self = Self::default();
        } else if self.raised.is_none() && !self.is_refused {
            let raised = RaisedThread::raise(RaisedPriority::RealTime);
            self.raised = raised.or_else(|_| RaisedThread::raise(RaisedPriority::Nice)).ok();
            self.is_refused = self.raised.is_none();
        }
    }

    /// Returns whether the thread is raised.
    #[cfg(test)]
    const fn is_raised(&self) -> bool {
        self.raised.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_thread_has_priority_while_another_thread_is_protected() {
        let is_raised = || {
            let mut service = ServicePriority::default();
            service.follow();
            service.is_raised()
        };
        match ProtectedThread::new() {
            Ok(protected) => {
                assert!(std::thread::spawn(is_raised).join().unwrap());
                drop(protected);
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
    }
}
