//! Signals as flags that a program reads when it has time, and signals that are passed on to a child.
#![expect(unsafe_code, reason = "sigaction, which no safe crate of the workspace wraps")]

use crate::sockopt::check;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::mem::zeroed;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Which signals have arrived, by number. They belong to the process, so there is one table.
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

/// The child that signals are passed on to; zero before it is started.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// The signals that [`Forwarding`] passes on.
const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Signals to this process are passed on to a child.
///
/// Those of a terminal are not: the terminal sends them to the child as well. Signals that this process ignores stay ignored,
/// as `nohup` requires. There is one child per process.
#[derive(Debug)]
pub struct Forwarding(());

impl Forwarding {
    /// Catches the signals. They wait until the child is known.
    ///
    /// # Errors
    /// When the kernel does not let them be caught.
    pub fn prepare() -> io::Result<Self> {
        for signal in FORWARDED {
            // SAFETY: all-zero bits are a valid sigaction: the default action.
            let mut before: libc::sigaction = unsafe { zeroed() };
            // SAFETY: there is room for the action; nothing is set where the second pointer is null.
            let code = unsafe { libc::sigaction(signal.as_raw(), std::ptr::null(), &raw mut before) };
            check(code.into())?;
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            // SAFETY: as above.
            let mut action: libc::sigaction = unsafe { zeroed() };
            action.sa_sigaction = forward
                as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)
                as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            // SAFETY: `action` is complete and lives through the call; the handler does what a signal handler may.
            let code = unsafe { libc::sigaction(signal.as_raw(), &raw const action, std::ptr::null_mut()) };
            check(code.into())?;
        }
        Ok(Self(()))
    }

    /// Passes signals on to this child from now on, and those that have come before.
    pub fn start(&self, child: &Child) {
        let Some(child) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
        CHILD.store(child.as_raw_nonzero().get(), Ordering::SeqCst);
        for signal in FORWARDED {
            if ARRIVED.get(signal.as_raw() as usize).is_some_and(|flag| flag.swap(false, Ordering::SeqCst)) {
                // The child may have ended.
                let _is_gone = kill_process(child, signal);
            }
        }
    }

    /// Passes nothing on any more: the child has ended, and its number may be used again.
    pub fn stop(&self) {
        CHILD.store(0, Ordering::SeqCst);
    }
}

extern "C" fn forward(number: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid siginfo_t.
    let is_of_a_process = unsafe { (*info).si_code } <= 0;
    let child = CHILD.load(Ordering::SeqCst);
    if child == 0 {
        set_flag(number);
    } else if is_of_a_process {
        // SAFETY: libc has an `errno` for each thread.
        let errno = unsafe { *libc::__errno_location() };
        // SAFETY: kill may be called in a signal handler.
        unsafe { libc::kill(child, number) };
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
}

extern "C" fn set_flag(number: libc::c_int) {
    if let Some(flag) = ARRIVED.get(number as usize) {
        flag.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::time::Duration;

    #[test]
    #[cfg_attr(miri, ignore = "needs sigaction, which Miri has not")]
    fn a_signal_sets_its_flag() {
        let flag = flag(Signal::USR2).unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        kill_process(getpid(), Signal::USR2).unwrap();
        // It may be given to another thread of this process, which runs at its own time.
        let is_set = (0..500).any(|_| {
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
