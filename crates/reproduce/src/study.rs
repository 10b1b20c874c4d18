//! A study, from its experiments to the report: a paper's evaluation, or one of our own.

use crate::claims::{FigureText, UnknownFigure};
use crate::data::Data;
use crate::evaluation::{Evaluation, News, Options, ReproduceError};
use crate::experiment::Experiment;
use cutline_report::report::{self, Claim, Report, Section};
use cutline_scenario::runner::Progress;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// An experiment with its results.
pub(crate) type Stored<'a> = (&'static Experiment, &'a Data);

/// What an evaluation consists of.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line, and of its results' folder.
    pub id: &'static str,
    /// The report's title.
    pub title: &'static str,
    /// What stands over the text of each figure: "The paper says".
    pub(crate) said: &'static str,
    /// What the report says first.
    pub(crate) intro: &'static str,
    /// What is said of its figures, by the paper or by us before measuring: a file of `experiments/`.
    pub(crate) figures: &'static str,
    /// Every experiment, variants included.
    pub experiments: &'static [Experiment],
    /// What was found of a figure; the first section is the figure's own.
    pub(crate) sections_of: fn(&FigureText, &[Stored<'_>]) -> Vec<Section>,
}

impl Study {
    /// What is said of its figures.
    pub fn figures(&self) -> Vec<FigureText> {
        FigureText::read(self.figures)
    }

    /// Simulates what the chosen figures need, and writes the report. `cancel`, set from elsewhere, ends it early:
    /// what is finished is kept, and reported on.
    ///
    /// # Errors
    /// When a figure is not there, or results or report cannot be written.
    pub fn run(
        &self,
        options: &Options,
        cancel: &AtomicBool,
        news: &dyn Fn(News<'_>),
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Evaluation, ReproduceError> {
        let figures = self.chosen(&options.figures)?;
        let root = options.results.join(self.id);
        for experiment in self.needed(&figures) {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            news(News::Experiment { experiment, runs: experiment.runs(options.quick)? });
            experiment.run(&root, options, cancel, progress)?;
        }
        self.report_on(&figures, &root)
    }

    /// Draws figures and judges claims anew from what is stored in `results`, and writes the report.
    ///
    /// # Errors
    /// When there is nothing stored, or the report cannot be written.
    pub fn report(&self, results: &Path) -> Result<Evaluation, ReproduceError> {
        let root = results.join(self.id);
        let is_stored = |id: &String| root.join(id).join("summary.json").exists();
        let mut figures = self.figures();
        figures.retain(|figure| figure.experiments.iter().all(is_stored));
        if self.needed(&figures).is_empty() {
            return Err(ReproduceError::Nothing { study: self.id, folder: root });
        }
        self.report_on(&figures, &root)
    }

    fn chosen(&self, numbers: &[u32]) -> Result<Vec<FigureText>, ReproduceError> {
        let mut figures = self.figures();
        let is_there = |number: &u32| figures.iter().any(|figure| figure.number == *number);
        if let Some(&number) = numbers.iter().find(|number| !is_there(number)) {
            let known: Vec<String> = figures.iter().map(|figure| figure.number.to_string()).collect();
            return Err(UnknownFigure { number, known: known.join(", ") }.into());
        }
        figures.retain(|figure| numbers.is_empty() || numbers.contains(&figure.number));
        Ok(figures)
    }

    fn needed(&self, figures: &[FigureText]) -> Vec<&'static Experiment> {
        let shown: BTreeSet<&str> =
            figures.iter().flat_map(|figure| &figure.experiments).map(String::as_str).collect();
        let is_needed = |experiment: &&Experiment| shown.contains(experiment.id);
        self.experiments.iter().filter(is_needed).collect()
    }

    fn report_on(&self, figures: &[FigureText], root: &Path) -> Result<Evaluation, ReproduceError> {
        let needed = self.needed(figures);
        let mut stored = Vec::new();
        for &experiment in &needed {
            // An evaluation that was interrupted has not come to all of them.
            if let Some(data) = Data::load(experiment.id, root)? {
                stored.push((experiment, data));
            }
        }
        let sections = figures.iter().flat_map(|figure| self.sections(figure, &stored)).collect();
        let page = Report {
            title: self.title.to_owned(),
            said: self.said.to_owned(),
            intro: self.intro.to_owned(),
            meta: story(&stored),
            sections,
        };
        let written = report::write(root, &page)?;
        Ok(Evaluation {
            written,
            claims: page.claims().cloned().collect(),
            failed: stored.iter().flat_map(|(experiment, data)| failures(experiment, data)).collect(),
            complete: stored.len() == needed.len() && stored.iter().all(|(_, data)| data.is_complete()),
        })
    }

    /// The sections of a figure; none where what it shows has not been simulated.
    fn sections(&self, figure: &FigureText, stored: &[(&'static Experiment, Data)]) -> Vec<Section> {
        let ids = &figure.experiments;
        let find = |id: &String| stored.iter().find(|(experiment, _)| experiment.id == *id);
        let data: Vec<Stored<'_>> =
            ids.iter().filter_map(find).map(|(experiment, data)| (*experiment, data)).collect();
        if data.is_empty() && !ids.is_empty() {
            return Vec::new();
        }
        let mut sections = (self.sections_of)(figure, &data);
        if let Some(own) = sections.first_mut() {
            debug_assert!(
                own.claims.iter().all(|claim| is_listed(figure, claim)),
                "a claim that no table lists"
            );
            own.id = format!("figure-{}", figure.number);
            own.heading.clone_from(&figure.heading);
            figure.says.trim().clone_into(&mut own.paper_says);
            own.files = data.iter().flat_map(|(experiment, _)| files(experiment.id)).collect();
        }
        sections
    }
}

/// All claims of a figure must be among those that the study's table lists.
fn is_listed(figure: &FigureText, claim: &Claim) -> bool {
    figure.claim_ids().any(|id| claim.id.ends_with(id))
}

fn files(id: &str) -> [(String, String); 2] {
    [(format!("{id}: results"), format!("{id}/")), (format!("{id}: summary"), format!("{id}/summary.json"))]
}

/// What was run: for the report's head.
fn story(stored: &[(&'static Experiment, Data)]) -> Vec<(String, String)> {
    let Some((_, data)) = stored.first() else { return Vec::new() };
    let summary = &data.summary;
    let runs: usize = stored.iter().map(|(_, data)| data.summary.finished.len()).sum();
    let seeds = match (summary.seeds.first(), summary.seeds.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.map_or_else(String::new, ToString::to_string),
    };
    let shortened = summary.overrides.iter().find(|(path, _)| path == "duration");
    let length = shortened.map_or_else(|| "in full".to_owned(), |(_, value)| format!("{value} (quick)"));
    let last = stored.last().map_or(summary, |(_, data)| &data.summary);
    [
        ("Version", summary.version.clone()),
        ("Seeds", seeds),
        ("Length of a run", length),
        ("Runs", runs.to_string()),
        ("Begun", summary.started_at.clone()),
        ("Ended", last.finished_at.clone()),
        ("Processor", format!("{}, {} cores", summary.host.cpu, summary.host.cores)),
        ("Kernel", summary.host.kernel.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn failures(experiment: &Experiment, data: &Data) -> Vec<String> {
    let line = |failed: &cutline_results::FailedRun| {
        format!("{} at {}, seed {}: {}", experiment.id, failed.run.point, failed.run.seed, failed.reason)
    };
    data.summary.failed.iter().map(line).collect()
}
