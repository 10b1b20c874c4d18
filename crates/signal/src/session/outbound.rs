//! What an end sends: numbers, pacing, counters.

use super::CHECKED;
use crate::monitor::{Departures, MonitorParams};
use crate::pacing::Pacer;
use cutline_quality::spec::Specification;
use cutline_units::{Bytes, Instant, Rate};

/// What an end sends.
#[derive(Clone, Debug)]
pub struct Outbound {
    pub(super) departures: Departures,
    pacer: Pacer,
    /// What holds.
    effective: Specification,
    /// The rate at which the application should send, messages/s, if the rate adapts.
    rate: Option<f64>,
}

impl Outbound {
    pub(super) fn new(now: Instant, monitor: &MonitorParams, effective: &Specification) -> Self {
        let departures = Departures::new(now, monitor).expect(CHECKED);
        Self { departures, pacer: Pacer::new(effective), effective: effective.clone(), rate: None }
    }

    /// Another specification holds from now on.
    pub(super) fn renegotiate(&mut self, effective: &Specification) {
        self.pacer.renegotiate(effective);
        self.effective = effective.clone();
        self.rate = None;
    }

    /// The application should send at this rate, messages/s.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.pacer.set_rate(&self.effective, rate);
        self.rate = Some(rate);
    }

    /// The number of the next message.
    #[inline]
    pub const fn number(&self) -> u64 {
        self.departures.total().messages
    }

    /// When the next message may be sent: `now`, or a later time.
    #[inline]
    pub fn ready_at(&self, now: Instant) -> Instant {
        self.pacer.ready_at(now)
    }

    /// The highest throughput at which messages may be sent, for who paces bytes instead of messages; `None` if there is none.
    pub fn throughput(&self) -> Option<Rate> {
        let Self { effective, rate, .. } = self;
        let highest = match rate {
            Some(rate) => Specification { max_rate: Some(*rate), ..effective.clone() }.max_throughput(),
            None => effective.peak_throughput(),
        };
        highest.or_else(|| effective.max_throughput())
    }

    /// The longest message that was agreed on, bytes; `None` if any length is allowed.
    #[inline]
    pub fn longest(&self) -> Option<u64> {
        self.effective.size.map(Bytes::get)
    }

    /// A message was sent.
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        self.departures.on_send(now, bytes);
        self.pacer.on_send(now, bytes);
    }

    /// The application wants to send and has to wait from now on, until [`Outbound::release`].
    pub fn hold(&mut self, now: Instant) {
        self.departures.hold(now);
    }

    /// The application waits no longer.
    pub fn release(&mut self, now: Instant) {
        self.departures.release(now);
    }
}
