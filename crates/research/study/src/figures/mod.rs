//! A paper's statements about its figures, and a study's questions, as data: `figures.toml`.
//!
//! A figure has its statement, its claims ([`crate::claims`]) and its panels ([`crate::panels`]). [`FigureText::judge`] joins the claims
//! with the results, and [`section`] draws the panels. The measure of an irregular claim is code, which is found by the claim's name
//! ([`FindOwn`]).

mod read;

pub(crate) use read::read_figures;

use crate::claims::{ClaimData, Evidence, Own};
use crate::data::ExperimentData;
use crate::panels::Panel;
use cutline_report::chart::{Figure, Legend};
use cutline_report::report::{Claim, ClaimRole, Section};
use cutline_report::stats::Estimate;

/// A paper's statement about one figure, and the claims that are checked.
#[derive(Clone, Debug)]
pub struct FigureText {
    /// The number of the figure in the paper.
    pub number: u32,
    /// The heading of its section in the report.
    pub heading: String,
    /// The experiments that it shows, the main one first; empty if nothing needs to be simulated.
    pub experiments: Vec<String>,
    /// Experiments that it does not show, but that its claims compare with the shown ones.
    pub beside: Vec<String>,
    /// The paper's statement, in our words.
    pub says: String,
    /// True if every claim is judged for each of the experiments: the first is that of the statement, the others are variants.
    pub(crate) has_variants: bool,
    /// The claims that are checked.
    pub(crate) claims: Vec<ClaimData>,
    /// The title above the panels; by default the heading.
    title: Option<String>,
    /// The charts that are data, and the number of them side by side.
    pub(crate) panels: Vec<Panel>,
    pub(crate) columns: usize,
    /// True if the names of series are on the lines, and not above the panels.
    pub(crate) names_on_lines: bool,
    /// Remarks below the figure.
    pub(crate) notes: Vec<String>,
}

/// The code that measures the claim with this name (without the experiment) of this figure; `None` if there is none.
pub type FindOwn = fn(figure: &FigureText, id: &str) -> Option<Own>;

impl FigureText {
    /// Returns the title above its panels.
    pub(crate) fn title(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.heading)
    }

    /// Returns all experiments that the figure needs.
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
                    ..claim.unjudged(self.number, &experiment.id)
                };
                judged.push(claim.judge(named, &evidence, || own(self, claim.name())));
            }
        }
        if !self.has_variants {
            for claim in &self.claims {
                let id = claim.experiment().or_else(|| self.experiments.first().map(String::as_str));
                let found = stored.iter().find(|(experiment, _)| Some(experiment.id.as_str()) == id);
                let Some(&(experiment, data)) = found else { continue };
                let evidence = Evidence { experiment, data, all: stored };
                let named = claim.unjudged(self.number, &experiment.id);
                judged.push(claim.judge(named, &evidence, || own(self, claim.name())));
            }
        }
        judged
    }

    /// The claims of a figure for which nothing is simulated, with their verdicts on values of formulas.
    pub fn judge_values(&self, source: &str, value: impl Fn(&str) -> Option<f64>) -> Vec<Claim> {
        let judge = |claim: &ClaimData| {
            let estimate = value(claim.name()).and_then(|value| Estimate::from_values(&[value]));
            claim.decide(claim.unjudged(self.number, source), &estimate.into())
        };
        self.claims.iter().map(judge).collect()
    }

    /// The ids of the claims.
    pub(crate) fn claim_ids(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(|claim| claim.id.as_str())
    }
}

/// The section of a figure whose panels are data.
pub fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let drawn = figure.panels.iter().flat_map(|panel| panel.draw(stored));
    let (charts, words): (Vec<_>, Vec<_>) = drawn.unzip();
    let words: Vec<String> = words.into_iter().flatten().collect();
    let legend = if figure.names_on_lines { Legend::Direct } else { Legend::Top };
    // A figure without panels has claims alone, or pictures.
    let figures = if charts.is_empty() {
        Vec::new()
    } else {
        let drawn = Figure::grid(figure.title().to_owned(), figure.columns, charts).legend(legend);
        vec![(format!("figure-{}", figure.number), drawn)]
    };
    Section { we_see: words.join("\n\n"), figures, notes: figure.notes.clone(), ..Section::default() }
}

/// Returns the [`section`] in the form that a study expects.
pub fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    vec![section(figure, stored)]
}

#[cfg(test)]
mod tests;
