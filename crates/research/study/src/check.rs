//! Checks that the claims and panels of a study name things that its experiments have.

use crate::claims::{ClaimData, MEASURE, Quantity};
use crate::contents::Contents;
use crate::experiment::Experiment;
use crate::figures::{FigureText, FindOwn};
use cutline_config::{Document, Errors, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// Compares the figures of a study with its experiments. `document` is the `figures.toml` that lists the figures.
///
/// # Errors
/// The problems of experiments that are no valid scenarios, and the names in claims and panels that no experiment has.
pub(crate) fn check(
    experiments: &[Experiment],
    (figures, document): (&[FigureText], &Document),
    own: FindOwn,
) -> Result<(), Errors> {
    let (mut contents, mut wrong) = (BTreeMap::new(), Vec::new());
    for experiment in experiments {
        match Contents::of(experiment) {
            Ok(there) => drop(contents.insert(experiment.id.as_str(), there)),
            Err(errors) => wrong.push((experiment, errors)),
        }
    }
    let check = Check { document, contents, own };
    let names = figures.iter().flat_map(|figure| check.figure(figure));
    let problems: Vec<Problem> = of_scenarios(&wrong).into_iter().chain(names).collect();
    if problems.is_empty() { Ok(()) } else { Err(Errors::new(problems)) }
}

/// The problems of scenarios, each with the first experiment that has it.
fn of_scenarios(wrong: &[(&Experiment, Errors)]) -> Vec<Problem> {
    let (mut seen, mut problems): (Vec<&Problem>, Vec<Problem>) = Default::default();
    for (experiment, errors) in wrong {
        for problem in errors.problems() {
            if !seen.contains(&problem) {
                seen.push(problem);
                problems.push(problem.clone().with_note(&format!("experiment {:?}", experiment.id)));
            }
        }
    }
    problems
}

struct Check<'s> {
    /// `figures.toml`.
    document: &'s Document,
    /// The contents of the experiments that are valid.
    contents: BTreeMap<&'s str, Contents>,
    own: FindOwn,
}

impl Check<'_> {
    fn figure(&self, figure: &FigureText) -> Vec<Problem> {
        let Some(main) = figure.experiments.first() else { return Vec::new() };
        let all: Vec<&str> = figure.experiments.iter().map(String::as_str).collect();
        let claims = figure.claims.iter().flat_map(|claim| self.claim(claim, figure));
        let panels = figure.panels.iter().flat_map(|panel| {
            let own = if panel.is_across() { &all[..] } else { &[main.as_str()][..] };
            panel.quantities().flat_map(|quantity| self.quantity(quantity, own)).collect::<Vec<_>>()
        });
        claims.chain(panels).collect()
    }

    fn claim(&self, claim: &ClaimData, figure: &FigureText) -> Vec<Problem> {
        match &claim.quantity {
            Some(quantity) => self.quantity(quantity, &judged(claim, figure)),
            None if (self.own)(figure, claim.name()).is_none() => vec![self.no_measure(claim)],
            None => Vec::new(),
        }
    }

    fn no_measure(&self, claim: &ClaimData) -> Problem {
        let key = format!("{}.measure", claim.place.key);
        let text = format!(" is missing: expected {MEASURE}");
        self.document.problem(Some(&claim.place.span), Some(&key), text)
    }

    /// The names in a quantity that the first of these experiments with problems does not have.
    fn quantity(&self, quantity: &Quantity, own: &[&str]) -> Vec<Problem> {
        let of = |experiment: &&str| self.of_experiment(quantity, experiment);
        own.iter().map(of).find(|problems| !problems.is_empty()).unwrap_or_default()
    }

    /// The names that an experiment does not have. An operand has the settings of the quantity, too: each reason is reported
    /// once.
    fn of_experiment(&self, quantity: &Quantity, experiment: &str) -> Vec<Problem> {
        let of_part = |part: &Quantity| {
            let id = part.experiment().unwrap_or(experiment);
            self.contents.get(id).map(|there| part.check(id, there)).unwrap_or_default()
        };
        let mut reasons = BTreeSet::new();
        let found = quantity.parts().into_iter().flat_map(of_part);
        let first = found.filter(|(_, why)| reasons.insert(why.clone()));
        first.map(|(place, why)| self.document.refused(&place, &why)).collect()
    }
}

/// The experiments for which a claim is judged.
fn judged<'f>(claim: &'f ClaimData, figure: &'f FigureText) -> Vec<&'f str> {
    match claim.experiment() {
        Some(id) => vec![id],
        None if figure.has_variants => figure.experiments.iter().map(String::as_str).collect(),
        None => figure.experiments.first().map(String::as_str).into_iter().collect(),
    }
}
