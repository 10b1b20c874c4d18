//! A flow over TCP: the kernel's buffer is kept as full as the application has data for, and no fuller.

use super::Run;
use crate::header::{NOTE, Note, Preamble};
use crate::plan::{FlowPlan, TcpOptions};
use crate::report::SenderReport;
use crate::socket::{connect, refused};
use crate::stream::Outbox;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_sys::{now, tcp};
use cutline_transport::app::Write;
use cutline_units::Instant;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, sockopt};
use std::io;

/// How often a socket is written before others have their turn.
const TURN: usize = 16;

#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    state: State,
    outbox: Outbox,
    /// The beginning of a note whose end has not come.
    note: [u8; NOTE],
    held: usize,
    /// The socket would have taken more, and others had their turn.
    has_more: bool,
    /// The application has stopped.
    stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connecting,
    Open,
    /// All has been written, and the other end has been told.
    Ended,
}

impl Connection {
    pub(super) fn open(
        plan: &FlowPlan,
        options: &TcpOptions,
        reactor: &Reactor,
        number: u32,
    ) -> Result<Self, String> {
        let socket = connect(plan, options)?;
        let preamble = Preamble {
            flow: plan.id,
            notify: plan.app.needs_reliability(),
            dscp: plan.dscp,
            receive_buffer: options.receive_buffer.unwrap_or(0),
        };
        // Edge-triggered: told once that it takes more, after it took less than it was offered.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        reactor.add(&socket, number, flags).map_err(refused("the socket cannot be waited for"))?;
        Ok(Self {
            socket,
            state: State::Connecting,
            outbox: Outbox::new(&preamble, options.write_queue),
            note: [0; NOTE],
            held: 0,
            has_more: false,
            stopped: false,
        })
    }

    pub(super) fn deadline(&self) -> Instant {
        if self.has_more { Instant::ZERO } else { Instant::FAR_FUTURE }
    }

    /// Takes what the application writes; false if it has no room. `always`: it has.
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

    /// The socket takes more, has brought a note, or has failed. The newest note, if one came.
    pub(super) fn ready(&mut self, flags: EventFlags) -> Result<Option<Note>, String> {
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) || self.state == State::Connecting {
            sockopt::socket_error(&self.socket).and_then(|result| result).map_err(broken)?;
        }
        if self.state == State::Connecting && flags.contains(EventFlags::OUT) {
            self.state = State::Open;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP) { self.read() } else { Ok(None) }
    }

    /// Hands over what the socket takes.
    pub(super) fn pump(&mut self, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        self.has_more = false;
        if self.state != State::Open {
            return Ok(());
        }
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
                Ok(count) => run.sent(report, now, self.outbox.taken(count), 0),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken(errno)),
            }
        }
        self.has_more = true;
        Ok(())
    }

    /// What the kernel has counted. What is in its buffer still leaves.
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
        // A connection that is gone needs no end.
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
