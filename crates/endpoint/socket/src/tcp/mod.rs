//! Streams with quality of service.
//!
//! Each call that writes is a message. Between two QoS sockets a message has a header with its length and the time when it was sent
//! ([`cutline_signal::frame`]), and control messages come between messages. The application reads the bytes that the other one has
//! written, as from any stream. Written bytes are in the kernel when the call returns; nothing waits here.

mod dial;
#[cfg(test)]
mod faults;
mod kernel;
mod linger;
mod listener;
mod negotiation;
mod probe;
mod receive_buffer;
mod receiving;
mod redial;
#[cfg(test)]
mod redial_tests;
mod send_buffer;
mod sending;
mod serving;
#[cfg(test)]
mod tests;

pub use listener::QosTcpListener;

use crate::allocation::PacketKind;
use crate::connecting::Connecting;
use crate::connection::Connection;
use crate::connection_handle::ConnectionHandle;
use crate::error::QosError;
use crate::hint_mark::mark;
use crate::options::QosOptions;
use crate::patience::Patience;
use crate::recovery::Recovery;
use crate::service_thread::ServedConnection;
use crate::signals;
use cutline_allocation::FlowHandler;
use cutline_provision::TransportProtocol;
use cutline_signal::frame::STREAM_HEADER;
use cutline_signal::session::{Inbound, Outbound, Participation, Session};
use cutline_sys::tcp::{is_delivered, set_max_pacing_rate};
use cutline_sys::{lock, now};
use cutline_units::{Duration, Hint, Instant, Rate};
use linger::Listed;
use receive_buffer::ReceiveBuffer;
use redial::{Met, Redial};
use send_buffer::SendBuffer;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time;

/// A stream with quality of service.
///
/// Its calls are those of [`TcpStream`]. It can be shared by threads. Clones are the same socket.
#[derive(Clone)]
pub struct QosTcpStream(Arc<Inner>, ConnectionHandle);

struct Inner {
    socket: Arc<TcpStream>,
    peer: SocketAddr,
    connection: Connection,
    /// Receive buffer. It is locked while a call waits for data.
    receive_buffer: Mutex<ReceiveBuffer>,
    /// Send buffer. It is locked while a call waits for room.
    send_buffer: Mutex<SendBuffer>,
    /// True if an end that takes no part is an error. It is if this end has sent an offer, which would be
    /// data there.
    demands_peer: bool,
    /// True if an application that writes first waits for the peer to begin.
    expects_peer: bool,
    /// Begin of this end, and its wait for the other one.
    since: Instant,
    patience: Duration,
    nonblocking: AtomicBool,
    read_patience: Patience,
    write_patience: Patience,
    /// Recovery of a broken connection; `None` if there is none.
    recovery: Option<Recovery<Redial>>,
    /// Socket that asks whether the peer is there before the connection is made again. It is opened by
    /// the thread that connects, in whose network namespace it stays.
    asker: Option<UdpSocket>,
    /// Time since which the kernel has been waiting for an acknowledgement.
    unheard: Mutex<Option<Instant>>,
    /// The error that ends the stream, if the thread that serves connections has met it; 0 for none.
    fault: AtomicI32,
    /// The pacing rate that the kernel was given, bit/s.
    paced: AtomicU64,
    /// True if the application receives no more.
    is_reading_over: AtomicBool,
    /// Time without a new acknowledgement after which a closed stream is given up.
    linger: Duration,
    listed: Listed,
}

/// The rate of a stream that is not paced.
const UNPACED: u64 = u64::MAX;

impl QosTcpStream {
    /// Connects to an address, and negotiates with the QoS socket there. It waits until both ends agree, or until it is known
    /// that the peer takes no part ([`Peer`](crate::Peer)). Of a name, every address is tried until one answers (RFC 8305).
    ///
    /// # Errors
    /// When an option is not allowed, the ends do not agree, no socket listens there, or the time is over
    /// ([`QosOptions::connect_timeout`]).
    pub fn connect(address: impl ToSocketAddrs, options: &QosOptions) -> Result<Self, QosError> {
        Self::connecting(address, options)?.finish()
    }

    /// Begins to connect to an address, as [`connect`](Self::connect) does, and does not wait but for the addresses of a name.
    ///
    /// # Errors
    /// When the name has no address.
    pub fn connecting(
        address: impl ToSocketAddrs,
        options: &QosOptions,
    ) -> Result<Connecting<Self>, QosError> {
        Connecting::new(address, options)
    }

    fn new(
        socket: TcpStream,
        peer: SocketAddr,
        session: Session,
        options: &QosOptions,
        (demands_peer, expects_peer): (bool, bool),
        (recovery, asker): (Option<Recovery<Redial>>, Option<UdpSocket>),
    ) -> Self {
        let directions = session.directions(now());
        let addresses = socket.local_addr().ok().map(|local| [local, peer]);
        let shares = (
            addresses.and_then(|addresses| options.reserver(TransportProtocol::Tcp, addresses)),
            addresses.and_then(|addresses| options.allocator(PacketKind::Segments, addresses)),
        );
        let inner = Arc::new(Inner {
            socket: Arc::new(socket),
            peer,
            connection: Connection::new(session, directions, shares, options),
            receive_buffer: Mutex::default(),
            send_buffer: Mutex::default(),
            demands_peer,
            expects_peer,
            since: now(),
            patience: options.negotiation.give_up,
            nonblocking: AtomicBool::new(false),
            read_patience: Patience::default(),
            write_patience: Patience::default(),
            recovery,
            asker,
            unheard: Mutex::default(),
            fault: AtomicI32::new(0),
            paced: AtomicU64::new(UNPACED),
            is_reading_over: AtomicBool::new(false),
            linger: options.linger_time(),
            listed: Listed::new(),
        });
        Self(Arc::clone(&inner), ConnectionHandle::new(inner))
    }

    /// Returns whether the peer is a QoS socket. On a stream that was accepted it waits until that is
    /// known, which the first bytes from the peer show, or for the read timeout.
    ///
    /// # Errors
    /// When the ends do not agree, the connection is broken, or the read timeout is over
    /// ([`io::ErrorKind::WouldBlock`]).
    pub fn has_qos_peer(&self) -> Result<bool, QosError> {
        self.0.connection.check_process()?;
        self.0.join(&self.0.read_patience.until())?;
        Ok(matches!(self.0.connection.participation(), Participation::Joined(_)))
    }

    /// Returns whether it is still unknown if the peer is a QoS socket. Then a stream that was accepted
    /// and does not wait ([`QosTcpStream::set_nonblocking`]) refuses to write, unless the peer is a
    /// plain one for certain: it does not wait for room, but for the peer.
    pub fn is_joining(&self) -> bool {
        self.0.connection.participation() == Participation::Joining
    }

    /// Returns whether bytes were received already, so that reading does not wait. The descriptor does not
    /// show it.
    pub fn has_pending(&self) -> bool {
        let Ok(receive_buffer) = self.0.receive_buffer.try_lock() else { return false };
        if receive_buffer.has_left() {
            return true;
        }
        match self.0.connection.participation() {
            Participation::Joined(token) => receive_buffer.has_payload(token),
            Participation::Joining | Participation::Alone => !receive_buffer.is_empty(),
        }
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    /// The address of this end.
    ///
    /// # Errors
    /// As [`TcpStream::local_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    /// Ends a direction, or both. A connection that breaks then is not made again. Data written before is delivered. A call of another
    /// thread that reads returns when the next message or report of the peer comes, or when the peer has everything that was
    /// written, if no more is.
    ///
    /// # Errors
    /// As [`TcpStream::shutdown`].
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.connection.check_process()?;
        if let Some(recovery) = &self.0.recovery {
            recovery.end();
        }
        self.0.shut_down(how)
    }

    /// Sets whether calls wait.
    ///
    /// # Errors
    /// As [`TcpStream::set_nonblocking`]; [`QosError::Inherited`] in a child by fork(2), which would change its parent's socket.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.nonblocking.store(nonblocking, Ordering::Relaxed);
        let set = || self.0.socket.set_nonblocking(nonblocking);
        self.0.recovery.as_ref().map_or_else(set, |recovery| recovery.between_attempts(set))
    }

    /// Sets whether small messages are sent at once.
    ///
    /// # Errors
    /// As [`TcpStream::set_nodelay`]; [`QosError::Inherited`] in a child by fork(2).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.socket.set_nodelay(nodelay)
    }

    /// Returns whether small messages are sent at once.
    ///
    /// # Errors
    /// As [`TcpStream::nodelay`].
    pub fn nodelay(&self) -> io::Result<bool> {
        self.0.socket.nodelay()
    }

    /// Sets the longest wait of reads.
    ///
    /// # Errors
    /// As [`TcpStream::set_read_timeout`]; [`QosError::Inherited`] in a child by fork(2).
    pub fn set_read_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.socket.set_read_timeout(time)?;
        self.0.read_patience.set(time);
        Ok(())
    }

    /// Sets the longest wait of writes.
    ///
    /// # Errors
    /// As [`TcpStream::set_write_timeout`]; [`QosError::Inherited`] in a child by fork(2).
    pub fn set_write_timeout(&self, time: Option<time::Duration>) -> io::Result<()> {
        self.0.connection.check_process()?;
        self.0.socket.set_write_timeout(time)?;
        self.0.write_patience.set(time);
        Ok(())
    }
}

impl Read for &QosTcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for &QosTcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for QosTcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for QosTcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for QosTcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QosTcpStream")
            .field("local", &self.0.socket.local_addr().ok())
            .field("peer", &self.0.peer)
            .field("participation", &self.0.connection.participation())
            .field("fd", &self.0.socket.as_fd())
            .finish_non_exhaustive()
    }
}

impl Deref for QosTcpStream {
    type Target = ConnectionHandle;

    /// The calls that a stream shares with a datagram socket.
    fn deref(&self) -> &ConnectionHandle {
        &self.1
    }
}

impl AsFd for QosTcpStream {
    /// The descriptor to wait for. It is not ready for data that has been received already ([`QosTcpStream::has_pending`]):
    /// before waiting, read until [`io::ErrorKind::WouldBlock`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.as_fd()
    }
}

impl Inner {
    /// Calls the session, and sends its control messages.
    fn act(&self, act: impl FnOnce(&mut Session, &mut Outbound, &mut Inbound)) -> Instant {
        let mark_with = |hint: Hint| {
            let _unmarked = mark(&self.socket, self.peer, hint);
        };
        let act = |session: &mut Session, out: &mut Outbound, inbound: &mut Inbound| {
            act(session, out, inbound);
            self.pace(out);
        };
        // While the session is locked, so that none of it goes over a connection that is another one's.
        let due = self.connection.with_session(act, |message| self.connection.queue(message), mark_with);
        self.send_control();
        due
    }

    /// Lets the kernel pace sent data. It counts our headers as well.
    fn pace(&self, out: &Outbound) {
        let length = out.longest().map_or(f64::INFINITY, |length| length as f64);
        let on_wire =
            |rate: Rate| (rate.as_bps() as f64 * (1.0 + STREAM_HEADER as f64 / length)).ceil() as u64;
        let rate = out.throughput().map_or(UNPACED, on_wire);
        if self.paced.swap(rate, Ordering::Relaxed) != rate {
            // A kernel without pacing sends as fast as the window allows.
            let _unpaced = set_max_pacing_rate(&self.socket, Rate::from_bps(rate));
        }
    }

    /// Sends control messages, unless a call is writing a message: then that call sends them after the message.
    fn send_control(&self) {
        if let Ok(mut send_buffer) = self.send_buffer.try_lock()
            && self.is_up()
        {
            // Data that cannot be sent now is sent with the next message, or when the service thread serves the connection.
            let sent = send_buffer.send_control(&self.socket, &self.connection);
            self.notice(sent.err().as_ref(), Met::ByControl);
        }
    }

    fn keep(self: &Arc<Self>) -> Result<(), QosError> {
        self.listed.list(Arc::downgrade(self));
        self.connection.keep(Arc::downgrade(self) as Weak<dyn ServedConnection>)?;
        self.connection.begin_allocation(Arc::downgrade(self) as Weak<dyn FlowHandler>)
    }

    /// Returns whether calls may use the socket.
    fn is_up(&self) -> bool {
        self.recovery.as_ref().is_none_or(Recovery::is_up)
    }

    /// Returns whether a call of the application waits outside of system calls: one that looks for signals does.
    fn waits_in_slices(&self) -> bool {
        signals::looks() && !self.nonblocking.load(Ordering::Relaxed)
    }

    /// Ends a direction, or both.
    ///
    /// A report that comes to a socket that has been shut down for reading would reset the connection before this direction is
    /// delivered. So with a QoS socket as the peer, the kernel learns that the application receives no more when all is delivered.
    fn shut_down(&self, how: Shutdown) -> io::Result<()> {
        let is_alone = self.connection.participation() == Participation::Alone;
        if is_alone {
            self.socket.shutdown(how)?;
        } else if how != Shutdown::Read {
            self.socket.shutdown(Shutdown::Write)?;
        }
        if how != Shutdown::Read {
            // A call that waited for room has returned by now.
            lock(&self.send_buffer).shut_down();
        }
        if how != Shutdown::Write && !is_alone {
            self.is_reading_over.store(true, Ordering::SeqCst);
            self.end_reading();
            self.connection.hasten(now());
        }
        Ok(())
    }

    /// Returns whether the application receives no more.
    fn is_reading_over(&self) -> bool {
        self.is_reading_over.load(Ordering::SeqCst)
    }

    /// Shuts the receiving direction down in the kernel, if that cannot reset the connection. Returns whether it has to be tried again soon.
    fn end_reading(&self) -> bool {
        if !self.is_reading_over() {
            return false;
        }
        if is_delivered(&self.socket).unwrap_or(true) {
            // The peer may have ended the connection.
            let _over = self.socket.shutdown(Shutdown::Read);
            return false;
        }
        self.send_buffer.try_lock().is_ok_and(|send_buffer| send_buffer.is_shut_down())
    }
}
