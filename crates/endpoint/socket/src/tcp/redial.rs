//! Noticing that a stream is broken, and connecting its socket again.
//!
//! The same socket connects again: it keeps its number, its marks and its other settings, and callers that wait for its descriptor
//! wait for the new connection, which has another local port.

use super::dial::is_connected;
use super::probe::Question;
use super::receive_buffer::{ReceiveBuffer, Taken};
use super::send_buffer::SendBuffer;
use super::{Inner, kernel};
use crate::error::QosError;
use crate::options::QosOptions;
use crate::recovery::{Candidate, Reconnect};
use crate::session::{Role, begin};
use crate::settings::Settings;
use cutline_signal::negotiation::{Carrier, OneSidedReason};
use cutline_signal::session::{Cause, SessionEvent};
use cutline_sys::lock;
use cutline_sys::now;
use cutline_sys::tcp::tcp_info;
use cutline_translate::Protocol;
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use rustix::net::{SendFlags, connect, connect_unspec};
use std::io;
use std::net::Shutdown;
use std::sync::atomic::Ordering;

/// Number of unanswered probes from which on the path is silent. A probe on its way is one.
const UNANSWERED: u8 = 2;

/// An attempt to connect again.
pub enum Redial {
    /// The peer is probed, so that it expects the new connection.
    Asking(Question),
    Connecting,
    Negotiating(Box<Negotiating>),
}

/// A negotiation over the new connection.
pub struct Negotiating {
    candidate: Candidate,
    receive_buffer: ReceiveBuffer,
    /// Data that wait to be sent.
    pending: Vec<u8>,
}

/// Caller that has met an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    ByCall,
    ByControl,
}

/// Returns whether a stream is broken after an error. One that the peer has closed in order is not,
/// until the application writes.
fn is_broken(error: &io::Error, met: Met) -> bool {
    match Errno::from_io_error(error) {
        Some(Errno::PIPE) => met == Met::ByCall,
        Some(errno) => [
            Errno::CONNRESET,
            Errno::CONNABORTED,
            Errno::TIMEDOUT,
            Errno::HOSTUNREACH,
            Errno::HOSTDOWN,
            Errno::NETUNREACH,
            Errno::NETDOWN,
            Errno::NETRESET,
            Errno::CONNREFUSED,
            Errno::NOPROTOOPT,
            Errno::OPNOTSUPP,
        ]
        .contains(&errno),
        None => error.kind() == io::ErrorKind::UnexpectedEof,
    }
}

/// The settings of a stream that is to be connected.
fn settings(options: &QosOptions) -> Result<Settings, QosError> {
    Settings::new(options, Protocol::Tcp, &begin(options, &Role::Alone, Carrier::Stream)?)
}

impl Inner {
    /// Takes notice of an error. Returns whether the connection is being made again because of it.
    pub(super) fn notice(&self, error: Option<&io::Error>, met: Met) -> bool {
        let Some(error) = error.filter(|error| is_broken(error, met)) else { return false };
        if let Some(recovery) = &self.recovery {
            let is_lost = recovery.break_off(|| Cause::Failed(error.to_string()));
            self.connection.hasten(now());
            return is_lost;
        }
        // The kernel reports it once, so the application would not be notified.
        if let (Met::ByControl, Some(errno)) = (met, error.raw_os_error()) {
            self.fault.store(errno, Ordering::Relaxed);
        }
        false
    }

    /// Returns whether an end of the stream is the error that a call which writes has met: the kernel reports
    /// it once.
    pub(super) fn is_lost(&self) -> bool {
        if tcp_info(&self.socket).is_ok_and(|info| info.is_closed) {
            // A writer sees it while this is locked, and no longer waits for the kernel.
            drop(lock(&self.send_buffer));
        }
        self.recovery.as_ref().is_some_and(|recovery| !recovery.is_up())
    }

    /// Returns the meaning of the end of the stream: an error if the thread that serves connections has met
    /// one.
    pub(super) fn ended(&self) -> io::Result<usize> {
        match self.fault.swap(0, Ordering::Relaxed) {
            0 => Ok(0),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Notices that the peer has stopped to acknowledge data, or has resumed.
    pub(super) fn listen(&self, now: Instant) {
        let Ok(info) = tcp_info(&self.socket) else { return };
        let mut unheard = lock(&self.unheard);
        // Without a route nothing is in flight, and data wait. A peer without room for them answers each probe.
        let is_unrouted = info.not_sent > 0 && info.unanswered_probes >= UNANSWERED;
        if info.unacknowledged == 0 && !is_unrouted {
            *unheard = None;
        } else {
            let since = *unheard.get_or_insert(now);
            let acknowledged = now.as_nanos().saturating_sub(info.since_acknowledgement.as_nanos());
            *unheard = Some(since.max(Instant::from_nanos(acknowledged)));
        }
        let silence = unheard.map_or(Duration::ZERO, |since| now.saturating_since(since));
        drop(unheard);
        let (mut limit, mut is_lost) = (Duration::MAX, false);
        self.connection.with_session(
            |session, out, _| {
                limit = session.longest_silence();
                if silence < limit {
                    // One that is made again is found in another way.
                    if self.recovery.is_none() {
                        session.find(now);
                    }
                } else if self.recovery.is_none() {
                    session.lose(now, Cause::Silence(silence), out.number());
                } else {
                    is_lost = true;
                }
            },
            |message| self.connection.queue(message),
            |_| {},
        );
        if let Some(recovery) = self.recovery.as_ref().filter(|_| is_lost) {
            recovery.break_off(|| Cause::Silence(silence));
            self.connection.hasten(now);
        }
    }

    /// Begins to connect the socket again, which has no connection.
    fn dial(&self, options: &QosOptions) -> Result<Redial, QosError> {
        settings(options)?.apply(&self.socket, self.peer)?;
        let failed = || QosError::system("cannot connect");
        let _none = connect_unspec(&self.socket);
        self.socket.set_nonblocking(true).map_err(failed())?;
        let begun = connect(&self.socket, &self.peer);
        self.socket.set_nonblocking(self.nonblocking.load(Ordering::Relaxed)).map_err(failed())?;
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Redial::Connecting),
            Err(errno) => Err(failed()(errno.into())),
        }
    }

    /// Continues a negotiation. Returns its result; `None` while it is under way.
    fn negotiate_again(&self, negotiating: &mut Negotiating) -> Option<Result<(), QosError>> {
        let failed = || QosError::system("cannot reach the peer");
        let Negotiating { candidate, receive_buffer, pending } = negotiating;
        loop {
            candidate.act(|session, out, inbound| session.advance(now(), out, inbound));
            while let Some(message) = candidate.session.transmit() {
                pending.extend(message);
            }
            while !pending.is_empty() {
                match kernel::send(&self.socket, [pending, &[]], SendFlags::DONTWAIT) {
                    Ok(sent) => drop(pending.drain(..sent)),
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    Err(errno) => return Some(Err(failed()(errno.into()))),
                }
            }
            if let Some(outcome) = candidate.outcome() {
                return Some(outcome);
            }
            match receive_buffer.negotiation(&self.socket) {
                Ok(Some(message)) => {
                    candidate
                        .act(|session, out, inbound| session.on_negotiation(now(), &message, out, inbound));
                }
                Ok(None) => candidate.act(|session, out, inbound| session.on_foreign(now(), out, inbound)),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    return None;
                }
                Err(error) => return Some(Err(failed()(error))),
            }
        }
    }
}

impl Reconnect for Inner {
    type Attempt = Redial;

    fn take_down(&self, cause: &Cause) -> bool {
        // Who waits in the kernel comes out.
        let _gone = self.socket.shutdown(Shutdown::Both);
        let (Ok(mut receive_buffer), Ok(mut send_buffer)) =
            (self.receive_buffer.try_lock(), self.send_buffer.try_lock())
        else {
            return false;
        };
        for taken in receive_buffer.salvage(&self.socket, self.connection.participation().token()) {
            match taken {
                Taken::Payload { end: Some(end), .. } => self.measure(&mut receive_buffer, Some(end)),
                Taken::Payload { bytes, end: None } if !self.demands_peer => {
                    self.connection.inbound().on_plain(now(), bytes as u64);
                }
                control => self.handle(&control),
            }
        }
        let is_within_message = send_buffer.is_within_message();
        *send_buffer = SendBuffer::default();
        *lock(&self.unheard) = None;
        self.connection.with_session(
            |session, out, _| session.lose(now(), cause.clone(), out.number() - u64::from(is_within_message)),
            |_| {},
            |_| {},
        );
        let _none = connect_unspec(&self.socket);
        true
    }

    fn attempt(&self, options: &QosOptions) -> Result<Redial, QosError> {
        if let Some(asker) = &self.asker {
            let asker = asker.try_clone().map_err(QosError::system("cannot open a socket"))?;
            return Ok(Redial::Asking(Question::new(asker, options)?));
        }
        self.dial(options)
    }

    fn advance(&self, attempt: &mut Redial, options: &QosOptions) -> Option<Result<(), QosError>> {
        match attempt {
            Redial::Asking(question) => {
                if !question.advance()? {
                    return Some(Err(QosError::NoPeer(OneSidedReason::NoAnswer)));
                }
                match self.dial(options) {
                    Ok(dialled) => *attempt = dialled,
                    Err(error) => return Some(Err(error)),
                }
                None
            }
            Redial::Connecting => {
                if let Err(error) = is_connected(&self.socket)? {
                    return Some(Err(error));
                }
                let role = if self.demands_peer { Role::Initiator } else { Role::Alone };
                match Candidate::new(options, &role, Carrier::Stream) {
                    Ok(candidate) => {
                        let (receive_buffer, pending) = (ReceiveBuffer::default(), Vec::new());
                        let mut negotiating = Box::new(Negotiating { candidate, receive_buffer, pending });
                        let outcome = self.negotiate_again(&mut negotiating);
                        *attempt = Redial::Negotiating(negotiating);
                        outcome
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            Redial::Negotiating(negotiating) => self.negotiate_again(negotiating),
        }
    }

    fn take_up(&self, attempt: Redial, after: Duration) -> Result<(), Redial> {
        let (Ok(mut receive_buffer), Ok(mut send_buffer)) =
            (self.receive_buffer.try_lock(), self.send_buffer.try_lock())
        else {
            return Err(attempt);
        };
        let Redial::Negotiating(negotiating) = attempt else { return Err(attempt) };
        let Negotiating { candidate, receive_buffer: received, pending } = *negotiating;
        receive_buffer.succeed(received);
        *send_buffer = SendBuffer::new(pending);
        // The kernel has the rate of the connection before.
        self.paced.store(0, Ordering::Relaxed);
        self.pace(&candidate.out);
        self.connection.replace(candidate, after, self.socket.local_addr().ok());
        Ok(())
    }

    fn tell(&self, event: SessionEvent) {
        self.connection.tell([event]);
    }
}
