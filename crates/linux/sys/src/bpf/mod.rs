//! eBPF by bpf(2): programs of a few instructions, which [`Assembler`] writes, and the maps of any program.
//! Each object of the kernel is a file descriptor. It is removed with its last descriptor, also when the process is
//! killed.
#![expect(unsafe_code, reason = "bpf(2), which no safe crate wraps for programs that are not in an ELF file")]

mod assembler;
mod map;
mod type_information;

pub use assembler::{Assembler, Condition, Label, Register, Size};
pub use map::{Map, detach, pinned};
pub use type_information::{NoQueueingDisciplines, queueing_disciplines};

use crate::sockopt::check;
use map::MapType;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::size_of;
use std::ptr::{from_mut, from_ref};

/// An instruction: code, registers, offset, constant (`struct bpf_insn` of linux/bpf.h).
pub type Instruction = [u8; 8];

/// Type of a program (`enum bpf_prog_type` of linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ProgramType {
    /// A program that sees received packets of a socket.
    SocketFilter = 1,
    /// A program that sees the packets of an interface, and may change them.
    Classifier = 3,
    /// A program that sees the frames of an interface before the kernel does.
    Xdp = 6,
    /// A program that sees events of the TCP connections of a control group.
    SocketOperations = 13,
    /// A program that sees the addresses that the sockets of a control group connect or send to.
    SocketAddress = 18,
    /// A program that sees the options that a control group sets on its sockets.
    SocketOption = 25,
}

/// Attachment point of a program in a control group or at an interface (`enum bpf_attach_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Hook {
    /// Events of TCP connections.
    SocketOperations = 3,
    /// `connect` with an IPv4 address.
    Connect4 = 10,
    /// `connect` with an IPv6 address.
    Connect6 = 11,
    /// `sendmsg` of a datagram with an IPv4 address.
    SendMessage4 = 14,
    /// `sendmsg` of a datagram with an IPv6 address.
    SendMessage6 = 15,
    /// `setsockopt`.
    SetSocketOption = 22,
    /// Packets that leave an interface, since Linux 6.6.
    Egress = 47,
}

impl Hook {
    const fn program_type(self) -> ProgramType {
        match self {
            Self::SocketOperations => ProgramType::SocketOperations,
            Self::Connect4 | Self::Connect6 | Self::SendMessage4 | Self::SendMessage6 => {
                ProgramType::SocketAddress
            }
            Self::SetSocketOption => ProgramType::SocketOption,
            Self::Egress => ProgramType::Classifier,
        }
    }
}

/// Place at which an XDP program runs (`XDP_FLAGS_*_MODE` of `linux/if_link.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum XdpMode {
    /// In the kernel, for any interface: after the kernel has made a packet of the frame.
    Generic = 1 << 1,
    /// In the driver, where it can: before the kernel sees the frame.
    Driver = 1 << 2,
}

/// Attachment point of XDP (`enum bpf_attach_type`).
const ATTACH_XDP: u32 = 37;

/// The commands (`enum bpf_cmd`).
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;

/// The first fields of `union bpf_attr` for `BPF_PROG_LOAD`.
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
    name: [u8; 16],
    interface: u32,
    hook: u32,
}

/// The first fields for `BPF_LINK_CREATE`.
#[repr(C)]
struct CreateLink {
    program: u32,
    /// An interface, or a control group's descriptor.
    target: u32,
    attach: u32,
    flags: u32,
}

/// Loads a program.
///
/// # Errors
/// When the kernel's verifier refuses it, or the process may not: it needs `CAP_BPF`, and `CAP_NET_ADMIN` for XDP.
pub fn load_program(kind: ProgramType, code: &[Instruction]) -> io::Result<OwnedFd> {
    load(kind, 0, code)
}

/// Loads a program for a hook and attaches it to a control group, or for [`Hook::Egress`] to the interface of this number, for as
/// long as the returned link is open.
///
/// # Errors
/// When the kernel's verifier refuses it, has no such hook, or the process may not: it needs `CAP_BPF` and `CAP_NET_ADMIN`.
pub fn attach(hook: Hook, target: AttachTarget<'_>, code: &[Instruction]) -> io::Result<OwnedFd> {
    let program = load(hook.program_type(), hook as u32, code)?;
    let target = match target {
        AttachTarget::Cgroup(group) => group.as_raw_fd() as u32,
        AttachTarget::Interface(number) => number,
    };
    let program = program.as_raw_fd() as u32;
    let attributes = CreateLink { program, target, attach: hook as u32, flags: 0 };
    // SAFETY: the attributes point to nothing.
    unsafe { create(LINK_CREATE, &attributes) }
}

/// Object to which a program is attached.
#[derive(Clone, Copy, Debug)]
pub enum AttachTarget<'t> {
    /// A control group: its folder.
    Cgroup(BorrowedFd<'t>),
    /// An interface, by its number.
    Interface(u32),
}

fn load(kind: ProgramType, hook: u32, code: &[Instruction]) -> io::Result<OwnedFd> {
    let license = c"Dual MIT/GPL";
    let attributes = LoadProgram {
        kind: kind as u32,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: [0; 16],
        interface: 0,
        hook,
    };
    // SAFETY: the instructions and the licence that the attributes point to outlive the call, and are only read.
    unsafe { create(PROGRAM_LOAD, &attributes) }
}

/// A map of `AF_XDP` sockets by number.
#[derive(Debug)]
pub struct SocketMap(Map);

impl SocketMap {
    /// Creates a map with room for so many sockets.
    ///
    /// # Errors
    /// When the kernel has no such maps, or the process may not.
    pub fn new(entries: u32) -> io::Result<Self> {
        Map::create(MapType::Sockets, 4, 4, entries).map(Self)
    }

    /// Puts a socket in.
    ///
    /// # Errors
    /// When the kernel refuses it, such as a socket of another kind.
    pub fn put(&self, key: u32, socket: impl AsFd) -> io::Result<()> {
        self.0.update(&key.to_ne_bytes(), &socket.as_fd().as_raw_fd().to_ne_bytes())
    }
}

impl AsFd for SocketMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Attaches an XDP program to an interface for as long as the returned link is open.
///
/// # Errors
/// When the interface has a program already (`EBUSY`, `EEXIST`), or cannot run one in this way.
pub fn attach_xdp(program: impl AsFd, interface: u32, mode: XdpMode) -> io::Result<OwnedFd> {
    let program = program.as_fd().as_raw_fd() as u32;
    let attributes = CreateLink { program, target: interface, attach: ATTACH_XDP, flags: mode as u32 };
    // SAFETY: the attributes point to nothing.
    unsafe { create(LINK_CREATE, &attributes) }
}

/// A command that opens a file descriptor.
///
/// # Safety
/// As [`call`], and the command must be one that opens a file descriptor.
unsafe fn create<A>(command: libc::c_long, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: as the caller guarantees.
    let fd = unsafe { call(command, attributes) }? as i32;
    // SAFETY: the kernel has just opened it, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `A` must be the first fields of `union bpf_attr` for this command, and its pointers must be valid until the call
/// is over.
unsafe fn call<A>(command: libc::c_long, attributes: &A) -> io::Result<i64> {
    // SAFETY: the kernel reads as many bytes of the attributes as there are, and takes the rest of the union for zero.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, from_ref(attributes), size_of::<A>()) })
}

/// As [`call`], for a command that writes to its attributes.
///
/// # Safety
/// As [`call`], and any bytes must be valid for the fields that the kernel writes.
unsafe fn call_mut<A>(command: libc::c_long, attributes: &mut A) -> io::Result<i64> {
    // SAFETY: the kernel reads and writes as many bytes of the attributes as there are.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, from_mut(attributes), size_of::<A>()) })
}
