//! The laboratory: runs with real packets, which need root.

use crate::errors;
use crate::scenario::ScenarioFile;
use cutline_config::quantity;
use cutline_lab::{Bounds, ExternalProgram, LabOptions, Stack};
use cutline_scenario::check;
use pyo3::prelude::*;

/// Options of the laboratory.
#[pyclass(module = "cutline._native", frozen)]
pub struct Laboratory {
    pub options: LabOptions,
}

#[pymethods]
impl Laboratory {
    /// Makes the options: the variant of TCP, `stock` or `classic`; the bound of the departure error, such as `1 ms`; and programs in
    /// the place of flows, each with the name of its flow.
    #[new]
    fn new(tcp: &str, departure_bound: &str, programs: Vec<(String, String)>) -> PyResult<Self> {
        let stack = match tcp {
            "stock" => Stack::Stock,
            "classic" => Stack::Classic,
            _ => {
                let message = format!("{tcp:?} is not allowed: expected \"stock\" or \"classic\"");
                return Err(errors::argument("tcp", &message));
            }
        };
        let departure = quantity::duration(departure_bound)
            .map_err(|error| errors::argument("departure_bound", &format!("{departure_bound:?}: {error}")))?;
        let programs =
            programs.into_iter().map(|(flow, command)| ExternalProgram { flow, command }).collect();
        Ok(Self {
            options: LabOptions { stack, bounds: Bounds { departure, ..Bounds::default() }, programs },
        })
    }

    /// Returns the description of the runs in the laboratory as text and as JSON.
    fn check(&self, py: Python<'_>, scenario: &ScenarioFile) -> PyResult<(String, String)> {
        py.detach(|| {
            let (points, _) = scenario.checked_in(&self.options)?;
            Ok((check::describe(&points), errors::json(&check::document(&points))))
        })
    }
}

/// Returns whether this process may use the laboratory; if not, the reason.
#[pyfunction]
fn laboratory_refusal() -> Option<String> {
    cutline_lab::permitted().err().map(|error| error.to_string())
}

/// Removes the namespaces of laboratories that were killed. Returns their names.
#[pyfunction]
fn clean_laboratory(py: Python<'_>) -> PyResult<Vec<String>> {
    py.detach(|| cutline_sys::namespace::sweep().map_err(|error| errors::laboratory(&error)))
}

/// Adds the laboratory.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Laboratory>()?;
    module.add_function(wrap_pyfunction!(laboratory_refusal, module)?)?;
    module.add_function(wrap_pyfunction!(clean_laboratory, module)?)
}
