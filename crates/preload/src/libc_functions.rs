//! Libc's own functions, which stand behind ours.
//!
//! All are looked up when the library is loaded (`dlsym` with `RTLD_NEXT`), since `dlsym` may not be called in a signal
//! handler. Where a function is not found the system call is made directly.

use libc::{
    RTLD_NEXT, c_char, c_int, c_uint, c_void, dlsym, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t,
    ssize_t, syscall,
};
use std::ffi::CStr;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions: name, type, number of the system call.
macro_rules! functions {
    ($($name:ident = $number:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        mod found {
            use super::{AtomicPtr, c_void, null_mut};
            $(#[expect(non_upper_case_globals, reason = "named after the function")]
            pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
        }

        /// Looks all functions up.
        pub(crate) fn find_all() {
            $(find(&found::$name, concat!(stringify!($name), "\0"));)*
        }

        $(
            /// # Safety
            /// As the function of this name in libc.
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                let function = found::$name.load(Ordering::Relaxed);
                if function.is_null() {
                    // SAFETY: the system call of the function, with its arguments.
                    return unsafe { syscall(libc::$number, $($argument),*) as $result };
                }
                // SAFETY: libc's function of this name has this type.
                let function = unsafe {
                    transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $result>(function)
                };
                // SAFETY: what the caller says.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

functions! {
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
}

/// # Safety
/// As dup2(2). It has no lookup of its own, since not every architecture has its system call.
pub(crate) unsafe fn dup2(fd: c_int, to: c_int) -> c_int {
    if fd != to {
        // SAFETY: without flags, `dup3` does the same for two different numbers.
        return unsafe { dup3(fd, to, 0) };
    }
    // SAFETY: this command takes no argument. It fails as `dup2` does where the descriptor is not open.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 { -1 } else { fd }
}

/// `name` ends with a zero byte.
fn find(place: &AtomicPtr<c_void>, name: &'static str) {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { return };
    let name: *const c_char = name.as_ptr();
    // SAFETY: the name ends with a zero byte.
    place.store(unsafe { dlsym(RTLD_NEXT, name) }, Ordering::Relaxed);
}
