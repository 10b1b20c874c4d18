//! The library that `cutline exec` preloads into an unchanged program (`LD_PRELOAD`, ld.so(8)).
//!
//! It stands before libc's functions of sockets. Each calls libc's own function, and sets or counts something before or
//! after it:
//!
//! | function | what is added |
//! | --- | --- |
//! | `socket`, `accept`, `accept4` | the socket gets the mark, the priority, the pacing rate and short buffers |
//! | `connect` | the other end's address is noted |
//! | `setsockopt` | a mark of the program keeps its ECN bits and gets our code point; the lower pacing rate holds |
//! | `sendmsg`, `sendmmsg` | the same for marks in control messages; datagrams are paced and counted |
//! | `send`, `sendto`, `write`, `writev` | datagrams are paced and counted |
//! | `dup`, `dup2`, `dup3` | the copy is the same socket in the counters |
//! | `close` | a TCP connection's counters are read |
//!
//! The kernel paces TCP by itself (`SO_MAX_PACING_RATE`), and counts its bytes.
//!
//! It must be harmless in any process:
//!
//! - Whatever cannot be done is left out, and counted: the program's call is made all the same, and its result returned.
//! - `errno` is what libc's function has left.
//! - There is no allocation, no lock, no thread, no signal handler and no output. The state is in atomics (`state`), so all
//!   functions may be called in a signal handler, after `fork` and by any number of threads.
//! - A child of `vfork` shares its parent's memory. It has another process number, and changes nothing but marks.
//! - Nothing panics: a panic could not leave a C function.
//!
//! What is decided about marks, times and counters is in the crate `marking`, without `unsafe`.
#![expect(unsafe_code, reason = "functions with the names and types of libc's, which C programs call")]
#![expect(
    clippy::missing_safety_doc,
    reason = "each is libc's function, with the contract of its manual page"
)]

mod libc_functions;
mod socket;
mod state;

use cutline_marking::table::Total;
use libc::{c_int, c_uint, c_void, iovec, mmsghdr, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use libc_functions as real;
use std::slice::from_raw_parts;

/// Room for the control messages of a message, bytes. QUIC libraries use about 100.
const CONTROL: usize = 512;
/// How many messages of `sendmmsg` are passed on at a time, where their marks are replaced.
const BATCH: usize = 8;

/// Aligned as control messages are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

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
    // SAFETY: the caller says that `length` bytes are at `address`; a null pointer is refused there.
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
    // SAFETY: the caller says that `length` bytes are at `value`; a null pointer is refused there.
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
        // SAFETY: the caller says that there are `count` parts.
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
    // SAFETY: the caller says that a message header is there, if the pointer is not null; it is only read.
    let header = unsafe { message.as_ref() };
    if let Some(header) = header.filter(|_| sender.is_paced()) {
        // SAFETY: the caller's header says how many parts there are.
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
        // SAFETY: the caller says that so many messages are there, and libc has filled in the lengths of those sent.
        unsafe { count_messages(sender, messages, sent) };
        return sent;
    }
    // A message that has to wait would hold up those before it in its batch.
    let batch = if sender.is_paced() { 1 } else { BATCH as c_uint };
    let mut done = 0;
    while done < count {
        let some = (count - done).min(batch);
        // SAFETY: `done` is below the number of messages that the caller says are there.
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
    // SAFETY: libc's function with the caller's arguments.
    let copy = unsafe { real::dup2(fd, to) };
    socket::copied(fd, copy);
    copy
}

/// dup3(2).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
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

/// A copy of a message header whose marks are replaced; `None` if there is nothing to replace.
///
/// # Safety
/// The header must be valid as for `sendmsg`.
unsafe fn remarked(header: &msghdr, room: &mut Control) -> Option<msghdr> {
    let settings = state::settings().filter(|settings| settings.dscp.is_some())?;
    let length = header.msg_controllen;
    // SAFETY: the caller's header says how long its control messages are.
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
/// There must be `length` bytes at `start`, which nobody writes to, unless it is null.
unsafe fn bytes<'b>(start: *const c_void, length: usize) -> Option<&'b [u8]> {
    // SAFETY: what the caller says.
    (!start.is_null()).then(|| unsafe { from_raw_parts(start.cast(), length) })
}

/// # Safety
/// There must be `count` parts, unless the pointer is null.
unsafe fn total_length(parts: *const iovec, count: usize) -> usize {
    if parts.is_null() {
        return 0;
    }
    // SAFETY: what the caller says.
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
