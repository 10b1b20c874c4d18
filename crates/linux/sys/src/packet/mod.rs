//! Packet sockets (packet(7)): frames of an interface, with their Ethernet headers.
//!
//! A packet socket receives copies; the kernel handles the frames too.
#![expect(unsafe_code, reason = "binding to an interface and sendmmsg, which no safe crate wraps")]

mod filter;
mod neighbour;
mod ring;

pub use filter::{FrameField, FrameFilter};
pub use neighbour::{LinkAddress, NeighbourSocket};
pub use ring::{ReceivedFrame, Ring};

use crate::sockopt::{SocketOption, check};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::mem::{size_of, zeroed};
use std::ptr::from_ref;

/// The most frames that one call of [`send`] sends.
pub const BATCH: usize = 32;

/// Option that excludes frames sent by the host from those received; 1 or 0.
pub const IGNORE_OUTGOING: SocketOption<i32> =
    SocketOption::new(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING);

/// Option that bypasses the interface's queue discipline for sent frames; 1 or 0.
pub const QDISC_BYPASS: SocketOption<i32> = SocketOption::new(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS);

/// Frames that were received and dropped since the last time it was read.
const STATISTICS: SocketOption<libc::tpacket_stats> =
    SocketOption::new(libc::SOL_PACKET, libc::PACKET_STATISTICS);

const ADD_MEMBERSHIP: SocketOption<libc::packet_mreq> =
    SocketOption::new(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);

/// Opens a packet socket that does not block. It receives nothing until it is bound.
///
/// # Errors
/// When the process may not: it needs `CAP_NET_RAW`.
pub fn open() -> io::Result<OwnedFd> {
    // With a protocol here, frames of all interfaces would arrive until the socket is bound.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

/// Opens a packet socket whose frames have no Ethernet headers: the kernel writes and removes them. It waits, and it receives nothing until
/// it is bound.
///
/// # Errors
/// When the process may not: it needs `CAP_NET_RAW`.
pub fn open_without_headers() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Makes an interface receive frames for other hosts, too, for as long as the socket is open.
///
/// # Errors
/// When there is no such interface.
pub fn make_promiscuous(socket: impl AsFd, interface: u32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    ADD_MEMBERSHIP.set(socket, promiscuous)
}

/// Binds the socket to an interface. From then on it receives all frames of that interface.
///
/// # Errors
/// When there is no such interface.
pub fn bind(socket: impl AsFd, interface: u32) -> io::Result<()> {
    bind_protocol(socket, interface, libc::ETH_P_ALL as u16)
}

/// Binds the socket to frames with this Ethernet type of an interface.
///
/// # Errors
/// When there is no such interface.
pub fn bind_protocol(socket: impl AsFd, interface: u32, ether_type: u16) -> io::Result<()> {
    let address = link_name(interface, ether_type, [0; 6]);
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `address`, which is that long.
    let code = unsafe { libc::bind(socket.as_fd().as_raw_fd(), from_ref(&address).cast(), length) };
    check(code.into()).map(drop)
}

/// The address of a neighbour on the link of an interface, as the kernel reads it.
fn link_name(interface: u32, ether_type: u16, to: LinkAddress) -> libc::sockaddr_ll {
    // SAFETY: all-zero bits are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ether_type.to_be();
    address.sll_ifindex = interface as i32;
    address.sll_halen = to.len() as u8;
    address.sll_addr[..to.len()].copy_from_slice(&to);
    address
}

/// Sends the first frames, at most [`BATCH`], in order and without waiting, from a socket of [`open_without_headers`] to a neighbour on
/// the link of an interface. Returns the number that the kernel has accepted, at least one.
///
/// # Errors
/// When the kernel does not accept the first frame; `ENOBUFS` when the interface's queue has dropped it.
pub fn send_to(
    socket: impl AsFd,
    (interface, ether_type, to): (u32, u16, LinkAddress),
    frames: &[&[u8]],
) -> io::Result<usize> {
    send_named(socket, frames, Some(&link_name(interface, ether_type, to)))
}

/// Sends the first frames, at most [`BATCH`], in order and without waiting. Returns the number that the kernel has accepted, at
/// least one.
///
/// # Errors
/// When the kernel does not accept the first frame.
pub fn send(socket: impl AsFd, frames: &[&[u8]]) -> io::Result<usize> {
    send_named(socket, frames, None)
}

fn send_named(socket: impl AsFd, frames: &[&[u8]], name: Option<&libc::sockaddr_ll>) -> io::Result<usize> {
    let count = frames.len().min(BATCH);
    // SAFETY: all-zero bits are a valid iovec and a valid mmsghdr: null pointers with lengths of zero.
    let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (zeroed(), zeroed()) };
    for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
        *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        if let Some(name) = name {
            message.msg_hdr.msg_name = from_ref(name).cast_mut().cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        }
    }
    let (socket, flags) = (socket.as_fd().as_raw_fd(), libc::MSG_DONTWAIT as _);
    // SAFETY: the first `count` messages point to `parts` and `name`, and the parts to `frames`; all of them outlive the call, and
    // the kernel only reads through their pointers when it sends.
    let sent = unsafe { libc::sendmmsg(socket, messages.as_mut_ptr(), count as u32, flags) };
    check(sent.into()).map(|sent| sent as usize)
}

/// Returns the number of frames that were dropped because the ring was full, since the last call.
///
/// # Errors
/// When it is no packet socket.
pub fn take_drops(socket: impl AsFd) -> io::Result<u32> {
    STATISTICS.get(socket).map(|statistics| statistics.tp_drops)
}
