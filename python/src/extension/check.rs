//! The conformance suites over registered extensions.

use super::{guard, parameter};
use crate::errors;
use cutline_aqm::AqmSpec;
use cutline_params::ParameterValue;
use cutline_transport::{app, tcp};
use pyo3::prelude::*;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while a check runs on this thread, whose panics become exceptions.
    static CHECKS: Cell<bool> = const { Cell::new(false) };
}

/// Runs a conformance suite over the extension registered under a name: `law`, `source` or `control`. With these values of its parameters,
/// which are numbers as in `register_extension`.
#[pyfunction]
fn check_extension(py: Python<'_>, kind: &str, name: &str) -> PyResult<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            if !CHECKS.get() {
                usual(information);
            }
        }));
    });
    let values: [(&str, ParameterValue); 0] = [];
    match kind {
        "law" => {
            let spec = AqmSpec::from_values(name, values).map_err(|error| parameter(&error))?;
            checked(py, || cutline_aqm::conformance::check(&spec))
        }
        "source" => {
            let params = app::Params::from_values(name, values).map_err(|error| parameter(&error))?;
            checked(py, || cutline_transport::conformance::check_application(&params))
        }
        _ => {
            let algorithm = tcp::Algorithm::from_values(name, values).map_err(|error| parameter(&error))?;
            checked(py, || cutline_transport::conformance::check_congestion_control(&algorithm))
        }
    }
}

/// Runs a check. Its failure is an exception.
fn checked(py: Python<'_>, check: impl FnOnce() + Send) -> PyResult<()> {
    let run = || {
        CHECKS.set(true);
        let found = catch_unwind(AssertUnwindSafe(|| guard(check)));
        CHECKS.set(false);
        found
    };
    match py.detach(run) {
        Ok(done) => done,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a check failed");
            Err(errors::conformance(said.to_owned()))
        }
    }
}

/// Adds the check.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(check_extension, module)?)
}
