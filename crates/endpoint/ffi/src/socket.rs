//! Sockets.

use crate::address;
use crate::borrow;
use crate::error::{Failure, call};
use crate::options::{bytes, or_default, room, text};
use cutline_bindings::{AnyAddress, AnySocket, Options, SocketPlace as Place, SocketType};
use libc::{sockaddr, socklen_t};
use rustix::fd::{AsFd as _, AsRawFd as _};
use std::ffi::{c_char, c_int, c_void};
use std::net::ToSocketAddrs;
use std::ptr;
use std::time::Duration;

/// A socket of either kind, connected or listening.
pub type Socket = AnySocket;

fn connect(kind: c_int, place: Place<'_, impl ToSocketAddrs>, options: &Options) -> Result<Socket, Failure> {
    let options = options.qos_options().map_err(Failure::argument)?;
    Ok(Socket::connecting(socket_type(kind)?, place, &options)?.finish()?)
}

fn listen(kind: c_int, place: Place<'_, impl ToSocketAddrs>, options: &Options) -> Result<Socket, Failure> {
    let options = options.qos_options().map_err(Failure::argument)?;
    Ok(Socket::listen(socket_type(kind)?, place, &options)?)
}

fn socket_type(kind: c_int) -> Result<SocketType, Failure> {
    match kind {
        libc::SOCK_STREAM => Ok(SocketType::Stream),
        libc::SOCK_DGRAM => Ok(SocketType::Datagrams),
        kind => Err(Failure::argument(format!("type = {kind}: allowed are SOCK_STREAM and SOCK_DGRAM"))),
    }
}

/// Gives a socket, or none, to the caller.
fn handle(make: impl FnOnce() -> Result<Socket, Failure>) -> *mut Socket {
    call(ptr::null_mut(), || Ok(Box::into_raw(Box::new(make()?))))
}

/// Connects to an address, and negotiates with the QoS socket there: socket() and connect() in one. `type` is SOCK_STREAM or
/// SOCK_DGRAM. Null options mean no requirements. If the peer is a plain socket, the new socket is a plain one, too. Returns a
/// null pointer if the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_connect(
    r#type: c_int,
    address: *const sockaddr,
    length: socklen_t,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C guarantees that its arguments are valid.
        let (address, options) = unsafe { (address::read(address, length)?, or_default(options)) };
        connect(r#type, Place::Ip(address), &options)
    })
}

/// As cutline_connect, with the address as a text: "192.0.2.1:5004", "[2001:db8::1]:5004", "host.example:5004". A link-local
/// address contains its interface: "[fe80::1%eth0]:5004". Frames below IP have addresses such as
/// "direct:eth0/02:00:00:00:00:01:7000": an interface of this host, and the link address and the port of the peer. Such frames
/// carry datagrams, and both processes need CAP_NET_RAW.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_connect_to(
    r#type: c_int,
    address: *const c_char,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (text(address, "address")?, or_default(options)) };
        connect(r#type, Place::to(address), &options)
    })
}

/// Listens at an address: socket(), bind() and listen() in one. Datagram connections are accepted like streams. A stream's listener
/// uses the same port number of UDP as well, to announce that it is a QoS socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_listen(
    r#type: c_int,
    address: *const sockaddr,
    length: socklen_t,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (address::read(address, length)?, or_default(options)) };
        listen(r#type, Place::Ip(address), &options)
    })
}

/// As cutline_listen, with the address as a text: "0.0.0.0:5004", "[::]:5004", "[fe80::1%eth0]:5004", and for frames below IP
/// "direct:eth0:7000". Port 0 selects a free port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_listen_at(
    r#type: c_int,
    address: *const c_char,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (text(address, "address")?, or_default(options)) };
        listen(r#type, Place::at(address), &options)
    })
}

/// Waits for the next connection. `address` and `length` are as in accept(), and may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_accept(
    socket: *mut Socket,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (accepted, peer) = unsafe { borrow(socket, "socket") }?.accept()?;
        // SAFETY: as above.
        unsafe { address::write(peer.socket_addr(), address, length) }?;
        Ok(accepted)
    })
}

/// Sends a message. Returns the number of accepted bytes: all bytes of a datagram, possibly fewer of a stream. The call waits
/// while the application exceeds the agreed rate, according to the option `pacing`. `flags` is 0 or MSG_NOSIGNAL; SIGPIPE is
/// never raised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_send(
    socket: *mut Socket,
    data: *const c_void,
    length: usize,
    flags: c_int,
) -> isize {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (socket, data) = unsafe { (borrow(socket, "socket")?, bytes(data, length, "data")?) };
        if flags & !libc::MSG_NOSIGNAL != 0 {
            return Err(Failure::argument(format!("flags = {flags}: allowed are 0 and MSG_NOSIGNAL")));
        }
        Ok(socket.send(data)?.cast_signed())
    })
}

/// Receives bytes of a stream, or a datagram, whose bytes beyond `length` are lost. Returns the number of bytes; 0 at the end of
/// a stream. `flags` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_recv(
    socket: *mut Socket,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
) -> isize {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (socket, buffer) = unsafe { (borrow(socket, "socket")?, room(buffer, length, "buffer")?) };
        if flags != 0 {
            return Err(Failure::argument(format!("flags = {flags}: allowed is 0")));
        }
        Ok(socket.recv(buffer)?.cast_signed())
    })
}

/// Returns the descriptor to wait for with poll(). Reading or writing it directly breaks the connection. Call cutline_pending
/// first: data that the library has already received does not make the descriptor readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_fd(socket: *mut Socket) -> c_int {
    // SAFETY: the caller of a function of C promises what its arguments are.
    call(-1, || Ok(unsafe { borrow(socket, "socket") }?.as_fd().as_raw_fd()))
}

/// Returns 1 if data has already been received, so that cutline_recv does not wait, and 0 if the caller must wait for the
/// descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_pending(socket: *mut Socket) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        Ok(c_int::from(unsafe { borrow(socket, "socket") }?.has_pending()?))
    })
}

/// Sets the mode of calls that would wait: they wait (0), or fail with EAGAIN (1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_nonblocking(socket: *mut Socket, nonblocking: c_int) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        unsafe { borrow(socket, "socket") }?.set_nonblocking(nonblocking != 0)?;
        Ok(0)
    })
}

/// Sets the time after which a waiting cutline_recv fails with EAGAIN; 0 is no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_recv_timeout(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    call(-1, || {
        let time = timeout(timeout_ms)?;
        // SAFETY: the caller of a function of C promises what its arguments are.
        unsafe { borrow(socket, "socket") }?.set_read_timeout(time)?;
        Ok(0)
    })
}

/// Sets the time after which a waiting cutline_send of a stream fails with EAGAIN; 0 is no limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_send_timeout(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    call(-1, || {
        let time = timeout(timeout_ms)?;
        // SAFETY: the caller of a function of C promises what its arguments are.
        unsafe { borrow(socket, "socket") }?.set_write_timeout(time)?;
        Ok(0)
    })
}

fn timeout(ms: c_int) -> Result<Option<Duration>, Failure> {
    let ms = u64::try_from(ms)
        .map_err(|_| Failure::argument(format!("timeout_ms = {ms}: allowed are 0 and above")))?;
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

/// Returns 1 if the peer is a QoS socket, and 0 if it is a plain one. For an accepted stream the call waits for the first bytes
/// of the peer, which show its kind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_has_qos_peer(socket: *mut Socket) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        Ok(c_int::from(unsafe { borrow(socket, "socket") }?.has_qos_peer()?))
    })
}

/// Writes the address of this end, as getsockname(). That of frames below IP is the link-local address of IPv6 that is derived from the
/// link address (RFC 4291 appendix A), with the interface as its zone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_getsockname(
    socket: *mut Socket,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let here = unsafe { borrow(socket, "socket") }?.local_addr()?;
        // SAFETY: as above.
        unsafe { address::write(here.socket_addr(), address, length) }?;
        Ok(0)
    })
}

/// Writes the address of the peer, as getpeername(), and for frames below IP as cutline_getsockname().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_getpeername(
    socket: *mut Socket,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let there = unsafe { borrow(socket, "socket") }?.peer_addr()?;
        // SAFETY: as above.
        unsafe { address::write(there.socket_addr(), address, length) }?;
        Ok(0)
    })
}

/// Writes the address of this end as a text that cutline_listen_at() takes. As snprintf(), it writes at most `length` bytes with a zero
/// at the end, and returns the length of the whole text without the zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_local_address(
    socket: *mut Socket,
    buffer: *mut c_char,
    length: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let here = unsafe { borrow(socket, "socket") }?.local_addr()?;
        // SAFETY: as above.
        unsafe { write_text(here, buffer, length) }
    })
}

/// As cutline_local_address(), for the address of the peer as a text that cutline_connect_to() takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_peer_address(
    socket: *mut Socket,
    buffer: *mut c_char,
    length: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let there = unsafe { borrow(socket, "socket") }?.peer_addr()?;
        // SAFETY: as above.
        unsafe { write_text(there, buffer, length) }
    })
}

/// Writes an address as a text, as much as there is room for with a zero. Returns its length.
///
/// # Safety
/// As [`room()`].
unsafe fn write_text(address: AnyAddress, buffer: *mut c_char, length: usize) -> Result<isize, Failure> {
    let text = address.to_string();
    // SAFETY: the caller's promise.
    let room = unsafe { room(buffer.cast(), length, "buffer") }?;
    if let Some(most) = room.len().checked_sub(1) {
        let written = text.len().min(most);
        room[..written].copy_from_slice(&text.as_bytes()[..written]);
        room[written] = 0;
    }
    Ok(text.len().cast_signed())
}

/// Shuts down one direction of a stream, or both: `how` is SHUT_RD, SHUT_WR or SHUT_RDWR. A waiting call of another thread returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_shutdown(socket: *mut Socket, how: c_int) -> c_int {
    call(-1, || {
        use std::net::Shutdown;
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            how => {
                let allowed = "allowed are SHUT_RD, SHUT_WR and SHUT_RDWR";
                return Err(Failure::argument(format!("how = {how}: {allowed}")));
            }
        };
        // SAFETY: the caller of a function of C promises what its arguments are.
        unsafe { borrow(socket, "socket") }?.shutdown(how)?;
        Ok(0)
    })
}

/// Closes a socket and frees its handle. No other call on the socket may be under way. A null pointer is allowed. The call does
/// not wait: data that a stream has accepted is delivered in the background, according to the option linger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_close(socket: *mut Socket) -> c_int {
    call(-1, || {
        if !socket.is_null() {
            // SAFETY: the caller promises that a call above returned it, and that it is not used again.
            let socket = unsafe { Box::from_raw(socket) };
            // The data of a handler may be gone when this returns. A listening socket has none.
            if let Ok(connection) = socket.connection("events") {
                connection.remove_handler();
            }
        }
        Ok(0)
    })
}
