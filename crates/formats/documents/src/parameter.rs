//! Parameters and their values as documents.

use cutline_params::{Parameter, ParameterValue};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A parameter.
#[derive(Serialize, JsonSchema)]
pub struct ParameterDocument {
    /// The key in a scenario.
    name: &'static str,
    /// The unit of the value; empty for values that are written with a unit, and for plain numbers.
    unit: &'static str,
    /// The kind of the value.
    kind: &'static str,
    /// The allowed values, in words.
    allowed: String,
    /// True if a scenario must set the parameter.
    required: bool,
    /// The default; null if it is off, or if a scenario must set the parameter.
    default: SettingDocument,
    /// The defaults in other sets, such as `ns-2`.
    other_defaults: BTreeMap<&'static str, SettingDocument>,
    /// The source of the default.
    source: &'static str,
    /// The meaning.
    doc: &'static str,
}

impl ParameterDocument {
    /// Creates the document of a parameter. `others` are its defaults in other sets, by the names of the sets.
    pub fn new<'v>(
        parameter: &'static Parameter,
        others: impl Iterator<Item = (&'static str, &'v ParameterValue)>,
    ) -> Self {
        let default =
            if parameter.required { SettingDocument::Off } else { SettingDocument::from(&parameter.default) };
        Self {
            name: parameter.name,
            unit: parameter.unit,
            kind: parameter.kind.name(),
            allowed: parameter.kind.to_string(),
            required: parameter.required,
            default,
            other_defaults: others.map(|(set, value)| (set, SettingDocument::from(value))).collect(),
            source: parameter.source,
            doc: parameter.doc,
        }
    }
}

/// The value of a parameter.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Setting")]
pub enum SettingDocument {
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A time, a frequency, a choice or a distribution, as a scenario writes it.
    Text(String),
    /// Times, as a scenario writes them.
    Texts(Vec<String>),
    /// Counts.
    Counts(Vec<u64>),
    /// Off.
    Off,
}

/// Numbers and flags stay numbers and flags. Other values become text, as a scenario writes them. Off becomes null.
impl From<&ParameterValue> for SettingDocument {
    fn from(value: &ParameterValue) -> Self {
        match value {
            ParameterValue::Number(x) => Self::Number(*x),
            ParameterValue::Count(n) => Self::Count(*n),
            ParameterValue::Flag(flag) => Self::Flag(*flag),
            ParameterValue::Durations(times) => Self::Texts(times.iter().map(ToString::to_string).collect()),
            ParameterValue::Counts(counts) => Self::Counts(counts.to_vec()),
            ParameterValue::Duration(_)
            | ParameterValue::Frequency(_)
            | ParameterValue::Choice(_)
            | ParameterValue::Distribution(_) => Self::Text(value.to_string()),
            ParameterValue::Off => Self::Off,
        }
    }
}
