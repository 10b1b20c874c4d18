//! Claims: the statement of a paper, the measured value, and whether the claim holds.

use crate::stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A claim of a paper with the measured value. Serialized, it is an entry of `claims.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// A unique name, such as `audio.best-hint`.
    pub id: String,
    /// The paper's figure or section, such as `10`.
    pub figure: String,
    /// The claim, in words.
    pub claim: String,
    /// Role of the claim in the summary.
    #[serde(default)]
    pub kind: ClaimRole,
    /// The paper's value: a number, words such as `about 6`, or null if it gives none.
    pub paper: Option<PaperValue>,
    /// The rule of the verdict with its tolerance, which was fixed before the run, such as `1.18 ± 0.02` or `above 0`.
    #[serde(default)]
    pub rule: String,
    /// The measured value, or null if there is none.
    pub measured: Option<f64>,
    /// Lower end of the 95 % confidence interval.
    pub ci_low: Option<f64>,
    /// Upper end of the 95 % confidence interval.
    pub ci_high: Option<f64>,
    /// Unit of the values; empty for plain numbers.
    pub unit: String,
    /// Verdict: true, false, or null if the measurement does not decide it.
    pub holds: ClaimVerdict,
    /// The p-value of the one-sided test behind the verdict; null if there is no test. A verdict is reached at 0.025.
    #[serde(default)]
    pub p_value: Option<f64>,
    /// Difference between measurement and paper, and its reason. May be empty.
    pub note: String,
}

/// Role of a claim in the summary of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimRole {
    /// A statement of the paper, or a question of the study, with the main variant of the experiment.
    #[default]
    Statement,
    /// The same statement with another variant of the experiment.
    Variant,
    /// A check of the code, which cannot fail by chance: a value of a formula, or two runs that must be the same. Not counted.
    Check,
}

/// The claims of a study, or of several: statement, measurement and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Claims<'c>(pub Vec<&'c Claim>);

/// A value that the paper states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PaperValue {
    /// A number, in the claim's unit.
    Number(f64),
    /// A statement in words.
    Text(String),
}

/// Verdict on a claim. In JSON: true, false, null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Option<bool>", into = "Option<bool>")]
pub enum ClaimVerdict {
    /// The measurement confirms the claim.
    Holds,
    /// The measurement contradicts the claim.
    Differs,
    /// The measurement does not decide the claim.
    #[default]
    Unclear,
}

impl From<Option<bool>> for ClaimVerdict {
    fn from(holds: Option<bool>) -> Self {
        match holds {
            Some(true) => Self::Holds,
            Some(false) => Self::Differs,
            None => Self::Unclear,
        }
    }
}

impl From<bool> for ClaimVerdict {
    fn from(holds: bool) -> Self {
        Some(holds).into()
    }
}

impl From<ClaimVerdict> for Option<bool> {
    fn from(verdict: ClaimVerdict) -> Self {
        match verdict {
            ClaimVerdict::Holds => Some(true),
            ClaimVerdict::Differs => Some(false),
            ClaimVerdict::Unclear => None,
        }
    }
}

impl From<f64> for PaperValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for PaperValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Claim {
    /// A claim without values, whose verdict is [`ClaimVerdict::Unclear`].
    pub fn new(id: impl Into<String>, figure: impl Into<String>, claim: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            figure: figure.into(),
            claim: claim.into(),
            kind: ClaimRole::Statement,
            paper: None,
            rule: String::new(),
            measured: None,
            ci_low: None,
            ci_high: None,
            unit: String::new(),
            holds: ClaimVerdict::Unclear,
            p_value: None,
            note: String::new(),
        }
    }

    /// Sets the value of the paper.
    pub fn paper(self, value: impl Into<PaperValue>) -> Self {
        Self { paper: Some(value.into()), ..self }
    }

    /// Sets the measured value and its confidence interval.
    pub fn measured(self, estimate: &Estimate) -> Self {
        let (ci_low, ci_high) = estimate.interval.unzip();
        Self { measured: Some(estimate.mean), ci_low, ci_high, ..self }
    }

    /// Sets a measured value that has no confidence interval.
    pub fn measured_value(self, value: f64) -> Self {
        Self { measured: Some(value), ..self }
    }

    /// Sets the unit of the values.
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// Sets whether the claim holds.
    pub fn holds(self, verdict: impl Into<ClaimVerdict>) -> Self {
        Self { holds: verdict.into(), ..self }
    }

    /// Sets the note: the difference of measurement and paper, and its reason.
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}
