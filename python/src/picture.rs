//! Pictures of results, and the figures of studies, as documents that Python draws.

use crate::errors;
use crate::results::Results;
use cutline_analysis::Selection;
use cutline_analysis::picture::{PictureKind, PictureRequest, PictureSource};
use cutline_report::chart::Figure;
use cutline_study::ExperimentChanges;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Returns the figures of a picture of results, as JSON. `kind` is that of `cutline plot`.
#[pyfunction]
fn picture(
    py: Python<'_>,
    results: Vec<Py<Results>>,
    kind: &str,
    measures: Vec<String>,
    by: Option<String>,
    groups: Vec<String>,
    points: Vec<String>,
) -> PyResult<String> {
    let kind = match kind {
        "cdf" => PictureKind::Cdf,
        "time" => PictureKind::Time,
        "sweep" => PictureKind::Sweep,
        "plane" => PictureKind::Plane,
        _ => PictureKind::Overview,
    };
    let request = PictureRequest { kind, measures, by, selection: Selection { groups, points } };
    py.detach(|| {
        let sources: Vec<PictureSource<'_>> = results.iter().map(|one| one.get().picture_source()).collect();
        let picture = request.picture_of(&sources).map_err(errors::analysis)?;
        Ok(json(&picture.figures()))
    })
}

/// Returns a figure of a study, as JSON, from the results that are stored in the folder `results`.
#[pyfunction]
fn study_figure(py: Python<'_>, study: &str, number: u32, results: PathBuf, quick: bool) -> PyResult<String> {
    let found = cutline_reproduce::study(study).ok_or_else(|| {
        let known: Vec<&str> = cutline_reproduce::studies().iter().map(|study| &*study.id).collect();
        errors::argument("study", &format!("{study:?} is not allowed: expected one of {}", known.join(", ")))
    })?;
    py.detach(|| {
        let drawn = found.draw(number, &results, &ExperimentChanges::quick(quick)).map_err(errors::study)?;
        Ok(json(&drawn.into_iter().map(|(_, figure)| figure).collect::<Vec<_>>()))
    })
}

/// Number and heading of a figure.
type Heading = (u32, String);

/// Returns the studies: name, title, and their figures.
#[pyfunction]
fn studies() -> Vec<(String, String, Vec<Heading>)> {
    let figures = |study: &cutline_study::Study| {
        study.figures().iter().map(|figure| (figure.number, figure.heading.clone())).collect()
    };
    let studies = cutline_reproduce::studies().iter();
    studies.map(|study| (study.id.clone(), study.title.clone(), figures(study))).collect()
}

fn json(figures: &[Figure]) -> String {
    errors::json(&figures.iter().map(Figure::document).collect::<Vec<_>>())
}

/// Adds the pictures.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(picture, module)?)?;
    module.add_function(wrap_pyfunction!(study_figure, module)?)?;
    module.add_function(wrap_pyfunction!(studies, module)?)
}
