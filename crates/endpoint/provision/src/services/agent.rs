//! `local` and `rsvp`: both request reservations from this host's `cutlined`.

use super::{Access, Provisioner, ReservationService};
use crate::client::DaemonClient;
use crate::demand::Demand;
use crate::grant::{Grant, RECEIVE, SEND};
use crate::protocol::{Request, Senders};
use crate::refusal::{Refusal, RefusalReason};
use cutline_service::JsonLineError;
use std::path::PathBuf;

/// A class of this host's traffic control for a flow's sent traffic. Received traffic is outside of this host's control.
#[derive(Debug)]
pub(super) struct Local;

/// A reservation along the path, for both directions.
#[derive(Debug)]
pub(super) struct Rsvp;

impl ReservationService for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn title(&self) -> &'static str {
        "a class of this host's traffic control for what a flow sends"
    }

    fn is_reserved(&self) -> bool {
        true
    }

    fn open(&self, access: &Access) -> Box<dyn Provisioner> {
        Box::new(Agent { name: self.name(), socket: access.socket.clone(), requests: local })
    }
}

impl ReservationService for Rsvp {
    fn name(&self) -> &'static str {
        "rsvp"
    }

    fn title(&self) -> &'static str {
        "a reservation along the path, for both directions"
    }

    fn is_reserved(&self) -> bool {
        true
    }

    fn open(&self, access: &Access) -> Box<dyn Provisioner> {
        Box::new(Agent { name: self.name(), socket: access.socket.clone(), requests: rsvp })
    }
}

/// `cutlined`, and the kind of request of a service.
#[derive(Debug)]
struct Agent {
    name: &'static str,
    socket: PathBuf,
    /// The requests for a flow's traffic in both directions.
    requests: fn(&Demand) -> [Option<Request>; 2],
}

impl Provisioner for Agent {
    fn name(&self) -> &'static str {
        self.name
    }

    fn request(&self, demand: &Demand) -> Result<Grant, Refusal> {
        let failed = |error: JsonLineError| Refusal::new(RefusalReason::NoAgent(error.to_string()));
        let mut client = DaemonClient::connect(&self.socket).map_err(failed)?;
        let requests = (self.requests)(demand);
        for request in requests.iter().flatten() {
            client.send(request).map_err(failed)?;
        }
        let [send, receive] = requests.map(|request| request.is_some());
        let asked = [demand.send.filter(|_| send), demand.receive.filter(|_| receive)];
        Ok(Grant::asked(self.name, client, asked))
    }
}

fn local(demand: &Demand) -> [Option<Request>; 2] {
    let shape = |bucket| Request::Shape { id: SEND, flow: demand.flow, bucket };
    [demand.send.map(shape), None]
}

/// Announces sent traffic, and reserves for received traffic.
fn rsvp(demand: &Demand) -> [Option<Request>; 2] {
    let announce = |bucket| Request::Announce { id: SEND, flow: demand.flow, bucket };
    let received = demand.flow.reversed();
    let reserve = |bucket| Request::Reserve {
        id: RECEIVE,
        transport: received.transport,
        destination: received.destination,
        senders: Senders::Fixed { senders: vec![received.source] },
        bucket,
        confirm: true,
    };
    [demand.send.map(announce), demand.receive.map(reserve)]
}
