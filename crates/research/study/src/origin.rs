//! Checks whether stored results are those of a study's experiments, all of one version.

use crate::changes::ExperimentChanges;
use crate::data::Data;
use crate::error::StudyError;
use crate::experiment::Experiment;
use cutline_results::Summary;
use std::path::Path;

/// The version of the program that made the stored results of a study; `None` if there are none.
///
/// # Errors
/// When the results are of several versions, or do not belong to their experiment with these changes.
pub(crate) fn common_version(
    stored: &[(&Experiment, &Summary)],
    root: &Path,
    changes: &ExperimentChanges,
) -> Result<Option<String>, StudyError> {
    let version = |(experiment, summary): &(&Experiment, &Summary)| {
        experiment.platform.program_version(&summary.version).to_owned()
    };
    let Some(common) = stored.first().map(version) else { return Ok(None) };
    if let Some(other) = stored.iter().find(|one| version(one) != common) {
        let folder = root.join(&other.0.id);
        return Err(StudyError::Mixed { folder, version: version(other), other: common });
    }
    for (experiment, summary) in stored {
        check(experiment, summary, root, changes)?;
    }
    Ok(Some(common))
}

/// Refuses results that do not belong to the experiment. Results of another version are accepted here.
fn check(
    experiment: &Experiment,
    stored: &Summary,
    root: &Path,
    changes: &ExperimentChanges,
) -> Result<(), StudyError> {
    let version = experiment.platform.program_version(&stored.version);
    let expected = experiment.prepare(changes, version)?.summary(String::new());
    if stored.origin == expected.origin {
        return Ok(());
    }
    let differences = match stored.differences(&expected).as_slice() {
        [] => "the scenario is different".to_owned(),
        list => format!("they differ in {}", list.join(" and ")),
    };
    Err(StudyError::Foreign { folder: root.join(&experiment.id), differences })
}

/// The summaries of the experiments that have stored results.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn summaries<'e>(
    experiments: &'e [Experiment],
    root: &Path,
) -> Result<Vec<(&'e Experiment, Summary)>, StudyError> {
    let mut summaries = Vec::new();
    for experiment in experiments {
        if let Some(summary) = Data::summary(&experiment.id, root)? {
            summaries.push((experiment, summary));
        }
    }
    Ok(summaries)
}
