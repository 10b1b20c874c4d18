//! Priority of threads, and waiting for them.

use cutline_sys::thread::set_realtime;
use std::thread::JoinHandle;

/// Returns the result of a thread that is not scoped. A panic of it continues here with its message.
pub fn joined_anywhere<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a function on a thread that runs before those of programs and of other runs.
pub fn punctual<T>(work: impl FnOnce() -> T) -> T {
    set_realtime();
    work()
}
