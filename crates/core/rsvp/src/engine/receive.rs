//! Messages that arrive: their authenticity, their sender, and the interface whose state they may change.
//!
//! Keys are given to interfaces (RFC 2747 section 3), so they protect the state of an interface: the path state that came by it, the
//! reservations on it, and the state of the neighbours there. A message creates, changes or removes state of an interface only if it
//! arrived there, or if it arrived elsewhere and was authenticated with a key of that interface ([`Engine::speaks_for`]). An error is
//! accepted only along the path that it answers. The one exception is path state that came by an interface without keys: a Path message at
//! any other interface moves it, because routes change (RFC 2205 section 3.6) and nothing there was authenticated.

use super::Engine;
use super::keys::NeighbourKey;
use super::neighbours::Target;
use super::origin::Origin;
use super::outputs::ArrivedMessage;
use super::params::InterfaceId;
use super::paths::ArrivedPath;
use super::reservations::ArrivedResv;
use crate::encapsulation::Carrier;
use crate::integrity::{IntegrityVerdict, key_number, sender_of};
use crate::message::{Body, DecodeError, Message, MessageType, whole_message};
use crate::object::Challenge;
use cutline_units::Instant;
use std::net::IpAddr;

impl Engine {
    /// Handles a message.
    pub fn receive(&mut self, now: Instant, arrival: &ArrivedMessage<'_>) {
        let Some(place) = self.interfaces.get_mut(&arrival.interface) else {
            self.stats.misplaced += 1;
            return;
        };
        if !place.config.encapsulation.takes(arrival.carrier) {
            self.stats.misplaced += 1;
            return;
        }
        // The packet may be longer than the message in it (RFC 2205 section 3.1.1: RSVP Length).
        let arrival = &ArrivedMessage { bytes: whole_message(arrival.bytes), ..*arrival };
        let is_bundle = arrival.bytes.get(1) == Some(&(MessageType::Bundle as u8));
        if is_bundle {
            // RFC 2961 section 3.4: each message of a bundle is treated as if it had come alone, but for the TTL.
            match Message::decode(arrival.bytes) {
                Ok(Message { ttl, body: Body::Bundle(messages), .. }) => {
                    *self.stats.received.entry(MessageType::Bundle).or_default() += 1;
                    for bytes in messages {
                        self.receive_one(now, &ArrivedMessage { bytes: &bytes, ..*arrival }, Some(ttl));
                    }
                }
                Ok(_) => {}
                Err(error) => self.stats.count_decode_error(&error),
            }
        } else {
            self.receive_one(now, arrival, None);
        }
    }

    fn receive_one(&mut self, now: Instant, arrival: &ArrivedMessage<'_>, bundle_ttl: Option<u8>) {
        let Some(origin) = self.authenticate(now, arrival) else { return };
        let message = match Message::decode(arrival.bytes) {
            Ok(message) => message,
            Err(error) => {
                self.stats.count_decode_error(&error);
                if let DecodeError::Rejected(refused) = error {
                    self.refuse(now, arrival.interface, &refused);
                }
                return;
            }
        };
        if message.opaque_bytes() > self.params.most_opaque as usize {
            self.stats.full += 1;
            return;
        }
        *self.stats.received.entry(message.kind()).or_default() += 1;
        if let Body::IntegrityChallenge(challenge) = message.body {
            // It has no signature (RFC 2747 section 4.3), so nothing else in it is believed, and it is not acknowledged.
            return self.on_challenge(now, arrival.interface, arrival.source, challenge);
        }
        let Some(neighbour) = self.neighbour_of(&message.body, &origin) else {
            self.stats.misplaced += 1;
            return;
        };
        let is_hop = !matches!(message.body, Body::ResvConf(_));
        if is_hop && !self.owns(neighbour.1) {
            let has_udp = matches!(arrival.carrier, Carrier::Udp(_));
            if has_udp && let Some(place) = self.interfaces.get_mut(&arrival.interface) {
                place.heard_udp = true;
            }
            self.hear(now, neighbour, message.reduces_refreshes, has_udp);
        }
        for acknowledgement in &message.acknowledgements {
            self.on_acknowledgement(now, neighbour, *acknowledgement);
        }
        let header_ttl = bundle_ttl.unwrap_or(message.ttl);
        let ttl = (arrival.ttl.unwrap_or(header_ttl), header_ttl);
        self.dispatch(now, arrival, (origin, neighbour), ttl, message);
    }

    /// Returns the neighbour that has sent a message; `None` if the message names an interface for which it has no authority. A reservation names
    /// the interface that it is for by its handle (RFC 2205 section 3.1.4).
    fn neighbour_of(&self, body: &Body, origin: &Origin) -> Option<NeighbourKey> {
        let place = match body {
            Body::Resv(resv) => InterfaceId(resv.hop.handle),
            Body::ResvTear(tear) => InterfaceId(tear.hop.handle),
            _ => origin.interface,
        };
        self.speaks_for(origin, place).then_some((place, origin.sender))
    }

    /// Returns whether a message may create, change or remove state of an interface: it arrived there, or it was authenticated with a key that is
    /// one of that interface, too.
    pub(super) fn speaks_for(&self, origin: &Origin, owner: InterfaceId) -> bool {
        if origin.interface == owner {
            return true;
        }
        let guard = |interface| self.interfaces.get(&interface).and_then(|place| place.guard.as_ref());
        let (Some(key), Some(here), Some(there)) = (origin.key, guard(origin.interface), guard(owner)) else {
            return false;
        };
        let theirs = |config: &crate::integrity::IntegrityConfig| {
            config.keys_of(origin.sender).filter(|its| its.id == key).cloned().collect::<Vec<_>>()
        };
        theirs(here.config())
            .iter()
            .any(|used| theirs(there.config()).iter().any(|its| its.is_same_secret(used)))
    }

    /// Returns whether messages at an interface are authenticated.
    pub(super) fn is_keyed(&self, interface: InterfaceId) -> bool {
        self.interfaces.get(&interface).is_some_and(|place| place.guard.is_some())
    }

    fn dispatch(
        &mut self,
        now: Instant,
        arrival: &ArrivedMessage<'_>,
        (origin, neighbour): (Origin, NeighbourKey),
        ttl: (u8, u8),
        message: Message,
    ) {
        let id = message.id;
        // Messages that install state are acknowledged where the state is installed, in the order of numbers.
        if !matches!(message.body, Body::Path(_) | Body::Resv(_)) {
            self.acknowledge(now, neighbour, id);
        }
        match message.body {
            Body::Path(path) => {
                self.on_path(now, ArrivedPath { origin, ttl, id, passed_on: message.passed_on, path });
            }
            Body::Resv(resv) => self.on_resv(now, ArrivedResv { id, passed_on: message.passed_on, resv }),
            Body::PathTear(tear) => self.on_path_tear(now, &origin, id, &tear),
            Body::ResvTear(tear) => self.on_resv_tear(now, id, &tear),
            Body::PathErr(ref error) => self.on_path_error(now, &origin, error.clone(), &message),
            Body::ResvErr(error) => self.on_resv_error(now, &origin, &error),
            Body::ResvConf(_) => self.on_confirmation(now, Some(&origin), Message { ttl: ttl.0, ..message }),
            Body::Srefresh(lists) => self.on_summary(now, neighbour, arrival.destination, &lists),
            Body::Ack
            | Body::IntegrityChallenge(_)
            | Body::IntegrityResponse(_)
            | Body::Bundle(_)
            | Body::Unread(..) => {}
        }
    }

    /// Returns the origin of a message; `None` if the message may not be trusted (RFC 2747 section 4.2).
    fn authenticate(&mut self, now: Instant, arrival: &ArrivedMessage<'_>) -> Option<Origin> {
        let Ok(sender) = sender_of(arrival.bytes, arrival.source) else {
            self.stats.malformed += 1;
            return None;
        };
        let interface = arrival.interface;
        let place = self.interfaces.get_mut(&interface);
        let Some(guard) = place.and_then(|place| place.guard.as_mut()) else {
            return Some(Origin { interface, sender, key: None });
        };
        let kind = arrival.bytes.get(1).copied();
        if kind == Some(MessageType::IntegrityChallenge as u8) {
            return Some(Origin { interface, sender, key: None });
        }
        let verdict = match Message::decode(arrival.bytes).map(|message| message.body) {
            Ok(Body::IntegrityResponse(answer)) => guard.check_response(now, sender, arrival.bytes, &answer),
            _ => guard.check(now, sender, arrival.bytes),
        };
        self.stats.count_verdict(verdict);
        if let IntegrityVerdict::Challenge(challenge) = verdict {
            let message = Message::new(self.params.ttl, Body::IntegrityChallenge(challenge));
            self.transmit(now, arrival.interface, Target::Neighbour(sender), message);
        }
        let key = key_number(arrival.bytes);
        (verdict == IntegrityVerdict::Accept).then_some(Origin { interface, sender, key })
    }

    /// Proves that this node's messages are recent (RFC 2747 section 4.3).
    fn on_challenge(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        challenger: IpAddr,
        challenge: Challenge,
    ) {
        let has_guard = self.interfaces.get(&interface).is_some_and(|place| place.guard.is_some());
        if has_guard {
            let message = Message::new(self.params.ttl, Body::IntegrityResponse(challenge));
            self.transmit(now, interface, Target::Neighbour(challenger), message);
        }
    }
}
