//! The thread that serves connections while the application does something else: it sends reports, closes intervals of
//! measurement, and answers the other end.
//!
//! There is one for all connections of a process, from the first one on. It holds no connection: one that the application
//! drops is forgotten.

use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// What is served.
pub trait Service: Send + Sync {
    /// Does what is due and returns when something is due again.
    fn serve(&self, now: Instant) -> Instant;
}

/// Connections by when they are due and by a number.
#[derive(Default)]
struct Agenda {
    entries: BTreeMap<(Instant, u64), Weak<dyn Service>>,
    /// The number of the next connection.
    next: u64,
}

#[derive(Default)]
struct Keeper {
    agenda: Mutex<Agenda>,
    earlier: Condvar,
}

/// The longest time that a connection is not served, and so the longest that one that was dropped is remembered.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Serves a connection from `due` on.
///
/// # Errors
/// When the thread cannot be started.
pub fn keep(service: Weak<dyn Service>, due: Instant) -> std::io::Result<()> {
    let keeper = started()?;
    let mut agenda = keeper.lock();
    let number = agenda.next;
    agenda.next += 1;
    agenda.entries.insert((due, number), service);
    keeper.earlier.notify_one();
    Ok(())
}

/// Starts the thread that serves the connections of this process, unless it runs. It is started with the first connection
/// otherwise.
///
/// The thread stays in the network namespace of the thread that starts it, and keeps that namespace alive. A program whose
/// connections are in namespaces that end before the process calls this outside of them.
///
/// # Errors
/// When the thread cannot be started.
pub fn start() -> std::io::Result<()> {
    started().map(drop)
}

fn started() -> std::io::Result<&'static Keeper> {
    static KEEPER: OnceLock<Keeper> = OnceLock::new();
    static STARTED: Mutex<bool> = Mutex::new(false);
    let keeper = KEEPER.get_or_init(Keeper::default);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        std::thread::Builder::new().name("cutline-qos".to_owned()).spawn(|| keeper.run())?;
        *started = true;
    }
    Ok(keeper)
}

impl Keeper {
    fn lock(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> ! {
        loop {
            let (number, weak) = self.next_due();
            // Nobody waits for the agenda while a connection is served.
            let Some(service) = weak.upgrade() else { continue };
            let now = now();
            let due = service.serve(now).clamp(now, now.saturating_add(LONGEST_REST));
            drop(service);
            self.lock().entries.insert((due, number), weak);
        }
    }

    /// Waits for a connection that is due, and takes it from the agenda.
    fn next_due(&self) -> (u64, Weak<dyn Service>) {
        let mut agenda = self.lock();
        loop {
            let wait = match agenda.entries.first_entry() {
                Some(entry) => {
                    let wait = entry.key().0.saturating_since(now());
                    if wait.is_zero() {
                        let ((_, number), weak) = entry.remove_entry();
                        return (number, weak);
                    }
                    wait
                }
                None => LONGEST_REST,
            };
            let wait = std::time::Duration::from_nanos(wait.as_nanos());
            (agenda, _) = self.earlier.wait_timeout(agenda, wait).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Sender, channel};

    struct Counter {
        served: AtomicU64,
        told: Mutex<Sender<u64>>,
    }

    impl Service for Counter {
        fn serve(&self, now: Instant) -> Instant {
            let served = self.served.fetch_add(1, Ordering::Relaxed) + 1;
            let _gone = self.told.lock().unwrap().send(served);
            if served < 3 { now } else { Instant::FAR_FUTURE }
        }
    }

    #[test]
    fn a_connection_is_served_until_it_is_dropped() {
        let (told, served) = channel();
        let counter = Arc::new(Counter { served: AtomicU64::new(0), told: Mutex::new(told) });
        let weak: Weak<dyn Service> = Arc::downgrade(&counter) as _;
        keep(weak, now()).unwrap();
        assert_eq!([served.recv(), served.recv(), served.recv()], [Ok(1), Ok(2), Ok(3)]);
        drop(counter);
        assert!(served.recv().is_err(), "the thread holds no connection");
    }
}
