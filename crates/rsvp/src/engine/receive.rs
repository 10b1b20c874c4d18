//! Messages that arrive: whether they are believed, and whose they are.

use super::Engine;
use super::neighbours::Target;
use super::outputs::Arrival;
use super::params::InterfaceId;
use super::paths::ArrivedPath;
use super::reservations::ArrivedResv;
use crate::encapsulation::Carrier;
use crate::integrity::{Verdict, sender_of};
use crate::message::{Body, DecodeError, Kind, Message};
use crate::object::Challenge;
use cutline_units::Instant;
use std::net::IpAddr;

impl Engine {
    /// Handles a message.
    pub fn receive(&mut self, now: Instant, arrival: &Arrival<'_>) {
        let Some(place) = self.interfaces.get_mut(&arrival.interface) else {
            self.stats.misplaced += 1;
            return;
        };
        if !place.config.encapsulation.takes(arrival.carrier) {
            self.stats.misplaced += 1;
            return;
        }
        let is_bundle = arrival.bytes.get(1) == Some(&(Kind::Bundle as u8));
        if is_bundle {
            // RFC 2961 section 3.4: each message of a bundle is treated as if it had come alone, but for the TTL.
            match Message::decode(arrival.bytes) {
                Ok(Message { ttl, body: Body::Bundle(messages), .. }) => {
                    *self.stats.received.entry(Kind::Bundle).or_default() += 1;
                    for bytes in messages {
                        self.receive_one(now, &Arrival { bytes: &bytes, ..*arrival }, Some(ttl));
                    }
                }
                Ok(_) => {}
                Err(error) => self.stats.count_decode_error(&error),
            }
        } else {
            self.receive_one(now, arrival, None);
        }
    }

    fn receive_one(&mut self, now: Instant, arrival: &Arrival<'_>, bundle_ttl: Option<u8>) {
        if !self.is_authentic(now, arrival) {
            return;
        }
        let message = match Message::decode(arrival.bytes) {
            Ok(message) => message,
            Err(error) => {
                self.stats.count_decode_error(&error);
                if let DecodeError::Refused(refused) = error {
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
        let neighbour = neighbour_of(&message.body).unwrap_or(arrival.source);
        let is_hop = !matches!(message.body, Body::ResvConf(_) | Body::IntegrityChallenge(_));
        if is_hop && !self.owns(neighbour) {
            let has_udp = matches!(arrival.carrier, Carrier::Udp(_));
            if has_udp && let Some(place) = self.interfaces.get_mut(&arrival.interface) {
                place.heard_udp = true;
            }
            self.hear(now, (neighbour, arrival.interface), message.reduces_refreshes, has_udp);
        }
        for acknowledgement in &message.acknowledgements {
            self.on_acknowledgement(now, neighbour, *acknowledgement);
        }
        let header_ttl = bundle_ttl.unwrap_or(message.ttl);
        let ttl = (arrival.ttl.unwrap_or(header_ttl), header_ttl);
        self.dispatch(now, arrival, neighbour, ttl, message);
    }

    fn dispatch(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        neighbour: IpAddr,
        ttl: (u8, u8),
        message: Message,
    ) {
        let (interface, id) = (arrival.interface, message.id);
        // What installs state is acknowledged where that is done, in the order of numbers.
        if !matches!(message.body, Body::Path(_) | Body::Resv(_)) {
            self.acknowledge(now, neighbour, id);
        }
        match message.body {
            Body::Path(path) => {
                self.on_path(now, ArrivedPath { interface, ttl, id, passed_on: message.passed_on, path });
            }
            Body::Resv(resv) => self.on_resv(now, ArrivedResv { id, passed_on: message.passed_on, resv }),
            Body::PathTear(tear) => self.on_path_tear(now, interface, id, &tear),
            Body::ResvTear(tear) => self.on_resv_tear(now, id, &tear),
            Body::PathErr(ref error) => self.on_path_error(now, error.clone(), &message),
            Body::ResvErr(error) => self.on_resv_error(now, interface, &error),
            Body::ResvConf(_) => self.on_confirmation(now, Message { ttl: ttl.0, ..message }),
            Body::Srefresh(lists) => self.on_summary(now, neighbour, arrival.destination, &lists),
            Body::IntegrityChallenge(challenge) => {
                self.on_challenge(now, interface, arrival.source, challenge);
            }
            Body::Ack | Body::IntegrityResponse(_) | Body::Bundle(_) => {}
        }
    }

    /// Whether a message may be believed (RFC 2747 section 4.2).
    fn is_authentic(&mut self, now: Instant, arrival: &Arrival<'_>) -> bool {
        let Some(guard) = self.interfaces.get_mut(&arrival.interface).and_then(|place| place.guard.as_mut())
        else {
            return true;
        };
        let kind = arrival.bytes.get(1).copied();
        if kind == Some(Kind::IntegrityChallenge as u8) {
            return true;
        }
        let Ok(sender) = sender_of(arrival.bytes, arrival.source) else {
            self.stats.malformed += 1;
            return false;
        };
        let verdict = match Message::decode(arrival.bytes).map(|message| message.body) {
            Ok(Body::IntegrityResponse(answer)) => guard.check_response(now, sender, arrival.bytes, &answer),
            _ => guard.check(now, sender, arrival.bytes),
        };
        self.stats.count_verdict(verdict);
        if let Verdict::Challenge(challenge) = verdict {
            let message = Message::new(self.params.ttl, Body::IntegrityChallenge(challenge));
            self.transmit(now, arrival.interface, Target::Neighbour(sender), message);
        }
        verdict == Verdict::Accept
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

/// The neighbour that has sent a message, from its `RSVP_HOP` object.
const fn neighbour_of(body: &Body) -> Option<IpAddr> {
    match body {
        Body::Path(path) => Some(path.hop.address),
        Body::PathTear(tear) => Some(tear.hop.address),
        Body::Resv(resv) => Some(resv.hop.address),
        Body::ResvTear(tear) => Some(tear.hop.address),
        Body::ResvErr(error) => Some(error.hop.address),
        _ => None,
    }
}
