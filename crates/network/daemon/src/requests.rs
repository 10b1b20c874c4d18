//! Requests of applications, and the replies to them.

use cutline_flow::TrafficSpec;
use cutline_provision::{Flow, Refusal, RefusalReason};
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::{InterfaceId, Reservation};
use cutline_rsvp::intserv::{Flowspec, Tspec};
use cutline_rsvp::object::{Sender, Session, Style};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;

/// The number of a client.
pub type ClientId = u32;

/// A request: the client, and its number for it.
pub type RequestId = (ClientId, u64);

/// The most requests of a client at a time.
pub const MOST_EACH: usize = 100_000;

/// Request of an application.
#[derive(Clone, Debug)]
pub enum ApplicationRequest {
    /// A flow that is sent.
    Announce(SenderRequest),
    /// A reservation for received packets.
    Reserve(ReceiverRequest),
    /// A class at this host alone.
    Shape(LocalRequest),
}

#[derive(Clone, Debug)]
pub struct SenderRequest {
    pub session: Session,
    pub sender: Sender,
    pub tspec: Tspec,
    /// The interface by which it is announced, and the next node; `None` while no route leads there.
    pub route: Option<(InterfaceId, Option<IpAddr>)>,
}

#[derive(Clone, Debug)]
pub struct ReceiverRequest {
    pub session: Session,
    pub style: Style,
    /// None in style WF.
    pub senders: Vec<Sender>,
    pub tspec: Tspec,
    pub confirm: bool,
}

#[derive(Clone, Debug)]
pub struct LocalRequest {
    pub flow: Flow,
    pub bucket: TrafficSpec,
    /// Interface and handle of the installed class; `None` while no route leads there, or it is refused
    /// there.
    pub place: Option<(InterfaceId, ReservationHandle)>,
}

/// All requests.
#[derive(Debug, Default)]
pub struct Requests {
    all: BTreeMap<RequestId, ApplicationRequest>,
    /// Number of requests of each client.
    counts: BTreeMap<ClientId, usize>,
    announcers: BTreeMap<(Session, Sender), RequestId>,
    reservers: BTreeMap<Session, BTreeSet<RequestId>>,
    shapers: BTreeMap<Flow, RequestId>,
}

impl Requests {
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut ApplicationRequest> {
        self.all.get_mut(&id)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When the number is in use, or another request is for the same packets and does not go with it.
    pub fn add(&mut self, id: RequestId, request: ApplicationRequest) -> Result<(), Refusal> {
        let refused = |reason| Err(Refusal::new(reason));
        if self.all.contains_key(&id) {
            return refused(RefusalReason::Invalid(format!(
                "id = {}: allowed is one that is not in use",
                id.1
            )));
        }
        if self.counts.get(&id.0).is_some_and(|count| *count >= MOST_EACH) {
            return refused(RefusalReason::Invalid(format!(
                "a client may have {MOST_EACH} requests at a time"
            )));
        }
        match &request {
            ApplicationRequest::Announce(announced) => {
                let key = (announced.session, announced.sender);
                if self.announcers.contains_key(&key) {
                    return refused(RefusalReason::Conflict);
                }
                self.announcers.insert(key, id);
            }
            ApplicationRequest::Shape(shaped) => {
                if self.shapers.contains_key(&shaped.flow) {
                    return refused(RefusalReason::Conflict);
                }
                self.shapers.insert(shaped.flow, id);
            }
            ApplicationRequest::Reserve(receiver) => {
                if !self.others(receiver.session).all(|other| receiver.goes_with(other)) {
                    return refused(RefusalReason::Conflict);
                }
                self.reservers.entry(receiver.session).or_default().insert(id);
            }
        }
        self.all.insert(id, request);
        *self.counts.entry(id.0).or_default() += 1;
        Ok(())
    }

    /// Removes a request.
    pub fn remove(&mut self, id: RequestId) -> Option<ApplicationRequest> {
        let request = self.all.remove(&id)?;
        if let Some(count) = self.counts.get_mut(&id.0) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&id.0);
            }
        }
        match &request {
            ApplicationRequest::Announce(announced) => {
                self.announcers.remove(&(announced.session, announced.sender));
            }
            ApplicationRequest::Shape(shaped) => {
                self.shapers.remove(&shaped.flow);
            }
            ApplicationRequest::Reserve(receiver) => {
                if let Some(ids) = self.reservers.get_mut(&receiver.session) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.reservers.remove(&receiver.session);
                    }
                }
            }
        }
        Some(request)
    }

    /// Returns the requests of a client.
    pub fn of(&self, client: ClientId) -> impl Iterator<Item = RequestId> + '_ {
        self.all.range((client, 0)..=(client, u64::MAX)).map(|(id, _)| *id)
    }

    /// Returns the number of requests of these clients.
    pub fn count_of(&self, clients: impl Iterator<Item = ClientId>) -> usize {
        clients.filter_map(|client| self.counts.get(&client)).sum()
    }

    /// Returns the clients that have requests.
    pub fn clients(&self) -> Vec<ClientId> {
        self.counts.keys().copied().collect()
    }

    /// Returns the requests for sent flows.
    pub fn announced(&self) -> Vec<RequestId> {
        self.announcers.values().copied().collect()
    }

    /// Returns the requests for flows that are shaped here.
    pub fn shaped(&self) -> impl Iterator<Item = (RequestId, &LocalRequest)> {
        self.shapers.values().filter_map(|id| match self.all.get(id) {
            Some(ApplicationRequest::Shape(shaped)) => Some((*id, shaped)),
            _ => None,
        })
    }

    /// Returns the local reservations of requests with larger numbers than this one.
    pub fn shaped_after(
        &self,
        request: Option<RequestId>,
    ) -> impl Iterator<Item = (RequestId, &LocalRequest)> {
        let first = request.map_or(Bound::Unbounded, Bound::Excluded);
        self.all.range((first, Bound::Unbounded)).filter_map(|(id, request)| match request {
            ApplicationRequest::Shape(shaped) => Some((*id, shaped)),
            _ => None,
        })
    }

    /// Returns the requests that own a session's reserved flows which leave here.
    pub fn announcers(&self, session: Session, senders: &[Sender]) -> Vec<RequestId> {
        if senders.is_empty() {
            let all = Sender::new(IpAddr::from([0, 0, 0, 0]), 0);
            let its = self.announcers.range((session, all)..).take_while(|((other, _), _)| *other == session);
            return its.map(|(_, id)| *id).collect();
        }
        senders.iter().filter_map(|sender| self.announcers.get(&(session, *sender)).copied()).collect()
    }

    /// Returns the requests for these senders; all of the session if there are none.
    pub fn reservers(&self, session: Session, senders: &[Sender]) -> Vec<RequestId> {
        let ids = self.reservers.get(&session).into_iter().flatten();
        let is_for = |id: &&RequestId| match self.all.get(id) {
            Some(ApplicationRequest::Reserve(receiver)) => {
                senders.is_empty()
                    || receiver.senders.is_empty()
                    || senders.iter().any(|sender| receiver.senders.contains(sender))
            }
            _ => false,
        };
        ids.filter(is_for).copied().collect()
    }

    fn others(&self, session: Session) -> impl Iterator<Item = &ReceiverRequest> {
        let ids = self.reservers.get(&session).into_iter().flatten();
        ids.filter_map(|id| match self.all.get(id) {
            Some(ApplicationRequest::Reserve(receiver)) => Some(receiver),
            _ => None,
        })
    }

    /// Returns the reservation of all requests of a session together; `None` if there are none.
    pub fn merged(&self, session: Session) -> Option<(Reservation, BTreeMap<Sender, Flowspec>)> {
        let mut all = self.others(session);
        let first = all.next()?;
        let flowspec = Flowspec::ControlledLoad(first.tspec);
        let mut merged = Reservation {
            style: first.style,
            senders: first.senders.clone(),
            flowspec,
            confirm: first.confirm,
        };
        let each = |receiver: &ReceiverRequest| {
            let flowspec = Flowspec::ControlledLoad(receiver.tspec);
            receiver.senders.iter().map(move |sender| (*sender, flowspec)).collect::<Vec<_>>()
        };
        let mut flowspecs: BTreeMap<Sender, Flowspec> = each(first).into_iter().collect();
        for receiver in all {
            merged.senders.extend(&receiver.senders);
            merged.confirm |= receiver.confirm;
            flowspecs.extend(each(receiver));
        }
        if merged.style != Style::FixedFilter {
            flowspecs.clear();
        }
        Some((merged, flowspecs))
    }
}

impl ReceiverRequest {
    /// Requests of several applications go together if each has its own senders, in style FF.
    fn goes_with(&self, other: &Self) -> bool {
        let is_fixed = |receiver: &Self| receiver.style == Style::FixedFilter;
        is_fixed(self) && is_fixed(other) && !self.senders.iter().any(|sender| other.senders.contains(sender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(style: Style, ports: &[u16], rate: f32) -> ApplicationRequest {
        let session = Session { destination: [10, 0, 0, 9].into(), protocol: 6, port: 80 };
        let senders = ports.iter().map(|port| Sender::new([10, 0, 0, 1].into(), *port)).collect();
        ApplicationRequest::Reserve(ReceiverRequest {
            session,
            style,
            senders,
            tspec: Tspec::new(rate, 3000.0),
            confirm: true,
        })
    }

    #[test]
    fn connections_to_one_port_have_one_session_and_their_own_rates() {
        let mut requests = Requests::default();
        requests.add((1, 2), receiver(Style::FixedFilter, &[1000], 1e4)).unwrap();
        requests.add((2, 2), receiver(Style::FixedFilter, &[1001], 2e4)).unwrap();
        let refused = |request, id| Requests::add(&mut Requests::default(), id, request);
        refused(receiver(Style::FixedFilter, &[1000], 1.0), (1, 1)).unwrap();
        for other in [
            receiver(Style::FixedFilter, &[1001, 1002], 1.0),
            receiver(Style::SharedExplicit, &[1002], 1.0),
            receiver(Style::WildcardFilter, &[], 1.0),
        ] {
            assert_eq!(requests.add((3, 2), other).unwrap_err().reason, RefusalReason::Conflict);
        }
        let session = Session { destination: [10, 0, 0, 9].into(), protocol: 6, port: 80 };
        let (merged, flowspecs) = requests.merged(session).unwrap();
        assert_eq!(merged.senders.len(), 2);
        let rates: Vec<f32> = flowspecs.values().map(|flowspec| flowspec.tspec().rate).collect();
        assert_eq!(rates, [1e4, 2e4]);
        let second = [Sender::new([10, 0, 0, 1].into(), 1001)];
        assert_eq!(requests.reservers(session, &second), [(2, 2)]);
        requests.remove((1, 2)).unwrap();
        assert_eq!(requests.merged(session).unwrap().0.senders, second);
        requests.remove((2, 2)).unwrap();
        assert!(requests.merged(session).is_none());
    }
}
