//! Connecting without waiting, to any of the addresses of a name.
//!
//! Streams try the addresses as in RFC 8305: in turns of IPv6 and IPv4, the next one when an attempt has failed or is late, and the first
//! that is connected is taken. Datagrams reveal nothing about an address without a listener, so they try one after the other: an address where
//! a QoS socket answers is taken, or else the first one that the network has not refused.

use crate::error::QosError;
use crate::options::QosOptions;
use crate::signals;
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_units::{Duration, Instant};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::BorrowedFd;
use std::time;

/// The time after which the next address is tried while an attempt is under way (RFC 8305 section 8, Connection Attempt Delay).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Failed action in errors.
const DOING: &str = "cannot connect";

/// State of a descriptor to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Readable.
    Read,
    /// Writable.
    Write,
}

/// The state of an attempt.
#[derive(Debug)]
pub enum ConnectProgress<S> {
    /// The attempt continues when its descriptor is ready, or at this time.
    Pending(Instant),
    /// The socket is connected.
    Done(S),
}

/// An attempt to connect to one address. None of its functions waits.
pub trait Attempt: Sized {
    /// Socket that the attempt makes.
    type Socket;

    /// Returns the time beyond [`ATTEMPT_DELAY`] after which the next address is tried; `None` if only a
    /// failure leads to the next address.
    fn head_start(options: &QosOptions) -> Option<Duration>;

    /// Begins to connect to an address.
    fn begin(address: SocketAddr, options: &QosOptions) -> Result<Self, QosError>;

    /// Continues the attempt.
    fn advance(&mut self, options: &QosOptions) -> Result<ConnectProgress<Self::Socket>, QosError>;

    /// Returns the descriptor and the readiness that the attempt waits for.
    fn awaits(&self) -> (BorrowedFd<'_>, Readiness);

    /// Returns whether the end is known to exist, so that no other address is tried meanwhile.
    fn is_answered(&self) -> bool;

    /// Returns whether the address of this socket has not answered, so that another one may be better.
    fn is_silent(socket: &Self::Socket) -> bool;
}

/// A socket that can be connected.
pub trait Connect: Sized {
    #[doc(hidden)]
    type Attempt: Attempt<Socket = Self>;
}

/// A connection that is being made ([`QosTcpStream::connecting`](crate::QosTcpStream::connecting),
/// [`QosUdpSocket::connecting`](crate::QosUdpSocket::connecting),
/// [`QosDirectSocket::connecting`](crate::QosDirectSocket::connecting)). Dropping it ends that.
///
/// A program that waits for descriptors by itself calls [`advance`](Self::advance) when one of [`awaits`](Self::awaits) is ready, and
/// when [`time_left`](Self::time_left) is over. Others call [`finish`](Self::finish).
pub struct Connecting<S: Connect> {
    options: QosOptions,
    /// Addresses that were not tried.
    addresses: VecDeque<SocketAddr>,
    attempts: Vec<(SocketAddr, S::Attempt)>,
    /// Time at which the next address is tried.
    next: Instant,
    /// Time at which the whole has failed.
    deadline: Instant,
    due: Instant,
    /// The socket of the first address that has neither answered nor refused.
    silent: Option<S>,
    failure: Option<QosError>,
}

impl<S: Connect> std::fmt::Debug for Connecting<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let trying: Vec<_> = self.attempts.iter().map(|(address, _)| address).collect();
        f.debug_struct("Connecting")
            .field("trying", &trying)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl<S: Connect> Connecting<S> {
    pub(crate) fn new(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        let addresses = in_turns(resolve(address, DOING)?);
        Ok(Self::with(addresses, Vec::new(), options))
    }

    /// A connection with one attempt, which has begun.
    pub(crate) fn of(address: SocketAddr, attempt: S::Attempt, options: &QosOptions) -> Self {
        Self::with(VecDeque::new(), vec![(address, attempt)], options)
    }

    fn with(
        addresses: VecDeque<SocketAddr>,
        attempts: Vec<(SocketAddr, S::Attempt)>,
        options: &QosOptions,
    ) -> Self {
        let now = now();
        let deadline = options.connect_timeout.map_or(Instant::FAR_FUTURE, |time| now.saturating_add(time));
        let options = options.clone();
        Self { options, addresses, attempts, next: now, deadline, due: now, silent: None, failure: None }
    }

    /// Takes the next steps, without waiting. Returns the socket, or the reason of a failure; `None` while that is unknown.
    pub fn advance(&mut self) -> Option<Result<S, QosError>> {
        if let Err(error) = self.options.start_threads() {
            return Some(Err(error));
        }
        loop {
            let now = now();
            if now >= self.deadline {
                return Some(self.silent.take().map_or_else(|| Err(self.late()), Ok));
            }
            if (self.attempts.is_empty() || now >= self.next)
                && let Some(address) = self.addresses.pop_front()
            {
                let head_start = S::Attempt::head_start(&self.options);
                self.next = head_start.map_or(Instant::FAR_FUTURE, |time| {
                    now.saturating_add(ATTEMPT_DELAY).saturating_add(time)
                });
                match S::Attempt::begin(address, &self.options) {
                    Ok(attempt) => self.attempts.push((address, attempt)),
                    Err(error) => self.note(error),
                }
            }
            if let Some(socket) = self.advance_attempts() {
                return Some(Ok(socket));
            }
            if !self.attempts.is_empty() {
                return None;
            }
            if self.addresses.is_empty() {
                let failure = self.failure.take();
                let none = || QosError::system(DOING)(io::Error::from(io::ErrorKind::NotConnected));
                return Some(self.silent.take().map_or_else(|| Err(failure.unwrap_or_else(none)), Ok));
            }
        }
    }

    /// Waits until the socket is connected. It can be called again when it was interrupted ([`Interruptible`](crate::Interruptible)).
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn finish(&mut self) -> Result<S, QosError> {
        loop {
            if let Some(outcome) = self.advance() {
                return outcome;
            }
            let time = self.due.saturating_since(now());
            let attempts = self.attempts.iter().map(|(_, attempt)| attempt.awaits());
            let awaited: Vec<_> = attempts.collect();
            let mut fds: Vec<_> =
                awaited.iter().map(|(fd, readiness)| PollFd::new(fd, flags(*readiness))).collect();
            signals::wait(&mut fds, time).map_err(QosError::system(DOING))?;
        }
    }

    /// The descriptors that are waited for. They are others after each [`advance`](Self::advance).
    pub fn awaits(&self) -> Vec<(BorrowedFd<'_>, Readiness)> {
        self.attempts.iter().map(|(_, attempt)| attempt.awaits()).collect()
    }

    /// Returns the largest time to wait for the attempts.
    pub fn time_left(&self) -> time::Duration {
        time::Duration::from_nanos(self.due.saturating_since(now()).as_nanos())
    }

    /// Continues all attempts. Returns a socket that is connected.
    fn advance_attempts(&mut self) -> Option<S> {
        self.due = if self.addresses.is_empty() { self.deadline } else { self.deadline.min(self.next) };
        for (address, mut attempt) in std::mem::take(&mut self.attempts) {
            match attempt.advance(&self.options) {
                Ok(ConnectProgress::Pending(due)) => {
                    self.due = self.due.min(due);
                    self.attempts.push((address, attempt));
                }
                Ok(ConnectProgress::Done(socket)) if S::Attempt::is_silent(&socket) => {
                    self.silent.get_or_insert(socket);
                }
                Ok(ConnectProgress::Done(socket)) => return Some(socket),
                Err(error) => self.note(error),
            }
        }
        if let Some(place) = self.attempts.iter().position(|(_, attempt)| attempt.is_answered()) {
            // If this one fails nevertheless, the others are tried again.
            let answered = self.attempts.swap_remove(place);
            self.addresses.extend(self.attempts.drain(..).map(|(address, _)| address));
            self.attempts.push(answered);
            (self.next, self.due) = (Instant::FAR_FUTURE, self.due.min(self.deadline));
        }
        None
    }

    /// Keeps the most informative error: that of an end that has answered, or else the last.
    fn note(&mut self, error: QosError) {
        let says_less = matches!(error, QosError::System { .. });
        if !says_less || matches!(self.failure, None | Some(QosError::System { .. })) {
            self.failure = Some(error);
        }
    }

    fn late(&self) -> QosError {
        let time = self.options.connect_timeout.unwrap_or_default();
        let text = format!("no connection within the connect timeout of {time}");
        QosError::system(DOING)(io::Error::new(io::ErrorKind::TimedOut, text))
    }
}

const fn flags(readiness: Readiness) -> PollFlags {
    match readiness {
        Readiness::Read => PollFlags::IN,
        Readiness::Write => PollFlags::OUT,
    }
}

/// The addresses of a name; there is at least one.
fn resolve(address: impl ToSocketAddrs, doing: &'static str) -> Result<Vec<SocketAddr>, QosError> {
    let addresses: Vec<_> = address.to_socket_addrs().map_err(QosError::system(doing))?.collect();
    if addresses.is_empty() {
        let none = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
        return Err(QosError::system(doing)(none));
    }
    Ok(addresses)
}

/// Opens a listener at the first address of a name at which `open` succeeds.
///
/// # Errors
/// When an option is not allowed at a listener, the name has no address, or no address can be used: the error of the last one.
pub fn first_listener<L>(
    address: impl ToSocketAddrs,
    options: &QosOptions,
    open: impl Fn(SocketAddr, &QosOptions) -> Result<L, QosError>,
) -> Result<L, QosError> {
    let doing = "cannot listen";
    options.check_listener()?;
    let mut failure = None;
    for address in resolve(address, doing)? {
        match open(address, options) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = Some(error),
        }
    }
    let none = || QosError::system(doing)(io::Error::from(io::ErrorKind::InvalidInput));
    Err(failure.unwrap_or_else(none))
}

/// Addresses in their order, but IPv6 and IPv4 take turns (RFC 8305 section 4).
fn in_turns(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut all = VecDeque::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let of = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| format!("{text}:7").parse().unwrap()).collect()
        };
        let mixed = of(&["[::1]", "[::2]", "[::3]", "192.0.2.1", "192.0.2.2"]);
        assert_eq!(in_turns(mixed), of(&["[::1]", "192.0.2.1", "[::2]", "192.0.2.2", "[::3]"]));
        assert_eq!(in_turns(of(&["192.0.2.1", "[::1]"])), of(&["192.0.2.1", "[::1]"]));
        assert_eq!(in_turns(of(&["192.0.2.1"])), of(&["192.0.2.1"]));
    }
}
