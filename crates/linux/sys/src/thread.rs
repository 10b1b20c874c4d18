//! Starting threads, scheduling of the calling thread, its run time, and threads that wait for each other.
#![expect(unsafe_code, reason = "sched_setscheduler, which no safe crate wraps")]

use crate::process::generation;
use cutline_units::Duration;
use rustix::io::Errno;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, ScopedJoinHandle};

/// Starts a thread with a name.
///
/// # Errors
/// [`io::ErrorKind::OutOfMemory`] when there is no memory for another thread, or a limit of threads is reached (`RLIMIT_NPROC`, `pids.max`). The
/// kernel's number for the limit, `EAGAIN`, is that of a call that does not wait: a caller would wait for the descriptor.
pub fn start_named<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(without_waiting)
}

fn without_waiting(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { Errno::NOMEM.into() } else { error }
}

/// Returns the result of a thread. A panic of it continues here with its message.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sets a flag if it is dropped during a panic. A scope waits for its threads before it passes a panic on, so threads that run until a
/// flag is set need one of these in each function whose panic they would not notice.
#[derive(Debug)]
pub struct SetOnPanic<'f>(pub &'f AtomicBool);

impl Drop for SetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

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
/// normal thread has run (some of `/proc/sys/net`), so a real-time thread should do only work that needs it.
pub fn set_realtime() -> Scheduling {
    set_exact_timers();
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one sched_param, which lives until the call is over; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
    if code == 0 { Scheduling::Realtime } else { Scheduling::Normal }
}

/// Priority that a thread can be raised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaisedPriority {
    /// Before all normal threads, in turns with other threads of this priority (sched(7), `SCHED_RR`, priority 1).
    RealTime,
    /// A larger share among normal threads (`nice` of -10, which weighs 9.5 times as much as 0).
    Nice,
}

/// `nice` of a thread that is raised among normal threads.
const RAISED_NICE: i32 = -10;

/// Priority of the calling thread, raised until this is dropped. Threads and processes that the thread starts are not raised.
#[derive(Debug)]
pub struct RaisedThread {
    policy: libc::c_int,
    priority: libc::c_int,
    nice: i32,
    /// Process of the thread. In its copies by fork, the kernel has reset the priority.
    generation: u32,
    /// Marker of a value that belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl RaisedThread {
    /// Raises the calling thread.
    ///
    /// A real-time thread that never waits keeps its processor from normal threads, except for the part that the kernel reserves for them
    /// (`kernel.sched_rt_runtime_us`, 5 % by default).
    ///
    /// # Errors
    /// `EPERM`, or `EACCES` of `nice`, without `CAP_SYS_NICE` and without `RLIMIT_RTPRIO` or `RLIMIT_NICE`. Nothing has changed then.
    pub fn raise(to: RaisedPriority) -> io::Result<Self> {
        let mut before = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel writes one sched_param, which lives until the call is over; 0 is the calling thread.
        let policy = unsafe { libc::sched_getscheduler(0) };
        // SAFETY: as above.
        let known = unsafe { libc::sched_getparam(0, &raw mut before) };
        if policy < 0 || known < 0 {
            return Err(io::Error::last_os_error());
        }
        // Linux has the value of a thread; no process is the calling thread (setpriority(2)).
        let nice = getpriority_process(None)?;
        let is_realtime = [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK));
        match to {
            // Its priority is as high or higher.
            _ if is_realtime => {}
            RaisedPriority::RealTime => set_policy(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)?,
            // What may be refused is first: SCHED_RESET_ON_FORK cannot be removed without CAP_SYS_NICE (sched(7)).
            RaisedPriority::Nice => {
                setpriority_process(None, RAISED_NICE.min(nice))?;
                set_policy(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0).inspect_err(|_| {
                    let _refused = setpriority_process(None, nice);
                })?;
            }
        }
        let priority = before.sched_priority;
        Ok(Self { policy, priority, nice, generation: generation(), _thread: PhantomData })
    }
}

impl Drop for RaisedThread {
    /// Restores the scheduling of the thread.
    fn drop(&mut self) {
        if self.generation != generation() {
            return;
        }
        // Without CAP_SYS_NICE, SCHED_RESET_ON_FORK cannot be removed (sched(7)).
        let kept = self.policy | libc::SCHED_RESET_ON_FORK;
        let _refused = set_policy(self.policy, self.priority).or_else(|_| set_policy(kept, self.priority));
        let _refused = setpriority_process(None, self.nice);
    }
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads one sched_param, which lives until the call is over; 0 is the calling thread.
    let code = unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets timers of the calling thread expire exactly. By default the kernel may delay them by 50 us to save wake-ups.
pub fn set_exact_timers() {
    // If the kernel refuses, timers are only less exact.
    let _refused = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Returns the running time of the calling thread.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_thread_has_its_name_and_a_refused_one_is_no_call_that_would_wait() {
        let name = || std::thread::current().name().map(str::to_owned);
        assert_eq!(start_named("of-a-test", name).unwrap().join().unwrap().as_deref(), Some("of-a-test"));
        let kind = |errno: Errno| without_waiting(errno.into()).kind();
        assert_eq!(kind(Errno::AGAIN), io::ErrorKind::OutOfMemory);
        assert_eq!(kind(Errno::PERM), io::ErrorKind::PermissionDenied);
    }

    fn scheduling() -> (libc::c_int, i32) {
        // SAFETY: it has no pointers; 0 is the calling thread.
        (unsafe { libc::sched_getscheduler(0) }, getpriority_process(None).unwrap())
    }

    #[test]
    fn threads_that_wait_for_a_flag_end_when_another_panics() {
        let close = AtomicBool::new(false);
        let passed_on = catch_unwind(AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                let _close = SetOnPanic(&close);
                scope.spawn(|| {
                    while !close.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                });
                joined(scope.spawn(|| panic!("one of two threads")));
            });
        }));
        assert!(passed_on.is_err());
        let calm = AtomicBool::new(false);
        drop(SetOnPanic(&calm));
        assert!(!calm.into_inner());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the kernel's scheduler")]
    fn a_refusal_changes_nothing() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        // The capabilities of a thread are its own.
        let without = std::thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).unwrap();
            let before = scheduling();
            for to in [RaisedPriority::RealTime, RaisedPriority::Nice] {
                match RaisedThread::raise(to) {
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
                    // A limit of this user allows it.
                    Ok(raised) => drop(raised),
                }
                assert_eq!(scheduling().0 & !libc::SCHED_RESET_ON_FORK, before.0);
            }
            (before, scheduling())
        });
        let limits = [rustix::process::Resource::Rtprio, rustix::process::Resource::Nice].map(|limit| {
            let limit = rustix::process::getrlimit(limit);
            limit.current.is_none_or(|most| most > 0)
        });
        let (before, after) = without.join().unwrap();
        assert!(limits.contains(&true) || before == after, "{before:?} {after:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs the kernel's scheduler")]
    fn a_raised_thread_is_as_before_afterwards_and_does_not_hand_its_priority_on() {
        for to in [RaisedPriority::RealTime, RaisedPriority::Nice] {
            let before = scheduling();
            match RaisedThread::raise(to) {
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
                Ok(raised) => {
                    let (policy, nice) = scheduling();
                    let is_raised = match to {
                        RaisedPriority::RealTime => policy == libc::SCHED_RR | libc::SCHED_RESET_ON_FORK,
                        RaisedPriority::Nice => nice == RAISED_NICE.min(before.1),
                    };
                    assert!(is_raised, "{policy} {nice}");
                    let started = std::thread::spawn(scheduling).join().unwrap();
                    assert_eq!(started.0, libc::SCHED_OTHER, "a thread that it starts");
                    assert!(started.1 >= 0, "a thread that it starts: {}", started.1);
                    drop(raised);
                }
            }
            assert_eq!(scheduling(), before);
        }
    }
}
