//! The router at work: takes what comes, sends what is due, and waits for the next of either.
//!
//! Waiting is `ppoll` until shortly before the deadline, and, if asked for, looking at the clock for the rest: a timer
//! wakes a process some 30 us late, and on a busy machine some hundreds, while looking costs a core but is
//! late by a fraction of a microsecond. Either way the schedule is absolute, so the mean rate is exact.

use crate::{LinuxError, LinuxPort, PacketPort, clock};
use cutline_router::Wire;
use cutline_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, poll};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who looks at the router from time to time.
pub trait Observer<P = PacketPort> {
    /// Called when it is due; answers when it wants to be called next. May change how the wire works.
    fn look(&mut self, now: Instant, wire: &mut Wire, ports: &mut [P; 2]) -> Instant;
}

/// The longest wait: how late a request to stop may be noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How soon frames are offered again that a port did not take.
const RETRY: Duration = Duration::from_micros(100);
/// How often it is looked whether the interfaces are still there.
const CHECK: Duration = Duration::from_millis(500);

/// Runs until `stop` is set. For the last `spin` before a deadline it looks at the clock instead of sleeping.
///
/// # Errors
/// When a port is gone.
pub fn run<P: LinuxPort>(
    wire: &mut Wire,
    ports: &mut [P; 2],
    spin: Duration,
    stop: &AtomicBool,
    observer: &mut dyn Observer<P>,
) -> Result<(), LinuxError> {
    // Without it the kernel may let a timer be 50 us late to save wake-ups. A kernel that refuses is only less exact.
    let _exact = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let (mut look_at, mut check_at) = (clock::now(), clock::now() + CHECK);
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        let round = wire.round(now, ports)?;
        if now >= look_at {
            look_at = observer.look(now, wire, ports);
        }
        if now >= check_at {
            ports.iter().try_for_each(LinuxPort::check)?;
            check_at = now + CHECK;
        }
        if round.received == 0 {
            let retry = if round.stuck { now + RETRY } else { Instant::FAR_FUTURE };
            wait(ports, wire.deadline().min(look_at).min(retry), spin)?;
        }
    }
    Ok(())
}

/// Waits until a frame comes or `deadline` has come; for the last `spin` before it by looking at the clock.
///
/// # Errors
/// When a port is gone.
pub fn wait<P: LinuxPort>(ports: &[P; 2], deadline: Instant, spin: Duration) -> Result<(), LinuxError> {
    let left = deadline.saturating_since(clock::now());
    let sleep = left.saturating_sub(spin).min(LONGEST_WAIT);
    // With nothing left to sleep this asks whether a frame has come, so that spinning does not keep one waiting.
    let mut fds = ports.each_ref().map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
    match poll(&mut fds, Some(&clock::timespec(sleep))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(LinuxError::of("waiting for frames failed", errno)),
    }
    let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    for (fd, port) in fds.iter().zip(ports) {
        if fd.revents().intersects(broken) {
            port.check()?;
        }
    }
    Ok(())
}
