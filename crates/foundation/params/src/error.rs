//! Errors in the value of a parameter.

use crate::Parameter;
use crate::nearest::nearest;
use std::fmt;

/// A parameter value that is not allowed: the parameter, the value, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError {
    /// The parameter's name, or the unknown name that was given.
    pub parameter: String,
    /// The value given; empty where none was.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
    /// The right name, if this looks like a slip.
    pub nearest: Option<&'static str>,
}

impl ParameterError {
    /// A value that is not allowed.
    pub fn new(parameter: &str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        let (parameter, value, allowed) = (parameter.to_owned(), value.to_string(), allowed.into());
        Self { parameter, value, allowed, nearest: None }
    }

    /// A parameter that has to be set and is not.
    pub fn missing(parameter: &Parameter) -> Self {
        Self::new(parameter.name, "", parameter.allowed())
    }

    /// Returns whether the error is a required parameter that is not set.
    pub const fn is_missing(&self) -> bool {
        self.value.is_empty()
    }

    /// A parameter whose value is none of `names`.
    pub fn unknown_choice(parameter: &str, value: &str, names: &[&'static str]) -> Self {
        let nearest = nearest(value, names.iter().copied());
        Self { nearest, ..Self::new(parameter, value, format!("one of {}", names.join(", "))) }
    }

    /// A parameter's name that is none of `names`.
    pub fn unknown(name: &str, value: impl fmt::Display, names: &[&'static str]) -> Self {
        let allowed = match names {
            [] => "no parameter at all".to_owned(),
            names => format!("one of the names {}", names.join(", ")),
        };
        Self { nearest: nearest(name, names.iter().copied()), ..Self::new(name, value, allowed) }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, allowed, .. } = self;
        if self.is_missing() {
            return write!(f, "{parameter} is missing: it must be {allowed}");
        }
        write!(f, "{parameter} = {value}: allowed is {allowed}")?;
        self.nearest.map_or(Ok(()), |name| write!(f, "; did you mean {name}?"))
    }
}

impl std::error::Error for ParameterError {}
