//! The ways to receive and send frames: packet sockets, `AF_XDP`, TUN.

use super::answer::Answer;
use super::sandbox::Sandbox;
use cutline_ports::{PacketPort, PortError};
use cutline_router::Port as _;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::xdp::{Config, Socket, XdpCopying};
use cutline_sys::{SysError, interface, now, tun};
use cutline_units::Duration;
use rustix::fd::AsFd as _;
use std::io;

/// Availability of these ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Packet sockets with a ring, as the router opens them: a frame has crossed the virtual pair.
    pub packet: Answer,
    /// `AF_XDP` sockets that copy, between virtual interfaces.
    pub xdp_copy: Answer,
    /// `AF_XDP` sockets that share memory with a virtual interface.
    pub xdp_zero_copy: Answer,
    /// TUN interfaces.
    pub tun: Answer,
}

/// The longest time that a frame may take from one end of a virtual pair to the other, on a busy machine.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);

/// Tries each of these ways in the sandbox.
///
/// # Errors
/// When the sandbox cannot be entered.
pub fn paths(sandbox: &Sandbox) -> Result<Paths, SysError> {
    sandbox.namespace().within(|| Paths {
        packet: match cross() {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No("a frame that was sent has not arrived".to_owned()),
            Err(error) => Answer::No(error.to_string()),
        },
        xdp_copy: xdp(Sandbox::NEAR, XdpCopying::Copy),
        // At the other end: a queue is busy for a while after its last socket has been closed.
        xdp_zero_copy: xdp(Sandbox::FAR, XdpCopying::ZeroCopy),
        // The interface is removed with its file.
        tun: Answer::from_result(tun::attach("probetun").map(drop)),
    })
}

/// Returns whether a frame that is sent by one end arrives at the other.
fn cross() -> Result<bool, PortError> {
    let (mut near, mut far) = (PacketPort::open(Sandbox::NEAR)?, PacketPort::open(Sandbox::FAR)?);
    // To an unused address, with an EtherType for experiments (IEEE 802, local experimental 1).
    let frame = [&[2; 12][..], &[0x88, 0xb5], &[0x5a; 60]].concat();
    near.send(&mut [&frame[..]].into_iter(), &mut |_| {})?;
    let (mut found, deadline) = (false, now() + REPLY_TIMEOUT);
    while !found && now() < deadline {
        let left = deadline.saturating_since(now());
        // The frame is read in any case, ready or not.
        let _ready = wait(&mut [PollFd::from_borrowed_fd(far.as_fd(), PollFlags::IN)], left);
        far.receive(now(), &mut |_, bytes| found |= bytes == frame)?;
    }
    Ok(found)
}

/// Binds a small socket to one end.
fn xdp(name: &str, mode: XdpCopying) -> Answer {
    let bound = || -> io::Result<()> {
        let index = interface::index(name).map_err(io::Error::other)?;
        Socket::open(Config { receive: 64, transmit: 0 })?.bind(index, 0, mode)
    };
    Answer::from_result(bound())
}
