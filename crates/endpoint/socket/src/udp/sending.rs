//! Sending of a datagram socket: pacing, room in the send queue, and looks for feedback meanwhile.

use super::errors::{Judged, count};
use super::{Attempt, Inner};
use crate::gate::Passage;
use crate::options::Pacing;
use crate::recovery::Admission;
use crate::signals::{self, CountedWait, sleep};
use cutline_signal::frame::{DATAGRAM_HEADER, datagram_header};
use cutline_signal::session::{Direction, Outbound, Participation};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use rustix::io::Errno;
use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time;

/// The longest time between looks for feedback, while sending waits for its turn under rate control and another thread
/// receives.
const LONGEST_LOOK: Duration = Duration::from_millis(5);
/// The longest time between checks for another limit of the host.
const LONGEST_LIMITED: Duration = Duration::from_millis(50);
/// Time after which a call that does not wait may try again, if messages of others were due first.
const NEXT_TURN: Duration = Duration::from_millis(1);
/// Interval of checks for feedback while the round-trip time is unknown.
const FIRST_LOOKS: Duration = Duration::from_millis(10);

impl Inner {
    pub(super) fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        self.over_any(Direction::Send, None, || {
            self.check_place()?;
            self.take_fault()?;
            let begun = signals::keep_begin(now());
            let out = self.may_send(message)?;
            let (out, now) = self.pace(out)?;
            let (out, now) = self.take_turn(out, now, message.len(), (begun, true))?;
            let waits = !self.nonblocking.load(Ordering::Relaxed);
            let sent = self.transmit(out, now, message, waits)?;
            signals::end_message();
            Ok(sent)
        })
    }

    pub(super) fn try_send(&self, message: &[u8]) -> io::Result<Attempt> {
        self.connection.check_process()?;
        self.over_any(Direction::Send, Some(Instant::ZERO), || self.try_to_transmit(message))
    }

    /// Makes a call of a direction, over a new connection if the one that holds is lost.
    pub(super) fn over_any<T>(
        &self,
        direction: Direction,
        until: Option<Instant>,
        mut call: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(recovery) = &self.recovery else { return call() };
        loop {
            recovery.serve(self);
            if recovery.admit(direction)? == Admission::Up {
                let outcome = call();
                if outcome.is_ok() || recovery.is_up() {
                    return outcome;
                }
                recovery.serve(self);
            }
            recovery.wait(direction, until, !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    /// Checks that a message is not too long.
    fn may_send(&self, message: &[u8]) -> io::Result<MutexGuard<'_, Outbound>> {
        let out = self.connection.outbound();
        if let Some(longest) = out.longest().filter(|longest| message.len() as u64 > *longest) {
            let text = format!("a message of {} B: agreed on are at most {longest} B", message.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(out)
    }

    fn try_to_transmit(&self, message: &[u8]) -> io::Result<Attempt> {
        self.check_place()?;
        self.take_fault()?;
        let (mut out, now) = (self.may_send(message)?, now());
        let mut wait = out.ready_at(now).saturating_since(now);
        if !wait.is_zero() && out.has_rate_control() {
            // Feedback may allow it, that has come or that comes.
            out = self.with_feedback(out);
            wait = out.ready_at(now).saturating_since(now).min(LONGEST_LOOK);
        }
        if out.limit().is_some() {
            // It may be raised.
            wait = wait.min(LONGEST_LIMITED);
        }
        if !wait.is_zero() {
            out.on_refused(now);
        }
        if !wait.is_zero() && self.pacing != Pacing::Count {
            self.connection.feed_back(|feedback| feedback.pacing_waits += 1);
            return Ok(Attempt::Early(time::Duration::from_nanos(wait.as_nanos())));
        }
        if !wait.is_zero() {
            self.connection.feed_back(|feedback| feedback.unpaced += 1);
        }
        match self.take_turn(out, now, message.len(), (now, false)) {
            Ok((out, now)) => self.transmit(out, now, message, false).map(Attempt::Sent),
            Err(_) => Ok(Attempt::Early(time::Duration::from_nanos(NEXT_TURN.as_nanos()))),
        }
    }

    /// Waits until the scheduler of the managed sockets of this process selects the message.
    fn take_turn<'c>(
        &'c self,
        out: MutexGuard<'c, Outbound>,
        now: Instant,
        length: usize,
        (begun, may_wait): (Instant, bool),
    ) -> io::Result<(MutexGuard<'c, Outbound>, Instant)> {
        let Some(allocator) = &self.connection.allocator else { return Ok((out, now)) };
        let Some(gate) = allocator.gate().filter(|_| self.pacing != Pacing::Count) else {
            return Ok((out, now));
        };
        let deadline = out.max_delay().map_or(Instant::FAR_FUTURE, |delay| begun.saturating_add(delay));
        let waits = may_wait && self.pacing == Pacing::Block && !self.nonblocking.load(Ordering::Relaxed);
        drop(out);
        let bytes = allocator.on_wire(length as u64);
        let pass = |waits| gate.pass(bytes, deadline, waits, || self.is_up());
        let mut passage = pass(false)?;
        let (mut out, mut now) = (self.connection.outbound(), cutline_sys::now());
        if passage == Passage::Later && waits {
            // The application is held back, also in a call that is interrupted.
            out.hold(now);
            drop(out);
            let since = now;
            let passed = pass(true);
            (out, now) = (self.connection.outbound(), cutline_sys::now());
            out.release(now);
            self.connection.feed_back(|feedback| {
                feedback.pacing_waits += u64::from(signals::counts(CountedWait::Pacing));
                feedback.waited += now.saturating_since(since);
            });
            passage = passed?;
        }
        if passage == Passage::Later {
            out.on_refused(now);
            drop(out);
            self.connection.feed_back(|feedback| feedback.pacing_waits += 1);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok((out, now))
    }

    /// Sends a message. While it waits for room in the send queue, the application is held back.
    fn transmit<'c>(
        &'c self,
        mut out: MutexGuard<'c, Outbound>,
        mut now: Instant,
        message: &[u8],
        waits: bool,
    ) -> io::Result<usize> {
        loop {
            if !self.is_up() {
                // The connection was lost while this has waited for its turn: the caller looks.
                return Err(io::ErrorKind::NotConnected.into());
            }
            let sent = match self.connection.participation() {
                Participation::Joining | Participation::Alone => {
                    self.try_to_send(|| self.socket.send_now(message))
                }
                Participation::Joined(token) => {
                    let header = datagram_header(token, out.number(), now, out.stated_rtt());
                    let sent = self.try_to_send(|| self.socket.send_parts(&header, message));
                    sent.map(|sent| sent.saturating_sub(DATAGRAM_HEADER))
                }
            };
            let error = match sent {
                Ok(sent) => {
                    self.release(&mut out, now);
                    out.on_send(now, sent as u64);
                    if let Some(time) = time_of_feedback(&out) {
                        self.connection.hasten(now.saturating_add(time));
                    }
                    return Ok(sent);
                }
                Err(error) => error,
            };
            let errno = Errno::from_io_error(&error);
            self.connection.feed_back(|feedback| match errno {
                Some(Errno::NOBUFS) => feedback.no_buffers += 1,
                Some(Errno::AGAIN) if signals::counts(CountedWait::Room) => feedback.queue_full += 1,
                _ => {}
            });
            if errno != Some(Errno::AGAIN) {
                return Err(error);
            }
            if !self.is_held.swap(true, Ordering::Relaxed) {
                out.hold(now);
            }
            if !waits {
                return Err(error);
            }
            drop(out);
            let since = cutline_sys::now();
            let waited = self.wait_for_room();
            (out, now) = (self.connection.outbound(), cutline_sys::now());
            self.release(&mut out, now);
            self.connection.feed_back(|feedback| feedback.waited += now.saturating_since(since));
            waited?;
        }
    }

    /// The application that was held back by a full queue is so no longer.
    fn release(&self, out: &mut Outbound, now: Instant) {
        if self.is_held.load(Ordering::Relaxed) {
            self.is_held.store(false, Ordering::Relaxed);
            out.release(now);
        }
    }

    /// Waits until the send queue has room.
    fn wait_for_room(&self) -> io::Result<()> {
        let mut writable = [PollFd::new(&self.socket, PollFlags::OUT)];
        while self.is_up() {
            if signals::wait_long(&mut writable, Duration::MAX)? {
                break;
            }
        }
        Ok(())
    }

    /// Notices that there is room for an application that does not wait.
    pub(super) fn notice_room(&self, now: Instant) {
        if self.is_held.load(Ordering::Relaxed)
            && self.nonblocking.load(Ordering::Relaxed)
            && wait(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Duration::ZERO).unwrap_or(true)
        {
            self.release(&mut self.connection.outbound(), now);
        }
    }

    /// Makes a call that sends a datagram. Events that a plain socket does not see are no errors.
    pub(super) fn try_to_send<T>(&self, call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let outcome = self.errors.retry((&self.socket, &self.connection), call);
        if let Err(error) = &outcome {
            self.notice(error);
        }
        outcome
    }

    /// The error of a call that receives, if the application is to see it.
    pub(super) fn shown(&self, error: io::Error) -> io::Result<()> {
        match self.errors.judge(&self.socket, error) {
            Judged::Shown(error) => {
                self.notice(&error);
                Err(error)
            }
            Judged::Hidden(messages, _) => {
                count(&self.connection, messages);
                Ok(())
            }
        }
    }

    /// Waits until the next message may be sent, as the application has chosen.
    fn pace<'c>(
        &'c self,
        mut out: MutexGuard<'c, Outbound>,
    ) -> io::Result<(MutexGuard<'c, Outbound>, Instant)> {
        let start = now();
        let (mut time, mut looked) = (start, false);
        let add_wait = |until: Instant| {
            let waited = until.saturating_since(start);
            if !waited.is_zero() {
                self.connection.feed_back(|feedback| {
                    feedback.pacing_waits += u64::from(signals::counts(CountedWait::Pacing));
                    feedback.waited += waited;
                });
            }
        };
        loop {
            let ready = out.ready_at(time);
            if ready <= time {
                break;
            }
            let is_controlled = out.has_rate_control();
            if is_controlled && !looked {
                // Feedback that has come may allow it.
                (out, looked) = (self.with_feedback(out), true);
                continue;
            }
            let waits = self.pacing == Pacing::Block && !self.nonblocking.load(Ordering::Relaxed);
            if self.pacing == Pacing::Count {
                out.on_refused(time);
                self.connection.feed_back(|feedback| feedback.unpaced += 1);
                break;
            }
            if !waits {
                out.on_refused(time);
                self.connection.feed_back(|feedback| feedback.pacing_waits += 1);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            out.hold(time);
            let is_limited = out.limit().is_some();
            drop(out);
            let longest = if is_limited { LONGEST_LIMITED } else { Duration::MAX };
            let wait = ready.saturating_since(time).min(longest);
            let waited = if is_controlled { self.sleep_or_hear(wait) } else { sleep(wait) };
            out = self.connection.outbound();
            time = now();
            out.release(time);
            // A call that is interrupted has waited, too.
            waited.inspect_err(|_| add_wait(time))?;
        }
        add_wait(time);
        Ok((out, time))
    }

    /// Takes the feedback that has come.
    fn with_feedback<'c>(&'c self, out: MutexGuard<'c, Outbound>) -> MutexGuard<'c, Outbound> {
        drop(out);
        if let Ok(mut reader) = self.reader.try_lock() {
            self.hear(&mut reader);
        }
        self.connection.outbound()
    }

    /// Waits for the turn of a message, at most so long: feedback that comes may bring it forward. While another thread receives,
    /// it is that one that gets the feedback.
    fn sleep_or_hear(&self, wait_for: Duration) -> io::Result<()> {
        let wait_for = wait_for.min(LONGEST_LOOK);
        if let Ok(mut reader) = self.reader.try_lock()
            && reader.is_empty()
        {
            let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
            match signals::wait(&mut readable, wait_for) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
                Err(_) | Ok(false) => return Ok(()),
                Ok(true) if self.hear(&mut reader) => return Ok(()),
                Ok(true) => {}
            }
        }
        sleep(wait_for)
    }
}

/// Returns the time from now until the next check for feedback; `None` if none is expected.
pub(super) fn time_of_feedback(out: &Outbound) -> Option<Duration> {
    let rtt = out.stated_rtt().filter(|_| out.awaits_feedback())?;
    Some(if rtt.is_zero() { FIRST_LOOKS } else { rtt })
}
