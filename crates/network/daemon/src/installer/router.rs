//! The reserved class of a userspace router (`cutline router`), by its local socket.
//!
//! Reservations belong to the connection, so they end with this process, however it ends, and with the router. When the router ends,
//! reservations are kept here and made again as soon as a router is there. New reservations are refused until then:
//! no host could keep them.
//!
//! ```text
//!            the router ends, or does not answer
//! connected ────────────────────────────────────► away
//!    ▲      connects; reserves everything again     │
//!    └──────────────────────────────────────────────┘
//! ```
//!
//! Calls wait for the router: 50 ms for the first of several, about 1 ms for each of the others, and [`PATIENCE`] at most. A router that
//! exceeds it is not asked again for [`SILENT_PAUSE`], so that the agent keeps serving others.

use super::{InstallError, Installer, ReservedCount};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_router_service::{ReservationClient, RouterClientError, RouterClientErrorKind, RouterDirection};
use cutline_rsvp::admission::ReservationHandle;
use cutline_rsvp::engine::{Control, InterfaceId, ReservedFlow};
use cutline_sys::now;
use cutline_sys::reactor::{self, PollFd, PollFlags};
use cutline_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd as _;
use std::path::PathBuf;

/// The longest time that a call may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause before connecting again: at first, at most, and after a router that accepts but does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const SILENT_PAUSE: Duration = Duration::from_secs(30);
/// Interval of checks whether the router has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Time that the agent may spend at once on reserving again.
const TURN: Duration = Duration::from_millis(100);
/// Time for which a refusal is not final after a connection was made: the router may still have the filters of this agent's predecessor.
const SETTLING: Duration = Duration::from_secs(1);

/// The reserved class of a router, in both of its directions.
#[derive(Debug)]
pub struct RouterClass {
    path: PathBuf,
    /// Direction of the router by which the packets of an interface leave.
    directions: BTreeMap<InterfaceId, RouterDirection>,
    connection: Connection,
    /// Reservations that the router should have.
    desired: BTreeMap<ReservationHandle, DesiredReservation>,
    /// Reservations that the router does not have yet.
    pending: BTreeSet<ReservationHandle>,
}

#[derive(Debug)]
enum Connection {
    Up { client: ReservationClient, since: Instant, next_look: Instant },
    Away { why: String, next: Instant, pause: Duration },
}

/// A reservation. It has no filter only while another one is being sent.
#[derive(Clone, Debug)]
struct DesiredReservation {
    direction: RouterDirection,
    bucket: TrafficSpec,
    filters: Vec<FlowSelector>,
}

impl RouterClass {
    /// Connects to the router whose socket is at `path`. If none is there, it is looked for from time to time
    /// ([`Installer::problem`] reports it).
    pub fn open(path: PathBuf) -> Self {
        let away = Connection::Away { why: String::new(), next: Instant::ZERO, pause: FIRST_PAUSE };
        let mut this = Self {
            path,
            directions: BTreeMap::new(),
            connection: away,
            desired: BTreeMap::new(),
            pending: BTreeSet::new(),
        };
        this.connect(now());
        this
    }

    /// Installs reservations of an interface whose packets leave the router in a direction.
    pub fn add_interface(&mut self, id: InterfaceId, direction: RouterDirection) {
        self.directions.insert(id, direction);
    }

    fn connect(&mut self, at: Instant) {
        let Connection::Away { pause, .. } = self.connection else { return };
        // An answer shows that a router serves the socket.
        let answered = ReservationClient::connect(&self.path, PATIENCE).and_then(|mut client| {
            match client.interfaces() {
                Ok(_) => Ok(client),
                Err(error) => Err(error),
            }
        });
        match answered {
            Ok(client) => {
                self.connection = Connection::Up { client, since: at, next_look: at + LOOK };
                self.pending = self.desired.keys().copied().collect();
            }
            Err(error) => self.lose(&error, (pause + pause).min(LONGEST_PAUSE)),
        }
    }

    /// Closes the connection.
    fn lose(&mut self, error: &RouterClientError, pause: Duration) {
        let is_silent = matches!(&error.kind, RouterClientErrorKind::Io(io)
            if matches!(io.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        let next = now() + if is_silent { SILENT_PAUSE } else { pause };
        self.connection = Connection::Away { why: error.to_string(), next, pause };
    }

    /// Returns the router's answer to a request. `None` if it is not, or has gone.
    fn ask(
        &mut self,
        request: impl FnOnce(&mut ReservationClient) -> Result<(), RouterClientError>,
    ) -> Option<Result<(), RouterClientError>> {
        let Connection::Up { client, .. } = &mut self.connection else { return None };
        match request(client) {
            Err(error) if !error.is_refusal() => {
                self.lose(&error, FIRST_PAUSE);
                None
            }
            answered => Some(answered),
        }
    }

    /// Returns whether a refusal may have been the last one.
    fn is_settling(&self, at: Instant) -> bool {
        matches!(self.connection, Connection::Up { since, .. } if at < since + SETTLING)
    }

    fn add(&mut self, flow: &ReservedFlow) -> Result<(), InstallError> {
        let direction = *self.directions.get(&flow.interface).ok_or(InstallError::Unknown)?;
        let desired = DesiredReservation {
            direction,
            bucket: flow.tspec.traffic().installable(),
            filters: flow.selectors(),
        };
        match self.reserve(flow.handle, &desired) {
            Some(Ok(())) => {}
            Some(Err(_)) if self.is_settling(now()) => drop(self.pending.insert(flow.handle)),
            Some(Err(error)) => return Err(error.into()),
            None => return Err(InstallError::Other(self.problem().unwrap_or_default())),
        }
        self.desired.insert(flow.handle, desired);
        Ok(())
    }

    fn reserve(
        &mut self,
        handle: ReservationHandle,
        desired: &DesiredReservation,
    ) -> Option<Result<(), RouterClientError>> {
        let DesiredReservation { direction, bucket, filters } = desired;
        let outcome = self.ask(|client| client.reserve(*direction, handle.0, *bucket, filters))?;
        if outcome.is_err() {
            // A router that was busy may carry it out after all. Then it comes before this.
            self.ask(|client| client.release(*direction, handle.0))?.unwrap_or_default();
        }
        Some(outcome)
    }

    /// Changes a reservation here and in the router. If the router refuses it, the reservation ends.
    fn change(
        &mut self,
        handle: ReservationHandle,
        change: impl FnOnce(&mut DesiredReservation) -> Result<(), InstallError>,
        request: impl FnOnce(&mut ReservationClient, &DesiredReservation) -> Result<(), RouterClientError>,
    ) -> Result<(), InstallError> {
        let desired = self.desired.get_mut(&handle).ok_or(InstallError::Unknown)?;
        change(desired)?;
        let desired = desired.clone();
        if self.pending.contains(&handle) {
            return Ok(());
        }
        match self.ask(|client| request(client, &desired)) {
            Some(Err(error)) => Err(error.into()),
            // A router that has gone gets it when it is there again.
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn release(&mut self, handle: ReservationHandle) -> Result<(), InstallError> {
        // One that could not be installed is deleted, too.
        let Some(desired) = self.desired.remove(&handle) else { return Ok(()) };
        if self.pending.remove(&handle) {
            return Ok(());
        }
        match self.ask(|client| client.release(desired.direction, handle.0)) {
            Some(Err(error)) => Err(error.into()),
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// Makes the pending reservations. Returns those that the router refuses.
    fn reserve_again(&mut self) -> Vec<(ReservationHandle, InstallError)> {
        let (until, mut refused) = (now() + TURN, Vec::new());
        for handle in self.pending.clone() {
            let Some(desired) =
                self.desired.get(&handle).filter(|desired| !desired.filters.is_empty()).cloned()
            else {
                continue;
            };
            let at = now();
            if at >= until {
                break;
            }
            match self.reserve(handle, &desired) {
                Some(Ok(())) => drop(self.pending.remove(&handle)),
                Some(Err(_)) if self.is_settling(at) => {}
                Some(Err(error)) => {
                    self.pending.remove(&handle);
                    self.desired.remove(&handle);
                    refused.push((handle, error.into()));
                }
                None => break,
            }
        }
        refused
    }
}

impl Installer for RouterClass {
    fn apply(&mut self, control: &Control) -> Result<(), InstallError> {
        match control {
            Control::Add(flow) => self.add(flow),
            Control::Modify(flow) => {
                let (number, bucket) = (flow.handle.0, flow.tspec.traffic().installable());
                let store = |desired: &mut DesiredReservation| {
                    desired.bucket = bucket;
                    Ok(())
                };
                self.change(flow.handle, store, |client, desired| {
                    client.change(desired.direction, number, bucket)
                })
            }
            Control::AddFilter { handle, session, sender, .. } => {
                let filter = session.selector(Some(sender));
                let store = |desired: &mut DesiredReservation| {
                    desired.filters.push(filter);
                    Ok(())
                };
                self.change(*handle, store, |client, desired| {
                    client.add_filter(desired.direction, handle.0, filter)
                })
            }
            Control::RemoveFilter { handle, session, sender, .. } => {
                let filter = session.selector(Some(sender));
                let store = |desired: &mut DesiredReservation| {
                    let at = desired.filters.iter().position(|its| *its == filter);
                    desired.filters.swap_remove(at.ok_or(InstallError::Unknown)?);
                    Ok(())
                };
                self.change(*handle, store, |client, desired| {
                    client.remove_filter(desired.direction, handle.0, filter)
                })
            }
            Control::Delete { handle, .. } => self.release(*handle),
        }
    }

    fn counters(&mut self) -> BTreeMap<ReservationHandle, ReservedCount> {
        let mut all = Vec::new();
        let answered = self.ask(|client| {
            all = client.list()?;
            Ok(())
        });
        if !matches!(answered, Some(Ok(()))) {
            return BTreeMap::new();
        }
        let own = all.iter().filter(|reservation| reservation.own);
        own.map(|reservation| {
            let counted = ReservedCount {
                packets: reservation.conforming.packets,
                bytes: reservation.conforming.bytes,
                excess: reservation.excess.packets,
                dropped: reservation.dropped.packets,
            };
            (ReservationHandle(reservation.reservation), counted)
        })
        .collect()
    }

    fn maintain(&mut self, at: Instant) -> Vec<(ReservationHandle, InstallError)> {
        match &mut self.connection {
            Connection::Away { next, .. } if at >= *next => self.connect(at),
            Connection::Up { client, next_look, .. } if at >= *next_look => {
                *next_look = at + LOOK;
                if has_ended(client) {
                    let error =
                        RouterClientError { path: self.path.clone(), kind: RouterClientErrorKind::Closed };
                    self.lose(&error, FIRST_PAUSE);
                }
            }
            _ => {}
        }
        if self.pending.is_empty() { Vec::new() } else { self.reserve_again() }
    }

    fn problem(&self) -> Option<String> {
        match &self.connection {
            Connection::Away { why, .. } => {
                Some(format!("{why}; {} reservations wait for a router there", self.desired.len()))
            }
            Connection::Up { .. } if !self.pending.is_empty() => {
                Some(format!("{} reservations are yet to be made in the router", self.pending.len()))
            }
            Connection::Up { .. } => None,
        }
    }
}

/// The descriptor becomes readable only when the connection has ended.
fn has_ended(client: &ReservationClient) -> bool {
    let descriptor = client.as_fd();
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    reactor::wait(&mut descriptors, Duration::ZERO).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_rsvp::intserv::Tspec;
    use cutline_rsvp::object::Session;

    const SESSION: Session = Session {
        destination: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        protocol: 17,
        port: 5000,
    };

    /// A missing router refuses new reservations, and the reason names its socket.
    #[test]
    fn nothing_new_is_taken_while_the_router_is_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut class = RouterClass::open(folder.path().join("none.sock"));
        class.add_interface(InterfaceId(1), RouterDirection::Forward);
        let problem = class.problem().unwrap();
        assert!(problem.contains("none.sock") && problem.contains("0 reservations wait"), "{problem}");
        let flow = ReservedFlow {
            interface: InterfaceId(1),
            handle: ReservationHandle(1),
            session: SESSION,
            style: cutline_rsvp::object::Style::WildcardFilter,
            senders: Vec::new(),
            tspec: Tspec::new(1000.0, 1000.0),
            police: cutline_rsvp::engine::Police::default(),
        };
        let error = class.apply(&Control::Add(flow)).unwrap_err().to_string();
        assert!(error.contains("none.sock"), "{error}");
        class.apply(&Control::Delete { interface: InterfaceId(1), handle: ReservationHandle(1) }).unwrap();
        assert!(class.maintain(now()).is_empty());
    }
}
