//! Streams.

use crate::watched::{
    Descriptor, Watched, accept_watchable, addresses, connected, connection_calls, system, watch,
};
use cutline_socket::{Mib, QosError, QosOptions, SessionEvent};
use std::fmt;
use std::future::Future as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::ToSocketAddrs;
use tokio::task::coop::poll_proceed;
use tokio::time::{Sleep, sleep};

/// A stream with quality of service. It is read and written as a [`tokio::net::TcpStream`], and can be split.
pub struct QosTcpStream {
    stream: Arc<Watched<cutline_socket::QosTcpStream>>,
    reading: Pause,
    writing: Pause,
}

/// Interval of checks whether the peer has begun, or the connection is there again. The peer's
/// first message is read by the thread that serves connections.
const LOOK: Duration = Duration::from_millis(5);

/// A pause while the peer has not begun, or the connection is being made again: the descriptor reports neither.
#[derive(Default)]
struct Pause(Option<Pin<Box<Sleep>>>);

impl Pause {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let pausing = self.0.get_or_insert_with(|| Box::pin(sleep(LOOK)));
        ready!(pausing.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(())
    }
}

type Inner = Watched<cutline_socket::QosTcpStream>;

fn poll_read(
    stream: &Inner,
    pause: &mut Pause,
    cx: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    if buffer.remaining() == 0 {
        return Poll::Ready(Ok(()));
    }
    // A task whose calls never wait lets others run now and then, as with the sockets of tokio.
    let budget = ready!(poll_proceed(cx));
    let read = |buffer: &mut ReadBuf<'_>| -> io::Result<()> {
        let length = stream.socket().read(buffer.initialize_unfilled())?;
        buffer.advance(length);
        Ok(())
    };
    loop {
        // The descriptor does not report data that was received already.
        match read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => {
                pause.0 = None;
                budget.made_progress();
                return Poll::Ready(outcome);
            }
        }
        if stream.socket().is_reconnecting() {
            ready!(pause.poll(cx));
            continue;
        }
        let io = stream.io()?;
        let mut guard = ready!(io.poll_read_ready(cx))?;
        if let Ok(outcome) = guard.try_io(|_| read(buffer)) {
            budget.made_progress();
            return Poll::Ready(outcome);
        }
    }
}

fn poll_write(
    stream: &Inner,
    pause: &mut Pause,
    cx: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    // As in `poll_read`.
    let budget = ready!(poll_proceed(cx));
    loop {
        match stream.socket().write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => {
                pause.0 = None;
                budget.made_progress();
                return Poll::Ready(outcome);
            }
        }
        if stream.socket().is_joining() || stream.socket().is_reconnecting() {
            ready!(pause.poll(cx));
            continue;
        }
        let io = stream.io()?;
        let mut guard = ready!(io.poll_write_ready(cx))?;
        if let Ok(outcome) = guard.try_io(|_| stream.socket().write(bytes)) {
            budget.made_progress();
            return Poll::Ready(outcome);
        }
    }
}

fn poll_shutdown(stream: &Inner) -> Poll<io::Result<()>> {
    match stream.socket().shutdown(Shutdown::Write) {
        // The peer has closed.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
        outcome => Poll::Ready(outcome),
    }
}

impl QosTcpStream {
    /// Connects to an address, and negotiates with the QoS socket there.
    ///
    /// # Errors
    /// As [`cutline_socket::QosTcpStream::connect`].
    pub async fn connect(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        let addresses = addresses(address, "cannot connect").await?;
        let stream = connected(cutline_socket::QosTcpStream::connecting(&addresses[..], options)?).await?;
        Self::from_blocking(stream).map_err(|error| system("cannot watch the socket", error))
    }

    /// A stream that was connected elsewhere. It must have no clones.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn from_blocking(stream: cutline_socket::QosTcpStream) -> io::Result<Self> {
        let stream = Arc::new(Watched::new(stream)?);
        Ok(Self { stream, reading: Pause::default(), writing: Pause::default() })
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.stream.socket().peer_addr()
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`tokio::net::TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.socket().local_addr()
    }

    /// Sets whether small messages are sent at once.
    ///
    /// # Errors
    /// As [`tokio::net::TcpStream::set_nodelay`].
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.stream.socket().set_nodelay(nodelay)
    }

    /// Returns whether small messages are sent at once.
    ///
    /// # Errors
    /// As [`tokio::net::TcpStream::nodelay`].
    pub fn nodelay(&self) -> io::Result<bool> {
        self.stream.socket().nodelay()
    }

    /// Reads bytes that have been received, and does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none; otherwise as of reading.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.socket().read(buffer)
    }

    /// Writes a message, or a part of it, and does not wait for room.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the kernel has no room, or the peer has not begun; otherwise as of writing.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.socket().write(bytes)
    }

    /// Splits it into halves that one task uses at a time.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(&self.stream, Pause::default()), WriteHalf(&self.stream, Pause::default()))
    }

    /// Splits it into halves for different tasks. The writing half ends its direction when it is dropped.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let reads = OwnedReadHalf(Arc::clone(&self.stream), Pause::default());
        (reads, OwnedWriteHalf(self.stream, Pause::default(), IfDropped::Shutdown))
    }
}

/// Reads from a stream that was split ([`QosTcpStream::split`]).
pub struct ReadHalf<'s>(&'s Inner, Pause);

/// Writes to a stream that was split ([`QosTcpStream::split`]).
pub struct WriteHalf<'s>(&'s Inner, Pause);

/// Reads from a stream that was split ([`QosTcpStream::into_split`]).
pub struct OwnedReadHalf(Arc<Inner>, Pause);

/// Writes to a stream that was split ([`QosTcpStream::into_split`]).
pub struct OwnedWriteHalf(Arc<Inner>, Pause, IfDropped);

/// The end of a half that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfDropped {
    /// Its direction ends.
    Shutdown,
    /// Its direction stays open.
    Nothing,
}

/// Two halves that are not of the same stream ([`OwnedReadHalf::reunite`]). They are returned.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are not of the same stream")
    }
}

impl std::error::Error for ReuniteError {}

fn reunite(reads: OwnedReadHalf, writes: OwnedWriteHalf) -> Result<QosTcpStream, ReuniteError> {
    if !Arc::ptr_eq(&reads.0, &writes.0) {
        return Err(ReuniteError(reads, writes));
    }
    writes.forget();
    Ok(QosTcpStream { stream: reads.0, reading: Pause::default(), writing: Pause::default() })
}

impl OwnedReadHalf {
    /// Makes the stream whole again that was split ([`QosTcpStream::into_split`]).
    ///
    /// # Errors
    /// When the other half is not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<QosTcpStream, ReuniteError> {
        reunite(self, other)
    }

    /// Waits for the next event of the connection. Safe to cancel: then no event was taken.
    pub async fn event(&self) -> SessionEvent {
        self.0.event().await
    }

    /// Returns the state of the connection.
    pub fn mib(&self) -> Mib {
        self.0.socket().mib()
    }
}

impl OwnedWriteHalf {
    /// Makes the stream whole again that was split ([`QosTcpStream::into_split`]).
    ///
    /// # Errors
    /// When the other half is not of the same stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<QosTcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops this half, and does not end its direction.
    pub fn forget(mut self) {
        self.2 = IfDropped::Nothing;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.2 == IfDropped::Shutdown {
            let _gone = self.0.socket().shutdown(Shutdown::Write);
        }
    }
}

macro_rules! addresses_of_half {
    ($half:ty) => {
        impl $half {
            /// The address of the peer.
            pub fn peer_addr(&self) -> SocketAddr {
                self.0.socket().peer_addr()
            }

            /// The address of this end.
            ///
            /// # Errors
            /// As [`QosTcpStream::local_addr`].
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.0.socket().local_addr()
            }
        }
    };
}

macro_rules! tries_to_read {
    ($half:ty) => {
        impl $half {
            /// Reads bytes that have been received, and does not wait ([`QosTcpStream::try_read`]).
            ///
            /// # Errors
            /// As [`QosTcpStream::try_read`].
            pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.socket().read(buffer)
            }
        }
    };
}

macro_rules! tries_to_write {
    ($half:ty) => {
        impl $half {
            /// Writes a message, or a part of it, and does not wait for room ([`QosTcpStream::try_write`]).
            ///
            /// # Errors
            /// As [`QosTcpStream::try_write`].
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.0.socket().write(bytes)
            }
        }
    };
}

addresses_of_half!(ReadHalf<'_>);
addresses_of_half!(WriteHalf<'_>);
addresses_of_half!(OwnedReadHalf);
addresses_of_half!(OwnedWriteHalf);
tries_to_read!(ReadHalf<'_>);
tries_to_read!(OwnedReadHalf);
tries_to_write!(WriteHalf<'_>);
tries_to_write!(OwnedWriteHalf);

macro_rules! reads {
    ($reader:ty, $stream:tt, $pause:tt) => {
        /// A read that is dropped has taken nothing.
        impl AsyncRead for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let this = self.get_mut();
                poll_read(&this.$stream, &mut this.$pause, cx, buffer)
            }
        }
    };
}

macro_rules! writes {
    ($writer:ty, $stream:tt, $pause:tt) => {
        /// A write that is dropped has sent nothing; `write_all` may have sent a part. A message that the kernel has begun to take
        /// continues with the data of the next call.
        impl AsyncWrite for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                let this = self.get_mut();
                poll_write(&this.$stream, &mut this.$pause, cx, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                poll_shutdown(&self.$stream)
            }
        }
    };
}

macro_rules! debug {
    ($half:ty, $name:literal) => {
        impl fmt::Debug for $half {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple($name).field(self.0.socket()).finish()
            }
        }
    };
}

debug!(ReadHalf<'_>, "ReadHalf");
debug!(WriteHalf<'_>, "WriteHalf");
debug!(OwnedReadHalf, "OwnedReadHalf");
debug!(OwnedWriteHalf, "OwnedWriteHalf");

reads!(QosTcpStream, stream, reading);
reads!(ReadHalf<'_>, 0, 1);
reads!(OwnedReadHalf, 0, 1);
writes!(QosTcpStream, stream, writing);
writes!(WriteHalf<'_>, 0, 1);
writes!(OwnedWriteHalf, 0, 1);

connection_calls!(QosTcpStream, stream);

/// A socket that streams come to.
pub struct QosTcpListener(AsyncFd<Descriptor<cutline_socket::QosTcpListener>>);

impl QosTcpListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// As [`cutline_socket::QosTcpListener::bind`].
    pub async fn bind(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        let addresses = addresses(address, "cannot listen").await?;
        let listener = cutline_socket::QosTcpListener::bind(&addresses[..], options)?;
        let watched = listener.set_nonblocking(true).and_then(|()| watch(listener));
        watched.map(Self).map_err(|error| system("cannot watch the socket", error))
    }

    /// Waits for the next stream. The first read or write finds out if its peer is a QoS socket. Safe to
    /// cancel: then no stream was taken.
    ///
    /// # Errors
    /// As [`cutline_socket::QosTcpListener::accept`].
    pub async fn accept(&self) -> io::Result<(QosTcpStream, SocketAddr)> {
        loop {
            let mut guard = self.0.readable().await?;
            let accept = cutline_socket::QosTcpListener::accept;
            if let Ok(accepted) = guard.try_io(|io| accept_watchable(&io.get_ref().0, accept)) {
                let (stream, peer) = accepted?;
                return Ok((QosTcpStream::from_blocking(stream)?, peer));
            }
        }
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// As [`tokio::net::TcpListener::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get_ref().0.local_addr()
    }
}

impl fmt::Debug for QosTcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QosTcpListener").field(&self.0.get_ref().0).finish()
    }
}

impl AsFd for QosTcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().0.as_fd()
    }
}
