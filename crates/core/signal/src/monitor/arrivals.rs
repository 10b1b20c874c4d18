//! Measurement of the traffic that an end receives.

use super::measures::{saturating_sum, throughput};
use super::schedule::{Schedule, Span};
use super::{MessageArrival, MonitorParams, Numbers, OfferedMessages};
use crate::clock::ClockOffset;
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Duration, Histogram, Instant, Rate};
use std::collections::VecDeque;

/// The longest delay and jitter that are measured; a longer one counts as this one. It bounds the effect of false time stamps.
pub const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// Largest number of intervals that wait to be taken. Of more, the oldest are forgotten.
const MOST_WAITING: usize = 64;
/// The number of values in a histogram above which the old ones begin to count less.
const MANY: u64 = 1 << 31;

/// Mean, quantile and worst of an interval's delays or jitters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The mean.
    pub mean: Duration,
    /// The quantile that is compared with the limit ([`MonitorParams::quantile`]).
    pub quantile: Duration,
    /// The worst.
    pub worst: Duration,
}

/// Traffic delivered in an interval, and its measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Begin of the interval.
    pub since: Instant,
    /// End of the interval.
    pub until: Instant,
    /// Messages that the sender has sent in it, as sequence numbers show.
    pub sent: u64,
    /// Messages received, without duplicates.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages lost: those sent less those received. Negative if messages arrived that had been counted as lost in an
    /// earlier interval.
    pub lost: i64,
    /// Messages of those received that came after one with a higher number.
    pub late: u64,
    /// Messages received that had been received before.
    pub duplicated: u64,
    /// The one-way delays; `None` if no message was received or the clock offset is unknown.
    pub delay: Option<Spread>,
    /// The jitters; `None` if there was none to measure.
    pub jitter: Option<Spread>,
    /// The longest time between two arrivals of which the later was in this interval, or from the last arrival to the end.
    /// Time in which the sender is known to have sent nothing does not count.
    pub gap: Duration,
    /// The time from the last arrival to the end of the interval. Time in which the sender is known to have sent nothing does
    /// not count.
    pub silence: Duration,
    /// Time of the interval in which data waited because the receiving application did not read.
    pub unread: Duration,
    /// Datagrams that the receiving host dropped because the receive buffer of the socket was full.
    pub overflowed: u64,
}

impl Delivery {
    /// Returns the length of the interval.
    pub const fn length(&self) -> Duration {
        self.until.saturating_since(self.since)
    }

    /// Messages received per second; 0 in no time.
    pub fn rate(&self) -> f64 {
        let seconds = self.length().as_secs_f64();
        if seconds > 0.0 { self.messages as f64 / seconds } else { 0.0 }
    }

    /// The throughput (QoSockets eq. 2).
    pub fn throughput(&self) -> Rate {
        throughput(self.bytes, self.length())
    }

    /// The loss, per cent (QoSockets eq. 3); 0 if more arrived than were sent. `None` if nothing was sent.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| (100.0 * self.lost as f64 / self.sent as f64).max(0.0))
    }

    /// Returns the demand of the sending application, as far as sequence numbers show it.
    pub const fn demand(&self) -> OfferedMessages {
        OfferedMessages { messages: self.sent, time: self.length() }
    }
}

/// A message that was received: delay and jitter are sampled per message (QoSockets eq. 4 and 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number that the sender gave it, from 0.
    pub number: u64,
    /// Time of arrival, by our clock.
    pub arrived: Instant,
    /// Its length without the connection's overhead.
    pub bytes: u64,
    /// Its one-way delay; `None` while the clock offset is unknown.
    pub delay: Option<Duration>,
    /// The change of delay since the message that arrived before it; `None` of the first one.
    pub jitter: Option<Duration>,
}

/// The samples that wait to be taken.
#[derive(Clone, Debug)]
struct Samples {
    waiting: VecDeque<Sample>,
    most: usize,
    forgotten: u64,
}

impl Samples {
    fn add(&mut self, sample: Sample) {
        if self.waiting.len() == self.most {
            self.waiting.pop_front();
            self.forgotten += 1;
        }
        self.waiting.push_back(sample);
    }
}

/// Traffic received since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Messages that have been sent, as sequence numbers show: the highest number plus one.
    pub expected: u64,
    /// Messages received, without duplicates; at most as many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages of them that came after one with a higher number.
    pub late: u64,
    /// Messages received that had been received before, or so long after others that this is unknown.
    pub duplicated: u64,
    /// Messages whose sequence number is impossible; they are not counted otherwise.
    pub impossible: u64,
    /// The sum of the delays.
    pub delay: Duration,
    /// Time in which data waited because the receiving application did not read.
    pub unread: Duration,
    /// Datagrams that the receiving host dropped because the receive buffer of the socket was full: messages, which are among
    /// the lost ones, and control messages.
    pub overflowed: u64,
}

impl Received {
    /// Messages lost.
    pub const fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.messages)
    }
}

/// Measurement of one direction that this end receives.
#[derive(Clone, Debug)]
pub struct Arrivals {
    quantile: f64,
    schedule: Schedule,
    began: Instant,
    numbers: Numbers,
    total: Received,
    /// The total when the interval under way began.
    before: Received,
    /// The difference between the last message's stamps, ns; clocks' offset included.
    transit: Option<u64>,
    /// Time at which the last message arrived, or at which the sender was last known to have sent nothing
    /// more.
    latest: Instant,
    /// The longest gap that ended in the interval under way.
    gap: Duration,
    delays: IntervalHistograms,
    jitters: IntervalHistograms,
    sent_before: u64,
    waiting: VecDeque<Delivery>,
    last: Option<Delivery>,
    samples: Option<Samples>,
    /// Begin of the time in which data wait for the application, as far as it has not been counted.
    unread_since: Option<Instant>,
}

/// Values of the interval under way, and of all those before it.
#[derive(Clone, Debug, Default)]
struct IntervalHistograms {
    now: Histogram,
    all: Histogram,
}

impl IntervalHistograms {
    fn record(&mut self, value: Duration) {
        self.now.record(value.min(LONGEST_DELAY));
    }

    /// Ends the interval, and returns its values' spread.
    fn end(&mut self, quantile: f64) -> Option<Spread> {
        let (mean, quantile) = (self.now.mean()?, self.now.quantile(quantile)?);
        let spread = Spread { mean, quantile, worst: self.now.max()? };
        if self.all.count() > MANY {
            self.all.halve();
        }
        self.all.merge(&self.now);
        self.now.clear();
        Some(spread)
    }
}

impl Arrivals {
    /// Returns a monitor that has received nothing. Its first interval begins now.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(now: Instant, params: &MonitorParams) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            quantile: params.quantile,
            schedule: Schedule::new(now, params.interval),
            began: now,
            numbers: Numbers::default(),
            total: Received::default(),
            before: Received::default(),
            transit: None,
            latest: now,
            gap: Duration::ZERO,
            delays: IntervalHistograms::default(),
            jitters: IntervalHistograms::default(),
            sent_before: 0,
            waiting: VecDeque::new(),
            last: None,
            samples: None,
            unread_since: None,
        })
    }

    /// Takes a message that arrived at a time of our clock, and was sent at a time of the sender's clock. `offset` is the
    /// sender's clock minus ours; while it is unknown, delays are not measured. `bytes` is its length without the overhead that the
    /// connection adds.
    ///
    /// Messages are to be given in the order of their arrival, and all that have arrived before
    /// [`Arrivals::on_deadline`] is called. An interval that is over by then ends.
    pub fn on_message(
        &mut self,
        arrived: Instant,
        number: u64,
        sent: Instant,
        bytes: u64,
        offset: Option<ClockOffset>,
    ) -> MessageArrival {
        if arrived >= self.schedule.until() {
            self.on_deadline(arrived);
        }
        let arrival = match self.numbers.arrive(number) {
            // None is missing, so this is too old to be remembered, but has been here.
            MessageArrival::Late if self.total.lost() == 0 => MessageArrival::Duplicate,
            arrival => arrival,
        };
        match arrival {
            MessageArrival::InOrder { .. } => self.total.expected = self.numbers.expected(),
            MessageArrival::Late => self.total.late += 1,
            MessageArrival::Duplicate => {
                self.total.duplicated += 1;
                return arrival;
            }
            MessageArrival::Impossible => {
                self.total.impossible += 1;
                return arrival;
            }
        }
        self.count(arrived, bytes);
        // QoSockets eq. 5. The clocks' offset is in both delays and cancels out.
        let transit = arrived.as_nanos().wrapping_sub(sent.as_nanos());
        let jitter = self.transit.replace(transit).map(|last| {
            let change = transit.wrapping_sub(last).cast_signed().unsigned_abs();
            Duration::from_nanos(change)
        });
        if let Some(jitter) = jitter {
            self.jitters.record(jitter);
        }
        // QoSockets eq. 4.
        let delay = offset.map(|offset| arrived.saturating_since(offset.ours(sent)).min(LONGEST_DELAY));
        if let Some(delay) = delay {
            self.delays.record(delay);
            self.total.delay = saturating_sum(self.total.delay, delay);
        }
        if let Some(samples) = &mut self.samples {
            let jitter = jitter.map(|jitter| jitter.min(LONGEST_DELAY));
            samples.add(Sample { number, arrived, bytes, delay, jitter });
        }
        arrival
    }

    /// Takes a message of an end that does not number its messages, nor gives their sending times. So losses, delays and jitter
    /// are not measured.
    pub fn on_plain(&mut self, arrived: Instant, bytes: u64) {
        if arrived >= self.schedule.until() {
            self.on_deadline(arrived);
        }
        self.numbers.arrive(self.total.expected);
        self.total.expected += 1;
        self.count(arrived, bytes);
    }

    /// Counts a message that is no duplicate.
    fn count(&mut self, arrived: Instant, bytes: u64) {
        if self.total.messages > 0 {
            self.gap = self.gap.max(arrived.saturating_since(self.latest));
        }
        self.latest = self.latest.max(arrived);
        self.total.messages += 1;
        self.total.bytes = self.total.bytes.saturating_add(bytes);
    }

    /// Takes the number of messages that the peer reports to have sent since the beginning, of which a message may still be under
    /// way. If it has sent nothing since its last report, or nothing that has not arrived, then the gap and the silence are
    /// its own, and start again.
    pub fn on_sent(&mut self, now: Instant, messages: u64) {
        if messages <= self.total.expected || messages == self.sent_before {
            self.latest = self.latest.max(now);
        }
        self.sent_before = messages;
    }

    /// Data wait for the application since then, until [`Arrivals::on_read`].
    pub fn on_unread(&mut self, since: Instant) {
        self.unread_since.get_or_insert(since.max(self.began));
    }

    /// The application has read everything.
    pub fn on_read(&mut self, now: Instant) {
        self.on_deadline(now);
        self.count_unread(now);
        self.unread_since = None;
    }

    /// Returns whether data wait for the application.
    pub const fn is_unread(&self) -> bool {
        self.unread_since.is_some()
    }

    /// Takes the number of datagrams that this host dropped before one that arrived at this time, because the receive buffer was full. The
    /// caller gives it before that datagram.
    pub fn on_overflow(&mut self, arrived: Instant, datagrams: u64) {
        if arrived >= self.schedule.until() {
            self.on_deadline(arrived);
        }
        self.total.overflowed = self.total.overflowed.saturating_add(datagrams);
    }

    fn count_unread(&mut self, now: Instant) {
        if let Some(since) = self.unread_since.filter(|since| *since < now) {
            self.total.unread = saturating_sum(self.total.unread, now - since);
            self.unread_since = Some(now);
        }
    }

    /// The first interval begins now. Data already received is in it, but no gap or silence from before.
    pub fn restart(&mut self, now: Instant) {
        self.schedule.restart(now);
        (self.latest, self.gap) = (self.latest.max(now), Duration::ZERO);
    }

    /// Returns the time of the next call of [`Arrivals::on_deadline`].
    pub const fn deadline(&self) -> Instant {
        self.schedule.until()
    }

    /// Ends the interval that is over.
    pub fn on_deadline(&mut self, now: Instant) {
        for span in self.schedule.end(now).into_iter().flatten() {
            self.end(span);
        }
    }

    /// Keeps a sample of each message from now on, at most so many until they are taken. Of more, the oldest are forgotten.
    pub fn sample(&mut self, most: usize) {
        self.samples = (most > 0).then(|| Samples { waiting: VecDeque::new(), most, forgotten: 0 });
    }

    /// Takes the samples that were kept, oldest first, and the number of those forgotten since the last call.
    pub fn take_samples(&mut self) -> (Vec<Sample>, u64) {
        let Some(samples) = &mut self.samples else { return (Vec::new(), 0) };
        (samples.waiting.drain(..).collect(), std::mem::take(&mut samples.forgotten))
    }

    /// The next interval that is over and has not been taken.
    pub fn take(&mut self) -> Option<Delivery> {
        self.waiting.pop_front()
    }

    /// The last interval that is over; `None` before the first.
    pub const fn last(&self) -> Option<&Delivery> {
        self.last.as_ref()
    }

    /// Returns the time at which the last message arrived, or at which the sender was last known to have sent
    /// nothing more; the beginning before that.
    pub const fn latest(&self) -> Instant {
        self.latest
    }

    /// Returns the traffic received since the beginning, including the current interval.
    pub const fn total(&self) -> Received {
        self.total
    }

    /// The delays of all messages of the intervals that are over.
    pub const fn delays(&self) -> &Histogram {
        &self.delays.all
    }

    /// The jitters of all messages of the intervals that are over.
    pub const fn jitters(&self) -> &Histogram {
        &self.jitters.all
    }

    /// Returns the traffic received until the end of the last interval, and the time from the beginning to
    /// that end.
    pub(super) const fn at_last(&self) -> (Received, Duration) {
        match &self.last {
            Some(last) => (self.before, last.until.saturating_since(self.began)),
            None => (self.before, Duration::ZERO),
        }
    }

    fn end(&mut self, (since, until): Span) {
        self.count_unread(until);
        let (total, before) = (self.total, self.before);
        let (sent, messages) = (total.expected - before.expected, total.messages - before.messages);
        let silence = until.saturating_since(self.latest);
        let under_way = if total.messages > 0 { silence } else { Duration::ZERO };
        let delivery = Delivery {
            since,
            until,
            sent,
            messages,
            bytes: total.bytes - before.bytes,
            lost: sent.cast_signed().saturating_sub_unsigned(messages),
            late: total.late - before.late,
            duplicated: total.duplicated - before.duplicated,
            delay: self.delays.end(self.quantile),
            jitter: self.jitters.end(self.quantile),
            gap: self.gap.max(under_way),
            silence,
            unread: total.unread - before.unread,
            overflowed: total.overflowed - before.overflowed,
        };
        (self.before, self.gap, self.last) = (total, Duration::ZERO, Some(delivery));
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(delivery);
    }
}
