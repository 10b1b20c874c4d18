//! State that the threads of a gateway share: limits, notices, and the threads of connections.

use crate::connection_table::{ConnectionTable, Full};
use crate::plan::{GatewaySide, Limits, Plan};
use crate::stop::Stop;
use cutline_provision::GrantState;
use cutline_socket::{ConnectionReservation, QosOptions};
use cutline_sys::lock;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Interval of recordings of the delivered traffic: several in an interval of the MIB.
const RECORD_EVERY: Duration = Duration::from_millis(100);
/// Stack size of a connection's thread, bytes.
const STACK: usize = 256 << 10;
/// Time that connections may take to end when the gateway does.
const FAREWELL: Duration = Duration::from_secs(15);
/// Largest number of failures that are reported one by one.
const MOST_NOTIFIED: usize = 100;
/// Largest number of unknown peers that are reported one by one. Any host can cause them, so they do not count as failures.
const MOST_STRANGERS_NOTIFIED: usize = 10;

/// Receiver of messages for the log.
pub type Notify = Box<dyn Fn(&str) + Send + Sync>;

/// State that the threads of a gateway share.
pub struct Shared {
    pub side: GatewaySide,
    pub options: QosOptions,
    pub limits: Limits,
    pub book: Arc<ConnectionTable>,
    pub stop: Stop,
    notify: Notify,
    notified: AtomicUsize,
    notified_strangers: AtomicUsize,
    has_notified_limit: AtomicBool,
    /// Number of running threads of connections, and a signal that one has ended.
    running: Mutex<usize>,
    ended: Condvar,
}

impl Shared {
    /// Creates the state of a gateway.
    ///
    /// # Errors
    /// When the system has no descriptor for the request to stop.
    pub fn new(plan: &Plan, options: QosOptions, book: ConnectionTable, notify: Notify) -> io::Result<Self> {
        Ok(Self {
            side: plan.side,
            options,
            limits: plan.limits,
            book: Arc::new(book),
            stop: Stop::new()?,
            notify,
            notified: AtomicUsize::new(0),
            notified_strangers: AtomicUsize::new(0),
            has_notified_limit: AtomicBool::new(false),
            running: Mutex::new(0),
            ended: Condvar::new(),
        })
    }

    /// Reports a failure, unless there were many.
    pub fn tell(&self, what: impl Display) {
        match self.notified.fetch_add(1, Ordering::Relaxed) {
            notified if notified < MOST_NOTIFIED => (self.notify)(&what.to_string()),
            MOST_NOTIFIED => (self.notify)("further failures are counted, but not printed"),
            _ => {}
        }
    }

    /// Counts a peer that has not shown that it is a gateway, and reports it unless there were many.
    pub fn tell_stranger(&self, route: usize, peer: SocketAddr, why: impl Display) {
        self.book.count_stranger(route);
        let route = self.book.route(route);
        match self.notified_strangers.fetch_add(1, Ordering::Relaxed) {
            notified if notified < MOST_STRANGERS_NOTIFIED => {
                (self.notify)(&format!("{route}: {peer}: {why}"));
            }
            MOST_STRANGERS_NOTIFIED => (self.notify)("further unknown peers are counted, but not printed"),
            _ => {}
        }
    }

    /// Counts a connection beyond the limit, and reports the limit once.
    pub fn turn_away(&self, route: usize, peer: SocketAddr, full: Full) {
        self.book.turn_away(route);
        if self.has_notified_limit.swap(true, Ordering::Relaxed) {
            return;
        }
        let route = self.book.route(route);
        let why = match full {
            Full::All => {
                format!(
                    "there are {} connections: further ones are refused (--max-connections)",
                    self.limits.connections
                )
            }
            Full::OfAddress => format!(
                "{} has {} connections: further ones from it are refused (--max-per-address)",
                peer.ip(),
                self.limits.of_one_address
            ),
        };
        (self.notify)(&format!("{route}: {why}"));
    }

    /// Reports the missing reservation of a connection that continues without it.
    pub fn tell_unreserved(&self, route: usize, reservation: Option<&ConnectionReservation>) {
        let Some(reservation) = reservation else { return };
        for (direction, state) in [("send", &reservation.send), ("receive", &reservation.receive)] {
            if let GrantState::Failed(refusal) = state {
                let route = self.book.route(route);
                self.tell(format_args!("{route}: {direction} continues as best effort: {refusal}"));
            }
        }
    }

    /// Runs the work of a connection in a thread.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) -> io::Result<()> {
        let running = Running::begin(Arc::clone(self));
        let thread = thread::Builder::new().name("gateway connection".to_owned()).stack_size(STACK);
        thread.spawn(move || work(&running.0)).map(drop)
    }

    /// Records the delivery of all connections until the gateway ends.
    pub fn record(&self) {
        while !self.stop.is_set() {
            let _ready = self.stop.poll([], Some(cutline_units::Duration::from_nanos(nanos(RECORD_EVERY))));
            self.book.record_news();
        }
    }

    /// Waits for the threads of connections, which have been requested to end.
    pub fn wait_for_connections(&self) {
        let running = lock(&self.running);
        let _late = self.ended.wait_timeout_while(running, FAREWELL, |running| *running > 0);
    }
}

/// Waits a little after an error of a listener, such as too many open files, which would be reported at once again.
pub fn pause() {
    thread::sleep(Duration::from_millis(100));
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A thread of a connection, counted while it runs.
struct Running(Arc<Shared>);

impl Running {
    fn begin(shared: Arc<Shared>) -> Self {
        *lock(&shared.running) += 1;
        Self(shared)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *lock(&self.0.running) -= 1;
        self.0.ended.notify_all();
    }
}
