//! Accepting and connecting streams.

use crate::connection_table::Ticket;
use crate::greeting::Greeting;
use crate::pending_streams::PendingStreams;
use crate::plan::GatewaySide;
use crate::relay::{Ending, Expects, ROOM, relay, reset};
use crate::shared::{Shared, pause};
use crate::stop::Stop;
use cutline_socket::{QosOptions, QosTcpListener, QosTcpStream, Readiness};
use cutline_sys::address::lookup;
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time;

/// Time that the near gateway has to read why the server was not reached.
const FAREWELL: time::Duration = time::Duration::from_secs(2);

/// Accepts programs' connections until the gateway ends.
pub fn near(shared: &Arc<Shared>, route: usize, listener: &TcpListener) {
    let accept = || listener.accept();
    serve(shared, listener, accept, |client, peer| {
        let ticket = match shared.book.try_open(route, peer) {
            Ok(ticket) => ticket,
            Err(full) => {
                shared.turn_away(route, peer, full);
                return reset(&client);
            }
        };
        let client = Arc::new(client);
        let carried = Arc::clone(&client);
        let work = move |shared: &Arc<Shared>| carry_near(shared, route, &carried, ticket);
        if let Err(error) = shared.spawn(work) {
            // The program sees a refusal, not the end of a stream.
            reset(&client);
            shared.tell(format_args!("{}: no thread for a connection: {error}", shared.book.route(route)));
        }
    });
}

/// Accepts near gateways' connections until the gateway ends. One thread waits for all connections whose peers have not yet negotiated.
pub fn far(shared: &Arc<Shared>, route: usize, listener: &QosTcpListener) {
    let mut pending = PendingStreams::default();
    while !shared.stop.is_set() {
        let refused = pending.accept(shared, route, listener);
        for (stream, peer) in pending.look(shared, route) {
            let ticket = match shared.book.try_open(route, peer) {
                Ok(ticket) => ticket,
                Err(full) => {
                    shared.turn_away(route, peer, full);
                    reset(&stream);
                    continue;
                }
            };
            let carried = stream.clone();
            let work = move |shared: &Arc<Shared>| carry_far(shared, route, &carried, ticket);
            if let Err(error) = shared.spawn(work) {
                reset(&stream);
                shared
                    .tell(format_args!("{}: no thread for a connection: {error}", shared.book.route(route)));
            }
        }
        if let Some(error) = refused {
            shared.tell(format_args!("a connection cannot be accepted: {error}"));
            pause();
        }
        pending.wait(shared, listener);
    }
}

/// Accepts until the gateway ends.
fn serve<S>(
    shared: &Arc<Shared>,
    listener: impl AsFd,
    accept: impl Fn() -> io::Result<(S, SocketAddr)>,
    mut begin: impl FnMut(S, SocketAddr),
) {
    while !shared.stop.is_set() {
        match accept() {
            Ok((stream, peer)) => begin(stream, peer),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ready = shared.stop.readable(&listener, None);
            }
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            Err(error) => {
                shared.tell(format_args!("a connection cannot be accepted: {error}"));
                pause();
            }
        }
    }
}

/// Carries a program's connection to the far gateway.
fn carry_near(shared: &Arc<Shared>, route: usize, client: &TcpStream, ticket: Ticket) {
    let to = &shared.book.route(route).to;
    let connected = || -> io::Result<QosTcpStream> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        let stream = connect_near(&lookup(to, None)?, &shared.options, &shared.stop)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    match connected() {
        Ok(stream) => {
            shared.tell_unreserved(route, stream.reservation().as_ref());
            ticket.attach((*stream).clone());
            let ending = relay(client, &stream, Expects::Greeting, longest(&stream), &shared.stop);
            conclude(shared, route, (client, &stream), ticket, ending);
        }
        Err(error) => {
            let ending = format!("the far gateway {} cannot be reached: {error}", Printable(to));
            shared.tell(format_args!("{}: {ending}", shared.book.route(route)));
            reset(client);
            ticket.close(ending, true);
        }
    }
}

/// Carries a near gateway's connection to the server.
fn carry_far(shared: &Arc<Shared>, route: usize, stream: &QosTcpStream, ticket: Ticket) {
    ticket.attach((**stream).clone());
    let to = &shared.book.route(route).to;
    match connect(shared, to) {
        Ok(server) => {
            let greeting = [Greeting::Connected.byte()];
            // There is room for one byte in a new connection.
            let ending = match (&mut &*stream).write_all(&greeting) {
                Ok(()) => relay(&server, stream, Expects::Nothing, longest(stream), &shared.stop),
                Err(error) => Ending::Qos(error),
            };
            conclude(shared, route, (&server, stream), ticket, ending);
        }
        Err(error) => {
            let ending = format!("the server {} cannot be reached: {error}", Printable(to));
            shared.tell(format_args!("{}: {ending}", shared.book.route(route)));
            turn_away(stream, Greeting::from_error(&error));
            ticket.close(ending, true);
        }
    }
}

/// Reports the end of a relay, and closes both ends: with a reset unless both directions have ended in order.
fn conclude(
    shared: &Shared,
    route: usize,
    (plain, qos): (&TcpStream, &QosTcpStream),
    ticket: Ticket,
    ending: Ending,
) {
    let who = match shared.side {
        GatewaySide::Near => "program",
        GatewaySide::Far => "server",
    };
    let is_done = matches!(ending, Ending::Done);
    let (what, failed) = match ending {
        Ending::Done => ("both directions have ended".to_owned(), false),
        Ending::Plain(error) => (format!("the {who} has ended it: {error}"), true),
        Ending::Qos(error) => (format!("the other gateway has ended it: {error}"), true),
        Ending::Refused(Some(greeting)) => (greeting.meaning().to_owned(), true),
        Ending::Refused(None) => ("the peer is no far gateway".to_owned(), true),
        Ending::Stopped => ("the gateway was stopped".to_owned(), false),
    };
    if !is_done {
        reset(plain);
        reset(qos);
    }
    if failed {
        shared.tell(format_args!("{}: {what}", shared.book.route(route)));
    }
    ticket.close(what, failed);
}

/// Sends the reason of a missing connection to the near gateway, and waits until it has arrived.
fn turn_away(stream: &QosTcpStream, why: Greeting) {
    let heard = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(Some(FAREWELL)))
        .and_then(|()| (&mut &*stream).write_all(&[why.byte()]))
        .and_then(|()| stream.shutdown(Shutdown::Write));
    let mut ignored = [0; 1 << 12];
    while heard.is_ok() && (&mut &*stream).read(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
}

/// Connects to the far gateway, at any of its addresses, until the gateway ends.
fn connect_near(addresses: &[SocketAddr], options: &QosOptions, stop: &Stop) -> io::Result<QosTcpStream> {
    let mut connecting = QosTcpStream::connecting(addresses, options)?;
    loop {
        if stop.is_set() {
            return Err(stopped());
        }
        if let Some(outcome) = connecting.advance() {
            return Ok(outcome?);
        }
        let left =
            u64::try_from(connecting.time_left().as_nanos()).map_or(Duration::MAX, Duration::from_nanos);
        let awaited = connecting.awaits().into_iter().map(|(fd, readiness)| match readiness {
            Readiness::Read => (fd, PollFlags::IN),
            Readiness::Write => (fd, PollFlags::OUT),
        });
        let _ready = stop.poll_all(awaited, Some(left))?;
    }
}

fn stopped() -> io::Error {
    io::Error::new(ErrorKind::Interrupted, "the gateway was stopped")
}

/// Connects to a server, at each of its addresses in turn.
fn connect(shared: &Shared, to: &str) -> io::Result<TcpStream> {
    connect_first(&lookup(to, None)?, shared.limits.connect, &shared.stop)
}

/// Connects to the first of these addresses that accepts.
fn connect_first(addresses: &[SocketAddr], patience: Duration, stop: &Stop) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    for address in addresses {
        match connect_one(*address, patience, stop) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects to an address. The stream does not wait.
fn connect_one(address: SocketAddr, patience: Duration, stop: &Stop) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = TcpStream::from(net::socket_with(family, SocketType::STREAM, flags, None)?);
    // Before anything has come.
    keep_urgent_bytes(&socket)?;
    socket.set_nodelay(true)?;
    match net::connect(&socket, &address) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    let until = now().saturating_add(patience);
    loop {
        let left = until.saturating_since(now());
        let [found] = stop.poll([(socket.as_fd(), PollFlags::OUT)], Some(left))?;
        if !found.is_empty() {
            return sockopt::socket_error(&socket)?.map_err(io::Error::from).map(|()| socket);
        }
        if stop.is_set() {
            return Err(stopped());
        }
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer within {patience}")));
        }
    }
}

/// Leaves urgent bytes at their place in the stream (RFC 6093). Without this the kernel keeps each aside, and it is lost. Streams that a
/// listener accepts have this option of it.
pub fn keep_urgent_bytes(stream: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_oobinline(stream, true)?)
}

/// The longest message that was agreed on, bytes.
fn longest(stream: &QosTcpStream) -> usize {
    let size = stream.mib().send.contract.effective.size;
    size.map_or(ROOM, |size| usize::try_from(size.get()).unwrap_or(ROOM))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listener whose queue takes one connection, and answers nothing when that is full.
    fn silent() -> (std::os::fd::OwnedFd, SocketAddr) {
        let silent =
            net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        net::bind(&silent, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        net::listen(&silent, 0).unwrap();
        let at = SocketAddr::try_from(net::getsockname(&silent).unwrap()).unwrap();
        (silent, at)
    }

    #[test]
    fn every_address_of_a_server_is_tried_and_the_end_of_the_gateway_ends_it() {
        let stop = Stop::new().unwrap();
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (nobody, there) = (bind().local_addr().unwrap(), bind());
        let addresses = [nobody, there.local_addr().unwrap()];
        let stream = connect_first(&addresses, Duration::from_secs(60), &stop).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        let error = connect_first(&[nobody, nobody], Duration::from_secs(60), &stop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let (_silent, at) = silent();
        let start = |_| connect_one(at, Duration::from_millis(200), &stop);
        let found: Vec<_> = (0..4).map(start).collect();
        let late = found.iter().find_map(|found| found.as_ref().err()).expect("its queue is full");
        assert!(
            late.kind() == ErrorKind::TimedOut && late.to_string() == "no answer within 200 ms",
            "{late}"
        );
        stop.set();
        let ended = connect_one(at, Duration::from_secs(3600), &stop).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
    }

    /// A far gateway that answers nothing does not keep the near one from ending.
    #[test]
    fn the_end_of_the_gateway_ends_a_connection_to_a_far_gateway_that_is_being_made() {
        let stop = Stop::new().unwrap();
        let (_silent, at) = silent();
        let filled = |_| connect_one(at, Duration::from_millis(200), &stop).ok();
        let filling: Vec<_> = (0..4).map(filled).collect();
        assert!(filling.iter().any(Option::is_none), "its queue is full");
        let ended = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| connect_near(&[at], &QosOptions::default(), &stop));
            std::thread::sleep(time::Duration::from_millis(20));
            stop.set();
            connecting.join().unwrap()
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
