//! Noticing that the peer of a datagram socket is gone, and beginning a session with it again.
//!
//! The same socket is connected again: it keeps its number, its marks and its other settings. It gets another local port, since the
//! peer may still have a connection of the one before.

use super::Inner;
use super::errors::Judged;
use super::reader::ControlMessage;
use crate::error::QosError;
use crate::options::QosOptions;
use crate::recovery::{Candidate, Reconnect};
use crate::session::Role;
use crate::settings::Settings;
use cutline_signal::negotiation::Carrier;
use cutline_signal::session::{Cause, Participation, SessionEvent};
use cutline_sys::datagrams::Wait;
use cutline_sys::now;
use cutline_translate::Protocol;
use cutline_units::Duration;
use rustix::io::Errno;
use std::io;

/// Number of batches of datagrams that are taken at a time.
const BATCHES: usize = 1024;

/// Returns whether an error that the application would see means that the peer cannot be reached.
fn is_hard(error: &io::Error) -> bool {
    let Some(errno) = Errno::from_io_error(error) else { return false };
    [
        Errno::CONNREFUSED,
        Errno::CONNRESET,
        Errno::HOSTUNREACH,
        Errno::HOSTDOWN,
        Errno::NETUNREACH,
        Errno::NETDOWN,
        // The interface of frames is gone.
        Errno::NODEV,
        Errno::NXIO,
        Errno::NOPROTOOPT,
        Errno::OPNOTSUPP,
    ]
    .contains(&errno)
}

impl Inner {
    /// Takes notice of an error that the application would see. Returns whether a new session is begun because of it. An end that has
    /// never taken part has none.
    pub(super) fn notice(&self, error: &io::Error) -> bool {
        let Some(recovery) = self.recovery.as_ref().filter(|_| is_hard(error)) else { return false };
        let is_lost = matches!(self.connection.participation(), Participation::Joined(_))
            && recovery.break_off(|| Cause::Failed(error.to_string()));
        if is_lost {
            self.connection.hasten(now());
        }
        is_lost
    }

    /// Takes received datagrams for a new session.
    fn receive_for(&self, candidate: &mut Candidate) -> Result<(), QosError> {
        let failed = || QosError::system("cannot reach the peer");
        // A call looks whether there is a connection.
        let Ok(mut reader) = self.reader.try_lock() else { return Ok(()) };
        let count = match reader.fill(&self.socket, Wait::No) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => match self.errors.judge(&self.socket, error) {
                Judged::Shown(error) => return Err(failed()(error)),
                Judged::Hidden(..) => return Ok(()),
            },
        };
        let participation = candidate.session.participation();
        let (found, _) = reader.sort(count, participation, &mut candidate.inbound);
        for ControlMessage { at, control, bytes } in found {
            candidate.act(|session, out, inbound| session.on_control(at, control, &bytes, out, inbound));
        }
        if reader.forget() && candidate.session.is_joining() {
            // Only an end that takes no part sends something else.
            candidate.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
        }
        Ok(())
    }
}

impl Reconnect for Inner {
    type Attempt = Box<Candidate>;

    fn take_down(&self, cause: &Cause) -> bool {
        let Ok(mut reader) = self.reader.try_lock() else { return false };
        let participation = self.connection.participation();
        let mut control = Vec::new();
        reader.keep();
        for _ in 0..BATCHES {
            match reader.fill(&self.socket, Wait::No) {
                Ok(count) => {
                    control.extend(reader.sort(count, participation, &mut self.connection.inbound()).0);
                    reader.keep();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Each call takes a queued error.
                Err(error) => drop(self.errors.judge(&self.socket, error)),
            }
        }
        self.handle(&control);
        // No thread sends any longer once this has locked the session and its directions.
        self.connection.with_session(
            |session, out, _| session.lose(now(), cause.clone(), out.number()),
            |_| {},
            |_| {},
        );
        let _none = self.socket.disconnect();
        true
    }

    fn attempt(&self, options: &QosOptions) -> Result<Box<Candidate>, QosError> {
        let candidate = Candidate::new(options, &Role::Initiator, Carrier::Datagrams)?;
        Settings::new(options, Protocol::Udp, &candidate.session)?.apply_to(&self.socket, self.peer)?;
        self.socket.connect_again(self.peer).map_err(QosError::system("cannot connect"))?;
        Ok(Box::new(candidate))
    }

    fn advance(&self, candidate: &mut Box<Candidate>, _: &QosOptions) -> Option<Result<(), QosError>> {
        if !candidate.session.is_joining() {
            // Later datagrams are the application's.
            return candidate.outcome();
        }
        if let Err(error) = self.receive_for(candidate) {
            return Some(Err(error));
        }
        candidate.act(|session, out, inbound| session.advance(now(), out, inbound));
        while let Some(message) = candidate.session.transmit() {
            match self.errors.retry((&self.socket, &self.connection), || self.socket.send(&message)) {
                Err(error) if is_hard(&error) => {
                    return Some(Err(QosError::system("cannot reach the peer")(error)));
                }
                // Lost messages are sent again.
                Ok(_) | Err(_) => {}
            }
        }
        candidate.outcome()
    }

    fn take_up(&self, candidate: Box<Candidate>, after: Duration) -> Result<(), Box<Candidate>> {
        let Ok(_reader) = self.reader.try_lock() else { return Err(candidate) };
        self.connection.replace(*candidate, after, self.socket.local_addr().ok());
        Ok(())
    }

    fn tell(&self, event: SessionEvent) {
        self.connection.tell([event]);
    }
}
