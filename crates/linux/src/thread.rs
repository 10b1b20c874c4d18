//! When the calling thread runs, and how long it has.
#![expect(unsafe_code, reason = "a system call that no safe crate wraps")]

use cutline_units::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;

/// How a thread is scheduled from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// Before all ordinary threads, and its timers to the nanosecond (sched(7), `SCHED_FIFO`).
    First,
    /// As all others: the process may not have more.
    AsOthers,
}

/// Asks that the calling thread be run before all ordinary ones, until it ends. What takes milliseconds on a busy machine
/// takes microseconds then.
///
/// Threads and processes that it starts inherit that, and the kernel has writes that try again until an ordinary thread gets
/// on (some of `/proc/sys/net`): a thread that runs first should do nothing but what it is run first for.
pub fn run_first() -> Scheduled {
    // A kernel that refuses is only less exact.
    let _exact = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one sched_param, which lives until the call is over; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    if code == 0 { Scheduled::First } else { Scheduled::AsOthers }
}

/// How long the calling thread has run.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
