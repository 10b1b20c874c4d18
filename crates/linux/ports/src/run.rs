//! The router's loop: receives the frames that have arrived, sends those that are due, and waits for the next of either.
//!
//! It waits by `ppoll` until shortly before the deadline, and may poll the clock for the rest: a timer wakes a process
//! about 30 us late, and hundreds of microseconds on a busy machine, while polling costs a core but is late by a
//! fraction of a microsecond. Either way the schedule is absolute, so the mean rate is exact.

use crate::{InterfacePort, PacketPort, PortError};
use cutline_router::DuplexShaper;
use cutline_sys::reactor::{self, PollFd, PollFlags};
use cutline_sys::{SysError, clock, thread};
use cutline_units::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};

/// Observer that the router's loop calls from time to time.
pub trait Observer<P = PacketPort> {
    /// Called when it is due; returns when it is due next. It may reconfigure the shapers.
    fn look(&mut self, now: Instant, duplex: &mut DuplexShaper, ports: &mut [P; 2]) -> Instant;
}

/// The time after which frames are offered again that a port did not accept.
const RETRY: Duration = Duration::from_micros(100);
/// The interval of checks that the interfaces still exist.
const CHECK: Duration = Duration::from_millis(500);

/// Runs until `stop` is set. For the last `spin` before a deadline it polls the clock instead of sleeping.
///
/// # Errors
/// When a port fails, such as when its interface is removed.
pub fn run<P: InterfacePort>(
    duplex: &mut DuplexShaper,
    ports: &mut [P; 2],
    spin: Duration,
    stop: &AtomicBool,
    observer: &mut dyn Observer<P>,
) -> Result<(), PortError> {
    thread::set_exact_timers();
    let (mut look_at, mut check_at) = (clock::now(), clock::now() + CHECK);
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        let round = duplex.round(now, ports)?;
        if now >= look_at {
            look_at = observer.look(now, duplex, ports);
        }
        if now >= check_at {
            ports.iter().try_for_each(InterfacePort::check)?;
            check_at = now + CHECK;
        }
        if round.received == 0 {
            let retry = if round.stuck { now + RETRY } else { Instant::FAR_FUTURE };
            wait(ports, duplex.deadline().min(look_at).min(retry), spin)?;
        }
    }
    Ok(())
}

/// Waits until a frame arrives or `deadline` is less than `spin` away, at most [`reactor::LONGEST_WAIT`].
///
/// # Errors
/// When a port fails, such as when its interface is removed.
pub fn wait<P: InterfacePort>(ports: &[P; 2], deadline: Instant, spin: Duration) -> Result<(), PortError> {
    let sleep = deadline.saturating_since(clock::now()).saturating_sub(spin);
    // With nothing left to sleep this still finds frames that have arrived.
    let mut fds = ports.each_ref().map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
    reactor::wait(&mut fds, sleep).map_err(|error| SysError::new("waiting for frames failed", error))?;
    let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    for (fd, port) in fds.iter().zip(ports) {
        if fd.revents().intersects(broken) {
            port.check()?;
        }
    }
    Ok(())
}
