//! A process that shows whether a signal was sent to the whole process group.
//!
//! The receiver of a signal learns the sender from the kernel, but not whether it was sent to one process or to a group (kill(2)). The witness
//! is a child in the same process group. It blocks all signals and does nothing else, so a signal to the group is pending at
//! the witness, too, and one to a single process is not.
#![expect(unsafe_code, reason = "fork, and calls that a signal handler may make")]

use super::inherited::{Mask, change_mask};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::ptr::null_mut;

/// Time for which the witness waits for a signal that this process has got. The kernel gives it to all members of a group in one pass.
const WAIT: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Longest time that an answer may take, ms. A witness that was stopped does not answer.
const PATIENCE_MS: libc::c_int = 1000;

/// The witness. It ends when this is dropped, and with this process.
#[derive(Debug)]
pub(super) struct Witness {
    process: libc::pid_t,
    socket: OwnedFd,
}

impl Witness {
    /// Starts the process.
    ///
    /// # Errors
    /// When the kernel refuses another process or descriptor.
    pub(super) fn start() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // The child blocks all signals from its first moment on: one that is sent to the group before it runs must not end it.
        let before = change_mask(libc::SIG_BLOCK, Some(&all()));
        // SAFETY: the child calls only async-signal-safe functions, and does not return.
        let started = match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => serve(theirs.as_raw_fd()),
            process => Ok(Self { process, socket: ours }),
        };
        change_mask(libc::SIG_SETMASK, Some(&before));
        started
    }

    /// The descriptor to give to [`has_seen`].
    pub(super) fn socket(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: the process is a child that was not waited for, so the number is its own; nothing is written where the pointer is null.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, null_mut(), 0);
        }
    }
}

/// All signals as a set.
fn all() -> Mask {
    // SAFETY: all-zero bits are a valid signal set, and there is room for it.
    unsafe {
        let mut all: Mask = zeroed();
        libc::sigfillset(&raw mut all);
        all
    }
}

/// Returns whether the witness at this socket has got a signal that this process has just got. May be called in a signal handler, by one
/// thread at a time.
pub(super) fn has_seen(socket: RawFd, signal: libc::c_int) -> bool {
    let Ok(question) = u8::try_from(signal) else { return false };
    // SAFETY: one byte is read from `question`.
    if unsafe { libc::send(socket, (&raw const question).cast(), 1, libc::MSG_NOSIGNAL) } != 1 {
        return false;
    }
    let mut ready = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    loop {
        // SAFETY: there is one descriptor.
        if unsafe { libc::poll(&raw mut ready, 1, PATIENCE_MS) } != 1 {
            return false;
        }
        let mut answer = [0_u8; 2];
        // SAFETY: there is room for two bytes.
        let length =
            unsafe { libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT) };
        // An answer to an earlier question came too late for it.
        match (length, answer) {
            (2, [of, has_seen]) if of == question => return has_seen == 1,
            (2, _) => {}
            _ => return false,
        }
    }
}

/// The witness's work: answers each question until the other end is closed. All signals are blocked.
fn serve(socket: RawFd) -> ! {
    // SAFETY: these calls are async-signal-safe, and their pointers are to complete values on the stack.
    unsafe {
        // Pipes and files of this process must not stay open as long as the witness lives.
        let socket_number = socket as libc::c_uint;
        libc::syscall(libc::SYS_close_range, socket_number.saturating_add(1), libc::c_uint::MAX, 0);
        if let Some(last) = socket_number.checked_sub(1) {
            libc::syscall(libc::SYS_close_range, 0, last, 0);
        }
        libc::prctl(libc::PR_SET_NAME, c"cutline-witness".as_ptr());
        let wait = WAIT;
        let mut question = 0_u8;
        while libc::recv(socket, (&raw mut question).cast(), 1, 0) == 1 {
            let mut one: Mask = zeroed();
            libc::sigaddset(&raw mut one, question.into());
            let has_seen = libc::sigtimedwait(&raw const one, null_mut(), &raw const wait) > 0;
            let answer = [question, has_seen.into()];
            libc::send(socket, answer.as_ptr().cast(), answer.len(), libc::MSG_NOSIGNAL);
        }
        libc::_exit(0)
    }
}
