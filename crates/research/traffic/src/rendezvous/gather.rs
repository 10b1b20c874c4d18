//! The receiver of the session: collects the connections and the proven addresses of the flows that it sends.

use crate::header::{PREAMBLE, PROOF, Preamble, Proof, Step};
use crate::plan::{FlowPlan, FlowTransport};
use crate::socket::path;
use cutline_sys::now;
use cutline_sys::reactor::{LONGEST_WAIT, PollFd, PollFlags, wait};
use cutline_units::Duration;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

/// Time for which flows may be missing after the peer has requested all of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest number of connections without a preamble.
const MOST_UNKNOWN: usize = 1024;
/// The number of connections or datagrams that are read before others have their turn.
const TURN: usize = 64;

/// The sockets of the traffic before the run.
#[derive(Debug)]
pub(crate) struct Gathering {
    listener: TcpListener,
    datagrams: UdpSocket,
    token: u64,
    peer: IpAddr,
    /// The flows over TCP and over datagrams that are expected.
    expected: [BTreeSet<u32>; 2],
    connections: BTreeMap<u32, TcpStream>,
    proven: BTreeMap<u32, SocketAddr>,
    /// The nonce that an address was sent for a flow.
    challenges: BTreeMap<u32, (SocketAddr, u64)>,
    unknown: Vec<Unknown>,
    strangers: u64,
}

/// A connection whose preamble is not complete.
#[derive(Debug)]
struct Unknown {
    stream: TcpStream,
    preamble: [u8; PREAMBLE],
    held: usize,
}

/// The sockets of the traffic at the beginning of the run.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) listener: OwnedFd,
    pub(crate) datagrams: OwnedFd,
    /// The connected socket of each flow that the receiver sends.
    pub(crate) sockets: BTreeMap<u32, OwnedFd>,
    /// Datagrams and connections that belong to no flow of this run.
    pub(crate) strangers: u64,
}

impl Gathering {
    /// Expects the connections and paths of `plans` from `peer` at these sockets, which do not block.
    pub(crate) fn new(
        (listener, datagrams): (OwnedFd, OwnedFd),
        plans: &[FlowPlan],
        token: u64,
        peer: IpAddr,
    ) -> Self {
        let of = |tcp: bool| {
            let has = move |plan: &&FlowPlan| matches!(plan.transport, FlowTransport::Tcp(_)) == tcp;
            plans.iter().filter(has).map(|plan| plan.id).collect()
        };
        Self {
            listener: listener.into(),
            datagrams: datagrams.into(),
            token,
            peer: peer.to_canonical(),
            expected: [of(true), of(false)],
            connections: BTreeMap::new(),
            proven: BTreeMap::new(),
            challenges: BTreeMap::new(),
            unknown: Vec::new(),
            strangers: 0,
        }
    }

    /// Collects until `asked` is set and nothing is missing, but at most for some seconds after `asked` was set, or until `ended`
    /// is set. Returns the number of missing flows.
    pub(crate) fn run(&mut self, asked: &AtomicBool, ended: &AtomicBool) -> usize {
        let mut asked_at = None;
        while !ended.load(Ordering::Relaxed) {
            if asked.load(Ordering::Relaxed) {
                let since = *asked_at.get_or_insert_with(now);
                if self.missing() == 0 || now().saturating_since(since) > PATIENCE {
                    break;
                }
            }
            self.wait();
            self.accept();
            self.read_preambles();
            self.read_proofs();
        }
        self.missing()
    }

    /// Returns the sockets. The ones of datagrams have the port of the traffic, so that they pass a firewall or an address
    /// translator that the proof has passed.
    ///
    /// # Errors
    /// Returns an error if a socket cannot be opened.
    pub(crate) fn finish(self) -> io::Result<Gathered> {
        let mut sockets: BTreeMap<u32, OwnedFd> =
            self.connections.into_iter().map(|(flow, stream)| (flow, stream.into())).collect();
        let local = self.datagrams.local_addr()?;
        if !self.proven.is_empty() {
            // Not before this socket has its port: until then the kernel could choose one of another receiver.
            sockopt::set_socket_reuseport(&self.datagrams, true)?;
        }
        for (flow, to) in self.proven {
            sockets.insert(flow, path(local, to)?);
        }
        let (listener, datagrams) = (self.listener.into(), self.datagrams.into());
        Ok(Gathered { listener, datagrams, sockets, strangers: self.strangers })
    }

    fn missing(&self) -> usize {
        self.expected.iter().map(BTreeSet::len).sum::<usize>() - self.connections.len() - self.proven.len()
    }

    fn wait(&self) {
        let mut fds =
            vec![PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.datagrams, PollFlags::IN)];
        fds.extend(self.unknown.iter().map(|unknown| PollFd::new(&unknown.stream, PollFlags::IN)));
        // An error needs no handling: the sockets are read in any case.
        let _ready = wait(&mut fds, LONGEST_WAIT);
    }

    fn is_peer(&self, from: SocketAddr) -> bool {
        from.ip().to_canonical() == self.peer
    }

    fn accept(&mut self) {
        for _ in 0..TURN {
            let Ok((stream, from)) = self.listener.accept() else { return };
            let has_room = self.unknown.len() < MOST_UNKNOWN;
            if !self.is_peer(from) || !has_room || stream.set_nonblocking(true).is_err() {
                self.strangers += 1;
                continue;
            }
            self.unknown.push(Unknown { stream, preamble: [0; PREAMBLE], held: 0 });
        }
    }

    fn read_preambles(&mut self) {
        for mut unknown in std::mem::take(&mut self.unknown) {
            match unknown.read() {
                Ok(true) => self.introduce(unknown),
                Ok(false) => self.unknown.push(unknown),
                Err(_) => self.strangers += 1,
            }
        }
    }

    fn introduce(&mut self, unknown: Unknown) {
        let is_ours = |preamble: &Preamble| {
            preamble.reverse
                && preamble.token == self.token
                && self.expected[0].contains(&preamble.flow)
                && !self.connections.contains_key(&preamble.flow)
        };
        match Preamble::read(&unknown.preamble).filter(is_ours) {
            Some(preamble) => {
                self.connections.insert(preamble.flow, unknown.stream);
            }
            None => self.strangers += 1,
        }
    }

    fn read_proofs(&mut self) {
        let mut bytes = [0; PROOF + 1];
        for _ in 0..TURN {
            let Ok((count, from)) = self.datagrams.recv_from(&mut bytes) else { return };
            let proof = Proof::read(&bytes[..count]);
            let reply = proof.filter(|_| self.is_peer(from)).and_then(|proof| self.reply(&proof, from));
            match reply {
                // Lost messages are requested again.
                Some(reply) => drop(self.datagrams.send_to(&reply.write(), from)),
                None => self.strangers += 1,
            }
        }
    }

    /// Returns the reply to a proof from an address of the peer; `None` if the proof is wrong.
    fn reply(&mut self, proof: &Proof, from: SocketAddr) -> Option<Proof> {
        let Proof { step, flow, token, nonce } = *proof;
        if token != self.token || !self.expected[1].contains(&flow) {
            return None;
        }
        let proven = self.proven.get(&flow).copied();
        if proven.is_some_and(|proven| proven != from) {
            return None;
        }
        match step {
            Step::Call => {
                let known = self.challenges.get(&flow).filter(|(address, _)| *address == from);
                let nonce = known.map_or_else(random, |(_, nonce)| Some(*nonce))?;
                self.challenges.insert(flow, (from, nonce));
                Some(Proof { step: Step::Challenge, nonce, ..*proof })
            }
            Step::Answer if self.challenges.get(&flow) == Some(&(from, nonce)) => {
                self.proven.insert(flow, from);
                Some(Proof { step: Step::Accepted, ..*proof })
            }
            _ => None,
        }
    }
}

impl Unknown {
    /// Reads the preamble and nothing that follows it. Returns whether it is complete.
    fn read(&mut self) -> io::Result<bool> {
        match self.stream.read(&mut self.preamble[self.held..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.held += count;
                Ok(self.held == PREAMBLE)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn random() -> Option<u64> {
    cutline_sys::random().ok().map(u64::from_be_bytes)
}
