//! System calls of this library that the program's seccomp filters allow.
//!
//! A filter may kill a program for a call that the program itself never makes. So each filter is evaluated, before it is installed, for
//! the calls that this library makes (`cutline_marking::seccomp`), and a group of calls is left out from then on unless all of it
//! is harmless. A filter that was installed before the program started cannot be read; programs that are started under one are
//! expected to allow the calls of any program with sockets.

use cutline_marking::seccomp::{Call, Instruction};
use libc::{c_int, c_long};
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicU8, Ordering};

/// A group of system calls that is used as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Group {
    /// Reading and setting options of sockets.
    Options = 1,
    /// Reading the number of this process.
    Process = 2,
    /// Reading the clock, and waiting.
    Waiting = 4,
}

/// The groups that are left out.
static FORBIDDEN: AtomicU8 = AtomicU8::new(0);

/// Returns whether a group may be used.
pub(crate) fn allows(group: Group) -> bool {
    FORBIDDEN.load(Ordering::Relaxed) & group as u8 == 0
}

/// The program enters the strict mode: it may read, write and exit.
pub(crate) fn strict() {
    FORBIDDEN.store(u8::MAX, Ordering::Relaxed);
}

/// The program installs a filter, beside those that it has.
///
/// # Safety
/// The pointer must be that of a complete program, or null.
pub(crate) unsafe fn filtered(program: *const libc::sock_fprog) {
    // SAFETY: as the caller guarantees.
    let Some(program) = (unsafe { program.as_ref() }) else { return };
    if program.filter.is_null() {
        return;
    }
    let first: *const Instruction = program.filter.cast();
    // SAFETY: the caller's program gives the number of instructions, whose layout is that of `Instruction`.
    let filter = unsafe { from_raw_parts(first, program.len.into()) };
    for (group, calls) in [(Group::Options, OPTIONS), (Group::Process, PROCESS), (Group::Waiting, WAITING)] {
        let is_harmless = |&(number, second, third): &(c_long, c_int, c_int)| {
            let architecture = ARCHITECTURE?;
            let arguments = [0, second as u64, third as u64, 0, 0, 0];
            Some(Call { number: number as u32, architecture, arguments }.is_harmless(filter))
        };
        if !calls.iter().all(|call| is_harmless(call) == Some(true)) {
            FORBIDDEN.fetch_or(group as u8, Ordering::Relaxed);
        }
    }
}

/// A system call: its number, and its second and third argument.
type Calls = &'static [(c_long, c_int, c_int)];

const OPTIONS: Calls = &[
    (libc::SYS_getsockopt, libc::SOL_SOCKET, libc::SO_DOMAIN),
    (libc::SYS_getsockopt, libc::SOL_SOCKET, libc::SO_PROTOCOL),
    (libc::SYS_getsockopt, libc::SOL_SOCKET, libc::SO_TYPE),
    (libc::SYS_getsockopt, libc::IPPROTO_IP, libc::IP_TOS),
    (libc::SYS_getsockopt, libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::SYS_getsockopt, libc::IPPROTO_TCP, libc::TCP_INFO),
    (libc::SYS_setsockopt, libc::IPPROTO_IP, libc::IP_TOS),
    (libc::SYS_setsockopt, libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    (libc::SYS_setsockopt, libc::SOL_SOCKET, libc::SO_PRIORITY),
    (libc::SYS_setsockopt, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE),
    (libc::SYS_setsockopt, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (libc::SYS_getpeername, 0, 0),
];
const PROCESS: Calls = &[(libc::SYS_getpid, 0, 0)];
const WAITING: Calls = &[
    (libc::SYS_clock_gettime, 0, 0),
    (libc::SYS_nanosleep, 0, 0),
    (libc::SYS_clock_nanosleep, 0, 0),
    (libc::SYS_fcntl, libc::F_GETFL, 0),
];

/// `AUDIT_ARCH` of linux/audit.h: the machine of ELF, and whether it has 64 bits and is little-endian.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};
