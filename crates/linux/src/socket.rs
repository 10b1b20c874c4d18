//! The system calls that `rustix` has no safe face for: options of packet sockets, sending many frames at once, and the
//! ioctls about interfaces.
#![expect(unsafe_code, reason = "system calls that no safe crate wraps")]

use crate::LinuxError;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::mem::{size_of, zeroed};
use std::ptr::{from_mut, from_ref};

/// How many frames one system call sends at most.
pub(crate) const BATCH: usize = 32;

/// Sets an option of a packet socket.
pub(crate) fn set_option<T: Copy>(socket: BorrowedFd<'_>, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which are there and initialised.
    let code = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, from_ref(value).cast(), length)
    };
    check(code.into()).map(drop)
}

/// What arrived and what was dropped for want of room since the last call.
pub(crate) fn statistics(socket: BorrowedFd<'_>) -> io::Result<libc::tpacket_stats> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `stats`, which is that long and valid for any bits.
    let code = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            from_mut(&mut stats).cast(),
            &raw mut length,
        )
    };
    check(code.into()).map(|_| stats)
}

/// Makes an interface take frames for others, too, for as long as a packet socket is open.
pub(crate) fn make_promiscuous(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
}

/// Binds a packet socket to an interface; from then on all its frames come.
pub(crate) fn bind(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    // SAFETY: all-zero bits are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `address`, which is that long.
    let code = unsafe { libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), length) };
    check(code.into()).map(drop)
}

/// Sends up to [`BATCH`] frames in order, without waiting; answers how many the kernel has taken, at least one.
///
/// # Errors
/// When it does not take the first.
pub(crate) fn send(socket: BorrowedFd<'_>, frames: &[&[u8]]) -> io::Result<usize> {
    let count = frames.len().min(BATCH);
    // SAFETY: all-zero bits are a valid iovec and a valid mmsghdr: null pointers with lengths of zero.
    let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
        unsafe { (zeroed(), zeroed()) };
    for ((frame, part), message) in frames.iter().zip(&mut parts).zip(&mut messages) {
        *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: the first `count` messages point to `parts`, and these to `frames`; all of them outlive the call, and
    // the kernel only reads what they point to when it sends.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _)
    };
    check(sent.into()).map(|sent| sent as usize)
}

/// A socket of no protocol, to ask about interfaces with.
pub(crate) fn any_socket() -> Result<OwnedFd, LinuxError> {
    socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| LinuxError::of("a socket to ask about interfaces cannot be opened", errno))
}

/// The MTU of an interface.
pub(crate) fn mtu(name: &str) -> Result<u32, LinuxError> {
    let mut request = request(name);
    ioctl(any_socket()?.as_fd(), libc::SIOCGIFMTU, &mut request)
        .map_err(|error| LinuxError::of(format!("the MTU of `{name}` cannot be read"), error))?;
    // SAFETY: SIOCGIFMTU has filled this member of the union; any bits are a valid int.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

/// What `SIOCETHTOOL` takes for switches (linux/ethtool.h, `struct ethtool_value`).
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Asks the driver of an interface: a command of linux/ethtool.h that has one number, and its answer.
pub(crate) fn ethtool(name: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = request(name);
    request.ifr_ifru.ifru_data = from_mut(&mut value).cast();
    let socket = any_socket().map_err(io::Error::other)?;
    ioctl(socket.as_fd(), libc::SIOCETHTOOL as _, &mut request)?;
    Ok(value.data)
}

/// Asks the driver of an interface by a command of linux/ethtool.h that fills in a struct, which begins with the
/// command. The buffer is as long as that struct.
pub(crate) fn ethtool_buffer(name: &str, command: u32, buffer: &mut [u8]) -> io::Result<()> {
    buffer[..4].copy_from_slice(&command.to_ne_bytes());
    let mut request = request(name);
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    let socket = any_socket().map_err(io::Error::other)?;
    ioctl(socket.as_fd(), libc::SIOCETHTOOL as _, &mut request)
}

/// Makes an open `/dev/net/tun` the far end of a TUN interface: whole packets, without aggregates and with their
/// checksums filled in.
pub(crate) fn attach_tun(file: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    ioctl(file, libc::TUNSETIFF as _, &mut request)?;
    let no_offloads: libc::c_ulong = 0;
    // SAFETY: this request takes its argument by value and touches no memory of ours.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, no_offloads) };
    check(code.into()).map(drop)
}

/// A request about an interface; names too long are cut off, and then there is no such interface.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bits are a valid ifreq: an empty name and zeros.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn ioctl(socket: BorrowedFd<'_>, number: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all requests used here read and write one ifreq, and `ifru_data`, where it is used, points to a value
    // that lives until the call is over.
    let code = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, from_mut(request)) };
    check(code.into()).map(drop)
}

pub(crate) fn check(code: i64) -> io::Result<i64> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}
