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
mod probe;
mod receive_buffer;
mod redial;
#[cfg(test)]
mod redial_tests;
mod send_buffer;
#[cfg(test)]
mod tests;

pub use listener::QosTcpListener;

use crate::allocation::PacketKind;
use crate::connecting::Connecting;
use crate::connection::Connection;
use crate::connection_handle::{ConnectionHandle, SharedCalls};
use crate::error::QosError;
use crate::hint_mark::{hint_of, mark};
use crate::mib::Mib;
use crate::options::QosOptions;
use crate::patience::{Patience, Until};
use crate::publication::{self, ConnectionGlance, RowTexts};
use crate::recovery::{Admission, Recovery};
use crate::service_thread::ServedConnection;
use crate::signals;
use cutline_allocation::{FlowHandler, FlowNotice};
use cutline_manager::feedback::FlowReport;
use cutline_provision::TransportProtocol;
use cutline_publish::{ManagerRequest, SocketRow};
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::frame::{End, STREAM_HEADER};
use cutline_signal::mib::TcpFigures;
use cutline_signal::session::{Direction, Inbound, Outbound, Participation, Session};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags};
use cutline_sys::tcp::{is_delivered, set_max_pacing_rate, tcp_info};
use cutline_sys::{lock, try_lock};
use cutline_units::{Bytes, Duration, Hint, Instant, Rate};
use linger::Listed;
use receive_buffer::{ReceiveBuffer, Taken};
use redial::{Met, Redial};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, SendFlags};
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

/// Interval of checks of an accepted stream until the peer has begun.
const JOINING_EVERY: Duration = Duration::from_millis(10);
/// Interval of checks of a stream whose directions both ended, until the peer has everything.
const ENDING_EVERY: Duration = Duration::from_millis(20);
/// Time after which a call looks again while another one negotiates.
const OTHER_CALL: Duration = Duration::from_millis(5);
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

    /// Negotiates until it is known whether the peer takes part, or until the deadline of the call.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] at the deadline, and when the socket does not wait.
    fn join(&self, call: &Until) -> Result<(), QosError> {
        let failed = || QosError::system("cannot reach the peer");
        let is_waiting = !self.nonblocking.load(Ordering::Relaxed);
        let since = if is_waiting { now() } else { self.since };
        let until = since.saturating_add(self.patience);
        while self.connection.participation() == Participation::Joining {
            // Another call that waits for the peer negotiates for both.
            let due = match try_lock(&self.receive_buffer) {
                Some(mut receive_buffer) => self.negotiate_until(&mut receive_buffer, until)?,
                None => Some(now().saturating_add(OTHER_CALL)),
            };
            let Some(due) = due else { break };
            let due = call.time().map_or(due, |end| due.min(end));
            if !is_waiting || call.time().is_some_and(|end| now() >= end) {
                return Err(failed()(io::Error::from(io::ErrorKind::WouldBlock)));
            }
            let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
            signals::wait(&mut readable, due.saturating_since(now())).map_err(failed())?;
        }
        Ok(())
    }

    /// Continues the negotiation with received messages. A begun message of a negotiation has to be complete at `until`. Returns until when to wait
    /// for more; `None` when it is known whether the peer takes part.
    fn negotiate_until(
        &self,
        receive_buffer: &mut ReceiveBuffer,
        until: Instant,
    ) -> Result<Option<Instant>, QosError> {
        loop {
            if self.is_reading_over() {
                return Ok(None);
            }
            let due = self.act(|session, out, inbound| session.advance(now(), out, inbound));
            if let Some(outcome) = self.connection.outcome(self.demands_peer) {
                return outcome.map(|()| None);
            }
            match self.negotiate(receive_buffer) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if receive_buffer.is_empty() || now() < until {
                        return Ok(Some(if receive_buffer.is_empty() { due } else { due.min(until) }));
                    }
                    // It has begun like an offer, and has stopped.
                    self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(QosError::system("cannot reach the peer")(error)),
            }
        }
    }

    /// Takes a message of a negotiation from the stream, if one has come; everything else ends the negotiation.
    fn negotiate(&self, receive_buffer: &mut ReceiveBuffer) -> io::Result<()> {
        let message = receive_buffer.negotiation(&self.socket)?;
        self.on_negotiation(message);
        Ok(())
    }

    /// Takes a message of a negotiation, or that something else has come.
    fn on_negotiation(&self, message: Option<Vec<u8>>) {
        self.act(|session, out, inbound| match message {
            Some(message) => session.on_negotiation(now(), &message, out, inbound),
            None => session.on_foreign(now(), out, inbound),
        });
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        let until = self.read_patience.until();
        let Some(recovery) = &self.recovery else {
            self.join(&until)?;
            return self.read_from(&mut lock(&self.receive_buffer), buffer, &until);
        };
        loop {
            recovery.serve(self);
            {
                let mut receive_buffer = lock(&self.receive_buffer);
                // Data received before the loss comes first.
                let left = receive_buffer.take_left(buffer);
                if left > 0 {
                    return Ok(left);
                }
                if recovery.admit(Direction::Receive)? == Admission::Up {
                    let read = self.read_from(&mut receive_buffer, buffer, &until);
                    let is_end = matches!(read, Ok(0)) && !buffer.is_empty();
                    let is_lost = self.notice(read.as_ref().err(), Met::ByCall) || is_end && self.is_lost();
                    if !is_lost {
                        return read;
                    }
                }
            }
            recovery.serve(self);
            recovery.wait(Direction::Receive, until.time(), !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    /// Returns whether a call of the application waits outside of system calls: one that looks for signals does.
    fn waits_in_slices(&self) -> bool {
        signals::looks() && !self.nonblocking.load(Ordering::Relaxed)
    }

    fn read_from(
        &self,
        receive_buffer: &mut ReceiveBuffer,
        buffer: &mut [u8],
        until: &Until,
    ) -> io::Result<usize> {
        if buffer.is_empty() || self.is_reading_over() {
            return Ok(0);
        }
        let in_slices = self.waits_in_slices();
        let flags = if in_slices { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let wait_again = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock if in_slices => until.wait_until_ready(&self.socket, PollFlags::IN),
            _ => until.wait_again(&self.socket, error),
        };
        let Participation::Joined(token) = self.connection.participation() else {
            let length = loop {
                match receive_buffer.read_plain(&self.socket, buffer, flags) {
                    Err(error) => wait_again(error)?,
                    Ok(length) => break length,
                }
            };
            if length == 0 {
                return self.ended();
            }
            self.connection.inbound().on_plain(now(), length as u64);
            return Ok(length);
        };
        loop {
            let taken = receive_buffer.read(&self.socket, buffer, token, flags);
            if self.is_reading_over() {
                return Ok(0);
            }
            let taken = match taken {
                Err(error) => {
                    wait_again(error)?;
                    continue;
                }
                Ok(taken) => taken,
            };
            match taken {
                Taken::Payload { bytes, end } => {
                    self.measure(receive_buffer, end);
                    self.note_read(receive_buffer);
                    if bytes > 0 {
                        return Ok(bytes);
                    }
                }
                Taken::End => return self.ended(),
                control => {
                    self.handle(&control);
                    // It does not make the time longer.
                    if receive_buffer.is_empty() {
                        until.wait(&self.socket)?;
                    }
                }
            }
        }
    }

    /// Notes that the application has read everything, if it has. Only where the service thread has seen data wait, the kernel is asked.
    fn note_read(&self, receive_buffer: &ReceiveBuffer) {
        if receive_buffer.is_empty() && (!self.connection.is_unread() || !self.has_unread_in_kernel()) {
            self.connection.note_read();
        }
    }

    fn has_unread_in_kernel(&self) -> bool {
        ioctl_fionread(&*self.socket).is_ok_and(|waiting| waiting > 0)
    }

    /// Measures a message that has ended, if one has.
    fn measure(&self, receive_buffer: &mut ReceiveBuffer, end: Option<End>) {
        if let Some(end) = end {
            self.connection.inbound().on_message(now(), receive_buffer.count(), end.sent, end.length);
        }
    }

    fn handle(&self, control: &Taken) {
        let at = now();
        match control {
            Taken::Negotiation(message) => {
                self.act(|session, out, inbound| session.on_negotiation(at, message, out, inbound));
            }
            Taken::Report(message) => {
                self.act(|session, out, inbound| session.on_report(at, message, out, inbound));
            }
            Taken::Payload { .. } | Taken::End => {}
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.connection.check_process()?;
        let Some(recovery) = &self.recovery else { return self.write_first(bytes) };
        let until = self.write_patience.until();
        loop {
            recovery.serve(self);
            {
                let mut send_buffer = lock(&self.send_buffer);
                if recovery.admit(Direction::Send)? == Admission::Up {
                    let written = self.write_to(&mut send_buffer, bytes);
                    if !self.notice(written.as_ref().err(), Met::ByCall) {
                        return written;
                    }
                }
            }
            recovery.serve(self);
            recovery.wait(Direction::Send, until.time(), !self.nonblocking.load(Ordering::Relaxed))?;
        }
    }

    /// Writes to a stream of which it may be unknown whether the peer takes part.
    fn write_first(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.connection.participation() == Participation::Joining {
            // Who reads at the same time waits for the first bytes.
            let has_begun =
                self.receive_buffer.try_lock().is_ok_and(|receive_buffer| !receive_buffer.is_empty());
            if !self.expects_peer && !has_begun {
                // No question has come whether this end is a QoS socket, so the other one is none.
                self.act(|session, out, inbound| session.on_foreign(now(), out, inbound));
            }
            self.join(&self.write_patience.until())?;
        }
        self.write_to(&mut lock(&self.send_buffer), bytes)
    }

    /// Writes to a stream without messages.
    fn write_plain(&self, bytes: &[u8]) -> io::Result<usize> {
        if !self.waits_in_slices() {
            return (&*self.socket).write(bytes);
        }
        let until = self.write_patience.until();
        loop {
            match kernel::send(&self.socket, [bytes, &[]], SendFlags::DONTWAIT) {
                Err(Errno::AGAIN) => until.wait_until_ready(&self.socket, PollFlags::OUT)?,
                outcome => return Ok(outcome?),
            }
        }
    }

    fn write_to(&self, send_buffer: &mut SendBuffer, bytes: &[u8]) -> io::Result<usize> {
        let Participation::Joined(token) = self.connection.participation() else {
            let written = self.write_plain(bytes)?;
            self.connection.outbound().on_send(now(), written as u64);
            return Ok(written);
        };
        let until = (!self.nonblocking.load(Ordering::Relaxed)).then(|| self.write_patience.until());
        let written = send_buffer.write(&self.socket, bytes, (&self.connection, token), until.as_ref());
        // A call that reads at the same time would take it for the end of the stream.
        let failure = send_buffer.take_failure().map(io::Error::from);
        self.notice(failure.as_ref(), Met::ByControl);
        // The message may have kept control messages back.
        let later = send_buffer.send_control(&self.socket, &self.connection);
        if written.is_ok() {
            self.notice(later.err().as_ref(), Met::ByControl);
        }
        written
    }
}

impl SharedCalls for Inner {
    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn transport(&self) -> &'static str {
        "tcp"
    }

    fn addresses(&self) -> io::Result<[SocketAddr; 2]> {
        Ok([self.socket.local_addr()?, self.peer])
    }

    fn mib(&self) -> Mib {
        let figures = tcp_info(&self.socket).ok().map(|info| TcpFigures {
            rtt: info.rtt,
            rtt_deviation: info.rtt_deviation,
            min_rtt: info.min_rtt,
            congestion_window: info.congestion_window,
            retransmissions: info.retransmissions,
            not_sent: Bytes::new(u64::from(info.not_sent)),
            delivery_rate: info.delivery_rate,
            pacing_rate: info.pacing_rate,
        });
        self.connection.mib(&self.socket, || hint_of(&self.socket, self.peer), figures)
    }

    fn renegotiate(&self, specification: ConnectionSpecification) {
        if let Some(recovery) = &self.recovery {
            recovery.specify(&specification);
        }
        self.act(|session, out, _| session.renegotiate(now(), specification, out));
    }

    fn is_reconnecting(&self) -> bool {
        self.recovery.as_ref().is_some_and(Recovery::is_under_way)
    }
}

impl FlowHandler for Inner {
    fn on_notice(&self, notice: FlowNotice) {
        if let Some(allocator) = &self.connection.allocator {
            self.act(allocator.change(notice));
        }
    }

    fn report(&self) -> Option<FlowReport> {
        self.connection.flow_report(&self.socket)
    }

    fn missed(&self) -> u64 {
        self.connection.missed_deadlines()
    }
}

impl ServedConnection for Inner {
    fn call_handler(&self) {
        self.connection.call_handler();
    }

    fn glance(&self) -> Option<ConnectionGlance> {
        publication::glance(self)
    }

    fn row(&self, number: u64, texts: &mut RowTexts) -> Option<SocketRow> {
        publication::row(self, number, texts)
    }

    fn manage(&self, request: &ManagerRequest) {
        if let Some(specification) = self.connection.managed_specification(request) {
            SharedCalls::renegotiate(self, specification);
        }
    }

    fn serve(&self, now: Instant) -> Instant {
        if let Some(due) = self.recovery.as_ref().and_then(|recovery| recovery.serve(self)) {
            return due;
        }
        // While the application reads, it reads control messages, too.
        if let (Participation::Joined(token), Ok(mut receive_buffer)) =
            (self.connection.participation(), self.receive_buffer.try_lock())
        {
            loop {
                match receive_buffer.control(&self.socket, token) {
                    Ok(Some(control)) => self.handle(&control),
                    Ok(None) => break,
                    Err(error) => {
                        self.notice(Some(&error), Met::ByControl);
                        break;
                    }
                }
            }
            // Control messages were taken, so that the rest is for the application.
            // They may have come only just now.
            let is_unread = receive_buffer.has_payload(token) || self.has_unread_in_kernel();
            self.connection.note_unread(is_unread.then_some(now));
        }
        if self.connection.participation() == Participation::Joining {
            // An end that was accepted answers also while the application does not read yet.
            if let Ok(mut receive_buffer) = self.receive_buffer.try_lock() {
                let _later = receive_buffer
                    .early_negotiation(&self.socket)
                    .map(|message| self.on_negotiation(message));
            }
            let is_new = now.saturating_since(self.since) < self.patience || self.end_reading();
            return now.saturating_add(if is_new { JOINING_EVERY } else { self.patience });
        }
        self.listen(now);
        if let Ok(mut send_buffer) = self.send_buffer.try_lock() {
            send_buffer.notice_room(&self.socket, &self.connection);
        }
        let due = self.act(|session, out, inbound| session.advance(now, out, inbound));
        let due = if self.end_reading() { due.min(now.saturating_add(ENDING_EVERY)) } else { due };
        if self.is_up() { due } else { now }
    }
}
