//! Protection of the calling thread, for languages whose objects do not belong to a thread.
//!
//! Rust keeps a [`ProtectedThread`] in its thread. Here, a variable of the thread holds it. So the end of a thread ends its protection, and no
//! other thread can end it.

use crate::system_message;
use cutline_socket::{ProtectedThread, RaisedPriority};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Priority of a protected thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ThreadPriority {
    /// The highest priority that the process may have.
    Highest = 0,
    /// Real-time priority, before all normal threads: `SCHED_RR` with priority 1.
    RealTime = 1,
    /// A larger share among normal threads: `nice` of -10.
    Nice = 2,
}

/// Number of a protection, which differs from that of all others in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionNumber(u64);

/// Reason why a thread cannot be protected, or its protection cannot be ended.
#[derive(Debug, thiserror::Error)]
pub enum ProtectionError {
    /// The thread is protected already.
    #[error("this thread is protected already")]
    Protected,
    /// The thread has no such protection.
    #[error("this thread is not protected: a protection ends in the thread where it has begun")]
    Unprotected,
    /// The system refuses it.
    #[error(
        "this thread cannot be protected: {}; the process needs CAP_SYS_NICE, or a limit that allows it (RLIMIT_RTPRIO, RLIMIT_NICE)",
        system_message(.0)
    )]
    Refused(io::Error),
}

/// Number of the next protection.
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Protection of the thread.
    static PROTECTION: RefCell<Option<(ProtectionNumber, ProtectedThread)>> = const { RefCell::new(None) };
}

/// Protects the calling thread until [`unprotect_thread`] or its end. Returns its priority, and the number of the protection.
///
/// # Errors
/// When the thread is protected already, or the system refuses it. Nothing has changed then.
pub fn protect_thread(
    priority: ThreadPriority,
) -> Result<(ThreadPriority, ProtectionNumber), ProtectionError> {
    let protected = match priority {
        ThreadPriority::Highest => ProtectedThread::new(),
        ThreadPriority::RealTime => ProtectedThread::with(RaisedPriority::RealTime),
        ThreadPriority::Nice => ProtectedThread::with(RaisedPriority::Nice),
    };
    let protected = protected.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => ProtectionError::Protected,
        _ => ProtectionError::Refused(error),
    })?;
    let number = ProtectionNumber(NEXT.fetch_add(1, Ordering::Relaxed));
    let priority = match protected.priority() {
        RaisedPriority::RealTime => ThreadPriority::RealTime,
        RaisedPriority::Nice => ThreadPriority::Nice,
    };
    // A former one belongs to the process of which this one is a copy, and has no effect here.
    drop(PROTECTION.replace(Some((number, protected))));
    Ok((priority, number))
}

/// Ends the protection of the calling thread, or only that with a number.
///
/// # Errors
/// When the thread has no such protection. Nothing has changed then.
pub fn unprotect_thread(number: Option<ProtectionNumber>) -> Result<(), ProtectionError> {
    let ended = PROTECTION
        .with_borrow_mut(|held| held.take_if(|(held, _)| number.is_none_or(|number| number == *held)));
    ended.map(drop).ok_or(ProtectionError::Unprotected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protection_ends_by_its_number_in_its_own_thread() {
        assert!(matches!(unprotect_thread(None), Err(ProtectionError::Unprotected)));
        let (priority, first) = match protect_thread(ThreadPriority::Highest) {
            Ok(protected) => protected,
            Err(error) => {
                assert!(matches!(error, ProtectionError::Refused(_)), "{error:?}");
                assert!(error.to_string().contains("CAP_SYS_NICE"), "{error}");
                return;
            }
        };
        assert_ne!(priority, ThreadPriority::Highest);
        assert!(matches!(protect_thread(ThreadPriority::Nice), Err(ProtectionError::Protected)));
        let elsewhere = std::thread::spawn(move || {
            let unprotected = unprotect_thread(Some(first));
            let (_, own) = protect_thread(ThreadPriority::Nice).unwrap();
            (unprotected, unprotect_thread(Some(first)), unprotect_thread(Some(own)))
        });
        let (unprotected, of_another, own) = elsewhere.join().unwrap();
        assert!(unprotected.is_err() && of_another.is_err() && own.is_ok());
        unprotect_thread(Some(first)).unwrap();
        let (_, second) = protect_thread(ThreadPriority::Highest).unwrap();
        assert!(unprotect_thread(Some(first)).is_err(), "it is over");
        unprotect_thread(Some(second)).unwrap();
        assert!(unprotect_thread(None).is_err());
    }
}
