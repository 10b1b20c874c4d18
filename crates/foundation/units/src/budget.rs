//! A delay hint as a budget that consecutive routers spend together.
//!
//! RED-Worcester (section 5) leaves to the future that "cascaded routers" inform each other how long a packet has waited
//! already. Here a router subtracts the time that a packet has waited from the packet's hint. A hint of level d stands for
//! a delay of d times `step` (RED-Worcester's hints are delays; 5 ms a level is its experiments' 80 ms at level 16), and
//!
//! ```text
//! d' = max(1, round((d step - waited) / step))
//! ```
//!
//! The rest is carried in the hint field, so it is rounded to a level (5 ms with n = 4). Rounding to the nearest level keeps
//! the sum over several routers unbiased. The largest hint means "throughput only" and, for TSQ, unmarked traffic: it has no
//! delay to spend and stays, unless `largest` says that it is a delay like the others.
//!
//! Worked numbers: level 6 is 30 ms; after 12 ms 18 are left, 3.6 steps: level 4. After 50 ms: level 1.
//!
//! Clark, Shenker and Zhang (1992, FIFO+) pass on how much longer a packet waited than its class does, in a separate field.
//! That reduces jitter and leaves the mean delay as it is.

use crate::{Duration, Hint, HintBits};

/// Conversion of the rest of a packet's delay budget to a hint, by a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintBudget {
    /// n: the largest hint is 2^n.
    pub bits: HintBits,
    /// Delay of one level, above 0.
    pub step: Duration,
    /// True if the largest hint is a delay as well.
    pub largest: bool,
}

impl HintBudget {
    /// The delay of a level in RED-Worcester's experiments: 80 ms at level 16.
    pub const STEP: Duration = Duration::from_millis(5);

    /// The hint of a packet that has waited so long.
    #[inline]
    pub fn after(self, hint: Hint, waited: Duration) -> Hint {
        if hint >= self.bits.largest() && !self.largest {
            return hint;
        }
        let step = self.step.as_nanos();
        let left = (step * u64::from(hint.level())).saturating_sub(waited.as_nanos());
        let level = left.saturating_add(step / 2) / step;
        // No more than the hint was, so it fits 16 bits.
        Hint::from_level((level as u16).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUDGET: HintBudget = HintBudget { bits: HintBits::PAPER, step: HintBudget::STEP, largest: false };

    fn after(level: u16, waited_ms: u64) -> u16 {
        BUDGET.after(Hint::from_level(level), Duration::from_millis(waited_ms)).level()
    }

    #[test]
    fn the_header_s_worked_numbers() {
        assert_eq!((after(6, 0), after(6, 12), after(6, 50)), (6, 4, 1));
    }

    #[test]
    fn less_than_half_a_level_is_forgiven() {
        assert_eq!((after(6, 2), after(6, 3)), (6, 5));
    }

    #[test]
    fn the_largest_hint_is_a_delay_only_on_request() {
        assert_eq!(after(16, 50), 16);
        let all = HintBudget { largest: true, ..BUDGET };
        assert_eq!(all.after(Hint::from_level(16), Duration::from_millis(50)).level(), 6);
    }

    proptest! {
        #[test]
        fn a_budget_never_grows_and_falls_with_the_wait(
            level in 1u16..=256, step in 1u64..1 << 40, waited in 0u64..1 << 50, more in 0u64..1 << 50, largest: bool,
        ) {
            let bits = HintBits::new(8).unwrap();
            let budget = HintBudget { bits, step: Duration::from_nanos(step), largest };
            let after = |waited| budget.after(Hint::from_level(level), Duration::from_nanos(waited)).level();
            prop_assert!(after(waited) >= 1 && after(waited) <= level);
            prop_assert!(after(waited + more) <= after(waited));
            prop_assert_eq!(after(0), level);
        }
    }
}
