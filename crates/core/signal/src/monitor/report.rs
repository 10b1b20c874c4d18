//! Report of an end after each interval: the traffic received, the traffic sent, and the times of an
//! exchange.
//!
//! | bytes | field |
//! | --- | --- |
//! | 4 | number: 1 for the first report, one more for each later one |
//! | 8 | time from the beginning of the measurement to the end of the last interval, ns |
//! | 6 x 8 | received since then: messages expected by their numbers, messages, bytes, late, duplicated, the sum of delays, ns |
//! | 3 x 8 | delays of the last interval: mean, quantile, worst, ns; all ones if there are none |
//! | 8 | the largest error of these delays because of the clocks, ns |
//! | 3 x 8 | jitters of the last interval likewise |
//! | 2 x 8 | the longest gap of the last interval, and the silence at its end, ns |
//! | 3 x 8 | sent since the beginning: messages, bytes, how long the application was held back, ns |
//! | 8 | when this report is sent, by its sender's clock, ns |
//! | 2 x 8 | the latest report from the peer: its times of sending and of arrival; all ones if there was none |
//! | 0 or 8 | time in which data waited for the application of its sender, which did not read, ns; left out if it and the later ones are 0 |
//! | 0 or 8 | datagrams that the host of its sender has dropped because the receive buffer was full; left out if it is 0 |
//!
//! All numbers are big-endian. Everything but the last interval's figures are totals, so a lost report does no harm.

use super::{Arrivals, Delivery, Departures, LONGEST_DELAY, OfferedMessages, Received, Sent, Spread};
use crate::clock::{ClockEstimate, Echo, Stamps};
use cutline_quality::DeliveryReport;
use cutline_units::{Duration, Instant};
use cutline_wire::{Reader, Writer};

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// 1 for the first, one more for each later one.
    pub number: u32,
    /// From the beginning of the measurement to the end of the last interval.
    pub elapsed: Duration,
    /// Traffic received since the beginning.
    pub received: Received,
    /// The delays of the last interval.
    pub delay: Option<Spread>,
    /// The largest error of the delays because of the clocks.
    pub delay_error: Duration,
    /// The jitters of the last interval.
    pub jitter: Option<Spread>,
    /// The longest gap of the last interval.
    pub gap: Duration,
    /// The silence at the end of the last interval.
    pub silence: Duration,
    /// Traffic sent since the beginning.
    pub sent: Sent,
    /// The times of an exchange.
    pub stamps: Stamps,
}

/// Reason why a report is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// Not newer than an earlier report.
    Stale,
    /// Contradicts earlier reports, itself, or the traffic sent: the contradiction.
    Contradiction(&'static str),
}

/// Number of reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportStats {
    /// Reports that were used.
    pub used: u64,
    /// Reports that were not newer than one that came before.
    pub stale: u64,
    /// Reports that contradict themselves, earlier ones, or the sent traffic.
    pub refused: u64,
}

/// The reports of the peer.
#[derive(Clone, Debug, Default)]
pub struct PeerReports {
    last: Option<Report>,
    /// Messages that its application offered between the last two reports.
    demand: Option<OfferedMessages>,
    /// Traffic delivered between the last two reports.
    delivery: Option<Delivery>,
    stats: ReportStats,
}

impl Report {
    /// Length of the report of an application that reads everything in time, bytes. Longer reports end with the time for which data lay
    /// unread, and the number of datagrams that the receive buffer has dropped.
    pub const LENGTH: usize = 4 + 22 * 8;
    /// The length of the longest report, bytes.
    pub const LONGEST: usize = Self::LENGTH + 2 * 8;

    /// The report after an interval of `arrivals` that is over, and of `departures`, which have begun at the same time. `clock` is the state of
    /// the peer's clock, `stamps` are of the time at which the report is sent.
    pub fn new(
        number: u32,
        arrivals: &Arrivals,
        departures: &Departures,
        clock: Option<ClockEstimate>,
        stamps: Stamps,
    ) -> Self {
        let (received, elapsed) = arrivals.at_last();
        let Delivery { delay, jitter, gap, silence, .. } = arrivals.last().copied().unwrap_or_default();
        let delay_error = match (delay, clock) {
            (Some(_), Some(clock)) => clock.error.min(LONGEST_DELAY),
            _ => Duration::ZERO,
        };
        let sent = departures.at_last();
        Self { number, elapsed, received, delay, delay_error, jitter, gap, silence, sent, stamps }
    }

    /// The report as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::LONGEST];
        let mut to = Writer::new(&mut bytes);
        let Received { expected, messages, bytes: received, late, duplicated, delay, .. } = self.received;
        let Received { unread, overflowed, .. } = self.received;
        to.u32(self.number).duration(self.elapsed);
        to.u64(expected).u64(messages).u64(received).u64(late).u64(duplicated).duration(delay);
        write_spread(self.delay, &mut to);
        to.duration(self.delay_error);
        write_spread(self.jitter, &mut to);
        to.duration(self.gap).duration(self.silence);
        to.u64(self.sent.messages).u64(self.sent.bytes).duration(self.sent.held);
        to.instant(self.stamps.sent);
        let Echo { sent, received } = self.stamps.echo.unwrap_or(NO_ECHO);
        to.instant(sent).instant(received);
        to.duration(unread).u64(overflowed);
        bytes.truncate(match (unread.is_zero(), overflowed) {
            (true, 0) => Self::LENGTH,
            (false, 0) => Self::LENGTH + 8,
            _ => Self::LONGEST,
        });
        bytes
    }

    /// The report that the bytes are; `None` if this version would not write them.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader::new(bytes);
        let (number, elapsed) = (from.u32()?, read_time(&mut from)?);
        let mut received = Received {
            expected: from.u64()?,
            messages: from.u64()?,
            bytes: from.u64()?,
            late: from.u64()?,
            duplicated: from.u64()?,
            impossible: 0,
            delay: read_time(&mut from)?,
            unread: Duration::ZERO,
            overflowed: 0,
        };
        let (delay, delay_error) = (read_spread(&mut from)?, from.duration()?);
        let jitter = read_spread(&mut from)?;
        let (gap, silence) = (read_time(&mut from)?, read_time(&mut from)?);
        let sent = Sent { messages: from.u64()?, bytes: from.u64()?, held: read_time(&mut from)? };
        let stamp = from.instant()?;
        let echo = Echo { sent: from.instant()?, received: from.instant()? };
        let stamps = Stamps { sent: stamp, echo: (echo != NO_ECHO).then_some(echo) };
        if !from.is_at_end() {
            received.unread = read_time(&mut from)?;
            let last = if from.is_at_end() {
                received.unread.as_nanos()
            } else {
                received.overflowed = from.u64()?;
                received.overflowed
            };
            if last == 0 {
                return None;
            }
        }
        let report =
            Self { number, elapsed, received, delay, delay_error, jitter, gap, silence, sent, stamps };
        (from.is_at_end() && report.is_possible()).then_some(report)
    }

    /// The totals as the controller of the delay hint takes them. Its times are from the beginning of the measurement.
    pub const fn for_hint(&self) -> DeliveryReport {
        DeliveryReport {
            at: Instant::from_nanos(self.elapsed.as_nanos()),
            received: self.received.messages,
            delivered_bytes: self.received.bytes,
            delay: self.received.delay,
        }
    }

    fn is_possible(&self) -> bool {
        let Received { expected, messages, late, delay, .. } = self.received;
        let most = u128::from(messages) * u128::from(LONGEST_DELAY.as_nanos());
        let has_message = messages > 0 || (self.delay.is_none() && self.jitter.is_none());
        self.number > 0
            && !self.elapsed.is_zero()
            && messages <= expected
            && late <= messages
            && u128::from(delay.as_nanos()) <= most
            && has_message
            && (self.delay.is_some() || self.delay_error.is_zero())
            && self.gap <= self.elapsed
            && self.silence <= self.elapsed
            && self.received.unread <= self.elapsed
    }
}

/// Value for a missing echo.
const NO_ECHO: Echo = Echo { sent: Instant::FAR_FUTURE, received: Instant::FAR_FUTURE };

/// A length of time that may be longer than the longest of a single message.
fn read_time(from: &mut Reader<'_>) -> Option<Duration> {
    from.u64().map(Duration::from_nanos)
}

fn write_spread(spread: Option<Spread>, to: &mut Writer<'_>) {
    match spread {
        Some(Spread { mean, quantile, worst }) => to.duration(mean).duration(quantile).duration(worst),
        None => to.duration(Duration::MAX).duration(Duration::MAX).duration(Duration::MAX),
    };
}

#[expect(clippy::option_option, reason = "the inner one is a value: there were none")]
fn read_spread(from: &mut Reader<'_>) -> Option<Option<Spread>> {
    let spread = Spread { mean: read_time(from)?, quantile: read_time(from)?, worst: read_time(from)? };
    let Spread { mean, quantile, worst } = spread;
    if [mean, quantile, worst] == [Duration::MAX; 3] {
        return Some(None);
    }
    (mean <= worst && quantile <= worst && worst <= LONGEST_DELAY).then_some(Some(spread))
}

impl PeerReports {
    /// Takes a report that has arrived now. `sent` is the traffic that this end has sent since the beginning, `clock` the state of the
    /// peer's clock, after the exchange of this report. Returns the deliveries since the report before it.
    ///
    /// # Errors
    /// When it is not newer than the one before, or a contradiction. Then it changes nothing.
    pub fn accept(
        &mut self,
        now: Instant,
        report: Report,
        sent: Sent,
        clock: Option<ClockEstimate>,
    ) -> Result<Delivery, ReportError> {
        let result = self.check(now, &report, sent, clock);
        match result {
            Ok(()) => self.stats.used += 1,
            Err(ReportError::Stale) => self.stats.stale += 1,
            Err(ReportError::Contradiction(_)) => self.stats.refused += 1,
        }
        result?;
        let (received_before, sent_before, elapsed_before) =
            self.last.as_ref().map(|last| (last.received, last.sent, last.elapsed)).unwrap_or_default();
        let (received, time) = (report.received, report.elapsed - elapsed_before);
        let until = clock.map_or(now, |clock| clock.offset.ours(report.stamps.sent)).min(now);
        let expected = received.expected - received_before.expected;
        let messages = received.messages - received_before.messages;
        let delivery = Delivery {
            since: Instant::from_nanos(until.as_nanos().saturating_sub(time.as_nanos())),
            until,
            sent: expected,
            messages,
            bytes: received.bytes - received_before.bytes,
            lost: (i128::from(expected) - i128::from(messages)).clamp(i64::MIN.into(), i64::MAX.into())
                as i64,
            late: received.late - received_before.late,
            duplicated: received.duplicated - received_before.duplicated,
            delay: report.delay,
            jitter: report.jitter,
            gap: report.gap,
            silence: report.silence,
            unread: received.unread - received_before.unread,
            overflowed: received.overflowed - received_before.overflowed,
        };
        let held = report.sent.held - sent_before.held;
        self.demand = Some(OfferedMessages {
            messages: report.sent.messages - sent_before.messages,
            time: time.saturating_sub(held),
        });
        (self.last, self.delivery) = (Some(report), Some(delivery));
        Ok(delivery)
    }

    /// Counts something that came as a report and is none.
    pub const fn refuse(&mut self) {
        self.stats.refused += 1;
    }

    /// The last report; `None` before the first.
    pub const fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Returns the traffic delivered between the last two reports; `None` before the first.
    pub const fn delivery(&self) -> Option<&Delivery> {
        self.delivery.as_ref()
    }

    /// Returns the demand of the peer's application between its last two reports; `None` before the
    /// first.
    pub const fn demand(&self) -> Option<OfferedMessages> {
        self.demand
    }

    /// Returns the number of reports.
    pub const fn stats(&self) -> ReportStats {
        self.stats
    }

    fn check(
        &self,
        now: Instant,
        report: &Report,
        sent: Sent,
        clock: Option<ClockEstimate>,
    ) -> Result<(), ReportError> {
        let (received, stamp) = (report.received, report.stamps.sent);
        if self.last.as_ref().is_some_and(|last| report.number <= last.number) {
            return Err(ReportError::Stale);
        }
        let contradictions = [
            (received.expected > sent.messages, "more messages have arrived than were sent"),
            (received.bytes > sent.bytes, "more bytes have arrived than were sent"),
            (
                clock.is_some_and(|clock| clock.offset.ours(stamp) > now.saturating_add(clock.error)),
                "it was sent after it arrived",
            ),
        ];
        let falls = self.last.as_ref().map(|last| {
            let (before, sent_before) = (last.received, last.sent);
            [
                (stamp <= last.stamps.sent, "its time falls"),
                (report.elapsed <= last.elapsed, "the time of the measurement falls"),
                (received.expected < before.expected, "the messages expected fall"),
                (received.messages < before.messages, "the messages received fall"),
                (received.bytes < before.bytes, "the bytes received fall"),
                (received.late < before.late, "the late messages fall"),
                (received.duplicated < before.duplicated, "the duplicates fall"),
                (received.delay < before.delay, "the sum of delays falls"),
                (received.unread < before.unread, "the time of unread data falls"),
                (received.overflowed < before.overflowed, "the datagrams dropped by the host fall"),
                (report.sent.messages < sent_before.messages, "the messages sent fall"),
                (report.sent.bytes < sent_before.bytes, "the bytes sent fall"),
                (report.sent.held < sent_before.held, "the time held back falls"),
            ]
        });
        let mut all = contradictions.into_iter().chain(falls.into_iter().flatten());
        all.find(|(is_so, _)| *is_so).map_or(Ok(()), |(_, what)| Err(ReportError::Contradiction(what)))
    }
}
