//! Priority of threads, and waiting for them.

use cutline_sys::thread::set_realtime;
use std::thread::{JoinHandle, ScopedJoinHandle};

/// Waits for a thread. A panic of it is a bug, and continues here with its message.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// As [`joined`], of a thread that is not scoped.
pub fn joined_anywhere<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a function on a thread that runs before those of programs and of other runs.
pub fn punctual<T>(work: impl FnOnce() -> T) -> T {
    set_realtime();
    work()
}
