//! Claims of a figure: a paper's statement, or a study's question, that is checked.
//!
//! A claim has its text, its rule with the tolerance ([`expectation`]) and, where it is regular, its quantity ([`quantity`]). An
//! irregular measure is code ([`Own`]).
//!
//! Claims that differ only in names and values are written once, with the rows of `[rows]` that `each` names: `{queue.id}` in a text is
//! replaced by the `id` of the row of `queue`, and the claim is repeated for every combination of the rows.

mod expectation;
mod quantity;
mod quantity_text;
mod read;
mod rows;

pub(crate) use expectation::Expectation;
pub(crate) use quantity::Quantity;
pub(crate) use quantity_text::{MEASURE, Names, Points, QuantityText, name_in, read_points};
pub(crate) use read::read_claims;
pub(crate) use rows::{Rows, read_rows, repeat};

use crate::data::{Data, ExperimentData};
use crate::experiment::Experiment;
use cutline_config::Located;
use cutline_report::report::{Claim, ClaimRole, PaperValue};
use cutline_report::stats::Estimate;

/// A claim before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct ClaimData {
    /// Its name. With a dot, the part before it is the experiment.
    pub(crate) id: String,
    /// The place of its table.
    pub(crate) place: Located<()>,
    pub(crate) text: String,
    paper: Option<PaperValue>,
    unit: String,
    note: String,
    is_check: bool,
    pub(crate) expectation: Option<Expectation>,
    pub(crate) quantity: Option<Quantity>,
}

/// Evidence for judging a claim.
pub struct Evidence<'d> {
    /// The experiment for which the claim is judged.
    pub experiment: &'d Experiment,
    /// Its results.
    pub data: &'d Data,
    /// All experiments of the figure.
    pub all: &'d [ExperimentData<'d>],
}

/// Measurement by code.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The value with its interval; `None` without results.
    pub estimate: Option<Estimate>,
    /// A remark on this value.
    pub note: String,
}

/// A measure in code.
pub type Own = Box<dyn Fn(&Evidence<'_>) -> Measured>;

impl Evidence<'_> {
    /// The results of an experiment of the figure; `None` for the claim's own.
    pub fn data(&self, experiment: Option<&str>) -> Option<&Data> {
        match experiment {
            None => Some(self.data),
            Some(id) => self.all.iter().find(|(one, _)| one.id == id).map(|(_, data)| *data),
        }
    }
}

impl From<Option<Estimate>> for Measured {
    fn from(estimate: Option<Estimate>) -> Self {
        Self { estimate, note: String::new() }
    }
}

impl ClaimData {
    /// Returns the part of the claim's id before the dot.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.id.split_once('.').map(|(experiment, _)| experiment)
    }

    /// Returns the name without the experiment.
    pub(crate) fn name(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_str(), |(_, name)| name)
    }

    /// The claim about an experiment without a verdict. `figure` is the number of its figure.
    pub(crate) fn unjudged(&self, figure: u32, experiment: &str) -> Claim {
        let id = format!("{experiment}.{}", self.name());
        let claim = Claim::new(id, figure.to_string(), &self.text).unit(&self.unit).note(&self.note);
        Claim {
            paper: self.paper.clone().or_else(|| self.expectation.map(|expectation| expectation.stated())),
            rule: self.expectation.map_or_else(String::new, |expectation| expectation.rule()),
            kind: if self.is_check { ClaimRole::Check } else { ClaimRole::Statement },
            ..claim
        }
    }

    /// The claim with its verdict. `own` finds the code that measures a claim without a quantity.
    pub(crate) fn judge(
        &self,
        claim: Claim,
        evidence: &Evidence<'_>,
        own: impl FnOnce() -> Option<Own>,
    ) -> Claim {
        let kind = if self.is_check { ClaimRole::Check } else { claim.kind };
        let claim = Claim { kind, ..claim };
        let measured = match &self.quantity {
            Some(quantity) => quantity.estimate(&|id| evidence.data(id)).into(),
            None => own().map_or_else(Measured::default, |own| own(evidence)),
        };
        self.decide(claim, &measured)
    }

    /// The claim with the verdict on a measurement.
    pub(crate) fn decide(&self, claim: Claim, measured: &Measured) -> Claim {
        let Some(estimate) = measured.estimate else {
            return claim.note("There are no results for this claim.");
        };
        let note = [claim.note.as_str(), measured.note.as_str()].into_iter().filter(|note| !note.is_empty());
        let note = note.collect::<Vec<_>>().join(" ");
        let decided = self.expectation.map(|expectation| expectation.decide(&estimate, self.is_check));
        let claim = claim.measured(&estimate).note(note);
        match decided {
            Some(decision) => Claim { p_value: decision.p_value, ..claim.holds(decision.verdict) },
            None => claim,
        }
    }
}
