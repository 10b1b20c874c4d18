//! How late a process is woken that sleeps until a moment. The router's departures are as late as that, unless it spins.

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

/// What was measured.
#[derive(Clone, Debug)]
pub struct Lateness {
    /// How it waited.
    pub waiting: Waiting,
    /// Whether it was scheduled in real time (`SCHED_FIFO`).
    pub fifo: bool,
    /// How late each sleep ended.
    pub late: Histogram,
}

impl Waiting {
    /// Every way.
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
        // Woken early by a signal, it counts as in time.
        let _woken = match self {
            Self::Poll => rustix::event::poll(&mut [], Some(&timespec(at.saturating_since(now())))).map(drop),
            Self::Nanosleep => clock_nanosleep_absolute(ClockId::Monotonic, &whole),
        };
    }
}

/// Sleeps so many times for so long, on a thread of its own, with the timer slack that the router asks for. `None` when
/// `fifo` is asked for and refused.
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

    /// `ppoll` takes a time to wait, which is read before; both ways sleep at least until then.
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
