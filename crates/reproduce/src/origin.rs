//! Whether stored results are those that a study's experiments give, all of one version.

use crate::data::Data;
use crate::error::ReproduceError;
use crate::experiment::Experiment;
use cutline_results::Summary;
use std::path::Path;

/// The version of the program that made the stored results of a study; `None` where nothing is stored.
///
/// # Errors
/// When they are of several versions, or one is not its experiment's (in full, or `quick`).
pub(crate) fn common_version(
    stored: &[(&'static Experiment, &Summary)],
    root: &Path,
    quick: bool,
) -> Result<Option<String>, ReproduceError> {
    let version = |(experiment, summary): &(&'static Experiment, &Summary)| {
        experiment.place.program_version(&summary.version).to_owned()
    };
    let Some(common) = stored.first().map(version) else { return Ok(None) };
    if let Some(other) = stored.iter().find(|one| version(one) != common) {
        let folder = root.join(other.0.id);
        return Err(ReproduceError::Mixed { folder, version: version(other), other: common });
    }
    for (experiment, summary) in stored {
        check(experiment, summary, root, quick)?;
    }
    Ok(Some(common))
}

/// Refuses results that the experiment would not give, of whatever version.
fn check(experiment: &Experiment, stored: &Summary, root: &Path, quick: bool) -> Result<(), ReproduceError> {
    let version = experiment.place.program_version(&stored.version);
    let expected = experiment.prepare(quick, version)?.summary(String::new());
    if stored.origin == expected.origin {
        return Ok(());
    }
    let differences = match stored.differences(&expected).as_slice() {
        [] => "the scenario is another one".to_owned(),
        list => format!("they differ in {}", list.join(" and ")),
    };
    Err(ReproduceError::Foreign { folder: root.join(experiment.id), differences })
}

/// The summaries of the experiments that are stored.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn summaries(
    experiments: &'static [Experiment],
    root: &Path,
) -> Result<Vec<(&'static Experiment, Summary)>, ReproduceError> {
    let mut found = Vec::new();
    for experiment in experiments {
        if let Some(summary) = Data::summary(experiment.id, root)? {
            found.push((experiment, summary));
        }
    }
    Ok(found)
}
