//! Libc's own functions behind ours.
//!
//! All are looked up when the library is loaded (`dlsym` with `RTLD_NEXT`), since `dlsym` may not be called in a signal
//! handler. Where a function is not found the system call is made directly.

use libc::{
    FILE, RTLD_NEXT, aiocb, c_char, c_int, c_long, c_uint, c_ulong, c_void, dlsym, iovec, loff_t, mmsghdr,
    msghdr, off_t, sigevent, size_t, sockaddr, socklen_t, ssize_t, timespec,
};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions that are system calls: name, type, number of the system call.
macro_rules! system_calls {
    ($($name:ident = $number:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        mod found {
            use super::{AtomicPtr, c_void, null_mut};
            $(#[expect(non_upper_case_globals, reason = "named after the function")]
            pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
        }

        /// Looks all functions up.
        pub(crate) fn find_all() {
            $(find(&found::$name, concat!(stringify!($name), "\0"));)*
            library::find_all();
        }

        $(
            /// # Safety
            /// As the function of this name in libc.
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                let function = found::$name.load(Ordering::Relaxed);
                if function.is_null() {
                    // SAFETY: the system call of the function, with its arguments.
                    return unsafe { libc::syscall(libc::$number, $($argument),*) as $result };
                }
                // SAFETY: libc's function of this name has this type.
                let function = unsafe {
                    transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $result>(function)
                };
                // SAFETY: as the caller guarantees.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

system_calls! {
    socket = SYS_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    accept = SYS_accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
    accept4 = SYS_accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
    connect = SYS_connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
    setsockopt = SYS_setsockopt(
        fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t
    ) -> c_int;
    send = SYS_sendto(fd: c_int, data: *const c_void, length: size_t, flags: c_int) -> ssize_t;
    sendto = SYS_sendto(
        fd: c_int, data: *const c_void, length: size_t, flags: c_int, address: *const sockaddr,
        address_length: socklen_t
    ) -> ssize_t;
    sendmsg = SYS_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    sendmmsg = SYS_sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int;
    write = SYS_write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t;
    writev = SYS_writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t;
    dup = SYS_dup(fd: c_int) -> c_int;
    dup3 = SYS_dup3(fd: c_int, to: c_int, flags: c_int) -> c_int;
    close = SYS_close(fd: c_int) -> c_int;
    close_range = SYS_close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    fcntl = SYS_fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
    recvmsg = SYS_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    recvmmsg = SYS_recvmmsg(
        fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec
    ) -> c_int;
    sendfile = SYS_sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    splice = SYS_splice(
        from: c_int, from_offset: *mut loff_t, to: c_int, to_offset: *mut loff_t, count: size_t, flags: c_uint
    ) -> ssize_t;
    execve = SYS_execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int;
    prctl = SYS_prctl(option: c_int, second: c_ulong, third: c_ulong, fourth: c_ulong, fifth: c_ulong) -> c_int;
}

/// The arguments or the environment of a program.
type Strings = *const *const c_char;

/// Functions that are more than a system call. Without libc's own there is an error.
mod library {
    use super::{
        AtomicPtr, FILE, Ordering, Strings, aiocb, c_char, c_int, c_void, find, iovec, null_mut, off_t,
        sigevent, ssize_t, transmute,
    };

    macro_rules! functions {
        ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty, or $failure:expr)?;)*) => {
            mod found {
                use super::{AtomicPtr, c_void, null_mut};
                $(#[expect(non_upper_case_globals, reason = "named after the function")]
                pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
            }

            pub(super) fn find_all() {
                $(find(&found::$name, concat!(stringify!($name), "\0"));)*
                find(&super::DUP2, "dup2\0");
                find(&super::EXIT, "_exit\0");
                find(&super::SYSCALL, "syscall\0");
                find(&DPRINTF, "dprintf\0");
                find(&DPRINTF_CHECKED, "__dprintf_chk\0");
                find(&EXECL, "execl\0");
                find(&EXECLE, "execle\0");
                find(&EXECLP, "execlp\0");
            }

            $(
                /// # Safety
                /// As the function of this name in libc.
                pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)? {
                    let function = found::$name.load(Ordering::Relaxed);
                    if function.is_null() {
                        return $($failure)?;
                    }
                    // SAFETY: libc's function of this name has this type.
                    let function = unsafe {
                        transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) $(-> $result)?>(function)
                    };
                    // SAFETY: what the caller says.
                    unsafe { function($($argument),*) }
                }
            )*
        };
    }

    functions! {
        closefrom(first: c_int);
        fclose(stream: *mut FILE) -> c_int, or -1;
        fdopen(fd: c_int, mode: *const c_char) -> *mut FILE, or null_mut();
        freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE, or null_mut();
        freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE, or null_mut();
        pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t, or -1;
        aio_write(request: *mut aiocb) -> c_int, or -1;
        lio_listio(mode: c_int, list: *const *mut aiocb, count: c_int, event: *mut sigevent) -> c_int, or -1;
        vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int, or -1;
        __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int, or -1;
        execv(path: *const c_char, argv: Strings) -> c_int, or -1;
        execvp(file: *const c_char, argv: Strings) -> c_int, or -1;
        execvpe(file: *const c_char, argv: Strings, envp: Strings) -> c_int, or -1;
        fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int, or -1;
        execveat(fd: c_int, path: *const c_char, argv: Strings, envp: Strings, flags: c_int) -> c_int, or -1;
    }

    static DPRINTF: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static DPRINTF_CHECKED: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static EXECL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static EXECLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    static EXECLP: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

    extern "C" fn failure() -> c_int {
        -1
    }

    fn found_or_failure(function: &AtomicPtr<c_void>) -> *mut c_void {
        let found = function.load(Ordering::Relaxed);
        if found.is_null() { failure as extern "C" fn() -> c_int as *mut c_void } else { found }
    }

    /// The address of dprintf(3), which has any number of arguments.
    pub(crate) fn dprintf() -> *mut c_void {
        found_or_failure(&DPRINTF)
    }

    /// The address of dprintf(3) of programs that are built with `_FORTIFY_SOURCE`.
    pub(crate) fn dprintf_checked() -> *mut c_void {
        found_or_failure(&DPRINTF_CHECKED)
    }

    /// The address of execl(3), which has any number of arguments.
    pub(crate) fn execl() -> *mut c_void {
        found_or_failure(&EXECL)
    }

    /// The address of execle(3).
    pub(crate) fn execle() -> *mut c_void {
        found_or_failure(&EXECLE)
    }

    /// The address of execlp(3).
    pub(crate) fn execlp() -> *mut c_void {
        found_or_failure(&EXECLP)
    }
}
pub(crate) use library::*;

static DUP2: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static EXIT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// # Safety
/// As dup2(2). Newer architectures do not have its system call.
pub(crate) unsafe fn dup2(fd: c_int, to: c_int) -> c_int {
    let function = DUP2.load(Ordering::Relaxed);
    if !function.is_null() {
        // SAFETY: libc's function of this name has this type.
        let function =
            unsafe { transmute::<*mut c_void, unsafe extern "C-unwind" fn(c_int, c_int) -> c_int>(function) };
        // SAFETY: what the caller says.
        return unsafe { function(fd, to) };
    }
    if fd != to {
        // SAFETY: without flags, `dup3` does the same for two different numbers.
        return unsafe { dup3(fd, to, 0) };
    }
    // SAFETY: this command takes no argument. It fails as `dup2` does where the descriptor is not open.
    if unsafe { fcntl(fd, libc::F_GETFD, 0) } < 0 { -1 } else { fd }
}

/// # Safety
/// As _exit(2).
pub(crate) unsafe fn exit(code: c_int) -> ! {
    let function = EXIT.load(Ordering::Relaxed);
    if !function.is_null() {
        // SAFETY: libc's function of this name has this type.
        let function = unsafe { transmute::<*mut c_void, unsafe extern "C-unwind" fn(c_int) -> !>(function) };
        // SAFETY: what the caller says.
        unsafe { function(code) }
    }
    loop {
        // SAFETY: the system call takes any number, and does not return.
        unsafe { syscall(libc::SYS_exit_group, code.into(), 0, 0, 0, 0, 0) };
    }
}

/// # Safety
/// As syscall(2). It is looked up when it is first called, since the other functions call it where they were not found.
pub(crate) unsafe fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    type Function =
        unsafe extern "C-unwind" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;
    if SYSCALL.load(Ordering::Relaxed).is_null() {
        find(&SYSCALL, "syscall\0");
    }
    let function = SYSCALL.load(Ordering::Relaxed);
    if function.is_null() {
        return -1;
    }
    // SAFETY: libc's function of this name takes up to seven words.
    let function = unsafe { transmute::<*mut c_void, Function>(function) };
    // SAFETY: what the caller says.
    unsafe { function(number, a, b, c, d, e, f) }
}

/// `name` ends with a zero byte.
fn find(place: &AtomicPtr<c_void>, name: &'static str) {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { return };
    let name: *const c_char = name.as_ptr();
    // SAFETY: the name ends with a zero byte.
    place.store(unsafe { dlsym(RTLD_NEXT, name) }, Ordering::Relaxed);
}
