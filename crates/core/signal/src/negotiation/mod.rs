//! Both ends of a connection agree on its specification (QoSockets section II).
//!
//! Each end has a [`ConnectionSpecification`]. The initiator sends an *offer*, the responder an *answer* with its own
//! specification, the initiator a *confirmation*. Both ends compute their [agreement](ConnectionSpecification::agree) from
//! the two specifications, so neither has to believe the other's result; an answer whose verdict is not that result is a
//! contradiction. Later either end can begin a new *round*. While it is under way, and if it fails, the previous agreement
//! holds. A lost confirmation is made up for by whatever comes next: each message has the number of the round on which its
//! sender agreed last.
//!
//! ```text
//! initiator                          responder
//!     | offer (round 1) ------------------> |
//!     | <---------------- answer (round 1) |
//!     | confirmation ---------------------> |   both: NegotiationEvent::Agreed or ::Refused
//!     | <---------------- offer (round 2)  |   the responder requests another specification
//! ```
//!
//! Over datagrams an offer is sent again until it is answered, and an answer until it is confirmed, at intervals that double.
//! A stream loses nothing, so everything is sent once. After [`NegotiationParams::give_up`] an end continues alone
//! ([`NegotiationEvent::OneSided`]): the other one does not speak this protocol, or has disappeared. If both ends begin the same round, that of
//! the initiator is the one that counts.
//!
//! Every message but the first offer has the nonces of both ends. So a host that does not see an end's messages cannot take part, not even
//! with a false address.
//!
//! With a key, every message has a tag. The first offer is authenticated by the shared key, everything else by one derived
//! from it and the nonces of both ends. So nothing of one session is worth anything in another, but for a first offer. An old
//! one that an attacker repeats is answered, but never confirmed, so it changes nothing: a responder has a session only when an
//! answer has been confirmed, and until then the latest first offer counts.
//!
//! Bounds: one message under way, two to be sent, a few hundred bytes in all.

pub mod message;
mod params;

#[cfg(test)]
mod tests;

pub use message::{Framing, Nonce, Role, framing};
pub use params::NegotiationParams;

use crate::authentication::{Key, TAG};
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::spec::{Agreement, Conflicts, ConnectionSpecification};
use cutline_units::{Duration, Instant};
use message::{Content, MessageError, NegotiationMessage};
use std::collections::VecDeque;

/// Carrier of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// In order and without loss.
    Stream,
    /// Each by itself, perhaps never, twice, or late.
    Datagrams,
}

/// Agreement of both ends, as this end sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreed {
    /// For the direction that this end sends. `offered` are this end's values.
    pub send: Agreement,
    /// For the direction that this end receives. `offered` are this end's values.
    pub receive: Agreement,
}

/// Outcome of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum NegotiationEvent {
    /// Both ends agree.
    Agreed(Box<Agreed>),
    /// The ends do not agree. The agreement of an earlier round holds.
    Refused {
        /// Conflicts about the traffic that this end sends.
        send: Option<Conflicts>,
        /// Conflicts about the traffic that this end receives.
        receive: Option<Conflicts>,
    },
    /// The peer takes no part. The agreement of an earlier round holds; otherwise this end's own specification.
    OneSided(OneSidedReason),
}

/// Reason why the peer takes no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSidedReason {
    /// The peer has not answered in time.
    NoAnswer,
    /// The peer uses this version of the protocol.
    OtherVersion(u8),
    /// The peer uses another protocol.
    Foreign,
    /// The peer's verdict does not follow from both specifications.
    Contradiction,
}

/// Counters of a negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiationStats {
    /// Messages sent.
    pub sent: u64,
    /// Messages of them that were sent again.
    pub sent_again: u64,
    /// Messages received and used.
    pub received: u64,
    /// Messages received that repeat an earlier one, or came too late.
    pub stale: u64,
    /// Messages of another session, kind or version, or that are none.
    pub ignored: u64,
    /// Messages with a wrong tag, or none.
    pub unauthenticated: u64,
}

/// One end of a negotiation.
#[derive(Debug)]
pub struct Negotiation {
    role: Role,
    carrier: Carrier,
    params: NegotiationParams,
    keys: Option<Keys>,
    session: Option<u64>,
    nonce: Nonce,
    /// The peer's nonce, once it is known.
    their_nonce: Option<Nonce>,
    /// The round under way, or the last one; 0 before the first.
    round: u32,
    /// Requirements of this end; while it requests others, the earlier ones.
    ours: ConnectionSpecification,
    state: State,
    agreed: Option<Box<Agreed>>,
    /// The round of it; 0 for none.
    agreed_round: u32,
    /// A round that this end has answered, and whose confirmation it has not seen.
    unconfirmed: Option<(u32, Outcome)>,
    /// True if the peer has shown that it takes part: by an answer or a confirmation.
    is_joined: bool,
    /// Requirements to request when the first round has ended.
    next: Option<ConnectionSpecification>,
    /// The confirmation of the last round, for a repeated answer.
    confirmation: Option<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
    events: VecDeque<NegotiationEvent>,
    stats: NegotiationStats,
}

/// State of this end.
#[derive(Debug)]
enum State {
    /// Nothing. A responder has not been offered anything, or all is settled.
    Idle,
    /// An answer.
    Offered { proposal: ConnectionSpecification, pending: Pending },
    /// A confirmation of this outcome.
    Answered { outcome: Outcome, pending: Pending },
}

/// Outcome of a round.
#[derive(Debug)]
struct Outcome {
    /// Requirements of this end.
    proposal: ConnectionSpecification,
    event: NegotiationEvent,
}

/// A message that waits for a reply.
#[derive(Debug)]
struct Pending {
    bytes: Vec<u8>,
    /// Time of the next retransmission.
    again: Instant,
    interval: Duration,
    /// Time at which the peer is given up.
    until: Instant,
}

/// The keys of a session.
#[derive(Debug)]
struct Keys {
    shared: Key,
    /// Session key; `None` before both nonces are known.
    session: Option<Key>,
}

/// The most messages that wait to be sent.
const MOST_WAITING: usize = 2;

impl Negotiation {
    /// The initiator, which offers `ours`. `session` and `nonce` are unpredictable random numbers.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn initiate(
        now: Instant,
        ours: ConnectionSpecification,
        (carrier, params): (Carrier, NegotiationParams),
        (session, nonce): (u64, Nonce),
        key: Option<Key>,
    ) -> Result<Self, ParameterError> {
        let mut this = Self::new(Role::Initiator, ours.clone(), (carrier, params), nonce, key)?;
        this.session = Some(session);
        this.offer(now, ours);
        Ok(this)
    }

    /// The responder, which waits for an offer. `nonce` is an unpredictable random number.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn respond(
        ours: ConnectionSpecification,
        (carrier, params): (Carrier, NegotiationParams),
        nonce: Nonce,
        key: Option<Key>,
    ) -> Result<Self, ParameterError> {
        Self::new(Role::Responder, ours, (carrier, params), nonce, key)
    }

    fn new(
        role: Role,
        ours: ConnectionSpecification,
        (carrier, params): (Carrier, NegotiationParams),
        nonce: Nonce,
        key: Option<Key>,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            role,
            carrier,
            params,
            keys: key.map(|shared| Keys { shared, session: None }),
            session: None,
            nonce,
            their_nonce: None,
            round: 0,
            ours,
            state: State::Idle,
            agreed: None,
            agreed_round: 0,
            unconfirmed: None,
            is_joined: false,
            next: None,
            confirmation: None,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            stats: NegotiationStats::default(),
        })
    }

    /// Begins a new round with this end's new specification. A round of this end that is under way ends without an event.
    /// While the first round is under way, or one that the peer began, the new one begins after it. A responder that has not been offered anything answers
    /// with `ours` when it is.
    pub fn renegotiate(&mut self, now: Instant, ours: ConnectionSpecification) {
        match &self.state {
            State::Idle | State::Offered { .. } if self.is_joined => self.offer(now, ours),
            State::Idle => self.ours = ours,
            State::Offered { .. } | State::Answered { .. } => self.next = Some(ours),
        }
    }

    /// The next message to send.
    pub fn transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// Returns the next event, oldest first.
    pub fn event(&mut self) -> Option<NegotiationEvent> {
        self.events.pop_front()
    }

    /// Returns the agreement of both ends; `None` before there is one.
    pub fn agreed(&self) -> Option<&Agreed> {
        self.agreed.as_deref()
    }

    /// Returns the requirements of this end: of the last round that has not failed.
    pub const fn ours(&self) -> &ConnectionSpecification {
        &self.ours
    }

    /// Returns whether a round is under way.
    pub const fn is_under_way(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// A number that only hosts on the path know; `None` before both nonces are known.
    pub fn token(&self) -> Option<u32> {
        let theirs = self.their_nonce?;
        if let Some(keys) = &self.keys {
            let [a, b, c, d, ..] = keys.session?.tag(&[b"token"]);
            return Some(u32::from_be_bytes([a, b, c, d]));
        }
        Some(u32::from_be_bytes(std::array::from_fn(|i| self.nonce[i] ^ theirs[i])))
    }

    /// Something has come that shows that the peer knows the [token](Negotiation::token), so it has got the answer, and
    /// agrees. Its confirmation may be lost.
    pub fn on_token(&mut self, now: Instant) {
        if let State::Answered { outcome: Outcome { event: NegotiationEvent::Agreed(_), .. }, .. } =
            &self.state
        {
            self.on_confirmation(now, self.round);
        }
    }

    /// Returns a function that computes the tags of other messages of this session; `None` without a key.
    pub fn tagger(&self) -> Option<impl Fn(&[u8]) -> [u8; TAG]> {
        let (key, role) = (self.keys.as_ref()?.session?, self.role);
        Some(move |bytes: &[u8]| key.tag(&[&[role as u8], bytes]))
    }

    /// Returns whether something that has come in this session has its tag at its end, if there is a key.
    /// Returns the bytes before the tag, if the tag is right.
    pub fn authentic<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let Some(keys) = &self.keys else { return Some(bytes) };
        let (content, tag) = bytes.split_last_chunk::<TAG>()?;
        keys.session?.verifies(&[&[self.role.other() as u8], content], tag).then_some(content)
    }

    /// Returns the counters.
    pub const fn stats(&self) -> NegotiationStats {
        self.stats
    }

    /// Returns the time of the next call of [`Negotiation::on_deadline`]; [`Instant::FAR_FUTURE`] if there is
    /// none.
    pub fn deadline(&self) -> Instant {
        match &self.state {
            State::Idle => Instant::FAR_FUTURE,
            State::Offered { pending, .. } | State::Answered { pending, .. } => {
                pending.again.min(pending.until)
            }
        }
    }

    /// Repeats a due message, or gives up the peer.
    pub fn on_deadline(&mut self, now: Instant) {
        let (State::Offered { pending, .. } | State::Answered { pending, .. }) = &mut self.state else {
            return;
        };
        if now >= pending.until {
            self.give_up(now, OneSidedReason::NoAnswer);
        } else if now >= pending.again {
            pending.interval = pending.interval + pending.interval;
            pending.again = now.saturating_add(pending.interval);
            let bytes = pending.bytes.clone();
            self.stats.sent_again += 1;
            self.send(bytes);
        }
    }

    /// Returns whether bytes are a message of another session: the peer, or another one at its address, has restarted.
    pub fn is_of_another_session(&self, bytes: &[u8]) -> bool {
        message::session_of(bytes).is_some_and(|session| self.session != Some(session))
    }

    /// Handles received bytes that should be a message: a datagram, or as much of a stream as [`framing`]
    /// says.
    pub fn on_message(&mut self, now: Instant, bytes: &[u8]) {
        let has_key = self.keys.is_some();
        match NegotiationMessage::decode(bytes, self.role.other(), |message| self.key_for(message), has_key) {
            Ok(message) => self.on_valid(now, message),
            Err(MessageError::Unauthenticated) => self.stats.unauthenticated += 1,
            Err(MessageError::Version(version)) => self.on_other_version(now, version, bytes),
            Err(MessageError::Foreign | MessageError::Malformed) => self.stats.ignored += 1,
        }
    }

    /// Ends a round because the stream carries something else than messages ([`Framing::Foreign`]).
    pub fn on_foreign(&mut self, now: Instant) {
        self.stats.ignored += 1;
        if self.is_under_way() {
            self.give_up(now, OneSidedReason::Foreign);
        }
    }

    /// Ends the first round because its end waits no longer for an answer than until now. Later rounds have their own time.
    pub fn on_silence(&mut self, now: Instant) {
        if self.is_under_way() && !self.is_joined {
            self.give_up(now, OneSidedReason::NoAnswer);
        }
    }

    fn on_other_version(&mut self, now: Instant, version: u8, bytes: &[u8]) {
        self.stats.ignored += 1;
        if let Some(notice) = message::notice(bytes) {
            self.send(notice);
        }
        // With a key, unauthenticated messages are ignored.
        if self.is_under_way() && self.keys.is_none() {
            self.give_up(now, OneSidedReason::OtherVersion(version));
        }
    }

    fn on_valid(&mut self, now: Instant, message: NegotiationMessage) {
        let NegotiationMessage { session, round, agreed_round, nonce, echo, content } = message;
        let is_ours = self.session == Some(session);
        let is_begun = is_ours && echo == self.nonce;
        let is_first = self.role == Role::Responder && !self.is_joined;
        if is_begun {
            self.learn(now, agreed_round);
        }
        match content {
            Content::Offer(theirs) if is_begun || (round == 1 && (is_ours || is_first)) => {
                if !is_ours {
                    (self.session, self.round, self.state) = (Some(session), 0, State::Idle);
                    self.unconfirmed = None;
                }
                self.on_offer(now, (round, nonce), &theirs);
            }
            Content::Answer { agreed, specification } if is_begun => {
                self.on_answer(now, (round, nonce), agreed, &specification);
            }
            Content::Confirmation if is_begun => self.on_confirmation(now, round),
            _ => self.stats.ignored += 1,
        }
    }

    fn on_offer(&mut self, now: Instant, (round, nonce): (u32, Nonce), theirs: &ConnectionSpecification) {
        let is_stale = match &self.state {
            State::Offered { .. } => {
                round < self.round || (round == self.round && self.role == Role::Initiator)
            }
            State::Idle | State::Answered { .. } => round <= self.round,
        };
        if is_stale {
            self.stats.stale += 1;
            if let (true, State::Answered { pending, .. }) = (round == self.round, &self.state) {
                // The answer to it may be lost.
                let bytes = pending.bytes.clone();
                self.stats.sent_again += 1;
                self.send(bytes);
            }
            return;
        }
        self.stats.received += 1;
        // A proposal of this end that gives way to the peer's round is its answer.
        let proposal = match self.leave() {
            State::Offered { proposal, .. } => proposal,
            State::Idle | State::Answered { .. } => self.ours.clone(),
        };
        self.round = round;
        self.derive_key(nonce);
        let event = outcome(&proposal, theirs);
        let agreed = matches!(event, NegotiationEvent::Agreed(_));
        let bytes = self.encode(Content::Answer { agreed, specification: proposal.clone() });
        self.send(bytes.clone());
        let outcome = Outcome { proposal, event };
        self.state = State::Answered { outcome, pending: self.pending(now, bytes) };
    }

    /// Leaves the state for another one. An outcome that is not confirmed may be later ([`Self::learn`]).
    fn leave(&mut self) -> State {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Answered { outcome, .. } => {
                self.unconfirmed = Some((self.round, outcome));
                State::Idle
            }
            state => state,
        }
    }

    /// Learns on which round the peer agreed last: a confirmation that may have been lost.
    fn learn(&mut self, now: Instant, agreed_round: u32) {
        if agreed_round == self.round && matches!(self.state, State::Answered { .. }) {
            return self.on_confirmation(now, agreed_round);
        }
        if let Some((_, outcome)) = self.unconfirmed.take_if(|(round, _)| *round == agreed_round) {
            self.adopt(agreed_round, outcome);
        }
    }

    fn on_answer(
        &mut self,
        now: Instant,
        (round, nonce): (u32, Nonce),
        agreed: bool,
        theirs: &ConnectionSpecification,
    ) {
        let State::Offered { .. } = &self.state else {
            self.stats.stale += 1;
            if let (true, Some(bytes)) = (round == self.round, self.confirmation.clone()) {
                // The confirmation of it may be lost.
                self.stats.sent_again += 1;
                self.send(bytes);
            }
            return;
        };
        if round != self.round {
            self.stats.stale += 1;
            return;
        }
        self.stats.received += 1;
        let State::Offered { proposal, .. } = self.leave() else { return };
        let event = outcome(&proposal, theirs);
        if agreed != matches!(event, NegotiationEvent::Agreed(_)) {
            return self.give_up(now, OneSidedReason::Contradiction);
        }
        self.derive_key(nonce);
        self.adopt(round, Outcome { proposal, event });
        let bytes = self.encode(Content::Confirmation);
        self.confirmation = Some(bytes.clone());
        self.send(bytes);
        self.begin_next(now);
    }

    fn on_confirmation(&mut self, now: Instant, round: u32) {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Answered { outcome, .. } if round == self.round => {
                self.stats.received += 1;
                self.adopt(round, outcome);
                self.begin_next(now);
            }
            state => {
                self.stats.stale += 1;
                self.state = state;
            }
        }
    }

    fn offer(&mut self, now: Instant, proposal: ConnectionSpecification) {
        drop(self.leave());
        self.round += 1;
        self.confirmation = None;
        let bytes = self.encode(Content::Offer(proposal.clone()));
        self.send(bytes.clone());
        self.state = State::Offered { proposal, pending: self.pending(now, bytes) };
    }

    /// Takes the outcome of a round that both ends know.
    fn adopt(&mut self, round: u32, Outcome { proposal, event }: Outcome) {
        if let NegotiationEvent::Agreed(agreed) = &event {
            self.ours = proposal;
            self.agreed = Some(agreed.clone());
            self.agreed_round = round;
        }
        self.is_joined = true;
        self.events.push_back(event);
    }

    fn begin_next(&mut self, now: Instant) {
        if let Some(next) = self.next.take() {
            self.offer(now, next);
        }
    }

    /// Ends the round under way without the peer. A responder whose answer to a first offer is not confirmed has nothing
    /// to report: it waits for another offer.
    fn give_up(&mut self, now: Instant, reason: OneSidedReason) {
        drop(self.leave());
        if self.role == Role::Initiator || self.is_joined {
            self.events.push_back(NegotiationEvent::OneSided(reason));
        }
        if self.is_joined {
            self.begin_next(now);
        } else if let Some(next) = self.next.take() {
            self.ours = next;
        }
    }

    fn pending(&self, now: Instant, bytes: Vec<u8>) -> Pending {
        let NegotiationParams { first_timeout, give_up } = self.params;
        let again = match self.carrier {
            Carrier::Stream => Instant::FAR_FUTURE,
            Carrier::Datagrams => now.saturating_add(first_timeout),
        };
        Pending { bytes, again, interval: first_timeout, until: now.saturating_add(give_up) }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        if self.outbox.len() >= MOST_WAITING {
            self.outbox.pop_front();
        }
        self.stats.sent += 1;
        self.outbox.push_back(bytes);
    }

    fn encode(&self, content: Content) -> Vec<u8> {
        let session = self.session.expect("an end that sends has a session");
        let agreed_round = self.agreed_round;
        let echo = self.their_nonce.unwrap_or_default();
        let message =
            NegotiationMessage { session, round: self.round, agreed_round, nonce: self.nonce, echo, content };
        let key = self.keys.as_ref().map(|keys| keys.session.unwrap_or(keys.shared));
        message.encode(self.role, key.as_ref())
    }

    /// The key that a message should have been made with.
    fn key_for(&self, message: &NegotiationMessage) -> Option<Key> {
        let keys = self.keys.as_ref()?;
        match &message.content {
            Content::Offer(_) if message.round == 1 => Some(keys.shared),
            Content::Answer { .. } if keys.session.is_none() => {
                Some(self.session_key(&keys.shared, message.nonce))
            }
            _ => keys.session,
        }
    }

    /// Takes the peer's nonce, and derives the session's key from it. It no longer changes once the peer has joined.
    fn derive_key(&mut self, theirs: Nonce) {
        if !self.is_joined {
            self.their_nonce = Some(theirs);
        }
        let shared = self.keys.as_ref().filter(|_| !self.is_joined).map(|keys| keys.shared);
        let key = shared.map(|shared| self.session_key(&shared, theirs));
        if let (Some(keys), Some(key)) = (&mut self.keys, key) {
            keys.session = Some(key);
        }
    }

    fn session_key(&self, shared: &Key, theirs: Nonce) -> Key {
        let (initiator, responder) = match self.role {
            Role::Initiator => (self.nonce, theirs),
            Role::Responder => (theirs, self.nonce),
        };
        shared.derive(&[b"session", &initiator, &responder])
    }
}

/// Computes the outcome from both specifications.
fn outcome(ours: &ConnectionSpecification, theirs: &ConnectionSpecification) -> NegotiationEvent {
    match ours.agree(theirs) {
        [Ok(send), Ok(receive)] => NegotiationEvent::Agreed(Box::new(Agreed { send, receive })),
        [send, receive] => NegotiationEvent::Refused { send: send.err(), receive: receive.err() },
    }
}
