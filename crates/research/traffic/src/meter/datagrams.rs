//! The receiving end of flows over datagrams. The transport's state machine gets each packet with the kernel's time
//! stamp. Its reports go to the source address of the packets, which is an address of the session's peer.

use super::record::{Packet, Record};
use super::{LONGEST_DELAY, Run};
use crate::agenda::Deadlines;
use crate::header::Proof;
use crate::report::MeterReport;
use crate::socket::mark_answers;
use cutline_direct::{DirectAddress, DirectInbox, DirectSocket};
use cutline_sys::datagrams::{Datagram, HEAD, Inbox, Wait};
use cutline_sys::packet::LinkAddress;
use cutline_transport::endpoint;
use cutline_transport::wire::{Data, LONGEST_DATA_HEADER, Reply, Report};
use cutline_units::{Dscp, Instant};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{self, SendFlags};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// The number of reads from the socket before others have their turn.
const TURN: usize = 16;
/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 0b11;

const _: () = assert!(LONGEST_DATA_HEADER <= HEAD, "the inbox reads the whole header of a datagram");

pub(super) struct DatagramFlows {
    run: Run,
    sockets: Rc<[Socket]>,
    /// `None` while the inbox is being read.
    inbox: Option<Inbox>,
    flows: Vec<Option<Box<Receiving>>>,
    strangers: u64,
}

/// A socket for the datagrams of many flows, or of one that the peer sends over a path that this end has opened.
struct Socket {
    kind: MeterSocket,
    /// Datagrams that overflowed its buffer.
    overflowed: Cell<u64>,
    /// The code point that it currently sends with.
    marked: Cell<Dscp>,
}

/// The kind of a socket.
#[derive(Debug)]
pub(super) enum MeterSocket {
    Udp(OwnedFd),
    /// Frames of a sender with this address on the link.
    Direct(Box<FrameMeter>),
}

/// A socket for frames.
#[derive(Debug)]
pub(crate) struct FrameMeter {
    socket: DirectSocket,
    inbox: RefCell<DirectInbox>,
    peer: LinkAddress,
}

impl FrameMeter {
    /// Returns the meter of frames that come from an address on the link to a socket that was prepared.
    pub(crate) fn new(socket: DirectSocket, peer: LinkAddress) -> Self {
        Self { socket, inbox: RefCell::default(), peer }
    }

    /// Reads the messages that have arrived.
    fn read(&self, mut each: impl FnMut(Datagram<'_>)) -> io::Result<()> {
        let mut inbox = self.inbox.borrow_mut();
        inbox.fill(&self.socket, Wait::No)?;
        for message in inbox.messages() {
            each(Datagram {
                head: &message.bytes[..message.bytes.len().min(HEAD)],
                length: message.bytes.len(),
                from: message.from.socket_addr(),
                at: message.at,
                traffic_class: None,
                overflowed: message.overflowed,
                to: None,
            });
        }
        Ok(())
    }
}

impl AsFd for MeterSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(fd) => fd.as_fd(),
            Self::Direct(frames) => frames.socket.as_fd(),
        }
    }
}

/// The receiving end of a flow.
struct Receiving {
    record: Record,
    peer: SocketAddr,
    /// The index of the socket at which the flow arrives.
    socket: usize,
    dscp: Dscp,
    transport: endpoint::Receiver,
    /// The latest time that the transport has seen. The time stamps of a wall clock may decrease.
    latest: Instant,
}

impl DatagramFlows {
    pub(super) fn new(run: Run, sockets: Vec<MeterSocket>) -> Self {
        let socket = |kind| Socket { kind, overflowed: Cell::new(0), marked: Cell::new(Dscp::DEFAULT) };
        let sockets = sockets.into_iter().map(socket).collect();
        Self { run, sockets, inbox: Some(Inbox::default()), flows: Vec::new(), strangers: 0 }
    }

    /// Reads the datagrams that have arrived at a socket, at most those of one turn.
    pub(super) fn read(&mut self, socket: usize, deadlines: &mut Deadlines) {
        let Some(mut inbox) = self.inbox.take() else { return };
        let sockets = Rc::clone(&self.sockets);
        for _ in 0..TURN {
            let mut each = |datagram: Datagram<'_>| self.datagram(socket, &datagram, deadlines);
            let read = match &sockets[socket].kind {
                MeterSocket::Udp(fd) => inbox.receive(fd, each).map(drop),
                MeterSocket::Direct(frames) => frames.read(&mut each),
            };
            if read.is_err() {
                break;
            }
        }
        self.inbox = Some(inbox);
    }

    /// Reads the datagrams that have arrived at all sockets.
    pub(super) fn read_all(&mut self, deadlines: &mut Deadlines) {
        (0..self.sockets.len()).for_each(|socket| self.read(socket, deadlines));
    }

    pub(super) fn deadline(&self, flow: u32) -> Instant {
        let flow = self.flows.get(flow as usize).and_then(Option::as_ref);
        flow.map_or(Instant::FAR_FUTURE, |flow| flow.transport.deadline())
    }

    /// Sends the report of a flow if one is due.
    pub(super) fn on_deadline(&mut self, now: Instant, flow: u32) {
        let Some(Some(receiving)) = self.flows.get_mut(flow as usize) else { return };
        receiving.latest = receiving.latest.max(now);
        if let Some(report) = receiving.transport.report_due(receiving.latest) {
            self.answer(flow, report);
        }
    }

    pub(super) fn finish(self) -> MeterReport {
        let flows = self.flows.into_iter().flatten().map(Receiving::finish).collect();
        let overflowed = self.sockets.iter().map(|socket| socket.overflowed.get()).sum();
        MeterReport { flows, strangers: self.strangers, overflowed }
    }

    fn datagram(&mut self, socket: usize, heard: &Datagram<'_>, deadlines: &mut Deadlines) {
        self.sockets[socket].overflowed.set(u64::from(heard.overflowed));
        let is_peer = match &self.sockets[socket].kind {
            MeterSocket::Udp(_) => self.run.is_peer(heard.from),
            MeterSocket::Direct(frames) => {
                DirectAddress::of(heard.from).is_some_and(|from| from.link == frames.peer)
            }
        };
        let is_ours =
            |data: &Data| data.flow < self.run.params.flows && data.token == self.run.params.token && is_peer;
        let data = Data::read(heard.head);
        let Some(data) = data.filter(is_ours) else {
            // The proof of a path may be repeated on the way, or come late. A reply to a flow that this end sends comes here if that flow's own
            // socket is closed already.
            let token = Proof::read(heard.head).map(|proof| proof.token);
            let token = token.or_else(|| Reply::token_of(heard.head).filter(|_| data.is_none() && is_peer));
            self.strangers += u64::from(token != Some(self.run.params.token));
            return;
        };
        let index = data.flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, || None);
        }
        let run = self.run;
        let flow =
            self.flows[index].get_or_insert_with(|| Box::new(Receiving::new(run, &data, heard.from, socket)));
        if (flow.peer, flow.socket) != (heard.from, socket) || !flow.transport.expects(&data.extension) {
            self.strangers += 1;
            return;
        }
        if let Some(report) = flow.arrive(run, &data, heard) {
            self.answer(data.flow, report);
        }
        deadlines.arm(data.flow, self.deadline(data.flow));
    }

    fn answer(&mut self, flow: u32, report: Report) {
        let Some(receiving) = &self.flows[flow as usize] else { return };
        let socket = &self.sockets[receiving.socket];
        // No transport over frames needs replies.
        let MeterSocket::Udp(fd) = &socket.kind else { return };
        if receiving.dscp != socket.marked.replace(receiving.dscp) {
            mark_answers(fd, receiving.peer, receiving.dscp);
        }
        let reply = Reply { flow, token: self.run.params.token, report };
        let bytes = &reply.write()[..reply.length()];
        // A report that the kernel refuses is lost. The transport tolerates lost reports.
        let _lost = net::sendto(fd, bytes, SendFlags::NOSIGNAL, &receiving.peer);
    }
}

impl Receiving {
    fn new(run: Run, data: &Data, peer: SocketAddr, socket: usize) -> Self {
        let (record, transport) = (run.record(data.flow), data.extension.receiver());
        Self { record, peer, socket, dscp: data.dscp, transport, latest: Instant::ZERO }
    }

    /// Counts a datagram. Returns the transport's report if one is due at once.
    fn arrive(&mut self, run: Run, data: &Data, heard: &Datagram<'_>) -> Option<Report> {
        let marked = heard.traffic_class.is_some_and(|octet| octet & CE == CE);
        let delay = heard.at.saturating_since(data.sent_at).min(LONGEST_DELAY);
        let packet = Packet { at: run.time(heard.at), bytes: heard.length as u64, delay, marked };
        if !self.record.datagram(data.seq, &packet) {
            return None;
        }
        self.record.traffic_class(heard.traffic_class);
        self.latest = self.latest.max(heard.at);
        self.transport.on_datagram(self.latest, data, heard.length as u32, marked)
    }

    fn finish(mut self: Box<Self>) -> crate::ReceiverReport {
        if let Some(rate) = self.transport.loss_event_rate() {
            self.record.loss_event_rate(rate);
        }
        self.record.finish()
    }
}
