//! Scheduling of the calling thread, and its run time.
#![expect(unsafe_code, reason = "sched_setscheduler, which no safe crate wraps")]

use cutline_units::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;

/// Scheduling of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// In real time, before all normal threads (sched(7), `SCHED_FIFO`).
    Realtime,
    /// Like all other threads: the process may not do more.
    Normal,
}

/// Requests real-time scheduling of the calling thread, and for exact timers. On a busy machine this shortens waits for
/// the processor from milliseconds to microseconds. It lasts until the thread ends.
///
/// Threads and processes that it starts inherit the scheduling. The kernel has files whose writers try again until a
/// normal thread has run (some of `/proc/sys/net`), so a real-time thread should do only what needs it.
pub fn set_realtime() -> Scheduling {
    set_exact_timers();
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one sched_param, which lives until the call is over; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    if code == 0 { Scheduling::Realtime } else { Scheduling::Normal }
}

/// Lets timers of the calling thread expire exactly. By default the kernel may delay them by 50 us to save wake-ups.
pub fn set_exact_timers() {
    // If the kernel refuses, timers are only less exact.
    let _refused = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Returns how long the calling thread has run.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
