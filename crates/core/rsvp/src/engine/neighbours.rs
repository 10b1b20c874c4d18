//! Sending, and refresh reduction with neighbours: numbers of messages, acknowledgements, summaries (RFC 2961).

use super::Engine;
use super::keys::{NeighbourKey, PathKey, SessionId, UpKey};
use super::outputs::{Datagram, EngineOutput};
use super::params::InterfaceId;
use super::state::{NextHop, Received, Sent};
use super::timers::{Slot, Timer};
use crate::encapsulation::{Carrier, Copy};
use crate::integrity::{LONGEST_OBJECT, sign};
use crate::message::{Body, LONGEST, Message, finish};
use crate::object::{Acknowledgement, IdList, Ids, MessageId, Session};
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The bytes of the headers before the numbers of a summary, or of an acknowledgement.
const LIST_HEADERS: u32 = 8 + 8 + 12;
/// The bytes of an acknowledgement.
const ACKNOWLEDGEMENT: u32 = 12;
/// The most acknowledgements that wait for a neighbour. The neighbour repeats messages beyond them.
const MOST_ACKNOWLEDGEMENTS: usize = 10_000;

/// A neighbour that has sent a message.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// True if it has refresh reduction.
    pub reduces_refreshes: bool,
    /// True if it sends by UDP.
    has_udp: bool,
    /// The epoch of its last number.
    epoch: Option<u32>,
    /// State that its messages have installed here, by number.
    received: BTreeMap<u32, Installed>,
    acknowledgements: Vec<Acknowledgement>,
    acknowledge: Slot,
    /// State that our messages have installed there, by number; summaries refresh it.
    summarised: BTreeMap<u32, Installs>,
    summary: Slot,
}

/// State that a neighbour's message has installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Installed {
    Path(SessionId, PathKey),
    Resv(SessionId, NextHop),
}

/// State that a message of ours installs at a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Installs {
    Path(SessionId, PathKey, InterfaceId),
    Resv(SessionId, UpKey),
}

/// A message that waits for an acknowledgement.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    retransmission: Retransmission,
    /// The neighbour that may acknowledge it.
    neighbour: NeighbourKey,
    attempts: u32,
    interval: Duration,
    timer: Slot,
}

/// Retransmission of a message.
#[derive(Clone, Debug)]
enum Retransmission {
    /// Made again from this state.
    State(Installs),
    /// Sent again as it was.
    Message(Box<(InterfaceId, Target, Message)>),
}

/// Destination of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// To a neighbour.
    Neighbour(IpAddr),
    /// Along the path of a session's packets, from a sender, to this node first if it is known.
    Session(IpAddr, Session, Option<IpAddr>),
    /// To a host, through the nodes before it.
    Host(IpAddr),
}

impl Engine {
    /// Sends a message with the acknowledgements that wait for its receiver.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        target: Target,
        mut message: Message,
    ) {
        message.reduces_refreshes = self.params.refresh_reduction;
        let is_unsigned = matches!(message.body, Body::IntegrityChallenge(_));
        if let Target::Neighbour(address) = target
            && !is_unsigned
        {
            message.acknowledgements = self.take_acknowledgements((interface, address));
        }
        let Some(place) = self.interfaces.get(&interface) else { return };
        let own = place.config.address;
        let copies = match target {
            Target::Neighbour(address) | Target::Host(address) => {
                let neighbour = self.neighbours.get(&(interface, address));
                let has_udp = neighbour.is_some_and(|neighbour| neighbour.has_udp);
                vec![place.config.encapsulation.towards_neighbour(address, has_udp)]
            }
            Target::Session(_, session, _) => {
                place.config.encapsulation.towards_session(&session, place.heard_udp)
            }
        };
        let mut bytes = message.encode_unfinished();
        if bytes.len() + LONGEST_OBJECT > LONGEST {
            self.stats.too_long += 1;
            return;
        }
        finish(&mut bytes);
        if let Some(guard) = place.guard.as_ref().filter(|_| !is_unsigned) {
            let Some((key, is_over)) = guard.config().signing_key(now, own) else {
                self.stats.without_key += 1;
                return;
            };
            self.stats.expired_key += u64::from(is_over);
            self.sequence = self.sequence.wrapping_add(1);
            sign(&mut bytes, key, self.sequence, true);
        }
        let (source, next_hop) = match target {
            Target::Session(sender, session, next_hop) => {
                (sender, next_hop.filter(|next| *next != session.destination))
            }
            _ => (own, None),
        };
        *self.stats.sent.entry(message.kind()).or_default() += 1;
        let router_alert = message.kind().has_router_alert();
        for Copy { carrier, destination } in copies {
            self.stats.sent_bytes += bytes.len() as u64;
            let bytes = bytes.clone();
            // Over UDP a host cannot send with another host's address, nor with Router Alert.
            let is_raw = carrier == Carrier::Raw;
            let (source, router_alert) = (if is_raw { source } else { own }, router_alert && is_raw);
            let datagram = Datagram {
                interface,
                source,
                destination,
                next_hop: next_hop.filter(|_| is_raw),
                ttl: message.ttl,
                router_alert,
                carrier,
                bytes,
            };
            self.outputs.push_back(EngineOutput::Send(datagram));
        }
    }

    /// Sends a message that installs nothing that is refreshed. If the neighbour has refresh reduction it is sent again until it
    /// is acknowledged.
    pub(super) fn transmit_reliably(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        neighbour: IpAddr,
        target: Target,
        mut message: Message,
    ) {
        if self.reduces_refreshes((interface, neighbour)) {
            let id = self.next_number();
            message.id = Some(MessageId { wants_ack: true, epoch: self.epoch, id });
            let retransmission = Retransmission::Message(Box::new((interface, target, message.clone())));
            self.await_acknowledgement(now, id, (interface, neighbour), retransmission, 1);
        }
        self.transmit(now, interface, target, message);
    }

    /// Returns whether a neighbour has refresh reduction, and this node uses it.
    pub(super) fn reduces_refreshes(&self, neighbour: NeighbourKey) -> bool {
        self.params.refresh_reduction
            && self.neighbours.get(&neighbour).is_some_and(|neighbour| neighbour.reduces_refreshes)
    }

    fn next_number(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1).max(1);
        id
    }

    fn await_acknowledgement(
        &mut self,
        now: Instant,
        id: u32,
        neighbour: NeighbourKey,
        retransmission: Retransmission,
        attempts: u32,
    ) {
        let interval = self.params.rapid_retransmission;
        let mut timer = Slot::EMPTY;
        self.timers.set(&mut timer, now + interval, Timer::Retransmit(id));
        self.unacknowledged
            .insert(id, Unacknowledged { retransmission, neighbour, attempts, interval, timer });
    }

    /// Gives a message that installs state its number (RFC 2961 section 4.5): that of the message before if it is equal,
    /// a larger one otherwise; none if the neighbour has no refresh reduction. `hash` is that of the content, `is_once` is true if it has something
    /// that is not state.
    pub(super) fn number(
        &mut self,
        now: Instant,
        neighbour: Option<NeighbourKey>,
        sent: &mut Sent,
        (hash, is_once): (u64, bool),
        installs: Installs,
    ) -> Option<MessageId> {
        let neighbour = neighbour.filter(|key| self.reduces_refreshes(*key));
        let Some(neighbour) = neighbour else {
            self.forget(sent);
            sent.hash = hash;
            return None;
        };
        let old = sent.id.filter(|(_, key)| *key == neighbour && sent.hash == hash && !is_once);
        let id = if let Some((id, _)) = old {
            id
        } else {
            self.forget(sent);
            self.next_number()
        };
        if !sent.is_acknowledged && !self.unacknowledged.contains_key(&id) {
            // A message that was given up is sent once with every refresh.
            let attempts = if old.is_some() { self.params.rapid_limit } else { 1 };
            self.await_acknowledgement(now, id, neighbour, Retransmission::State(installs), attempts);
        }
        *sent = Sent { hash, id: Some((id, neighbour)), is_acknowledged: sent.is_acknowledged };
        Some(MessageId { wants_ack: !sent.is_acknowledged, epoch: self.epoch, id })
    }

    /// Drops the number of a message whose state is no longer refreshed.
    pub(super) fn forget(&mut self, sent: &mut Sent) {
        if let Some((id, neighbour)) = sent.id {
            if let Some(mut waiting) = self.unacknowledged.remove(&id) {
                self.timers.cancel(&mut waiting.timer);
            }
            if let Some(neighbour) = self.neighbours.get_mut(&neighbour) {
                neighbour.summarised.remove(&id);
            }
        }
        *sent = Sent::default();
    }

    /// Sends a message again (RFC 2961 section 6.3).
    pub(super) fn retransmit_due(&mut self, now: Instant, id: u32) {
        let Some(waiting) = self.unacknowledged.get_mut(&id) else { return };
        if waiting.attempts >= self.params.rapid_limit {
            self.unacknowledged.remove(&id);
            return;
        }
        waiting.attempts += 1;
        waiting.interval = waiting.interval * 2;
        self.timers.set(&mut waiting.timer, now + waiting.interval, Timer::Retransmit(id));
        self.stats.sent_again += 1;
        match waiting.retransmission.clone() {
            Retransmission::State(installs) => self.send_again(now, installs),
            Retransmission::Message(sent) => {
                let (interface, target, message) = *sent;
                self.transmit(now, interface, target, message);
            }
        }
    }

    fn send_again(&mut self, now: Instant, installs: Installs) {
        match installs {
            Installs::Path(id, key, interface) => {
                self.in_session(id, |this, s| this.send_path_on(now, s, key, interface));
            }
            Installs::Resv(id, key) => self.in_session(id, |this, s| this.send_resv_again(now, s, key)),
        }
    }

    /// Returns the record of the message that has installed state.
    fn with_sent(&mut self, installs: Installs, change: impl FnOnce(&mut Sent)) {
        match installs {
            Installs::Path(id, key, interface) => {
                let psb = self.sessions.get_mut(&id).and_then(|s| s.paths.get_mut(&key));
                let out = psb.and_then(|psb| psb.outgoing.iter_mut().find(|out| out.interface == interface));
                if let Some(out) = out {
                    change(&mut out.sent);
                }
            }
            Installs::Resv(id, key) => {
                if let Some(upstream) = self.sessions.get_mut(&id).and_then(|s| s.upstream.get_mut(&key)) {
                    change(&mut upstream.sent);
                }
            }
        }
    }

    /// Notes the presence and the capabilities of a message's sender.
    pub(super) fn hear(&mut self, now: Instant, key: NeighbourKey, reduces_refreshes: bool, has_udp: bool) {
        if !self.neighbours.contains_key(&key) {
            if !self.has_room_for_neighbour(key.0) && !self.drop_idle_neighbour(key.0) {
                self.stats.full += 1;
                return;
            }
            let neighbour = Neighbour {
                reduces_refreshes,
                has_udp,
                epoch: None,
                received: BTreeMap::new(),
                acknowledgements: Vec::new(),
                acknowledge: Slot::EMPTY,
                summarised: BTreeMap::new(),
                summary: Slot::EMPTY,
            };
            self.neighbours.insert(key, neighbour);
        }
        let neighbour = self.neighbours.get_mut(&key).expect("it was there or was added");
        neighbour.has_udp = has_udp;
        let stops = neighbour.reduces_refreshes && !reduces_refreshes;
        neighbour.reduces_refreshes = reduces_refreshes;
        if stops {
            // RFC 2961 section 2: from now on it gets whole messages.
            self.timers.cancel(&mut neighbour.summary);
            let states = std::mem::take(&mut neighbour.summarised);
            for installs in states.into_values() {
                self.refresh_wholly(now, installs);
            }
        }
    }

    /// Makes state that was summarised be refreshed by messages of its own.
    fn refresh_wholly(&mut self, now: Instant, installs: Installs) {
        self.with_sent(installs, |sent| sent.is_acknowledged = false);
        match installs {
            Installs::Path(id, key, _) => self.in_session(id, |this, s| this.arm_path_refresh(now, s, key)),
            Installs::Resv(id, key) => self.in_session(id, |this, s| this.arm_resv_refresh(now, s, key)),
        }
    }

    /// Returns whether there may be another neighbour at an interface. One without keys has half of all at
    /// most, because addresses can be made up there.
    fn has_room_for_neighbour(&self, interface: InterfaceId) -> bool {
        let most = self.params.most_neighbours as usize;
        if self.neighbours.len() >= most {
            return false;
        }
        let there = || self.neighbours.keys().filter(|(its, _)| *its == interface).count();
        self.is_keyed(interface) || self.neighbours.len() < most / 2 || there() < most / 2
    }

    /// Forgets a neighbour of an interface of which nothing is installed here. Returns whether there was one.
    fn drop_idle_neighbour(&mut self, interface: InterfaceId) -> bool {
        let is_idle = |neighbour: &Neighbour| {
            neighbour.received.is_empty()
                && neighbour.summarised.is_empty()
                && neighbour.acknowledgements.is_empty()
        };
        let mut its = self.neighbours.iter().filter(|(key, _)| key.0 == interface);
        let idle = its.find(|(_, neighbour)| is_idle(neighbour)).map(|(key, _)| *key);
        let removed = idle.and_then(|key| self.neighbours.remove(&key));
        removed.map(|mut neighbour| self.timers.cancel(&mut neighbour.summary)).is_some()
    }

    /// Returns the order of a message relative to the state that it changes.
    pub(super) fn order(received: Option<Received>, neighbour: NeighbourKey, id: Option<MessageId>) -> Order {
        let (Some(last), Some(id)) = (received, id) else { return Order::New };
        if last.neighbour != neighbour || last.epoch != id.epoch {
            return Order::New;
        }
        match (last.id.wrapping_sub(id.id)) as i32 {
            0 => Order::Same,
            1.. => Order::Old,
            _ => Order::New,
        }
    }

    /// Remembers the number of the message that has installed state, instead of the one before.
    pub(super) fn install(
        &mut self,
        slot: &mut Option<Received>,
        neighbour: NeighbourKey,
        id: Option<MessageId>,
        installed: Installed,
    ) {
        self.uninstall(slot, installed);
        let Some((id, known)) = id.zip(self.neighbours.get_mut(&neighbour)) else { return };
        known.see_epoch(id.epoch);
        // A number stands for one state. If a message has other contents, one of both is a forged copy, and summaries refresh neither: the
        // neighbour is asked for the message itself, whose state has the number then.
        if *known.received.entry(id.id).or_insert(installed) != installed {
            known.received.remove(&id.id);
            return;
        }
        *slot = Some(Received { neighbour, epoch: id.epoch, id: id.id });
    }

    /// Forgets the number of the message that has installed state.
    pub(super) fn uninstall(&mut self, slot: &mut Option<Received>, installed: Installed) {
        let Some(old) = slot.take() else { return };
        if let Some(neighbour) = self.neighbours.get_mut(&old.neighbour)
            && neighbour.epoch == Some(old.epoch)
            && neighbour.received.get(&old.id) == Some(&installed)
        {
            neighbour.received.remove(&old.id);
        }
    }

    /// Acknowledges a message, if its sender requests it.
    pub(super) fn acknowledge(&mut self, now: Instant, neighbour: NeighbourKey, id: Option<MessageId>) {
        if let Some(id) = id.filter(|id| id.wants_ack) {
            self.add_acknowledgement(
                now,
                neighbour,
                Acknowledgement { is_known: true, epoch: id.epoch, id: id.id },
            );
        }
    }

    fn add_acknowledgement(&mut self, now: Instant, key: NeighbourKey, acknowledgement: Acknowledgement) {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        if neighbour.acknowledgements.len() < MOST_ACKNOWLEDGEMENTS {
            neighbour.acknowledgements.push(acknowledgement);
        }
        if neighbour.acknowledge.at().is_none() {
            let at = now + self.params.ack_delay;
            self.timers.set(&mut neighbour.acknowledge, at, Timer::Acknowledge(key));
        }
    }

    /// Takes as many waiting acknowledgements for a neighbour as fit in one message, oldest first.
    fn take_acknowledgements(&mut self, key: NeighbourKey) -> Vec<Acknowledgement> {
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return Vec::new() };
        let most = ((self.params.longest_list - LIST_HEADERS) / ACKNOWLEDGEMENT) as usize;
        let rest = neighbour.acknowledgements.split_off(most.min(neighbour.acknowledgements.len()));
        let taken = std::mem::replace(&mut neighbour.acknowledgements, rest);
        if neighbour.acknowledgements.is_empty() {
            self.timers.cancel(&mut neighbour.acknowledge);
        }
        taken
    }

    /// Sends the acknowledgements that wait, in messages of their own.
    pub(super) fn acknowledge_due(&mut self, now: Instant, key: NeighbourKey) {
        while self.neighbours.get(&key).is_some_and(|each| !each.acknowledgements.is_empty()) {
            let message = Message::new(self.params.ttl, Body::Ack);
            self.transmit(now, key.0, Target::Neighbour(key.1), message);
        }
    }

    /// Handles a neighbour's acknowledgements of our messages (RFC 2961 sections 4.6 and 5.4).
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        key: NeighbourKey,
        acknowledgement: Acknowledgement,
    ) {
        let Acknowledgement { is_known, epoch, id } = acknowledgement;
        if epoch != self.epoch {
            return;
        }
        if is_known {
            // Only the neighbour that the message went to can acknowledge it.
            if self.unacknowledged.get(&id).is_none_or(|waiting| waiting.neighbour != key) {
                return;
            }
            let Some(mut waiting) = self.unacknowledged.remove(&id) else { return };
            self.timers.cancel(&mut waiting.timer);
            if let Retransmission::State(installs) = waiting.retransmission {
                self.summarise(now, key, id, installs);
            }
        } else {
            let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
            if let Some(installs) = neighbour.summarised.remove(&id) {
                self.refresh_wholly(now, installs);
                self.send_again(now, installs);
            }
        }
    }

    /// From now on summaries refresh this state.
    fn summarise(&mut self, now: Instant, at: NeighbourKey, id: u32, installs: Installs) {
        let next = now + self.jittered();
        let Some(neighbour) = self.neighbours.get_mut(&at).filter(|each| each.reduces_refreshes) else {
            return;
        };
        let mut is_ours = false;
        neighbour.summarised.insert(id, installs);
        if neighbour.summary.at().is_none() {
            self.timers.set(&mut neighbour.summary, next, Timer::Summary(at));
        }
        self.with_sent(installs, |sent| {
            is_ours = sent.id == Some((id, at));
            sent.is_acknowledged |= is_ours;
        });
        if !is_ours {
            if let Some(neighbour) = self.neighbours.get_mut(&at) {
                neighbour.summarised.remove(&id);
            }
            return;
        }
        match installs {
            Installs::Path(id, key, _) => self.in_session(id, |this, s| this.arm_path_refresh(now, s, key)),
            Installs::Resv(id, key) => self.in_session(id, |this, s| this.arm_resv_refresh(now, s, key)),
        }
    }

    /// Refreshes all that a neighbour has acknowledged (RFC 2961 section 5.3).
    pub(super) fn summary_due(&mut self, now: Instant, key: NeighbourKey) {
        let next = now + self.jittered();
        let Some(neighbour) = self.neighbours.get_mut(&key) else { return };
        neighbour.summary = Slot::EMPTY;
        let ids: Vec<u32> = neighbour.summarised.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let (interface, address) = key;
        self.timers.set(&mut neighbour.summary, next, Timer::Summary(key));
        let most = ((self.params.longest_list - LIST_HEADERS) / 4) as usize;
        for ids in ids.chunks(most) {
            let list = IdList { epoch: self.epoch, ids: Ids::Plain(ids.to_vec()) };
            let message = Message::new(self.params.ttl, Body::Srefresh(vec![list]));
            self.transmit_reliably(now, interface, address, Target::Neighbour(address), message);
        }
    }

    /// Handles a neighbour's summary: the named state is refreshed, and unknown state is requested again.
    pub(super) fn on_summary(
        &mut self,
        now: Instant,
        key: NeighbourKey,
        destination: IpAddr,
        lists: &[IdList],
    ) {
        for IdList { epoch, ids } in lists {
            let numbers: Vec<(u32, bool)> = match ids {
                Ids::Plain(ids) => ids.iter().map(|id| (*id, true)).collect(),
                // RFC 2961 section 5.3: of a group, only state that this node would forward is requested.
                Ids::Sources(ids) => {
                    ids.iter().map(|(id, source)| (*id, self.forwards(*source, destination))).collect()
                }
                Ids::Groups(ids) => {
                    ids.iter().map(|(id, source, group)| (*id, self.forwards(*source, *group))).collect()
                }
            };
            for (id, is_wanted) in numbers {
                let neighbour = self.neighbours.get(&key).filter(|neighbour| neighbour.epoch == Some(*epoch));
                let installed = neighbour.and_then(|neighbour| neighbour.received.get(&id)).copied();
                let is_known =
                    installed.is_some_and(|installed| self.prolong(now, key, (*epoch, id), installed));
                if !is_known && is_wanted {
                    self.add_acknowledgement(
                        now,
                        key,
                        Acknowledgement { is_known: false, epoch: *epoch, id },
                    );
                }
            }
        }
    }

    /// Returns whether this node has path state of a sender to a group, and forwards it.
    fn forwards(&self, source: IpAddr, group: IpAddr) -> bool {
        let key = super::RouteKey { source: Some(source), ..super::RouteKey::to(group) };
        let route = self.routes.get(&key).and_then(|entry| entry.route.as_ref());
        route.is_some_and(|route| !route.outgoing.is_empty())
    }

    fn prolong(
        &mut self,
        now: Instant,
        neighbour: NeighbourKey,
        (epoch, id): (u32, u32),
        installed: Installed,
    ) -> bool {
        let received = Some(Received { neighbour, epoch, id });
        match installed {
            Installed::Path(session, key) => {
                let psb = self.sessions.get_mut(&session).and_then(|s| s.paths.get_mut(&key));
                let psb = psb.filter(|psb| psb.received == received);
                psb.map(|psb| psb.expires = now + psb.lifetime).is_some()
            }
            Installed::Resv(session, next_hop) => {
                let Some(s) = self.sessions.get_mut(&session) else { return false };
                let theirs =
                    |rsb: &&mut super::state::Rsb| rsb.next_hop == next_hop && rsb.received == received;
                let mut is_known = false;
                for rsb in s.reservations.iter_mut().filter(theirs) {
                    is_known = true;
                    rsb.prolong(now);
                }
                is_known
            }
        }
    }
}

/// Order of a message by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The message has to be looked at.
    New,
    /// The message repeats known state.
    Same,
    /// A newer one was here before.
    Old,
}

impl Neighbour {
    /// A neighbour with another epoch has restarted: its old numbers mean nothing.
    pub fn see_epoch(&mut self, epoch: u32) {
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            self.received.clear();
        }
    }
}
