//! Exceptions. Their classes are in Python, in `cutline/errors.py`; errors of the crates become exceptions here.

use cutline_analysis::AnalysisError;
use cutline_config::{Errors, Problem};
use cutline_results::StoreError as CrateStoreError;
use cutline_study::StudyError;
use pyo3::import_exception;
use pyo3::prelude::*;

import_exception!(cutline.errors, ArgumentError);
import_exception!(cutline.errors, ConformanceError);
import_exception!(cutline.errors, ExtensionError);
import_exception!(cutline.errors, LaboratoryError);
import_exception!(cutline.errors, Lost);
import_exception!(cutline.errors, NoPeer);
import_exception!(cutline.errors, NoResults);
import_exception!(cutline.errors, NothingFound);
import_exception!(cutline.errors, OptionError);
import_exception!(cutline.errors, Refused);
import_exception!(cutline.errors, ResultsDamaged);
import_exception!(cutline.errors, ResultsExist);
import_exception!(cutline.errors, ResultsLocked);
import_exception!(cutline.errors, ScenarioError);
import_exception!(cutline.errors, StoreError);

/// Returns the exception for an argument. The message gives the allowed values.
pub fn argument(parameter: &'static str, message: &str) -> PyErr {
    ArgumentError::new_err((format!("{parameter}: {message}"), parameter))
}

/// Returns the exception for a method of an extension that returned a value that is not allowed.
pub fn extension(message: String) -> PyErr {
    ExtensionError::new_err(message)
}

/// Returns the exception for an extension that does not pass a check.
pub fn conformance(message: String) -> PyErr {
    ConformanceError::new_err(message)
}

/// Returns the exception for a parameter of the parameter system, which is an argument with underscores in Python.
pub fn parameter(name: &str, message: &str) -> PyErr {
    let argument = name.replace('-', "_");
    ArgumentError::new_err((format!("{argument}: {message}"), argument))
}

/// Returns the exception for the keys of a table whose values were arguments: all problems, named after the first.
pub fn keys(errors: &Errors, table: &str) -> PyErr {
    let key = |problem: &Problem| {
        let key = problem.key.as_deref().unwrap_or(table);
        key.strip_prefix(table).map_or(key, |rest| rest.trim_start_matches('.')).replace('-', "_")
    };
    let messages: Vec<String> = errors
        .problems()
        .iter()
        .map(|problem| problem.message().replace(&format!("\"{table}."), "\""))
        .collect();
    let first = errors.problems().first().map(key).unwrap_or_default();
    ArgumentError::new_err((messages.join("\n"), first))
}

/// Returns the exception with all problems of a scenario, and the text of the command.
pub fn scenario(errors: &Errors) -> PyErr {
    let parts = |problem: &Problem| {
        let place = problem.location.as_ref().and_then(|location| location.line_column);
        let (line, column) = place.unzip();
        (problem.source().to_owned(), line, column, problem.key.clone(), problem.message())
    };
    let problems: Vec<_> = errors.problems().iter().map(parts).collect();
    ScenarioError::new_err((errors.render(), problems))
}

/// Returns the exception for a scenario that is allowed, and that the simulator refuses.
pub fn refused(message: String) -> PyErr {
    ScenarioError::new_err(message)
}

/// Returns the exception for stored results.
pub fn store(error: &CrateStoreError) -> PyErr {
    let text = error.to_string();
    match error {
        CrateStoreError::Taken { can_resume: true, .. } => ResultsExist::new_err(format!(
            "{text}\nresume=True keeps the stored runs and adds the missing ones; force=True replaces the stored results; \
             results=FOLDER stores the new results elsewhere"
        )),
        CrateStoreError::Taken { .. } | CrateStoreError::Unknown { .. } => ResultsExist::new_err(format!(
            "{text}\nresults=FOLDER stores the new results elsewhere, as does another name (with_({{\"name\": ...}})); \
             force=True replaces the stored results"
        )),
        CrateStoreError::Locked { .. } => ResultsLocked::new_err(format!(
            "{text}\nwait until it has ended, or store the new results elsewhere with results=FOLDER"
        )),
        CrateStoreError::Io { source, .. } if !error.is_damage() => {
            let exception = StoreError::new_err(text);
            Python::attach(|py| {
                // Programs find the system's number where other errors of files have it.
                let _is_set = exception.value(py).setattr("errno", source.raw_os_error());
            });
            exception
        }
        damage if damage.is_damage() => ResultsDamaged::new_err(format!(
            "{text}\nthe call that stored these results repeats damaged runs with resume=True, and everything with \
             force=True"
        )),
        _ => StoreError::new_err(text),
    }
}

/// Returns the exception for a query without a result. `parameter` is the name of an option in Python.
pub fn analysis(error: AnalysisError) -> PyErr {
    match error {
        AnalysisError::Choice { option: "", message } => NothingFound::new_err(message),
        AnalysisError::Choice { option, message } => {
            let parameter = match option {
                "group" => "groups",
                "point" => "points",
                "measure" => "measures",
                other => other,
            };
            let message = message.trim_start_matches([' ', ':']).to_owned();
            ArgumentError::new_err((format!("{parameter}: {message}"), parameter))
        }
        AnalysisError::NoResults(folder) => NoResults::new_err(format!(
            "{} has no summary.json\nexpected a folder written by cutline.run or `cutline run`, or its summary.json",
            folder.display()
        )),
        AnalysisError::Nothing(message) => NothingFound::new_err(message),
        AnalysisError::Store(error) => store(&error),
    }
}

/// Returns the exception for a study that cannot be drawn.
pub fn study(error: StudyError) -> PyErr {
    match error {
        StudyError::Figure(_) => argument("figure", &error.to_string()),
        StudyError::Files(errors) => scenario(&errors),
        StudyError::Store(error) => store(&error),
        StudyError::Nothing { .. } => NoResults::new_err(error.to_string()),
        StudyError::NoCharts { .. } => NothingFound::new_err(error.to_string()),
        error => StoreError::new_err(error.to_string()),
    }
}

/// Returns the exception for a laboratory that cannot be used.
pub fn laboratory(error: &dyn std::error::Error) -> PyErr {
    LaboratoryError::new_err(error.to_string())
}

/// Returns a document as text.
pub fn json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}
