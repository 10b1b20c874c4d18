//! A paper's statements about its figures, and a study's questions, as data: `figures.toml`.
//!
//! A claim has its text, its rule with the tolerance ([`expectation`]) and, where it is regular, its quantity ([`quantity`]). An
//! irregular measure is code, which is found by the claim's name ([`Own`]). [`FigureText::judge`] joins them with the results.
//!
//! Claims that differ only in names and values are written once, with the rows of `[rows]` that `each` names: `{queue.id}` in a text is
//! replaced by the `id` of the row of `queue`, and the claim is repeated for every combination of the rows.

mod expectation;
mod figures;
mod quantity;
mod quantity_text;
mod rows;

pub(crate) use figures::read_figures;
pub(crate) use quantity::{Quantity, Settings, is_same};
pub(crate) use quantity_text::{MEASURE, Names, QuantityText};
pub(crate) use rows::repeat;

use crate::data::Data;
use crate::experiment::Experiment;
use crate::panels::Panel;
use crate::study::ExperimentData;
use cutline_config::Located;
use cutline_report::report::{Claim, ClaimRole, PaperValue};
use cutline_report::stats::Estimate;
use expectation::Expectation;

/// A paper's statement about one figure, and the claims that are checked.
#[derive(Clone, Debug)]
pub struct FigureText {
    /// The number of the figure in the paper.
    pub number: u32,
    /// The heading of its section in the report.
    pub heading: String,
    /// The experiments that it shows, the main one first; empty if nothing needs to be simulated.
    pub experiments: Vec<String>,
    /// Experiments that it does not show, with which claims compare it.
    pub beside: Vec<String>,
    /// The paper's statement, in our words.
    pub says: String,
    /// Every claim is judged for each of the experiments: the first is that of the statement, the others are variants.
    pub(crate) has_variants: bool,
    /// The claims that are checked.
    pub(crate) claims: Vec<ClaimData>,
    /// The title above the panels; by default the heading.
    title: Option<String>,
    /// The charts that are data, and the number of them side by side.
    pub(crate) panels: Vec<Panel>,
    pub(crate) columns: usize,
    /// The names of series are on the lines, and not above the panels.
    pub(crate) names_on_lines: bool,
    /// Remarks below the figure.
    pub(crate) notes: Vec<String>,
}

/// A claim before it is judged.
#[derive(Clone, Debug)]
pub(crate) struct ClaimData {
    /// Its name. With a dot, the part before it is the experiment.
    pub(crate) id: String,
    /// The place of its table.
    pub(crate) place: Located<()>,
    text: String,
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

/// The code that measures the claim with this name (without the experiment) of this figure; `None` if there is none.
pub type FindOwn = fn(figure: &FigureText, id: &str) -> Option<Own>;

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

impl FigureText {
    /// The title above its panels.
    pub(crate) fn title(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.heading)
    }

    /// All experiments that it needs.
    pub(crate) fn needs(&self) -> impl Iterator<Item = &String> {
        self.experiments.iter().chain(&self.beside)
    }

    /// The claims with their verdicts. `stored` has the experiments that have results.
    pub(crate) fn judge(&self, stored: &[ExperimentData<'_>], own: FindOwn) -> Vec<Claim> {
        let is_shown = |(experiment, _): &&ExperimentData<'_>| self.experiments.contains(&experiment.id);
        let subjects = stored.iter().filter(|_| self.has_variants).filter(is_shown);
        let mut judged = Vec::new();
        for (experiment, data) in subjects {
            let kind = if self.experiments.first().is_some_and(|id| *id == experiment.id) {
                ClaimRole::Statement
            } else {
                ClaimRole::Variant
            };
            let evidence = Evidence { experiment, data, all: stored };
            for claim in &self.claims {
                let named = Claim {
                    claim: format!("{} ({})", claim.text, experiment.label),
                    kind,
                    ..claim.unjudged(self, &experiment.id)
                };
                judged.push(claim.judge(named, self, &evidence, own));
            }
        }
        if !self.has_variants {
            for claim in &self.claims {
                let id = claim.experiment().or_else(|| self.experiments.first().map(String::as_str));
                let found = stored.iter().find(|(experiment, _)| Some(experiment.id.as_str()) == id);
                let Some(&(experiment, data)) = found else { continue };
                judged.push(claim.judge(
                    claim.unjudged(self, &experiment.id),
                    self,
                    &Evidence { experiment, data, all: stored },
                    own,
                ));
            }
        }
        judged
    }

    /// The claims of a figure for which nothing is simulated, with their verdicts on values of formulas.
    pub fn judge_values(&self, source: &str, value: impl Fn(&str) -> Option<f64>) -> Vec<Claim> {
        let judge = |claim: &ClaimData| {
            let estimate = value(claim.name()).and_then(|value| Estimate::from_values(&[value]));
            claim.decide(claim.unjudged(self, source), &estimate.into())
        };
        self.claims.iter().map(judge).collect()
    }

    /// The ids of the claims.
    pub(crate) fn claim_ids(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(|claim| claim.id.as_str())
    }
}

impl ClaimData {
    /// The experiment in its id.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.id.split_once('.').map(|(experiment, _)| experiment)
    }

    /// Its name without the experiment.
    pub(crate) fn name(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_str(), |(_, name)| name)
    }

    fn unjudged(&self, figure: &FigureText, experiment: &str) -> Claim {
        let id = format!("{experiment}.{}", self.name());
        let claim = Claim::new(id, figure.number.to_string(), &self.text).unit(&self.unit).note(&self.note);
        Claim {
            paper: self.paper.clone().or_else(|| self.expectation.map(|expectation| expectation.stated())),
            rule: self.expectation.map_or_else(String::new, |expectation| expectation.rule()),
            kind: if self.is_check { ClaimRole::Check } else { ClaimRole::Statement },
            ..claim
        }
    }

    fn judge(&self, claim: Claim, figure: &FigureText, evidence: &Evidence<'_>, own: FindOwn) -> Claim {
        let kind = if self.is_check { ClaimRole::Check } else { claim.kind };
        let claim = Claim { kind, ..claim };
        let measured = match &self.quantity {
            Some(quantity) => quantity.estimate(&|id| evidence.data(id)).into(),
            None => own(figure, self.name()).map_or_else(Measured::default, |own| own(evidence)),
        };
        self.decide(claim, &measured)
    }

    fn decide(&self, claim: Claim, measured: &Measured) -> Claim {
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

#[cfg(test)]
mod tests;
