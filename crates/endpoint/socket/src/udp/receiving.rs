//! Receiving of a datagram socket: messages, control messages, errors, and the silence of the peer.

use super::Inner;
use super::carrier::DatagramCarrier;
use super::inbox::LONGEST;
use super::reader::{ControlMessage, DatagramReader, Stranger, Taken};
use crate::error::QosError;
use crate::patience::Until;
use crate::signals;
use cutline_direct::DirectInbox;
use cutline_signal::session::{Cause, Direction, Participation, Purpose, SessionEvent};
use cutline_sys::datagrams::Wait;
use cutline_sys::lock;
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_units::{Duration, Instant};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::sync::Weak;
use std::sync::atomic::Ordering;

/// The most datagrams that are handed over by the listener and not taken.
const MOST_EARLY: usize = 128;
/// The most control messages that are taken at a time, by a call that does not wait for messages of the application.
const MOST_CONTROL: usize = 16;
/// The most errors that a call passes over in search of a datagram that came before them.
const MOST_ERRORS: usize = 16;

/// Result of filling the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// Datagrams, perhaps control messages alone.
    Datagrams,
    /// No datagram, now or later: the application has shut the direction down.
    End,
}

impl Inner {
    /// Takes received datagrams while the application does not receive. Returns whether there were any. An error is the application's
    /// to see, with its next call.
    pub(super) fn hear(&self, reader: &mut DatagramReader) -> bool {
        if !reader.is_empty() {
            return false;
        }
        if self.is_watched.load(Ordering::Relaxed) {
            return self.take_control(reader);
        }
        match self.fill(reader, Wait::No) {
            Ok(filled) => filled == Filled::Datagrams,
            Err(error) => {
                self.put_off(&error);
                false
            }
        }
    }

    /// Keeps an error for the next call that finds no datagram: the kernel reports it once. Returns whether it is kept: a
    /// connection that is made again is lost by it, and an error that ends a wait belongs to the call alone.
    fn put_off(&self, error: &io::Error) -> bool {
        let is_of_call = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
        match error.raw_os_error() {
            Some(errno) if self.recovery.is_none() && !is_of_call => {
                self.fault.store(errno, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Takes the datagrams that wait if an error is kept: they came before it, but the kernel reports errors first.
    ///
    /// # Errors
    /// The error, if no datagram waits.
    fn take_fault_behind_datagrams(&self, reader: &mut DatagramReader) -> io::Result<()> {
        let mut further = 0;
        while self.fault.load(Ordering::Relaxed) != 0 && reader.is_empty() {
            match self.fill(reader, Wait::No) {
                Ok(Filled::Datagrams) => {}
                // Another report was refused since.
                Err(error) if further < MOST_ERRORS && self.put_off(&error) => further += 1,
                Ok(Filled::End) | Err(_) => return self.take_fault(),
            }
        }
        Ok(())
    }

    /// The error that was kept for the next call.
    ///
    /// # Errors
    /// That one.
    pub(super) fn take_fault(&self) -> io::Result<()> {
        if self.fault.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match self.fault.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    pub(super) fn recv(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
        self.connection.check_process()?;
        let until = self.patience.until();
        if self.recovery.is_none() {
            return self.recv_until(&mut lock(&self.reader), buffer, &until);
        }
        // Messages received before the loss come first.
        if let Some(message) = self.take(&mut lock(&self.reader), buffer) {
            return Ok(message);
        }
        self.over_any(Direction::Receive, until.time(), || {
            let mut reader = lock(&self.reader);
            if !self.is_up() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            self.recv_until(&mut reader, buffer, &until)
        })
    }

    /// Takes the next message, and notes that the application has read everything, if it has. Only where the service thread has seen a message wait,
    /// the kernel is asked.
    fn take(&self, reader: &mut DatagramReader, buffer: &mut [u8]) -> Option<(usize, Instant)> {
        let message = reader.take(buffer)?;
        let is_waiting = |length| length > 0;
        if reader.is_empty()
            && self.connection.is_unread()
            && !ioctl_fionread(&self.socket).is_ok_and(is_waiting)
        {
            self.connection.note_read();
        }
        Some(message)
    }

    fn recv_until(
        &self,
        reader: &mut DatagramReader,
        buffer: &mut [u8],
        until: &Until,
    ) -> io::Result<(usize, Instant)> {
        loop {
            self.take_early(reader);
            if let Some(message) = self.take(reader, buffer) {
                return Ok(message);
            }
            self.check_place()?;
            let waits = !self.nonblocking.load(Ordering::Relaxed);
            self.take_fault_behind_datagrams(reader)?;
            if !reader.is_empty() {
                continue;
            }
            // A call that looks for signals does not wait in the system call either.
            let may_end = waits
                && (self.recovery.is_some()
                    || self.listener.is_some()
                    || self.is_watching_silence()
                    || signals::looks());
            match self.fill(reader, if may_end { Wait::No } else { Wait::ForOne }) {
                Ok(Filled::End) => {
                    self.check_place()?;
                    return Ok((0, now()));
                }
                Err(error) if may_end && error.kind() == io::ErrorKind::WouldBlock => {
                    self.connection.note_read();
                    if self.wait_for_datagrams(until)? == Filled::End {
                        return Ok((0, now()));
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.connection.note_read();
                    return Err(self.silent().map_or(error, io::Error::from));
                }
                Ok(Filled::Datagrams) => self.silence.store(0, Ordering::Relaxed),
                Err(error) if self.put_off(&error) => continue,
                Err(error) => {
                    until.wait_again(&self.socket, error)?;
                    continue;
                }
            }
            if !reader.is_empty() {
                continue;
            }
            // Control messages alone have come, which do not make the time longer.
            if !may_end {
                until.wait(&self.socket)?;
            }
        }
    }

    /// Returns whether an end that is silent for too long ends a call that receives. Only one that takes part
    /// reports, so that its silence means something; a connection that is made again ends in another way.
    fn is_watching_silence(&self) -> bool {
        self.recovery.is_none() && matches!(self.connection.participation(), Participation::Joined(_))
    }

    /// The error of a call that receives from an end that has been silent for too long.
    fn silent(&self) -> Option<QosError> {
        let silence = self.silence.load(Ordering::Relaxed);
        (silence > 0).then(|| QosError::Silent(Duration::from_nanos(silence)))
    }

    /// Notices that the peer has been silent for so long that nothing more is expected of it, or that it sends again.
    pub(super) fn note_silence(&self, silence: Duration, longest: Duration) {
        let is_over = self.is_watching_silence() && silence >= longest.max(self.longest_silence);
        let before = self.silence.swap(if is_over { silence.as_nanos() } else { 0 }, Ordering::Relaxed);
        if is_over && before == 0 {
            self.connection.tell([SessionEvent::GaveUp { after: silence, cause: Cause::Silence(silence) }]);
        }
    }

    /// Waits with a limit where the kernel cannot detect that the peer is gone, so that the wait would never end.
    fn wait_for_datagrams(&self, until: &Until) -> io::Result<Filled> {
        let mut readable = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP)];
        loop {
            self.check_place()?;
            if !self.is_up() {
                return Err(io::ErrorKind::NotConnected.into());
            }
            if let Some(silent) = self.silent() {
                return Err(silent.into());
            }
            if self.has_early.load(Ordering::SeqCst) {
                return Ok(Filled::Datagrams);
            }
            let left = until.time().map_or(Duration::MAX, |until| until.saturating_since(now()));
            // Another thread takes a connection that is lost down.
            let wait = if self.recovery.is_some() { signals::wait } else { signals::wait_long };
            if wait(&mut readable, left)? {
                // A call that does not wait does not report it.
                let is_over = readable[0].revents().contains(PollFlags::RDHUP);
                self.check_place()?;
                return Ok(if is_over { Filled::End } else { Filled::Datagrams });
            }
            if left.is_zero() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Receives datagrams into an empty reader, measures them, and handles those that are control messages.
    pub(super) fn fill(&self, reader: &mut DatagramReader, wait: Wait) -> io::Result<Filled> {
        let count = match reader.fill(&self.socket, wait) {
            Ok(count) => count,
            Err(error) => return self.shown(error).map(|()| Filled::Datagrams),
        };
        // A direction that was shut down reads like empty datagrams, as many as there is room for.
        if reader.has_only_empty(count) && self.socket.is_shut_down()? {
            return Ok(Filled::End);
        }
        let ((control, strangers), due) = {
            let mut inbound = self.connection.inbound();
            (reader.sort(count, self.connection.participation(), &mut inbound), inbound.feedback_due())
        };
        self.pass_on(strangers);
        self.handle(&control);
        self.feed_back(due);
        // Only an end that takes no part sends something else while this one negotiates.
        if self.connection.participation() == Participation::Joining && !reader.is_empty() {
            self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
        }
        Ok(Filled::Datagrams)
    }

    /// Sends the feedback for the peer's rate control, now or when it is due.
    fn feed_back(&self, due: Instant) {
        if due == Instant::FAR_FUTURE {
            return;
        }
        if due <= now() {
            self.act(|session, out, inbound| session.advance(now(), out, inbound));
        } else {
            self.connection.hasten(due);
        }
    }

    /// Returns whether a message waits in the kernel that is left there for an application which waits for the descriptor.
    pub(super) fn has_message_in_kernel(&self) -> bool {
        let waits = |length| length > 0;
        self.is_watched.load(Ordering::Relaxed) && ioctl_fionread(&self.socket).is_ok_and(waits)
    }

    pub(super) fn handle(&self, messages: &[ControlMessage]) {
        for ControlMessage { at, control, bytes } in messages {
            let mut is_strange = false;
            self.act(|session, out, inbound| {
                is_strange = session.is_of_another(bytes);
                session.on_control(*at, *control, bytes, out, inbound);
            });
            if is_strange {
                self.pass_on(vec![Stranger { from: self.peer, at: *at, bytes: bytes.clone() }]);
            }
        }
    }

    /// Takes control messages that come next, and leaves messages of the application in the kernel, where the descriptor shows
    /// them. They are measured when the application receives them, with the kernel's time of arrival. Returns whether it took
    /// something.
    fn take_control(&self, reader: &mut DatagramReader) -> bool {
        let mut took = false;
        for _ in 0..MOST_CONTROL {
            let participation = self.connection.participation();
            let taken = reader.take_control(&self.socket, participation, &mut self.connection.inbound());
            match taken {
                Ok(Some(taken)) => {
                    took = true;
                    match taken {
                        Taken::Control(message) => self.handle(&[message]),
                        Taken::Stranger(stranger) => self.pass_on(vec![stranger]),
                        Taken::Other => {}
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    if let Err(error) = self.shown(error) {
                        self.put_off(&error);
                        break;
                    }
                }
            }
        }
        // One of the datagrams was a message after all.
        if !reader.is_empty() {
            self.connection.note_pending();
        }
        took
    }

    /// Takes datagrams that were received by the listener's socket. A call that receives looks for them.
    pub(super) fn hand_over(&self, datagrams: impl IntoIterator<Item = (Instant, Vec<u8>)>) {
        let mut early = lock(&self.early);
        early.extend(datagrams);
        early.truncate(MOST_EARLY);
        let has_early = !early.is_empty();
        self.has_early.store(has_early, Ordering::SeqCst);
        drop(early);
        if has_early {
            self.connection.note_pending();
        }
    }

    /// Takes datagrams that were handed over into the reader.
    pub(super) fn take_early(&self, reader: &mut DatagramReader) {
        if !self.has_early.swap(false, Ordering::SeqCst) {
            return;
        }
        let mut found = Vec::new();
        {
            let datagrams = std::mem::take(&mut *lock(&self.early));
            let mut inbound = self.connection.inbound();
            for (at, mut bytes) in datagrams {
                match inbound.on_datagram(at, &bytes, self.connection.participation()) {
                    Purpose::Message(start) => reader.add(at, bytes.split_off(start)),
                    Purpose::Control(control) => found.push(ControlMessage { at, control, bytes }),
                    Purpose::Nothing => {}
                }
            }
        }
        self.handle(&found);
        let due = self.connection.inbound().feedback_due();
        self.feed_back(due);
    }

    /// Gives datagrams of other sessions to the listener. Those from the peer's address come to this socket because it is
    /// connected to that address. When another session has been agreed on there, this one is over.
    fn pass_on(&self, strangers: Vec<Stranger>) {
        let listener = self.listener.as_ref().and_then(Weak::upgrade).filter(|_| !strangers.is_empty());
        if let Some(listener) = listener.filter(|listener| listener.take_strangers(self, strangers)) {
            self.retire(&listener);
        }
    }

    /// Takes the datagrams in the kernel's queue.
    pub(super) fn remaining(&self) -> Vec<Stranger> {
        let at_peer = |bytes: &[u8]| Stranger { from: self.peer, at: now(), bytes: bytes.to_vec() };
        let mut left = Vec::new();
        match &self.socket {
            DatagramCarrier::Udp(socket) => {
                let (mut buffer, mut errors) = (vec![0; LONGEST], 0);
                // An error that the kernel has kept comes once, before waiting datagrams.
                while errors < 2 {
                    match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                        Ok((length, _)) => left.push(at_peer(&buffer[..length])),
                        Err(Errno::AGAIN) => break,
                        Err(_) => errors += 1,
                    }
                }
            }
            DatagramCarrier::Direct(socket) => {
                let mut inbox = DirectInbox::default();
                while inbox.fill(socket, Wait::No).is_ok() {
                    left.extend(inbox.messages().iter().map(|message| at_peer(&message.bytes)));
                }
            }
        }
        left
    }
}
