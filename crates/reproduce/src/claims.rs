//! What a paper says of its figures, as data, and the words for what was found.

use crate::experiment::Experiment;
use cutline_report::report::{Claim, PaperValue, Verdict};
use cutline_report::stats::Estimate;
use serde::Deserialize;

/// What a paper says of one figure, and the statements that are checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureText {
    /// The figure's number in the paper.
    pub number: u32,
    /// The heading of its section in the report.
    pub heading: String,
    /// The experiments that it shows, the study's own first; none where nothing needs to be simulated.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// What the paper says, in our words.
    pub says: String,
    /// The statements that are checked.
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

    /// The claim of that id, made of results called `source`; nothing is measured yet.
    pub(crate) fn claim(&self, source: &str, id: &str) -> Claim {
        let text = self.claims.iter().find(|claim| claim.id == id);
        let text = text.unwrap_or_else(|| panic!("figure {} has no claim `{id}`", self.number));
        Claim::new(format!("{source}.{id}"), self.number.to_string(), &text.text)
            .paper(text.paper.clone())
            .unit(&text.unit)
    }

    /// The claim of that id, whose table gives the whole id.
    pub(crate) fn claim_named(&self, id: &str) -> Claim {
        let (source, _) = id.split_once('.').expect("a whole id is SOURCE.CLAIM");
        Claim { id: id.to_owned(), ..self.claim(source, id) }
    }

    /// The same of an experiment's results: the claim's words say which variant it is.
    pub(crate) fn claim_of(&self, experiment: &Experiment, id: &str) -> Claim {
        let claim = self.claim(experiment.id, id);
        Claim { claim: format!("{} ({})", claim.claim, experiment.label), ..claim }
    }

    /// The ids of the claims.
    pub(crate) fn claim_ids(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(|claim| claim.id.as_str())
    }
}

/// Where an estimate lies, beyond the doubt of its confidence interval.
pub(crate) trait Judge {
    /// Whether it is above a value: unclear when the interval includes it.
    fn is_above(&self, value: f64) -> Verdict;

    /// Whether it is below a value: unclear when the interval includes it.
    fn is_below(&self, value: f64) -> Verdict;

    /// Whether it is not below a value by more than its interval can tell.
    fn is_not_below(&self, value: f64) -> Verdict;

    /// Whether it is not above a value by more than its interval can tell.
    fn is_not_above(&self, value: f64) -> Verdict;

    /// Whether its interval meets a range.
    fn meets(&self, low: f64, high: f64) -> Verdict;

    /// Whether it is within a range: unclear when its interval reaches beyond, or there is none.
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

/// Fills in what was measured and the verdict; nothing where there is no estimate.
pub(crate) fn judged(claim: Claim, found: Option<Estimate>, verdict: impl Fn(&Estimate) -> Verdict) -> Claim {
    match found {
        Some(found) => claim.measured(&found).holds(verdict(&found)),
        None => claim.note("There are no results to tell."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        Estimate { mean, std_error: None, interval: Some((mean - half, mean + half)), n: 10 }
    }

    #[test]
    fn a_verdict_waits_for_the_interval() {
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
