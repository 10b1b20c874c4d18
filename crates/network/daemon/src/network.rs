//! Messages in transit: raw sockets for protocol 46, and UDP sockets for hosts that have no others (RFC 2205 appendix C).

use cutline_rsvp::encapsulation::{Carrier, Encapsulation, PORT_FROM_HOSTS, PORT_TO_HOSTS, PROTOCOL};
use cutline_rsvp::engine::{ArrivedMessage, Datagram, InterfaceId};
use cutline_sys::SysError;
use cutline_sys::ip_socket::{IpSocket, OutgoingPacket};
use cutline_sys::packet::{LinkAddress, NeighbourSocket};
use cutline_units::IpVersion;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

/// An interface of the engine, as the kernel knows it.
#[derive(Clone, Debug)]
pub struct KernelInterface {
    /// The engine's number.
    pub id: InterfaceId,
    /// The kernel's number.
    pub index: u32,
    pub version: IpVersion,
    pub address: IpAddr,
}

/// Receiving socket, with the encapsulation of its messages.
#[derive(Debug)]
struct Socket {
    inner: IpSocket,
    version: IpVersion,
    carrier: Carrier,
}

/// The sockets that send at one interface. No other interface shares them: a message that waits there for a neighbour that does not answer, or for a slow
/// link, takes room in the socket's buffer, and a host at that link could keep messages at all others from leaving.
#[derive(Debug)]
struct Exit {
    /// For messages directly over IP; none where all travel in UDP.
    raw: Option<IpSocket>,
    udp: IpSocket,
    /// For messages to a neighbour to which routes do not lead them; none without raw sockets.
    neighbours: Option<NeighbourSocket>,
}

impl Exit {
    fn open(version: IpVersion, encapsulation: Encapsulation) -> Result<Self, SysError> {
        let failed =
            |error| SysError::privileged("a socket to send messages cannot be opened", "CAP_NET_RAW", error);
        let has_raw = is_raw(encapsulation);
        Ok(Self {
            raw: has_raw.then(|| IpSocket::raw_sender(version, PROTOCOL)).transpose().map_err(failed)?,
            udp: IpSocket::udp_sender(version).map_err(failed)?,
            neighbours: has_raw.then(NeighbourSocket::open).transpose().map_err(failed)?,
        })
    }
}

/// Returns whether messages at an interface travel directly over IP, or can.
const fn is_raw(encapsulation: Encapsulation) -> bool {
    !matches!(encapsulation, Encapsulation::Udp { .. })
}

/// All sockets of the protocol.
#[derive(Debug)]
pub struct Network {
    sockets: Vec<Socket>,
    exits: BTreeMap<InterfaceId, Exit>,
    links: Vec<KernelInterface>,
    /// Messages at interfaces that are not ours.
    pub misplaced: u64,
    /// Messages that could not be sent.
    pub unsent: u64,
}

impl Network {
    /// Opens the sockets that interfaces of these kinds need. There are none yet.
    ///
    /// # Errors
    /// When the process may not, or another one has a port of the protocol.
    pub fn open(interfaces: &[(IpVersion, Encapsulation)]) -> Result<Self, SysError> {
        let mut sockets: Vec<Socket> = Vec::new();
        for (version, encapsulation) in interfaces.iter().copied() {
            let raw = is_raw(encapsulation);
            let ports = if raw { &[PORT_FROM_HOSTS][..] } else { &[PORT_FROM_HOSTS, PORT_TO_HOSTS] };
            let has = |sockets: &[Socket], carrier| {
                sockets.iter().any(|socket| socket.version == version && socket.carrier == carrier)
            };
            if raw && !has(&sockets, Carrier::Raw) {
                let failed =
                    |error| SysError::privileged("a raw socket cannot be opened", "CAP_NET_RAW", error);
                let socket = IpSocket::raw(version, PROTOCOL, true).map_err(failed)?;
                sockets.push(Socket { inner: socket, version, carrier: Carrier::Raw });
                if version == IpVersion::V6 {
                    let socket = IpSocket::interceptor_v6(PROTOCOL).map_err(failed)?;
                    sockets.push(Socket { inner: socket, version, carrier: Carrier::Raw });
                }
            }
            for port in ports.iter().copied() {
                if has(&sockets, Carrier::Udp(port)) {
                    continue;
                }
                let failed = |error| {
                    SysError::privileged(format!("UDP port {port} cannot be opened"), "CAP_NET_RAW", error)
                };
                let socket = IpSocket::udp(version, port).map_err(failed)?;
                sockets.push(Socket { inner: socket, version, carrier: Carrier::Udp(port) });
            }
        }
        Ok(Self { sockets, exits: BTreeMap::new(), links: Vec::new(), misplaced: 0, unsent: 0 })
    }

    /// The descriptors, each with its number.
    pub fn descriptors(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.sockets.iter().map(|socket| socket.inner.as_fd()).enumerate()
    }

    /// Sockets for which the system gives less room than requested, as sentences.
    pub fn small_buffers(&self) -> impl Iterator<Item = String> {
        let in_words = |socket: &Socket| {
            let (given, wanted) = socket.inner.receive_buffer().ok()?;
            let name = match socket.carrier {
                Carrier::Raw => "raw socket".to_owned(),
                Carrier::Udp(port) => format!("socket of UDP port {port}"),
            };
            (given < wanted).then(|| {
                format!(
                    "the {name} has room for {given} B of messages that wait, and {wanted} B are wanted: \
                     many at a time may be lost; give it CAP_NET_ADMIN, or set net.core.rmem_max"
                )
            })
        };
        self.sockets.iter().filter_map(in_words)
    }

    /// Messages that were lost because too many waited.
    pub fn overflowed(&self) -> u64 {
        self.sockets.iter().map(|socket| u64::from(socket.inner.dropped())).sum()
    }

    /// Passes on a message that has arrived at a socket. Returns whether there was any.
    pub fn receive(&mut self, number: usize, each: impl FnOnce(&ArrivedMessage<'_>)) -> bool {
        let Some(Socket { inner, version, carrier, .. }) = self.sockets.get_mut(number) else {
            return false;
        };
        // An error is that of a message sent before, such as one to a host that refuses it; the next call has the next message.
        let Ok(received) = inner.receive() else { return true };
        let Some(received) = received else { return false };
        let is_its = |link: &&KernelInterface| link.index == received.interface && link.version == *version;
        let Some(link) = self.links.iter().find(is_its) else {
            self.misplaced += 1;
            return true;
        };
        let ttl = received.ttl.filter(|_| *carrier == Carrier::Raw);
        each(&ArrivedMessage {
            interface: link.id,
            source: received.source,
            destination: received.destination,
            ttl,
            carrier: *carrier,
            bytes: received.payload,
        });
        true
    }

    /// Sends a message. One that cannot be sent is counted: the protocol repeats lost messages.
    /// A `detour` is the neighbour that it is sent to, in place of the one to which routes lead.
    pub fn send(&mut self, datagram: &Datagram, detour: Option<LinkAddress>) {
        if self.try_send(datagram, detour).is_err() {
            self.unsent += 1;
        }
    }

    fn try_send(&self, datagram: &Datagram, detour: Option<LinkAddress>) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let link = self.links.iter().find(|link| link.id == datagram.interface).ok_or_else(missing)?;
        let exit = self.exits.get(&datagram.interface).ok_or_else(missing)?;
        let (socket, port) = match datagram.carrier {
            Carrier::Raw => (exit.raw.as_ref().ok_or_else(missing)?, 0),
            Carrier::Udp(port) => (&exit.udp, port),
        };
        let message = OutgoingPacket {
            interface: link.index,
            source: datagram.source,
            destination: (datagram.destination, port),
            ttl: datagram.ttl,
            router_alert: datagram.router_alert,
            payload: &datagram.bytes,
        };
        match (detour, &exit.neighbours) {
            (Some(to), Some(neighbours)) => neighbours.send(PROTOCOL, &message, to),
            _ => socket.send(&message),
        }
    }

    /// Uses an interface, whose messages travel like this.
    ///
    /// # Errors
    /// When sockets that send there cannot be opened. It is not used then.
    pub fn add_link(&mut self, link: KernelInterface, encapsulation: Encapsulation) -> Result<(), SysError> {
        self.exits.insert(link.id, Exit::open(link.version, encapsulation)?);
        self.links.push(link);
        Ok(())
    }

    /// Removes an interface: nothing more is received from it or sent to it.
    pub fn remove_link(&mut self, id: InterfaceId) {
        self.exits.remove(&id);
        self.links.retain(|link| link.id != id);
    }

    /// The present interfaces.
    pub fn links(&self) -> &[KernelInterface] {
        &self.links
    }
}
