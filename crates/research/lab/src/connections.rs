//! QoS connections: applications over real QoS sockets ([`cutline_socket`]) in the place of flows.
//!
//! The description of a connection is the simulator's ([`QosConnection`]), and so is the record of events
//! ([`QosRecord`]). The application is the same one: it sends messages of the agreed size at the agreed rate, or at the rate that
//! the session requests, over a blocking socket. Its socket has the flow's addresses.
//!
//! ```text
//! sources' host                                                     sinks' host
//! application -> QosUdpSocket ══> network: links and queues ══> QosUdpSocket -> receiver
//! ```
//!
//! Both ends have a thread that receives, so each handles reports as they come, as an agent of the simulator does. All times are those
//! of one clock: messages are made and sent by the application's reading of it, and arrive at the kernel's time stamp.

use crate::LabError;
use cutline_quality::spec::Specification;
use cutline_signal::frame::DATAGRAM_HEADER;
use cutline_signal::session::SessionParams;
use cutline_sim::FlowSpec;
use cutline_sim::qos::{ConnectionService, EndRecord, Passage, QosConnection, QosRecord};
use cutline_socket::{
    AllocationOptions, ConnectionHandle, DirectAddress, Marking, Peer, QosDirectSocket, QosError, QosOptions,
    QosUdpListener, QosUdpSocket, SessionEvent,
};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::thread::joined;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Duration, Histogram, Instant, Streams};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::ops::Deref;
use std::os::fd::AsFd;

/// QoS connections by the indices of the flows in whose place they are.
///
/// Nodes and port of a connection are the flow's. Its hint, until the session requests another one, is its own.
pub type Connections = BTreeMap<usize, QosConnection>;

/// Places of a connection's ends, and its application.
#[derive(Clone, Debug)]
pub struct Placement {
    pub source: SocketAddrV4,
    pub sink: SocketAddrV4,
    /// Share that the source requests from the resource manager of its host.
    pub share: Option<AllocationOptions>,
    /// Largest number of messages that the application makes per second; `None`: as many as the agreement
    /// allows.
    pub most: Option<f64>,
}

/// The placement of the connection in the place of a flow, by the flow's index.
pub type Places<'p> = &'p (dyn Fn(usize) -> Placement + Sync);

/// The longest time in which a thread does not look whether the run has ended.
pub const GLANCE: Duration = Duration::from_millis(50);
/// The longest time in which a listener does not retransmit.
const LISTEN: Duration = Duration::from_millis(5);
/// Room for the longest datagram, bytes.
pub const LONGEST: usize = 65_535;

/// A QoS socket for messages: over UDP, or in frames below IP.
pub trait MessageSocket: Deref<Target = ConnectionHandle> + Sync {
    /// Sends a message.
    fn send_message(&self, message: &[u8]) -> io::Result<usize>;

    /// Receives a message. Returns its length, and when the kernel received it.
    fn next_message(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)>;

    /// Sets the longest wait for a message.
    fn wait_at_most(&self, time: Duration) -> io::Result<()>;
}

/// Implements [`MessageSocket`] for sockets by the calls that they have alike.
macro_rules! message_sockets {
    ($($socket:ty),+) => { $(
        impl MessageSocket for $socket {
            fn send_message(&self, message: &[u8]) -> io::Result<usize> {
                self.send(message)
            }

            fn next_message(&self, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
                self.recv_stamped(buffer)
            }

            fn wait_at_most(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(standard(time)))
            }
        }
    )+ };
}

message_sockets!(QosUdpSocket, QosDirectSocket);

/// Course of a run.
#[derive(Clone, Copy)]
pub struct Course<'e> {
    /// Its beginning and its end.
    pub zero: Instant,
    pub end: Instant,
    /// Function that returns whether the run ends early.
    pub ended: &'e (dyn Fn() -> bool + Sync),
}

/// Observations of a connection's source.
#[derive(Default)]
pub struct Sent {
    pub messages: Vec<Passage>,
    record: EndRecord,
    /// Lateness of the application's messages.
    pub lateness: Histogram,
}

/// Observations of a connection's sink.
#[derive(Default)]
pub struct Arrived {
    /// Numbers of messages, with their times of arrival.
    pub messages: Vec<(u64, Instant)>,
    record: EndRecord,
}

/// The listening sockets of the connections, in the sinks' host.
pub struct Listeners<'c>(Vec<(&'c QosConnection, QosUdpListener)>);

/// Checks that the laboratory supports the connections of these flows.
///
/// # Errors
/// The first connection that it does not support.
pub fn check(connections: &Connections, flows: &[FlowSpec]) -> Result<(), LabError> {
    for (index, connection) in connections {
        let flow = flows.get(*index).ok_or(LabError::NoSuchFlow {
            connection: connection.name.clone(),
            index: *index,
            flows: flows.len(),
        })?;
        let refuse = |what, instead| Err(LabError::OnlySimulated { flow: flow.name.clone(), what, instead });
        connection.validate().map_err(|error| LabError::Connection {
            flow: flow.name.clone(),
            error: Box::new(error.into()),
        })?;
        let SessionParams { watch, clock, .. } = &connection.params;
        let plain = SessionParams::default();
        if !matches!(flow.transport, TransportParams::Udp(_)) {
            return refuse(
                "a QoS connection in the place of a flow that is not UDP",
                "set `protocol = \"udp\"`",
            );
        } else if connection.key.is_some() {
            return refuse("a QoS connection with a key", "leave it out");
        } else if !connection.clock_ahead.is_zero() {
            return refuse("a QoS connection whose clocks differ", "set the offset to 0");
        } else if *watch != plain.watch || *clock != plain.clock {
            return refuse("a QoS connection with parameters of `watch` or `clock`", "leave the defaults");
        }
    }
    Ok(())
}

/// The longest payload of a connection's datagrams, bytes.
pub fn largest_payload(connection: &QosConnection) -> u32 {
    let size = connection.send.size.map_or(0, Bytes::get) + DATAGRAM_HEADER as u64;
    u32::try_from(size).unwrap_or(u32::MAX)
}

impl<'c> Listeners<'c> {
    /// Listens for all connections, in the namespace of the calling thread.
    ///
    /// # Errors
    /// When an option of a connection is not allowed, or a socket cannot be opened.
    pub fn bind(connections: &'c Connections, places: Places<'_>) -> Result<Self, LabError> {
        let listen = |(index, connection): (&usize, &'c QosConnection)| {
            let listener = QosUdpListener::bind(places(*index).sink, &sink_options(connection))
                .and_then(|listener| non_blocking(listener).map_err(system("cannot listen")));
            Ok((connection, listener.map_err(of(connection))?))
        };
        connections.iter().map(listen).collect::<Result<_, _>>().map(Self)
    }

    /// Receives on all connections until the end of the run, in the namespace of the calling thread.
    ///
    /// # Errors
    /// Those of the sockets.
    pub fn run(self, course: Course<'_>) -> Result<Vec<Arrived>, LabError> {
        std::thread::scope(|scope| {
            let receive = |(connection, listener): (&'c QosConnection, QosUdpListener)| {
                scope.spawn(move || arrive(connection, &listener, course).map_err(of(connection)))
            };
            let threads: Vec<_> = self.0.into_iter().map(receive).collect();
            threads.into_iter().map(joined).collect()
        })
    }
}

/// Runs the applications of all connections until the end of the run, in the namespace of the calling thread.
///
/// # Errors
/// When a connection cannot be made, or its ends do not agree.
pub fn send<'s>(
    connections: &'s Connections,
    places: Places<'_>,
    streams: Streams,
    course: Course<'_>,
) -> Result<Vec<Sent>, LabError> {
    std::thread::scope(|scope| {
        let send = |(&index, connection): (&usize, &'s QosConnection)| {
            let phase = phase(connection, streams);
            let place = places(index);
            scope.spawn(move || depart(&place, connection, phase, course).map_err(of(connection)))
        };
        let threads: Vec<_> = connections.iter().map(send).collect();
        threads.into_iter().map(joined).collect()
    })
}

/// Runs the application of a connection in frames below IP until the end of the run, in the namespace of the calling thread. `most` is the
/// largest number of messages that it makes per second, if it has one.
///
/// # Errors
/// When the connection cannot be made, or its ends do not agree.
pub fn send_in_frames(
    connection: &QosConnection,
    to: DirectAddress,
    most: Option<f64>,
    streams: Streams,
    course: Course<'_>,
) -> Result<Sent, LabError> {
    let send = || {
        if !has_begun(connection, course)? {
            return Ok(Sent::default());
        }
        let socket = QosDirectSocket::connect(to, &source_options(connection))?;
        work(&socket, connection, (most, phase(connection, streams)), course)
    };
    send().map_err(of(connection))
}

/// Returns the share of an interval after which the first message of a connection comes.
fn phase(connection: &QosConnection, streams: Streams) -> f64 {
    streams.stream(&connection.name, "laboratory").uniform()
}

/// Combines the records of both ends of a connection, in the time of the simulation.
pub fn record(sent: Sent, arrived: Arrived, course: Course<'_>) -> QosRecord {
    let mut messages = sent.messages;
    for (number, at) in arrived.messages {
        if let Some(passage) = messages.get_mut(number as usize).filter(|_| at <= course.end) {
            passage.arrived = Some(course.simulated(at));
        }
    }
    QosRecord { messages, source: sent.record, sink: arrived.record }
}

impl Course<'_> {
    /// The time of the simulation at a time of this machine.
    pub fn simulated(&self, at: Instant) -> Instant {
        Instant::ZERO + at.saturating_since(self.zero)
    }

    /// The time of this machine at a time of the simulation.
    pub fn real(&self, at: Instant) -> Instant {
        self.zero.saturating_add(at.saturating_since(Instant::ZERO))
    }

    pub fn is_over(&self) -> bool {
        (self.ended)() || now() >= self.end
    }
}

/// The application at a source.
fn depart(
    place: &Placement,
    connection: &QosConnection,
    phase: f64,
    course: Course<'_>,
) -> Result<Sent, QosError> {
    if !has_begun(connection, course)? {
        return Ok(Sent::default());
    }
    let options = match &place.share {
        Some(share) => source_options(connection).allocation(share.clone()),
        None => source_options(connection),
    };
    let plain = connected(place).map_err(system("cannot connect"))?;
    let socket = QosUdpSocket::over(plain, &options)?;
    work(&socket, connection, (place.most, phase), course)
}

/// Waits until a connection begins. Returns false if the run is over before.
fn has_begun(connection: &QosConnection, course: Course<'_>) -> Result<bool, QosError> {
    let begin = course.real(connection.start);
    while !course.is_over() && now() < begin {
        wait(&mut [], begin.saturating_since(now()).min(GLANCE)).map_err(system("cannot wait"))?;
    }
    Ok(!course.is_over())
}

/// Runs the application of a connection over its socket.
fn work<S: MessageSocket>(
    socket: &S,
    connection: &QosConnection,
    (most, phase): (Option<f64>, f64),
    course: Course<'_>,
) -> Result<Sent, QosError> {
    let mut work = Work::new(socket, connection, most, course);
    std::thread::scope(|scope| {
        // Nothing of the application's comes back, but reports do.
        let reports = scope.spawn(|| receive(socket, course, |_, _| {}));
        let sent = work.send(phase);
        joined(reports)?;
        sent
    })
    .map_err(system("cannot send"))?;
    Ok(Sent { messages: work.messages, record: work.watch.record, lateness: work.lateness })
}

/// The end of a connection at a sink.
fn arrive(
    connection: &QosConnection,
    listener: &QosUdpListener,
    course: Course<'_>,
) -> Result<Arrived, QosError> {
    let failed = system("cannot receive");
    let Some((socket, _)) = accepted(listener, || listener.accept(), course).map_err(&failed)? else {
        return Ok(Arrived::default());
    };
    let mut watch = Watch::new(&socket, connection, course);
    let mut messages = Vec::new();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            receive(&socket, course, |message, at| {
                messages.extend(message.first_chunk().map(|number| (u64::from_be_bytes(*number), at)));
            })
        });
        watch.until(course.end, |_| {});
        joined(receiver)
    })
    .map_err(failed)?;
    Ok(Arrived { messages, record: watch.record })
}

/// Waits for the next connection of a listener that does not block. Returns `None` if the run is over before.
pub fn accepted<S>(
    listener: &impl AsFd,
    accept: impl Fn() -> io::Result<S>,
    course: Course<'_>,
) -> io::Result<Option<S>> {
    while !course.is_over() {
        match accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(&mut [PollFd::new(listener, PollFlags::IN)], LISTEN)?;
            }
            outcome => return outcome.map(Some),
        }
    }
    Ok(None)
}

/// Receives messages until the end of the run, with their times of arrival.
pub fn receive<S: MessageSocket>(
    socket: &S,
    course: Course<'_>,
    mut take: impl FnMut(&[u8], Instant),
) -> io::Result<()> {
    socket.wait_at_most(GLANCE)?;
    let mut buffer = vec![0; LONGEST];
    while !course.is_over() {
        match socket.next_message(&mut buffer) {
            Ok((length, at)) => take(&buffer[..length], at),
            Err(error) if is_temporary(error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether a socket can be used after an error: nothing has come in time, or the peer is not
/// there yet, or no longer.
pub const fn is_temporary(error: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
    matches!(error, WouldBlock | TimedOut | Interrupted | ConnectionRefused)
}

/// Records the events and measurements of an end's session.
struct Watch<'s> {
    socket: &'s ConnectionHandle,
    course: Course<'s>,
    sample: Duration,
    next_sample: Instant,
    record: EndRecord,
}

impl<'s> Watch<'s> {
    fn new(socket: &'s ConnectionHandle, connection: &QosConnection, course: Course<'s>) -> Self {
        let QosConnection { start, sample, .. } = *connection;
        let next_sample = course.real(start).saturating_add(sample);
        Self { socket, course, sample, next_sample, record: EndRecord::default() }
    }

    /// Records until a time or the end of the run.
    fn until(&mut self, time: Instant, mut on_event: impl FnMut(&SessionEvent)) {
        let time = time.min(self.course.end);
        while !self.course.is_over() {
            let now = now();
            if self.next_sample <= now {
                self.record.mibs.push(self.socket.mib().session);
                self.next_sample = self.next_sample.saturating_add(self.sample).max(now);
            }
            let due = self.next_sample.min(time).saturating_since(now).min(GLANCE);
            if let Some(event) = self.socket.wait_for_event(standard(due)) {
                on_event(&event);
                self.record.events.push((self.course.simulated(cutline_sys::now()), event));
            } else if cutline_sys::now() >= time {
                return;
            }
        }
    }
}

/// The application of a source at work.
struct Work<'s, S> {
    socket: &'s S,
    watch: Watch<'s>,
    connection: &'s QosConnection,
    /// Messages per second at most.
    most: f64,
    rate: f64,
    size: usize,
    messages: Vec<Passage>,
    lateness: Histogram,
}

impl<'s, S: MessageSocket> Work<'s, S> {
    fn new(socket: &'s S, connection: &'s QosConnection, most: Option<f64>, course: Course<'s>) -> Self {
        let mut this = Self {
            socket,
            most: most.unwrap_or(f64::INFINITY),
            watch: Watch::new(socket, connection, course),
            connection,
            rate: 0.0,
            size: 0,
            messages: Vec::new(),
            lateness: Histogram::default(),
        };
        this.agree(&connection.send);
        this
    }

    /// A specification holds from now on.
    fn agree(&mut self, effective: &Specification) {
        let rate = effective.max_rate.expect("a connection whose specification has no rate is refused");
        self.rate = rate.min(self.most);
        let size = effective.size.expect("a connection whose specification has no size is refused");
        self.size = usize::try_from(size.get()).unwrap_or(LONGEST).min(LONGEST);
    }

    /// Sends until the application's end, and records until the run's. The first message comes at this share of an interval.
    fn send(&mut self, phase: f64) -> io::Result<()> {
        let Course { end, .. } = self.watch.course;
        let stop = if self.connection.stop == Instant::FAR_FUTURE {
            end
        } else {
            self.watch.course.real(self.connection.stop).min(end)
        };
        self.wait_until(now());
        let mut next = now().saturating_add(self.interval().mul_f64(phase));
        while next < stop && !self.watch.course.is_over() {
            self.wait_until(next);
            let made = now();
            self.lateness.record(made.saturating_since(next));
            // Who was blocked makes the next message at once, if it is late.
            next = next.saturating_add(self.interval());
            if made < stop {
                self.send_one(made)?;
            }
            next = next.max(now());
        }
        self.wait_until(end);
        Ok(())
    }

    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.rate.recip())
    }

    fn wait_until(&mut self, time: Instant) {
        let mut events = Vec::new();
        self.watch.until(time, |event| events.push(event.clone()));
        for event in events {
            match event {
                SessionEvent::Agreed(agreed) => self.agree(&agreed.send.effective),
                SessionEvent::Rate(rate) => self.rate = rate.min(self.most),
                _ => {}
            }
        }
    }

    fn send_one(&mut self, made: Instant) -> io::Result<()> {
        let mut message = vec![0; self.size];
        let number = (self.messages.len() as u64).to_be_bytes();
        message[..number.len()].copy_from_slice(&number);
        match self.socket.send_message(&message) {
            Err(error) if !is_temporary(error.kind()) => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let course = &self.watch.course;
        let (made, sent) = (course.simulated(made), course.simulated(now()));
        self.messages.push(Passage { made, sent, arrived: None, bytes: self.size as u32 });
        Ok(())
    }
}

/// A plain socket with the addresses of a flow.
fn connected(place: &Placement) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(place.source)?;
    socket.connect(place.sink)?;
    Ok(socket)
}

pub fn non_blocking(listener: QosUdpListener) -> io::Result<QosUdpListener> {
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The options of the end at the source.
fn source_options(connection: &QosConnection) -> QosOptions {
    let policies = &connection.params.policies;
    let marking = policies
        .adapt_hint
        .map_or(Marking::Fixed(connection.hint), |(class, params)| Marking::Adaptive(class, params));
    let options = common(QosOptions::sending(connection.send.clone()), connection).marking(marking);
    match &policies.adapt_rate {
        Some(operation) => options.adapt_rate(operation.clone()),
        None => options,
    }
}

/// The options of the end at the sink, which has no policies.
pub fn sink_options(connection: &QosConnection) -> QosOptions {
    let options = common(QosOptions::receiving(connection.receive.clone()), connection);
    options.marking(Marking::Fixed(connection.hint))
}

fn common(options: QosOptions, connection: &QosConnection) -> QosOptions {
    let SessionParams { negotiation, monitor, .. } = connection.params.clone();
    let peer = match connection.service {
        // As in the simulator, whose agents know it: finding out takes less time than a round trip of some scenarios.
        ConnectionService::Qos => Peer::Speaks,
        ConnectionService::Plain => Peer::Plain,
    };
    options.peer(peer).negotiation(negotiation).monitor(monitor)
}

pub fn of(connection: &QosConnection) -> impl Fn(QosError) -> LabError {
    let flow = connection.name.clone();
    move |error| LabError::Connection { flow: flow.clone(), error: Box::new(error) }
}

pub fn system(doing: &'static str) -> impl Fn(io::Error) -> QosError {
    move |error| QosError::System { doing, source: error }
}

pub fn standard(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
