//! Protection of receiving threads against other work of the processor (QUANTA section 4.2).
//!
//! A receiver that waits for the processor is late, and loses data that its buffer cannot hold meanwhile. A protected thread runs before normal
//! threads, and so does the thread that serves connections while one is protected.

use crate::service_thread;
use cutline_sys::process::{PerProcess, generation};
use cutline_sys::thread::{RaisedPriority, RaisedThread};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of protected threads.
static PROTECTED: PerProcess<AtomicUsize> = PerProcess::new();

thread_local! {
    /// Process in which this thread is protected; `None` if it is not protected. A copy of the process by fork is not.
    static PROTECTED_IN: Cell<Option<u32>> = const { Cell::new(None) };
}

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
    // The thread may be protected again once its priority is that of before.
    _raised: RaisedThread,
    _counted: Counted,
}

/// One of the protected threads of the process with this number.
#[derive(Debug)]
struct Counted(u32);

impl ProtectedThread {
    /// Protects the calling thread: with real-time scheduling (`SCHED_RR`), or with a larger share of the processor (`nice` of -10) where the
    /// process may not have that.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if the process has neither `CAP_SYS_NICE` nor a limit that allows one of them (`RLIMIT_RTPRIO`,
    /// `RLIMIT_NICE`), [`io::ErrorKind::ResourceBusy`] if the thread is protected already. Nothing has changed then.
    pub fn new() -> io::Result<Self> {
        Self::with(RaisedPriority::RealTime).or_else(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => Err(error),
            _ => Self::with(RaisedPriority::Nice),
        })
    }

    /// Protects the calling thread with this priority.
    ///
    /// # Errors
    /// As [`ProtectedThread::new`].
    pub fn with(priority: RaisedPriority) -> io::Result<Self> {
        // Two of them would restore the priority of each other if they ended in the order in which they began.
        if PROTECTED_IN.get() == Some(generation()) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "this thread is protected already"));
        }
        let raised = RaisedThread::raise(priority)?;
        PROTECTED_IN.set(Some(generation()));
        PROTECTED.get().fetch_add(1, Ordering::Relaxed);
        service_thread::wake();
        Ok(Self { priority, _raised: raised, _counted: Counted(generation()) })
    }

    /// The priority of the thread.
    pub const fn priority(&self) -> RaisedPriority {
        self.priority
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0 == generation() {
            // While a thread ends its variables may be gone already.
            let _gone = PROTECTED_IN.try_with(|protected| protected.set(None));
        }
        // A copy of the process by fork has none of its other threads, and counts from zero.
        let less = |count: usize| Some(count.saturating_sub(1));
        let _counted = PROTECTED.get().fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        service_thread::wake();
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
    fn a_thread_is_protected_once_at_a_time_and_each_thread_for_itself() {
        let Ok(protected) = ProtectedThread::new() else { return };
        for again in [ProtectedThread::new(), ProtectedThread::with(RaisedPriority::Nice)] {
            let error = again.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            assert_eq!(error.to_string(), "this thread is protected already");
        }
        std::thread::spawn(|| drop(ProtectedThread::new().unwrap())).join().unwrap();
        drop(protected);
        drop(ProtectedThread::new().unwrap());
    }

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
