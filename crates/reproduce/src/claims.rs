//! What a paper says about its figures, as data, and the verdicts on its claims.

use crate::experiment::Experiment;
use cutline_report::report::{Claim, PaperValue, Verdict};
use cutline_report::stats::Estimate;
use serde::Deserialize;

/// What a paper says about one figure, and the claims that are checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureText {
    /// The number of the figure in the paper.
    pub number: u32,
    /// The heading of its section in the report.
    pub heading: String,
    /// The experiments that it shows, the main one first; empty if nothing needs to be simulated.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// What the paper says, in our words.
    pub says: String,
    /// The claims that are checked.
    claims: Vec<ClaimText>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimText {
    id: String,
    text: String,
    paper: PaperValue,
    #[serde(default)]
    unit: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    figure: Vec<FigureText>,
}

impl FigureText {
    /// Reads a table of figures that is part of this crate.
    pub(crate) fn read(text: &str) -> Vec<Self> {
        toml::from_str::<Figures>(text).expect("the tables of figures are tested").figure
    }

    /// The claim with this id about the results of the experiment `source`, without measured values.
    pub(crate) fn claim(&self, source: &str, id: &str) -> Claim {
        let text = self.claims.iter().find(|claim| claim.id == id);
        let text = text.unwrap_or_else(|| panic!("figure {} has no claim `{id}`", self.number));
        Claim::new(format!("{source}.{id}"), self.number.to_string(), &text.text)
            .paper(text.paper.clone())
            .unit(&text.unit)
    }

    /// The claim whose id in the table includes the experiment, as `EXPERIMENT.CLAIM`.
    pub(crate) fn claim_with_full_id(&self, id: &str) -> Claim {
        let (source, _) = id.split_once('.').expect("the id is EXPERIMENT.CLAIM");
        Claim { id: id.to_owned(), ..self.claim(source, id) }
    }

    /// The claim with this id about a variant. Its text names the variant.
    pub(crate) fn variant_claim(&self, experiment: &Experiment, id: &str) -> Claim {
        let claim = self.claim(experiment.id, id);
        Claim { claim: format!("{} ({})", claim.claim, experiment.label), ..claim }
    }

    /// The ids of the claims.
    pub(crate) fn claim_ids(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(|claim| claim.id.as_str())
    }
}

/// Verdicts about an estimate, based on its confidence interval.
pub(crate) trait Judge {
    /// Whether the estimate is above a value. Unclear if the interval includes the value.
    fn is_above(&self, value: f64) -> Verdict;

    /// Whether the estimate is below a value. Unclear if the interval includes the value.
    fn is_below(&self, value: f64) -> Verdict;

    /// Whether the interval reaches up to a value: the estimate is not significantly below it.
    fn is_not_below(&self, value: f64) -> Verdict;

    /// Whether the interval reaches down to a value: the estimate is not significantly above it.
    fn is_not_above(&self, value: f64) -> Verdict;

    /// Whether the interval overlaps a range.
    fn meets(&self, low: f64, high: f64) -> Verdict;

    /// Whether the interval is within a range. Unclear if it reaches beyond the range, or if there is no interval.
    fn is_within(&self, low: f64, high: f64) -> Verdict;
}

impl Judge for Estimate {
    fn is_above(&self, value: f64) -> Verdict {
        match self.interval {
            Some((low, _)) if low > value => Verdict::Holds,
            Some((_, high)) if high <= value => Verdict::Differs,
            _ => Verdict::Unclear,
        }
    }

    fn is_below(&self, value: f64) -> Verdict {
        match self.interval {
            Some((_, high)) if high < value => Verdict::Holds,
            Some((low, _)) if low >= value => Verdict::Differs,
            _ => Verdict::Unclear,
        }
    }

    fn is_not_below(&self, value: f64) -> Verdict {
        let (_, high) = self.interval.unwrap_or((self.mean, self.mean));
        (high >= value).into()
    }

    fn is_not_above(&self, value: f64) -> Verdict {
        let (low, _) = self.interval.unwrap_or((self.mean, self.mean));
        (low <= value).into()
    }

    fn meets(&self, low: f64, high: f64) -> Verdict {
        let (from, to) = self.interval.unwrap_or((self.mean, self.mean));
        (from <= high && to >= low).into()
    }

    fn is_within(&self, low: f64, high: f64) -> Verdict {
        match self.interval {
            Some((from, to)) if from >= low && to <= high => Verdict::Holds,
            Some((from, to)) if from > high || to < low => Verdict::Differs,
            _ => Verdict::Unclear,
        }
    }
}

/// Sets the measured value and the verdict of a claim, if there is an estimate.
pub(crate) fn judged(
    claim: Claim,
    estimate: Option<Estimate>,
    verdict: impl Fn(&Estimate) -> Verdict,
) -> Claim {
    match estimate {
        Some(estimate) => claim.measured(&estimate).holds(verdict(&estimate)),
        None => claim.note("There are no results for this claim."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { mean, std_error: None, interval: Some((mean - half, mean + half)), n: 10 }
    }

    #[test]
    fn verdicts_depend_on_the_interval() {
        assert_eq!(estimate(1.2, 0.1).is_above(1.0), Verdict::Holds);
        assert_eq!(estimate(1.2, 0.3).is_above(1.0), Verdict::Unclear);
        assert_eq!(estimate(0.8, 0.1).is_above(1.0), Verdict::Differs);
        assert_eq!(estimate(0.95, 0.1).is_not_below(1.0), Verdict::Holds);
        assert_eq!(estimate(0.85, 0.1).is_not_below(1.0), Verdict::Differs);
        assert_eq!(estimate(1.05, 0.1).is_not_above(1.0), Verdict::Holds);
        assert_eq!(estimate(1.15, 0.1).is_not_above(1.0), Verdict::Differs);
        assert_eq!(estimate(1.10, 0.01).meets(1.00, 1.04), Verdict::Differs);
        assert_eq!(estimate(1.02, 0.01).is_within(1.00, 1.04), Verdict::Holds);
        assert_eq!(estimate(1.02, 0.03).is_within(1.00, 1.04), Verdict::Unclear);
        assert_eq!(estimate(1.10, 0.01).is_within(1.00, 1.04), Verdict::Differs);
    }
}
