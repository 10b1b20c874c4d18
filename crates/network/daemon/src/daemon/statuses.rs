//! The statuses that clients request: documents of the agent's state, written in slices.

use super::{Daemon, TURN};
use crate::clients::{SLICE, StatusPart, StatusProgress};
use crate::convert::address;
use crate::requests::{ClientId, LocalRequest};
use cutline_monitor::ReservationState;
use cutline_provision::protocol::Reply;
use cutline_provision::status::{LocalStatus, ReservationStatus, SenderStatus, SessionStatus, Status};
use cutline_rsvp::engine::{InterfaceId, SessionView};
use cutline_rsvp::object::Style;
use cutline_service::OutputSender;
use cutline_sys::now;

/// The most sessions, and the most reservations of this host alone, that the monitor gets.
const MOST_MONITORED: usize = 1000;

impl Daemon {
    /// Starts to write a status to a client. It continues in [`Daemon::continue_statuses`].
    pub(super) fn begin_status(&mut self, client: ClientId) {
        let head = self.status_head();
        self.applications.clients.begin_status(client, &head);
    }

    /// Writes some more of the statuses that clients have requested and read so far.
    pub(super) fn continue_statuses(&mut self) {
        let until = now() + TURN;
        for (client, progress) in self.applications.clients.next_slices() {
            let (slice, next) = self.status_slice(progress);
            self.applications.clients.send_slice(client, &slice, next);
            if now() >= until {
                return;
            }
        }
    }

    /// Returns the status for the monitor: of the sessions and of the reservations of this host alone, the first ones.
    pub(super) fn monitored_status(&mut self) -> ReservationState {
        let mut status = self.short_status();
        let sessions = self.node.engine.sessions_after(0).take(MOST_MONITORED);
        status.sessions = sessions.map(|(number, view)| self.session_status(number, &view)).collect();
        let mut local = self.applications.requests.shaped_after(None);
        let listed = local.by_ref().take(MOST_MONITORED);
        status.local = listed.map(|(_, shaped)| self.local_status(shaped)).collect();
        let unlisted_local = local.count() as u64;
        let unlisted_sessions = self.node.engine.session_count().saturating_sub(status.sessions.len()) as u64;
        ReservationState { status, unlisted_sessions, unlisted_local }
    }

    /// Returns the beginning of a status as a line: all but the lists that may be long, which come in slices.
    fn status_head(&mut self) -> String {
        let head = self.short_status();
        let mut head = serde_json::to_value(Reply::Status { status: json(&head) }).unwrap_or_default();
        if let Some(status) = head["status"].as_object_mut() {
            status.remove("sessions");
            status.remove("local");
        }
        let status = head["status"].to_string();
        let status = status.strip_suffix('}').unwrap_or(&status);
        format!("{{\"reply\":\"status\",\"status\":{status},\"sessions\":[")
    }

    /// Returns the next slice of a status, and the start of the one after it.
    fn status_slice(&self, progress: StatusProgress) -> (String, Option<StatusProgress>) {
        let (mut slice, mut is_first) = (String::new(), progress.is_first);
        let mut add = |slice: &mut String, item: serde_json::Value| {
            if !std::mem::take(&mut is_first) {
                slice.push(',');
            }
            slice.push_str(&item.to_string());
        };
        match progress.place {
            StatusPart::Sessions(mut last) => {
                for (number, view) in self.node.engine.sessions_after(last) {
                    if slice.len() >= SLICE {
                        let place = StatusPart::Sessions(last);
                        return (slice, Some(StatusProgress { place, is_first: false }));
                    }
                    add(&mut slice, json(&self.session_status(number, &view)));
                    last = number;
                }
                slice.push_str("],\"local\":[");
                (slice, Some(StatusProgress { place: StatusPart::Local(None), is_first: true }))
            }
            StatusPart::Local(mut last) => {
                for (request, shaped) in self.applications.requests.shaped_after(last) {
                    if slice.len() >= SLICE {
                        let place = StatusPart::Local(last);
                        return (slice, Some(StatusProgress { place, is_first: false }));
                    }
                    add(&mut slice, json(&self.local_status(shaped)));
                    last = Some(request);
                }
                slice.push_str("]}}\n");
                (slice, None)
            }
        }
    }

    /// Returns the status without sessions and without reservations of this host alone.
    fn short_status(&mut self) -> Status {
        Status {
            elapsed_s: (now() - self.started).as_nanos() as f64 / 1e9,
            interfaces: self.node.interface_statuses(),
            sessions: Vec::new(),
            local: Vec::new(),
            clients: self.applications.clients.len() as u64,
            refused_clients: self.applications.clients.refused(),
            dropped_output: self.log.as_ref().map_or(0, OutputSender::dropped),
            counters: self.node.counters(),
        }
    }

    fn session_status(&self, number: u64, view: &SessionView) -> SessionStatus {
        let name = |interface: InterfaceId| self.node.name_of(interface);
        let senders = view.senders.iter().map(|sender| SenderStatus {
            source: address(&sender.sender),
            bucket: sender.tspec.traffic(),
            from_interface: sender.previous.map(|(interface, _)| name(interface)),
            from: sender.previous.map(|(_, address)| address),
            to_interfaces: sender.outgoing.iter().map(|interface| name(*interface)).collect(),
        });
        let reservations = view.reservations.iter().map(|reservation| ReservationStatus {
            interface: reservation.next.map(|(interface, _)| name(interface)),
            next: reservation.next.map(|(_, address)| address),
            style: style_name(reservation.style).to_owned(),
            senders: reservation.senders.iter().map(address).collect(),
            bucket: reservation.flowspec.tspec().traffic(),
        });
        SessionStatus {
            number,
            protocol: view.session.protocol,
            destination: (view.session.destination, view.session.port).into(),
            senders: senders.collect(),
            reservations: reservations.collect(),
        }
    }

    fn local_status(&self, shaped: &LocalRequest) -> LocalStatus {
        LocalStatus {
            flow: shaped.flow,
            bucket: shaped.bucket,
            interface: shaped.place.map(|(interface, _)| self.node.name_of(interface)),
        }
    }
}

/// A value as JSON.
fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}

const fn style_name(style: Style) -> &'static str {
    match style {
        Style::FixedFilter => "FF",
        Style::SharedExplicit => "SE",
        Style::WildcardFilter => "WF",
        Style::Other(_) => "other",
    }
}
