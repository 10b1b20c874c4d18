//! Closing without loss.
//!
//! The kernel resets a connection, and drops undelivered data, when a socket is closed with unread input, and when
//! input arrives after that. Reports of the peer are such input. So a stream that the application closes first ends its own
//! direction; then the thread that serves connections reads and discards incoming data, until the peer's kernel has acknowledged
//! everything. A reset after that loses nothing: Linux delivers received data, and the end of the stream after it.
//!
//! At the end of the process there is no such thread. A function that runs then ([`close_all`]) does the same for all streams, closed or not.

use super::Inner;
use crate::service_thread::{ServedConnection, keep};
use cutline_signal::session::Participation;
use cutline_sys::process::{PerProcess, at_exit};
use cutline_sys::tcp::{is_delivered, tcp_info};
use cutline_sys::{lock, now, try_lock};
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown, sockopt};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The first pause between two looks at a stream that is closed.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Number of bytes that one call discards.
const PIECE: usize = 1 << 14;
/// Number of calls that discard at a time: an end that sends without end may not keep the thread from other
/// connections.
const PIECES: usize = 256;
/// The streams that are closed and not delivered may have one of so many of the descriptors that the process may have.
const SHARE_OF_DESCRIPTORS: u64 = 4;
/// The most streams that are closed and not delivered.
const MOST: u64 = 4096;
/// Number of attempts of the end of the process to take a lock that another thread holds.
const TRIES: u32 = 1000;

/// A stream that the application has closed, until the peer has received all data.
struct Closing {
    socket: Arc<TcpStream>,
    /// Time without a new acknowledgement after which delivery ends.
    linger: Duration,
    /// True if no reports come: then the kernel delivers without help once nothing is unread.
    is_plain: bool,
    progress: Mutex<ConnectProgress>,
}

/// Progress of the peer's acknowledgements.
struct ConnectProgress {
    bytes: u64,
    /// Time of the last progress.
    since: Instant,
    pause: Duration,
}

/// The streams of this process.
#[derive(Default)]
struct Streams {
    /// Open streams, by their numbers.
    open: BTreeMap<u64, Weak<Inner>>,
    /// Streams that are closed and not delivered, in the order of closing.
    closing: BTreeMap<u64, Arc<Closing>>,
}

static STREAMS: PerProcess<Mutex<Streams>> = PerProcess::new();
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The place of an open stream in the list of those that the end of the process closes.
pub struct Listed(u64);

impl Listed {
    /// A place for a stream that is being opened.
    pub fn new() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers this stream to be closed at the end of the process, unless it is closed before.
    pub fn list(&self, stream: Weak<Inner>) {
        at_exit(close_all);
        lock(STREAMS.get()).open.insert(self.0, stream);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a copy by fork, it is still the parent's to end.
        if self.connection.is_inherited() {
            return;
        }
        lock(STREAMS.get()).open.remove(&self.listed.0);
        if let Some(closing) = Closing::begin(self).filter(|closing| !closing.is_over(now())) {
            closing.go_on_in_background(self.listed.0);
        }
    }
}

impl Closing {
    /// Ends the direction of a stream that is closed. `None` if nothing is left to be done: the connection is gone, or the application requests a
    /// reset.
    fn begin(stream: &Inner) -> Option<Self> {
        let wants_reset = sockopt::socket_linger(&stream.socket) == Ok(Some(std::time::Duration::ZERO));
        if wants_reset || shutdown(&stream.socket, Shutdown::Write).is_err() {
            return None;
        }
        let bytes = tcp_info(&stream.socket).ok()?.bytes_acked;
        Some(Self {
            socket: Arc::clone(&stream.socket),
            linger: stream.linger,
            is_plain: stream.connection.participation() == Participation::Alone,
            progress: Mutex::new(ConnectProgress { bytes, since: now(), pause: FIRST_PAUSE }),
        })
    }

    /// Discards received data, and returns whether the socket can be closed.
    fn is_over(&self, now: Instant) -> bool {
        if discard(&self.socket) == Input::Ended {
            // Nothing more arrives that could reset the connection: the kernel delivers the rest.
            return true;
        }
        let Ok(info) = tcp_info(&self.socket) else { return true };
        let mut progress = lock(&self.progress);
        if info.bytes_acked > progress.bytes {
            (progress.bytes, progress.since) = (info.bytes_acked, now);
        }
        if is_delivered(&self.socket).unwrap_or(true) {
            return true;
        }
        let is_late = now.saturating_since(progress.since) >= self.linger;
        if is_late {
            // Closing waits for nothing.
            let _as_before = sockopt::set_socket_linger(&self.socket, None);
        }
        is_late
    }

    /// Passes the closing on to the thread that serves connections.
    fn go_on_in_background(self, number: u64) {
        let this = Arc::new(self);
        let weak = Arc::downgrade(&this) as Weak<dyn ServedConnection>;
        let oldest = {
            let mut streams = lock(STREAMS.get());
            streams.closing.insert(number, this);
            if streams.closing.len() as u64 > most() { streams.closing.pop_first() } else { None }
        };
        drop(oldest);
        if keep(weak, now()).is_err() {
            lock(STREAMS.get()).closing.remove(&number);
        }
    }
}

impl ServedConnection for Closing {
    fn serve(&self, now: Instant) -> Instant {
        if self.is_over(now) {
            // The last one that has it closes the descriptor.
            let mut streams = lock(STREAMS.get());
            let place = streams.closing.iter().find(|(_, other)| std::ptr::eq(other.as_ref(), self));
            let ended = place.map(|(number, _)| *number).and_then(|number| streams.closing.remove(&number));
            drop(streams);
            drop(ended);
            return Instant::FAR_FUTURE;
        }
        let mut progress = lock(&self.progress);
        progress.pause = (progress.pause * 2).min(LONGEST_PAUSE);
        now.saturating_add(progress.pause)
    }
}

/// The most streams that may be closed and not delivered.
fn most() -> u64 {
    getrlimit(Resource::Nofile).current.map_or(MOST, |limit| (limit / SHARE_OF_DESCRIPTORS).min(MOST))
}

/// Input of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Nothing at present; more may arrive.
    Open,
    /// The peer has closed its direction, or the connection is gone.
    Ended,
}

/// Discards received data.
fn discard(socket: &TcpStream) -> Input {
    let mut buffer = [0; PIECE];
    for _ in 0..PIECES {
        // With MSG_TRUNC the kernel copies nothing.
        match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((_, 0)) => return Input::Ended,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Input::Open,
            Err(_) => return Input::Ended,
        }
    }
    Input::Open
}

/// Closes all streams at the end of the process, and waits until they are delivered, each at most for its linger time.
fn close_all() {
    let Some(mut streams) = try_for_a_while(STREAMS.get()) else { return };
    let (open, closing) = (std::mem::take(&mut streams.open), std::mem::take(&mut streams.closing));
    drop(streams);
    let open: Vec<_> = open.into_values().filter_map(|stream| stream.upgrade()).collect();
    let begun = open.iter().filter_map(|stream| Closing::begin(stream)).map(Arc::new);
    let mut left: Vec<_> = begun.chain(closing.into_values()).collect();
    let mut pause = FIRST_PAUSE;
    loop {
        left.retain(|closing| !closing.is_over(now()) && !closing.is_plain);
        if left.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_nanos(pause.as_nanos()));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    // Other threads may use the sockets as before until the process ends.
    std::mem::forget(open);
}

/// A lock that another thread may hold forever at the end of the process.
fn try_for_a_while<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        if let Some(guard) = try_lock(mutex) {
            return Some(guard);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    None
}
