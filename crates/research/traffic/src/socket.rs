//! Opens and configures sockets: addresses, code points, buffers.

use crate::plan::{FlowPlan, FlowTransport, TcpOptions};
use cutline_direct::{DirectAddress, DirectInbox, DirectSocket};
use cutline_sys::address::with_port;
use cutline_sys::datagrams::Inbox;
use cutline_sys::packet::LinkAddress;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::sockopt::{TCP_MAXSEG, TCP_NOTSENT_LOWAT};
use cutline_sys::traffic_class::set_traffic_class;
use cutline_sys::{interface, now, tcp};
use cutline_units::{Dscp, DscpPool2, Duration, HintCodec as _};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, socket_with, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// ECN-capable transport, ECT(0) (RFC 3168 section 5).
const ECT0: u8 = 0b10;
/// The receive buffer of a meter's UDP socket, bytes: a few ms at the highest rate that one process can read.
const RECEIVE_BUFFER: usize = 8 << 20;

/// Returns a function that formats a system error; `doing` names the operation that failed.
pub(crate) fn refused<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("{doing}: {}", error.into())
}

fn family(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

pub(crate) fn open(address: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    socket_with(family(address), kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Selects a congestion control by its Linux name on a new socket. The kernel loads its module if there is one.
///
/// # Errors
/// Returns `NotFound` if the kernel does not have it, `PermissionDenied` if the process may not select it.
pub fn select_congestion_control(name: &str) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(sockopt::set_tcp_congestion(&socket, name)?)
}

/// Opens the TCP socket of a flow and starts to connect it.
pub(crate) fn connect(plan: &FlowPlan, options: &TcpOptions) -> Result<OwnedFd, String> {
    let socket = open(plan.to, SocketType::STREAM).map_err(refused("cannot open a socket"))?;
    set_tcp(&socket, options)?;
    set_traffic_class(&socket, plan.to, plan.dscp.in_traffic_class(0))
        .map_err(refused("cannot set the code point"))?;
    bind_from(&socket, plan)?;
    match net::connect(&socket, &plan.to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(format!("cannot connect to {}: {}", plan.to, io::Error::from(errno))),
    }
}

/// Opens the socket of a TCP flow that the peer sends, and starts to connect it. Each option that the sender's
/// kernel must agree on is set before: the largest segment, and the window.
pub(crate) fn connect_to_receive(plan: &FlowPlan, options: &TcpOptions) -> Result<OwnedFd, String> {
    let socket = open(plan.to, SocketType::STREAM).map_err(refused("cannot open a socket"))?;
    if let Some(bytes) = options.max_segment {
        TCP_MAXSEG.set(&socket, bytes).map_err(refused("cannot set TCP_MAXSEG"))?;
    }
    if let Some(bytes) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(&socket, bytes as usize)
            .map_err(refused("cannot set SO_RCVBUF"))?;
    }
    mark_answers(&socket, plan.to, plan.dscp);
    bind_from(&socket, plan)?;
    match net::connect(&socket, &plan.to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(format!("cannot connect to {}: {}", plan.to, io::Error::from(errno))),
    }
}

/// Configures an accepted connection to send a flow.
pub(crate) fn adopt_connection(
    socket: &OwnedFd,
    plan: &FlowPlan,
    options: &TcpOptions,
) -> Result<(), String> {
    // The peer has set the largest segment, which both ends agree on when they connect.
    set_tcp(socket, &TcpOptions { max_segment: None, ..options.clone() })?;
    set_traffic_class(socket, plan.to, plan.dscp.in_traffic_class(0))
        .map_err(refused("cannot set the code point"))
}

/// Configures a connected socket to send the datagrams of a flow.
pub(crate) fn adopt_datagrams(socket: &OwnedFd, plan: &FlowPlan) -> Result<(), String> {
    let ecn = if plan.ecn { ECT0 } else { 0 };
    set_traffic_class(socket, plan.to, plan.dscp.in_traffic_class(ecn))
        .map_err(refused("cannot set the code point"))
}

/// Opens the UDP socket of a flow that the peer sends, and connects it.
pub(crate) fn receive_datagrams(plan: &FlowPlan) -> Result<OwnedFd, String> {
    let socket = open(plan.to, SocketType::DGRAM).map_err(refused("cannot open a socket"))?;
    mark_answers(&socket, plan.to, plan.dscp);
    make_room(&socket, RECEIVE_BUFFER);
    Inbox::prepare(&socket).map_err(refused("cannot request time stamps"))?;
    bind_from(&socket, plan)?;
    net::connect(&socket, &plan.to)
        .map_err(|errno| format!("cannot connect to {}: {}", plan.to, io::Error::from(errno)))?;
    Ok(socket)
}

/// Opens a UDP socket from `local`, a port that another socket has, to `peer`.
pub(crate) fn path(local: SocketAddr, peer: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(local, SocketType::DGRAM)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    net::bind(&socket, &local)?;
    net::connect(&socket, &peer)?;
    Ok(socket)
}

/// Waits until a socket is connected.
pub(crate) fn finish_connecting(socket: &OwnedFd, time: Duration) -> io::Result<()> {
    let end = now().saturating_add(time);
    while now() < end {
        if wait(&mut [PollFd::new(socket, PollFlags::OUT)], end.saturating_since(now()))? {
            return Ok(sockopt::socket_error(socket)??);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Ends a connection whose peer has vanished without a word, after some 15 s.
pub(crate) fn detect_absence(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, std::time::Duration::from_secs(5))?;
    sockopt::set_tcp_keepintvl(socket, std::time::Duration::from_secs(2))?;
    Ok(sockopt::set_tcp_keepcnt(socket, 5)?)
}

/// Connects to a receiver's control port within `time`.
pub(crate) fn connect_control(
    from: Option<SocketAddr>,
    to: SocketAddr,
    time: Duration,
) -> io::Result<TcpStream> {
    let socket = open(to, SocketType::STREAM)?;
    if let Some(from) = from {
        net::bind(&socket, &with_port(from, 0))?;
    }
    match net::connect(&socket, &to) {
        Ok(()) => return Ok(socket.into()),
        Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno.into()),
    }
    finish_connecting(&socket, time)?;
    Ok(socket.into())
}

/// Opens the UDP socket of a flow and connects it.
fn datagrams(plan: &FlowPlan, send_buffer: Option<u32>) -> Result<OwnedFd, String> {
    let socket = open(plan.to, SocketType::DGRAM).map_err(refused("cannot open a socket"))?;
    let ecn = if plan.ecn { ECT0 } else { 0 };
    set_traffic_class(&socket, plan.to, plan.dscp.in_traffic_class(ecn))
        .map_err(refused("cannot set the code point"))?;
    if let Some(bytes) = send_buffer {
        sockopt::set_socket_send_buffer_size(&socket, bytes as usize)
            .map_err(refused("cannot set SO_SNDBUF"))?;
    }
    bind_from(&socket, plan)?;
    net::connect(&socket, &plan.to)
        .map_err(|errno| format!("cannot connect to {}: {}", plan.to, io::Error::from(errno)))?;
    Ok(socket)
}

/// A socket that sends the datagrams of a flow.
#[derive(Debug)]
pub(crate) enum DatagramSocket {
    Udp(OwnedFd),
    Direct(DirectSocket),
}

impl DatagramSocket {
    /// Opens the socket of a flow and connects it.
    pub(crate) fn open(plan: &FlowPlan, send_buffer: Option<u32>) -> Result<Self, String> {
        match plan.transport {
            FlowTransport::Direct { .. } => frames(plan, send_buffer).map(Self::Direct),
            _ => datagrams(plan, send_buffer).map(Self::Udp),
        }
    }

    /// Sends a datagram without waiting.
    pub(crate) fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => {
                net::send(socket, datagram, SendFlags::NOSIGNAL).map(drop).map_err(io::Error::from)
            }
            Self::Direct(socket) => socket.send(&[datagram]).map(drop),
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Direct(socket) => socket.as_fd(),
        }
    }
}

/// Opens the socket of a flow in frames. The address of its receiver is a direct one ([`DirectAddress::socket_addr`]).
fn frames(plan: &FlowPlan, send_buffer: Option<u32>) -> Result<DirectSocket, String> {
    let to = DirectAddress::of(plan.to).ok_or_else(|| format!("{} is no address of frames", plan.to))?;
    let socket = DirectSocket::connect(to).map_err(|error| error.to_string())?;
    // Frames have no code points, but hints.
    let hint = Some(plan.dscp).filter(|dscp| *dscp != Dscp::DEFAULT).and_then(|dscp| DscpPool2.decode(dscp));
    socket.set_hint(hint).map_err(refused("cannot set the hint"))?;
    if let Some(bytes) = send_buffer {
        sockopt::set_socket_send_buffer_size(&socket, bytes as usize)
            .map_err(refused("cannot set SO_SNDBUF"))?;
    }
    Ok(socket)
}

/// Opens the socket of a meter for frames on the interface that has an address, on any port.
pub(crate) fn listen_for_frames(local: IpAddr, receive_buffer: Option<u32>) -> Result<DirectSocket, String> {
    let (index, _) = link_of(local)?;
    let socket = DirectSocket::bind(index, 0).map_err(|error| error.to_string())?;
    DirectInbox::prepare(&socket).map_err(refused("cannot request time stamps"))?;
    make_room(&socket, receive_buffer.map_or(RECEIVE_BUFFER, |bytes| bytes as usize));
    Ok(socket)
}

/// Returns the number and the link address of the interface that has an address.
pub(crate) fn link_of(local: IpAddr) -> Result<(u32, LinkAddress), String> {
    let name = interface::of_address(local).map_err(|error| error.to_string())?;
    let name = name.ok_or_else(|| format!("no interface has the address {local}"))?;
    let index = interface::index(&name).map_err(|error| error.to_string())?;
    Ok((index, interface::link_address(&name).map_err(|error| error.to_string())?))
}

/// Checks that a receiver is on the link of an interface, where the kernel knows: frames cross no router.
pub(crate) fn check_on_link(receiver: IpAddr, link: LinkAddress) -> Result<(), String> {
    let IpAddr::V4(ip) = receiver.to_canonical() else { return Ok(()) };
    if ip.is_loopback() {
        return Ok(());
    }
    let table = std::fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default();
    let shown = link.map(|octet| format!("{octet:02x}")).join(":");
    // A line for each neighbour: address, kind, flags, link address, mask, interface.
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let is_it = |line: &str| {
        let columns = columns(line);
        columns.first() == Some(&ip.to_string()) && columns.get(3) == Some(&shown)
    };
    if table.lines().any(is_it) {
        return Ok(());
    }
    Err(format!(
        "the receiver {ip} with the link address {shown} is not on a link of this host: frames cross no router"
    ))
}

fn bind_from(socket: &OwnedFd, plan: &FlowPlan) -> Result<(), String> {
    let Some(from) = plan.from else { return Ok(()) };
    // Allows the reuse of a port whose last connection is in TIME_WAIT.
    sockopt::set_socket_reuseaddr(socket, true).map_err(refused("cannot set SO_REUSEADDR"))?;
    net::bind(socket, &from).map_err(|errno| format!("cannot bind to {from}: {}", io::Error::from(errno)))
}

fn set_tcp(socket: &OwnedFd, options: &TcpOptions) -> Result<(), String> {
    let TcpOptions { congestion_control, max_segment, send_buffer, .. } = options;
    if let Some(name) = congestion_control {
        sockopt::set_tcp_congestion(socket, name).map_err(|errno| {
            let available = "net.ipv4.tcp_available_congestion_control lists the available ones";
            format!("congestion control {name:?}: {}; {available}", io::Error::from(errno))
        })?;
    }
    if let Some(bytes) = max_segment {
        TCP_MAXSEG.set(socket, *bytes).map_err(refused("cannot set TCP_MAXSEG"))?;
    }
    if let Some(bytes) = send_buffer {
        sockopt::set_socket_send_buffer_size(socket, *bytes as usize)
            .map_err(refused("cannot set SO_SNDBUF"))?;
    }
    if let Some(bytes) = options.not_sent_lowat {
        TCP_NOTSENT_LOWAT.set(socket, bytes).map_err(refused("cannot set TCP_NOTSENT_LOWAT"))?;
    }
    if let Some(rate) = options.max_pacing_rate {
        tcp::set_max_pacing_rate(socket, rate).map_err(refused("cannot set SO_MAX_PACING_RATE"))?;
    }
    sockopt::set_tcp_nodelay(socket, options.no_delay).map_err(refused("cannot set TCP_NODELAY"))
}

/// Sets the code point of the packets that a receiver sends back.
pub(crate) fn mark_answers(socket: impl AsFd, peer: SocketAddr, dscp: Dscp) {
    // If the kernel refuses, the replies are unmarked and the flow continues.
    let _unmarked = set_traffic_class(socket, peer, dscp.in_traffic_class(0));
}

/// Opens a meter's TCP and UDP sockets on the same port. The UDP socket has [`RECEIVE_BUFFER`] unless a size is given.
pub(crate) fn bind_both(address: SocketAddr, receive_buffer: Option<u32>) -> io::Result<(OwnedFd, OwnedFd)> {
    // With port 0 the kernel chooses a port for TCP; another process may use the same port for UDP.
    let mut tries = if address.port() == 0 { 16 } else { 1 };
    loop {
        tries -= 1;
        let listener = open(address, SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        net::bind(&listener, &address)?;
        let datagrams = open(address, SocketType::DGRAM)?;
        match net::bind(&datagrams, &local_address(&listener)?) {
            Err(Errno::ADDRINUSE) if tries > 0 => {}
            Err(errno) => return Err(errno.into()),
            Ok(()) => {
                net::listen(&listener, 4096)?;
                make_room(&datagrams, receive_buffer.map_or(RECEIVE_BUFFER, |bytes| bytes as usize));
                return Ok((listener, datagrams));
            }
        }
    }
}

/// Sets the receive buffer of a socket for datagrams to this size, or to the largest that the kernel allows.
fn make_room(socket: impl AsFd, bytes: usize) {
    if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
        // Without CAP_NET_ADMIN the kernel limits the size to net.core.rmem_max.
        let _cut = sockopt::set_socket_recv_buffer_size(&socket, bytes);
    }
}

/// Returns the size of a socket's receive buffer as the kernel counts, bytes; `None` if the kernel does not report it.
pub(crate) fn buffer_size(socket: impl AsFd) -> Option<u64> {
    sockopt::socket_recv_buffer_size(socket).ok().map(|bytes| bytes as u64)
}

pub(crate) fn local_address(socket: impl AsFd) -> io::Result<SocketAddr> {
    let address = net::getsockname(socket)?;
    SocketAddr::try_from(address).map_err(io::Error::from)
}
