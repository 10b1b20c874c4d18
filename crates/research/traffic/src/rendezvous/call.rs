//! End that requests the run: opens the connections of the flows that the receiver sends, and proves its paths.

use crate::header::{PROOF, Preamble, Proof, Step};
use crate::plan::{FlowPlan, FlowTransport, TcpOptions};
use crate::socket::{connect_to_receive, finish_connecting, receive_datagrams};
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use cutline_units::{Duration, Instant};
use rustix::fd::OwnedFd;
use rustix::net::{self, RecvFlags, SendFlags};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The time until a datagram is repeated for the first time. It doubles up to [`LONGEST_REPEAT`].
const FIRST_REPEAT: Duration = Duration::from_millis(100);
const LONGEST_REPEAT: Duration = Duration::from_secs(1);

/// The sockets of the flows that this end receives.
#[derive(Debug, Default)]
pub(crate) struct Called {
    /// The connections, and their peer.
    pub(crate) connections: Vec<(OwnedFd, SocketAddr)>,
    /// The sockets for datagrams.
    pub(crate) datagrams: Vec<OwnedFd>,
}

/// Opens the sockets of `plans`, whose `to` is the port of the receiver's traffic, within `patience`.
///
/// # Errors
/// Returns a sentence about the first flow whose path does not work.
pub(crate) fn call(
    plans: &[FlowPlan],
    token: u64,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<Called, String> {
    let end = now().saturating_add(patience);
    let (mut called, mut connecting, mut paths) = (Called::default(), Vec::new(), Vec::new());
    for plan in plans {
        let failed = |error: String| format!("flow {:?}: {error}", plan.name);
        match &plan.transport {
            FlowTransport::Tcp(options) => {
                connecting.push((plan, connect_to_receive(plan, options).map_err(failed)?));
            }
            // Those over frames are never reverse.
            FlowTransport::Datagrams(_) | FlowTransport::Direct { .. } => {
                let socket = receive_datagrams(plan).map_err(failed)?;
                paths.push(Path { plan, socket, nonce: None, is_proven: false });
            }
        }
    }
    for (plan, socket) in connecting {
        finish_connecting(&socket, end.saturating_since(now()))
            .and_then(|()| introduce(plan, &socket, token))
            .map_err(|error| format!("flow {:?}: cannot connect to {}: {error}", plan.name, plan.to))?;
        called.connections.push((socket, plan.to));
    }
    prove(&mut paths, token, end, stop)?;
    called.datagrams = paths.into_iter().map(|path| path.socket).collect();
    Ok(called)
}

fn introduce(plan: &FlowPlan, socket: &OwnedFd, token: u64) -> io::Result<()> {
    let FlowTransport::Tcp(TcpOptions { .. }) = plan.transport else { return Ok(()) };
    let preamble =
        Preamble { flow: plan.id, notify: false, reverse: true, dscp: plan.dscp, receive_buffer: 0, token };
    // The buffer of a new connection has room for so few bytes.
    let sent = net::send(socket, &preamble.write(), SendFlags::NOSIGNAL)?;
    if sent == preamble.write().len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// The path of a flow over datagrams.
struct Path<'p> {
    plan: &'p FlowPlan,
    socket: OwnedFd,
    /// The receiver's nonce.
    nonce: Option<u64>,
    is_proven: bool,
}

fn prove(paths: &mut [Path<'_>], token: u64, end: Instant, stop: &AtomicBool) -> Result<(), String> {
    let system = |error: io::Error| format!("cannot poll the sockets: {error}");
    let mut reactor = Reactor::new().map_err(system)?;
    for (number, path) in (0..).zip(paths.iter()) {
        reactor.add(&path.socket, number, EventFlags::IN).map_err(system)?;
    }
    let (mut again, mut repeat) = (Instant::ZERO, FIRST_REPEAT);
    while let Some(missing) = paths.iter().find(|path| !path.is_proven) {
        if now() >= end || stop.load(Ordering::Relaxed) {
            let why = "no answer from the receiver's port: does a firewall drop UDP?";
            return Err(format!("flow {:?}: {}: {why}", missing.plan.name, missing.plan.to));
        }
        if now() >= again {
            paths.iter().filter(|path| !path.is_proven).for_each(|path| path.send(token));
            again = now().saturating_add(repeat);
            repeat = (repeat * 2).min(LONGEST_REPEAT);
        }
        let ready: Vec<_> = reactor.wait(again.min(end)).map_err(system)?.collect();
        for (number, _) in ready {
            paths[number as usize].read(token);
        }
    }
    Ok(())
}

impl Path<'_> {
    /// Sends the step that is due. A datagram that the kernel refuses is repeated like a lost one.
    fn send(&self, token: u64) {
        let step = if self.nonce.is_some() { Step::Answer } else { Step::Call };
        let proof = Proof { step, flow: self.plan.id, token, nonce: self.nonce.unwrap_or_default() };
        let _lost = net::send(&self.socket, &proof.write(), SendFlags::NOSIGNAL);
    }

    fn read(&mut self, token: u64) {
        let mut bytes = [0; PROOF + 1];
        while let Ok((count, _)) = net::recv(&self.socket, &mut bytes, RecvFlags::empty()) {
            let proof = Proof::read(&bytes[..count]);
            let Some(proof) = proof.filter(|proof| (proof.flow, proof.token) == (self.plan.id, token)) else {
                continue;
            };
            match proof.step {
                Step::Challenge if self.nonce.is_none() => {
                    self.nonce = Some(proof.nonce);
                    self.send(token);
                }
                Step::Accepted => self.is_proven |= self.nonce == Some(proof.nonce),
                Step::Call | Step::Challenge | Step::Answer => {}
            }
        }
    }
}
