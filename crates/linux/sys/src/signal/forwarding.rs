//! Signals to this process are passed on to a child.
#![expect(unsafe_code, reason = "sigaction, and a signal handler")]

use super::inherited::{self, Mask, change_mask, is_ignored};
use super::witness::{self, Witness};
use super::{ARRIVED, set_flag};
use crate::sockopt::check;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::mem::zeroed;
use std::os::fd::RawFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The child that signals are passed on to; zero before it is started.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The witness's socket; negative if there is none.
static WITNESS: AtomicI32 = AtomicI32::new(-1);
/// Held by the thread that asks the witness.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// The signals that [`Forwarding`] passes on.
const FORWARDED: [Signal; 6] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Signals to this process are passed on to a child.
///
/// A signal that a terminal or a process has sent to the whole process group is not passed on to a child in that group, since the child has it
/// already. Signals that this process ignores stay ignored, as `nohup` requires, and the child ignores them, too. There
/// is one child per process.
#[derive(Debug)]
pub struct Forwarding {
    _witness: Witness,
    caught: Vec<libc::c_int>,
}

impl Forwarding {
    /// Catches the signals. They wait until the child is known.
    ///
    /// # Errors
    /// When the kernel does not let them be caught.
    pub fn prepare() -> io::Result<Self> {
        let witness = Witness::start()?;
        WITNESS.store(witness.socket(), Ordering::SeqCst);
        let mut caught = Vec::new();
        for signal in FORWARDED.map(Signal::as_raw).into_iter().filter(|&signal| !is_ignored(signal)) {
            // SAFETY: all-zero bits are a valid sigaction: no flags, no signal masked.
            let mut action: libc::sigaction = unsafe { zeroed() };
            action.sa_sigaction = forward as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            action.sa_mask = forwarded();
            // SAFETY: `action` is complete and lives through the call; the handler makes only calls that a signal handler may make.
            let code = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
            check(code.into())?;
            caught.push(signal);
        }
        Ok(Self { _witness: witness, caught })
    }

    /// Starts the child, which `spawn` does, and passes signals on to it from now on, with those that have come before. The child keeps the
    /// ignored signals and the signal mask that this process was started with.
    ///
    /// # Errors
    /// Those of `spawn`.
    pub fn start<E>(
        &self,
        command: &mut Command,
        spawn: impl FnOnce(&mut Command) -> Result<Child, E>,
    ) -> Result<Child, E> {
        let mask = inherited::mask();
        inherited::pass_on(command, mask, self.caught.clone());
        // A signal to the group reaches the child as soon as it exists. One that comes while it is made waits until the child is
        // known, so that it is passed on only if the child has not got it.
        change_mask(libc::SIG_BLOCK, Some(&forwarded()));
        let _unblocks = Unblocks(mask);
        let before = FORWARDED.map(|signal| has_arrived(signal).then_some(signal));
        let child = spawn(command)?;
        if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            CHILD.store(process.as_raw_nonzero().get(), Ordering::SeqCst);
            for signal in before.into_iter().flatten() {
                // The child may have ended.
                let _is_gone = kill_process(process, signal);
            }
        }
        Ok(child)
    }

    /// Stops passing signals on: the child has ended, and its number may be used again.
    pub fn stop(&self) {
        CHILD.store(0, Ordering::SeqCst);
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.stop();
        WITNESS.store(-1, Ordering::SeqCst);
    }
}

/// Restores a thread's signal mask when it is dropped.
struct Unblocks(Mask);

impl Drop for Unblocks {
    fn drop(&mut self) {
        let _before = change_mask(libc::SIG_SETMASK, Some(&self.0));
    }
}

/// The forwarded signals as a set.
fn forwarded() -> Mask {
    // SAFETY: all-zero bits are a valid signal set.
    let mut set: Mask = unsafe { zeroed() };
    for signal in FORWARDED {
        // SAFETY: the set is valid, and so is the number.
        unsafe { libc::sigaddset(&raw mut set, signal.as_raw()) };
    }
    set
}

/// Returns whether a signal has arrived since it was last asked.
fn has_arrived(signal: Signal) -> bool {
    ARRIVED.get(signal.as_raw() as usize).is_some_and(|flag| flag.swap(false, Ordering::SeqCst))
}

extern "C" fn forward(number: libc::c_int) {
    // SAFETY: libc has an `errno` for each thread.
    let errno = unsafe { *libc::__errno_location() };
    // Also asked where the answer does not matter: a signal that stays pending at the witness would be taken for the next one.
    let is_for_the_group = is_for_the_group(number);
    let child = CHILD.load(Ordering::SeqCst);
    if child == 0 {
        set_flag(number);
    } else if !(is_for_the_group && is_member(child)) {
        // SAFETY: kill may be called in a signal handler.
        unsafe { libc::kill(child, number) };
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Returns whether a process is in the group of this one. A program may have left it (`setsid`, `timeout`).
fn is_member(process: libc::pid_t) -> bool {
    // SAFETY: both may be called in a signal handler, and have no requirements.
    unsafe { libc::getpgid(process) == libc::getpgrp() }
}

/// Asks the witness whether it has the signal, too.
fn is_for_the_group(signal: libc::c_int) -> bool {
    let socket: RawFd = WITNESS.load(Ordering::SeqCst);
    if socket < 0 {
        return false;
    }
    // Another thread's handler may be asking. In this thread no other handler of ours runs: their signals are blocked.
    while IS_ASKING.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // SAFETY: sched_yield has no requirements.
        unsafe { libc::sched_yield() };
    }
    let has_seen = witness::has_seen(socket, signal);
    IS_ASKING.store(false, Ordering::Release);
    has_seen
}
