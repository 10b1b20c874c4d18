//! A client's connection: it is answered from the snapshots, and may hold a lease of reservations.

use crate::local_socket::{LocalSession, Reception, RouterClient};
use crate::replies::{ErrorReply, ReservationDone, ReservationsEnd};
use crate::request::RouterRequest;
use crate::reservation_request::{ReservationRequest, RouterDirection};
use crate::reservations::{Lease, OrderError, ReservationHandler};
use crate::snapshots::StatsSnapshots;
use crate::statistics::ReservationStatistics;
use std::io;
use std::sync::Arc;

/// State of a client's connection.
struct ClientSession {
    snapshots: Arc<StatsSnapshots>,
    /// `None` where nothing may be reserved.
    reservations: Option<Arc<ReservationHandler>>,
    lease: Option<Lease>,
}

/// Returns the reception of clients: requests are answered from the snapshots, and with a registrar they may reserve.
pub fn reception(snapshots: Arc<StatsSnapshots>, reservations: Option<ReservationHandler>) -> Arc<Reception> {
    let reservations = reservations.map(Arc::new);
    Arc::new(move || {
        Box::new(ClientSession {
            snapshots: Arc::clone(&snapshots),
            reservations: reservations.clone(),
            lease: None,
        })
    })
}

impl LocalSession for ClientSession {
    fn answer(&mut self, request: &str, client: &mut dyn RouterClient) -> io::Result<()> {
        if request.starts_with('{') {
            self.reserve(request, client)
        } else if request.parse() == Ok(RouterRequest::Reservations) {
            self.list(client)
        } else {
            self.snapshots.reply(request, client)
        }
    }

    fn is_holding(&self) -> bool {
        self.lease.is_some()
    }
}

impl ClientSession {
    fn reserve(&mut self, line: &str, client: &mut dyn RouterClient) -> io::Result<()> {
        let Some(reservations) = &self.reservations else { return refuse(client, &FORBIDDEN) };
        let request: ReservationRequest = match line.parse() {
            Ok(request) => request,
            Err(error) => return refuse(client, &error),
        };
        if self.lease.is_none() {
            self.lease = reservations.lease();
        }
        let Some(lease) = &self.lease else {
            let most = Lease::MAX;
            return refuse(
                client,
                &format!("limit of clients with reservations reached ({most}): try again later"),
            );
        };
        let number = request.number;
        match lease.change(request) {
            Ok(()) => client.say(&ReservationDone::new(number).json()),
            Err(error @ OrderError::Silent) => {
                refuse(client, &error)?;
                // Whether it will be carried out is not known. With the connection the lease ends, and all that is in it.
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(error) => refuse(client, &error),
        }
    }

    fn list(&self, client: &mut dyn RouterClient) -> io::Result<()> {
        let owner = self.lease.as_ref().map(Lease::owner);
        let mut count = 0;
        for direction in [RouterDirection::Forward, RouterDirection::Reverse] {
            let Some(reservations) = &self.reservations else { break };
            let all = match reservations.list_all(direction) {
                Ok(all) => all,
                Err(error) => return refuse(client, &error),
            };
            count += all.len() as u64;
            for reservation in all {
                let is_own = owner == Some(reservation.id.owner);
                client.say(&ReservationStatistics::new(direction, is_own, &reservation).json())?;
            }
        }
        client.say(&ReservationsEnd::new(count).json())
    }
}

/// The refusal where nothing may be reserved.
const FORBIDDEN: &str =
    "reservations = \"none\": this router accepts none; allowed by reservations = \"allowed\" in its file";

fn refuse(client: &mut dyn RouterClient, why: &impl ToString) -> io::Result<()> {
    client.say(&ErrorReply::new(why).json())
}
