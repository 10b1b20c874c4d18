//! The probes' system calls that `rustix` has no safe face for.
#![expect(unsafe_code, reason = "system calls that no safe crate wraps")]

use crate::bpf;
pub(super) use crate::bpf::{SOCKET_FILTER, XDP};
use crate::socket::check;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::io;
use std::mem::zeroed;
use std::ptr::from_mut;

/// Makes a TUN interface of an open `/dev/net/tun`. It is gone when the file is closed.
pub(super) fn make_tun(file: impl AsFd, name: &str) -> io::Result<()> {
    // SAFETY: all-zero bits are a valid ifreq: an empty name and zeros.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq.
    let code = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), libc::TUNSETIFF as _, from_mut(&mut request)) };
    check(code.into()).map(drop)
}

/// Loads the shortest program of a kind, which answers zero. It is gone when the answer is dropped.
pub(super) fn load_program(kind: u32) -> io::Result<OwnedFd> {
    // r0 = 0; exit.
    bpf::load_program(kind, &[[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]])
}
