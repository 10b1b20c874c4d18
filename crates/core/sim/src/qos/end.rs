//! An end of a QoS connection: its session, and the driver of the session.

use super::driver::Driver;
use super::record::{EndRecord, QosLog, QosRecord};
use super::{Beginning, LOWER_HEADERS, QosConnection, Side};
use crate::agent::{Address, Context, OutboundMessage};
use cutline_quality::spec::Specification;
use cutline_signal::mib::LocalFeedback;
use cutline_signal::monitor::Delivery;
use cutline_signal::session::{Opening, Outbound, Purpose};
use cutline_units::{Instant, Rate};
use std::sync::Arc;

/// An end of a connection.
pub(super) struct End {
    beginning: Beginning,
    peer: Address,
    log: QosLog,
    /// `None` before it begins.
    driver: Option<Driver>,
    feedback: LocalFeedback,
    /// Time of the next record of the MIB.
    next_sample: Instant,
}

impl End {
    pub(super) fn new(beginning: Beginning, peer: Address, log: QosLog) -> Self {
        let QosConnection { start, sample, .. } = *beginning.connection;
        Self {
            peer,
            log,
            driver: None,
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
        self.driver.is_some()
    }

    /// Begins the session.
    pub(super) fn begin(&mut self, now: Instant, context: &mut Context<'_>) {
        let clock = self.clock(now);
        let session = self.beginning.session(clock);
        let QosConnection { hint, ref send, .. } = *self.beginning.connection;
        self.driver = Some(Driver::new(session, clock, hint, send.clone()));
        self.act(now, context, |_, _| {});
    }

    /// Returns whether the application may send: both ends agree, or the other one takes no part.
    pub(super) fn may_send(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| !driver.session.is_joining())
    }

    /// The rate of the application, messages/s.
    pub(super) fn rate(&self) -> f64 {
        self.driver.as_ref().and_then(Driver::rate).expect("the specification has a rate")
    }

    /// The length of the application's messages, bytes.
    pub(super) fn message_size(&self) -> u64 {
        let size = self.driver.as_ref().and_then(|driver| driver.effective().size);
        size.expect("the specification has a size").get()
    }

    pub(super) const fn log(&self) -> &QosLog {
        &self.log
    }

    pub(super) const fn feedback(&mut self) -> &mut LocalFeedback {
        &mut self.feedback
    }

    /// Returns the sending direction, and the token of messages.
    pub(super) fn outbound(&mut self) -> Option<(&mut Outbound, Option<u32>)> {
        self.driver.as_mut().map(|driver| (&mut driver.out, driver.session.token()))
    }

    /// Sends a datagram.
    pub(super) fn send(&self, bytes: impl Into<Arc<[u8]>>, context: &mut Context<'_>) {
        let payload = bytes.into();
        let size = payload.len() as u32 + LOWER_HEADERS;
        let hint = self.driver.as_ref().map_or(self.connection().hint, Driver::hint);
        context.send(OutboundMessage { to: self.peer, size, hint, payload });
    }

    /// Takes a datagram. Returns the offset of the application's message in it, if it has a new one.
    pub(super) fn take(&mut self, now: Instant, bytes: &[u8], context: &mut Context<'_>) -> Option<usize> {
        let clock = self.clock(now);
        let Driver { session, out, inbound, .. } = self.driver.as_mut()?;
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
        let Driver { session, out, inbound, .. } = self.driver.as_mut()?;
        match inbound.on_datagram(clock, bytes, session.participation()) {
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

    /// The effective specification of the traffic that this end sends.
    pub(super) fn sending(&self) -> Option<&Specification> {
        self.driver.as_ref().map(|driver| driver.session.sending())
    }

    /// The traffic that the peer has reported last.
    pub(super) fn delivered(&self) -> Option<Delivery> {
        self.driver.as_ref().and_then(|driver| driver.session.delivered().copied())
    }

    /// The host lets this end send at most at this rate, of messages; `None` lifts the limit.
    pub(super) fn limit(&mut self, now: Instant, rate: Option<Rate>, context: &mut Context<'_>) {
        self.act(now, context, |clock, Driver { session, out, .. }| match rate {
            Some(rate) => session.allocate(clock, rate, out),
            None => session.deallocate(clock, "the manager of the host has no share".to_owned(), out),
        });
    }

    /// Returns the time of the next call of [`End::advance`].
    pub(super) fn deadline(&self) -> Instant {
        let due = |Driver { session, out, inbound, .. }: &Driver| session.deadline(out, inbound);
        let session = self.driver.as_ref().map(|driver| self.simulated(due(driver)));
        session.map_or(Instant::FAR_FUTURE, |session| session.min(self.next_sample))
    }

    /// Handles a due deadline.
    pub(super) fn advance(&mut self, now: Instant, context: &mut Context<'_>) {
        self.act(now, context, |clock, Driver { session, out, inbound, .. }| {
            if session.deadline(out, inbound) <= clock {
                session.advance(clock, out, inbound);
            }
        });
        if now >= self.next_sample {
            self.sample(now);
        }
    }

    /// Runs a call on the session, then sends its messages, and handles its events.
    fn act(&mut self, now: Instant, context: &mut Context<'_>, act: impl FnOnce(Instant, &mut Driver)) {
        let clock = self.clock(now);
        let Some(driver) = &mut self.driver else { return };
        act(clock, driver);
        while let Some(bytes) = self.driver.as_mut().and_then(Driver::transmit) {
            self.send(bytes, context);
        }
        while let Some(event) = self.driver.as_mut().and_then(Driver::event) {
            self.note(|record| record.events.push((now, event)));
        }
    }

    /// Records the MIB.
    fn sample(&mut self, now: Instant) {
        self.next_sample = now.saturating_add(self.connection().sample);
        let clock = self.clock(now);
        if let Some(Driver { session, out, inbound, .. }) = &self.driver {
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
