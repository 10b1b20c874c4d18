//! Checks that the claims and panels of a study name what its experiments have.

use crate::claims::{ClaimData, FigureText, FindOwn, Quantity, Settings};
use crate::error::StudyError;
use crate::experiment::Experiment;
use crate::study::Study;
use cutline_config::Errors;
use std::collections::{BTreeMap, BTreeSet};

/// Content of an experiment: the points of its sweep, and the names of its groups of flows.
struct Contents {
    points: Vec<Settings>,
    groups: BTreeSet<String>,
}

/// Returns the names in claims and panels that no experiment has.
///
/// # Errors
/// When an experiment is no valid scenario.
pub(crate) fn problems(study: &Study, own: FindOwn) -> Result<Vec<String>, StudyError> {
    let contents = study.experiments.iter().map(|one| {
        let contents = contents(one).map_err(|errors| StudyError::File {
            file: one.file.clone(),
            problem: format!("experiment `{}`: {errors}", one.id),
        })?;
        Ok((one.id.as_str(), contents))
    });
    let contents: BTreeMap<&str, Contents> = contents.collect::<Result<_, StudyError>>()?;
    let mut problems = Vec::new();
    for figure in study.figures() {
        let about = format!("figure {}", figure.number);
        let unknown = figure.needs().filter(|id| !contents.contains_key(id.as_str()));
        problems.extend(unknown.map(|id| format!("{about}: `study.toml` has no experiment `{id}`")));
        if figure.experiments.is_empty() {
            continue;
        }
        for claim in &figure.claims {
            let about = format!("{about}, claim `{}`", claim.id);
            if claim.expectation.is_none() {
                problems.push(format!("{about} has no rule, such as `above`"));
            }
            match &claim.quantity {
                Some(quantity) => {
                    problems.extend(missing(quantity, &judged(claim, figure), figure, &contents, &about));
                }
                None if own(figure, claim.name()).is_none() => {
                    problems.push(format!("{about} has no `measure`"));
                }
                None => {}
            }
        }
        let all: Vec<&str> = figure.experiments.iter().map(String::as_str).collect();
        for panel in &figure.panels {
            let own = if panel.is_across() { &all[..] } else { &all[..1] };
            let of = |quantity| missing(quantity, own, figure, &contents, &about);
            problems.extend(panel.quantities().flat_map(of));
        }
    }
    Ok(problems)
}

/// The experiments for which a claim is judged.
fn judged<'f>(claim: &'f ClaimData, figure: &'f FigureText) -> Vec<&'f str> {
    match claim.experiment() {
        Some(id) => vec![id],
        None if figure.has_variants => figure.experiments.iter().map(String::as_str).collect(),
        None => figure.experiments.first().map(String::as_str).into_iter().collect(),
    }
}

/// Returns the names in a quantity that these experiments do not have.
fn missing(
    quantity: &Quantity,
    own: &[&str],
    figure: &FigureText,
    contents: &BTreeMap<&str, Contents>,
    about: &str,
) -> Vec<String> {
    let mut problems = Vec::new();
    for &experiment in own {
        for part in quantity.parts() {
            let id = part.experiment().unwrap_or(experiment);
            if !figure.needs().any(|needed| needed == id) {
                problems.push(format!("{about}: the figure does not list `{id}`"));
            } else if let Some(there) = contents.get(id)
                && let Err(problem) = part.check(&there.points, &there.groups)
            {
                problems.push(format!("{about} in `{id}`: {problem}"));
            }
        }
    }
    problems
}

fn contents(experiment: &Experiment) -> Result<Contents, Errors> {
    let points = experiment.scenario_file(false)?.expand()?;
    let groups = points[0].scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let settings = points.into_iter().map(|point| {
        point.settings.into_iter().map(|(key, value)| (key, value.trim_matches('"').to_owned())).collect()
    });
    Ok(Contents { points: settings.collect(), groups })
}
