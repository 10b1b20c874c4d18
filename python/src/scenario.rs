//! Scenarios: a file with its settings, as the command has it.

use crate::errors;
use crate::extension::guard;
use cutline_lab::LabOptions;
use cutline_scenario::check::{self, check_points};
use cutline_scenario::{Scenario, SweepPoint};
use pyo3::prelude::*;
use std::path::PathBuf;

/// A scenario file and its settings.
#[pyclass(module = "cutline._native", frozen)]
pub struct ScenarioFile {
    pub file: cutline_scenario::ScenarioFile,
}

impl ScenarioFile {
    /// Returns the points of the sweep and the warnings about them, if the simulator accepts every point.
    ///
    /// # Errors
    /// All problems of the scenario, or the first refusal.
    pub fn checked(&self) -> PyResult<(Vec<SweepPoint>, Vec<String>)> {
        let points = self.file.expand().map_err(|errors| errors::scenario(&errors))?;
        let warnings = guard(|| check_points(&points, Scenario::check_simulated))?;
        Ok((points, warnings.map_err(errors::refused)?))
    }
}

impl ScenarioFile {
    /// Returns the points of the sweep and the warnings about them, if the laboratory accepts every point.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub fn checked_in(&self, options: &LabOptions) -> PyResult<(Vec<SweepPoint>, Vec<String>)> {
        let points = self.file.expand().map_err(|errors| errors::scenario(&errors))?;
        let check = |scenario: &Scenario| {
            cutline_lab::check_with(scenario, &options.programs).map_err(|error| error.to_string())
        };
        let warnings = check_points(&points, check).map_err(errors::refused)?;
        Ok((points, warnings))
    }
}

#[pymethods]
impl ScenarioFile {
    /// Parses the text of a file. Messages call the file `name`.
    #[staticmethod]
    fn parse(text: &str, name: &str) -> PyResult<Self> {
        let file = cutline_scenario::ScenarioFile::parse(text, name);
        Ok(Self { file: file.map_err(|errors| errors::scenario(&errors))? })
    }

    /// Loads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = py.detach(|| cutline_scenario::ScenarioFile::load(&path));
        Ok(Self { file: file.map_err(|errors| errors::scenario(&errors))? })
    }

    /// Returns the same file with further settings: paths and values as the command's `--set` has them.
    fn with_settings(&self, settings: Vec<(String, String)>) -> PyResult<Self> {
        let mut file = self.file.clone();
        for (path, value) in &settings {
            file.set(path, value).map_err(|errors| errors::scenario(&errors))?;
        }
        Ok(Self { file })
    }

    /// Returns the text of the file.
    fn text(&self) -> &str {
        self.file.text()
    }

    /// Returns the name of the file.
    fn name(&self) -> &str {
        self.file.name()
    }

    /// Returns the description of the runs as text and as JSON, with the warnings.
    fn check(&self, py: Python<'_>) -> PyResult<(String, String)> {
        py.detach(|| {
            let (points, _) = self.checked()?;
            Ok((check::describe_simulated(&points), errors::json(&check::document_simulated(&points))))
        })
    }
}
