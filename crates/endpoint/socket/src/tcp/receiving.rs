//! Calls that read from a stream.

use super::Inner;
use super::receive_buffer::{ReceiveBuffer, Taken};
use super::redial::Met;
use crate::patience::Until;
use crate::recovery::Admission;
use cutline_signal::frame::End;
use cutline_signal::session::{Direction, Participation};
use cutline_sys::reactor::PollFlags;
use cutline_sys::{lock, now};
use rustix::io::ioctl_fionread;
use rustix::net::RecvFlags;
use std::io;
use std::sync::atomic::Ordering;

impl Inner {
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        if buffer.is_empty() {
            // As of a plain socket, it waits for nothing, not even for the peer to begin.
            return Ok(0);
        }
        let until = self.read_patience.until();
        let Some(recovery) = &self.recovery else {
            self.join(&until)?;
            return self.read_from(&mut lock(&self.receive_buffer), buffer, &until);
        };
        loop {
            recovery.serve(self);
            {
                let mut receive_buffer = lock(&self.receive_buffer);
                // Data received before the loss comes first.
                let left = receive_buffer.take_left(buffer);
                if left > 0 {
                    return Ok(left);
                }
                if recovery.admit(Direction::Receive)? == Admission::Up {
                    let read = self.read_from(&mut receive_buffer, buffer, &until);
                    let is_end = matches!(read, Ok(0));
                    let is_lost = self.notice(read.as_ref().err(), Met::ByCall) || is_end && self.is_lost();
                    if !is_lost {
                        return read;
                    }
                }
            }
            recovery.serve(self);
            recovery.wait(Direction::Receive, until.time(), !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    fn read_from(
        &self,
        receive_buffer: &mut ReceiveBuffer,
        buffer: &mut [u8],
        until: &Until,
    ) -> io::Result<usize> {
        if self.is_reading_over() {
            return Ok(0);
        }
        let in_slices = self.waits_in_slices();
        let flags = if in_slices { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let wait_again = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock if in_slices => until.wait_until_ready(&self.socket, PollFlags::IN),
            _ => until.wait_again(&self.socket, error),
        };
        let Participation::Joined(token) = self.connection.participation() else {
            let length = loop {
                match receive_buffer.read_plain(&self.socket, buffer, flags) {
                    Err(error) => wait_again(error)?,
                    Ok(length) => break length,
                }
            };
            if length == 0 {
                return self.ended();
            }
            self.connection.inbound().on_plain(now(), length as u64);
            return Ok(length);
        };
        loop {
            let taken = receive_buffer.read(&self.socket, buffer, token, flags);
            if self.is_reading_over() {
                return Ok(0);
            }
            let taken = match taken {
                Err(error) => {
                    wait_again(error)?;
                    continue;
                }
                Ok(taken) => taken,
            };
            match taken {
                Taken::Payload { bytes, end } => {
                    self.measure(receive_buffer, end);
                    self.note_read(receive_buffer);
                    if bytes > 0 {
                        return Ok(bytes);
                    }
                }
                Taken::End => return self.ended(),
                control => {
                    self.handle(&control);
                    // It does not make the time longer.
                    if receive_buffer.is_empty() {
                        until.wait(&self.socket)?;
                    }
                }
            }
        }
    }

    /// Notes that the application has read everything, if it has. Only where the service thread has seen data wait, the kernel is asked.
    fn note_read(&self, receive_buffer: &ReceiveBuffer) {
        if receive_buffer.is_empty() && (!self.connection.is_unread() || !self.has_unread_in_kernel()) {
            self.connection.note_read();
        }
    }

    pub(super) fn has_unread_in_kernel(&self) -> bool {
        ioctl_fionread(&*self.socket).is_ok_and(|waiting| waiting > 0)
    }

    /// Measures a message that has ended, if one has.
    pub(super) fn measure(&self, receive_buffer: &mut ReceiveBuffer, end: Option<End>) {
        if let Some(end) = end {
            self.connection.inbound().on_message(now(), receive_buffer.count(), end.sent, end.length);
        }
    }

    pub(super) fn handle(&self, control: &Taken) {
        let at = now();
        match control {
            Taken::Negotiation(message) => {
                self.act(|session, out, inbound| session.on_negotiation(at, message, out, inbound));
            }
            Taken::Report(message) => {
                self.act(|session, out, inbound| session.on_report(at, message, out, inbound));
            }
            Taken::Payload { .. } | Taken::End => {}
        }
    }
}
