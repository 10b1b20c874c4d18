//! Measurement of the traffic that an end sends.

use super::MonitorParams;
use super::measures::{saturating_sum, throughput};
use super::schedule::Schedule;
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Duration, Instant, Rate};

/// Traffic sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Messages.
    pub messages: u64,
    /// Their bytes, without the connection's overhead.
    pub bytes: u64,
    /// Time in which the application was held back: it had to wait for room in a queue, or for its turn by
    /// the rate.
    pub held: Duration,
}

/// Traffic sent in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentInterval {
    /// Begin of the interval.
    pub since: Instant,
    /// End of the interval.
    pub until: Instant,
    /// Traffic sent in the interval.
    pub sent: Sent,
}

/// Messages that the sending application offered, and the time in which it was not held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedMessages {
    /// Messages sent.
    pub messages: u64,
    /// The time in which the application could send them.
    pub time: Duration,
}

impl OfferedMessages {
    /// Returns whether the application offered at least this rate, messages/s. The limits of an interval fall
    /// anywhere between two messages, so one message too few is none too few.
    pub fn reaches(&self, rate: f64) -> bool {
        self.messages as f64 + 1.0 >= rate * self.time.as_secs_f64()
    }

    /// Returns whether the application offered nothing, although it could have.
    pub const fn is_nothing(&self) -> bool {
        self.messages == 0 && !self.time.is_zero()
    }
}

impl SentInterval {
    /// Returns the demand of the application in the interval.
    pub fn demand(&self) -> OfferedMessages {
        let time = self.until.saturating_since(self.since).saturating_sub(self.sent.held);
        OfferedMessages { messages: self.sent.messages, time }
    }

    /// The throughput of the sent messages.
    pub fn throughput(&self) -> Rate {
        throughput(self.sent.bytes, self.until.saturating_since(self.since))
    }
}

/// Measurement of one direction that this end sends.
#[derive(Clone, Debug)]
pub struct Departures {
    schedule: Schedule,
    total: Sent,
    /// The total when the interval under way began.
    before: Sent,
    /// Begin of the time in which the application is held back, as far as it has not been counted.
    held_since: Option<Instant>,
    last: Option<SentInterval>,
}

impl Departures {
    /// Nothing has been sent yet. The first interval begins now.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(now: Instant, params: &MonitorParams) -> Result<Self, ParameterError> {
        params.validate()?;
        let schedule = Schedule::new(now, params.interval);
        Ok(Self { schedule, total: Sent::default(), before: Sent::default(), held_since: None, last: None })
    }

    /// A message is sent.
    #[inline]
    pub fn on_send(&mut self, now: Instant, bytes: u64) {
        if now >= self.schedule.until() {
            self.on_deadline(now);
        }
        self.total.messages += 1;
        self.total.bytes = self.total.bytes.saturating_add(bytes);
    }

    /// Notes that the application must wait with sending from now on, until [`Departures::release`].
    pub fn hold(&mut self, now: Instant) {
        self.on_deadline(now);
        self.held_since.get_or_insert(now);
    }

    /// The application waits no longer.
    pub fn release(&mut self, now: Instant) {
        self.on_deadline(now);
        self.count_held(now);
        self.held_since = None;
    }

    /// Returns the time of the next call of [`Departures::on_deadline`].
    pub const fn deadline(&self) -> Instant {
        self.schedule.until()
    }

    /// Ends the interval that is over.
    pub fn on_deadline(&mut self, now: Instant) {
        for (since, until) in self.schedule.end(now).into_iter().flatten() {
            self.count_held(until);
            let sent = Sent {
                messages: self.total.messages - self.before.messages,
                bytes: self.total.bytes - self.before.bytes,
                held: self.total.held - self.before.held,
            };
            self.before = self.total;
            self.last = Some(SentInterval { since, until, sent });
        }
    }

    /// Counts the time for which the application has been held back until now.
    fn count_held(&mut self, now: Instant) {
        if let Some(since) = self.held_since.filter(|since| *since < now) {
            self.total.held = saturating_sum(self.total.held, now - since);
            self.held_since = Some(now);
        }
    }

    /// Returns the traffic sent since the beginning.
    pub const fn total(&self) -> Sent {
        self.total
    }

    /// Returns the traffic sent until the end of the last interval.
    pub(super) const fn at_last(&self) -> Sent {
        self.before
    }

    /// The last interval that is over; `None` before the first.
    pub const fn last(&self) -> Option<&SentInterval> {
        self.last.as_ref()
    }
}
