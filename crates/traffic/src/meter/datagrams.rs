//! Flows over UDP and TFRC at their receiver. TFRC's state machine is told of each packet with the kernel's stamp, and
//! what it reports goes back to where the packets come from.

use super::record::{Packet, Record};
use super::{LONGEST_DELAY, Run};
use crate::agenda::Deadlines;
use crate::header::{Data, Feedback, TfrcData};
use crate::report::MeterReport;
use crate::socket::mark_answers;
use cutline_sys::datagrams::{Datagram, Inbox};
use cutline_transport::tfrc;
use cutline_units::{Dscp, Instant};
use rustix::fd::OwnedFd;
use rustix::net::{self, SendFlags};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// How many times the socket is read before others have their turn.
const TURN: usize = 16;
/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 0b11;

pub(super) struct DatagramFlows {
    run: Run,
    socket: Rc<OwnedFd>,
    /// Empty while it is read.
    inbox: Option<Inbox>,
    flows: Vec<Option<Box<Receiving>>>,
    strangers: u64,
    overflowed: u64,
    /// What answers are marked with at the moment.
    marked: Dscp,
}

/// A flow at its receiver.
struct Receiving {
    record: Record,
    peer: SocketAddr,
    dscp: Dscp,
    tfrc: Option<Tfrc>,
}

struct Tfrc {
    receiver: tfrc::Receiver,
    /// The latest time that it was told: stamps of a wall clock may go backwards.
    latest: Instant,
}

impl DatagramFlows {
    pub(super) fn new(run: Run, socket: OwnedFd) -> Self {
        let (inbox, flows) = (Some(Inbox::default()), Vec::new());
        Self {
            run,
            socket: Rc::new(socket),
            inbox,
            flows,
            strangers: 0,
            overflowed: 0,
            marked: Dscp::DEFAULT,
        }
    }

    /// Reads what has come, or as much as is one's turn.
    pub(super) fn read(&mut self, deadlines: &mut Deadlines) {
        let Some(mut inbox) = self.inbox.take() else { return };
        let socket = Rc::clone(&self.socket);
        for _ in 0..TURN {
            if inbox.receive(&*socket, |datagram| self.datagram(&datagram, deadlines)).is_err() {
                break;
            }
        }
        self.inbox = Some(inbox);
    }

    pub(super) fn deadline(&self, flow: u32) -> Instant {
        let tfrc = self.flows.get(flow as usize).and_then(Option::as_ref).and_then(|flow| flow.tfrc.as_ref());
        tfrc.map_or(Instant::FAR_FUTURE, |tfrc| tfrc.receiver.deadline())
    }

    /// TFRC's feedback may be due.
    pub(super) fn on_deadline(&mut self, now: Instant, flow: u32) {
        let Some(Some(receiving)) = self.flows.get_mut(flow as usize) else { return };
        let Some(tfrc) = &mut receiving.tfrc else { return };
        tfrc.latest = tfrc.latest.max(now);
        if let Some(report) = tfrc.receiver.on_deadline(tfrc.latest) {
            self.answer(flow, report);
        }
    }

    pub(super) fn finish(self) -> MeterReport {
        let flows = self.flows.into_iter().flatten().map(Receiving::finish).collect();
        MeterReport { flows, strangers: self.strangers, overflowed: self.overflowed }
    }

    fn datagram(&mut self, heard: &Datagram<'_>, deadlines: &mut Deadlines) {
        self.overflowed = u64::from(heard.overflowed);
        let Some(data) = Data::read(heard.head).filter(|data| data.flow < self.run.params.flows) else {
            self.strangers += 1;
            return;
        };
        let index = data.flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, || None);
        }
        let run = self.run;
        let flow = self.flows[index].get_or_insert_with(|| Box::new(Receiving::new(run, &data, heard.from)));
        if flow.peer != heard.from || flow.tfrc.is_some() != data.tfrc.is_some() {
            self.strangers += 1;
            return;
        }
        if let Some(report) = flow.arrive(run, &data, heard) {
            self.answer(data.flow, report);
        }
        deadlines.arm(data.flow, self.deadline(data.flow));
    }

    fn answer(&mut self, flow: u32, report: tfrc::Feedback) {
        let Some(receiving) = &self.flows[flow as usize] else { return };
        if receiving.dscp != self.marked {
            mark_answers(&*self.socket, receiving.peer, receiving.dscp);
            self.marked = receiving.dscp;
        }
        let bytes = Feedback { flow, report }.write();
        // Feedback that the kernel does not take is lost, as it may be anywhere on its way.
        let _lost = net::sendto(&*self.socket, &bytes, SendFlags::NOSIGNAL, &receiving.peer);
    }
}

impl Receiving {
    fn new(run: Run, data: &Data, peer: SocketAddr) -> Self {
        Self { record: run.record(data.flow), peer, dscp: data.dscp, tfrc: data.tfrc.as_ref().map(Tfrc::new) }
    }

    /// Counts a datagram; what TFRC reports at once, if it does.
    fn arrive(&mut self, run: Run, data: &Data, heard: &Datagram<'_>) -> Option<tfrc::Feedback> {
        let marked = heard.traffic_class.is_some_and(|octet| octet & CE == CE);
        let delay = heard.at.saturating_since(data.sent_at).min(LONGEST_DELAY);
        let packet = Packet { at: run.time(heard.at), bytes: heard.length as u64, delay, marked };
        if !self.record.datagram(data.seq, &packet) {
            return None;
        }
        self.record.traffic_class(heard.traffic_class);
        let (tfrc, told) = (self.tfrc.as_mut()?, data.tfrc?);
        tfrc.latest = tfrc.latest.max(heard.at);
        let len = heard.length as u32;
        let packet = tfrc::Packet { seq: data.seq, sent_at: data.sent_at, rtt: told.rtt, len };
        tfrc.receiver.on_packet(tfrc.latest, &packet, marked)
    }

    fn finish(mut self: Box<Self>) -> crate::ReceiverReport {
        if let Some(tfrc) = &self.tfrc {
            self.record.loss_event_rate(tfrc.receiver.loss_event_rate());
        }
        self.record.finish()
    }
}

impl Tfrc {
    fn new(told: &TfrcData) -> Self {
        let TfrcData { segment_size, history_discounting, ecn, .. } = *told;
        let params = tfrc::Params { segment_size, history_discounting, ecn, ..tfrc::Params::default() };
        Self { receiver: tfrc::Receiver::new(&Arc::new(params)), latest: Instant::ZERO }
    }
}
