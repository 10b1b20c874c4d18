//! The one error of this crate: a parameter outside its range.

use thiserror::Error;

/// A parameter whose value is not allowed: which one, what it was, what is allowed.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{field} = {value}: {allowed}")]
pub struct ParamError {
    /// The field's name as in the parameter struct.
    pub field: &'static str,
    /// The value it had.
    pub value: String,
    /// The values it may have.
    pub allowed: &'static str,
}

/// `Ok` when `holds`, else the error that names field, value and what is allowed.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: impl std::fmt::Display,
    allowed: &'static str,
) -> Result<(), ParamError> {
    if holds { Ok(()) } else { Err(ParamError { field, value: value.to_string(), allowed }) }
}
