//! Calls that write to a stream.

use super::Inner;
use super::redial::Met;
use super::send_buffer::SendBuffer;
use crate::recovery::Admission;
use cutline_signal::session::{Direction, Participation};
use cutline_sys::{lock, now};
use std::io;
use std::sync::atomic::Ordering;

impl Inner {
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        let Some(recovery) = &self.recovery else { return self.write_first(bytes) };
        let until = self.write_patience.until();
        loop {
            recovery.serve(self);
            {
                let mut send_buffer = lock(&self.send_buffer);
                if recovery.admit(Direction::Send)? == Admission::Up {
                    let written = self.write_to(&mut send_buffer, bytes);
                    if !self.notice(written.as_ref().err(), Met::ByCall) {
                        return written;
                    }
                }
            }
            recovery.serve(self);
            recovery.wait(Direction::Send, until.time(), !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    /// Writes to a stream of which it may be unknown whether the peer takes part.
    fn write_first(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.connection.participation() == Participation::Joining {
            if bytes.is_empty() {
                // As of a plain socket, it waits for nothing.
                return Ok(0);
            }
            // Who reads at the same time waits for the first bytes.
            let has_begun =
                self.receive_buffer.try_lock().is_ok_and(|receive_buffer| !receive_buffer.is_empty());
            if !self.expects_peer && !has_begun {
                // No question has come whether this end is a QoS socket, so the other one is none.
                self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
            }
            self.join(&self.write_patience.until())?;
        }
        if let Some(Err(disagreement)) = self.connection.outcome(self.demands_peer) {
            return Err(disagreement.into());
        }
        self.write_to(&mut lock(&self.send_buffer), bytes)
    }

    fn write_to(&self, send_buffer: &mut SendBuffer, bytes: &[u8]) -> io::Result<usize> {
        let until = (!self.nonblocking.load(Ordering::Relaxed)).then(|| self.write_patience.until());
        let (until, participation) = (until.as_ref(), self.connection.participation());
        let written = match participation {
            Participation::Joined(token) => {
                send_buffer.write(&self.socket, bytes, (&self.connection, token), until)
            }
            Participation::Joining | Participation::Alone => {
                send_buffer.write_plain(&self.socket, bytes, &self.connection, until)
            }
        };
        // A call that reads at the same time would take it for the end of the stream.
        let failure = send_buffer.take_failure().map(io::Error::from);
        self.notice(failure.as_ref(), Met::ByControl);
        if !matches!(participation, Participation::Joined(_)) {
            return written.inspect(|written| self.connection.outbound().on_send(now(), *written as u64));
        }
        // The message may have kept control messages back.
        let later = send_buffer.send_control(&self.socket, &self.connection);
        if written.is_ok() {
            self.notice(later.err().as_ref(), Met::ByControl);
        }
        written
    }
}
