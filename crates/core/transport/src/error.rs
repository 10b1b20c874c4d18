//! Checks of parameters that are set in code.

use cutline_params::ParameterError;
use std::fmt::Display;

/// Returns an error with the parameter, its value and the allowed range, unless `holds`.
pub(crate) fn require(
    holds: bool,
    parameter: &str,
    value: impl Display,
    allowed: &str,
) -> Result<(), ParameterError> {
    if holds { Ok(()) } else { Err(ParameterError::new(parameter, value, allowed)) }
}
