//! A scenario file: loaded, overridden from the command line, read as one scenario or as all points of its sweep.

use crate::read;
use crate::spec::Scenario;
use crate::sweep::{self, SweepPoint};
use cutline_config::{Document, Errors, Problem};
use std::path::Path;

/// The lists of tables whose members a path such as `flow.audio.hint` chooses by name.
const NAMED_LISTS: [&str; 3] = ["flow", "node", "link"];

/// A scenario file that is TOML. Reading it as a scenario finds what else is wrong with it.
#[derive(Clone)]
pub struct ScenarioFile {
    document: Document,
    overrides: Vec<(String, String)>,
}

impl ScenarioFile {
    /// The file at `path`.
    ///
    /// # Errors
    /// When it cannot be read or is not TOML.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        Document::load(path).map(Self::new)
    }

    /// A file's text; `name` is what messages call it.
    ///
    /// # Errors
    /// When it is not TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        Document::parse(text, name).map(Self::new)
    }

    fn new(document: Document) -> Self {
        Self { document: document.with_named_lists(&NAMED_LISTS), overrides: Vec::new() }
    }

    /// Sets the key at `path` (`flow.audio.hint`) to a TOML value; a text may go without quotes (`15 Mbit/s`).
    ///
    /// # Errors
    /// When the path leads nowhere. A key or value that is not allowed is found when the scenario is read.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), Errors> {
        self.document.set_text(path, value)?;
        self.overrides.push((path.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Sets a key as the command line gives it: `flow.audio.hint=6`.
    ///
    /// # Errors
    /// When there is no `=`, and as [`ScenarioFile::set`].
    pub fn set_pair(&mut self, pair: &str) -> Result<(), Errors> {
        let Some((path, value)) = pair.split_once('=') else {
            let expected = "expected KEY=VALUE such as flow.audio.hint=6".to_owned();
            return Err(Problem::in_file(&format!("--set {pair}"), expected).into());
        };
        self.set(path.trim(), value.trim())
    }

    /// The scenario, its sweep left aside.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, Errors> {
        read::scenario(&self.document)
    }

    /// How many points the sweep has; 1 when there is no sweep. A path that was set does not vary.
    ///
    /// # Errors
    /// Everything that is wrong with the sweep.
    pub fn points(&self) -> Result<usize, Errors> {
        sweep::points(&self.document, |path| self.is_set(path))
    }

    /// All points of the sweep; one, with the label `base`, when there is no sweep. A path that was set does not vary.
    ///
    /// # Errors
    /// Everything that is wrong with the sweep or with any point of it, each problem once.
    pub fn expand(&self) -> Result<Vec<SweepPoint>, Errors> {
        let combinations = sweep::combinations(&self.document, |path| self.is_set(path))?;
        let total = combinations.len();
        let mut points = Vec::with_capacity(total);
        let mut problems: Vec<Found> = Vec::new();
        for combination in combinations {
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

    /// Whether an override has set this path.
    fn is_set(&self, path: &str) -> bool {
        self.overrides.iter().any(|(set, _)| set == path)
    }

    /// The file's text as it was read, without the overrides.
    pub fn text(&self) -> &str {
        self.document.text()
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        self.document.name()
    }

    /// The overrides in the order in which they were made: path and value.
    pub fn overrides(&self) -> &[(String, String)] {
        &self.overrides
    }
}

/// A problem of some of a sweep's points.
struct Found {
    problem: Problem,
    first_point: String,
    points: usize,
}

impl Found {
    /// The problem, and the first point that has it if not all of them have.
    fn labelled(self, total: usize) -> Problem {
        if self.points == total {
            return self.problem;
        }
        self.problem.with_note(&format!("at the point {}", self.first_point))
    }
}

/// Adds a point's problems to those of the points before it.
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
    /// The scenario in the file at `path`, its sweep left aside.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        ScenarioFile::load(path)?.scenario()
    }

    /// The scenario in a file's text, its sweep left aside; `name` is what messages call the file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        ScenarioFile::parse(text, name)?.scenario()
    }
}
