//! The protocol: soft state and its processing rules (RFC 2205, RFC 2209), with refresh reduction (RFC 2961).
//!
//! The owner of an [`Engine`] gives it messages ([`Engine::receive`]), calls of applications ([`Engine::send_path`],
//! [`Engine::reserve`], ...), routes ([`Engine::set_route`]) and the time when [`Engine::deadline`] is due ([`Engine::handle_deadline`]).
//! After each call it takes outputs ([`Engine::poll`]) until there are none.
//!
//! ```text
//!                 routes    applications
//!                    \        /
//! messages, time -> Engine::receive, ... -> Engine::poll -> messages, traffic control, events, questions to routing
//! ```
//!
//! # Decisions where the RFCs leave a choice
//!
//! - For a session with one destination, path state is found without regard to the previous hop, which may change (RFC 2205 section
//!   3.1.3). Such a change sends the reservation to the new hop at once.
//! - A blockade's flowspec is greater than a reservation's if it covers it and is not the same ([`Flowspec::exceeds`](crate::intserv::Flowspec::exceeds)). Word by word, as in the example of
//!   RFC 2205 section 3.5, no request would ever be greater than one with the same packet size.
//! - A reservation that no sender routes to any longer ends at once. An application's request stays, and is reserved again when
//!   the path comes back.
//! - A node that answers a reservation with "no path" has probably restarted. It gets the reservation again as soon as its
//!   Path message arrives, which does not wait for a refresh.
//! - Path state of groups is refreshed by Path messages, not by summaries; summaries of others are understood.
//!
//! # Bounds
//!
//! Sessions, senders and reservations of a session, neighbours, and the state of a neighbour and of an interface are limited
//! ([`EngineParams`], `budgets.rs`). New state beyond a limit replaces older unconfirmed state, or is refused, and is counted.
//! Everything else that is remembered belongs to one of these.

mod budgets;
mod control;
mod errors;
mod keys;
mod neighbours;
mod origin;
mod outputs;
mod params;
mod paths;
mod receive;
mod reservations;
mod state;
mod stats;
mod timers;
mod upstream;
mod view;

pub use outputs::{
    ArrivedMessage, Control, Datagram, EngineOutput, Police, ReservedFlow, Route, RouteKey, RoutedFlow,
    RsvpEvent,
};
pub use params::{EngineParams, InterfaceConfig, InterfaceId};
pub use paths::LocalSender;
pub use state::Reservation;
pub use stats::Stats;
pub use view::{ReservationView, SenderView, SessionView};

use crate::admission::{ReservationHandle, Share};
use crate::integrity::{IntegrityConfig, ReplayGuard};
use crate::intserv::{LinkCharacter, TspecError};
use crate::message::Message;
use crate::object::Session;
use budgets::{Budgets, Newcomer};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Duration, Instant, RandomStream};
use keys::{NeighbourKey, SessionId};
use neighbours::{Neighbour, Unacknowledged};
use rand_core::Rng as _;
use state::SessionState;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use timers::{Timer, Timers};

/// Initial values of an engine.
#[derive(Clone, Debug)]
pub struct EngineStart {
    /// Parameters of the engine.
    pub params: EngineParams,
    /// A secret that cannot be guessed, from which challenges follow.
    pub secret: [u8; 32],
    /// A number above those of all messages that were signed with the same keys before, such as the time since 1900 in NTP's
    /// format (RFC 2747 section 3).
    pub sequence: u64,
    /// For jitter, and for the number by which neighbours notice a restart.
    pub random: RandomStream,
}

/// Reason why an application's call is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// A token bucket with an impossible value.
    #[error(transparent)]
    Tspec(#[from] TspecError),
    /// An interface that does not exist.
    #[error("interface = {0}: allowed is the number of an interface that was added")]
    Interface(u32),
    /// The list of senders does not go with the style.
    #[error("senders = {found}: allowed is {allowed}")]
    Senders {
        /// The number found.
        found: usize,
        /// The allowed numbers.
        allowed: &'static str,
    },
    /// The style is none that can be reserved.
    #[error("style = {0:#x}: allowed is WF, FF or SE")]
    Style(u32),
    /// Addresses of both versions of IP, or ports in a session without them.
    #[error(
        "sender = {0}: allowed is an address of the same version of IP as the session's, without a port if that has none"
    )]
    Sender(IpAddr),
    /// As many sessions or senders as are allowed.
    #[error("there are {most} {what} already: allowed are at most {most}")]
    Full {
        /// The kind of state of which there is too much.
        what: &'static str,
        /// The limit.
        most: u32,
    },
}

/// An interface at work.
#[derive(Debug)]
struct Interface {
    config: InterfaceConfig,
    share: Option<Share>,
    guard: Option<ReplayGuard>,
    heard_udp: bool,
}

impl Interface {
    /// Returns the AdSpec's view of the link.
    fn character(&self) -> LinkCharacter {
        let plain = || LinkCharacter {
            bandwidth: (self.config.rate.as_bps() / 8) as f32,
            latency_us: u32::MAX,
            mtu: self.config.mtu,
        };
        self.share.as_ref().map_or_else(plain, Share::character)
    }
}

/// State of a route.
#[derive(Debug, Default)]
struct RouteEntry {
    route: Option<Route>,
    sessions: BTreeSet<SessionId>,
    /// Confirmations that wait for it.
    waiting: Vec<WaitingConfirmation>,
}

/// A confirmation that is passed on as soon as the route is known.
#[derive(Debug)]
struct WaitingConfirmation {
    message: Message,
    /// True if it was authenticated, or its session has a path here.
    is_proven: bool,
}

/// A node's RSVP.
#[derive(Debug)]
pub struct Engine {
    params: EngineParams,
    secret: [u8; 32],
    random: RandomStream,
    interfaces: BTreeMap<InterfaceId, Interface>,
    sessions: BTreeMap<SessionId, Box<SessionState>>,
    by_session: BTreeMap<Session, SessionId>,
    by_handle: BTreeMap<ReservationHandle, SessionId>,
    routes: BTreeMap<RouteKey, RouteEntry>,
    neighbours: BTreeMap<NeighbourKey, Neighbour>,
    unacknowledged: BTreeMap<u32, Unacknowledged>,
    budgets: Budgets,
    timers: Timers,
    outputs: VecDeque<EngineOutput>,
    stats: Stats,
    next_session: SessionId,
    next_handle: u64,
    next_id: u32,
    epoch: u32,
    sequence: u64,
}

impl Engine {
    /// Creates an engine without interfaces.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(start: EngineStart) -> Result<Self, ParameterError> {
        let EngineStart { params, secret, sequence, mut random } = start;
        params.validate()?;
        let epoch = random.next_u32() & crate::object::EPOCH;
        Ok(Self {
            params,
            secret,
            random,
            interfaces: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_session: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            routes: BTreeMap::new(),
            neighbours: BTreeMap::new(),
            unacknowledged: BTreeMap::new(),
            budgets: Budgets::default(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            stats: Stats::default(),
            next_session: 1,
            next_handle: 1,
            next_id: 1,
            epoch,
            sequence,
        })
    }

    /// Adds an interface.
    ///
    /// # Errors
    /// When a parameter of its share is not allowed.
    pub fn add_interface(&mut self, config: InterfaceConfig) -> Result<InterfaceId, ParameterError> {
        if let Some(share) = &config.share {
            share.validate()?;
        }
        let id = InterfaceId(self.interfaces.len() as u32 + 1);
        let share = config.share.as_ref().map(|share| Share::new(share, config.rate, config.mtu));
        let guard = config.integrity.clone().map(|integrity| ReplayGuard::new(integrity, self.secret));
        self.interfaces.insert(id, Interface { config, share, guard, heard_udp: false });
        Ok(id)
    }

    /// Replaces the keys of an interface. Nothing happens if its messages are not authenticated.
    pub fn set_keys(&mut self, interface: InterfaceId, integrity: IntegrityConfig) {
        if let Some(guard) =
            self.interfaces.get_mut(&interface).and_then(|interface| interface.guard.as_mut())
        {
            guard.set_keys(integrity.keys);
        }
    }

    /// Returns the reservable share of an interface; `None` if this node does not control the traffic there.
    pub fn share(&self, interface: InterfaceId) -> Option<&Share> {
        self.interfaces.get(&interface)?.share.as_ref()
    }

    /// Returns the counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the numbers of sessions, senders, reservations, neighbours and deadlines.
    pub fn sizes(&self) -> Sizes {
        let sessions = self.sessions.values();
        Sizes {
            sessions: self.sessions.len(),
            paths: sessions.clone().map(|session| session.paths.len()).sum(),
            reservations: sessions.clone().map(|session| session.reservations.len()).sum(),
            controls: sessions.map(|session| session.controls.len()).sum(),
            neighbours: self.neighbours.len(),
            unacknowledged: self.unacknowledged.len(),
            deadlines: self.timers.len(),
            routes: self.routes.len(),
            accounted: self.budgets.states(),
        }
    }

    /// Returns the time at which [`Engine::handle_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    pub fn deadline(&self) -> Instant {
        self.timers.deadline()
    }

    /// Takes the next output.
    pub fn poll(&mut self) -> Option<EngineOutput> {
        self.outputs.pop_front()
    }

    /// Handles a due deadline.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::PathRefresh(id, key) => {
                    self.in_session(id, |this, s| this.path_refresh_due(now, s, key));
                }
                Timer::PathCleanup(id, key) => {
                    self.in_session(id, |this, s| this.path_cleanup_due(now, s, key));
                }
                Timer::ResvRefresh(id, key) => {
                    self.in_session(id, |this, s| this.resv_refresh_due(now, s, key));
                }
                Timer::ResvCleanup(id) => self.in_session(id, |this, s| this.resv_cleanup_due(now, s)),
                Timer::Retransmit(id) => self.retransmit_due(now, id),
                Timer::Acknowledge(neighbour) => self.acknowledge_due(now, neighbour),
                Timer::Summary(neighbour) => self.summary_due(now, neighbour),
            }
        }
    }

    /// Runs a function on a session, which is removed afterwards if nothing is left in it.
    fn in_session(&mut self, id: SessionId, run: impl FnOnce(&mut Self, &mut SessionState)) {
        let Some(mut s) = self.sessions.remove(&id) else { return };
        run(self, &mut s);
        if std::mem::take(&mut s.is_to_account) {
            self.account(&mut s);
        }
        if s.is_empty() {
            self.timers.cancel(&mut s.cleanup);
            self.by_session.remove(&s.session);
            for (_, mut upstream) in std::mem::take(&mut s.upstream) {
                self.timers.cancel(&mut upstream.refresh);
                self.forget(&mut upstream.sent);
            }
        } else {
            self.sessions.insert(id, s);
        }
    }

    /// Returns the number of a session of an application here, which is created if it does not exist; `None` if there are too many.
    fn local_session_id(&mut self, now: Instant, session: Session) -> Option<SessionId> {
        let is_there = self.by_session.contains_key(&session);
        if !is_there && !self.make_room_for_session(now, Newcomer::Local) {
            self.stats.full += 1;
            return None;
        }
        Some(self.session_id(session))
    }

    /// Returns the number of a session, which is created if it does not exist. There must be room.
    fn session_id(&mut self, session: Session) -> SessionId {
        if let Some(id) = self.by_session.get(&session) {
            return *id;
        }
        let id = self.next_session;
        self.next_session += 1;
        self.by_session.insert(session, id);
        self.sessions.insert(id, Box::new(SessionState::new(id, session)));
        id
    }

    fn owns(&self, address: IpAddr) -> bool {
        self.interfaces.values().any(|interface| interface.config.address == address)
    }

    fn address_of(&self, interface: InterfaceId) -> Option<IpAddr> {
        self.interfaces.get(&interface).map(|interface| interface.config.address)
    }

    fn event(&mut self, event: RsvpEvent) {
        self.outputs.push_back(EngineOutput::Event(event));
    }

    /// RFC 2205 section 3.7: refreshes come at random times between half of the period and one and a half of it.
    fn jittered(&mut self) -> Duration {
        self.params.refresh.mul_f64(0.5 + self.random.uniform())
    }
}

/// Amounts of state in an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Sessions.
    pub sessions: usize,
    /// Senders.
    pub paths: usize,
    /// Reservations of next hops.
    pub reservations: usize,
    /// Reservations on interfaces, and those towards applications here.
    pub controls: usize,
    /// Neighbours.
    pub neighbours: usize,
    /// Messages that are not acknowledged.
    pub unacknowledged: usize,
    /// Deadlines.
    pub deadlines: usize,
    /// Routes that are watched.
    pub routes: usize,
    /// Paths and reservations of neighbours, as their budgets count them.
    pub accounted: usize,
}
