//! Sockets.

use crate::address;
use crate::borrow;
use crate::error::{Failure, call};
use crate::options::{bytes, or_default, room, text};
use cutline_bindings::Options;
use cutline_socket::{
    Event, Mib, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket, ReservationEvent,
};
use libc::{sockaddr, socklen_t};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ffi::{c_char, c_int, c_void};
use std::io::{Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::ptr;
use std::time::Duration;

/// A socket of either kind, connected or listening.
pub enum Socket {
    Stream(QosTcpStream),
    Datagrams(QosUdpSocket),
    StreamListener(Box<QosTcpListener>),
    DatagramListener(Box<QosUdpListener>),
}

impl Socket {
    fn connect(kind: c_int, address: impl ToSocketAddrs, options: &Options) -> Result<Self, Failure> {
        let options = options.qos_options().map_err(Failure::argument)?;
        match kind {
            libc::SOCK_STREAM => Ok(Self::Stream(QosTcpStream::connect(address, &options)?)),
            libc::SOCK_DGRAM => Ok(Self::Datagrams(QosUdpSocket::connect(address, &options)?)),
            kind => Err(unknown(kind)),
        }
    }

    fn listen(kind: c_int, address: impl ToSocketAddrs, options: &Options) -> Result<Self, Failure> {
        let options = options.qos_options().map_err(Failure::argument)?;
        match kind {
            libc::SOCK_STREAM => Ok(Self::StreamListener(QosTcpListener::bind(address, &options)?.into())),
            libc::SOCK_DGRAM => Ok(Self::DatagramListener(QosUdpListener::bind(address, &options)?.into())),
            kind => Err(unknown(kind)),
        }
    }

    fn accept(&self) -> Result<(Self, SocketAddr), Failure> {
        match self {
            Self::StreamListener(it) => {
                let (stream, peer) = it.accept()?;
                Ok((Self::Stream(stream), peer))
            }
            Self::DatagramListener(it) => {
                let (socket, peer) = it.accept()?;
                Ok((Self::Datagrams(socket), peer))
            }
            Self::Stream(_) | Self::Datagrams(_) => Err(self.has_no("accept")),
        }
    }

    fn has_no(&self, call: &str) -> Failure {
        let socket = match self {
            Self::Stream(_) => "a connected stream",
            Self::Datagrams(_) => "a connected datagram socket",
            Self::StreamListener(_) | Self::DatagramListener(_) => "a listening socket",
        };
        Failure::unsupported(call, socket)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(it) => it.as_fd(),
            Self::Datagrams(it) => it.as_fd(),
            Self::StreamListener(it) => it.as_fd(),
            Self::DatagramListener(it) => it.as_fd(),
        }
    }

    pub fn wait_for_event(&self, time: Duration) -> Result<Option<Event>, Failure> {
        match self {
            Self::Stream(it) => Ok(it.wait_for_event(time)),
            Self::Datagrams(it) => Ok(it.wait_for_event(time)),
            _ => Err(self.has_no("events")),
        }
    }

    pub fn on_event(&self, handler: impl FnMut(Event) + Send + 'static) -> Result<(), Failure> {
        match self {
            Self::Stream(it) => it.on_event(handler),
            Self::Datagrams(it) => it.on_event(handler),
            _ => return Err(self.has_no("events")),
        }
        Ok(())
    }

    pub fn remove_handler(&self) -> Result<(), Failure> {
        match self {
            Self::Stream(it) => it.remove_handler(),
            Self::Datagrams(it) => it.remove_handler(),
            _ => return Err(self.has_no("events")),
        }
        Ok(())
    }

    pub fn mib(&self) -> Result<Mib, Failure> {
        match self {
            Self::Stream(it) => Ok(it.mib()),
            Self::Datagrams(it) => Ok(it.mib()),
            _ => Err(self.has_no("the MIB")),
        }
    }

    pub fn reservation_event(&self) -> Result<Option<ReservationEvent>, Failure> {
        match self {
            Self::Stream(it) => Ok(it.reservation_event()),
            Self::Datagrams(it) => Ok(it.reservation_event()),
            _ => Err(self.has_no("events")),
        }
    }

    pub fn renegotiate(&self, specification: cutline_socket::ConnectionSpecification) -> Result<(), Failure> {
        match self {
            Self::Stream(it) => it.renegotiate(specification),
            Self::Datagrams(it) => it.renegotiate(specification),
            _ => return Err(self.has_no("negotiating")),
        }
        Ok(())
    }
}

fn unknown(kind: c_int) -> Failure {
    Failure::argument(format!("type = {kind}: allowed are SOCK_STREAM and SOCK_DGRAM"))
}

/// Gives a socket, or none, to the caller.
fn handle(make: impl FnOnce() -> Result<Socket, Failure>) -> *mut Socket {
    call(ptr::null_mut(), || Ok(Box::into_raw(Box::new(make()?))))
}

/// Connects to an address, and negotiates with the QoS socket there: socket() and connect() in one. `type` is SOCK_STREAM or
/// SOCK_DGRAM. Null options demand nothing. With a plain socket at the other end it is a plain socket, too. Returns a null pointer
/// if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_connect(
    r#type: c_int,
    address: *const sockaddr,
    length: socklen_t,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (address::read(address, length)?, or_default(options)) };
        Socket::connect(r#type, address, &options)
    })
}

/// As cutline_connect, with the address as a text: "192.0.2.1:5004", "[2001:db8::1]:5004", "host.example:5004".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_connect_to(
    r#type: c_int,
    address: *const c_char,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (text(address, "address")?, or_default(options)) };
        Socket::connect(r#type, address, &options)
    })
}

/// Listens at an address: socket(), bind() and listen() in one. Datagram connections are accepted like streams. A stream's listener
/// uses the same port number of UDP as well, to say that it is a QoS socket.
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
        Socket::listen(r#type, address, &options)
    })
}

/// As cutline_listen, with the address as a text: "0.0.0.0:5004", "[::]:5004". Port 0 is one that is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_listen_at(
    r#type: c_int,
    address: *const c_char,
    options: *const Options,
) -> *mut Socket {
    handle(|| {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let (address, options) = unsafe { (text(address, "address")?, or_default(options)) };
        Socket::listen(r#type, address, &options)
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
        unsafe { address::write(peer, address, length) }?;
        Ok(accepted)
    })
}

/// Sends a message. Returns how many bytes were taken: all of a datagram; of a stream perhaps fewer. It waits while the application
/// sends faster than was agreed on, as the option `pacing` says. `flags` is 0 or MSG_NOSIGNAL; there is never a SIGPIPE.
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
        let sent = match socket {
            Socket::Stream(it) => (&mut &*it).write(data)?,
            Socket::Datagrams(it) => it.send(data)?,
            _ => return Err(socket.has_no("send")),
        };
        Ok(sent.cast_signed())
    })
}

/// Receives: bytes of a stream, or a datagram, of which the rest is lost if it is longer. Returns how many bytes; 0 at a stream's end.
/// `flags` is 0.
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
        let received = match socket {
            Socket::Stream(it) => (&mut &*it).read(buffer)?,
            Socket::Datagrams(it) => it.recv(buffer)?,
            _ => return Err(socket.has_no("recv")),
        };
        Ok(received.cast_signed())
    })
}

/// Returns the descriptor to wait for with poll(). Who reads or writes it directly breaks the connection. Call cutline_pending
/// before: data that were received already do not make the descriptor readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_fd(socket: *mut Socket) -> c_int {
    // SAFETY: the caller of a function of C promises what its arguments are.
    call(-1, || Ok(unsafe { borrow(socket, "socket") }?.fd().as_raw_fd()))
}

/// Returns 1 if something was received already, so that cutline_recv does not wait, and 0 if not: then wait for the descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_pending(socket: *mut Socket) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        match socket {
            Socket::Stream(it) => Ok(c_int::from(it.has_pending())),
            Socket::Datagrams(it) => Ok(c_int::from(it.has_pending())),
            _ => Err(socket.has_no("pending data")),
        }
    })
}

/// Sets whether calls wait (0) or fail with EAGAIN instead (1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_nonblocking(socket: *mut Socket, nonblocking: c_int) -> c_int {
    call(-1, || {
        let nonblocking = nonblocking != 0;
        // SAFETY: the caller of a function of C promises what its arguments are.
        match unsafe { borrow(socket, "socket") }? {
            Socket::Stream(it) => it.set_nonblocking(nonblocking)?,
            Socket::Datagrams(it) => it.set_nonblocking(nonblocking)?,
            Socket::StreamListener(it) => it.set_nonblocking(nonblocking)?,
            Socket::DatagramListener(it) => it.set_nonblocking(nonblocking)?,
        }
        Ok(0)
    })
}

/// Sets how long cutline_recv waits until it fails with EAGAIN; 0 is as long as it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_recv_timeout(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    call(-1, || {
        let time = timeout(timeout_ms)?;
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        match socket {
            Socket::Stream(it) => it.set_read_timeout(time)?,
            Socket::Datagrams(it) => it.set_read_timeout(time)?,
            _ => return Err(socket.has_no("a timeout")),
        }
        Ok(0)
    })
}

/// Sets how long cutline_send of a stream waits until it fails with EAGAIN; 0 is as long as it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_set_send_timeout(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    call(-1, || {
        let time = timeout(timeout_ms)?;
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        match socket {
            Socket::Stream(it) => it.set_write_timeout(time)?,
            _ => return Err(socket.has_no("a timeout of sending")),
        }
        Ok(0)
    })
}

fn timeout(ms: c_int) -> Result<Option<Duration>, Failure> {
    let ms = u64::try_from(ms)
        .map_err(|_| Failure::argument(format!("timeout_ms = {ms}: allowed are 0 and above")))?;
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

/// Returns 1 if the other end is a QoS socket, and 0 if it is a plain one. On a stream that was accepted it waits until that is
/// known, which the first bytes from the other end show.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_has_qos_peer(socket: *mut Socket) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        match socket {
            Socket::Stream(it) => Ok(c_int::from(it.has_qos_peer()?)),
            Socket::Datagrams(it) => Ok(c_int::from(it.has_qos_peer())),
            _ => Err(socket.has_no("another end")),
        }
    })
}

/// Writes the address of this end, as getsockname().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_getsockname(
    socket: *mut Socket,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let here = match unsafe { borrow(socket, "socket") }? {
            Socket::Stream(it) => it.local_addr()?,
            Socket::Datagrams(it) => it.local_addr()?,
            Socket::StreamListener(it) => it.local_addr()?,
            Socket::DatagramListener(it) => it.local_addr()?,
        };
        // SAFETY: as above.
        unsafe { address::write(here, address, length) }?;
        Ok(0)
    })
}

/// Writes the address of the other end, as getpeername().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_getpeername(
    socket: *mut Socket,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller of a function of C promises what its arguments are.
        let socket = unsafe { borrow(socket, "socket") }?;
        let there = match socket {
            Socket::Stream(it) => it.peer_addr(),
            Socket::Datagrams(it) => it.peer_addr(),
            _ => return Err(socket.has_no("another end")),
        };
        // SAFETY: as above.
        unsafe { address::write(there, address, length) }?;
        Ok(0)
    })
}

/// Ends a direction of a stream, or both: `how` is SHUT_RD, SHUT_WR or SHUT_RDWR. A call of another thread that waits returns.
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
        let socket = unsafe { borrow(socket, "socket") }?;
        match socket {
            Socket::Stream(it) => it.shutdown(how)?,
            Socket::StreamListener(it) => {
                let how = match how {
                    Shutdown::Read => rustix::net::Shutdown::Read,
                    Shutdown::Write => rustix::net::Shutdown::Write,
                    Shutdown::Both => rustix::net::Shutdown::Both,
                };
                rustix::net::shutdown(it.as_fd(), how).map_err(std::io::Error::from)?;
            }
            Socket::Datagrams(_) | Socket::DatagramListener(_) => {
                return Err(Failure::unsupported("shutdown", "datagrams, which have no end"));
            }
        }
        Ok(0)
    })
}

/// Closes a socket and frees its handle. No other call on it may be under way. A null pointer is allowed. It does not wait: what a stream
/// has sent is delivered in the background, as the option linger says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutline_close(socket: *mut Socket) -> c_int {
    call(-1, || {
        if !socket.is_null() {
            // SAFETY: the caller promises that a call above returned it, and that it is not used again.
            let socket = unsafe { Box::from_raw(socket) };
            // The data of a handler may be gone when this returns. A listening socket has none.
            let _has_none = socket.remove_handler();
        }
        Ok(0)
    })
}
