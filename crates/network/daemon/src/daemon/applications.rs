//! The requests of applications: their start, their results, and their end.

use super::TURN;
use super::node::Node;
use crate::clients::Clients;
use crate::convert::{address, of_flow, reason, sender, session};
use crate::requests::{
    ApplicationRequest, ClientId, LocalRequest, ReceiverRequest, RequestId, Requests, SenderRequest,
};
use cutline_provision::protocol::{Reply, Request, Senders};
use cutline_provision::{Refusal, RefusalReason};
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::{CallError, InterfaceId, LocalSender, RsvpEvent};
use cutline_rsvp::intserv::{Adspec, Tspec};
use cutline_rsvp::object::{Sender, Session, Style};
use cutline_sys::now;
use cutline_sys::reactor::{EventFlags, Reactor};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The connected applications and their requests.
#[derive(Debug)]
pub struct Applications {
    pub clients: Clients,
    pub requests: Requests,
    /// Requests of clients that have disconnected, which have not ended yet.
    leaving: VecDeque<RequestId>,
}

impl Applications {
    /// Creates the set, without any. A reactor has the clients under their numbers, counted from `base`.
    pub fn new(base: u32) -> Self {
        Self { clients: Clients::new(base), requests: Requests::default(), leaving: VecDeque::new() }
    }

    /// Carries out the engine's outputs until none is left, and delivers its events.
    pub fn settle(&mut self, node: &mut Node) {
        while let Some(event) = node.next_event() {
            self.deliver(event, node);
        }
    }

    /// Reads as the descriptor with this number of the reactor is ready for.
    pub fn ready(&mut self, number: u32, flags: EventFlags) {
        if let Some(gone) = self.clients.ready(number, flags) {
            self.leave(gone);
        }
    }

    /// Writes the output of clients. Those that have gone, or leave too much unread, are disconnected.
    pub fn flush(&mut self, reactor: &Reactor) {
        for client in self.clients.flush(reactor) {
            self.leave(client);
        }
    }

    /// Returns whether requests of disconnected clients have not ended yet.
    pub fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Handles a request, except for those that request a status.
    pub fn handle(&mut self, node: &mut Node, client: ClientId, request: Request) {
        let (id, outcome) = match request {
            Request::Status {} => return,
            Request::Hello { version } => {
                self.clients.send(client, &Reply::Welcome { version });
                return;
            }
            Request::Withdraw { id } => {
                self.withdraw(node, (client, id));
                self.clients.send(client, &Reply::Withdrawn { id });
                return;
            }
            Request::Announce { id, flow, bucket } => {
                let (session, sender) = of_flow(&flow);
                let request = ApplicationRequest::Announce(SenderRequest {
                    session,
                    sender,
                    tspec: bucket.into(),
                    route: None,
                });
                (id, self.begin(node, (client, id), request, &bucket.into()))
            }
            Request::Reserve { id, transport, destination, senders, bucket, confirm } => {
                let (style, senders) = match senders {
                    Senders::Fixed { senders } => (Style::FixedFilter, senders),
                    Senders::Shared { senders } => (Style::SharedExplicit, senders),
                    Senders::Any {} => (Style::WildcardFilter, Vec::new()),
                };
                let (session, tspec) = (session(transport, destination), bucket.into());
                let senders = senders.into_iter().map(sender).collect();
                let request =
                    ApplicationRequest::Reserve(ReceiverRequest { session, style, senders, tspec, confirm });
                (id, self.begin(node, (client, id), request, &tspec))
            }
            Request::Shape { id, flow, bucket } => {
                let request = ApplicationRequest::Shape(LocalRequest { flow, bucket, place: None });
                (id, self.begin(node, (client, id), request, &bucket.into()))
            }
        };
        match outcome {
            Ok(()) => {
                self.clients.send(client, &Reply::Accepted { id });
                self.start(node, (client, id));
            }
            Err(refusal) => self.clients.send(client, &Reply::Failed { id, refusal, in_place: false }),
        }
    }

    /// Takes a request up, if it is sound.
    fn begin(
        &mut self,
        node: &mut Node,
        id: RequestId,
        request: ApplicationRequest,
        tspec: &Tspec,
    ) -> Result<(), Refusal> {
        let (field, address) = match &request {
            ApplicationRequest::Announce(announced) => ("flow.source", announced.sender.address),
            ApplicationRequest::Shape(shaped) => ("flow.source", shaped.flow.source.ip()),
            ApplicationRequest::Reserve(receiver) => ("destination", receiver.session.destination),
        };
        // Other hosts make requests for their own traffic.
        let is_group = field == "destination" && address.is_multicast();
        if !is_group && !node.is_local(address) {
            let allowed = if field == "destination" { " or a group" } else { "" };
            let why = format!("{field} = {address}: allowed is an address of this host{allowed}");
            return Err(Refusal::new(RefusalReason::Invalid(why)));
        }
        tspec.validate().map_err(|error| Refusal::new(RefusalReason::Invalid(error.to_string())))?;
        // The state of applications is never ended for others, so a user has as much room as a neighbour.
        let most = node.config.params.most_per_neighbour;
        if self.requests.count_of(self.clients.of_the_same_user(id.0)) >= most as usize {
            let why = format!("a user may have {most} requests at a time");
            return Err(Refusal::new(RefusalReason::Invalid(why)));
        }
        self.requests.add(id, request)
    }

    /// Starts a request.
    fn start(&mut self, node: &mut Node, request: RequestId) {
        let session = match self.requests.get_mut(request) {
            Some(ApplicationRequest::Announce(_)) => return self.announce(node, request, true),
            Some(ApplicationRequest::Shape(_)) => return self.shape(node, request, true),
            Some(ApplicationRequest::Reserve(receiver)) => receiver.session,
            None => return,
        };
        let Some(ApplicationRequest::Reserve(receiver)) = self.requests.get_mut(request) else { return };
        let (client, id) = request;
        for sender in &receiver.senders {
            // Those that come later are events.
            if let Some((tspec, adspec)) = node.engine.path(session, *sender) {
                self.clients.send(client, &sender_reply(id, sender, &tspec, adspec.as_ref()));
            }
        }
        let outcome = node.engine.watch(now(), session, true).and_then(|()| self.reserve(node, session));
        if let Err(error) = outcome {
            self.refuse(node, request, RefusalReason::Invalid(error.to_string()));
        }
    }

    /// Refuses and removes a request.
    fn refuse(&mut self, node: &mut Node, request: RequestId, reason: RefusalReason) {
        self.fail(request, Refusal::new(reason));
        self.withdraw(node, request);
    }

    fn fail(&mut self, (client, id): RequestId, refusal: Refusal) {
        self.clients.send(client, &Reply::Failed { id, refusal, in_place: false });
    }

    /// Makes the reservation of a session for the requests of all applications.
    fn reserve(&self, node: &mut Node, session: Session) -> Result<(), CallError> {
        if let Some((merged, flowspecs)) = self.requests.merged(session) {
            return node.engine.reserve_each(now(), session, merged, flowspecs);
        }
        node.engine.release_reservation(now(), session);
        node.engine.watch(now(), session, false)
    }

    /// Announces a flow by the route that it takes now, unless it is announced so already.
    pub fn announce(&mut self, node: &mut Node, request: RequestId, is_first: bool) {
        let Some(ApplicationRequest::Announce(announced)) = self.requests.get_mut(request) else { return };
        let Session { destination, protocol, port } = announced.session;
        let ends = (address(&announced.sender), SocketAddr::new(destination, port));
        let route = node.next_hop(ends, protocol);
        if route == announced.route && !is_first {
            return;
        }
        let was_there = std::mem::replace(&mut announced.route, route).is_some();
        let SenderRequest { session, sender, tspec, .. } = *announced;
        let Some((interface, next_hop)) = route else {
            if was_there {
                node.engine.end_path(now(), session, sender);
            }
            return self.fail(request, Refusal::new(RefusalReason::NoPath));
        };
        let local = LocalSender { sender, tspec, interface, next_hop, advertise: true };
        if let Err(error) = node.engine.send_path(now(), session, &local) {
            self.refuse(node, request, RefusalReason::Invalid(error.to_string()));
        }
    }

    /// Installs a class at the interface that a flow takes now, unless it is installed already.
    pub fn shape(&mut self, node: &mut Node, request: RequestId, is_first: bool) {
        let Some(ApplicationRequest::Shape(shaped)) = self.requests.get_mut(request) else { return };
        let LocalRequest { flow, bucket, place } = *shaped;
        let next = node.next_hop((flow.source, flow.destination), flow.transport.number());
        let interface = next.map(|(interface, _)| interface);
        if !is_first && interface.is_some() && interface == place.map(|(interface, _)| interface) {
            return;
        }
        shaped.place = None;
        if let Some((interface, handle)) = place {
            node.release(interface, handle);
        }
        let outcome = match interface {
            Some(interface) => node.install_local(interface, &flow, &bucket.into()),
            None => Err(Refusal::new(RefusalReason::NoPath)),
        };
        match outcome {
            Ok(place) => {
                if let Some(ApplicationRequest::Shape(shaped)) = self.requests.get_mut(request) {
                    shaped.place = Some(place);
                }
                let (client, id) = request;
                self.clients.send(client, &Reply::Reserved { id, bucket: Some(bucket) });
            }
            Err(refusal) => self.fail(request, refusal),
        }
    }

    /// Ends the requests of this host whose installed reservations were lost. The others are ended in the network.
    pub fn class_lost(&mut self, node: &mut Node, interface: InterfaceId, handle: ReservationHandle) {
        let is_its = |shaped: &LocalRequest| shaped.place == Some((interface, handle));
        let local = self.requests.shaped().find(|(_, shaped)| is_its(shaped)).map(|(request, _)| request);
        let Some(request) = local else { return node.revoke(handle) };
        node.release(interface, handle);
        if let Some(ApplicationRequest::Shape(shaped)) = self.requests.get_mut(request) {
            shaped.place = None;
        }
        let refusal = Refusal { node: node.address_of(interface), ..Refusal::new(RefusalReason::Conflict) };
        self.fail(request, refusal);
    }

    /// Ends a request.
    fn withdraw(&mut self, node: &mut Node, request: RequestId) {
        match self.requests.remove(request) {
            Some(ApplicationRequest::Announce(announced)) => {
                node.engine.end_path(now(), announced.session, announced.sender);
            }
            Some(ApplicationRequest::Reserve(receiver)) => {
                // The reservations of others of the session were allowed before.
                let _allowed = self.reserve(node, receiver.session);
            }
            Some(ApplicationRequest::Shape(LocalRequest { place: Some((interface, handle)), .. })) => {
                node.release(interface, handle);
            }
            Some(ApplicationRequest::Shape(_)) | None => {}
        }
        self.settle(node);
    }

    /// Disconnects a client. All of its requests end.
    pub fn leave(&mut self, client: ClientId) {
        self.leaving.extend(self.requests.of(client));
        self.clients.remove(client);
    }

    /// Ends some of the requests of disconnected clients.
    pub fn end_requests(&mut self, node: &mut Node) {
        let until = now() + TURN;
        while let Some(request) = self.leaving.pop_front() {
            self.withdraw(node, request);
            if now() >= until {
                return;
            }
        }
    }

    /// Ends the requests of all clients.
    pub fn end_all(&mut self, node: &mut Node) {
        for client in self.requests.clients() {
            self.leave(client);
        }
        while self.is_leaving() {
            self.end_requests(node);
        }
    }

    /// Delivers an event to the applications that it is about.
    fn deliver(&mut self, event: RsvpEvent, node: &Node) {
        match event {
            RsvpEvent::Path { session, sender, tspec, adspec } => {
                for (client, id) in self.requests.reservers(session, &[sender]) {
                    self.clients.send(client, &sender_reply(id, &sender, &tspec, adspec.as_ref()));
                }
            }
            RsvpEvent::PathEnded { session, sender } => {
                for (client, id) in self.requests.reservers(session, &[sender]) {
                    self.clients.send(client, &Reply::SenderGone { id, sender: address(&sender) });
                }
            }
            RsvpEvent::Reserved { session, senders, flowspec, .. } => {
                for request in self.requests.announcers(session, &senders) {
                    let Some(ApplicationRequest::Announce(announced)) = self.requests.get_mut(request) else {
                        continue;
                    };
                    let announced = announced.tspec;
                    let installed = flowspec.map(|flowspec| flowspec.tspec().installed(&announced).traffic());
                    self.clients.send(request.0, &Reply::Reserved { id: request.1, bucket: installed });
                }
            }
            RsvpEvent::PathError { session, error, sender } => {
                let refusal =
                    Refusal { node: Some(error.node), ..Refusal::new(reason(error.code, error.value)) };
                for (client, id) in self.requests.announcers(session, &[sender]) {
                    self.clients
                        .send(client, &Reply::Failed { id, refusal: refusal.clone(), in_place: false });
                }
            }
            RsvpEvent::ResvError { session, error, flowspec, senders, .. } => {
                let asked = flowspec.map(|flowspec| *flowspec.tspec());
                let refusal = node.refusal(session, &error, &senders, asked);
                for (client, id) in self.requests.reservers(session, &senders) {
                    let in_place = error.in_place;
                    self.clients.send(client, &Reply::Failed { id, refusal: refusal.clone(), in_place });
                }
            }
            RsvpEvent::Confirmed { session, node, senders, .. } => {
                for (client, id) in self.requests.reservers(session, &senders) {
                    self.clients.send(client, &Reply::Confirmed { id, node });
                }
            }
        }
    }
}

/// Returns the reply about a sender.
fn sender_reply(id: u64, sender: &Sender, tspec: &Tspec, adspec: Option<&Adspec>) -> Reply {
    let known = adspec.filter(|adspec| adspec.bandwidth.is_finite());
    let path_bps = known.map(|adspec| (f64::from(adspec.bandwidth) * 8.0) as u64);
    Reply::Sender { id, sender: address(sender), bucket: tspec.traffic(), path_bps }
}
