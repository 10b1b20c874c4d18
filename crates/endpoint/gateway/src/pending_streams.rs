//! Pending streams of a far gateway: those that were accepted and have not shown yet that their peer is a near gateway.
//!
//! They have no thread, no place among the connections, and little time. When there are too many, in all or of one address, the oldest
//! leaves: a near gateway needs one round trip to negotiate, so silent connections cannot keep it out.

use crate::networks::network_of;
use crate::relay::reset;
use crate::shared::Shared;
use cutline_socket::{QosError, QosTcpListener, QosTcpStream};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Time that a near gateway has for its part of the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(10);
/// The most streams that wait, and the most of one address.
const MOST: usize = 512;
const MOST_OF_ONE: usize = 128;
/// The most streams that are accepted before those that wait are looked at.
const TURN: usize = 32;
/// Interval of checks whether another thread has taken data, which the descriptor does not show.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Interval of checks of a stream that has sent nothing.
const REMIND_EVERY: Duration = Duration::from_millis(250);

/// A stream that has not negotiated.
struct PendingStream {
    stream: QosTcpStream,
    peer: SocketAddr,
    of: IpAddr,
    since: Instant,
    /// Time of the next check without news of the descriptor.
    due: Instant,
    /// True if the descriptor is ready.
    is_ready: bool,
}

/// The streams that wait, the oldest first.
#[derive(Default)]
pub struct PendingStreams(VecDeque<PendingStream>);

impl PendingStreams {
    /// Accepts waiting connections. Returns the system's error if it refuses.
    pub fn accept(&mut self, shared: &Shared, route: usize, listener: &QosTcpListener) -> Option<io::Error> {
        for _ in 0..TURN {
            match listener.accept() {
                Ok((stream, peer)) => self.admit(shared, route, stream, peer),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                // Without a free descriptor the connection stays ready, so the oldest stream gives up its own.
                Err(error) if lacks_room(&error) && !self.0.is_empty() => {
                    self.leave(shared, route, 0, "another connection has taken its place");
                    return None;
                }
                Err(error) => return Some(error),
            }
        }
        None
    }

    fn admit(&mut self, shared: &Shared, route: usize, stream: QosTcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)) {
            return shared.tell_stranger(route, peer, format_args!("it has gone: {error}"));
        }
        let of = network_of(peer.ip());
        if self.0.iter().filter(|guest| guest.of == of).count() >= MOST_OF_ONE {
            let oldest = self.0.iter().position(|guest| guest.of == of).unwrap_or(0);
            self.leave(shared, route, oldest, "it is silent, and others of its address have come");
        } else if self.0.len() >= MOST {
            self.leave(shared, route, 0, "it is silent, and others have come");
        }
        let now = now();
        self.0.push_back(PendingStream { stream, peer, of, since: now, due: now, is_ready: false });
    }

    /// Resets a stream that waits.
    fn leave(&mut self, shared: &Shared, route: usize, place: usize, why: &str) {
        if let Some(guest) = self.0.remove(place) {
            reset(&guest.stream);
            shared.tell_stranger(route, guest.peer, why);
        }
    }

    /// Returns the streams whose peers have negotiated. Those that are no gateways are reset.
    pub fn look(&mut self, shared: &Shared, route: usize) -> Vec<(QosTcpStream, SocketAddr)> {
        let mut proven = Vec::new();
        let at = now();
        for mut guest in std::mem::take(&mut self.0) {
            let is_news = guest.is_ready || at >= guest.due || !guest.stream.is_joining();
            if !is_news {
                self.0.push_back(guest);
                continue;
            }
            let why = match guest.stream.has_qos_peer() {
                Ok(true) => {
                    proven.push((guest.stream, guest.peer));
                    continue;
                }
                Ok(false) => "the peer is no near gateway: it speaks another protocol".to_owned(),
                Err(QosError::System { source, .. })
                    if source.kind() == ErrorKind::WouldBlock
                        && at.saturating_since(guest.since) < NEGOTIATION =>
                {
                    (guest.due, guest.is_ready) = (at.saturating_add(REMIND_EVERY), false);
                    self.0.push_back(guest);
                    continue;
                }
                Err(QosError::System { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
                    "the peer is no near gateway: it has not answered in time".to_owned()
                }
                Err(error) => format!("the peer is no near gateway: {error}"),
            };
            reset(&guest.stream);
            shared.tell_stranger(route, guest.peer, why);
        }
        proven
    }

    /// Waits until there is something to do.
    pub fn wait(&mut self, shared: &Shared, listener: &QosTcpListener) {
        let timeout = (!self.0.is_empty()).then_some(LOOK_EVERY);
        let guests = self.0.iter().map(|guest| guest.stream.as_fd());
        let awaited = std::iter::once(listener.as_fd()).chain(guests).map(|fd| (fd, PollFlags::IN));
        // Connections hidden by an error are accepted later.
        let Ok(ready) = shared.stop.poll_all(awaited, timeout) else {
            return;
        };
        for (guest, is_ready) in self.0.iter_mut().zip(ready.into_iter().skip(1)) {
            guest.is_ready = is_ready;
        }
    }
}

/// Returns whether the process or the system has no descriptor or memory for a connection now.
fn lacks_room(error: &io::Error) -> bool {
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| errnos.contains(&errno))
}
