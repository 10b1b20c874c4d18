//! The report of an evaluation: every figure beside what the paper says of it, every number that is claimed
//! beside the one that was measured, and a plain sentence where they differ.
//!
//! [`write()`] makes, in one directory:
//!
//! | file | what |
//! | --- | --- |
//! | `report.html` | everything, in one file without scripts or anything from outside |
//! | `figures/ID.svg`, `figures/ID.png` | every figure |
//! | `claims.json` | every [`Claim`], as a list, for programs |
//!
//! Each file appears whole or not at all: it is written beside its place and then renamed.

mod html;
mod write;

#[cfg(test)]
mod tests;

pub use html::page;
pub use write::{WriteError, Written, read_claims, write};

use crate::chart::Figure;
use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

/// A report before it is written.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was evaluated.
    pub title: String,
    /// What was done and how to read the report; blank lines part paragraphs.
    pub intro: String,
    /// What stands over each section's [`Section::paper_says`], such as "The paper says".
    pub said: String,
    /// What was run, as names and values: version, seeds, scenario hash, host, duration.
    pub meta: Vec<(String, String)>,
    /// One section for each figure or group of figures, in order.
    pub sections: Vec<Section>,
}

/// One subject of the report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The section's anchor: letters, digits, `-` and `_`.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What the paper says, or what is asked; blank lines part paragraphs.
    pub paper_says: String,
    /// What we see; blank lines part paragraphs.
    pub we_see: String,
    /// Its figures, each with the name of its files: letters, digits, `-` and `_`.
    pub figures: Vec<(String, Figure)>,
    /// Its claims.
    pub claims: Vec<Claim>,
    /// Where we depart from the paper or differ from it, and why.
    pub notes: Vec<String>,
    /// Further files, such as scenario and data: label and path from the report's directory.
    pub files: Vec<(String, String)>,
}

/// A number that the paper claims, and what was measured. Its JSON form is that of `claims.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Unique name, such as `audio.best-hint`.
    pub id: String,
    /// The paper's figure or section, such as `10`.
    pub figure: String,
    /// What is claimed, in words.
    pub claim: String,
    /// The paper's value: a number, words such as `about 6`, or null where it gives none.
    pub paper: Option<Stated>,
    /// The measured value, null where there is none.
    pub measured: Option<f64>,
    /// Lower end of the 95 % confidence interval.
    pub ci_low: Option<f64>,
    /// Upper end of the 95 % confidence interval.
    pub ci_high: Option<f64>,
    /// Unit of the values; empty for plain numbers.
    pub unit: String,
    /// Whether the claim holds: true, false, or null where the measurement cannot tell.
    pub holds: Verdict,
    /// Where measurement and paper differ, and why; may be empty.
    pub note: String,
}

/// A value that the paper states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Stated {
    /// A number, in the claim's unit.
    Number(f64),
    /// Words.
    Text(String),
}

/// Whether a claim holds. In JSON: true, false, null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<bool>", into = "Option<bool>")]
pub enum Verdict {
    /// The measurement shows it.
    Holds,
    /// The measurement shows otherwise.
    Differs,
    /// The measurement cannot tell.
    #[default]
    Unclear,
}

impl From<Option<bool>> for Verdict {
    fn from(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Self::Holds,
            Some(false) => Self::Differs,
            None => Self::Unclear,
        }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        Some(holds).into()
    }
}

impl From<Verdict> for Option<bool> {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Holds => Some(true),
            Verdict::Differs => Some(false),
            Verdict::Unclear => None,
        }
    }
}

impl From<f64> for Stated {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Stated {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Claim {
    /// A claim without any values yet, and unclear.
    pub fn new(id: impl Into<String>, figure: impl Into<String>, claim: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            figure: figure.into(),
            claim: claim.into(),
            paper: None,
            measured: None,
            ci_low: None,
            ci_high: None,
            unit: String::new(),
            holds: Verdict::Unclear,
            note: String::new(),
        }
    }

    /// What the paper states.
    pub fn paper(self, stated: impl Into<Stated>) -> Self {
        Self { paper: Some(stated.into()), ..self }
    }

    /// What was measured, with its confidence interval.
    pub fn measured(self, estimate: &Estimate) -> Self {
        let (ci_low, ci_high) = estimate.interval.unzip();
        Self { measured: Some(estimate.mean), ci_low, ci_high, ..self }
    }

    /// What was measured, where it is a number without an interval.
    pub fn measured_value(self, value: f64) -> Self {
        Self { measured: Some(value), ..self }
    }

    /// The values' unit.
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// Whether the claim holds.
    pub fn holds(self, verdict: impl Into<Verdict>) -> Self {
        Self { holds: verdict.into(), ..self }
    }

    /// Where measurement and paper differ, and why.
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

impl Report {
    /// All claims, in order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }
}
