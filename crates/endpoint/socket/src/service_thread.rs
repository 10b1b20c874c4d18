//! The thread that serves connections while the application does something else: it sends reports, closes intervals of
//! measurement, and answers the peer.
//!
//! There is one for all connections of a process, from the first one on. It holds no connection: one that the application
//! drops is forgotten. A copy of the process by fork has none of its threads, and starts its own with its first connection.

use crate::connection_handle::SharedCalls;
use crate::protection::ServicePriority;
use crate::publication::Search;
use cutline_sys::lock;
use cutline_sys::now;
use cutline_sys::process::PerProcess;
use cutline_sys::thread::start_named;
use cutline_units::{Duration, Instant};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// A connection that the service thread serves.
pub trait ServedConnection: Send + Sync {
    /// Handles due deadlines, and returns the next one.
    fn serve(&self, now: Instant) -> Instant;

    /// Returns the calls of a connection that the application holds; `None` if the connection is only being closed.
    fn shared_calls(&self) -> Option<&dyn SharedCalls> {
        None
    }
}

/// Connections by when they are due and by a number.
#[derive(Default)]
struct Agenda {
    entries: BTreeMap<(Instant, u64), Weak<dyn ServedConnection>>,
    /// Next deadline of each connection.
    due: BTreeMap<u64, Instant>,
    /// All connections, also the one that is being served.
    kept: BTreeMap<u64, Weak<dyn ServedConnection>>,
    /// Earlier deadlines that were set while the connection was served.
    hastened: BTreeMap<u64, Instant>,
    /// The number of the next connection.
    next: u64,
    /// Connections whose handler is to be called.
    calls: VecDeque<Weak<dyn ServedConnection>>,
}

/// Next task of the thread.
enum Due {
    /// A connection's work, by its number.
    Serve(u64, Weak<dyn ServedConnection>),
    /// A call of a connection's handler.
    Call(Weak<dyn ServedConnection>),
}

#[derive(Default)]
struct ServiceThread {
    agenda: Mutex<Agenda>,
    earlier: Condvar,
    /// True if the thread was started.
    started: Mutex<bool>,
}

/// The longest time that a connection is not served, and so the longest that one that was dropped is remembered.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// The shortest time that a connection is not served. On paths with shorter round-trip times feedback of rate control would keep
/// a processor busy otherwise.
const LEAST_REST: Duration = Duration::from_millis(1);

/// A connection that is served, by its number.
#[derive(Clone, Copy, Debug)]
pub struct AgendaEntry(u64);

impl AgendaEntry {
    /// Serves the connection at `due` if it would be served later, or a millisecond from now.
    pub fn hasten(self, due: Instant) {
        if service_thread().lock().hasten(self.0, due.max(now().saturating_add(LEAST_REST))) {
            service_thread().earlier.notify_one();
        }
    }
}

fn service_thread() -> &'static ServiceThread {
    static SERVICE_THREAD: PerProcess<ServiceThread> = PerProcess::new();
    SERVICE_THREAD.get()
}

thread_local! {
    static IS_SERVICE_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this is the thread that serves connections.
pub fn is_service_thread() -> bool {
    IS_SERVICE_THREAD.get()
}

/// Wakes the thread, so that it follows the priority of protected threads.
pub fn wake() {
    service_thread().earlier.notify_one();
}

/// Wakes the thread to call the handler of a served connection.
pub fn call_soon(service: Weak<dyn ServedConnection>) {
    service_thread().lock().calls.push_back(service);
    service_thread().earlier.notify_one();
}

/// Serves a connection from `due` on.
///
/// # Errors
/// When the thread cannot be started.
pub fn keep(service: Weak<dyn ServedConnection>, due: Instant) -> std::io::Result<AgendaEntry> {
    let service_thread = started()?;
    let mut agenda = service_thread.lock();
    let number = agenda.next;
    agenda.next += 1;
    agenda.kept.insert(number, Weak::clone(&service));
    agenda.insert(number, due, service);
    service_thread.earlier.notify_one();
    Ok(AgendaEntry(number))
}

/// Returns the connections that are served, by their numbers.
pub fn connections() -> Vec<(u64, Weak<dyn ServedConnection>)> {
    service_thread().lock().kept.iter().map(|(number, service)| (*number, Weak::clone(service))).collect()
}

impl Agenda {
    /// Forgets a connection that was dropped.
    fn forget(&mut self, number: u64) {
        self.kept.remove(&number);
        self.hastened.remove(&number);
    }

    fn insert(&mut self, number: u64, due: Instant, service: Weak<dyn ServedConnection>) {
        self.due.insert(number, due);
        self.entries.insert((due, number), service);
    }

    /// Takes the connection that is due first, and returns the time until another one is, if there is none yet.
    fn take(&mut self, now: Instant) -> Result<(u64, Weak<dyn ServedConnection>), Duration> {
        let Some(entry) = self.entries.first_entry() else { return Err(LONGEST_REST) };
        let (due, number) = *entry.key();
        if due > now {
            return Err(due.saturating_since(now));
        }
        self.due.remove(&number);
        self.hastened.remove(&number);
        Ok((number, entry.remove()))
    }

    /// Adds a connection that has been served.
    fn put_back(&mut self, number: u64, due: Instant, service: Weak<dyn ServedConnection>) {
        let hastened = self.hastened.remove(&number);
        self.insert(number, hastened.map_or(due, |hastened| hastened.min(due)), service);
    }

    /// Makes a connection due earlier. Returns whether the thread has to know.
    fn hasten(&mut self, number: u64, due: Instant) -> bool {
        let Some(later) = self.due.get(&number).copied() else {
            let hastened = self.hastened.entry(number).or_insert(due);
            *hastened = due.min(*hastened);
            return false;
        };
        if due >= later {
            return false;
        }
        if let Some(service) = self.entries.remove(&(later, number)) {
            self.insert(number, due, service);
        }
        true
    }
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

fn started() -> std::io::Result<&'static ServiceThread> {
    let service_thread = service_thread();
    let mut started = lock(&service_thread.started);
    if !*started {
        start_named("cutline-qos", || service_thread.run())?;
        *started = true;
    }
    drop(started);
    Ok(service_thread)
}

impl ServiceThread {
    fn lock(&self) -> MutexGuard<'_, Agenda> {
        lock(&self.agenda)
    }

    fn run(&self) -> ! {
        IS_SERVICE_THREAD.set(true);
        let (mut search, mut priority) = (Search::new(), ServicePriority::default());
        loop {
            // No thread waits for the agenda while a connection is served.
            let (number, weak) = match self.next_due(&mut priority) {
                Due::Serve(number, weak) => (number, weak),
                Due::Call(weak) => {
                    let service = weak.upgrade();
                    if let Some(calls) = service.as_ref().and_then(|service| service.shared_calls()) {
                        calls.connection().call_handler();
                    }
                    continue;
                }
            };
            let Some(service) = weak.upgrade() else {
                self.lock().forget(number);
                continue;
            };
            let now = now();
            search.look(now);
            let due = service.serve(now);
            let due = due.clamp(now.saturating_add(LEAST_REST), now.saturating_add(LONGEST_REST));
            drop(service);
            self.lock().put_back(number, due, weak);
        }
    }

    /// Waits for a connection that is due, and takes it from the agenda.
    fn next_due(&self, priority: &mut ServicePriority) -> Due {
        let mut agenda = self.lock();
        loop {
            priority.follow();
            if let Some(weak) = agenda.calls.pop_front() {
                return Due::Call(weak);
            }
            let wait = match agenda.take(now()) {
                Ok((number, weak)) => return Due::Serve(number, weak),
                Err(wait) => wait,
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

    impl ServedConnection for Counter {
        fn serve(&self, now: Instant) -> Instant {
            let served = self.served.fetch_add(1, Ordering::Relaxed) + 1;
            let _gone = self.told.lock().unwrap().send(served);
            if served < 3 { now } else { Instant::FAR_FUTURE }
        }
    }

    #[test]
    fn a_connection_that_is_hastened_is_served_earlier() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let (told, _served) = channel();
        let counter = Arc::new(Counter { served: AtomicU64::new(0), told: Mutex::new(told) });
        let weak = || Arc::downgrade(&counter) as Weak<dyn ServedConnection>;
        let mut agenda = Agenda::default();
        agenda.insert(1, at(500), weak());
        agenda.insert(2, at(400), weak());
        assert_eq!([agenda.hasten(1, at(600)), agenda.hasten(1, at(20))], [false, true]);
        assert_eq!(agenda.take(at(19)).map(|due| due.0).unwrap_err(), Duration::from_millis(1));
        assert_eq!(agenda.take(at(20)).map(|due| due.0).ok(), Some(1));
        // While it is served, what becomes due earlier is noted.
        assert!(!agenda.hasten(1, at(50)) && !agenda.hasten(1, at(70)));
        agenda.put_back(1, at(520), weak());
        assert_eq!(agenda.take(at(50)).map(|due| due.0).ok(), Some(1));
        agenda.put_back(1, at(550), weak());
        assert_eq!(agenda.take(at(400)).map(|due| due.0).ok(), Some(2));
        assert!(agenda.take(at(549)).is_err() && agenda.hastened.is_empty());
    }

    #[test]
    fn a_connection_is_served_until_it_is_dropped() {
        let (told, served) = channel();
        let counter = Arc::new(Counter { served: AtomicU64::new(0), told: Mutex::new(told) });
        let weak: Weak<dyn ServedConnection> = Arc::downgrade(&counter) as _;
        keep(weak, now()).unwrap();
        assert_eq!([served.recv(), served.recv(), served.recv()], [Ok(1), Ok(2), Ok(3)]);
        drop(counter);
        assert!(served.recv().is_err(), "the thread holds no connection");
    }
}
