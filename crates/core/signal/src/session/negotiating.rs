//! Negotiation in a session: offers and answers of both ends, and requests for something else.

use super::trace::Input;
use super::{ControlKind, Inbound, Opening, Outbound, Participation, Session, SessionEvent, Side};
use crate::frame::{self, Frame};
use crate::negotiation::{Agreed, Negotiation, NegotiationEvent, OneSidedReason};
use crate::operation::{DEPENDENT, Operation};
use crate::rate_control::RateControl;
use crate::renegotiation::{IntervalObservation, Renegotiation};
use cutline_quality::spec::{ConnectionSpecification, Measure, Region, Specification};
use cutline_units::Instant;

impl Session {
    /// Returns the present specification of this end.
    pub fn specification(&self) -> ConnectionSpecification {
        match &self.negotiation {
            Some(negotiation) => negotiation.ours().clone(),
            None => ConnectionSpecification {
                send: self.send.contract.effective.clone(),
                receive: self.receive.contract.effective.clone(),
                profile: None,
            },
        }
    }

    /// Requests another specification from the peer. An end that is alone adopts it at once.
    pub fn renegotiate(&mut self, now: Instant, specification: ConnectionSpecification, out: &mut Outbound) {
        let recorded = self.recorder.is_some().then(|| Box::new(specification.clone()));
        self.ask(now, specification, out);
        if let Some(specification) = recorded {
            self.note(now, || Input::Renegotiate(specification));
        }
    }

    fn ask(&mut self, now: Instant, specification: ConnectionSpecification, out: &mut Outbound) {
        if let Some(renegotiation) = &mut self.renegotiation {
            renegotiation.restart(now, specification.clone());
        }
        if let (Participation::Joined(_) | Participation::Joining, Some(negotiation)) =
            (self.participation, &mut self.negotiation)
        {
            negotiation.renegotiate(now, specification);
            self.collect();
            return;
        }
        out.renegotiate(&specification.send);
        for (side, effective) in
            [(&mut self.send, specification.send), (&mut self.receive, specification.receive)]
        {
            side.watch.renegotiate(now, &effective);
            side.contract.effective = effective;
        }
    }

    /// Returns whether a datagram belongs to another session than this one, which has been agreed on. A new process at the peer's
    /// address sends such datagrams, and so does one there that does not know that this session has taken the place of its own.
    pub fn is_of_another(&self, datagram: &[u8]) -> bool {
        let Some(token) = self.token() else { return false };
        match frame::token_of(datagram) {
            Some(theirs) => theirs != token,
            None => self.negotiation.as_ref().is_some_and(|ours| ours.is_of_another_session(datagram)),
        }
    }

    /// Handles a message of a negotiation.
    pub fn on_negotiation(&mut self, now: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        // An end that was left alone sends plain messages, and a late answer would be one too many among them.
        if let Some(negotiation) =
            self.negotiation.as_mut().filter(|_| self.participation != Participation::Alone)
        {
            negotiation.on_message(now, bytes);
            self.settle(now, out, inbound);
        }
        self.note(now, || Input::Control(ControlKind::Negotiation, bytes.to_vec()));
    }

    /// Handles a datagram at a responder, while it is unknown whether the peer takes part.
    ///
    /// Of a [message](Opening::Confirmed) the caller has to [take](Inbound::on_datagram) the datagram then. After a
    /// [foreign](Opening::Foreign) one nothing has changed: the caller calls [`Session::on_foreign`] or forgets the session.
    pub fn on_opening(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Outbound,
        inbound: &mut Inbound,
    ) -> Opening {
        if frame::datagram(datagram, None) == Frame::Negotiation {
            self.on_negotiation(now, datagram, out, inbound);
            return Opening::Negotiation;
        }
        if self.confirm_by(now, datagram, out, inbound) { Opening::Confirmed } else { Opening::Foreign }
    }

    /// Agrees if a datagram has the token of this session, as if the peer's confirmation had come. Returns whether it has.
    fn confirm_by(
        &mut self,
        now: Instant,
        datagram: &[u8],
        out: &mut Outbound,
        inbound: &mut Inbound,
    ) -> bool {
        let Some(negotiation) =
            self.negotiation.as_mut().filter(|_| matches!(self.participation, Participation::Joining))
        else {
            return false;
        };
        let token = negotiation.token();
        let is_of_session = token.is_some_and(|token| {
            matches!(
                frame::datagram(datagram, Some(token)),
                Frame::Data { .. } | Frame::Report | Frame::Feedback
            )
        });
        if is_of_session {
            negotiation.on_token(now);
            self.settle(now, out, inbound);
            self.note(now, || Input::Confirmation(datagram.to_vec()));
        }
        is_of_session
    }

    /// Ends a negotiation because the peer sends something else.
    pub fn on_foreign(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_foreign(now);
        }
        if self.is_joining() {
            self.leave(now, OneSidedReason::Foreign, inbound);
        }
        self.settle(now, out, inbound);
        self.note(now, || Input::Foreign);
    }

    /// Requests another specification when that is due.
    pub(super) fn reconsider(&mut self, now: Instant, out: &mut Outbound) {
        let Some(better) = self.renegotiation.as_ref().map(Renegotiation::better) else { return };
        let observation = self.observation(better);
        let (Some(renegotiation), Some(negotiation)) = (&mut self.renegotiation, &mut self.negotiation)
        else {
            return;
        };
        if negotiation.is_under_way() {
            return;
        }
        if let Some((place, specification)) = renegotiation.on_interval(now, &observation) {
            let send = &specification.send;
            let least = send.min_rate.or(send.max_rate);
            negotiation.renegotiate(now, specification.clone());
            let least = least.filter(|_| renegotiation.is_asking_for_less());
            self.tell(SessionEvent::Requested(place));
            if let Some(rate) = least {
                out.set_rate(rate);
                self.tell(SessionEvent::Rate(rate));
            }
        }
    }

    /// Restores the rate of the effective specification after a request was refused or not answered.
    fn resume(&mut self, out: &mut Outbound, end: impl FnOnce(&mut Renegotiation)) {
        let Some(renegotiation) = &mut self.renegotiation else { return };
        let was_less = renegotiation.is_asking_for_less();
        end(renegotiation);
        if was_less {
            out.renegotiate(&self.send.contract.effective);
            let target = self.operation.as_ref().map(Operation::target);
            if let Some(rate) = target {
                out.set_rate(rate);
            }
            if let Some(rate) = target.or(self.send.contract.effective.max_rate) {
                self.tell(SessionEvent::Rate(rate));
            }
        }
    }

    /// Returns the observation of the last interval, for the effective and for a better specification.
    fn observation(&self, better: Option<&ConnectionSpecification>) -> IntervalObservation {
        let sides = [
            (&self.send, better.map(|better| &better.send)),
            (&self.receive, better.map(|better| &better.receive)),
        ];
        let sent = self.send.watch.violations().filter_map(|violation| {
            self.beyond_mending(violation.measure).map(|since| since.max(violation.since))
        });
        let received = self.receive.watch.violations().map(|violation| violation.since);
        let headroom = |(side, better): &(&Side, Option<&Specification>)| {
            let (region, assessment) = (Region::new((*better)?), side.watch.assessment());
            let position = |measure| {
                let (axis, judged) = (region.axis(measure)?, assessment.get(measure)?);
                Some(axis.position(judged.value))
            };
            DEPENDENT.into_iter().filter_map(position).reduce(f64::min)
        };
        let is_violated = sides.iter().any(|(side, _)| side.watch.violations().next().is_some());
        // Up to the best rate that holds, the network's capacity is known.
        let least = better.and_then(|better| better.send.min_rate);
        let is_slow = self
            .operation
            .as_ref()
            .zip(least)
            .is_some_and(|(operation, least)| operation.position() < 1.0 && operation.target() < least);
        IntervalObservation {
            violated_since: sent.chain(received).min(),
            headroom: sides.iter().filter_map(headroom).reduce(f64::min),
            is_short: is_violated || is_slow,
        }
    }

    /// Returns the time since which neither rate nor hint can improve a measure of the traffic that this end
    /// sends; `None` if one of them still can.
    fn beyond_mending(&self, measure: Measure) -> Option<Instant> {
        let hint_helps = self.hint.as_ref().zip(self.params.policies.adapt_hint.as_ref()).is_some_and(
            |(control, (_, params))| {
                let is_bound = match measure {
                    Measure::Loss => control.hint() == params.bits.largest(),
                    Measure::Delay | Measure::Jitter => control.hint().level() == 1,
                    Measure::Rate | Measure::Gap | Measure::Recovery => true,
                };
                !control.is_at_rest() && !is_bound
            },
        );
        match &self.operation {
            _ if hint_helps => None,
            Some(operation) if DEPENDENT.contains(&measure) => operation.worst_since(),
            Some(_) | None => Some(Instant::ZERO),
        }
    }

    /// Takes the result of a negotiation.
    pub(super) fn settle(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        while let Some(event) = self.negotiation.as_mut().and_then(Negotiation::event) {
            match event {
                NegotiationEvent::Agreed(agreed) => self.agree(now, agreed, out, inbound),
                NegotiationEvent::Refused { send, receive } => {
                    self.tell(SessionEvent::Refused { send, receive });
                    self.resume(out, |renegotiation| renegotiation.on_refused(now));
                }
                NegotiationEvent::OneSided(reason) => {
                    self.leave(now, reason, inbound);
                    self.resume(out, |renegotiation| renegotiation.on_no_answer(now));
                }
            }
        }
        self.collect();
    }

    fn agree(&mut self, now: Instant, agreed: Box<Agreed>, out: &mut Outbound, inbound: &mut Inbound) {
        self.send.agree(now, &agreed.send);
        self.receive.agree(now, &agreed.receive);
        let token = self.negotiation.as_ref().and_then(Negotiation::token);
        if let (Participation::Joining, Some(token)) = (self.participation, token) {
            (self.participation, self.heard) = (Participation::Joined(token), now);
            self.contact.hear(now);
            (*out, *inbound) = self.new_directions(now);
            if let RateControl::Tfrc(params) = &self.params.rate_control {
                out.control_rate(now, params);
            }
            self.next = inbound.arrivals.deadline();
        } else {
            out.renegotiate(&agreed.send.effective);
        }
        inbound.set_size(agreed.receive.effective.size);
        if let Some(control) = &mut self.hint {
            control.set_loss_limit(agreed.send.effective.loss.map(|percent| percent / 100.0));
        }
        if let Some(params) = &self.params.policies.adapt_rate {
            let region = Region::new(&agreed.send.effective);
            self.operation = Operation::new(now, &region, params.clone()).ok().flatten();
        }
        if let (Some(renegotiation), Some(negotiation)) = (&mut self.renegotiation, &self.negotiation) {
            renegotiation.on_agreed(now, negotiation.ours());
        }
        self.tell(SessionEvent::Agreed(agreed));
    }

    /// The peer takes no part. One that has taken part before continues to be measured.
    fn leave(&mut self, now: Instant, reason: OneSidedReason, inbound: &mut Inbound) {
        if self.is_joining() {
            self.participation = Participation::Alone;
            // The application of the peer had nothing to send before.
            inbound.arrivals.restart(now);
            self.next = inbound.arrivals.deadline();
        }
        self.tell(SessionEvent::OneSided(reason));
    }
}
