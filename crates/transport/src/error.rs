//! Checks of parameters that are set in code.

use cutline_params::ParameterError;
use std::fmt::Display;

/// Returns `Ok` if `holds`, or else an error that names the parameter, its value and what is allowed.
pub(crate) fn require(
    holds: bool,
    parameter: &str,
    value: impl Display,
    allowed: &str,
) -> Result<(), ParameterError> {
    if holds { Ok(()) } else { Err(ParameterError::new(parameter, value, allowed)) }
}
