//! Reports and deadlines of a session: intervals, feedback, the silence of the peer, a lost connection.

use super::trace::Input;
use super::{Cause, ControlKind, Inbound, MISSED, Outbound, Participation, Session, SessionEvent};
use crate::frame;
use crate::monitor::{Report, SentInterval};
use crate::negotiation::Carrier;
use crate::rate_control::FeedbackMessage;
use crate::renegotiation::Renegotiation;
use cutline_units::{Duration, Instant};

impl Session {
    /// Continues alone because the peer has not answered so far. A later answer changes nothing.
    pub fn on_silence(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_silence(now);
        }
        self.settle(now, out, inbound);
        self.note(now, || Input::Silence);
    }

    /// Handles a report that has arrived, with its header and its tag.
    pub fn on_report(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        self.take_report(arrived, bytes, out, inbound);
        self.note(arrived, || Input::Control(ControlKind::Report, bytes.to_vec()));
    }

    fn take_report(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound, inbound: &mut Inbound) {
        let authentic = self.negotiation.as_ref().and_then(|negotiation| negotiation.authentic(bytes));
        let Some(report) = authentic.map(frame::report_content).and_then(Report::decode) else {
            self.peer.refuse();
            return;
        };
        let (stamps, delay_error, hint_report) = (report.stamps, report.delay_error, report.for_hint());
        let (theirs, sent) = (report.sent.messages, out.most_sent());
        let exchange = self.stamper.on_stamps(arrived, &stamps);
        let mut clock = self.clock.clone();
        if let Some(exchange) = exchange {
            clock.add(&exchange);
        }
        let Ok(delivery) = self.peer.accept(arrived, report, sent, clock.estimate(arrived)) else { return };
        (self.clock, self.heard) = (clock, arrived);
        self.contact.on_report(arrived, delivery.length());
        inbound.offset = self.clock.estimate(arrived).map(|estimate| estimate.offset);
        inbound.arrivals.on_sent(arrived, theirs);
        let demand = out.departures.last().map(SentInterval::demand);
        let assessment = self.send.watch.on_interval(&delivery, delay_error, demand);
        if let Some(control) = &mut self.hint {
            let before = control.hint();
            let hint = control.on_report(arrived, &hint_report, sent.messages);
            if hint != before {
                self.tell(SessionEvent::Hint(hint));
            }
        }
        let is_asking = self.renegotiation.as_ref().is_some_and(Renegotiation::is_asking_for_less);
        if let Some(operation) = self.operation.as_mut().filter(|_| !is_asking) {
            let before = operation.target();
            let demand = demand.unwrap_or_else(|| delivery.demand());
            let rate = operation.on_interval(arrived, &delivery, demand, &assessment);
            if rate.total_cmp(&before).is_ne() {
                out.set_rate(rate);
                self.tell(SessionEvent::Rate(rate));
            }
        }
        self.collect();
    }

    /// Handles feedback of rate control that has arrived, with its header and its tag.
    pub fn on_feedback(&mut self, arrived: Instant, bytes: &[u8], out: &mut Outbound) {
        let authentic = self.negotiation.as_ref().and_then(|negotiation| negotiation.authentic(bytes));
        let feedback = authentic.map(frame::report_content).and_then(FeedbackMessage::decode);
        if feedback.is_some() {
            self.contact.hear(arrived);
        }
        out.on_feedback(arrived, feedback);
        self.note(arrived, || Input::Control(ControlKind::Feedback, bytes.to_vec()));
    }

    /// Sends the feedback that is due.
    fn feed_back(&mut self, now: Instant, inbound: &mut Inbound) {
        if let (Participation::Joined(token), Some(negotiation)) = (self.participation, &self.negotiation)
            && let Some(feedback) = inbound.feedback(now)
        {
            let message = frame::feedback(token, &feedback.encode(), negotiation.tagger());
            self.post(message);
        }
    }

    /// Handles due deadlines: repeats unanswered messages, ends intervals, reports.
    pub fn advance(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        self.do_due(now, out, inbound);
        self.note(now, || Input::Advance);
    }

    fn do_due(&mut self, now: Instant, out: &mut Outbound, inbound: &mut Inbound) {
        if let Some(negotiation) = &mut self.negotiation {
            negotiation.on_deadline(now);
        }
        self.settle(now, out, inbound);
        out.on_deadline(now);
        self.feed_back(now, inbound);
        if self.is_joining() || now < self.next {
            return;
        }
        out.departures.on_deadline(now);
        inbound.arrivals.on_deadline(now);
        let clock = self.clock.estimate(now);
        inbound.offset = clock.map(|estimate| estimate.offset);
        let error = clock.map_or(Duration::ZERO, |estimate| estimate.error);
        while let Some(delivery) = inbound.arrivals.take() {
            self.receive.watch.on_interval(&delivery, error, self.peer.demand());
        }
        self.next = inbound.arrivals.deadline();
        let silence = now.saturating_since(self.heard);
        let is_silent = silence > self.params.monitor.interval * MISSED;
        if let (Participation::Joined(token), Some(negotiation)) = (self.participation, &self.negotiation) {
            if is_silent {
                self.send.watch.on_silence(now, silence, inbound.arrivals.is_unread());
            }
            self.reports += 1;
            let stamps = self.stamper.stamp(now);
            let report =
                Report::new(self.reports, &inbound.arrivals, &out.departures, clock, stamps).encode();
            let message = frame::report(token, &report, negotiation.tagger());
            self.post(message);
            // A silent end does not answer.
            if !is_silent {
                self.reconsider(now, out);
            }
            self.listen(now, out, inbound);
        }
        self.collect();
    }

    /// Notices that the peer has fallen silent, or sends again. In a stream, reports wait behind what the
    /// application does not read, so the owner of the socket has to notice it.
    fn listen(&mut self, now: Instant, out: &Outbound, inbound: &Inbound) {
        if self.carrier == Carrier::Stream {
            return;
        }
        let silence = self.contact.silence(now, inbound.arrivals.latest());
        if silence >= self.contact.limit(self.params.monitor.interval) {
            self.on_loss(now, Cause::Silence(silence), out.number());
        } else {
            self.on_contact(now);
        }
    }

    /// Returns the length of the peer's silence.
    pub fn silence(&self, now: Instant, inbound: &Inbound) -> Duration {
        self.contact.silence(now, inbound.arrivals.latest())
    }

    /// Returns the length of silence after which the connection counts as lost.
    pub fn longest_silence(&self) -> Duration {
        self.contact.limit(self.params.monitor.interval)
    }

    /// The connection is lost ([`SessionEvent::Lost`]), and so many messages were sent, unless that is known already.
    pub fn lose(&mut self, now: Instant, cause: Cause, sent: u64) {
        self.on_loss(now, cause.clone(), sent);
        self.note(now, || Input::Lose(cause, sent));
    }

    fn on_loss(&mut self, now: Instant, cause: Cause, sent: u64) {
        let silence = if let Cause::Silence(time) = &cause { *time } else { Duration::ZERO };
        let since = Instant::from_nanos(now.as_nanos().saturating_sub(silence.as_nanos()));
        if self.contact.lose(since, cause.clone()) {
            let reported = self.peer.last().map_or(0, |report| report.received.messages);
            self.tell(SessionEvent::Lost { cause, sent, reported });
        }
    }

    /// Notes the end of the peer's silence, if it was lost.
    pub fn find(&mut self, now: Instant) {
        self.on_contact(now);
        self.note(now, || Input::Find);
    }

    fn on_contact(&mut self, now: Instant) {
        if let Some(after) = self.contact.find(now) {
            self.tell(SessionEvent::Recovered { after, is_new: false });
        }
    }

    /// Returns the cause of the loss; `None` if the connection is not lost.
    pub fn lost(&self) -> Option<&Cause> {
        self.contact.lost()
    }
}
