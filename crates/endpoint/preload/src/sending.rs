//! Functions that send: datagrams are paced and counted, and marks in control messages replaced.

use crate::libc_functions as real;
use crate::{bytes, socket, state};
use cutline_marking::table::Total;
use libc::{
    LIO_WRITE, aiocb, c_char, c_int, c_uint, c_void, iovec, loff_t, mmsghdr, msghdr, off_t, sigevent, size_t,
    sockaddr, socklen_t, ssize_t,
};
use std::slice::from_raw_parts;

/// Room for the control messages of a message, bytes. QUIC libraries use about 100.
const CONTROL: usize = 512;
/// Number of messages of `sendmmsg` that are passed on at a time, if their marks are replaced.
const BATCH: usize = 8;

/// Aligned as control messages are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// send(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    let sender = socket::Sender::of(fd);
    socket::wait(sender, fd, length, flags);
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::send(fd, data, length, flags) };
    socket::count(sender, 1, sent);
    sent
}

/// sendto(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    data: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let sender = socket::Sender::of(fd);
    socket::wait(sender, fd, length, flags);
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::sendto(fd, data, length, flags, address, address_length) };
    socket::count(sender, 1, sent);
    sent
}

/// write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, data: *const c_void, length: size_t) -> ssize_t {
    let sender = socket::Sender::of_any_file(fd);
    socket::wait(sender, fd, length, 0);
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::write(fd, data, length) };
    socket::count(sender, 1, sent);
    sent
}

/// writev(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let sender = socket::Sender::of_any_file(fd);
    if sender.is_paced() {
        // SAFETY: the caller guarantees that there are `count` parts.
        let length = unsafe { total_length(parts, usize::try_from(count).unwrap_or(0)) };
        socket::wait(sender, fd, length, 0);
    }
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::writev(fd, parts, count) };
    socket::count(sender, 1, sent);
    sent
}

/// sendmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let sender = socket::Sender::of(fd);
    // SAFETY: the caller guarantees that a message header is there, if the pointer is not null; it is only read.
    let header = unsafe { message.as_ref() };
    if let Some(header) = header.filter(|_| sender.is_paced()) {
        // SAFETY: the caller's header gives the number of parts.
        let length = unsafe { total_length(header.msg_iov, header.msg_iovlen) };
        socket::wait(sender, fd, length, flags);
    }
    let mut room = Control([0; CONTROL]);
    // SAFETY: the caller's header is valid.
    let ours = header.and_then(|header| unsafe { remarked(header, &mut room) });
    let message = ours.as_ref().map_or(message, std::ptr::from_ref);
    // SAFETY: libc's function with the caller's message, or one that differs in its control messages, which are in `room`.
    let sent = unsafe { real::sendmsg(fd, message, flags) };
    socket::count(sender, 1, sent);
    sent
}

/// sendmmsg(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let sender = socket::Sender::of(fd);
    if messages.is_null() || (!sender.is_paced() && !state::marks()) {
        // SAFETY: libc's function with the caller's arguments.
        let sent = unsafe { real::sendmmsg(fd, messages, count, flags) };
        // SAFETY: the caller guarantees that so many messages are there, and libc has filled in the lengths of those sent.
        unsafe { count_messages(sender, messages, sent) };
        return sent;
    }
    // A message that has to wait would hold up those before it in its batch.
    let batch = if sender.is_paced() { 1 } else { BATCH as c_uint };
    let mut done = 0;
    while done < count {
        let some = (count - done).min(batch);
        // SAFETY: `done` is below the number of messages that the caller guarantees.
        let first = unsafe { messages.add(done as usize) };
        // SAFETY: there are `some` messages from there on.
        let sent = unsafe { send_batch(sender, fd, first, some, flags) };
        match sent {
            // As in libc: an error is returned only where nothing was sent.
            ..0 if done == 0 => return sent,
            ..=0 => break,
            _ => done += sent as c_uint,
        }
        if sent < some as c_int {
            break;
        }
    }
    done as c_int
}

/// Sends at most [`BATCH`] messages, after waiting for the time of each that is to be paced.
///
/// # Safety
/// `count` messages must be at `messages`, at most [`BATCH`], valid as for `sendmmsg`.
unsafe fn send_batch(
    sender: socket::Sender,
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    let mut rooms = [Control([0; CONTROL]); BATCH];
    // SAFETY: all-zero bits are a valid mmsghdr: null pointers with lengths of zero.
    let mut ours: [mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for (i, (copy, room)) in ours.iter_mut().zip(&mut rooms).take(count as usize).enumerate() {
        // SAFETY: `i` is below `count`.
        *copy = unsafe { *messages.add(i) };
        if sender.is_paced() {
            // SAFETY: the caller's header says how many parts there are.
            let length = unsafe { total_length(copy.msg_hdr.msg_iov, copy.msg_hdr.msg_iovlen) };
            socket::wait(sender, fd, length, flags);
        }
        // SAFETY: the caller's header is valid.
        if let Some(header) = unsafe { remarked(&copy.msg_hdr, room) } {
            copy.msg_hdr = header;
        }
    }
    // SAFETY: `count` messages are in `ours`, as valid as the caller's; replaced control messages are in `rooms`.
    let sent = unsafe { real::sendmmsg(fd, ours.as_mut_ptr(), count, flags) };
    for (i, copy) in ours.iter().enumerate().take(usize::try_from(sent).unwrap_or(0)) {
        // SAFETY: `i` is below `count`, and the caller's messages may be written as sendmmsg does.
        unsafe { (*messages.add(i)).msg_len = copy.msg_len };
    }
    // SAFETY: libc has filled in the lengths of those sent.
    unsafe { count_messages(sender, ours.as_ptr(), sent) };
    sent
}

/// pwritev2(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev2(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    let sender = socket::Sender::of_any_file(fd);
    if sender.is_paced() {
        // SAFETY: the caller guarantees that there are `count` parts.
        let length = unsafe { total_length(parts, usize::try_from(count).unwrap_or(0)) };
        socket::wait(sender, fd, length, 0);
    }
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::pwritev2(fd, parts, count, offset, flags) };
    socket::count(sender, 1, sent);
    sent
}

/// pwritev2(2), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pwritev64v2(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the same function, where offsets have 64 bits.
    unsafe { pwritev2(fd, parts, count, offset, flags) }
}

/// sendfile(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    let sender = socket::Sender::of_any_file(to);
    socket::wait(sender, to, count, 0);
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::sendfile(to, from, offset, count) };
    socket::count(sender, 1, sent);
    sent
}

/// sendfile(2), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: the same function, where offsets have 64 bits.
    unsafe { sendfile(to, from, offset, count) }
}

/// splice(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_offset: *mut loff_t,
    to: c_int,
    to_offset: *mut loff_t,
    count: size_t,
    flags: c_uint,
) -> ssize_t {
    let sender = socket::Sender::of_any_file(to);
    socket::wait(sender, to, count, 0);
    // SAFETY: libc's function with the caller's arguments.
    let sent = unsafe { real::splice(from, from_offset, to, to_offset, count, flags) };
    socket::count(sender, 1, sent);
    sent
}

/// `aio_write`(3). A thread of libc writes later.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aio_write(request: *mut aiocb) -> c_int {
    // SAFETY: the caller guarantees that a request is there, if the pointer is not null; it is only read.
    if let Some(request) = unsafe { request.as_ref() } {
        socket::written_by_libc(request.aio_fildes);
    }
    // SAFETY: libc's function with the caller's argument.
    unsafe { real::aio_write(request) }
}

/// `aio_write`(3), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aio_write64(request: *mut aiocb) -> c_int {
    // SAFETY: the same function, where offsets have 64 bits.
    unsafe { aio_write(request) }
}

/// `lio_listio`(3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lio_listio(
    mode: c_int,
    list: *const *mut aiocb,
    count: c_int,
    event: *mut sigevent,
) -> c_int {
    let length = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    for i in 0..length {
        // SAFETY: the caller guarantees that there are `count` pointers, each to a request or null; they are only read.
        let request = unsafe { (*list.add(i)).as_ref() };
        if let Some(request) = request.filter(|request| request.aio_lio_opcode == LIO_WRITE) {
            socket::written_by_libc(request.aio_fildes);
        }
    }
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::lio_listio(mode, list, count, event) }
}

/// `lio_listio`(3), as programs with 64-bit file offsets call it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn lio_listio64(
    mode: c_int,
    list: *const *mut aiocb,
    count: c_int,
    event: *mut sigevent,
) -> c_int {
    // SAFETY: the same function, where offsets have 64 bits.
    unsafe { lio_listio(mode, list, count, event) }
}

/// vdprintf(3). A `va_list` is passed as a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int {
    socket::written_by_libc(fd);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::vdprintf(fd, format, arguments) }
}

/// vdprintf(3), as programs call it that are built with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    socket::written_by_libc(fd);
    // SAFETY: libc's function with the caller's arguments.
    unsafe { real::__vdprintf_chk(fd, flag, format, arguments) }
}

/// A copy of a message header whose marks are replaced; `None` if there is nothing to replace.
///
/// # Safety
/// The header must be valid as for `sendmsg`.
unsafe fn remarked(header: &msghdr, room: &mut Control) -> Option<msghdr> {
    let settings = state::settings().filter(|settings| settings.dscp.is_some())?;
    let length = header.msg_controllen;
    // SAFETY: the caller's header gives the length of its control messages.
    let theirs = unsafe { bytes(header.msg_control, length) }.filter(|bytes| !bytes.is_empty())?;
    let Some(copy) = room.0.get_mut(..length) else {
        state::add(Total::Unreplaced, 1);
        return None;
    };
    copy.copy_from_slice(theirs);
    let found = cutline_marking::control::remark(copy, &settings);
    state::add(Total::Replaced, found as u64);
    (found > 0).then(|| msghdr { msg_control: copy.as_mut_ptr().cast(), ..*header })
}

/// # Safety
/// There must be `count` parts, unless the pointer is null.
unsafe fn total_length(parts: *const iovec, count: usize) -> usize {
    if parts.is_null() {
        return 0;
    }
    // SAFETY: as the caller guarantees.
    let parts = unsafe { from_raw_parts(parts, count) };
    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.iov_len))
}

/// # Safety
/// There must be as many messages as were sent, with their lengths filled in.
unsafe fn count_messages(sender: socket::Sender, messages: *const mmsghdr, sent: c_int) {
    let Some(count) = usize::try_from(sent).ok().filter(|&count| count > 0) else { return };
    // SAFETY: what the caller says.
    let messages = unsafe { from_raw_parts(messages, count) };
    let bytes = messages.iter().fold(0, |sum: u64, message| sum.saturating_add(message.msg_len.into()));
    socket::count(sender, count as u64, ssize_t::try_from(bytes).unwrap_or(0));
}
