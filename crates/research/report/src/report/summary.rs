//! Number of reproduced statements, and of verdicts that may be wrong by chance.

use super::claim::{Claim, ClaimRole, ClaimVerdict};
use crate::stats::holm;

/// The level of the one-sided test behind a verdict: an interval of 95 % leaves half of the rest on each side.
pub const LEVEL: f64 = 0.025;

/// The number of claims with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The claims that hold.
    pub holds: usize,
    /// The claims that differ.
    pub differs: usize,
    /// The claims that the measurement does not decide.
    pub unclear: usize,
}

impl Counts {
    /// Counts claims by their verdicts.
    pub fn of<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> Self {
        let mut counts = Self::default();
        for claim in claims {
            *match claim.holds {
                ClaimVerdict::Holds => &mut counts.holds,
                ClaimVerdict::Differs => &mut counts.differs,
                ClaimVerdict::Unclear => &mut counts.unclear,
            } += 1;
        }
        counts
    }

    /// The number of claims.
    pub fn all(&self) -> usize {
        self.holds + self.differs + self.unclear
    }
}

/// The summary of a report's claims.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClaimSummary {
    /// The paper's statements, or the study's questions.
    pub statements: Counts,
    /// The same with other variants of the experiments.
    pub variants: Counts,
    /// The checks of the code.
    pub checks: Counts,
    /// The largest number of statements' verdicts that are expected to be wrong by chance: 2.5 % of those that were reached by a test.
    pub expected_wrong: f64,
    /// The statements that still hold, and those that still differ, if all tests are taken together (Holm's correction). Verdicts without
    /// a test are among them.
    pub together: Counts,
}

impl ClaimSummary {
    /// Summarises claims.
    pub fn of<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> Self {
        let claims: Vec<&Claim> = claims.into_iter().collect();
        let of = |kind| claims.iter().copied().filter(move |claim| claim.kind == kind);
        let is_tested = |claim: &&Claim| claim.holds != ClaimVerdict::Unclear && claim.p_value.is_some();
        let (tested, others): (Vec<&Claim>, Vec<&Claim>) = of(ClaimRole::Statement).partition(is_tested);
        let p_values: Vec<f64> = tested.iter().filter_map(|claim| claim.p_value).collect();
        let significant = holm(&p_values, LEVEL);
        let kept = tested.iter().zip(&significant).filter(|(_, is)| **is).map(|(claim, _)| *claim);
        let lost = significant.iter().filter(|is| !**is).count();
        let together = Counts::of(kept.chain(others.iter().copied()));
        Self {
            statements: Counts::of(of(ClaimRole::Statement)),
            variants: Counts::of(of(ClaimRole::Variant)),
            checks: Counts::of(of(ClaimRole::Check)),
            expected_wrong: LEVEL * tested.len() as f64,
            together: Counts { unclear: together.unclear + lost, ..together },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(kind: ClaimRole, holds: ClaimVerdict, p_value: Option<f64>) -> Claim {
        Claim { kind, p_value, ..Claim::new("one", "1", "A claim.").holds(holds) }
    }

    #[test]
    fn kinds_are_counted_apart_and_weak_verdicts_are_not_kept() {
        let claims = [
            claim(ClaimRole::Statement, ClaimVerdict::Holds, Some(0.000_1)),
            // Significant alone, but not together with the others.
            claim(ClaimRole::Statement, ClaimVerdict::Differs, Some(0.02)),
            claim(ClaimRole::Statement, ClaimVerdict::Holds, Some(0.02)),
            claim(ClaimRole::Statement, ClaimVerdict::Holds, None),
            claim(ClaimRole::Statement, ClaimVerdict::Unclear, Some(0.3)),
            claim(ClaimRole::Variant, ClaimVerdict::Differs, Some(0.000_1)),
            claim(ClaimRole::Check, ClaimVerdict::Holds, None),
        ];
        let summary = ClaimSummary::of(&claims);
        assert_eq!(summary.statements, Counts { holds: 3, differs: 1, unclear: 1 });
        assert_eq!((summary.variants.differs, summary.variants.all(), summary.checks.holds), (1, 1, 1));
        // Three tests; 0.02 > 0.025 / 2, so two of them are lost.
        assert_eq!(summary.together, Counts { holds: 2, differs: 0, unclear: 3 });
        assert!((summary.expected_wrong - 0.075).abs() < 1e-12);
    }
}
