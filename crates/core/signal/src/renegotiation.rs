//! Requests a weaker specification when the agreement cannot be met, and the better one again when it can (QUANTA section 5.2:
//! flows are lowered gracefully; QoSockets section II: an application can change its request with the MIB's help).
//!
//! The application gives the specifications that it accepts beside its own: [`Alternatives`], best first, each of which demands no more
//! than the one before. The controller never requests anything else. Each interval it gets [observations](IntervalObservation):
//!
//! - *Down*: a limit has been violated for [`RenegotiationParams::patience`], and no other action of the end can end the violation. The next
//!   alternative is requested.
//! - *Back*: for [`RenegotiationParams::rest`], delay, jitter and loss were well inside the limits of the next better specification, and no
//!   limit was violated. That one is requested. It is not known before if the network carries its rate, so a return is a trial.
//! - *Back-off*: a return has not lasted if the weaker specification is requested again within the rest. Then the rest is twice as long,
//!   up to [`RenegotiationParams::longest_rest`], and as long as at first after a return that has lasted. A return that has not lasted yet is
//!   taken back after a fifth of the patience. An alternative that the peer refuses is not requested again during the rest, which is twice as long
//!   the next time, too; an unanswered one, during the patience.
//!
//! Example: a telephone call of 50 messages/s accepts 25 as well, and the link carries 40 for five minutes. After 5 s it has 25. After
//! 30 s within all limits it requests 50, and has 25 again 1 s after the limits are violated; the next times after 60 s and 120 s.

use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::ConnectionSpecification;
use cutline_units::{Duration, Instant};

/// Parameters of automatic renegotiation.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = RenegotiationParams::go_together)]
pub struct RenegotiationParams {
    /// Time for which a limit is violated, with no other remedy, before a weaker specification is requested.
    #[param(
        default = Duration::from_secs(5),
        range = (Duration::from_millis(10), Duration::from_secs(600)),
        source = "ours: ten intervals; the rate moves to its worst within two of them"
    )]
    pub patience: Duration,
    /// The headroom of delay, jitter and loss above which they are well inside the better specification; 0 is the limit, 1 the best.
    #[param(default = 0.3, range = (0.0, 1.0), source = "ours: as for the rate to rise inside the region of operation")]
    pub inside: f64,
    /// Initial time for which all measures are well inside before the better specification is requested; at
    /// most longest-rest.
    #[param(
        default = Duration::from_secs(30),
        range = (Duration::from_millis(10), Duration::from_secs(3600)),
        source = "ours: a trial costs about 2 s outside the limits, a fifteenth of it"
    )]
    pub rest: Duration,
    /// Upper bound of that time, after returns that have not lasted.
    #[param(
        default = Duration::from_secs(480),
        range = (Duration::from_millis(10), Duration::from_secs(24 * 3600)),
        source = "ours: four times doubled; how late an application notices that there is more"
    )]
    pub longest_rest: Duration,
}

/// Specifications that an application accepts beside its own, and the parameters of changing to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alternatives {
    /// The specifications, best first.
    pub specifications: Vec<ConnectionSpecification>,
    /// Parameters of the changes.
    pub params: RenegotiationParams,
}

/// Observation of both directions in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalObservation {
    /// Time since which a limit has been violated that no other action can end; `None` if none is.
    pub violated_since: Option<Instant>,
    /// The position of the worst of delay, jitter and loss between the limits of the next better specification: 1 at the best, 0 at the
    /// limit; `None` if nothing was measured.
    pub headroom: Option<f64>,
    /// True if a limit is violated, or the sender is below the lowest rate of the better specification
    /// although it could be above.
    pub is_short: bool,
}

/// Controller of the specification that an end requests.
#[derive(Clone, Debug)]
pub struct Renegotiation {
    alternatives: Alternatives,
    /// The application's own specification and the alternatives that are weaker, best first.
    ladder: Vec<ConnectionSpecification>,
    /// Index of the specification of this end that is in effect.
    place: usize,
    /// Index of the requested specification.
    asked: Option<usize>,
    /// Time since which it has been in effect.
    since: Instant,
    /// True if it came by a return that has not lasted yet.
    is_trial: bool,
    /// Time for which all measures have been well inside.
    inside: Duration,
    /// The end of the last interval.
    last: Instant,
    rest: Duration,
    /// Before this time nothing is requested.
    hold_until: Instant,
}

/// The share of the patience after a return.
const TRIAL: f64 = 0.2;

impl RenegotiationParams {
    fn go_together(&self) -> Result<(), ParameterError> {
        if self.rest > self.longest_rest {
            let most = format!("at most longest-rest, which is {}", self.longest_rest);
            return Err(ParameterError::new("rest", self.rest, most));
        }
        Ok(())
    }
}

impl Alternatives {
    /// Checks the alternatives of an application that requests `own`.
    ///
    /// # Errors
    /// When a parameter is not allowed, or demands more than in the specification before.
    pub fn validate(&self, own: &ConnectionSpecification) -> Result<(), ParameterError> {
        self.params.validate()?;
        let mut before = own;
        for (number, specification) in (1..).zip(&self.specifications) {
            let named = |direction: &str, checked: Result<(), ParameterError>| {
                checked.map_err(|error| {
                    let parameter = format!("alternative {number}: {direction}.{}", error.parameter);
                    ParameterError { parameter, ..error }
                })
            };
            let ConnectionSpecification { send, receive, .. } = specification;
            named("send", send.validate().and_then(|()| send.demands_no_more_than(&before.send)))?;
            named(
                "receive",
                receive.validate().and_then(|()| receive.demands_no_more_than(&before.receive)),
            )?;
            before = specification;
        }
        Ok(())
    }
}

impl Renegotiation {
    /// The controller of an end that requests `own` at first.
    ///
    /// # Errors
    /// As [`Alternatives::validate`].
    pub fn new(
        now: Instant,
        own: ConnectionSpecification,
        alternatives: Alternatives,
    ) -> Result<Self, ParameterError> {
        alternatives.validate(&own)?;
        let rest = alternatives.params.rest;
        let mut this = Self {
            alternatives,
            ladder: Vec::new(),
            place: 0,
            asked: None,
            since: now,
            is_trial: false,
            inside: Duration::ZERO,
            last: now,
            rest,
            hold_until: now,
        };
        this.restart(now, own);
        Ok(this)
    }

    /// The application itself requests another specification. Alternatives that demand more than that are left out from now on.
    pub fn restart(&mut self, now: Instant, own: ConnectionSpecification) {
        let mut ladder = vec![own];
        for alternative in &self.alternatives.specifications {
            let before = ladder.last().expect("the application's own is there");
            let is_weaker = alternative.send.demands_no_more_than(&before.send).is_ok()
                && alternative.receive.demands_no_more_than(&before.receive).is_ok();
            if is_weaker && alternative != before {
                ladder.push(alternative.clone());
            }
        }
        (self.ladder, self.place, self.asked, self.is_trial) = (ladder, 0, None, false);
        (self.rest, self.hold_until) = (self.alternatives.params.rest, now);
        self.settle(now);
    }

    /// The next better specification than the one that holds; `None` if that is the application's own.
    pub fn better(&self) -> Option<&ConnectionSpecification> {
        self.ladder.get(self.place.checked_sub(1)?)
    }

    /// Takes an interval. Returns the request for the peer: its place among the alternatives, from 1, with 0 for the application's
    /// own; and the specification.
    pub fn on_interval(
        &mut self,
        now: Instant,
        observation: &IntervalObservation,
    ) -> Option<(usize, &ConnectionSpecification)> {
        let length = now.saturating_since(self.last);
        self.last = now;
        self.count_inside(length, observation);
        if self.is_trial && now.saturating_since(self.since) >= self.rest {
            (self.is_trial, self.rest) = (false, self.alternatives.params.rest);
        }
        if self.asked.is_some() || now < self.hold_until {
            return None;
        }
        let patience = self.alternatives.params.patience;
        let patience = if self.is_trial { patience.mul_f64(TRIAL) } else { patience };
        let violated = observation.violated_since.map(|since| now.saturating_since(since.max(self.since)));
        let place = if violated.is_some_and(|time| time >= patience) && self.place + 1 < self.ladder.len() {
            self.place + 1
        } else if self.place > 0 && self.inside >= self.rest {
            self.place - 1
        } else {
            return None;
        };
        self.asked = Some(place);
        Some((place, &self.ladder[place]))
    }

    /// Both ends agree, at the request of this end or of the other one; `ours` is the present request of this end.
    pub fn on_agreed(&mut self, now: Instant, ours: &ConnectionSpecification) {
        let Some(place) = self.ladder.iter().position(|specification| specification == ours) else { return };
        let is_down = place > self.place;
        if is_down && self.is_trial {
            self.back_off();
        }
        self.is_trial = place < self.place || (place == self.place && self.is_trial);
        self.place = place;
        self.asked = None;
        self.settle(now);
    }

    /// Returns whether a weaker specification is requested than the one that holds. Until the peer
    /// answers, the sender keeps to the lower one of the requested rates: the queue that it has filled would
    /// drop the question.
    pub fn is_asking_for_less(&self) -> bool {
        self.asked.is_some_and(|place| place > self.place)
    }

    /// The peer has refused.
    pub fn on_refused(&mut self, now: Instant) {
        if self.asked.take().is_some() {
            self.hold_until = now.saturating_add(self.rest);
            self.back_off();
            self.inside = Duration::ZERO;
        }
    }

    /// The peer has not answered: the question or the answer may be lost.
    pub fn on_no_answer(&mut self, now: Instant) {
        if self.asked.take().is_some() {
            self.hold_until = now.saturating_add(self.alternatives.params.patience);
            self.inside = Duration::ZERO;
        }
    }

    /// Counts the time for which all has been well inside. An interval without evidence does not count.
    fn count_inside(&mut self, length: Duration, observation: &IntervalObservation) {
        let Some(headroom) = observation.headroom else { return };
        let is_inside = !observation.is_short && headroom >= self.alternatives.params.inside;
        self.inside = if is_inside { self.inside + length } else { Duration::ZERO };
    }

    fn settle(&mut self, now: Instant) {
        (self.since, self.inside) = (now, Duration::ZERO);
    }

    fn back_off(&mut self) {
        self.rest = (self.rest + self.rest).min(self.alternatives.params.longest_rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::{ParameterValue, conformance};
    use cutline_quality::spec::{Preset, Specification};

    fn sending(rate: f64) -> ConnectionSpecification {
        let send = Preset::Audio.specification().change().rates(rate, rate, rate).build().unwrap();
        ConnectionSpecification { send, ..ConnectionSpecification::default() }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// An end that accepts 50, 25 and 10 messages/s, with another end that agrees to everything.
    struct End {
        control: Renegotiation,
        now: Instant,
        /// The requested indices with their times, s.
        asked: Vec<(u64, usize)>,
    }

    impl End {
        fn new() -> Self {
            let specifications = vec![sending(25.0), sending(10.0)];
            let alternatives = Alternatives { specifications, ..Alternatives::default() };
            let control = Renegotiation::new(Instant::ZERO, sending(50.0), alternatives).unwrap();
            Self { control, now: Instant::ZERO, asked: Vec::new() }
        }

        /// Runs until a time, in intervals of a second. The network carries so many messages/s; beyond that a limit is violated.
        fn run(&mut self, until: u64, carried: f64) {
            let mut since = None;
            while self.now < at(until) {
                let holds = self.control.ladder[self.control.place].send.max_rate.unwrap();
                since = (holds > carried).then(|| since.unwrap_or(self.now));
                self.now += Duration::from_secs(1);
                let headroom = Some(if since.is_some() { -1.0 } else { 0.9 });
                let observation =
                    IntervalObservation { violated_since: since, headroom, is_short: since.is_some() };
                let asked =
                    self.control.on_interval(self.now, &observation).map(|(place, it)| (place, it.clone()));
                if let Some((place, specification)) = asked {
                    self.asked.push((self.now.as_nanos() / 1_000_000_000, place));
                    self.control.on_agreed(self.now, &specification);
                }
            }
        }
    }

    #[test]
    fn a_limit_that_stays_violated_leads_down_and_time_inside_leads_back() {
        let mut end = End::new();
        end.run(60, 100.0);
        assert_eq!(end.asked, [], "what can be had is kept");
        end.run(80, 12.0);
        // 5 s each.
        assert_eq!(end.asked, [(65, 1), (70, 2)]);
        end.run(300, 100.0);
        // The rest of 30 s each.
        assert_eq!(end.asked[2..], [(100, 1), (130, 0)]);
    }

    #[test]
    fn returns_that_do_not_last_become_rarer_until_one_lasts() {
        let mut end = End::new();
        end.run(1500, 30.0);
        // Each return is taken back after 1 s; the rests are 30, 60, 120, 240 and 480 s.
        let expected = [
            (5, 1),
            (35, 0),
            (36, 1),
            (96, 0),
            (97, 1),
            (217, 0),
            (218, 1),
            (458, 0),
            (459, 1),
            (939, 0),
            (940, 1),
            (1420, 0),
            (1421, 1),
        ];
        assert_eq!(end.asked, expected);
        end.run(2000, 100.0);
        assert_eq!(end.asked[13..], [(1901, 0)]);
        end.run(2600, 100.0);
        end.asked.clear();
        // The return has lasted, so the rests are short again.
        end.run(2640, 30.0);
        assert_eq!(end.asked, [(2605, 1), (2635, 0), (2636, 1)]);
    }

    #[test]
    fn a_refused_alternative_is_not_requested_during_the_pause() {
        let mut end = End::new();
        let observation =
            IntervalObservation { violated_since: Some(at(0)), headroom: Some(-1.0), is_short: true };
        let mut asked = Vec::new();
        for second in 1..=200 {
            if end.control.on_interval(at(second), &observation).is_some() {
                asked.push(second);
                end.control.on_refused(at(second));
            }
        }
        // 30, 60 and 120 s.
        assert_eq!(asked, [5, 35, 95]);
        assert_eq!(end.control.place, 0);
    }

    #[test]
    fn time_without_evidence_is_no_time_inside() {
        let mut end = End::new();
        end.run(10, 30.0);
        for second in 11..100 {
            assert_eq!(end.control.on_interval(at(second), &IntervalObservation::default()), None);
        }
    }

    #[test]
    fn another_wish_of_the_application_leaves_out_what_demands_more() {
        let mut end = End::new();
        end.run(10, 30.0);
        end.control.restart(at(10), sending(20.0));
        assert_eq!(end.control.ladder, [sending(20.0), sending(10.0)]);
        assert_eq!((end.control.place, end.control.better()), (0, None));
    }

    #[test]
    fn an_alternative_that_demands_more_is_refused_by_name() {
        let error = |specifications| {
            let alternatives = Alternatives { specifications, ..Alternatives::default() };
            alternatives.validate(&sending(50.0)).unwrap_err().to_string()
        };
        assert_eq!(
            error(vec![sending(25.0), sending(30.0)]),
            "alternative 2: send.min-rate = 30: allowed is at most 25"
        );
        let receive = Specification::builder().loss(1.0).build().unwrap();
        assert_eq!(
            error(vec![ConnectionSpecification { receive, ..sending(25.0) }]),
            "alternative 1: receive.loss = 1: allowed is off"
        );
        let send = Specification { loss: Some(200.0), ..sending(25.0).send };
        assert_eq!(
            error(vec![ConnectionSpecification { send, ..ConnectionSpecification::default() }]),
            "alternative 1: send.loss = 200: allowed is a number from 0 to 100 %, or off"
        );
    }

    #[test]
    fn the_parameters_are_described_and_bad_ones_refused() {
        let parameters = RenegotiationParams::describe();
        let make = |values: &[(&str, ParameterValue)]| {
            RenegotiationParams::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|params| params.values())
        };
        conformance::parameters_are_complete("renegotiation", &parameters);
        conformance::defaults_are_what_the_description_says("renegotiation", &parameters, &make);
        conformance::bad_parameters_are_refused_by_name("renegotiation", &parameters, &make);
        let params = RenegotiationParams { rest: Duration::from_secs(600), ..RenegotiationParams::default() };
        let error = params.validate().unwrap_err().to_string();
        assert_eq!(error, "rest = 600 s: allowed is at most longest-rest, which is 480 s");
    }
}
