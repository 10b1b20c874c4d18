//! An end of a QoS connection: its session, and how that is driven.

use super::record::{EndRecord, QosLog, QosRecord};
use super::{Beginning, LOWER_HEADERS, QosConnection, Side};
use crate::agent::{Address, Context, Outbound as AgentMessage};
use cutline_quality::spec::Specification;
use cutline_signal::mib::LocalFeedback;
use cutline_signal::session::{Event, Inbound, Opening, Outbound, Purpose, Session};
use cutline_units::{Hint, Instant};
use std::sync::Arc;

/// A session that has begun, with its two directions.
struct Running {
    session: Session,
    out: Outbound,
    inbound: Inbound,
}

/// An end of a connection.
pub(super) struct End {
    beginning: Beginning,
    peer: Address,
    log: QosLog,
    /// `None` before it begins.
    running: Option<Running>,
    hint: Hint,
    /// What holds of what this end sends.
    effective: Specification,
    /// The rate at which the application should send, messages/s, if the session asks for one.
    target: Option<f64>,
    feedback: LocalFeedback,
    /// When the MIB is recorded.
    next_sample: Instant,
}

impl End {
    pub(super) fn new(beginning: Beginning, peer: Address, log: QosLog) -> Self {
        let QosConnection { hint, ref send, start, sample, .. } = *beginning.connection;
        Self {
            peer,
            log,
            running: None,
            hint,
            effective: send.clone(),
            target: None,
            feedback: LocalFeedback::default(),
            next_sample: start.saturating_add(sample),
            beginning,
        }
    }

    pub(super) fn connection(&self) -> &QosConnection {
        &self.beginning.connection
    }

    /// The time by this end's clock.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        match self.beginning.side {
            Side::Source => now,
            Side::Sink => now.saturating_add(self.connection().clock_ahead),
        }
    }

    /// The time of the simulation at a time of this end's clock.
    fn simulated(&self, clock: Instant) -> Instant {
        if clock == Instant::FAR_FUTURE || self.beginning.side == Side::Source {
            return clock;
        }
        Instant::ZERO + clock.saturating_since(Instant::ZERO + self.connection().clock_ahead)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Begins the session.
    pub(super) fn begin(&mut self, now: Instant, context: &mut Context<'_>) {
        let clock = self.clock(now);
        let session = self.beginning.session(clock);
        let (out, inbound) = session.directions(clock);
        self.hint = session.hint().unwrap_or(self.hint);
        self.running = Some(Running { session, out, inbound });
        self.act(now, context, |_, _| {});
    }

    /// Whether the application may send: both ends agree, or the other one takes no part.
    pub(super) fn may_send(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.session.is_joining())
    }

    /// The rate of the application, messages/s.
    pub(super) fn rate(&self) -> f64 {
        self.target.or(self.effective.max_rate).expect("the specification has a rate")
    }

    /// The length of the application's messages, bytes.
    pub(super) fn message_size(&self) -> u64 {
        self.effective.size.expect("the specification has a size").get()
    }

    pub(super) const fn log(&self) -> &QosLog {
        &self.log
    }

    pub(super) const fn feedback(&mut self) -> &mut LocalFeedback {
        &mut self.feedback
    }

    /// What this end sends, and the token of messages.
    pub(super) fn outbound(&mut self) -> Option<(&mut Outbound, Option<u32>)> {
        self.running.as_mut().map(|running| (&mut running.out, running.session.token()))
    }

    /// Sends a datagram.
    pub(super) fn send(&self, bytes: impl Into<Arc<[u8]>>, context: &mut Context<'_>) {
        let payload = bytes.into();
        let size = payload.len() as u32 + LOWER_HEADERS;
        context.send(AgentMessage { to: self.peer, size, hint: self.hint, payload });
    }

    /// Takes a datagram. Returns where in it the application's message begins, if it has a new one.
    pub(super) fn take(&mut self, now: Instant, bytes: &[u8], context: &mut Context<'_>) -> Option<usize> {
        let clock = self.clock(now);
        let Running { session, out, inbound } = self.running.as_mut()?;
        if session.is_joining() {
            let opening = session.on_opening(clock, bytes, out, inbound);
            if opening == Opening::Foreign {
                session.on_foreign(clock, out, inbound);
            }
            self.act(now, context, |_, _| {});
            if opening == Opening::Negotiation {
                return None;
            }
        }
        let Running { session, out, inbound } = self.running.as_mut()?;
        match inbound.on_datagram(clock, bytes, session.standing()) {
            Purpose::Message(begin) => {
                if inbound.feedback_due() <= clock {
                    session.advance(clock, out, inbound);
                    self.act(now, context, |_, _| {});
                }
                return Some(begin);
            }
            Purpose::Control(control) => session.on_control(clock, control, bytes, out, inbound),
            Purpose::Nothing => {}
        }
        self.act(now, context, |_, _| {});
        None
    }

    /// When [`End::advance`] is to be called.
    pub(super) fn deadline(&self) -> Instant {
        let due = |Running { session, out, inbound }: &Running| session.deadline(out, inbound);
        let session = self.running.as_ref().map(|running| self.simulated(due(running)));
        session.map_or(Instant::FAR_FUTURE, |session| session.min(self.next_sample))
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, now: Instant, context: &mut Context<'_>) {
        self.act(now, context, |clock, Running { session, out, inbound }| {
            if session.deadline(out, inbound) <= clock {
                session.advance(clock, out, inbound);
            }
        });
        if now >= self.next_sample {
            self.sample(now);
        }
    }

    /// Lets the session do something, and then sends what it has to send, and follows what it tells.
    fn act(&mut self, now: Instant, context: &mut Context<'_>, act: impl FnOnce(Instant, &mut Running)) {
        let clock = self.clock(now);
        let Some(running) = &mut self.running else { return };
        act(clock, running);
        let messages: Vec<_> = std::iter::from_fn(|| running.session.transmit()).collect();
        let events: Vec<_> = std::iter::from_fn(|| running.session.event()).collect();
        for bytes in messages {
            self.send(bytes, context);
        }
        for event in events {
            match &event {
                Event::Agreed(agreed) => {
                    self.effective = agreed.send.effective.clone();
                    self.target = None;
                }
                Event::Hint(hint) => self.hint = *hint,
                Event::Rate(rate) => self.target = Some(*rate),
                Event::Refused { .. }
                | Event::OneSided(_)
                | Event::Asked(_)
                | Event::Violated(..)
                | Event::Restored { .. }
                | Event::Lost { .. }
                | Event::Recovered { .. }
                | Event::GaveUp { .. } => {}
            }
            self.note(|record| record.events.push((now, event)));
        }
    }

    /// Records the MIB.
    fn sample(&mut self, now: Instant) {
        self.next_sample = now.saturating_add(self.connection().sample);
        let clock = self.clock(now);
        if let Some(Running { session, out, inbound }) = &self.running {
            let mib = session.mib(clock, (out, inbound), (self.feedback, None));
            self.note(|record| record.mibs.push(mib));
        }
    }

    /// Notes something in this end's record.
    fn note(&self, note: impl FnOnce(&mut EndRecord)) {
        let QosRecord { source, sink, .. } = &mut *self.log.lock();
        note(match self.beginning.side {
            Side::Source => source,
            Side::Sink => sink,
        });
    }
}
