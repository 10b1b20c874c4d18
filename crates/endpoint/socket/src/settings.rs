//! The settings of a socket that follow from the application's needs ([`cutline_translate`]).

use crate::error::QosError;
use crate::hint_mark::mark;
use crate::options::{Marking, QosOptions};
use crate::session::{Role, begin};
use crate::udp::DatagramCarrier;
use cutline_signal::negotiation::Carrier;
use cutline_signal::session::Session;
use cutline_sys::sockopt::{TCP_MAXSEG, TCP_NOTSENT_LOWAT};
use cutline_sys::traffic_class::set_traffic_class;
use cutline_translate::{EndSystemSettings, Protocol, Translation, TranslationRequest, translate};
use cutline_units::{Bytes, Dscp, DscpPool2, Hint, HintCodec as _};
use rustix::fd::AsFd;
use rustix::net::sockopt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// The mark of packets.
#[derive(Clone, Copy)]
enum Mark {
    Hint(Hint),
    Dscp(Dscp),
}

/// Settings of a socket.
pub struct Settings {
    end_system: EndSystemSettings,
    /// The mark of its packets; `None` for none.
    mark: Option<Mark>,
}

impl QosOptions {
    /// Sets marks and buffers of a UDP socket that the program owns, such as the socket of a QUIC library, for packets to `peer`. Its packets then have
    /// the mark of these options and its buffers fit the specification; nothing is negotiated and nothing measured. A socket that sends to
    /// peers of both protocols of IP is prepared for one of each.
    ///
    /// ```
    /// use cutline_socket::{Preset, QosOptions};
    /// use std::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// QosOptions::sending(Preset::Video.specification()).prepare(&socket, "127.0.0.1:443".parse()?)?;
    /// // A QUIC library takes the socket, for example `quinn::Endpoint::new(.., socket, ..)`.
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When an option is not allowed, or the system refuses a setting.
    pub fn prepare(&self, socket: impl AsFd, peer: SocketAddr) -> Result<(), QosError> {
        let session = begin(self, &Role::Alone, Carrier::Datagrams)?;
        Settings::new(self, Protocol::Udp, &session)?.apply(socket, peer)
    }
}

impl Settings {
    /// The settings that follow from the options. A session that adapts its hint begins with its own.
    pub fn new(options: &QosOptions, protocol: Protocol, session: &Session) -> Result<Self, QosError> {
        let request = TranslationRequest {
            protocol: Some(protocol),
            path: options.path.clone(),
            ..TranslationRequest::new(options.specification.clone())
        };
        let Translation { end_system, network, .. } = translate(&request)?;
        let mark = match &options.marking {
            Marking::None => None,
            // A hint without a code point stands for unmarked packets.
            Marking::Translated => network.dscp.and_then(|dscp| DscpPool2.decode(dscp)).map(Mark::Hint),
            Marking::Fixed(hint) => Some(Mark::Hint(*hint)),
            Marking::Dscp(dscp) => Some(Mark::Dscp(*dscp)),
            Marking::Adaptive(..) => session.hint().map(Mark::Hint),
        };
        Ok(Self { end_system, mark })
    }

    /// Returns the settings of a socket on which datagram connections are accepted.
    pub fn of_listener(options: &QosOptions) -> Result<Self, QosError> {
        let session = begin(options, &Role::Alone, Carrier::Datagrams)?;
        Self::new(options, Protocol::Udp, &session)
    }

    /// Sets the socket, before it is connected, so that its first packet is marked.
    pub fn apply(&self, socket: impl AsFd, peer: SocketAddr) -> Result<(), QosError> {
        self.mark(&socket, peer)?;
        self.buffers(&socket)
    }

    /// Sets a socket for datagrams of either kind, as [`apply`](Self::apply) does.
    pub fn apply_to(&self, carrier: &DatagramCarrier, peer: SocketAddr) -> Result<(), QosError> {
        self.mark_carrier(carrier, peer)?;
        self.buffers(carrier)
    }

    /// Marks the packets of a socket for datagrams to this peer.
    pub fn mark_carrier(&self, carrier: &DatagramCarrier, peer: SocketAddr) -> Result<(), QosError> {
        let marked = match self.mark {
            None => Ok(()),
            Some(Mark::Hint(hint)) => carrier.mark(peer, hint),
            Some(Mark::Dscp(dscp)) => carrier.mark_dscp(peer, dscp),
        };
        marked.map_err(QosError::system("cannot mark packets"))
    }

    /// Marks the socket's packets to this peer.
    pub fn mark(&self, socket: impl AsFd, peer: SocketAddr) -> Result<(), QosError> {
        let failed = QosError::system("cannot mark packets");
        let marked = match self.mark {
            None => Ok(()),
            Some(Mark::Hint(hint)) => mark(socket, peer, hint),
            Some(Mark::Dscp(dscp)) => set_traffic_class(socket, peer, dscp.in_traffic_class(0)),
        };
        marked.map_err(failed)
    }

    /// Marks the packets of a socket that listens at this address.
    pub fn mark_listener(&self, socket: impl AsFd, address: SocketAddr) -> Result<(), QosError> {
        self.mark(&socket, address)?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            // IPv4 comes here as well, where the system lets it.
            self.mark(&socket, (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 0).into())?;
        }
        Ok(())
    }

    /// Sets the buffers of a socket, before it is connected or listens.
    pub fn buffers(&self, socket: impl AsFd) -> Result<(), QosError> {
        self.set_buffers(socket).map_err(QosError::system("cannot set the socket's buffers"))
    }

    fn set_buffers(&self, socket: impl AsFd) -> io::Result<()> {
        let EndSystemSettings { send_buffer, receive_buffer, .. } = self.end_system;
        let size = |size: Bytes| usize::try_from(size.get()).unwrap_or(usize::MAX);
        if let Some(bytes) = send_buffer {
            sockopt::set_socket_send_buffer_size(&socket, size(bytes))?;
        }
        if let Some(bytes) = receive_buffer {
            sockopt::set_socket_recv_buffer_size(&socket, size(bytes))?;
        }
        Ok(())
    }

    /// Sets the options that only a TCP socket has, before it is connected or listens.
    pub fn apply_tcp(&self, socket: impl AsFd) -> Result<(), QosError> {
        let failed = QosError::system("cannot set the socket's options of TCP");
        self.tcp(&socket).map_err(failed)
    }

    fn tcp(&self, socket: impl AsFd) -> io::Result<()> {
        let EndSystemSettings { no_delay, not_sent_lowat, mss, congestion_control, .. } = &self.end_system;
        let word = |size: Bytes| u32::try_from(size.get()).unwrap_or(u32::MAX);
        if let Some(no_delay) = no_delay {
            sockopt::set_tcp_nodelay(&socket, *no_delay)?;
        }
        if let Some(bytes) = not_sent_lowat {
            TCP_NOTSENT_LOWAT.set(&socket, word(*bytes))?;
        }
        if let Some(bytes) = mss {
            TCP_MAXSEG.set(&socket, word(*bytes))?;
        }
        if let Some(name) = congestion_control {
            // Where the kernel has no such control, its default stays.
            let _other = sockopt::set_tcp_congestion(&socket, name);
        }
        Ok(())
    }
}
