//! The ways of getting at frames: packet sockets, `AF_XDP`, TUN.

use super::bench::Bench;
use super::{Answer, raw};
use crate::clock::{now, timespec};
use crate::{LinuxError, PacketPort, interface};
use cutline_router::Port as _;
use cutline_units::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd as _;
use rustix::fs::{Mode, OFlags, open};
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;

/// Which of them there are.
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

/// How long a frame may take from one end of a virtual pair to the other, on a busy machine.
const PATIENCE: Duration = Duration::from_millis(200);

/// Tries them in the namespace of the bench.
///
/// # Errors
/// When it cannot be entered.
pub fn paths(bench: &Bench) -> Result<Paths, LinuxError> {
    bench.namespace().within(|| Paths {
        packet: match cross() {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No("a frame that was sent has not come".to_owned()),
            Err(error) => Answer::No(error.to_string()),
        },
        xdp_copy: xdp(Bench::NEAR, SocketAddrXdpFlags::XDP_COPY),
        // At the other end: a queue is busy for a while after its last socket has been closed.
        xdp_zero_copy: xdp(Bench::FAR, SocketAddrXdpFlags::XDP_ZEROCOPY),
        tun: Answer::of(tun()),
    })
}

/// Whether a frame that is sent by one end comes in by the other.
fn cross() -> Result<bool, LinuxError> {
    let (mut near, mut far) = (PacketPort::open(Bench::NEAR)?, PacketPort::open(Bench::FAR)?);
    // To nobody, of an EtherType for experiments (IEEE 802, local experimental 1).
    let frame = [&[2; 12][..], &[0x88, 0xb5], &[0x5a; 60]].concat();
    near.send(&mut [&frame[..]].into_iter(), &mut |_| {})?;
    let (mut found, deadline) = (false, now() + PATIENCE);
    while !found && now() < deadline {
        let left = timespec(deadline.saturating_since(now()));
        // Interrupted or not, the frame is looked for.
        let _ready = poll(&mut [PollFd::from_borrowed_fd(far.as_fd(), PollFlags::IN)], Some(&left));
        far.receive(now(), &mut |_, bytes| found |= bytes == frame)?;
    }
    Ok(found)
}

/// Binds a socket with the least of memory and rings to one end.
fn xdp(name: &str, mode: SocketAddrXdpFlags) -> Answer {
    const CHUNK: usize = 4096;
    const CHUNKS: usize = 64;
    // Twice a page more than needed, to begin at the start of one. It outlives the socket.
    let memory = vec![0_u8; CHUNK * (CHUNKS + 2)];
    let start = (memory.as_ptr() as u64).next_multiple_of(CHUNK as u64);
    let bound = || -> io::Result<()> {
        let index = interface::index(name).map_err(io::Error::other)?;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let registration = XdpUmemReg {
            addr: start,
            len: (CHUNK * CHUNKS) as u64,
            chunk_size: CHUNK as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(&socket, registration)?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, CHUNKS as u32)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, CHUNKS as u32)?;
        sockopt::set_xdp_rx_ring_size(&socket, CHUNKS as u32)?;
        Ok(bind(&socket, &SocketAddrXdp::new(mode, index, 0))?)
    };
    let answer = Answer::of(bound());
    drop(memory);
    answer
}

/// Makes an interface in the thread's namespace and removes it.
fn tun() -> io::Result<()> {
    let file = open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    raw::make_tun(&file, "probetun")
}
