//! Functions that end a process, replace its program, or restrict its system calls.

use crate::libc_functions as real;
use crate::{bytes, sandbox, socket, state};
use libc::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

/// The file that execve(2) is to run, and its arguments.
type Strings = *const *const c_char;

/// _exit(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _exit(code: c_int) -> ! {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's argument.
    unsafe { real::exit(code) }
}

/// _Exit(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn _Exit(code: c_int) -> ! {
    state::sample_all(true);
    // SAFETY: the same function.
    unsafe { real::exit(code) }
}

/// execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::execve(path, argv, envp) }
}

/// execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, argv: Strings) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::execv(path, argv) }
}

/// execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvp(file: *const c_char, argv: Strings) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::execvp(file, argv) }
}

/// execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::execvpe(file, argv, envp) }
}

/// fexecve(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::fexecve(fd, argv, envp) }
}

/// execveat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn execveat(
    fd: c_int,
    path: *const c_char,
    argv: Strings,
    envp: Strings,
    flags: c_int,
) -> c_int {
    state::sample_all(true);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::execveat(fd, path, argv, envp, flags) }
}

/// prctl(2). Its arguments are numbers and pointers, and are passed on as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        let filter = third as *const libc::sock_fprog;
        // SAFETY: the caller gives a program with the mode of filters.
        unsafe { restricting(second == libc::SECCOMP_MODE_FILTER.into(), filter) };
    }
    // SAFETY: libc's function with the caller's arguments. Where the caller has given fewer, the others are not used.
    unsafe { real::prctl(option, second, third, fourth, fifth) }
}

/// syscall(2). Its arguments are numbers and pointers, and are passed on as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_setsockopt {
        // SAFETY: the caller guarantees that `e` bytes are at `d`; a null pointer is refused there.
        let value = unsafe { bytes(d as *const c_void, e as c_uint as usize) };
        if let Some(ours) = value.and_then(|value| socket::replace_option(b as c_int, c as c_int, value)) {
            // SAFETY: libc's function with a value of ours, whose length is given.
            let code =
                unsafe { real::syscall(number, a, b, c, ours.as_ptr() as c_long, ours.len() as c_long, f) };
            if code == 0 {
                socket::mark_replaced(a as c_int);
            }
            return code;
        }
    }
    let replaces = number == libc::SYS_dup3 || is_dup2(number);
    let is_copy = number == libc::SYS_fcntl && [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC].contains(&(b as c_int));
    let copies = replaces || is_copy || number == libc::SYS_dup;
    if replaces {
        socket::replacing(b as c_int, a as c_int);
    }
    match number {
        libc::SYS_close => socket::closing(a as c_int),
        libc::SYS_close_range if c as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 => {
            socket::closing_range(a as c_uint, b as c_uint);
        }
        libc::SYS_prctl if a == libc::PR_SET_SECCOMP.into() => {
            let filter = c as *const libc::sock_fprog;
            // SAFETY: the caller gives a program with the mode of filters.
            unsafe { restricting(b == c_long::from(libc::SECCOMP_MODE_FILTER), filter) };
        }
        libc::SYS_seccomp if a <= c_long::from(libc::SECCOMP_SET_MODE_FILTER) => {
            let filter = c as *const libc::sock_fprog;
            // SAFETY: the caller gives a program with the operation of filters.
            unsafe { restricting(a == c_long::from(libc::SECCOMP_SET_MODE_FILTER), filter) };
        }
        libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_pwritev2
        | libc::SYS_sendfile
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg => socket::written_by_libc(a as c_int),
        libc::SYS_splice => socket::written_by_libc(c as c_int),
        libc::SYS_exit_group | libc::SYS_execve | libc::SYS_execveat => state::sample_all(true),
        _ => {}
    }
    // SAFETY: libc's function with the caller's arguments. Where the caller has given fewer, the others are not used.
    let result = unsafe { real::syscall(number, a, b, c, d, e, f) };
    match number {
        _ if copies => socket::copied(a as c_int, result as c_int),
        libc::SYS_socket if result >= 0 => socket::opened(result as c_int),
        libc::SYS_accept | libc::SYS_accept4 => socket::accepted(result as c_int),
        libc::SYS_connect => {
            // SAFETY: the caller guarantees that `c` bytes are at `b`; a null pointer is refused there.
            if let Some(address) = unsafe { bytes(b as *const c_void, c as c_uint as usize) } {
                socket::connected(a as c_int, address);
            }
        }
        _ => {}
    }
    result
}

/// Newer architectures have no such call.
const fn is_dup2(number: c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    return number == libc::SYS_dup2;
    #[cfg(not(target_arch = "x86_64"))]
    return number < 0;
}

/// The program is about to restrict its system calls.
///
/// # Safety
/// With `is_filter`, the pointer must be that of a complete program, or null.
unsafe fn restricting(is_filter: bool, filter: *const libc::sock_fprog) {
    let errno = state::Errno::save();
    // Afterwards they may not be readable.
    state::sample_all(false);
    if is_filter {
        // SAFETY: as the caller guarantees.
        unsafe { sandbox::filtered(filter) };
    } else {
        sandbox::strict();
    }
    errno.restore();
}
