//! Inputs and outputs of an engine.

use super::params::InterfaceId;
use crate::admission::ReservationHandle;
use crate::encapsulation::Carrier;
use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{ErrorSpec, Sender, Session, Style};
use cutline_flow::FlowSelector;
use std::net::IpAddr;

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedMessage<'b> {
    /// Interface on which the message arrived.
    pub interface: InterfaceId,
    /// Its source in the header of IP.
    pub source: IpAddr,
    /// Its destination there.
    pub destination: IpAddr,
    /// The TTL with which it arrived; `None` if it is not known, as with UDP.
    pub ttl: Option<u8>,
    /// Carrier of the message.
    pub carrier: Carrier,
    /// Its bytes, after the headers of IP and UDP.
    pub bytes: &'b [u8],
}

/// Output of an engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineOutput {
    /// Send a message.
    Send(Datagram),
    /// Change the reservations on an interface.
    Control(Control),
    /// Report the route of packets, and report it again whenever it changes ([`Engine::set_route`](super::Engine::set_route)).
    AskRoute(RouteKey),
    /// The route is no longer needed.
    ForgetRoute(RouteKey),
    /// An event for an application here.
    Event(RsvpEvent),
}

/// A message that is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The outgoing interface.
    pub interface: InterfaceId,
    /// Its source in the header of IP. For a Path message that is the sender of the packets.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// The next node on the route to the destination, if it is known and is not the destination itself. The message must take the
    /// route of the flow's packets, which may differ from the route of a message.
    pub next_hop: Option<IpAddr>,
    /// Its TTL.
    pub ttl: u8,
    /// True if it has the Router Alert option.
    pub router_alert: bool,
    /// Carrier of the message.
    pub carrier: Carrier,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A route that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// Destination of the packets.
    pub destination: IpAddr,
    /// Source of the packets, for a group.
    pub source: Option<IpAddr>,
    /// Flow of the packets, for one destination: routing may depend on all of it. `None` for messages of this
    /// node.
    pub flow: Option<RoutedFlow>,
}

impl RouteKey {
    /// The route of this node's own messages.
    pub const fn to(destination: IpAddr) -> Self {
        Self { destination, source: None, flow: None }
    }
}

/// Fields of a flow's packets that routing may consult beside their destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutedFlow {
    /// Source of the packets.
    pub source: IpAddr,
    /// Their protocol.
    pub protocol: u8,
    /// Their ports of source and destination; 0 where they have none, or it is not known.
    pub ports: (u16, u16),
    /// The interface at which they arrive.
    pub incoming: InterfaceId,
}

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// For a group, the interface at which its packets arrive.
    pub incoming: Option<InterfaceId>,
    /// The interfaces by which packets leave, each with the next node if that is known. None if they end here.
    pub outgoing: Vec<(InterfaceId, Option<IpAddr>)>,
}

/// A request to traffic control (RFC 2205 section 3.11.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    /// Reserve.
    Add(ReservedFlow),
    /// Reserve something else instead.
    Modify(ReservedFlow),
    /// Packets of this sender use the reservation, too.
    AddFilter {
        /// The interface.
        interface: InterfaceId,
        /// The reservation.
        handle: ReservationHandle,
        /// The session.
        session: Session,
        /// The sender.
        sender: Sender,
    },
    /// Packets of this sender no longer use it.
    RemoveFilter {
        /// The interface.
        interface: InterfaceId,
        /// The reservation.
        handle: ReservationHandle,
        /// The session.
        session: Session,
        /// The sender.
        sender: Sender,
    },
    /// End the reservation.
    Delete {
        /// The interface.
        interface: InterfaceId,
        /// The reservation.
        handle: ReservationHandle,
    },
}

/// Points at which traffic must be policed (RFC 2205 section 3.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Police {
    /// At the first node that can.
    pub entry: bool,
    /// Flows of several senders share a reservation here.
    pub merge: bool,
    /// Less is reserved here than on another branch.
    pub branch: bool,
}

/// Reservation on an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservedFlow {
    /// The interface.
    pub interface: InterfaceId,
    /// The number of the reservation.
    pub handle: ReservationHandle,
    /// The session.
    pub session: Session,
    /// The style.
    pub style: Style,
    /// The senders whose packets use it; none in style WF, where all do.
    pub senders: Vec<Sender>,
    /// The bucket to serve and to police by.
    pub tspec: Tspec,
    /// Points at which to police.
    pub police: Police,
}

impl ReservedFlow {
    /// Returns the selectors of the packets that use the reservation: one for each sender, or one for all.
    pub fn selectors(&self) -> Vec<FlowSelector> {
        if self.senders.is_empty() {
            return vec![self.session.selector(None)];
        }
        self.senders.iter().map(|sender| self.session.selector(Some(sender))).collect()
    }
}

/// Event for an application.
#[derive(Clone, Debug, PartialEq)]
pub enum RsvpEvent {
    /// A sender of a session has appeared, or sends something else.
    Path {
        /// The session.
        session: Session,
        /// The sender.
        sender: Sender,
        /// Its traffic.
        tspec: Tspec,
        /// AdSpec of the path.
        adspec: Option<Adspec>,
    },
    /// A sender has gone.
    PathEnded {
        /// The session.
        session: Session,
        /// The sender.
        sender: Sender,
    },
    /// The reservation for the sender's packets has changed.
    Reserved {
        /// The session.
        session: Session,
        /// The style.
        style: Style,
        /// The senders; none in style WF.
        senders: Vec<Sender>,
        /// The reservation; `None` if it has ended.
        flowspec: Option<Flowspec>,
    },
    /// The path of a sender here cannot be set up.
    PathError {
        /// The session.
        session: Session,
        /// The error.
        error: ErrorSpec,
        /// The sender.
        sender: Sender,
    },
    /// A reservation has failed.
    ResvError {
        /// The session.
        session: Session,
        /// The error.
        error: ErrorSpec,
        /// The style.
        style: Style,
        /// The failed reservation.
        flowspec: Option<Flowspec>,
        /// The senders.
        senders: Vec<Sender>,
    },
    /// A reservation is probably there along the whole path.
    Confirmed {
        /// The session.
        session: Session,
        /// The node that reports it.
        node: IpAddr,
        /// The style.
        style: Style,
        /// The senders.
        senders: Vec<Sender>,
    },
}
