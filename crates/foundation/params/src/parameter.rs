//! The description of one parameter.

use crate::nearest::nearest;
use crate::{ParameterError, ParameterKind, ParameterValue};

/// All there is to say about a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name, in kebab-case.
    pub name: &'static str,
    /// The unit of a number or count, such as `packets`; empty where there is none or the kind implies it.
    pub unit: &'static str,
    /// The allowed values.
    pub kind: ParameterKind,
    /// True if the parameter can be switched off.
    pub optional: bool,
    /// Meaning of `true` for a parameter that can be switched off, if it has one.
    pub on: Option<ParameterValue>,
    /// True if the parameter must be set: it has no default.
    pub required: bool,
    /// The default; [`ParameterValue::Off`] for a parameter that is off unless set. Of a required parameter, an example.
    pub default: ParameterValue,
    /// Source of the default; may be empty for a required parameter.
    pub source: &'static str,
    /// Description in one sentence.
    pub doc: &'static str,
}

impl Parameter {
    /// Checks that `value` is allowed.
    ///
    /// # Errors
    /// When it is of another kind or out of range.
    pub fn check(&self, value: &ParameterValue) -> Result<(), ParameterError> {
        if self.kind.allows(value) || (self.optional && *value == ParameterValue::Off) {
            return Ok(());
        }
        let nearest = match (self.kind, value) {
            (ParameterKind::Choice(names), ParameterValue::Choice(given)) => {
                nearest(given, names.iter().copied())
            }
            (ParameterKind::Registered(table), ParameterValue::Choice(given)) => {
                nearest(given, table.names())
            }
            _ => None,
        };
        let (parameter, value, allowed) = (self.name.to_owned(), value.to_string(), self.allowed());
        Err(ParameterError { parameter, value, allowed, nearest })
    }

    /// Returns the allowed values, with the unit, as a person writes it.
    pub fn allowed(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let off = if self.optional { ", or off" } else { "" };
        match self.kind {
            ParameterKind::CountOr { least, most, names } => {
                format!("{}{unit}, or one of {}{off}", ParameterKind::Count { least, most }, names.join(", "))
            }
            ParameterKind::Distribution { least, most } => {
                format!(
                    "{}{unit}, or a distribution of such numbers{off}",
                    ParameterKind::Number { least, most }
                )
            }
            kind => format!("{kind}{unit}{off}"),
        }
    }

    /// The default as a person writes it: small numbers with an exponent, `off` for none, `required` where it must be set.
    pub fn default_text(&self) -> String {
        if self.required { "required".to_owned() } else { self.text(&self.default) }
    }

    /// A value with the parameter's unit, as a person writes it.
    pub fn with_unit(&self, value: &ParameterValue) -> String {
        match value {
            ParameterValue::Number(_) | ParameterValue::Count(_) if !self.unit.is_empty() => {
                format!("{} {}", self.text(value), self.unit)
            }
            value => self.text(value),
        }
    }

    /// A value as a person writes it: small numbers with an exponent, `off` for none.
    pub fn text(&self, value: &ParameterValue) -> String {
        match value {
            ParameterValue::Number(x) if *x != 0.0 && x.abs() < 1e-3 => format!("{x:e}"),
            value => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    fn parameter(name: &'static str, kind: ParameterKind, optional: bool) -> Parameter {
        Parameter {
            name,
            unit: "",
            kind,
            optional,
            on: None,
            required: false,
            default: ParameterValue::Off,
            source: "a test",
            doc: "a test",
        }
    }

    #[test]
    fn values_of_another_kind_are_refused_with_the_allowed_ones() {
        let kind = ParameterKind::Duration { least: Duration::from_millis(1), most: Duration::from_secs(1) };
        let l = parameter("l", kind, false);
        let error = l.check(&ParameterValue::Number(3.0)).unwrap_err().to_string();
        assert_eq!(error, "l = 3: allowed is a time from 1 ms to 1 s");
        assert!(l.check(&ParameterValue::Duration(Duration::from_millis(40))).is_ok());
    }

    #[test]
    fn choices_name_the_nearest() {
        let mode = parameter("mode", ParameterKind::Choice(&["automatic", "fixed"]), false);
        let error = mode.check(&ParameterValue::Choice("automtic".into())).unwrap_err().to_string();
        assert_eq!(error, "mode = automtic: allowed is one of automatic, fixed; did you mean automatic?");
    }

    #[test]
    fn only_optional_parameters_can_be_switched_off() {
        assert!(parameter("x", ParameterKind::Flag, true).check(&ParameterValue::Off).is_ok());
        assert!(parameter("x", ParameterKind::Flag, false).check(&ParameterValue::Off).is_err());
    }
}
