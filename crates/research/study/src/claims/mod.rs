//! A paper's statements about its figures, and a study's questions, as data: `figures.toml`.
//!
//! A claim has its text, its rule with the tolerance ([`expectation`]) and, where it is regular, its quantity ([`quantity`]). An
//! irregular measure is code, which is found by the claim's name ([`Own`]). [`FigureText::judge`] joins them with the results.
//!
//! Claims that differ only in names and values are written once, with the rows of `[rows]` that `each` names: `{queue.id}` in a text is
//! replaced by the `id` of the row of `queue`, and the claim is repeated for every combination of the rows.

mod expectation;
mod quantity;
mod rows;

pub(crate) use quantity::{Quantity, QuantityText, Settings, is_same};
pub(crate) use rows::{Rows, repeat};

use crate::data::Data;
use crate::experiment::Experiment;
use crate::panels::{Names, Panel};
use crate::study::ExperimentData;
use cutline_report::report::{Claim, ClaimRole, PaperValue};
use cutline_report::stats::Estimate;
use expectation::{Expectation, RuleText};
use serde::Deserialize;
use std::collections::BTreeMap;

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FigureToml {
    number: u32,
    heading: String,
    #[serde(default)]
    experiments: Vec<String>,
    #[serde(default)]
    beside: Vec<String>,
    #[serde(default)]
    variants: bool,
    says: String,
    claims: Vec<toml::Table>,
    title: Option<String>,
    /// The names of panels that other figures have, too, and its own.
    #[serde(default)]
    panels: Vec<String>,
    #[serde(default)]
    panel: Vec<toml::Table>,
    #[serde(default = "one_column")]
    columns: usize,
    #[serde(default)]
    names_on_lines: bool,
    #[serde(default)]
    notes: Vec<String>,
}

const fn one_column() -> usize {
    1
}

/// The keys of a claim that are neither its rule nor its quantity.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimToml {
    id: String,
    text: String,
    paper: Option<PaperValue>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    check: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FiguresToml {
    /// Named values of swept keys.
    #[serde(default)]
    points: BTreeMap<String, BTreeMap<String, toml::Value>>,
    /// Rows for which claims and panels are repeated.
    #[serde(default)]
    rows: BTreeMap<String, Vec<toml::Table>>,
    /// Panels that several figures have.
    #[serde(default)]
    panels: BTreeMap<String, Vec<toml::Table>>,
    figure: Vec<FigureToml>,
}

/// The keys of a claim's rule.
const RULE: [&str; 8] = ["above", "below", "at-least", "at-most", "equals", "from", "to", "within"];
/// Keys of a claim's quantity.
const QUANTITY: [&str; 16] = [
    "measure",
    "of",
    "at",
    "experiment",
    "best-by",
    "mean-by",
    "worst-by",
    "among",
    "level-by",
    "over",
    "minus",
    "unpaired",
    "times",
    "during",
    "over-time",
    "first",
];

/// Takes these keys out of a table.
fn take(table: &mut toml::Table, keys: &[&str]) -> toml::Table {
    keys.iter().filter_map(|key| table.remove(*key).map(|value| ((*key).to_owned(), value))).collect()
}

/// Takes a quantity out of a table, with the settings of named points.
///
/// # Errors
/// When a key has no such value, or there is no such point.
pub(crate) fn read_quantity(
    table: &mut toml::Table,
    points: &BTreeMap<String, Settings>,
) -> Result<QuantityText, String> {
    let text: QuantityText = take(table, &QUANTITY).try_into().map_err(|error| format!("{error}"))?;
    text.at_points(points)
}

/// Content of `figures.toml` about each figure.
pub(crate) struct Figures(pub(crate) Vec<FigureText>);

impl Figures {
    /// Reads a table of figures.
    ///
    /// # Errors
    /// Error, with the claim's name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: FiguresToml = toml::from_str(text).map_err(|error| error.to_string())?;
        let points =
            file.points.iter().map(|(name, settings)| (name.clone(), quantity::texts(settings))).collect();
        file.figure
            .into_iter()
            .map(|figure| {
                let repeated = figure.claims.iter().map(|claim| rows::repeat(claim, &file.rows));
                let tables = repeated.collect::<Result<Vec<_>, _>>()?.concat();
                let claims = tables.into_iter().map(|table| ClaimData::read(table, &points));
                let names = Names { points: &points, rows: &file.rows };
                let named = |name| file.panels.get(name).ok_or_else(|| format!("[panels] has no `{name}`"));
                let shared = figure.panels.iter().map(named).collect::<Result<Vec<_>, String>>()?;
                let panels =
                    shared.into_iter().flatten().chain(&figure.panel).map(|panel| Panel::read(panel, names));
                Ok(FigureText {
                    number: figure.number,
                    heading: figure.heading,
                    experiments: figure.experiments,
                    beside: figure.beside,
                    says: figure.says,
                    has_variants: figure.variants,
                    claims: claims.collect::<Result<_, String>>()?,
                    title: figure.title,
                    panels: panels.collect::<Result<Vec<_>, String>>()?.concat(),
                    columns: figure.columns,
                    names_on_lines: figure.names_on_lines,
                    notes: figure.notes,
                })
            })
            .collect::<Result<_, String>>()
            .map(Self)
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
    fn read(mut table: toml::Table, points: &BTreeMap<String, Settings>) -> Result<Self, String> {
        let name = table.get("id").and_then(toml::Value::as_str).unwrap_or("without an id").to_owned();
        let about = |what: &str| format!("claim `{name}`: {what}");
        let rule: RuleText =
            take(&mut table, &RULE).try_into().map_err(|error| about(&format!("{error}")))?;
        let quantity = read_quantity(&mut table, points).map_err(|error| about(&error))?;
        let claim: ClaimToml = table.try_into().map_err(|error| about(&format!("{error}")))?;
        let quantity = quantity
            .is_given()
            .then(|| quantity.resolve(points))
            .transpose()
            .map_err(|error| about(&error))?;
        Ok(Self {
            id: claim.id,
            text: claim.text,
            paper: claim.paper,
            unit: claim.unit,
            note: claim.note,
            is_check: claim.check,
            expectation: rule.expectation().map_err(about)?,
            quantity,
        })
    }

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
