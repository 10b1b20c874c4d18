//! State of every kind of QoS socket: the session, its two directions, its events.

use crate::allocation::Allocator;
use crate::error::{NO_THREAD, QosError};
use crate::handler::{Handler, Handling};
use crate::mib::Mib;
use crate::options::QosOptions;
use crate::recovery::Candidate;
use crate::reservation::{ConnectionReservation, Reserver};
use crate::service_thread::{AgendaEntry, ServedConnection, keep};
use crate::signals;
use cutline_allocation::FlowHandler;
use cutline_manager::feedback::FlowReport;
use cutline_manager::scheduling::SchedulingStats;
use cutline_publish::ManagerRequest;
use cutline_quality::spec::{Conflicts, ConnectionSpecification, Measure};
use cutline_signal::mib::{LocalFeedback, TcpFigures};
use cutline_signal::monitor::Delivery;
use cutline_signal::negotiation::{Agreed, OneSidedReason};
use cutline_signal::session::{Activity, Inbound, Outbound, Participation, Session, SessionEvent};
use cutline_sys::clock::unix_time;
use cutline_sys::condition::{InterruptibleCondvar, WaitEnd};
use cutline_sys::lock;
use cutline_sys::process::generation;
use cutline_sys::{now, send_queue};
use cutline_units::{Bytes, Duration, Hint, Instant};
use rustix::fd::AsFd;
use rustix::net::sockopt::socket_send_buffer_size;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, Weak};

/// A session whose parts are locked separately, so that sending and receiving never wait for each other.
///
/// Locks are acquired in field order.
pub struct Connection {
    /// A [`Participation`], which is read for each message.
    participation: AtomicU64,
    session: Mutex<Session>,
    outbound: Mutex<Outbound>,
    inbound: Mutex<Inbound>,
    events: Mutex<VecDeque<SessionEvent>>,
    /// Reason why the first round of the negotiation has ended without an agreement.
    disagreement: OnceLock<Disagreement>,
    handling: Handling,
    /// Signalled when an event is queued.
    events_ready: InterruptibleCondvar,
    /// Number of events that a published row shows.
    changes: AtomicU64,
    feedback: Mutex<LocalFeedback>,
    /// Control messages that wait for their place in a stream.
    control: Mutex<VecDeque<Vec<u8>>>,
    /// Its entry in the agenda of the service thread, once it has one.
    agenda_entry: OnceLock<AgendaEntry>,
    /// Fork generation of the creating process.
    generation: u32,
    /// Time at which the connection was made, since 1970.
    opened: Duration,
    /// True if the connection is not published.
    is_private: bool,
    /// First specification of the application; `None` unless managers of the host may weaken limits.
    managed: Option<Box<ConnectionSpecification>>,
    /// True while data wait for the application, as far as the service thread has seen.
    is_unread: AtomicBool,
    /// Request to the network.
    pub reserver: Option<Reserver>,
    /// Share of the host.
    pub allocator: Option<Allocator>,
}

/// Reason why the ends have no agreement.
enum Disagreement {
    /// The specifications conflict ([`SessionEvent::Refused`]).
    Refused { send: Option<Conflicts>, receive: Option<Conflicts> },
    /// The peer takes no part.
    OneSided(OneSidedReason),
}

impl Disagreement {
    /// Returns the disagreement that an event reports.
    fn of(event: &SessionEvent) -> Option<Self> {
        match event {
            SessionEvent::Refused { send, receive } => {
                Some(Self::Refused { send: send.clone(), receive: receive.clone() })
            }
            SessionEvent::OneSided(reason) => Some(Self::OneSided(*reason)),
            _ => None,
        }
    }
}

/// The most control messages that wait; of more, the oldest are forgotten. Reports have totals, so a lost one does no harm.
const MOST_CONTROL: usize = 16;

/// The most events that wait to be read; of more, the oldest are forgotten.
const MOST_EVENTS: usize = 256;

const JOINED: u64 = 1 << 32;
const JOINING: u64 = 1 << 33;

/// The participation as a number, which is read without a lock.
fn pack(participation: Participation) -> u64 {
    match participation {
        Participation::Joining => JOINING,
        Participation::Joined(token) => JOINED | u64::from(token),
        Participation::Alone => 0,
    }
}

impl Connection {
    pub fn new(
        session: Session,
        (outbound, inbound): (Outbound, Inbound),
        (reserver, allocator): (Option<Reserver>, Option<Allocator>),
        options: &QosOptions,
    ) -> Self {
        Self {
            participation: AtomicU64::new(pack(session.participation())),
            session: Mutex::new(session),
            outbound: Mutex::new(outbound),
            inbound: Mutex::new(inbound),
            events: Mutex::default(),
            disagreement: OnceLock::new(),
            handling: Handling::default(),
            events_ready: InterruptibleCondvar::new(),
            changes: AtomicU64::new(0),
            feedback: Mutex::default(),
            control: Mutex::default(),
            agenda_entry: OnceLock::new(),
            generation: generation(),
            opened: unix_time(),
            is_private: options.is_private,
            managed: options.is_managed.then(|| Box::new(options.specification.clone())),
            is_unread: AtomicBool::new(false),
            reserver,
            allocator,
        }
    }

    /// Returns whether this process is a copy by fork of the one that has made the connection. It has none of
    /// the threads that serve it, and a lock may have been held by one of them forever.
    pub fn is_inherited(&self) -> bool {
        self.generation != generation()
    }

    /// Makes this process a copy by fork of the one that has made the connection.
    #[cfg(test)]
    pub const fn inherit(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Checks that a call of the application may use the connection.
    ///
    /// # Errors
    /// [`QosError::Inherited`] in a copy of the process.
    pub fn check_process(&self) -> Result<(), QosError> {
        if self.is_inherited() { Err(QosError::Inherited) } else { Ok(()) }
    }

    /// Returns the time at which the connection was made, since 1970.
    pub const fn opened(&self) -> Duration {
        self.opened
    }

    /// Returns whether managers of the host may weaken limits.
    pub const fn is_managed(&self) -> bool {
        self.managed.is_some()
    }

    /// Returns this end's specification after a request of a manager; `None` if the request is not allowed, or changes nothing.
    pub fn managed_specification(&self, request: &ManagerRequest) -> Option<ConnectionSpecification> {
        let original = self.managed.as_deref()?;
        let present = lock(&self.session).specification();
        let wanted = match request {
            ManagerRequest::Renegotiate { .. } => original.clone(),
            ManagerRequest::Limit { receive, measure, worst, .. } => {
                let measure = Measure::ALL.into_iter().find(|known| known.name() == measure)?;
                let mut wanted = present.clone();
                let direction = if *receive { &mut wanted.receive } else { &mut wanted.send };
                *direction = direction.with_weaker_limit(measure, *worst).ok()?;
                wanted
            }
        };
        (wanted != present).then_some(wanted)
    }

    /// Returns counters of changes in the MIB.
    pub fn activity(&self) -> Activity {
        lock(&self.session).activity(&self.outbound(), &self.inbound())
    }

    /// Returns the number of events that a published row shows: all but those of a hint or a rate that adapts.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Returns whether the connection is published to the monitor of this host.
    pub const fn is_published(&self) -> bool {
        !self.is_private
    }

    pub fn participation(&self) -> Participation {
        // A thread that sees the end of the first round also sees its disagreement.
        match self.participation.load(Ordering::Acquire) {
            JOINING => Participation::Joining,
            packed if packed & JOINED != 0 => Participation::Joined(packed as u32),
            _ => Participation::Alone,
        }
    }

    pub fn outbound(&self) -> MutexGuard<'_, Outbound> {
        lock(&self.outbound)
    }

    pub fn inbound(&self) -> MutexGuard<'_, Inbound> {
        lock(&self.inbound)
    }

    /// Registers the connection with the thread that serves connections, unless it is registered.
    pub fn keep(&self, service: Weak<dyn ServedConnection>) -> Result<(), QosError> {
        if self.agenda_entry.get().is_some() {
            return Ok(());
        }
        let agenda_entry = keep(service, now()).map_err(QosError::system(NO_THREAD))?;
        // There was none yet.
        let _none = self.agenda_entry.set(agenda_entry);
        Ok(())
    }

    /// Wakes the connection no later than `due`.
    pub fn hasten(&self, due: Instant) {
        if let Some(agenda_entry) = self.agenda_entry.get().filter(|_| due < Instant::FAR_FUTURE) {
            agenda_entry.hasten(due);
        }
    }

    /// Notes the time since which data have waited for the application, which does not read; `None` without data: the waiting bytes
    /// were a control message.
    pub fn note_unread(&self, since: Option<Instant>) {
        match since {
            Some(since) if !self.is_unread.swap(true, Ordering::Relaxed) => self.inbound().on_unread(since),
            Some(_) => {}
            None => self.note_read(),
        }
    }

    /// Returns whether data were noted that wait for the application.
    pub fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// Notes that the application has read everything.
    pub fn note_read(&self) {
        if self.is_unread() && self.is_unread.swap(false, Ordering::Relaxed) {
            self.inbound().on_read(now());
        }
    }

    /// Queues a control message for a stream.
    pub fn queue(&self, message: &[u8]) {
        let mut control = lock(&self.control);
        if control.len() == MOST_CONTROL {
            control.pop_front();
        }
        control.push_back(message.to_vec());
    }

    /// Continues with another session, over a connection that was made again after so long.
    /// Its socket may have another address now.
    pub fn replace(&self, candidate: Candidate, after: Duration, local: Option<SocketAddr>) {
        let Candidate { session, out, inbound, events } = candidate;
        let agreed = events.iter().rev().find_map(|event| match event {
            SessionEvent::Agreed(agreed) => Some(agreed.clone()),
            _ => None,
        });
        if let Some(local) = local {
            if let Some(reserver) = &self.reserver {
                reserver.moved(local);
            }
            if let Some(allocator) = &self.allocator {
                allocator.moved(local);
            }
        }
        let mut current = lock(&self.session);
        let limit = self.outbound().limit();
        {
            let (mut old_out, mut old_inbound) = (self.outbound(), self.inbound());
            self.participation.store(pack(session.participation()), Ordering::Relaxed);
            (*current, *old_out, *old_inbound) = (session, out, inbound);
            if let Some(limit) = limit {
                current.allocate(now(), limit, &mut old_out);
            }
            lock(&self.control).clear();
        }
        self.feed_back(|feedback| {
            feedback.reconnections += 1;
            feedback.reconnected = Some(now());
        });
        self.tell(events.into_iter().chain([SessionEvent::Recovered { after, is_new: true }]));
        drop(current);
        self.reserve(agreed.as_deref());
        self.allocate_again();
    }

    /// Requests a reservation for the agreement from the network.
    fn reserve(&self, agreed: Option<&Agreed>) {
        if let (Some(reserver), Some(agreed)) = (&self.reserver, agreed) {
            // The agreement can be translated: the ends have done so with it before.
            let _translated = reserver.on_agreed(&agreed.send.effective, &agreed.receive.effective);
        }
    }

    /// Queues an event for the application.
    pub fn tell(&self, new: impl IntoIterator<Item = SessionEvent>) {
        let mut events = lock(&self.events);
        for event in new {
            if events.len() == MOST_EVENTS {
                events.pop_front();
            }
            // The hint and the rate of an adapting end change often, and wait for the next row.
            if !matches!(event, SessionEvent::Hint(_) | SessionEvent::Rate(_)) {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            self.handling.add(&event);
            events.push_back(event);
            self.events_ready.notify_all();
        }
    }

    /// Takes the control messages that wait.
    pub fn take_control(&self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut lock(&self.control))
    }

    /// Notes feedback of the layers below.
    pub fn feed_back(&self, note: impl FnOnce(&mut LocalFeedback)) {
        note(&mut lock(&self.feedback));
    }

    /// Calls the session, and then passes on its messages, events and marks. Returns when the session
    /// is due again.
    pub fn with_session(
        &self,
        act: impl FnOnce(&mut Session, &mut Outbound, &mut Inbound),
        mut send: impl FnMut(&[u8]),
        mut mark: impl FnMut(Hint),
    ) -> Instant {
        let mut session = lock(&self.session);
        let due = {
            let (mut out, mut inbound) = (self.outbound(), self.inbound());
            act(&mut session, &mut out, &mut inbound);
            session.deadline(&out, &inbound)
        };
        let events: Vec<_> = std::iter::from_fn(|| session.event()).collect();
        if self.participation() == Participation::Joining
            && let Some(disagreement) = events.iter().find_map(Disagreement::of)
        {
            let _only_the_first_counts = self.disagreement.set(disagreement);
        }
        self.participation.store(pack(session.participation()), Ordering::Release);
        while let Some(message) = session.transmit() {
            send(&message);
        }
        let (mut agreed, mut is_other) = (None, false);
        self.tell(events.into_iter().inspect(|event| match event {
            SessionEvent::Hint(hint) => mark(*hint),
            SessionEvent::Agreed(now) => {
                agreed = self.reserver.is_some().then(|| now.clone());
                is_other = true;
            }
            SessionEvent::OneSided(_) => is_other = true,
            _ => {}
        }));
        drop(session);
        self.reserve(agreed.as_deref());
        if is_other {
            self.allocate_again();
        }
        due
    }

    /// Requests a share from the resource manager of the host, for a connection that the service thread serves from now on.
    ///
    /// # Errors
    /// When a real-time connection has no highest rate, or the thread cannot be started.
    pub fn begin_allocation(&self, handler: Weak<dyn FlowHandler>) -> Result<(), QosError> {
        let Some(allocator) = &self.allocator else { return Ok(()) };
        allocator.begin(handler);
        self.allocate()
    }

    fn allocate(&self) -> Result<(), QosError> {
        let Some(allocator) = &self.allocator else { return Ok(()) };
        let sending = lock(&self.session).sending().clone();
        allocator.ask(&sending, self.participation())
    }

    /// Returns the report to the resource manager about the last interval. `None` without a share, and if the interval was
    /// reported before.
    pub fn flow_report(&self, socket: impl AsFd) -> Option<FlowReport> {
        let waiting = Bytes::new(send_queue(socket).unwrap_or_default());
        self.allocator.as_ref()?.report(self, waiting)
    }

    /// Returns the counters of messages and missed deadlines; `None` for a stream, and without a share.
    pub fn scheduling(&self) -> Option<SchedulingStats> {
        Some(self.allocator.as_ref()?.gate()?.stats())
    }

    /// Returns the number of messages that have left after their deadlines.
    pub fn missed_deadlines(&self) -> u64 {
        self.scheduling().map_or(0, |stats| stats.missed)
    }

    /// Requests a share for the specification that holds from now on.
    fn allocate_again(&self) {
        if let Err(error) = self.allocate() {
            self.tell([SessionEvent::Unallocated(error.to_string())]);
        }
    }

    /// Returns the traffic that the peer has reported of the last interval; `None` before the first report.
    pub fn delivered(&self) -> Option<Delivery> {
        lock(&self.session).delivered().copied()
    }

    /// Sets the handler of events, which is called first with those that were not taken.
    pub fn set_handler(&self, service: Weak<dyn ServedConnection>, handler: Handler) {
        // A copy by fork has no thread that would call it.
        if self.is_inherited() {
            return;
        }
        // An earlier one may be running, and may need the events.
        self.handling.remove();
        let events = lock(&self.events);
        self.handling.set(service, handler, events.iter().cloned());
    }

    /// Removes the handler of events.
    pub fn remove_handler(&self) {
        // In a copy by fork, a thread that the copy does not have may be in the handler forever.
        if !self.is_inherited() {
            self.handling.remove();
        }
    }

    /// Calls the handler soon because a message waits that the descriptor does not report.
    pub fn note_pending(&self) {
        self.handling.note_pending();
    }

    /// Calls the handler with the events that it has not seen.
    pub fn call_handler(&self) {
        self.handling.call();
    }

    /// Returns whether the address of the peer has not answered.
    pub fn was_silent(&self) -> bool {
        lock(&self.events)
            .iter()
            .any(|event| matches!(event, SessionEvent::OneSided(OneSidedReason::NoAnswer)))
    }

    /// The next event that the application has not taken.
    pub fn event(&self) -> Option<SessionEvent> {
        if self.is_inherited() {
            return None;
        }
        lock(&self.events).pop_front()
    }

    /// The next event, for which it waits at most so long.
    pub fn wait_for_event(&self, time: Duration) -> Option<SessionEvent> {
        // Without signals it does not fail.
        self.event_until(now().saturating_add(time), false).unwrap_or_default()
    }

    /// As [`Connection::wait_for_event`].
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when the call returns for signals.
    pub fn next_event(&self, time: Duration) -> io::Result<Option<SessionEvent>> {
        let until = now().saturating_add(time);
        self.event_until(signals::keep_until(Some(until)).unwrap_or(until), true)
    }

    /// Waits for an event until a time, or until a signal comes if that ends the call.
    fn event_until(&self, until: Instant, ends_for_signals: bool) -> io::Result<Option<SessionEvent>> {
        if self.is_inherited() {
            return Ok(None);
        }
        let mut events = lock(&self.events);
        loop {
            let left = until.saturating_since(now());
            if let Some(event) = events.pop_front() {
                return Ok(Some(event));
            }
            if left.is_zero() {
                return Ok(None);
            }
            let longest = if ends_for_signals { signals::longest_look(left) } else { left };
            let end;
            (events, end) = self.events_ready.wait(&self.events, events, longest);
            match end {
                WaitEnd::Interrupted if ends_for_signals => signals::on_signal()?,
                WaitEnd::TimedOut if ends_for_signals && events.is_empty() && now() < until => {
                    signals::look()?;
                }
                WaitEnd::Interrupted | WaitEnd::TimedOut | WaitEnd::Notified => {}
            }
        }
    }

    /// Returns the network's answer, if a reservation was requested; `None` before there is one.
    pub fn settled(&self) -> Option<Result<(), QosError>> {
        match self.reserver.as_ref().map_or(Some(Ok(())), Reserver::settled) {
            Some(Ok(())) => {}
            unsettled => return unsettled,
        }
        let is_limited = self.outbound().limit().is_some();
        self.allocator.as_ref().map_or(Some(Ok(())), |allocator| allocator.settled(is_limited))
    }

    /// Returns the state of the reservation, if one was requested.
    pub fn reservation(&self) -> Option<ConnectionReservation> {
        self.reserver.as_ref().map(Reserver::status)
    }

    /// Returns the state of the connection over this socket.
    pub fn mib(
        &self,
        socket: impl AsFd,
        hint: impl FnOnce() -> Option<Hint>,
        tcp: Option<TcpFigures>,
    ) -> Mib {
        let (reservation, scheduling) = (self.reservation(), self.scheduling());
        let session = lock(&self.session);
        let feedback = LocalFeedback {
            send_queue: send_queue(&socket).ok().map(Bytes::new),
            send_buffer: socket_send_buffer_size(&socket).ok().map(|bytes| Bytes::new(bytes as u64)),
            ..*lock(&self.feedback)
        };
        let mut session = session.mib(now(), (&self.outbound(), &self.inbound()), (feedback, tcp));
        // A session knows only a hint that adapts.
        session.hint = session.hint.or_else(hint);
        Mib { session, reservation, scheduling }
    }

    /// Returns the outcome of the first round; `None` before it is known. `demands_peer` makes an error of an
    /// end that takes no part.
    pub fn outcome(&self, demands_peer: bool) -> Option<Result<(), QosError>> {
        match self.disagreement.get() {
            Some(Disagreement::Refused { send, receive }) => {
                Some(Err(QosError::Refused { send: send.clone(), receive: receive.clone() }))
            }
            Some(Disagreement::OneSided(reason)) if demands_peer => Some(Err(QosError::NoPeer(*reason))),
            Some(Disagreement::OneSided(_)) => Some(Ok(())),
            None => (self.participation() != Participation::Joining).then_some(Ok(())),
        }
    }
}
