//! Functions that make, copy and close descriptors, and set options.

use crate::libc_functions as real;
use crate::state::{self, File};
use crate::{bytes, socket};
use libc::{FILE, c_char, c_int, c_uint, c_void, mmsghdr, msghdr, sockaddr, socklen_t, ssize_t, timespec};

/// socket(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: libc's function with the caller's arguments.
    let fd = unsafe { real::socket(domain, kind, protocol) };
    if fd >= 0 {
        socket::opened(fd);
    }
    fd
}

/// accept(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: libc's function with the caller's arguments.
    let fd = unsafe { real::accept(fd, address, length) };
    socket::accepted(fd);
    fd
}

/// accept4(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: libc's function with the caller's arguments.
    let fd = unsafe { real::accept4(fd, address, length, flags) };
    socket::accepted(fd);
    fd
}

/// connect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: libc's function with the caller's arguments.
    let code = unsafe { real::connect(fd, address, length) };
    // SAFETY: the caller guarantees that `length` bytes are at `address`; a null pointer is refused there.
    if let Some(address) = unsafe { bytes(address.cast(), length as usize) } {
        socket::connected(fd, address);
    }
    code
}

/// setsockopt(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller guarantees that `length` bytes are at `value`; a null pointer is refused there.
    let bytes = unsafe { bytes(value, length as usize) };
    let Some(ours) = bytes.and_then(|bytes| socket::replace_option(level, name, bytes)) else {
        // SAFETY: libc's function with the caller's arguments.
        return unsafe { real::setsockopt(fd, level, name, value, length) };
    };
    // SAFETY: libc's function with a value of ours, whose length is given.
    let code = unsafe { real::setsockopt(fd, level, name, ours.as_ptr().cast(), ours.len() as socklen_t) };
    if code == 0 {
        socket::mark_replaced(fd);
    }
    code
}

/// dup(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: libc's function with the caller's argument.
    let copy = unsafe { real::dup(fd) };
    socket::copied(fd, copy);
    copy
}

/// dup2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    socket::replacing(to, fd);
    // SAFETY: libc's function with the caller's arguments.
    let copy = unsafe { real::dup2(fd, to) };
    socket::copied(fd, copy);
    copy
}

/// dup3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    socket::replacing(to, fd);
    // SAFETY: libc's function with the caller's arguments.
    let copy = unsafe { real::dup3(fd, to, flags) };
    socket::copied(fd, copy);
    copy
}

/// close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    socket::closing(fd);
    // SAFETY: libc's function with the caller's argument.
    unsafe { real::close(fd) }
}

/// fcntl(2). Its third argument is a number or a pointer, and is passed on as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: libc's function with the caller's arguments. Where the caller has given no third one, none is used.
    let code = unsafe { real::fcntl(fd, command, argument) };
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        socket::copied(fd, code);
    }
    code
}

/// fcntl(2), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the same function, where offsets have 64 bits.
    unsafe { fcntl(fd, command, argument) }
}

/// `close_range`(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags as c_uint & libc::CLOSE_RANGE_CLOEXEC == 0 {
        socket::closing_range(first, last);
    }
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::close_range(first, last, flags) }
}

/// closefrom(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    socket::closing_range(c_uint::try_from(first).unwrap_or(0), c_uint::MAX);
    // SAFETY: libc's function with the caller's argument.
    unsafe { real::closefrom(first) }
}

/// fclose(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the caller guarantees that it is an open stream.
    unsafe { closing_stream(stream) };
    // SAFETY: libc's function with the caller's argument.
    unsafe { real::fclose(stream) }
}

/// freopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: the caller guarantees that it is an open stream.
    unsafe { closing_stream(stream) };
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::freopen(path, mode, stream) }
}

/// freopen(3), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: the caller guarantees that it is an open stream.
    unsafe { closing_stream(stream) };
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::freopen64(path, mode, stream) }
}

/// fdopen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: libc's function with the caller's arguments.
    let stream = unsafe { real::fdopen(fd, mode) };
    if !stream.is_null() {
        socket::written_by_libc(fd);
    }
    stream
}

/// The stream's descriptor is about to be closed. The stream's buffer is written first, so that it is in the counters.
///
/// # Safety
/// It must be an open stream.
unsafe fn closing_stream(stream: *mut FILE) {
    if stream.is_null() {
        return;
    }
    let errno = state::Errno::save();
    // SAFETY: as the caller guarantees. It is -1 for a stream without a descriptor.
    let fd = unsafe { libc::fileno(stream) };
    if matches!(state::file(fd), File::Socket(..) | File::Inherited) {
        // SAFETY: as the caller guarantees. If it fails, so does libc's function, which returns the error.
        unsafe { libc::fflush(stream) };
        socket::closing(fd);
    }
    errno.restore();
}

/// recvmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: libc's function with the caller's arguments.
    let received = unsafe { real::recvmsg(fd, message, flags) };
    if received >= 0 {
        // SAFETY: libc has filled the message in.
        unsafe { note_passed(message) };
    }
    received
}

/// recvmmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    // SAFETY: libc's function with the caller's arguments.
    let received = unsafe { real::recvmmsg(fd, messages, count, flags, timeout) };
    for i in 0..usize::try_from(received).unwrap_or(0) {
        // SAFETY: so many messages were received into the caller's array.
        unsafe { note_passed(&raw mut (*messages.add(i)).msg_hdr) };
    }
    received
}

/// Notes the descriptors that a message has brought (unix(7), `SCM_RIGHTS`): a socket among them is set up when it first sends.
///
/// # Safety
/// The message must be filled in by the kernel.
unsafe fn note_passed(message: *const msghdr) {
    // SAFETY: as the caller guarantees; the macros of cmsg(3) stay within the message's control buffer.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let data = libc::CMSG_DATA(header);
                let length = control.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                if let Some(passed) = bytes(data.cast(), length) {
                    let numbers = passed.as_chunks::<4>().0.iter().map(|bytes| c_int::from_ne_bytes(*bytes));
                    numbers.for_each(socket::passed);
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}
