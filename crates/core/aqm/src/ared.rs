//! Adaptive RED: RED that changes `max_p` until the average queue is in its target range.
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
//! Everything else is as in [`crate::red`]. Thresholds and w_q are automatic unless set.
//!
//! Worked numbers: max_p = 0.02 grows by 0.005 to 0.025, and 0.1 by 0.01; 0.1 shrinks to 0.09
//! (`steps_of_the_paper`).
//!
//! Choices that the paper leaves open:
//! - A step does not go beyond floor or ceiling.
//! - While the link is idle the average decays to the value that the next arrival will find. So `max_p` falls during silence, and
//!   does not rise on an average that is out of date.
//!
//! **ns-2.** ns-2's code takes figure 1 literally: max_p may step over floor and ceiling, and a step comes with the first
//! arrival half a second after the last change. The variant `ns-2` does the same
//! (`ns_2_steps_half_a_second_after_a_change`), and spares the packets that ns-2's RED spares. A given `alpha` is the step
//! itself; in the variant `ns-2` the step is min(alpha, max_p / 4), as ns-2 has it (`ns_2_limits_a_given_alpha_to_a_quarter_of_max_p`).
//!
//! There is no timer. [`Steering::advance`] takes the steps it has missed, and skips those that change nothing.
//!
//! # Validation
//!
//! - The steps of figure 1: `steps_of_the_paper`, `the_average_decides_within_floor_and_ceiling`.
//! - Steps missed during silence: `an_idle_queue_is_stepped_through_alike_in_one_call_and_in_many`.
//! - Against ns-2's Adaptive RED, its average and max_p too: the cases named ared of docs/validation/ns2.md, five mixes of
//!   NewReno and TFRC on RED-Worcester's topology, and three flows of NewReno.

use crate::red::{self, Core, RedParams, RedVariant, Steered, Steering};
use crate::sample_clock::first_after;
use crate::{Aqm, Backlog, Limit};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Rate};

const SECTION_5: &str = "automatic: Adaptive RED 2001 section 5";
const SECTION_6: &str = "automatic: Adaptive RED 2001 section 6";
const FIGURE_1: &str = "Adaptive RED 2001 figure 1";

/// Parameters of Adaptive RED.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct AredParams {
    /// Parameters of RED; `max_p` is its initial value.
    #[group(
        default = RedParams { min_th: None, max_th: None, w_q: None, gentle: true, ..RedParams::default() },
        sources(
            min_th = SECTION_6,
            max_th = SECTION_6,
            max_p = "Floyd and Jacobson 1993",
            w_q = SECTION_5,
            gentle = "Adaptive RED 2001 section 4",
        )
    )]
    pub red: RedParams,
    /// Adaptation of `max_p`.
    #[group]
    pub adaptation: AdaptationParams,
}

/// Parameters of the adaptation of `max_p`.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct AdaptationParams {
    /// The time between changes of max_p.
    #[param(
        default = Duration::from_millis(500),
        range = (Duration::from_millis(1), Duration::from_secs(100)),
        source = FIGURE_1
    )]
    pub interval: Duration,
    /// Increment of max_p; off is min(0.01, max_p / 4). In the variant ns-2 at most max_p / 4.
    #[param(
        default = None,
        range = (1e-4, 1.0),
        source = "off: Adaptive RED 2001 figure 1; RED-Worcester's figure 4 has 0.1"
    )]
    pub alpha: Option<f64>,
    /// Factor by which max_p is decreased.
    #[param(default = 0.9, range = (0.01, 0.999), source = FIGURE_1)]
    pub beta: f64,
    /// Largest deviation of the average from its target, as a share of max-th - min-th.
    #[param(default = 0.1, range = (0.0, 0.5), source = FIGURE_1)]
    pub range: f64,
    /// The least max_p.
    #[param(default = 0.01, range = (1e-4, 1.0), source = FIGURE_1)]
    pub floor: f64,
    /// The largest max_p; not below floor.
    #[param(default = 0.5, range = (1e-4, 1.0), source = FIGURE_1)]
    pub ceiling: f64,
}

pub(crate) fn check(params: &AredParams) -> Result<(), ParameterError> {
    red::check_thresholds(&params.red)?;
    let AdaptationParams { floor, ceiling, .. } = params.adaptation;
    if floor <= ceiling {
        return Ok(());
    }
    Err(ParameterError::new("ceiling", ceiling, format!("at least floor = {floor}")))
}

/// State of the adaptation: `max_p`, and the time of its next change.
#[derive(Clone, Copy, Debug)]
pub struct Adaptation {
    params: AdaptationParams,
    first: f64,
    variant: RedVariant,
    pub(crate) max_p: f64,
    next_step: Instant,
}

impl Adaptation {
    pub(crate) fn new(params: AdaptationParams, red: &RedParams) -> Self {
        let mut new =
            Self { params, first: red.max_p, variant: red.variant, max_p: 0.0, next_step: Instant::ZERO };
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
        if self.variant == RedVariant::Ns2 {
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

    /// One step, which may go beyond floor and ceiling. The interval starts again only when something has changed.
    fn step_as_ns2(&mut self, now: Instant, idle: bool, core: &Core, low: f64, high: f64) {
        let avg = if idle { core.average_while_idle(now) } else { core.avg() };
        let before = self.max_p;
        let up = self.params.alpha.unwrap_or(ALPHA).min(before / 4.0);
        self.max_p = step(&self.params, up, before, avg, low, high);
        if self.max_p != before {
            self.next_step = now.saturating_add(self.params.interval);
        }
    }

    /// Skips the steps up to and at `until`.
    fn skip_to(&mut self, until: Instant) {
        self.next_step = first_after(until, self.next_step, self.params.interval);
    }
}

/// Adaptive RED 2001 figure 1: the largest step up.
const ALPHA: f64 = 0.01;

/// Adaptive RED 2001 figure 1: the next value of `max_p`; `up` is the increment.
fn step(params: &AdaptationParams, up: f64, max_p: f64, avg: f64, low: f64, high: f64) -> f64 {
    if avg > high && max_p < params.ceiling {
        max_p + up
    } else if avg < low && max_p > params.floor {
        max_p * params.beta
    } else {
        max_p
    }
}

/// The same within floor and ceiling. A `max_p` that starts beyond them may stay there.
fn bounded_step(params: &AdaptationParams, max_p: f64, avg: f64, low: f64, high: f64) -> f64 {
    let up = params.alpha.unwrap_or_else(|| ALPHA.min(max_p / 4.0));
    let next = step(params, up, max_p, avg, low, high);
    next.min(params.ceiling.max(max_p)).max(params.floor.min(max_p))
}

/// The middle of the slope, at which Adaptive RED holds the average.
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

    fn standing_delay(params: &AredParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        Some(params.red.standing_delay(rate))
    }

    fn moderate_params() -> AredParams {
        let params = AredParams::default();
        AredParams { red: params.red.moderate(0.3), ..params }
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
        // Adaptive RED 2001 figure 1.
        let params = AdaptationParams::default();
        assert_eq!(bounded_step(&params, 0.02, 57.0, 44.0, 56.0), 0.025);
        assert_eq!(bounded_step(&params, 0.1, 57.0, 44.0, 56.0), 0.11);
        assert_eq!(bounded_step(&params, 0.1, 43.0, 44.0, 56.0), 0.1 * 0.9);
        assert_eq!(bounded_step(&params, 0.1, 50.0, 44.0, 56.0), 0.1);
    }

    #[test]
    fn ns_2_limits_a_given_alpha_to_a_quarter_of_max_p() {
        let steps = |variant| {
            let mut law =
                ared(AdaptationParams { alpha: Some(0.1), ceiling: 1.0, ..AdaptationParams::default() });
            law.steering.variant = variant;
            [(); 15].map(|()| after(&mut law, 1, 57))
        };
        let (papers, ns_2) = (steps(RedVariant::Papers), steps(RedVariant::Ns2));
        assert_eq!(papers[0], 0.02 + 0.1, "the step itself");
        assert_eq!(ns_2[0], 0.025, "a quarter of 0.02");
        assert!((ns_2[7] - 0.02 * 1.25_f64.powi(8)).abs() < 1e-12, "a quarter of each: {}", ns_2[7]);
        assert!((ns_2[14] - ns_2[13] - 0.1).abs() < 1e-12, "alpha itself from four times alpha on: {ns_2:?}");
    }

    #[test]
    fn ns_2_has_the_gentle_slope_of_the_first_max_p() {
        let at_end = |variant| {
            let red =
                RedParams { variant, min_th: Some(5.0), max_th: Some(15.0), ..AredParams::default().red };
            let core = Core::new(&red, Rate::from_mbps(15));
            [
                core.slope.probability(15.0, 0.4),
                core.slope.probability(14.999_999, 0.4),
                core.slope.probability(30.0, 0.4),
            ]
        };
        let [papers, ns_2] = [RedVariant::Papers, RedVariant::Ns2].map(at_end);
        // The first max_p is 0.02. The slope up to max_th follows max_p in both.
        assert_eq!((papers[0], ns_2[0]), (0.4, 0.02));
        assert!((papers[1] - 0.4).abs() < 1e-6 && (ns_2[1] - 0.4).abs() < 1e-6);
        assert_eq!((papers[2], ns_2[2]), (1.0, 1.0));
    }

    #[test]
    fn ns_2_steps_half_a_second_after_a_change() {
        let mut law = ared(AdaptationParams::default());
        law.steering.variant = RedVariant::Ns2;
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
