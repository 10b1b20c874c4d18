//! The signal state that this process was started with.
//!
//! A program keeps ignored signals and the signal mask of the program that starts it (execve(2)), and `nohup` and many a shell script rely
//! on it. Rust's runtime ignores `SIGPIPE` before `main`, and `Command` restores its default action in every child, so the
//! disposition from before is noted here, before the runtime starts.
#![expect(unsafe_code, reason = "sigaction and sigprocmask, which no safe crate of the workspace wraps")]

use std::io;
use std::mem::zeroed;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if `SIGPIPE` was ignored when this process was started.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Called by the dynamic linker before the runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    IGNORES_PIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
}

/// Returns whether this process ignores a signal.
pub(super) fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bits are a valid sigaction: the default action.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: there is room for the action; nothing is set where the second pointer is null.
    let code = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    code == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// A signal mask.
pub(super) type Mask = libc::sigset_t;

/// Returns the calling thread's signal mask.
pub(super) fn mask() -> Mask {
    change_mask(libc::SIG_BLOCK, None)
}

/// Changes the calling thread's signal mask by `how` (`SIG_BLOCK` or `SIG_SETMASK`). Returns the mask from before.
pub(super) fn change_mask(how: libc::c_int, signals: Option<&Mask>) -> Mask {
    // SAFETY: all-zero bits are a valid signal set.
    let mut before: Mask = unsafe { zeroed() };
    let signals = signals.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: a null pointer changes nothing; there is room for the mask from before.
    let error = unsafe { libc::pthread_sigmask(how, signals, &raw mut before) };
    assert!(error == 0, "pthread_sigmask fails only where `how` is unknown");
    before
}

/// Starts a command with the ignored signals of this process's own start and with this mask. `caught` are set to their default action first,
/// so that no handler of ours runs in the child.
pub(super) fn pass_on(command: &mut Command, mask: Mask, caught: Vec<libc::c_int>) {
    let ignores_pipe = IGNORES_PIPE.load(Ordering::Relaxed);
    let set = move || {
        // SAFETY: `signal` may be called between fork and exec; default and ignored are valid dispositions.
        let set = |signal, to| unsafe { libc::signal(signal, to) };
        for &signal in &caught {
            set(signal, libc::SIG_DFL);
        }
        if ignores_pipe {
            set(libc::SIGPIPE, libc::SIG_IGN);
        }
        // SAFETY: the mask is valid, and nothing is written where the last pointer is null.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, null_mut()) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: the closure calls only `signal` and `pthread_sigmask`, which are async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(set) };
}
