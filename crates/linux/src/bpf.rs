//! Loading eBPF programs by bpf(2): the four commands that a port and the probes need, instead of a library for all of
//! them. Each thing that the kernel makes is a file descriptor, and goes away with it, also when the process is killed.
#![expect(unsafe_code, reason = "system calls that no safe crate wraps")]

use crate::socket::check;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::size_of;
use std::ptr::from_ref;

/// An instruction: code, registers, offset, constant.
pub(crate) type Instruction = [u8; 8];

/// Kinds of programs (linux/bpf.h, `enum bpf_prog_type`).
pub(crate) const SOCKET_FILTER: u32 = 1;
/// See [`SOCKET_FILTER`].
pub(crate) const XDP: u32 = 6;

/// A map of `AF_XDP` sockets by number (linux/bpf.h, `enum bpf_map_type`).
const XSKMAP: u32 = 17;
/// Where a program is attached (linux/bpf.h, `enum bpf_attach_type`).
const ATTACH_XDP: u32 = 37;

/// The commands (linux/bpf.h, `enum bpf_cmd`).
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;

/// The beginning of `union bpf_attr` for `BPF_MAP_CREATE`.
#[repr(C)]
struct CreateMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
}

/// That for `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct UpdateMap {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// That for `BPF_PROG_LOAD`.
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

/// That for `BPF_LINK_CREATE`.
#[repr(C)]
struct CreateLink {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

/// Loads a program of a kind.
pub(crate) fn load_program(kind: u32, code: &[Instruction]) -> io::Result<OwnedFd> {
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
    // SAFETY: the instructions and the licence that the attributes point to outlive the call, and are only read.
    unsafe { make(PROGRAM_LOAD, &attributes) }
}

/// Makes a map of so many `AF_XDP` sockets.
pub(crate) fn socket_map(entries: u32) -> io::Result<OwnedFd> {
    let attributes = CreateMap { kind: XSKMAP, key_size: 4, value_size: 4, entries, flags: 0 };
    // SAFETY: the attributes point to nothing.
    unsafe { make(MAP_CREATE, &attributes) }
}

/// Puts a socket into such a map.
pub(crate) fn put_socket(map: BorrowedFd<'_>, key: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let attributes = UpdateMap {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: from_ref(&key) as u64,
        value: from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: key and value have the four bytes each that the map was made for, are only read, and outlive the call.
    unsafe { call(MAP_UPDATE, &attributes) }.map(drop)
}

/// Attaches an XDP program to an interface for as long as the answer is open. `flags` are `XDP_FLAGS_*` of `linux/if_link.h`.
pub(crate) fn attach_xdp(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let attributes = CreateLink { program: program.as_raw_fd() as u32, interface, attach: ATTACH_XDP, flags };
    // SAFETY: the attributes point to nothing.
    unsafe { make(LINK_CREATE, &attributes) }
}

/// A command that answers with a new file descriptor.
///
/// # Safety
/// As [`call`], and the command must be one that opens a file descriptor.
unsafe fn make<A>(command: libc::c_long, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: what the caller says.
    let fd = unsafe { call(command, attributes) }? as i32;
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `A` must be the beginning of `union bpf_attr` for this command, and what it points to must be valid until the call
/// is over.
unsafe fn call<A>(command: libc::c_long, attributes: &A) -> io::Result<i64> {
    // SAFETY: the kernel reads as many bytes of the attributes as there are, and takes the rest of the union for zero.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, from_ref(attributes), size_of::<A>()) })
}
