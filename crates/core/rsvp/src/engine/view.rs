//! Read access to an engine's state, and reservations of its node without the protocol.

use super::Engine;
use super::params::InterfaceId;
use super::state::{NextHop, SessionState};
use crate::admission::{AdmissionError, ReservationHandle, ShareParams};
use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{Sender, Session, Style};
use cutline_params::{ParameterError, Parameters as _};
use std::net::IpAddr;
use std::ops::Bound;

/// A session with its senders and reservations.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// The session.
    pub session: Session,
    /// Its senders.
    pub senders: Vec<SenderView>,
    /// Reservations of neighbours and of an application of this node.
    pub reservations: Vec<ReservationView>,
}

/// A sender.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderView {
    /// The sender.
    pub sender: Sender,
    /// Its traffic.
    pub tspec: Tspec,
    /// The interface and the neighbour that its messages come from; `None` if it is an application here.
    pub previous: Option<(InterfaceId, IpAddr)>,
    /// The interfaces that its packets leave by.
    pub outgoing: Vec<InterfaceId>,
}

/// Reservation of a next hop.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationView {
    /// The interface and the neighbour; `None` for an application here.
    pub next: Option<(InterfaceId, IpAddr)>,
    /// The style.
    pub style: Style,
    /// The senders; none in style WF.
    pub senders: Vec<Sender>,
    /// The flowspec.
    pub flowspec: Flowspec,
}

impl Engine {
    /// Returns the sessions with their state.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView> + '_ {
        self.sessions_after(0).map(|(_, view)| view)
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the sessions whose numbers are larger than this one, each with its number. So a list can be read in parts: a session that stays
    /// is in it once, whatever comes and goes between the parts.
    pub fn sessions_after(&self, number: u64) -> impl Iterator<Item = (u64, SessionView)> + '_ {
        let after = (Bound::Excluded(number), Bound::Unbounded);
        self.sessions.range(after).map(|(number, s)| (*number, view(s)))
    }

    /// Returns the announcement of a sender of a session, and the offer of its path; `None` if the sender is not known.
    pub fn path(&self, session: Session, sender: Sender) -> Option<(Tspec, Option<Adspec>)> {
        let s = self.sessions.get(self.by_session.get(&session)?)?;
        let mut paths = s.paths.iter();
        let (_, psb) = paths.find(|((other, _), _)| *other == sender)?;
        Some((psb.tspec, psb.adspec.clone()))
    }

    /// Takes this node's own reservations without the protocol from the share of an interface, so that both together never exceed it.
    ///
    /// # Errors
    /// The reason of a shortage, also where this node does not control the traffic.
    pub fn admit_local(
        &mut self,
        interface: InterfaceId,
        tspec: &Tspec,
    ) -> Result<ReservationHandle, AdmissionError> {
        let place = self.interfaces.get_mut(&interface);
        let share = place.and_then(|place| place.share.as_mut()).ok_or(AdmissionError::Bandwidth)?;
        let handle = ReservationHandle(self.next_handle);
        if let Err(refusal) = share.admit(handle, tspec) {
            self.stats.not_admitted += 1;
            return Err(refusal);
        }
        self.next_handle += 1;
        Ok(handle)
    }

    /// Returns the share that [`Engine::admit_local`] has taken to the interface.
    pub fn release_local(&mut self, interface: InterfaceId, handle: ReservationHandle) {
        if let Some(share) = self.interfaces.get_mut(&interface).and_then(|place| place.share.as_mut()) {
            share.release(handle);
        }
    }

    /// Changes how much of an interface can be reserved. Reservations stay, even if they exceed it. Nothing happens where this node does not
    /// control the traffic.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn set_share(&mut self, interface: InterfaceId, params: &ShareParams) -> Result<(), ParameterError> {
        params.validate()?;
        if let Some(place) = self.interfaces.get_mut(&interface)
            && let Some(share) = &mut place.share
        {
            share.set_limit(params, place.config.rate);
            place.config.share = Some(params.clone());
        }
        Ok(())
    }

    /// Changes the address and the MTU of an interface, such as one that was removed and is there again. Neighbours learn the address from
    /// the next messages.
    pub fn set_link(&mut self, interface: InterfaceId, address: IpAddr, mtu: u32) {
        let Some(place) = self.interfaces.get_mut(&interface) else { return };
        (place.config.address, place.config.mtu) = (address, mtu);
        if let Some(share) = &mut place.share {
            share.set_mtu(mtu);
        }
    }
}

fn view(s: &SessionState) -> SessionView {
    let senders = s.paths.iter().map(|((sender, _), psb)| SenderView {
        sender: *sender,
        tspec: psb.tspec,
        previous: psb.up_key(),
        outgoing: psb.outgoing.iter().map(|out| out.interface).collect(),
    });
    let reservations = s.reservations.iter().map(|rsb| ReservationView {
        next: match rsb.next_hop {
            NextHop::Application => None,
            NextHop::Neighbour(interface, address) => Some((interface, address)),
        },
        style: rsb.style,
        senders: rsb.filters.keys().copied().collect(),
        flowspec: rsb.flowspec,
    });
    SessionView { session: s.session, senders: senders.collect(), reservations: reservations.collect() }
}
