//! RED-Worcester: Adaptive RED whose target follows the hints of the traffic.
//!
//! Source: the RED-Worcester paper, section 2.3 and figure 5. On the arrival of a packet of P bits that requests
//! a delay of D seconds, at a link of C bit/s:
//!
//! ```text
//! Target       = C D / P                                   packets
//! MovingTarget = (1 - w_t) MovingTarget + w_t Target
//! ```
//!
//! and Adaptive RED ([`crate::ared`]) steers the average to `MovingTarget`, give or take `range` of the span,
//! instead of to the middle of the thresholds.
//!
//! Worked number: at 5 Mbit/s and 1000 B, level 16 requests 80 ms and so 50 packets, level 6 30 ms and
//! 18.75; `MovingTarget` goes from 50 to 0.98 x 50 + 0.02 x 18.75 = 49.375 (`the_target_moves`).
//!
//! **Hints.** The paper's hints are delays of 7 or 10 bits. Here a packet carries one level for every queue on its path.
//! `step` or the table `delays` gives the delay of a level at this queue. Levels beyond 16 count as 16.
//!
//! **Unmarked packets** count with Adaptive RED's own target, the middle of the thresholds. An [`Arrival`] always has a
//! hint: unmarked traffic has the largest level. The operator of the queue must state whether that level means "80 ms" or
//! "no hint", with `largest-is-unmarked`. In the paper's experiments all traffic is marked; on the Internet hardly any is.
//!
//! In mode bytes the queue and the target are counted in packets of `mean-packet`. Every arrival moves the target,
//! dropped or not. `MovingTarget` begins in the middle of the thresholds.
//!
//! The paper's future work: hints that change on their path with the delay suffered belong to the link
//! (`cutline_units::HintBudget`). Sorting the queue with a fair drop probability is TSQ on top of this law.
//!
//! # Validation
//!
//! - The moving target by hand and at rest: `the_target_moves`, `a_mix_of_hints_settles_at_its_mean`.
//! - The paper's evaluation: `cutline reproduce redw` measures each of its claims (figures 8 to 14).
//! - No other engine has it. The part that it shares with Adaptive RED is compared with ns-2's ([`crate::ared`]).

use crate::ared::{self, Adaptation, AdaptationParams, AredParams, middle};
use crate::red::{Core, Steered, Steering};
use crate::{Aqm, Arrival, Backlog, Limit};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, HintBits, Instant, Rate};
use std::array;

/// Number of levels of the paper's experiments, and of a table of delays.
const LEVELS: usize = HintBits::PAPER.levels() as usize;

/// Parameters of RED-Worcester.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct RedWorcesterParams {
    /// Parameters of Adaptive RED.
    #[group(
        default = AredParams {
            adaptation: AdaptationParams { ceiling: 1.0, ..AdaptationParams::default() },
            ..AredParams::default()
        },
        sources(ceiling = "RED-Worcester figure 10")
    )]
    pub ared: AredParams,
    /// The weight of each arrival in the moving target.
    #[param(default = 0.02, range = (1e-4, 1.0), source = "RED-Worcester section 2.3")]
    pub w_t: f64,
    /// Delay that level 1 requests; level n requests n times as much.
    #[param(
        default = Duration::from_millis(5),
        range = (Duration::from_micros(100), Duration::from_secs(1)),
        source = "RED-Worcester section 4: level 16 is 80 ms"
    )]
    pub step: Duration,
    /// The delay that each level requests, from 1 to 16.
    #[param(
        default = None,
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "off: step times the level"
    )]
    pub delays: Option<[Duration; LEVELS]>,
    /// Treatment of packets of the largest level as unmarked ones, which count with the middle of the thresholds.
    #[param(default = false, source = "RED-Worcester's experiments mark all traffic")]
    pub largest_is_unmarked: bool,
}

fn check(params: &RedWorcesterParams) -> Result<(), ParameterError> {
    ared::check(&params.ared)
}

/// RED-Worcester.
pub type RedWorcester = Steered<MovingTarget>;

/// An adaptation to a target that follows the hints.
#[derive(Clone, Copy, Debug)]
pub struct MovingTarget {
    adaptation: Adaptation,
    w_t: f64,
    /// D of each level.
    delays: [Duration; LEVELS],
    largest_is_unmarked: bool,
    /// C, bit/s.
    rate: f64,
    /// `MovingTarget`, packets.
    packets: f64,
}

impl Aqm for RedWorcester {
    type Params = RedWorcesterParams;
    const NAME: &'static str = "red-worcester";
    const TITLE: &'static str = "RED-Worcester";
    const SOURCE: &'static str = "the RED-Worcester paper, section 2";

    fn build(params: &RedWorcesterParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let RedWorcesterParams { ared: AredParams { red, adaptation }, w_t, largest_is_unmarked, .. } =
            *params;
        let core = Core::new(&red, rate);
        let adaptation = Adaptation::new(adaptation, &red);
        let (packets, rate) = (middle(&core), rate.as_bps() as f64);
        let delays = params.delays.unwrap_or_else(|| array::from_fn(|lane| params.step * (lane as u64 + 1)));
        let steering = MovingTarget { adaptation, w_t, delays, largest_is_unmarked, rate, packets };
        Ok(Self { core, steering })
    }

    fn standing_delay(params: &RedWorcesterParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        Some(params.ared.red.standing_delay(rate))
    }

    fn moderate_params() -> RedWorcesterParams {
        let params = RedWorcesterParams::default();
        RedWorcesterParams {
            ared: AredParams { red: params.ared.red.moderate(0.3), ..params.ared },
            ..params
        }
    }
}

impl Steering for MovingTarget {
    #[inline]
    fn max_p(&self) -> f64 {
        self.adaptation.max_p
    }

    fn target(&self, _core: &Core) -> Option<f64> {
        Some(self.packets)
    }

    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog, core: &Core) {
        let packets = self.packets;
        self.adaptation.steer(now, backlog, core, |_| packets);
    }

    #[inline]
    fn arrive(&mut self, arrival: Arrival, core: &Core) {
        self.packets += self.w_t * (self.asked_for(arrival, core) - self.packets);
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate.as_bps() as f64;
    }

    fn reset(&mut self, now: Instant, core: &Core) {
        self.adaptation.begin(now);
        self.packets = middle(core);
    }
}

impl MovingTarget {
    /// Target of RED-Worcester section 2.3, packets.
    #[inline]
    fn asked_for(&self, arrival: Arrival, core: &Core) -> f64 {
        let lane = arrival.hint.lane().min(LEVELS - 1);
        if self.largest_is_unmarked && lane == LEVELS - 1 {
            return middle(core);
        }
        let size = core.counted_size(arrival.size);
        self.rate * self.delays[lane].as_secs_f64() / (8.0 * size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DropProbability;
    use crate::red::RedMode;
    use cutline_units::Hint;

    /// The paper's router (section 4).
    fn router(change: impl Fn(&mut RedWorcesterParams)) -> RedWorcester {
        let mut params = RedWorcesterParams::default();
        (params.ared.red.min_th, params.ared.red.max_th) = (Some(20.0), Some(80.0));
        change(&mut params);
        RedWorcester::build(&params, Rate::from_mbps(5)).expect("the parameters are allowed")
    }

    fn arrive(law: &mut RedWorcester, size: u32, level: u16, q: u32) {
        let backlog = Backlog { packets: q, bytes: u64::from(q) * 1000 };
        law.arrive(Instant::ZERO, Arrival::new(size, Hint::from_level(level)), backlog);
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_target_moves() {
        // RED-Worcester section 2.3.
        let mut law = router(|_| ());
        assert!(close(law.steering.packets, 50.0), "the middle of 20 and 80");
        arrive(&mut law, 1000, 16, 30);
        assert!(close(law.steering.packets, 50.0), "80 ms are 50 packets of 1000 B");
        arrive(&mut law, 1000, 6, 30);
        assert!(close(law.steering.packets, 49.375), "{}", law.steering.packets);
        arrive(&mut law, 500, 16, 30);
        assert!(close(law.steering.packets, 0.98 * 49.375 + 0.02 * 100.0), "100 packets of 500 B");
    }

    #[test]
    fn a_mix_of_hints_settles_at_its_mean() {
        // RED-Worcester section 4: one in twenty at 80 ms, the rest at 32 ms, so 0.05 x 50 + 0.95 x 20 = 21.5 packets.
        let mut delays = [Duration::from_millis(32); 16];
        delays[15] = Duration::from_millis(80);
        let mut law = router(|params| params.delays = Some(delays));
        let mut sum = 0.0;
        for i in 0..4000 {
            arrive(&mut law, 1000, if i % 20 == 0 { 16 } else { 6 }, 30);
            sum += if i >= 2000 { law.steering.packets } else { 0.0 };
        }
        assert!((sum / 2000.0 - 21.5).abs() < 0.01, "{}", sum / 2000.0);
    }

    #[test]
    fn unmarked_packets_count_with_the_middle() {
        let mut law = router(|params| {
            params.largest_is_unmarked = true;
            params.step = Duration::from_millis(1);
        });
        arrive(&mut law, 1000, 16, 30);
        assert!(close(law.steering.packets, 50.0), "{}", law.steering.packets);
        arrive(&mut law, 1000, 15, 30);
        assert!(close(law.steering.packets, 0.98 * 50.0 + 0.02 * 9.375), "{}", law.steering.packets);
    }

    #[test]
    fn the_largest_probability_steers_to_the_target() {
        let mut law = router(|params| params.ared.red.w_q = Some(0.5));
        (0..500).for_each(|_| arrive(&mut law, 1000, 6, 40));
        assert!((law.steering.packets - 18.75).abs() < 0.01);
        let (before, backlog) = (law.steering.adaptation.max_p, Backlog { packets: 40, bytes: 40_000 });
        law.advance(Instant::ZERO + Duration::from_secs(30), backlog);
        assert!(before < 0.03 && law.steering.adaptation.max_p > 0.5, "40 packets are too many for 30 ms");
        (0..500).for_each(|_| arrive(&mut law, 1000, 16, 40));
        law.advance(Instant::ZERO + Duration::from_secs(60), backlog);
        assert_eq!(law.steering.adaptation.max_p, 0.01, "40 packets are few for 80 ms");
    }

    #[test]
    fn in_bytes_the_target_is_of_mean_packets() {
        let mut law = router(|params| params.ared.red.mode = RedMode::Bytes);
        arrive(&mut law, 500, 16, 30);
        assert!(close(law.steering.packets, 50.0));
    }
}
