//! Probes that detect whether an end is a QoS socket, and their answers.

use crate::error::QosError;
use crate::options::QosOptions;
use crate::session::random;
use crate::settings::Settings;
use cutline_signal::authentication::Key;
use cutline_signal::negotiation::Nonce;
use cutline_signal::presence::{LONGEST, answer, is_answer, question};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::local_address::{self, send_from};
use cutline_sys::lock;
use cutline_sys::now;
use cutline_sys::process::generation;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::thread::start_named;
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Number of times that a question is sent.
const TRIES: u64 = 3;
const DOING: &str = "cannot send the request that detects a QoS socket";
/// Time within which an address that has asked is expected to begin.
const EXPECTED: Duration = Duration::from_secs(10);
/// The most addresses of such.
const MOST_EXPECTED: usize = 1024;
/// Number of questions that one system call returns.
const QUESTIONS: usize = 16;

/// A question whether there is a QoS socket at an address.
pub struct Question {
    socket: UdpSocket,
    nonce: Nonce,
    key: Option<Key>,
    bytes: Vec<u8>,
    /// Time to wait for an answer before the question is repeated.
    share: Duration,
    asked: u64,
    until: Instant,
}

impl Question {
    /// A socket for questions, which are marked as the stream will be. `None` if the address is of no use for datagrams; whether it is for
    /// a stream will be seen.
    pub fn socket(peer: SocketAddr, settings: &Settings) -> Result<Option<UdpSocket>, QosError> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(QosError::system(DOING))?;
        socket.set_nonblocking(true).map_err(QosError::system(DOING))?;
        settings.mark(&socket, peer)?;
        Ok(socket.connect(peer).is_ok().then_some(socket))
    }

    /// Creates a question over this socket, which is connected to the peer. Nothing is sent yet.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(socket: UdpSocket, options: &QosOptions) -> Result<Self, QosError> {
        // An error of an earlier question.
        let _earlier = socket.take_error();
        let nonce = random()?;
        let (bytes, key) = (question(nonce, options.key.as_ref()), options.key);
        let share = Duration::from_nanos(options.detection_time().as_nanos() / TRIES);
        Ok(Self { socket, nonce, key, bytes, share, asked: 0, until: Instant::ZERO })
    }

    /// Returns the time at which the question is repeated, or given up.
    pub const fn due(&self) -> Instant {
        self.until
    }

    /// The socket, for a later probe.
    pub fn socket_again(&self) -> Result<UdpSocket, QosError> {
        self.socket.try_clone().map_err(QosError::system("cannot open a socket"))
    }

    /// Sends a due request, and handles received messages. Returns the answer; `None` while there is none.
    pub fn advance(&mut self) -> Option<bool> {
        loop {
            let mut bytes = [0; LONGEST + 1];
            match self.socket.recv(&mut bytes) {
                Ok(length) if is_answer(&bytes[..length], self.nonce, self.key.as_ref()) => {
                    return Some(true);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // There is no listener.
                Err(_) => return Some(false),
            }
        }
        if now() >= self.until {
            if self.asked == TRIES || self.socket.send(&self.bytes).is_err() {
                return Some(false);
            }
            (self.asked, self.until) = (self.asked + 1, now().saturating_add(self.share));
        }
        None
    }
}

impl AsFd for Question {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Addresses that have asked recently.
#[derive(Debug, Default)]
pub struct Callers(Mutex<BTreeMap<IpAddr, Instant>>);

impl Callers {
    /// Returns whether this address is expected to begin a negotiation.
    pub fn expects(&self, address: IpAddr) -> bool {
        let callers = lock(&self.0);
        callers.get(&address).is_some_and(|at| now().saturating_since(*at) <= EXPECTED)
    }

    fn note(&self, address: IpAddr) {
        let (mut callers, now) = (lock(&self.0), now());
        if callers.len() >= MOST_EXPECTED {
            callers.retain(|_, at| now.saturating_since(*at) <= EXPECTED);
        }
        if callers.len() < MOST_EXPECTED {
            callers.insert(address, now);
        }
    }
}

/// Thread that answers questions: an application that does not accept for a while is a QoS socket all the same. Its drop ends the thread
/// and closes the thread's socket, so that the port is free afterwards.
pub struct Responder {
    wake: UnixStream,
    thread: Option<JoinHandle<()>>,
    /// Process that has the thread.
    generation: u32,
}

impl Responder {
    /// Starts a thread that answers at this socket, and records the askers.
    ///
    /// # Errors
    /// When the system refuses the thread or its descriptors.
    pub fn start(socket: UdpSocket, callers: Arc<Callers>, key: Option<Key>) -> io::Result<Self> {
        // An asker accepts an answer only from the address that it has asked.
        local_address::ask(&socket)?;
        let (wake, woken) = UnixStream::pair()?;
        let thread = start_named("cutline-presence", move || run(&socket, &woken, &callers, key.as_ref()))?;
        Ok(Self { wake, thread: Some(thread), generation: generation() })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.generation != generation() {
            // A copy by fork has no such thread, and does not end its parent's.
            std::mem::forget(thread);
            return;
        }
        // A byte, and not the end of the stream: copies by fork keep that open. The thread has ended if the byte is not read.
        let _ended = (&self.wake).write_all(&[0]);
        let _panicked = thread.join();
    }
}

fn run(socket: &UdpSocket, woken: &UnixStream, callers: &Callers, key: Option<&Key>) {
    let mut inbox = Inbox::new(LONGEST + 1, QUESTIONS);
    loop {
        let mut fds = [PollFd::new(socket, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        let waited = wait(&mut fds, Duration::MAX);
        if waited.is_err() || !fds[1].revents().is_empty() {
            return;
        }
        // Errors are those of earlier answers.
        let count = inbox.fill(socket, Wait::No).unwrap_or(0);
        for question in (0..count).filter_map(|number| inbox.datagram(number)) {
            if let Some(answered) = answer(question.head, key) {
                callers.note(question.from.ip());
                let _lost = send_from(socket, &answered, question.from, question.to);
            }
        }
    }
}
