//! Tools for tests: tolerance of a stalled machine ([`undisturbed`]), tests that cannot run ([`skip`]), captures of sent
//! packets ([`capture`]), calls to a busy service ([`patiently`]), ports that were just released ([`take_again`]), a path that loses datagrams
//! ([`LossyPath`]), processes that end with their test ([`KilledChild`]), programs of net-snmp ([`net_snmp()`]), unread
//! outputs ([`outputs`]), and pages of the documentation that are written from the code ([`pages`]).
//!
//! A test over real sockets expects that a message sent each millisecond is sent each millisecond. On a machine that pauses
//! for 50 ms (a hypervisor that runs something else, a control group's quota that is used up) it is not, and nothing
//! is wrong with the code. Bounds wide enough for that would find nothing; [`undisturbed`] keeps them narrow, and lets a
//! witness decide in which attempts they are meaningful. Only claims of [`in_time!`] are excused by a machine that stood
//! still: that nothing is lost, doubled or out of order has to hold there, too, and is asserted as ever.
//!
//! `make test` runs on machines that do much else, where such claims are no evidence about the code. There each of these tests runs once,
//! and a claim on time that does not hold is printed and not judged. `make test-real-time` judges them, on a machine that is left alone.

pub mod capture;
mod folder;
mod killed_child;
mod lossy;
mod namespaces;
mod net_snmp;
pub mod outputs;
pub mod pages;
pub mod repository;
mod skipped;

pub use folder::{FolderFiles, read_folder, write_folder};
pub use killed_child::KilledChild;
pub use lossy::LossyPath;
pub use namespaces::{may_make_namespaces, slow_loopback, wait_for_carriers, wait_for_own_addresses};
pub use net_snmp::{NetSnmpDaemon, SnmpAnswer, free_address, net_snmp};
pub use skipped::{skip, skipped_tests};

use cutline_sys::lock;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fmt::Arguments;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Largest number of attempts of a test.
const ATTEMPTS: usize = 8;

/// The longest pause of the machine in an attempt that counts: a few messages of a millisecond each.
const STALL: Duration = Duration::from_millis(4);

/// Time that a witness sleeps at once.
const NAP: Duration = Duration::from_millis(1);

/// Asserts, within [`undisturbed`], a condition that holds only if the machine ran the test in time, with a message.
#[macro_export]
macro_rules! in_time {
    ($holds:expr, $($found:tt)+) => { $crate::claim($holds, format_args!($($found)+)) };
}

/// Payload of the panic of a claim on time.
struct Late;

/// Judges the claim of [`in_time!`].
#[doc(hidden)]
#[track_caller]
pub fn claim(holds: bool, found: Arguments<'_>) {
    if !holds {
        eprintln!("not in time: {found}");
        panic_any(Late);
    }
}

/// Makes a call to a service again until it answers, with a pause after each, at most for a minute: the service may be busy with a test, and a call does not let a person
/// wait for so long. `is_late` returns whether an error says that it has not answered in time.
///
/// ```
/// let mut calls = 0;
/// let call = || {
///     calls += 1;
///     if calls == 1 { Err("late") } else { Ok(calls) }
/// };
/// assert_eq!(cutline_testbed::patiently(call, |error| *error == "late"), Ok(2));
/// ```
///
/// # Errors
/// That of the last call.
pub fn patiently<T, E>(mut call: impl FnMut() -> Result<T, E>, is_late: impl Fn(&E) -> bool) -> Result<T, E> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match call() {
            Err(error) if is_late(&error) && Instant::now() < until => thread::sleep(NAP),
            outcome => return outcome,
        }
    }
}

/// Takes a port, a lock or a name that has just been released, and waits for at most a minute while it is in use: a child process that another
/// test has started has copies of this process's descriptors until it executes its program (fork(2)), and another test may have the same port for a moment.
///
/// ```
/// let address = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
/// cutline_testbed::take_again(|| std::net::UdpSocket::bind(address)).unwrap();
/// ```
///
/// # Errors
/// That of the last attempt.
pub fn take_again<T, E>(take: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    patiently(take, |_| true)
}

/// The variable of the environment that has claims on time judged.
const REAL_TIME: &str = "CUTLINE_REAL_TIME";

/// Held by a test that depends on time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test that depends on time, alone among those of this process. Without `CUTLINE_REAL_TIME`, it runs once, and a claim on time that fails is
/// printed. With it, such a failure counts if no processor stood still for 4 ms in that attempt, which the test's bounds should allow for;
/// otherwise the test is tried again, several times.
///
/// # Panics
/// As the test does: at once where it was no claim on time; with `CUTLINE_REAL_TIME`, also where a claim on time failed in an attempt that
/// counts, or in the last one, since code under test that hogs a processor looks like a pause of the machine.
pub fn undisturbed(test: impl Fn()) {
    if std::env::var_os(REAL_TIME).is_some() { undisturbed_by(STALL, test) } else { once(test) }
}

/// Runs a test that depends on time once. A claim on time that fails ends it, and is not judged.
fn once(test: impl Fn()) {
    let _alone = lock(&ALONE);
    if let Err(failure) = catch_unwind(AssertUnwindSafe(test)) {
        if !failure.is::<Late>() {
            resume_unwind(failure);
        }
        eprintln!("not judged on a machine that may be busy; `make test-real-time` judges it");
    }
}

/// As [`undisturbed`] with judgement, where a claim counts if no processor stood still for `stall`.
///
/// # Panics
/// As [`undisturbed`] with judgement.
pub fn undisturbed_by(stall: Duration, test: impl Fn()) {
    // A test that failed leaves nothing behind in `()`.
    let _alone = lock(&ALONE);
    for attempt in 1..=ATTEMPTS {
        let (outcome, stood_still) = witnessed(|| catch_unwind(AssertUnwindSafe(&test)));
        match outcome {
            Ok(()) => return,
            Err(failure) => {
                eprintln!("attempt {attempt} of {ATTEMPTS}: a processor stood still for {stood_still:?}");
                if !failure.is::<Late>() || stood_still < stall || attempt == ATTEMPTS {
                    resume_unwind(failure);
                }
            }
        }
    }
}

/// Runs `work`; returns its result, and the longest time for which a processor that this process may use ran
/// none of its threads, as far as a thread on each, which wakes up each millisecond, has seen.
fn witnessed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let done = &done;
        let witnesses: Vec<_> =
            processors().into_iter().map(|processor| scope.spawn(move || witness(processor, done))).collect();
        let answer = work();
        done.store(true, Ordering::Relaxed);
        let longest =
            witnesses.into_iter().map(|witness| witness.join().expect("a witness only sleeps")).max();
        (answer, longest.unwrap_or_default())
    })
}

/// The processors that this thread may run on; nothing where the kernel does not report it.
fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// The longest time by which the calling thread, on this processor, woke up too late.
fn witness(processor: usize, done: &AtomicBool) -> Duration {
    let mut only = CpuSet::new();
    only.set(processor);
    // Where that is refused it watches whichever processor it is on.
    let _pinned = sched_setaffinity(None, &only);
    let mut longest = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        thread::sleep(NAP);
        longest = longest.max(asleep.elapsed().saturating_sub(NAP));
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Returns the number of attempts of a test that succeeds at the attempt of this number, and whether it
    /// failed.
    fn tried(stall: Duration, succeeds_at: usize) -> (usize, bool) {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            in_time!(count.get() >= succeeds_at, "as it is meant to");
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| undisturbed_by(stall, test)));
        (count.get(), outcome.is_err())
    }

    #[test]
    fn a_failure_counts_where_the_machine_was_still_for_less_than_the_bounds_allow() {
        const NEVER: Duration = Duration::from_secs(3600);
        assert_eq!(tried(NEVER, 1), (1, false));
        assert_eq!(tried(NEVER, 2), (1, true));
    }

    #[test]
    fn a_test_that_fails_during_a_pause_of_the_machine_runs_again() {
        const ALWAYS: Duration = Duration::ZERO;
        assert_eq!(tried(ALWAYS, 1), (1, false));
        assert_eq!(tried(ALWAYS, 3), (3, false));
        assert_eq!(tried(ALWAYS, usize::MAX), (ATTEMPTS, true), "but not for ever");
    }

    #[test]
    fn a_test_without_claims_on_time_runs_once() {
        let count = Cell::new(0);
        let test = || {
            count.set(count.get() + 1);
            panic!("as it is meant to");
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| undisturbed_by(Duration::ZERO, test)));
        assert_eq!((count.get(), outcome.is_err()), (1, true));
        let outcome = catch_unwind(AssertUnwindSafe(|| once(test)));
        assert_eq!((count.get(), outcome.is_err()), (2, true));
    }

    #[test]
    fn a_claim_on_time_is_not_judged_unasked() {
        let reached = Cell::new(0);
        once(|| {
            reached.set(1);
            in_time!(false, "as it is meant to");
            reached.set(2);
        });
        assert_eq!(reached.get(), 1);
        once(|| {
            in_time!(true, "it holds");
            reached.set(3);
        });
        assert_eq!(reached.get(), 3);
    }

    #[test]
    fn a_witness_watches_for_as_long_as_the_work_takes() {
        let (answer, stood_still) = witnessed(|| {
            thread::sleep(20 * NAP);
            7
        });
        assert_eq!(answer, 7);
        assert!(stood_still > Duration::ZERO, "no sleep ends to the nanosecond");
        assert!(!processors().is_empty());
    }
}
