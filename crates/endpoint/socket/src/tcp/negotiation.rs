//! Negotiation of a stream, by the first call that needs its outcome.

use super::Inner;
use super::receive_buffer::ReceiveBuffer;
use crate::error::QosError;
use crate::patience::Until;
use crate::signals;
use cutline_signal::session::Participation;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_sys::{now, try_lock};
use cutline_units::{Duration, Instant};
use std::io;
use std::sync::atomic::Ordering;

/// Time after which a call looks again while another one negotiates.
const OTHER_CALL: Duration = Duration::from_millis(5);

impl Inner {
    /// Negotiates until it is known whether the peer takes part, or until the deadline of the call.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] at the deadline, and when the socket does not wait. The disagreement of the ends, in each call,
    /// even if the service thread has found it.
    pub(super) fn join(&self, call: &Until) -> Result<(), QosError> {
        let failed = || QosError::system("cannot reach the peer");
        let is_waiting = !self.nonblocking.load(Ordering::Relaxed);
        let since = if is_waiting { now() } else { self.since };
        let until = since.saturating_add(self.patience);
        while self.connection.participation() == Participation::Joining {
            // Another call that waits for the peer negotiates for both.
            let due = match try_lock(&self.receive_buffer) {
                Some(mut receive_buffer) => self.negotiate_until(&mut receive_buffer, until)?,
                None => Some(now().saturating_add(OTHER_CALL)),
            };
            let Some(due) = due else { break };
            let due = call.time().map_or(due, |end| due.min(end));
            if !is_waiting || call.time().is_some_and(|end| now() >= end) {
                return Err(failed()(io::Error::from(io::ErrorKind::WouldBlock)));
            }
            let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
            signals::wait(&mut readable, due.saturating_since(now())).map_err(failed())?;
        }
        self.connection.outcome(self.demands_peer).unwrap_or(Ok(()))
    }

    /// Continues the negotiation with received messages. A begun message of a negotiation has to be complete at `until`. Returns until when to wait
    /// for more; `None` when it is known whether the peer takes part.
    pub(super) fn negotiate_until(
        &self,
        receive_buffer: &mut ReceiveBuffer,
        until: Instant,
    ) -> Result<Option<Instant>, QosError> {
        loop {
            if self.is_reading_over() {
                return Ok(None);
            }
            let due = self.act(|session, out, inbound| session.advance(now(), out, inbound));
            if let Some(outcome) = self.connection.outcome(self.demands_peer) {
                return outcome.map(|()| None);
            }
            match self.negotiate(receive_buffer) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if receive_buffer.is_empty() || now() < until {
                        return Ok(Some(if receive_buffer.is_empty() { due } else { due.min(until) }));
                    }
                    // It has begun like an offer, and has stopped.
                    self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(QosError::system("cannot reach the peer")(error)),
            }
        }
    }

    /// Takes a message of a negotiation from the stream, if one has come; everything else ends the negotiation.
    fn negotiate(&self, receive_buffer: &mut ReceiveBuffer) -> io::Result<()> {
        let message = receive_buffer.negotiation(&self.socket)?;
        self.on_negotiation(message);
        Ok(())
    }

    /// Takes a message of a negotiation, or that something else has come.
    pub(super) fn on_negotiation(&self, message: Option<Vec<u8>>) {
        self.act(|session, out, inbound| match message {
            Some(message) => session.on_negotiation(now(), &message, out, inbound),
            None => session.on_foreign(now(), out, inbound),
        });
    }
}
