//! Requests about interfaces: ioctls with a `struct ifreq` (netdevice(7)); and those about a socket's queues.
#![expect(unsafe_code, reason = "ioctls that no safe crate wraps")]

use crate::sockopt::check;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::mem::zeroed;
use std::ptr::from_mut;

/// Opens a socket without a protocol, for queries about interfaces.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Returns the length of a socket's send queue, bytes (`SIOCOUTQ`). For TCP these are bytes written and not acknowledged (tcp(7)); for
/// datagrams, bytes that no interface has sent, with the kernel's overhead.
///
/// # Errors
/// When the file is no socket, or one that listens.
pub fn send_queue(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: this request writes one int.
    let code = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ as _, from_mut(&mut bytes)) };
    check(code.into()).map(|_| u64::try_from(bytes).unwrap_or(0))
}

/// Returns the length of the datagram that a socket's next receive returns, bytes (`FIONREAD`, udp(7)); 0 if there is none, or an empty
/// one.
///
/// # Errors
/// When the file is no socket.
pub fn receive_queue(socket: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(socket)?)
}

/// Returns the MTU of an interface, bytes (`SIOCGIFMTU`).
pub(crate) fn mtu(name: &str) -> io::Result<u32> {
    let mut request = request(name);
    // SAFETY: this request reads and writes one ifreq.
    unsafe { ioctl(socket()?, libc::SIOCGIFMTU as _, &mut request) }?;
    // SAFETY: the kernel has filled this member of the union; any bits are a valid int.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

/// Returns the kind of an interface's hardware, an `ARPHRD_*` of `linux/if_arp.h` (`SIOCGIFHWADDR`).
pub(crate) fn hardware(name: &str) -> io::Result<u16> {
    let mut request = request(name);
    // SAFETY: this request reads and writes one ifreq.
    unsafe { ioctl(socket()?, libc::SIOCGIFHWADDR as _, &mut request) }?;
    // SAFETY: the kernel has filled this member of the union; any bits are a valid sockaddr.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family)
}

/// Returns the address of an interface on its link, if it is one of Ethernet (`SIOCGIFHWADDR`).
pub(crate) fn link_address(name: &str) -> io::Result<[u8; 6]> {
    let mut request = request(name);
    // SAFETY: this request reads and writes one ifreq.
    unsafe { ioctl(socket()?, libc::SIOCGIFHWADDR as _, &mut request) }?;
    // SAFETY: the kernel has filled this member of the union; any bits are a valid sockaddr.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    if ![libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&address.sa_family) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is no interface of Ethernet"));
    }
    Ok(std::array::from_fn(|at| address.sa_data[at] as u8))
}

/// Sends a command of linux/ethtool.h to an interface's driver (`SIOCETHTOOL`). `buffer` starts with the command and is
/// as long as the command's struct, into which the driver writes its answer.
pub(crate) fn ethtool<const N: usize>(name: &str, buffer: &mut [u32; N]) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: this request reads and writes one ifreq, which points to a buffer that lives until the call is over. The
    // callers in `ethtool` give as long a buffer as the struct of their command.
    unsafe { ioctl(socket()?, libc::SIOCETHTOOL as _, &mut request) }
}

/// Makes an open `/dev/net/tun` the far end of a TUN interface that carries whole packets, without aggregates and with
/// their checksums filled in (`TUNSETIFF`, `TUNSETOFFLOAD`).
pub(crate) fn attach_tun(file: impl AsFd, name: &str) -> io::Result<()> {
    let mut request = request(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: this request reads and writes one ifreq.
    unsafe { ioctl(&file, libc::TUNSETIFF as _, &mut request) }?;
    let no_offloads: libc::c_ulong = 0;
    // SAFETY: this request takes its argument by value and touches no memory of ours.
    let code = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::TUNSETOFFLOAD as _, no_offloads) };
    check(code.into()).map(drop)
}

/// A request about an interface. A name that is too long is cut off, and then there is no such interface.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bits are a valid ifreq: an empty name and zeros.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// # Safety
/// The kernel must read and write nothing for this number but the request, and the memory that a pointer in it describes.
unsafe fn ioctl(file: impl AsFd, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: as the caller guarantees.
    let code = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), number, from_mut(request)) };
    check(code.into()).map(drop)
}
