//! The probes' system calls that `rustix` has no safe face for.
#![expect(unsafe_code, reason = "system calls that no safe crate wraps")]

use crate::socket::check;
use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::{size_of, zeroed};
use std::ptr::{from_mut, from_ref};

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

/// Kinds of eBPF programs (linux/bpf.h, `enum bpf_prog_type`).
pub(super) const SOCKET_FILTER: u32 = 1;
/// See [`SOCKET_FILTER`].
pub(super) const XDP: u32 = 6;

/// The beginning of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
struct LoadProgram {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Loads the shortest program of a kind, which answers zero. It is gone when the answer is dropped.
pub(super) fn load_program(kind: u32) -> io::Result<OwnedFd> {
    const LOAD: libc::c_long = 5;
    // r0 = 0; exit. An instruction is eight bytes: code, registers, offset, constant.
    let code: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let license = c"Dual MIT/GPL";
    let attributes = LoadProgram {
        kind,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads the attributes, the instructions and the licence, all of which outlive the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, LOAD, from_ref(&attributes), size_of::<LoadProgram>()) };
    let fd = check(fd)? as i32;
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
