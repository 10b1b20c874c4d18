//! A socket of any kind behind one handle, as C and Python have it.

use crate::address::{AnyAddress, direct_address, is_direct, listen_direct};
use cutline_params::ParameterError;
use cutline_socket::{
    Connecting, ConnectionHandle, QosDirectListener, QosDirectSocket, QosError, QosOptions, QosTcpListener,
    QosTcpStream, QosUdpListener, QosUdpSocket,
};
use cutline_sys::address;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A socket of any transport, connected or listening.
pub enum AnySocket {
    /// A connected stream.
    Stream(QosTcpStream),
    /// A connected datagram socket.
    Datagrams(QosUdpSocket),
    /// A connected socket of messages in frames below IP.
    Direct(QosDirectSocket),
    /// A listening stream socket.
    StreamListener(Box<QosTcpListener>),
    /// A listening datagram socket.
    DatagramListener(Box<QosUdpListener>),
    /// A listening socket of frames below IP.
    DirectListener(Box<QosDirectListener>),
}

/// Service of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketType {
    /// A stream of bytes.
    Stream,
    /// Datagrams.
    Datagrams,
}

/// Address to connect to, or to listen at.
#[derive(Debug)]
pub enum SocketPlace<'t, A> {
    /// Addresses of IP.
    Ip(A),
    /// The text of an address of frames below IP.
    Direct(&'t str),
}

/// A text with an address of IP, whose zone may be the name of an interface. It is looked up when the socket is made.
#[derive(Clone, Copy, Debug)]
pub struct AddressText<'t> {
    text: &'t str,
    look_up: fn(&str) -> io::Result<Vec<SocketAddr>>,
}

impl ToSocketAddrs for AddressText<'_> {
    type Iter = std::vec::IntoIter<SocketAddr>;

    fn to_socket_addrs(&self) -> io::Result<Self::Iter> {
        (self.look_up)(self.text).map(Vec::into_iter)
    }
}

impl<'t> SocketPlace<'t, AddressText<'t>> {
    /// Returns the place to connect to of a text: `192.0.2.1:5004`, `host.example:5004`, `[fe80::1%eth0]:5004` or
    /// `direct:eth0/02:00:00:00:00:01:7000`.
    pub fn to(text: &'t str) -> Self {
        Self::of(text, |text| address::lookup(text, None))
    }

    /// Returns the place to listen at of a text: `0.0.0.0:5004`, `[fe80::1%eth0]:0` or `direct:eth0:7000`.
    pub fn at(text: &'t str) -> Self {
        Self::of(text, address::lookup_listen_address)
    }

    fn of(text: &'t str, look_up: fn(&str) -> io::Result<Vec<SocketAddr>>) -> Self {
        if is_direct(text) { Self::Direct(text) } else { Self::Ip(AddressText { text, look_up }) }
    }
}

/// A connection of any kind that is being made.
#[derive(Debug)]
pub enum AnyConnecting {
    /// A stream.
    Stream(Connecting<QosTcpStream>),
    /// A datagram socket.
    Datagrams(Connecting<QosUdpSocket>),
    /// A socket of frames below IP.
    Direct(Connecting<QosDirectSocket>),
}

impl AnyConnecting {
    /// Waits until the socket is connected. It can be called again when a signal has interrupted it.
    ///
    /// # Errors
    /// Those of connecting.
    pub fn finish(&mut self) -> Result<AnySocket, QosError> {
        match self {
            Self::Stream(it) => it.finish().map(AnySocket::Stream),
            Self::Datagrams(it) => it.finish().map(AnySocket::Datagrams),
            Self::Direct(it) => it.finish().map(AnySocket::Direct),
        }
    }
}

/// A call that a kind of socket does not have. It is the inner error of an [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: not for {socket}")]
pub struct UnsupportedCall {
    /// The call.
    pub call: &'static str,
    /// The kind of socket.
    pub socket: &'static str,
}

impl AnySocket {
    /// Begins to connect, and does not wait but for the addresses of a name.
    ///
    /// # Errors
    /// When the place is no address, or an option is not allowed.
    pub fn connecting(
        kind: SocketType,
        place: SocketPlace<'_, impl ToSocketAddrs>,
        options: &QosOptions,
    ) -> Result<AnyConnecting, QosError> {
        match (kind, place) {
            (SocketType::Stream, SocketPlace::Ip(address)) => {
                QosTcpStream::connecting(address, options).map(AnyConnecting::Stream)
            }
            (SocketType::Datagrams, SocketPlace::Ip(address)) => {
                QosUdpSocket::connecting(address, options).map(AnyConnecting::Datagrams)
            }
            (SocketType::Datagrams, SocketPlace::Direct(text)) => {
                QosDirectSocket::connecting(direct_address(text)?, options).map(AnyConnecting::Direct)
            }
            (SocketType::Stream, SocketPlace::Direct(text)) => Err(no_stream(text)),
        }
    }

    /// Listens.
    ///
    /// # Errors
    /// When the place is no address that the socket can have, or an option is not allowed.
    pub fn listen(
        kind: SocketType,
        place: SocketPlace<'_, impl ToSocketAddrs>,
        options: &QosOptions,
    ) -> Result<Self, QosError> {
        match (kind, place) {
            (SocketType::Stream, SocketPlace::Ip(address)) => {
                QosTcpListener::bind(address, options).map(|it| Self::StreamListener(it.into()))
            }
            (SocketType::Datagrams, SocketPlace::Ip(address)) => {
                QosUdpListener::bind(address, options).map(|it| Self::DatagramListener(it.into()))
            }
            (SocketType::Datagrams, SocketPlace::Direct(text)) => {
                listen_direct(text, options).map(|it| Self::DirectListener(it.into()))
            }
            (SocketType::Stream, SocketPlace::Direct(text)) => Err(no_stream(text)),
        }
    }

    fn unsupported(&self, call: &'static str) -> io::Error {
        let socket = match self {
            Self::Stream(_) => "a connected stream",
            Self::Datagrams(_) | Self::Direct(_) => "a connected datagram socket",
            Self::StreamListener(_) | Self::DatagramListener(_) | Self::DirectListener(_) => {
                "a listening socket"
            }
        };
        io::Error::new(io::ErrorKind::Unsupported, UnsupportedCall { call, socket })
    }

    /// Returns the connection, with its events, measures and reservation.
    ///
    /// # Errors
    /// Of a listening socket, which has no such `call`, and [`QosError::Inherited`] in a child by fork(2), where a lock may be held forever.
    pub fn connection(&self, call: &'static str) -> io::Result<&ConnectionHandle> {
        let handle: &ConnectionHandle = match self {
            Self::Stream(it) => it,
            Self::Datagrams(it) => it,
            Self::Direct(it) => it,
            _ => return Err(self.unsupported(call)),
        };
        if handle.is_inherited() { Err(QosError::Inherited.into()) } else { Ok(handle) }
    }

    /// Accepts a connection.
    ///
    /// # Errors
    /// Of a connected socket, and those of the listener.
    pub fn accept(&self) -> io::Result<(Self, AnyAddress)> {
        match self {
            Self::StreamListener(it) => {
                it.accept().map(|(stream, peer)| (Self::Stream(stream), AnyAddress::Ip(peer)))
            }
            Self::DatagramListener(it) => {
                it.accept().map(|(socket, peer)| (Self::Datagrams(socket), AnyAddress::Ip(peer)))
            }
            Self::DirectListener(it) => {
                it.accept().map(|(socket, peer)| (Self::Direct(socket), AnyAddress::Direct(peer)))
            }
            Self::Stream(_) | Self::Datagrams(_) | Self::Direct(_) => Err(self.unsupported("accept")),
        }
    }

    /// Sends bytes of a stream, or a datagram. Returns the number of bytes taken.
    ///
    /// # Errors
    /// Of a listening socket, and those of the socket.
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(it) => (&mut &*it).write(data),
            Self::Datagrams(it) => it.send(data),
            Self::Direct(it) => it.send(data),
            _ => Err(self.unsupported("send")),
        }
    }

    /// Receives bytes of a stream, or a datagram. Returns the number of bytes.
    ///
    /// # Errors
    /// Of a listening socket, and those of the socket.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stream(it) => (&mut &*it).read(buffer),
            Self::Datagrams(it) => it.recv(buffer),
            Self::Direct(it) => it.recv(buffer),
            _ => Err(self.unsupported("recv")),
        }
    }

    /// Returns whether the socket carries datagrams.
    pub const fn has_datagrams(&self) -> bool {
        !matches!(self, Self::Stream(_) | Self::StreamListener(_))
    }

    /// Returns whether data were received already, so that receiving does not wait.
    ///
    /// # Errors
    /// Of a listening socket.
    pub fn has_pending(&self) -> io::Result<bool> {
        match self {
            Self::Stream(it) => Ok(it.has_pending()),
            Self::Datagrams(it) => Ok(it.has_pending()),
            Self::Direct(it) => Ok(it.has_pending()),
            _ => Err(self.unsupported("pending data")),
        }
    }

    /// Sets whether calls fail instead of waiting.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Stream(it) => it.set_nonblocking(nonblocking),
            Self::Datagrams(it) => it.set_nonblocking(nonblocking),
            Self::Direct(it) => it.set_nonblocking(nonblocking),
            Self::StreamListener(it) => it.set_nonblocking(nonblocking),
            Self::DatagramListener(it) => it.set_nonblocking(nonblocking),
            Self::DirectListener(it) => it.set_nonblocking(nonblocking),
        }
    }

    /// Sets the longest time that receiving waits; `None` for any time.
    ///
    /// # Errors
    /// Of a listening socket, and those of the socket.
    pub fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Stream(it) => it.set_read_timeout(time),
            Self::Datagrams(it) => it.set_read_timeout(time),
            Self::Direct(it) => it.set_read_timeout(time),
            _ => Err(self.unsupported("a timeout")),
        }
    }

    /// Sets the longest time that sending waits; `None` for any time.
    ///
    /// # Errors
    /// Of a socket that is no stream, and those of the stream.
    pub fn set_write_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Stream(it) => it.set_write_timeout(time),
            _ => Err(self.unsupported("a timeout of sending")),
        }
    }

    /// Returns whether the peer is a QoS socket. On a stream that was accepted it waits until that is known.
    ///
    /// # Errors
    /// Of a listening socket, and those of the connection.
    pub fn has_qos_peer(&self) -> io::Result<bool> {
        match self {
            Self::Stream(it) => it.has_qos_peer().map_err(io::Error::from),
            Self::Datagrams(it) => Ok(it.has_qos_peer()),
            Self::Direct(it) => Ok(it.has_qos_peer()),
            _ => Err(self.unsupported("another end")),
        }
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<AnyAddress> {
        let address = match self {
            Self::Stream(it) => it.local_addr(),
            Self::Datagrams(it) => it.local_addr(),
            Self::StreamListener(it) => it.local_addr(),
            Self::DatagramListener(it) => it.local_addr(),
            Self::Direct(it) => return it.local_addr().map(AnyAddress::Direct),
            Self::DirectListener(it) => return it.local_addr().map(AnyAddress::Direct),
        };
        address.map(AnyAddress::Ip)
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    /// Of a listening socket.
    pub fn peer_addr(&self) -> io::Result<AnyAddress> {
        match self {
            Self::Stream(it) => Ok(AnyAddress::Ip(it.peer_addr())),
            Self::Datagrams(it) => Ok(AnyAddress::Ip(it.peer_addr())),
            Self::Direct(it) => Ok(AnyAddress::Direct(it.peer_addr())),
            _ => Err(self.unsupported("another end")),
        }
    }

    /// Ends a direction of a stream, or both; of a listening stream socket, its waiting.
    ///
    /// # Errors
    /// Of datagrams, which have no end, and those of the system.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            // Data written before are delivered, which the kernel's call alone does not promise.
            Self::Stream(it) => it.shutdown(how),
            Self::StreamListener(it) => {
                let how = match how {
                    Shutdown::Read => rustix::net::Shutdown::Read,
                    Shutdown::Write => rustix::net::Shutdown::Write,
                    Shutdown::Both => rustix::net::Shutdown::Both,
                };
                Ok(rustix::net::shutdown(it.as_fd(), how)?)
            }
            Self::Datagrams(_) | Self::Direct(_) | Self::DatagramListener(_) | Self::DirectListener(_) => {
                let socket = "datagrams, which have no end";
                Err(io::Error::new(io::ErrorKind::Unsupported, UnsupportedCall { call: "shutdown", socket }))
            }
        }
    }
}

impl AsFd for AnySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(it) => it.as_fd(),
            Self::Datagrams(it) => it.as_fd(),
            Self::StreamListener(it) => it.as_fd(),
            Self::DatagramListener(it) => it.as_fd(),
            Self::Direct(it) => it.as_fd(),
            Self::DirectListener(it) => it.as_fd(),
        }
    }
}

/// Returns the error of a stream over frames.
fn no_stream(address: &str) -> QosError {
    let allowed = "an address of IP for a stream: frames below IP carry datagrams";
    ParameterError::new("address", address, allowed).into()
}

/// An error of a call on a socket.
#[derive(Debug)]
pub enum CallFailure {
    /// An error of the connection.
    Qos(QosError),
    /// A call that the socket does not have.
    Unsupported(UnsupportedCall),
    /// Another error.
    Io(io::Error),
}

impl From<io::Error> for CallFailure {
    fn from(error: io::Error) -> Self {
        let error = match error.downcast::<QosError>() {
            Ok(error) => return Self::Qos(error),
            Err(error) => error,
        };
        error.downcast::<UnsupportedCall>().map_or_else(Self::Io, Self::Unsupported)
    }
}
