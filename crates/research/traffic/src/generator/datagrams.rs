//! The sender of a flow over a datagram transport. It sends each packet of the state machine as a datagram with the
//! time of sending.

use super::shaper::{Shaper, Waiting};
use super::{Run, Settings, TURN};
use crate::plan::FlowPlan;
use crate::report::SenderReport;
use crate::socket::{DatagramSocket, adopt_datagrams, refused};
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_transport::app::Write;
use cutline_transport::endpoint::{Sender, TransportParams};
use cutline_transport::wire::{Data, DatagramFormat, LONGEST_REPLY, PacketDeparture, Reply};
use cutline_units::{Dscp, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use std::io;

#[derive(Debug)]
pub(super) struct Datagrams {
    socket: DatagramSocket,
    sender: Sender,
    flow: u32,
    dscp: Dscp,
    /// The number of packets to send before other flows have their turn.
    turn: usize,
    /// True if the transport counts timeouts, as those that adapt their rate do.
    counts_timeouts: bool,
    /// True if the peer has opened the path. Then a closed port ends the flow: it does not need the data any
    /// more.
    is_adopted: bool,
    /// Rate control; `None` without.
    shaper: Option<Shaper>,
    /// True if a datagram is kept until the kernel has room for it; otherwise it is dropped.
    waits: bool,
    /// The datagram that waits for room in the kernel.
    kept: Option<Waiting>,
    /// A buffer of the largest datagram. The payload after the header never changes.
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Opens the socket of a flow whose plan is valid, or configures the one of the path that the peer has opened.
    pub(super) fn open(
        plan: &FlowPlan,
        params: &TransportParams,
        path: Option<OwnedFd>,
        (settings, start): (&Settings, Instant),
        (reactor, number): (&Reactor, u32),
    ) -> Result<Self, String> {
        let format = params.datagram_format();
        let DatagramFormat { largest, replies, .. } =
            format.expect("a valid plan has a transport with a datagram format");
        let is_adopted = path.is_some();
        let socket = match path {
            Some(socket) => {
                adopt_datagrams(&socket, plan)?;
                DatagramSocket::Udp(socket)
            }
            None => DatagramSocket::open(plan, settings.datagrams.send_buffer)?,
        };
        // Flows of the peer have the settings of that end.
        let is_ours = !is_adopted;
        let waits = settings.waits && is_ours;
        let heard = if replies { EventFlags::IN } else { EventFlags::empty() };
        let flags = if waits { heard | EventFlags::OUT } else { heard };
        if !flags.is_empty() {
            reactor
                .add(&socket, number, flags | EventFlags::ET)
                .map_err(refused("cannot poll the socket"))?;
        }
        let shaper = settings.datagrams.shaper.filter(|_| is_ours);
        Ok(Self {
            socket,
            sender: Sender::new(&params.clone().tolerating_lateness(), start),
            flow: plan.id,
            dscp: plan.dscp,
            // A transport that does not adapt its rate sends only data that the application has just written. On a short
            // path one that does may allow more than the machine can send; the rest is due at once.
            turn: if params.adapts() { TURN } else { usize::MAX },
            counts_timeouts: params.adapts(),
            is_adopted,
            shaper: shaper.map(|options| Shaper::new(plan, options)),
            waits,
            kept: None,
            buffer: vec![b'.'; largest as usize],
        })
    }

    pub(super) fn deadline(&self) -> Instant {
        self.shaper.as_ref().map_or(Instant::FAR_FUTURE, Shaper::deadline).min(self.sender.deadline())
    }

    /// Returns whether a datagram waits for room in the kernel's buffer.
    pub(super) const fn is_blocked(&self) -> bool {
        self.kept.is_some()
    }

    pub(super) fn on_deadline(&mut self, now: Instant) {
        self.sender.on_deadline(now);
    }

    /// Passes a write of the application to the transport. Returns false if it does not fit.
    pub(super) fn write(&mut self, write: Write) -> bool {
        self.sender.write(write)
    }

    pub(super) fn end_supply(&mut self) {
        self.sender.end_supply();
    }

    /// Reads the receiver's reports and the errors of the socket.
    pub(super) fn ready(&mut self, now: Instant, run: &Run) -> Result<(), String> {
        let mut bytes = [0; LONGEST_REPLY + 1];
        while let DatagramSocket::Udp(socket) = &self.socket {
            match net::recv(socket, &mut bytes, RecvFlags::empty()) {
                Ok((count, _)) => self.reply(now, run, &bytes[..count]),
                Err(Errno::AGAIN) => return Ok(()),
                // Each datagram to a closed port causes this error. A meter may open the port later.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(errno) => return Err(io::Error::from(errno).to_string()),
            }
        }
        // Frames get no replies.
        Ok(())
    }

    /// Sends as many packets as the transport allows, at most `turn`.
    pub(super) fn pump(&mut self, now: Instant, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        if let Some(kept) = self.kept.take() {
            self.send(kept, run, report)?;
        }
        for _ in 0..self.turn {
            if self.is_blocked() {
                return Ok(());
            }
            let Some(packet) = self.sender.transmit_datagram(now) else { break };
            match &mut self.shaper {
                None => self.send(Waiting { packet, since: cutline_sys::now() }, run, report)?,
                Some(shaper) => report.unsent += u64::from(!shaper.offer(now, packet)),
            }
        }
        while let Some(waiting) =
            self.shaper.as_mut().filter(|_| self.kept.is_none()).and_then(|it| it.next(now))
        {
            self.send(waiting, run, report)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, report: &mut SenderReport) {
        report.timeouts = self.counts_timeouts.then(|| self.sender.counts().timeouts);
        report.tfrc_rtt = self.sender.round_trip_time();
    }

    fn reply(&mut self, now: Instant, run: &Run, bytes: &[u8]) {
        let Some(mut reply) = Reply::read(bytes).filter(|reply| self.is_ours(run, reply)) else {
            return;
        };
        let echo = reply.report.echo();
        *echo = run.settings.clock.ours(*echo);
        if *echo <= now {
            // The transport ignores a report of another kind.
            let _is_ours = self.sender.on_report(now, &reply.report);
        }
    }

    fn is_ours(&self, run: &Run, reply: &Reply) -> bool {
        (reply.flow, reply.token) == (self.flow, run.settings.token)
    }

    fn send(&mut self, waiting: Waiting, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        let PacketDeparture { seq, len, extension } = waiting.packet;
        let now = now();
        let sent_at = run.settings.clock.theirs(waiting.since);
        let data =
            Data { flow: self.flow, dscp: self.dscp, token: run.settings.token, seq, sent_at, extension };
        let header = data.header_length();
        let length = (len as usize).max(header);
        report.added_bytes += (length - len as usize) as u64;
        if !run.ceiling.allows(now, length as u64) {
            report.refused_bytes += length as u64;
            return Ok(());
        }
        self.buffer[..header].copy_from_slice(&data.write()[..header]);
        let sent = self.socket.send(&self.buffer[..length]);
        match sent.map_err(|error| (Errno::from_io_error(&error), error)) {
            Ok(()) => run.sent(report, now, length as u64, 1),
            Err((Some(Errno::AGAIN), _)) if self.waits => self.kept = Some(waiting),
            Err((Some(Errno::AGAIN | Errno::NOBUFS | Errno::INTR), _)) => report.unsent += 1,
            Err((Some(Errno::CONNREFUSED), error)) if !self.is_adopted => {
                report.unsent += 1;
                report.error.get_or_insert_with(|| format!("no meter at this port: {error}"));
            }
            Err((_, error)) => return Err(error.to_string()),
        }
        Ok(())
    }
}
