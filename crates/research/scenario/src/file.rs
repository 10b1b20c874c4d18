//! Loads a scenario file, applies overrides from the command line, and reads one scenario or all points of the sweep.

use crate::read;
use crate::spec::Scenario;
use crate::sweep::{self, SweepPoint};
use cutline_config::{Document, Errors, Problem};
use cutline_tables::queue;
use std::path::Path;

/// The lists of tables whose members a path such as `flow.audio.hint` selects by name.
const NAMED_LISTS: [&str; 3] = ["flow", "node", "link"];

/// A scenario file with valid TOML. Reading the scenario checks the keys and values.
#[derive(Clone)]
pub struct ScenarioFile {
    document: Document,
    overrides: Vec<(String, String)>,
}

impl ScenarioFile {
    /// Loads the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not valid TOML.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        Document::load(path).map(Self::new)
    }

    /// Parses the text of a file. Messages call the file `name`.
    ///
    /// # Errors
    /// If the text is not valid TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        Document::parse(text, name).map(Self::new)
    }

    fn new(document: Document) -> Self {
        let document = document.with_named_lists(&NAMED_LISTS).with_change_rule(queue::change_rule);
        Self { document, overrides: Vec::new() }
    }

    /// Sets the key at `path` (`flow.audio.hint`) to a TOML value. Text needs no quotes (`15 Mbit/s`).
    ///
    /// # Errors
    /// If the path does not exist. Reading the scenario checks whether the key and the value are allowed.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Errors> {
        self.document.set_text(path, value)?;
        self.overrides.push((path.to_owned(), value.to_owned()));
        Ok(())
    }

    /// As [`ScenarioFile::set`], for a value that another file has at `place`, such as `study.toml:7:3`. Messages name it.
    ///
    /// # Errors
    /// As [`ScenarioFile::set`].
    pub fn set_from(&mut self, place: &str, path: &str, value: &str) -> Result<(), Errors> {
        self.document.set_text_from(place, path, value)?;
        self.overrides.push((path.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Sets a key from an argument of the command line: `flow.audio.hint=6`.
    ///
    /// # Errors
    /// If there is no `=`, and as [`ScenarioFile::set`].
    pub fn set_pair(&mut self, pair: &str) -> Result<(), Errors> {
        let Some((path, value)) = pair.split_once('=') else {
            let expected = "expected KEY=VALUE such as flow.audio.hint=6".to_owned();
            return Err(Problem::in_file(&format!("--set {pair}"), expected).into());
        };
        self.set(path.trim(), value.trim())
    }

    /// Reads the scenario without its sweep.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn scenario(&self) -> Result<Scenario, Errors> {
        read::scenario(&self.document)
    }

    /// Returns the number of points of the sweep; 1 without a sweep. An overridden path does not vary.
    ///
    /// # Errors
    /// All problems of the sweep.
    pub fn points(&self) -> Result<usize, Errors> {
        sweep::points(&self.document, |path| self.is_set(path))
    }

    /// Returns all points of the sweep. Without a sweep there is one point with the label `base`. An overridden path does not
    /// vary.
    ///
    /// # Errors
    /// All problems of the sweep and of its points, each problem once.
    pub fn expand(&self) -> Result<Vec<SweepPoint>, Errors> {
        let combinations = sweep::combinations(&self.document, |path| self.is_set(path))
            .map_err(|errors| self.with_those_of_the_base(errors))?;
        let total = combinations.len();
        let mut points = Vec::with_capacity(total);
        let mut problems: Vec<Found> = Vec::new();
        for combination in combinations {
            let combination = combination.map_err(|errors| self.with_those_of_the_base(errors))?;
            let label = sweep::label(&combination.settings);
            match read::scenario(&combination.document) {
                Ok(scenario) => points.push(SweepPoint { settings: combination.settings, scenario }),
                Err(errors) => collect(&mut problems, &errors, &label),
            }
        }
        if problems.is_empty() {
            return Ok(points);
        }
        Err(Errors::new(problems.into_iter().map(|found| found.labelled(total)).collect()))
    }

    /// Returns the problems of the sweep together with those that the scenario has without it. Keys that it lacks may
    /// be swept.
    fn with_those_of_the_base(&self, of_sweep: Errors) -> Errors {
        let Err(of_base) = self.scenario() else { return of_sweep };
        let mut problems = of_sweep.problems().to_vec();
        problems.extend(of_base.problems().iter().filter(|problem| !problem.is_of_missing_key()).cloned());
        Errors::new(problems)
    }

    /// Returns whether an override has set this path.
    fn is_set(&self, path: &str) -> bool {
        self.overrides.iter().any(|(set, _)| set == path)
    }

    /// Returns the original text of the file, without the overrides.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// Returns the name of the file in messages.
    pub fn name(&self) -> &str {
        self.document.name()
    }

    /// Returns the overrides, path and value, in the order of the calls.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }
}

/// A problem of one or more points of a sweep.
struct Found {
    problem: Problem,
    first_point: String,
    points: usize,
}

impl Found {
    /// Returns the problem. Unless all points have it, the message names the first point that has it.
    fn labelled(self, total: usize) -> Problem {
        if self.points == total {
            return self.problem;
        }
        self.problem.with_note(&format!("at the point {}", self.first_point))
    }
}

/// Adds the problems of a point to those of the previous points.
fn collect(found: &mut Vec<Found>, errors: &Errors, label: &str) {
    for problem in errors.problems() {
        if let Some(known) = found.iter_mut().find(|other| other.problem == *problem) {
            known.points += 1;
        } else {
            found.push(Found { problem: problem.clone(), first_point: label.to_owned(), points: 1 });
        }
    }
}

impl Scenario {
    /// Loads the scenario in the file at `path`, without its sweep.
    ///
    /// # Errors
    /// If the file cannot be read, and all problems of the scenario.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        ScenarioFile::load(path)?.scenario()
    }

    /// Parses the scenario in the text of a file, without its sweep. Messages call the file `name`.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        ScenarioFile::parse(text, name)?.scenario()
    }
}
