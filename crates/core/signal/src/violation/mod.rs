//! Comparison of delivery with the agreement.
//!
//! A [`Watch`] is given each interval of a direction, at the receiving end from its own [`Arrivals`](crate::monitor::Arrivals), at
//! the sending end from the [reports](crate::monitor::PeerReports) of the other one. It compares each measure with the limit in
//! the effective specification:
//!
//! | measure | compared with | violated if |
//! | --- | --- | --- |
//! | rate | `min-rate` | the messages received in the interval, and one more, are fewer, although the sender's application offered as many |
//! | delay | `max-delay` | the quantile of the delays, less the error of the clocks, is longer |
//! | gap | `max-gap` | the longest time without a message is longer |
//! | jitter | `jitter` | the quantile of the jitters is longer |
//! | loss | `loss` | more messages are lost than the limit allows of the latest ones, see below |
//! | recovery | `recovery` | the time since the last message is longer |
//!
//! *Origin* ([`ViolationOrigin`]): both ends know from each other's reports for how long the sending host held its application
//! back, and for how long data waited at the receiving host because the application there did not read. A tenth of the interval
//! makes that host the origin: the receiving one of any violation, the sending one of a low rate or a long gap. If both
//! qualify, the longer time decides, and of equal times the receiver's, since a receiver that does not read fills the sender's
//! queue as well. The receiving host is also the origin of loss of which it has dropped at least half itself, because the receive
//! buffer of the socket was full. Otherwise the network is the origin.
//!
//! If nothing arrives of a direction, not even reports, while data wait at the sending host for its own application, then the reports
//! may wait behind them, and the sending host is the origin.
//!
//! *Rate*: the limits of an interval fall anywhere between two messages, so at exactly `min-rate` one message more or less may be
//! in it. An application that offers less than `min-rate` is not served badly.
//!
//! *Gap* is the longest and no quantile: a single gap can be most of an interval.
//!
//! *Loss*: one of 25 messages in 0.5 s is 4 %, which is no evidence on a limit of 1 %. So the loss is that of the latest
//! intervals in which so many messages were sent that the limit allows [`WatchParams::lost_messages`] lost ones: at 1 % and 2
//! the latest 200, which are 4 s at 50 messages/s. More lost ones than that are a violation at once, however few messages were
//! sent. A limit of 0 is violated by any lost message, until an interval has none.
//!
//! A violation begins with the first interval outside the limit, and ends when all intervals of [`WatchParams::restore`] were
//! within it. An interval without evidence on a measure, as one without messages about their delay, changes nothing.

mod loss;
#[cfg(test)]
mod tests;

use crate::monitor::{Delivery, OfferedMessages};
use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::{Axis, Interval, Measure, Region, Specification};
use cutline_units::{Duration, Instant};
use loss::RecentLoss;
use std::collections::VecDeque;

/// Parameters of the comparison with the specification.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct WatchParams {
    /// Time for which a measure must be within its limit before a violation is over.
    #[param(
        default = Duration::from_secs(1),
        range = (Duration::ZERO, Duration::from_secs(60)),
        source = "ours: two intervals; one alone is often within the limits by chance, and each change is an event"
    )]
    pub restore: Duration,
    /// Number of lost messages that the limit allows among those over which the loss is computed.
    #[param(
        default = 2,
        range = (1, 1000),
        source = "ours: at half the limit a false violation comes with 8 % of the windows, and with 1 with 9 %"
    )]
    pub lost_messages: u32,
}

/// Change of a measure's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ViolationEvent {
    /// The measure is outside its limit now.
    Violated(Violation),
    /// The measure is within its limit again.
    Restored {
        /// The violation that is over.
        violation: Violation,
        /// The value of the last interval, in the measure's unit.
        measured: f64,
        /// Duration of the violation: to the beginning of the first interval within the limit.
        after: Duration,
    },
}

/// Origin of a violation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViolationOrigin {
    /// The sending host: its application was held back for a tenth of the interval or more, because the send queue was full or
    /// its turn had not come. The receiving end knows it from the sender's reports. Also if no report arrives there while other
    /// data wait for its application.
    SendingHost,
    /// The network, as far as both ends know.
    #[default]
    Network,
    /// The receiving host: data waited there for a tenth of the interval or more, because its application did not read, or it has
    /// dropped at least half of the lost messages. The sending end knows it from the receiver's reports.
    ReceivingHost,
}

impl ViolationOrigin {
    /// Returns its name: `sending-host`, `network` or `receiving-host`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendingHost => "sending-host",
            Self::Network => "network",
            Self::ReceivingHost => "receiving-host",
        }
    }

    /// Returns the origin of a violation in an interval.
    fn of(measure: Measure, demand: Option<OfferedMessages>, delivery: &Delivery) -> Self {
        let length = delivery.length();
        // A report may claim any length, so nothing is multiplied.
        let is_long = |time: Duration| !time.is_zero() && time >= length / HELD_SHARE;
        let unread = delivery.unread;
        let dropped = delivery.overflowed;
        if measure == Measure::Loss
            && dropped > 0
            && dropped >= delivery.lost.max(0).unsigned_abs().div_ceil(2)
        {
            return Self::ReceivingHost;
        }
        let held = match (measure, demand) {
            (Measure::Rate | Measure::Gap, Some(demand)) => length.saturating_sub(demand.time),
            _ => Duration::ZERO,
        };
        if is_long(unread) && unread >= held {
            Self::ReceivingHost
        } else if is_long(held) {
            Self::SendingHost
        } else {
            Self::Network
        }
    }
}

/// An application that was held back, or did not read, for one of so many parts of an interval is the reason for a violation.
const HELD_SHARE: u64 = 10;

/// A measure outside its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Violation {
    /// The measure.
    pub measure: Measure,
    /// The worst value that the specification accepts, in the measure's unit.
    pub limit: f64,
    /// The worst value since then, in the measure's unit.
    pub measured: f64,
    /// The largest error of it because of the clocks, in the measure's unit; a delay is violated only beyond it.
    pub error: f64,
    /// Origin of the violation, as far as both ends know it.
    pub origin: ViolationOrigin,
    /// Begin of the first interval outside the limit; if no message arrived in it, the time of the last
    /// arrival.
    pub since: Instant,
}

/// A measure of an interval beside its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The value, in the measure's unit.
    pub value: f64,
    /// Position in the region of operation: 1 at the best, 0 at the worst that is acceptable, below 0
    /// outside. A delay has the benefit of the clocks' error, and a rate below the least that is no violation
    /// lies at 0.
    pub position: f64,
    /// True if it is outside its limit beyond doubt.
    pub is_violated: bool,
}

/// The measures of an interval; `None` where there is no limit, or the interval has no evidence on the measure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Assessment {
    judged: [Option<Judged>; Measure::ALL.len()],
}

/// Comparison of a direction's intervals with its effective specification.
#[derive(Clone, Debug)]
pub struct Watch {
    params: WatchParams,
    /// The region of operation, and the measurements in it.
    operation: Interval,
    loss: RecentLoss,
    states: [State; Measure::ALL.len()],
    assessment: Assessment,
    events: VecDeque<ViolationEvent>,
}

/// State of a measure.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    violation: Option<Violation>,
    /// Time since which the measure has been within its limit, during a violation.
    within_since: Option<Instant>,
    /// Number of violations.
    count: u64,
}

/// The most events that wait to be taken. Of more, the oldest are forgotten.
const MOST_WAITING: usize = 64;

impl Judged {
    fn new(axis: &Axis, value: f64) -> Self {
        Self { value, position: axis.position(value), is_violated: !axis.accepts(value) }
    }
}

impl Assessment {
    /// The measure beside its limit; `None` where there is no limit, or the interval has no evidence on it.
    pub const fn get(&self, measure: Measure) -> Option<Judged> {
        self.judged[measure as usize]
    }

    /// The position of the worst of these measures; `None` if there is none.
    pub fn worst(&self, measures: &[Measure]) -> Option<f64> {
        let positions =
            measures.iter().filter_map(|measure| self.get(*measure)).map(|judged| judged.position);
        positions.reduce(f64::min)
    }
}

impl Watch {
    /// A watch on a direction with this effective specification.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(effective: &Specification, params: WatchParams) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            params,
            operation: Interval::new(Region::new(effective)),
            loss: RecentLoss::default(),
            states: [State::default(); Measure::ALL.len()],
            assessment: Assessment::default(),
            events: VecDeque::new(),
        })
    }

    /// Another specification holds from now on. A violation of a measure without a limit is over; others are, when
    /// intervals are within the new limit. Measurements in the old region are forgotten.
    pub fn renegotiate(&mut self, now: Instant, effective: &Specification) {
        self.operation = Interval::new(Region::new(effective));
        for measure in Measure::ALL {
            if self.operation.region().axis(measure).is_none() {
                let measured = self.assessment.get(measure).map(|judged| judged.value);
                self.restore(measure, measured, now);
            }
        }
        self.assessment = Assessment::default();
    }

    /// Takes an interval. `delay_error` is the largest error of its delays because of the clocks. `demand` is the
    /// offered traffic by the sender's report; without one it is estimated from sequence numbers.
    pub fn on_interval(
        &mut self,
        delivery: &Delivery,
        delay_error: Duration,
        demand: Option<OfferedMessages>,
    ) -> Assessment {
        let mut assessment = Assessment::default();
        for measure in Measure::ALL {
            let Some(axis) = self.operation.region().axis(measure).copied() else { continue };
            let Some(judged) = self.judge(&axis, delivery, delay_error, demand) else { continue };
            self.operation.observe(measure, judged.value);
            assessment.judged[measure as usize] = Some(judged);
            let error = if measure == Measure::Delay { ms(delay_error) } else { 0.0 };
            let origin = ViolationOrigin::of(measure, demand, delivery);
            self.track(&axis, judged, (error, origin), delivery);
        }
        self.assessment = assessment;
        assessment
    }

    /// Judges an interval without any message or report, of the length `silence`: only the recovery is measured.
    /// `is_unread` is true if data of the other direction wait here for the application, so that reports may wait
    /// behind them.
    pub fn on_silence(&mut self, now: Instant, silence: Duration, is_unread: bool) {
        let origin = if is_unread { ViolationOrigin::SendingHost } else { ViolationOrigin::Network };
        if let Some(axis) = self.operation.region().axis(Measure::Recovery).copied() {
            let judged = Judged::new(&axis, ms(silence));
            self.operation.observe(Measure::Recovery, judged.value);
            self.assessment.judged[Measure::Recovery as usize] = Some(judged);
            self.track(
                &axis,
                judged,
                (0.0, origin),
                &Delivery { since: now, until: now, silence, ..Delivery::default() },
            );
        }
    }

    /// Returns the next event, oldest first.
    pub fn event(&mut self) -> Option<ViolationEvent> {
        self.events.pop_front()
    }

    /// The last interval's measures beside their limits.
    pub const fn assessment(&self) -> &Assessment {
        &self.assessment
    }

    /// The region of operation, and the measurements in it under the present specification.
    pub const fn operation(&self) -> &Interval {
        &self.operation
    }

    /// The violations that are under way.
    pub fn violations(&self) -> impl Iterator<Item = Violation> {
        self.states.iter().filter_map(|state| state.violation)
    }

    /// Returns the number of violations of each measure, in the order of [`Measure::ALL`].
    pub fn counts(&self) -> [u64; Measure::ALL.len()] {
        self.states.map(|state| state.count)
    }

    /// The measure of an interval; `None` if the interval has no evidence on it.
    fn judge(
        &mut self,
        axis: &Axis,
        delivery: &Delivery,
        delay_error: Duration,
        demand: Option<OfferedMessages>,
    ) -> Option<Judged> {
        // A sender that is known to send nothing makes no rate and no gap.
        let is_idle = demand.is_some_and(|demand| demand.is_nothing());
        let of = |value: f64| Judged::new(axis, value);
        Some(match axis.measure {
            Measure::Rate | Measure::Gap if is_idle => return None,
            Measure::Rate => {
                let demand = demand.unwrap_or_else(|| delivery.demand());
                let due = axis.worst * delivery.length().as_secs_f64();
                let is_violated = delivery.messages as f64 + 1.0 < due && demand.reaches(axis.worst);
                let judged = of(delivery.rate());
                let position = if is_violated { judged.position } else { judged.position.max(0.0) };
                Judged { position, is_violated, ..judged }
            }
            Measure::Delay => {
                let delay = delivery.delay?.quantile;
                Judged { value: ms(delay), ..of(ms(delay.saturating_sub(delay_error))) }
            }
            Measure::Jitter => of(ms(delivery.jitter?.quantile)),
            Measure::Gap => of(ms(delivery.gap)),
            Measure::Loss => {
                let Delivery { sent, lost, .. } = *delivery;
                if sent == 0 && lost == 0 {
                    return None;
                }
                let (limit, allowed) = (axis.worst, self.params.lost_messages);
                self.loss.add(sent, lost, limit, allowed);
                let position = self.loss.position(limit, allowed);
                // A sender cannot reduce the loss of earlier intervals.
                let now = if lost > 0 { position } else { 1.0 };
                Judged { value: self.loss.percent(), position: now, is_violated: position < 0.0 }
            }
            Measure::Recovery => of(ms(delivery.gap.max(delivery.silence))),
        })
    }

    /// Begins, continues or ends a violation.
    fn track(
        &mut self,
        axis: &Axis,
        judged: Judged,
        (error, origin): (f64, ViolationOrigin),
        delivery: &Delivery,
    ) {
        let state = &mut self.states[axis.measure as usize];
        if !judged.is_violated {
            let within_since = *state.within_since.get_or_insert(delivery.since);
            if delivery.until.saturating_since(within_since) >= self.params.restore {
                self.restore(axis.measure, Some(judged.value), within_since);
            }
            return;
        }
        state.within_since = None;
        if let Some(violation) = &mut state.violation {
            violation.limit = axis.worst;
            violation.measured = axis.worse(violation.measured, judged.value);
            return;
        }
        let last_arrival = delivery.until.as_nanos().saturating_sub(delivery.silence.as_nanos());
        let since = delivery.since.min(Instant::from_nanos(last_arrival));
        let (measure, limit, measured) = (axis.measure, axis.worst, judged.value);
        let violation = Violation { measure, limit, measured, error, origin, since };
        state.violation = Some(violation);
        state.count += 1;
        self.tell(ViolationEvent::Violated(violation));
    }

    /// Ends a violation that was under way, as of a time.
    fn restore(&mut self, measure: Measure, measured: Option<f64>, at: Instant) {
        let state = &mut self.states[measure as usize];
        state.within_since = None;
        if let Some(violation) = state.violation.take() {
            let measured = measured.unwrap_or(violation.measured);
            self.tell(ViolationEvent::Restored {
                violation,
                measured,
                after: at.saturating_since(violation.since),
            });
        }
    }

    fn tell(&mut self, event: ViolationEvent) {
        if self.events.len() == MOST_WAITING {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
