//! Wake-up delay of a sleeping process. The router's departures are late by the same time, unless it spins.

use cutline_sys::clock::{now, timespec};
use cutline_sys::thread::{Scheduling, set_exact_timers, set_realtime};
use cutline_units::{Duration, Histogram, Instant};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

/// A way to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `ppoll`, as the router waits for frames and deadlines.
    Poll,
    /// `clock_nanosleep` until an absolute time.
    Nanosleep,
}

/// Lateness of sleeps with one way to wait.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// The way to wait.
    pub waiting: Waiting,
    /// True if the thread had real-time scheduling (`SCHED_FIFO`).
    pub fifo: bool,
    /// Lateness of each sleep.
    pub late: Histogram,
}

impl Waiting {
    /// All ways to wait.
    pub const ALL: [Self; 2] = [Self::Poll, Self::Nanosleep];

    /// The system call's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poll => "ppoll",
            Self::Nanosleep => "clock_nanosleep",
        }
    }

    fn until(self, at: Instant) {
        let whole = timespec(at.saturating_since(Instant::ZERO));
        // A sleep that a signal ends early counts as in time.
        let _woken = match self {
            Self::Poll => rustix::event::poll(&mut [], Some(&timespec(at.saturating_since(now())))).map(drop),
            Self::Nanosleep => clock_nanosleep_absolute(ClockId::Monotonic, &whole),
        };
    }
}

/// Measures `sleeps` sleeps of length `each` on a separate thread, with the timer slack of the router. `None` if `fifo` is
/// requested and refused.
pub fn lateness(waiting: Waiting, fifo: bool, sleeps: u32, each: Duration) -> Option<Lateness> {
    let measure = move || {
        if fifo && set_realtime() == Scheduling::Normal {
            return None;
        }
        set_exact_timers();
        let mut late = Histogram::default();
        for _ in 0..sleeps {
            let at = now() + each;
            waiting.until(at);
            late.record(now().saturating_since(at));
        }
        Some(Lateness { waiting, fifo, late })
    };
    std::thread::spawn(measure).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways sleep at least for the requested time.
    #[test]
    fn every_sleep_is_counted_and_none_is_early() {
        for waiting in Waiting::ALL {
            let start = now();
            let found = lateness(waiting, false, 5, Duration::from_millis(1)).unwrap();
            assert_eq!(found.late.count(), 5);
            assert!(now() - start >= Duration::from_millis(5), "{}", waiting.name());
        }
    }
}
