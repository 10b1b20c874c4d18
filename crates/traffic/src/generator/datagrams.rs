//! A flow over UDP or TFRC: each packet of the state machine becomes a datagram, stamped as it leaves.

use super::{Run, TURN};
use crate::agenda::{EventFlags, Sockets};
use crate::header::{Data, FEEDBACK, Feedback, TfrcData};
use crate::plan::{FlowPlan, Transport};
use crate::report::SenderReport;
use crate::socket::{datagrams, refused};
use cutline_sys::now;
use cutline_transport::app::Write;
use cutline_transport::{tfrc, udp};
use cutline_units::{Dscp, Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use std::io;
use std::sync::Arc;

/// The nofeedback timer's least time here. A process is seldom later than this, and on paths of more than 25 ms the timer
/// is what RFC 5348 says.
const LEAST_NOFEEDBACK: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Datagrams {
    socket: OwnedFd,
    sender: Sender,
    flow: u32,
    dscp: Dscp,
    /// A datagram as long as any; behind the header it is never written.
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Sender {
    Udp(udp::Sender),
    Tfrc(Box<tfrc::Sender>),
}

/// A packet that may leave.
struct Outgoing {
    seq: u64,
    len: u32,
    tfrc: Option<TfrcData>,
}

impl Datagrams {
    pub(super) fn open(
        plan: &FlowPlan,
        start: Instant,
        sockets: &Sockets,
        number: u32,
    ) -> Result<Self, String> {
        let socket = datagrams(plan)?;
        let (sender, largest) = match &plan.transport {
            Transport::Tfrc(params) => {
                sockets
                    .add(&socket, number, EventFlags::IN | EventFlags::ET)
                    .map_err(refused("the socket cannot be waited for"))?;
                let least_nofeedback = params.least_nofeedback.max(LEAST_NOFEEDBACK);
                let params = Arc::new(tfrc::Params { least_nofeedback, ..**params });
                (Sender::Tfrc(Box::new(tfrc::Sender::new(&params, start))), params.segment_size)
            }
            Transport::Udp(params) => (Sender::Udp(udp::Sender::new(params)), params.max_datagram),
            Transport::Tcp(_) => unreachable!("a connection carries TCP"),
        };
        let buffer = vec![b'.'; largest as usize];
        Ok(Self { socket, sender, flow: plan.id, dscp: plan.dscp, buffer })
    }

    pub(super) fn deadline(&self) -> Instant {
        match &self.sender {
            Sender::Udp(udp) => udp.deadline(),
            Sender::Tfrc(tfrc) => tfrc.deadline(),
        }
    }

    pub(super) fn on_deadline(&mut self, now: Instant) {
        if let Sender::Tfrc(tfrc) = &mut self.sender {
            tfrc.on_deadline(now);
        }
    }

    /// Takes what the application writes; false if it has no room.
    pub(super) fn write(&mut self, write: Write) -> bool {
        match (&mut self.sender, write) {
            (Sender::Udp(udp), Write::Bytes(bytes)) => udp.write(bytes),
            (Sender::Tfrc(tfrc), Write::Bytes(bytes)) => return tfrc.write(bytes),
            (Sender::Tfrc(tfrc), Write::Unlimited) => tfrc.write_unlimited(),
            (Sender::Udp(_), Write::Unlimited) => unreachable!("a plan refuses bulk data over UDP"),
        }
        true
    }

    pub(super) fn end_supply(&mut self) {
        if let Sender::Tfrc(tfrc) = &mut self.sender {
            tfrc.end_supply();
        }
    }

    /// Feedback has come, or word that nobody listens.
    pub(super) fn ready(&mut self, now: Instant, run: &Run) -> Result<(), String> {
        let mut bytes = [0; FEEDBACK + 1];
        loop {
            match net::recv(&self.socket, &mut bytes, RecvFlags::empty()) {
                Ok((count, _)) => self.feedback(now, run, &bytes[..count]),
                Err(Errno::AGAIN) => return Ok(()),
                // That nobody listens is told at each datagram; somebody may begin to.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(errno) => return Err(io::Error::from(errno).to_string()),
            }
        }
    }

    /// Hands over what may leave: all of UDP's, which is what the application has just written, and a turn's worth of
    /// TFRC's, which over a short path may be more than a machine can send. The rest is due at once.
    pub(super) fn pump(&mut self, now: Instant, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        let turn = if matches!(self.sender, Sender::Tfrc(_)) { TURN } else { usize::MAX };
        for _ in 0..turn {
            let Some(packet) = self.transmit(now) else { break };
            self.send(&packet, run, report)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, report: &mut SenderReport) {
        if let Sender::Tfrc(tfrc) = &self.sender {
            report.timeouts = Some(tfrc.stats().nofeedback);
            report.tfrc_rtt = Some(tfrc.rtt()).filter(|rtt| *rtt > Duration::ZERO);
        }
    }

    fn feedback(&mut self, now: Instant, run: &Run, bytes: &[u8]) {
        let (Sender::Tfrc(tfrc), Some(feedback)) = (&mut self.sender, Feedback::read(bytes)) else { return };
        let mut report = feedback.report;
        report.echo = run.settings.clock.ours(report.echo);
        if feedback.flow == self.flow && report.echo <= now {
            tfrc.on_feedback(now, &report);
        }
    }

    fn transmit(&mut self, now: Instant) -> Option<Outgoing> {
        match &mut self.sender {
            Sender::Udp(udp) => {
                udp.transmit(now).map(|packet| Outgoing { seq: packet.seq, len: packet.len, tfrc: None })
            }
            Sender::Tfrc(tfrc) => tfrc.transmit(now).map(|packet| {
                let tfrc::Params { segment_size, history_discounting, ecn, .. } = *tfrc.params();
                let data = TfrcData { rtt: packet.rtt, segment_size, history_discounting, ecn };
                Outgoing { seq: packet.seq, len: packet.len, tfrc: Some(data) }
            }),
        }
    }

    fn send(&mut self, packet: &Outgoing, run: &Run, report: &mut SenderReport) -> Result<(), String> {
        let Outgoing { seq, len, tfrc } = *packet;
        let now = now();
        let sent_at = run.settings.clock.theirs(now);
        let data = Data { flow: self.flow, dscp: self.dscp, seq, sent_at, tfrc };
        let header = data.header_length();
        let length = (len as usize).max(header);
        report.added_bytes += (length - len as usize) as u64;
        self.buffer[..header].copy_from_slice(&data.write()[..header]);
        match net::send(&self.socket, &self.buffer[..length], SendFlags::NOSIGNAL) {
            Ok(_) => run.sent(report, now, length as u64, 1),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => report.unsent += 1,
            Err(errno @ Errno::CONNREFUSED) => {
                report.unsent += 1;
                report.error.get_or_insert_with(|| format!("nobody listens: {}", io::Error::from(errno)));
            }
            Err(errno) => return Err(io::Error::from(errno).to_string()),
        }
        Ok(())
    }
}
