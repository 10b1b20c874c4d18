//! Adaptive RED: RED that moves `max_p` until the average queue is where it should be.
//!
//! Source: S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED: an algorithm for increasing the robustness of RED's
//! active queue management", August 2001, sections 4 to 6 and figure 1.
//!
//! ```text
//! every interval:
//!   avg above the target range and max_p <= ceiling:  max_p += alpha
//!   avg below it and max_p >= floor:                  max_p *= beta
//! target range = (min_th + max_th) / 2 -+ range (max_th - min_th)
//! alpha = min(0.01, max_p / 4)
//! ```
//!
//! All else is [`crate::red`]. Thresholds and w_q are automatic unless set.
//!
//! | parameter | unit | range | default | from |
//! | --- | --- | --- | --- | --- |
//! | `min-th`, `max-th`, `w-q` | | | automatic | Adaptive RED, sections 5 and 6 |
//! | `max-p` | | 0.0001..1 | 0.02 | what `max_p` begins with |
//! | `gentle` | | | true | Adaptive RED, section 4 |
//! | `mode`, `spacing`, `mean-packet`, `target-delay`, `ns-2` | | | | [`crate::red`] |
//! | `interval` | time | 1 ms..100 s | 500 ms | figure 1 |
//! | `alpha` | | 0.0001..1 | min(0.01, max_p / 4) | figure 1; RED-Worcester's figure 4 has 0.1 |
//! | `beta` | | 0.01..0.999 | 0.9 | figure 1 |
//! | `range` | of max-th - min-th | 0..0.5 | 0.1 | figure 1: from 0.4 to 0.6 of the span |
//! | `floor` | | 0.0001..1 | 0.01 | figure 1 |
//! | `ceiling` | | 0.0001..1 | 0.5 | figure 1; RED-Worcester lets it reach 1 |
//!
//! Worked numbers: max_p = 0.02 grows by 0.005 to 0.025, and 0.1 by 0.01; 0.1 shrinks to 0.09
//! (`steps_of_the_paper`).
//!
//! Where we say more than the paper:
//! - A step does not go beyond floor or ceiling.
//! - While the link is idle the average decays as the next arrival will find it, so `max_p` falls in silence
//!   and does not rise on an average that is long out of date.
//!
//! **As ns-2 does.** Its code takes figure 1 by the letter, so that max_p may step over floor and ceiling, and steps with
//! the first arrival half a second after the last change. With `ns-2` this one does, too
//! (`ns_2_steps_half_a_second_after_a_change`), and spares what ns-2's RED spares.
//!
//! There is no timer: [`Steering::advance`] takes the steps it has missed, and skips those that change
//! nothing.
//!
//! # Validation
//!
//! - The steps of figure 1: `steps_of_the_paper`, `the_average_decides_within_floor_and_ceiling`.
//! - Steps made up for in silence: `an_idle_queue_is_stepped_through_alike_in_one_call_and_in_many`.
//! - Against ns-2's Adaptive RED, its average and max_p too: the cases named ared of docs/validation/ns2.md, five mixes of
//!   NewReno and TFRC on RED-Worcester's topology, and three flows of NewReno.

use crate::beat::first_after;
use crate::red::{self, Core, HasRed, RedParams, Steered, Steering};
use crate::{Aqm, Backlog, Field, Parameter, ParameterError, Parameters, Value};
use cutline_units::{Duration, Instant, Rate};

/// What can be set; see the table above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AredParams {
    /// What RED has; `max_p` is where it begins.
    pub red: RedParams,
    /// How `max_p` moves.
    pub adaptation: AdaptationParams,
}

/// How `max_p` moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptationParams {
    /// The time between steps.
    pub interval: Duration,
    /// What is added to `max_p`; `None` is min(0.01, `max_p` / 4).
    pub alpha: Option<f64>,
    /// What `max_p` is multiplied with to make it less.
    pub beta: f64,
    /// How far the average may be from the target, as a share of the span between the thresholds.
    pub range: f64,
    /// The least `max_p`.
    pub floor: f64,
    /// The largest `max_p`.
    pub ceiling: f64,
}

impl Default for AdaptationParams {
    fn default() -> Self {
        let interval = Duration::from_millis(500);
        Self { interval, alpha: None, beta: 0.9, range: 0.1, floor: 0.01, ceiling: 0.5 }
    }
}

impl Default for AredParams {
    fn default() -> Self {
        let red = RedParams { min_th: None, max_th: None, w_q: None, gentle: true, ..RedParams::default() };
        Self { red, adaptation: AdaptationParams::default() }
    }
}

impl Parameters for AredParams {
    const FIELDS: &'static [Field<Self>] = &[
        red::min_th(None, "automatic: Adaptive RED 2001, section 6"),
        red::max_th(None, "automatic: Adaptive RED 2001, section 6"),
        red::max_p(0.02, "Floyd and Jacobson 1993"),
        red::w_q(None, "automatic: Adaptive RED 2001, section 5"),
        red::gentle(true, "Adaptive RED 2001, section 4"),
        red::mode(),
        red::spacing(),
        red::mean_packet(),
        red::target_delay(),
        red::ns2(),
        interval(),
        alpha(),
        beta(),
        range(),
        floor(),
        ceiling(0.5, "Adaptive RED 2001, figure 1"),
    ];

    fn check_together(&self) -> Result<(), ParameterError> {
        check(self)
    }
}

/// Parameters that have Adaptive RED's among them.
pub(crate) trait HasAred {
    fn ared(&self) -> &AredParams;
    fn ared_mut(&mut self) -> &mut AredParams;
}

impl HasAred for AredParams {
    fn ared(&self) -> &AredParams {
        self
    }
    fn ared_mut(&mut self) -> &mut AredParams {
        self
    }
}

impl<P: HasAred> HasRed for P {
    fn red(&self) -> &RedParams {
        &self.ared().red
    }
    fn red_mut(&mut self) -> &mut RedParams {
        &mut self.ared_mut().red
    }
}

const FIGURE_1: &str = "Adaptive RED 2001, figure 1";

pub(crate) const fn interval<P: HasAred>() -> Field<P> {
    let range = (Duration::from_millis(1), Duration::from_secs(100));
    let default = Some(Duration::from_millis(500));
    Field {
        about: Parameter::time("interval", range, default, FIGURE_1, "the time between changes of max_p"),
        get: |params| Some(Value::Duration(params.ared().adaptation.interval)),
        set: |params, value| params.ared_mut().adaptation.interval = value.duration(),
    }
}

pub(crate) const fn alpha<P: HasAred>() -> Field<P> {
    let source = "min(0.01, max_p / 4): Adaptive RED 2001, figure 1; RED-Worcester's figure 4 has 0.1";
    Field {
        about: Parameter::number("alpha", "", (1e-4, 1.0), None, source, "what is added to max_p"),
        get: |params| params.ared().adaptation.alpha.map(Value::Number),
        set: |params, value| params.ared_mut().adaptation.alpha = Some(value.number()),
    }
}

pub(crate) const fn beta<P: HasAred>() -> Field<P> {
    let doc = "what max_p is multiplied with to make it less";
    Field {
        about: Parameter::number("beta", "", (0.01, 0.999), Some(0.9), FIGURE_1, doc),
        get: |params| Some(Value::Number(params.ared().adaptation.beta)),
        set: |params, value| params.ared_mut().adaptation.beta = value.number(),
    }
}

pub(crate) const fn range<P: HasAred>() -> Field<P> {
    let doc = "how far the average may be from its target, as a share of max-th - min-th";
    Field {
        about: Parameter::number("range", "", (0.0, 0.5), Some(0.1), FIGURE_1, doc),
        get: |params| Some(Value::Number(params.ared().adaptation.range)),
        set: |params, value| params.ared_mut().adaptation.range = value.number(),
    }
}

pub(crate) const fn floor<P: HasAred>() -> Field<P> {
    Field {
        about: Parameter::number("floor", "", (1e-4, 1.0), Some(0.01), FIGURE_1, "the least max_p"),
        get: |params| Some(Value::Number(params.ared().adaptation.floor)),
        set: |params, value| params.ared_mut().adaptation.floor = value.number(),
    }
}

pub(crate) const fn ceiling<P: HasAred>(default: f64, source: &'static str) -> Field<P> {
    let doc = "the largest max_p; not below floor";
    Field {
        about: Parameter::number("ceiling", "", (1e-4, 1.0), Some(default), source, doc),
        get: |params| Some(Value::Number(params.ared().adaptation.ceiling)),
        set: |params, value| params.ared_mut().adaptation.ceiling = value.number(),
    }
}

pub(crate) fn check(params: &impl HasAred) -> Result<(), ParameterError> {
    red::check_thresholds(params)?;
    let AdaptationParams { floor, ceiling, .. } = params.ared().adaptation;
    if floor <= ceiling {
        return Ok(());
    }
    let (parameter, value) = ("ceiling".to_owned(), ceiling.to_string());
    Err(ParameterError { parameter, value, allowed: format!("at least floor = {floor}"), nearest: None })
}

/// What is remembered: `max_p`, and when it may change.
#[derive(Clone, Copy, Debug)]
pub struct Adaptation {
    params: AdaptationParams,
    first: f64,
    as_ns2: bool,
    pub(crate) max_p: f64,
    next_step: Instant,
}

impl Adaptation {
    pub(crate) fn new(params: AdaptationParams, red: &RedParams) -> Self {
        let mut new =
            Self { params, first: red.max_p, as_ns2: red.ns2, max_p: 0.0, next_step: Instant::ZERO };
        new.begin(Instant::ZERO);
        new
    }

    pub(crate) fn begin(&mut self, now: Instant) {
        self.max_p = self.first;
        self.next_step = now.saturating_add(self.params.interval);
    }

    /// Takes the steps that are due; the queue has been `backlog` since the last call.
    #[inline]
    pub(crate) fn steer(
        &mut self,
        now: Instant,
        backlog: Backlog,
        core: &Core,
        target: impl FnOnce(&Core) -> f64,
    ) {
        if now >= self.next_step {
            self.take_steps(now, backlog.packets == 0, core, target(core));
        }
    }

    #[cold]
    fn take_steps(&mut self, now: Instant, idle: bool, core: &Core, target: f64) {
        let margin = self.params.range * (core.slope.max_th - core.slope.min_th);
        let (low, high) = (target - margin, target + margin);
        if self.as_ns2 {
            return self.step_as_ns2(now, idle, core, low, high);
        }
        while self.next_step <= now {
            let avg = if idle { core.average_while_idle(self.next_step) } else { core.avg() };
            let before = self.max_p;
            self.max_p = bounded_step(&self.params, before, avg, low, high);
            self.next_step = self.next_step.saturating_add(self.params.interval);
            if self.max_p == before {
                // Nothing changes until the average has fallen below the range.
                let falls = if idle && avg >= low { core.idle_until(low) } else { now };
                self.skip_to(falls.min(now));
            }
        }
    }

    /// One step, beyond floor and ceiling if it comes to that; the interval begins anew only when something has changed.
    fn step_as_ns2(&mut self, now: Instant, idle: bool, core: &Core, low: f64, high: f64) {
        let avg = if idle { core.average_while_idle(now) } else { core.avg() };
        let before = self.max_p;
        self.max_p = step(&self.params, before, avg, low, high);
        if self.max_p != before {
            self.next_step = now.saturating_add(self.params.interval);
        }
    }

    /// Leaves out the steps up to and at `until`.
    fn skip_to(&mut self, until: Instant) {
        self.next_step = first_after(until, self.next_step, self.params.interval);
    }
}

/// Adaptive RED, figure 1: what comes after `max_p`.
fn step(params: &AdaptationParams, max_p: f64, avg: f64, low: f64, high: f64) -> f64 {
    if avg > high && max_p < params.ceiling {
        max_p + params.alpha.unwrap_or_else(|| (max_p / 4.0).min(0.01))
    } else if avg < low && max_p > params.floor {
        max_p * params.beta
    } else {
        max_p
    }
}

/// The same within floor and ceiling; a `max_p` that begins beyond them may stay there.
fn bounded_step(params: &AdaptationParams, max_p: f64, avg: f64, low: f64, high: f64) -> f64 {
    let next = step(params, max_p, avg, low, high);
    next.min(params.ceiling.max(max_p)).max(params.floor.min(max_p))
}

/// The middle of the slope: where Adaptive RED holds the average.
pub(crate) fn middle(core: &Core) -> f64 {
    f64::midpoint(core.slope.min_th, core.slope.max_th)
}

/// Adaptive RED.
pub type Ared = Steered<Adaptation>;

impl Aqm for Ared {
    type Params = AredParams;
    const NAME: &'static str = "ared";
    const TITLE: &'static str = "Adaptive RED";
    const SOURCE: &'static str = "Floyd, Gummadi, Shenker, ICSI 2001";

    fn build(params: &AredParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let steering = Adaptation::new(params.adaptation, &params.red);
        Ok(Self { core: Core::new(&params.red, rate), steering })
    }
}

impl Steering for Adaptation {
    #[inline]
    fn max_p(&self) -> f64 {
        self.max_p
    }

    fn target(&self, core: &Core) -> Option<f64> {
        Some(middle(core))
    }

    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog, core: &Core) {
        self.steer(now, backlog, core, middle);
    }

    fn reset(&mut self, now: Instant, _core: &Core) {
        self.begin(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, DropProbability};
    use cutline_units::{Hint, HintBits};

    const HALF_A_SECOND: Duration = Duration::from_millis(500);

    fn hint() -> Hint {
        HintBits::PAPER.largest()
    }

    fn packets(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1000 }
    }

    /// RED-Worcester's link and thresholds, and an average that is the queue.
    fn ared(adaptation: AdaptationParams) -> Ared {
        let red =
            RedParams { min_th: Some(20.0), max_th: Some(80.0), w_q: Some(1.0), ..AredParams::default().red };
        Ared::build(&AredParams { red, adaptation }, Rate::from_mbps(5)).expect("the parameters are allowed")
    }

    /// `max_p` after so many steps at a queue.
    fn after(law: &mut Ared, steps: u64, q: u32) -> f64 {
        let begin = law.steering.next_step - HALF_A_SECOND;
        law.arrive(begin, Arrival::new(1000, hint()), packets(q));
        law.advance(begin + HALF_A_SECOND * steps, packets(q));
        law.steering.max_p
    }

    #[test]
    fn steps_of_the_paper() {
        let params = AdaptationParams::default();
        assert_eq!(step(&params, 0.02, 57.0, 44.0, 56.0), 0.025);
        assert_eq!(step(&params, 0.1, 57.0, 44.0, 56.0), 0.11);
        assert_eq!(step(&params, 0.1, 43.0, 44.0, 56.0), 0.1 * 0.9);
        assert_eq!(step(&params, 0.1, 50.0, 44.0, 56.0), 0.1);
    }

    #[test]
    fn ns_2_steps_half_a_second_after_a_change() {
        let mut law = ared(AdaptationParams::default());
        law.steering.as_ns2 = true;
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let mut max_p_at = |ms: u64, q: u32| {
            law.arrive(at(ms), Arrival::new(1000, hint()), packets(q));
            law.advance(at(ms), packets(q));
            law.steering.max_p
        };
        assert_eq!(max_p_at(499, 57), 0.02);
        assert_eq!(max_p_at(800, 57), 0.025, "later than half a second");
        assert_eq!(max_p_at(1250, 43), 0.025, "less than half a second after that");
        assert_eq!(max_p_at(1400, 43), 0.025 * 0.9);
        assert_eq!(max_p_at(2000, 50), 0.025 * 0.9, "nothing to change");
        assert_eq!(max_p_at(2001, 43), 0.025 * 0.9 * 0.9, "so the next arrival may");
        let mut least = 1.0;
        (0..30).for_each(|i| least = max_p_at(3000 + 600 * i, 43));
        assert!(
            (least - 0.02025 * 0.9_f64.powi(7)).abs() < 1e-12,
            "the first below the floor of 0.01: {least}"
        );
    }

    #[test]
    fn the_average_decides_within_floor_and_ceiling() {
        let mut law = ared(AdaptationParams::default());
        assert_eq!(after(&mut law, 1, 57), 0.025, "above 56 packets");
        assert_eq!(after(&mut law, 3, 56), 0.025, "within 44..56 packets");
        assert_eq!(after(&mut law, 1, 43), 0.025 * 0.9, "below 44 packets");
        assert_eq!(after(&mut law, 1000, 70), 0.5);
        assert_eq!(after(&mut law, 1000, 30), 0.01);
    }

    #[test]
    fn a_fixed_alpha_and_a_ceiling_of_one() {
        let params = AdaptationParams { alpha: Some(0.1), ceiling: 1.0, ..AdaptationParams::default() };
        let mut law = ared(params);
        assert!((after(&mut law, 5, 70) - 0.52).abs() < 1e-12);
        assert_eq!(after(&mut law, 10, 70), 1.0);
    }

    #[test]
    fn an_idle_queue_is_stepped_through_alike_in_one_call_and_in_many() {
        let params = AredParams::default();
        let mut late = Ared::build(&params, Rate::from_kbps(500)).unwrap();
        (0..2000).for_each(|_| {
            late.arrive(Instant::ZERO, Arrival::new(1000, hint()), packets(30));
        });
        late.departed(Instant::ZERO, 1000, Instant::ZERO, packets(0));
        let mut punctual = late;
        let mut most = 0.0_f64;
        for step in 0..400 {
            punctual.advance(Instant::ZERO + HALF_A_SECOND * step, packets(0));
            most = most.max(punctual.steering.max_p);
        }
        late.advance(Instant::ZERO + HALF_A_SECOND * 399, packets(0));
        assert!(most > 0.02, "it rises as long as the average is above the range: {most}");
        assert_eq!((late.steering.max_p, punctual.steering.max_p), (0.01, 0.01));
        assert_eq!(late.steering.next_step, punctual.steering.next_step);
    }

    #[test]
    fn a_ceiling_below_the_floor_is_refused() {
        let adaptation = AdaptationParams { floor: 0.2, ceiling: 0.1, ..AdaptationParams::default() };
        let params = AredParams { adaptation, ..AredParams::default() };
        let error = Ared::build(&params, Rate::from_mbps(5)).unwrap_err().to_string();
        assert_eq!(error, "ceiling = 0.1: allowed is at least floor = 0.2");
    }
}
