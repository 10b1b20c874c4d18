//! The sender of a flow over TCP. It writes the application's data as fast as the kernel's buffer takes them.

use super::{Run, Settings};
use crate::header::{NOTE, Note, Preamble};
use crate::plan::{FlowPlan, TcpOptions};
use crate::report::SenderReport;
use crate::socket::{adopt_connection, connect, refused};
use crate::stream::Outbox;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{now, tcp};
use cutline_transport::app::Write;
use cutline_units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, sockopt};
use std::io;

/// The number of writes to a socket before other flows have their turn.
const TURN: usize = 16;

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    state: State,
    outbox: Outbox,
    /// Bytes that the kernel has accepted.
    accepted: u64,
    /// The last time at which the kernel was queried for the number of sent bytes, and that number.
    left: (Instant, u64),
    /// The interval of these queries; `None` for none.
    ask: Option<Duration>,
    /// The first bytes of an incomplete note.
    note: [u8; NOTE],
    held: usize,
    /// True if the last turn ended while the socket could take more.
    has_more: bool,
    /// True if the application has stopped.
    stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Open,
    /// The sender has written all data and closed its direction.
    Ended,
}

impl Connection {
    /// Connects the flow, or configures the connection that the peer has opened.
    pub(super) fn open(
        plan: &FlowPlan,
        options: &TcpOptions,
        accepted: Option<OwnedFd>,
        settings: &Settings,
        (reactor, number): (&Reactor, u32),
    ) -> Result<Self, String> {
        let (socket, state) = match accepted {
            Some(socket) => {
                adopt_connection(&socket, plan, options)?;
                (socket, State::Open)
            }
            None => (connect(plan, options)?, State::Connecting),
        };
        let preamble = Preamble {
            flow: plan.id,
            notify: plan.app.needs_reliability(),
            reverse: false,
            dscp: plan.dscp,
            receive_buffer: options.receive_buffer.unwrap_or(0),
            token: settings.token,
        };
        // Edge-triggered: the reactor reports once that the socket is writable again after a partial write.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        reactor.add(&socket, number, flags).map_err(refused("cannot poll the socket"))?;
        let mut outbox = Outbox::new(&preamble, options.write_queue);
        if settings.ask.is_some() {
            outbox.remember();
        }
        Ok(Self {
            socket,
            state,
            outbox,
            accepted: 0,
            left: (now(), 0),
            ask: settings.ask,
            note: [0; NOTE],
            held: 0,
            has_more: false,
            stopped: false,
        })
    }

    pub(super) fn deadline(&self) -> Instant {
        match self.ask {
            _ if self.has_more => Instant::ZERO,
            Some(time) if self.state != State::Connecting && self.outbox.has_waiting() => {
                self.left.0.saturating_add(time)
            }
            _ => Instant::FAR_FUTURE,
        }
    }

    /// Returns whether data waits for room in the kernel's buffer.
    pub(super) fn is_blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Queues a write of the application. Returns false if it does not fit and `always` is false.
    pub(super) fn write(&mut self, write: Write, now: Instant, always: bool) -> bool {
        match write {
            Write::Bytes(bytes) => self.outbox.write(bytes, now, always),
            Write::Unlimited => {
                self.outbox.write_unlimited();
                true
            }
        }
    }

    pub(super) fn end_supply(&mut self) {
        self.outbox.end_supply();
        self.stopped = true;
    }

    /// Handles an event of the socket: writable, readable or failed. Returns the newest note that arrived.
    pub(super) fn ready(&mut self, flags: EventFlags) -> Result<Option<Note>, String> {
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) || self.state == State::Connecting {
            sockopt::socket_error(&self.socket).and_then(|result| result).map_err(broken)?;
        }
        if self.state == State::Connecting && flags.contains(EventFlags::OUT) {
            self.state = State::Open;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) { self.read() } else { Ok(None) }
    }

    /// Writes as much as the socket takes.
    pub(super) fn pump(&mut self, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        self.has_more = false;
        if self.state == State::Connecting {
            return Ok(());
        }
        let was_empty = !self.outbox.has_waiting();
        if was_empty {
            self.left = (now(), self.accepted);
        } else if self.ask.is_some_and(|time| now().saturating_since(self.left.0) >= time) {
            self.ask(run, report);
        }
        if self.state == State::Ended {
            return Ok(());
        }
        let written = self.write_out(run, report);
        if was_empty && self.outbox.has_waiting() {
            // Data that finds an empty buffer mostly leaves at once.
            self.ask(run, report);
        }
        written
    }

    fn write_out(&mut self, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        for _ in 0..TURN {
            let now = now();
            let bytes = self.outbox.next(now);
            if bytes.is_empty() {
                if self.stopped {
                    self.end();
                }
                return Ok(());
            }
            match net::send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.accepted += count as u64;
                    run.sent(report, now, self.outbox.taken(count), 0);
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
        }
        self.has_more = true;
        Ok(())
    }

    /// Queries the bytes that have left the kernel's buffer, and records the waits of the messages in it.
    fn ask(&mut self, run: &Run, report: &mut SenderReport) {
        // Without an answer the waits are not measured.
        let not_sent = tcp::tcp_info(&self.socket).map_or(self.accepted, |info| info.not_sent.into());
        let now = now();
        let left = (now, self.accepted.saturating_sub(not_sent));
        let in_window = run.settings.window.contains(now.saturating_since(run.zero));
        self.outbox.left(self.left, left, |wait| {
            if in_window {
                report.buffer_wait.record(wait);
            }
        });
        self.left = left;
    }

    /// Asks the kernel again after the end. Returns true if some of the accepted bytes have not left.
    pub(super) fn drain(&mut self, run: &Run, report: &mut SenderReport) -> bool {
        if !self.outbox.has_waiting() || self.left.1 >= self.accepted {
            return false;
        }
        self.ask(run, report);
        self.left.1 < self.accepted
    }

    /// Adds the kernel's counters to the report and closes the sending direction. The kernel still sends the content of
    /// its buffer.
    pub(super) fn finish(&mut self, report: &mut SenderReport) {
        if let Ok(info) = tcp::tcp_info(&self.socket) {
            report.packets = u64::from(info.data_segments);
            report.retransmissions = u64::from(info.retransmissions);
            report.timeouts = info.timeouts.map(u64::from);
            report.tcp = Some(info);
        }
        self.end();
    }

    fn end(&mut self) {
        self.state = State::Ended;
        // A lost connection needs no shutdown.
        let _gone = net::shutdown(&self.socket, Shutdown::Write);
    }

    fn read(&mut self) -> Result<Option<Note>, String> {
        let mut newest = None;
        loop {
            match net::recv(&self.socket, &mut self.note[self.held..], RecvFlags::empty()) {
                Ok((0, _)) if self.state == State::Ended => return Ok(newest),
                Ok((0, _)) => return Err("the receiver has closed the connection".to_owned()),
                Ok((count, _)) => self.held += count,
                Err(Errno::AGAIN) => return Ok(newest),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
            if self.held == NOTE {
                newest = Some(Note::read(self.note));
                self.held = 0;
            }
        }
    }
}

fn broken(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}
