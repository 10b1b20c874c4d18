//! A study: the evaluation of a paper, or any other one, from its experiments to the report.

use crate::changes::ExperimentChanges;
use crate::check;
use crate::data::{Data, ExperimentData};
use crate::error::{StudyError, UnknownFigure};
use crate::evaluation::{Evaluation, EvaluationEvent};
use crate::experiment::{Experiment, Prepared};
use crate::figures::{FigureText, FindOwn, read_figures, sections};
use crate::file::{FindScenario, StudyText};
use crate::options::EvaluationOptions;
use crate::origin;
use crate::platform::Platform;
use crate::run_details::run_details;
use crate::timing;
use cutline_config::{Document, Errors, Problem};
use cutline_report::chart::Figure;
use cutline_report::report::{self, Claim, Report, Section};
use cutline_results::{Lock, Store, Summary};
use cutline_scenario::runner::JobProgress;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A study.
#[derive(Debug)]
pub struct Study {
    /// Its name, which is also that of the folder of its results.
    pub id: String,
    /// One line about it, for lists.
    pub about: String,
    /// The title of the report.
    pub title: String,
    /// Every experiment, including variants.
    pub experiments: Vec<Experiment>,
    /// The heading above the statement on each figure, such as "The paper says".
    statement_heading: String,
    /// The introduction of the report.
    intro: String,
    /// The citations of the papers that it rests on.
    papers: Vec<String>,
    figures: Vec<FigureText>,
    /// `figures.toml`.
    figures_file: Document,
    code: Code,
}

/// Code of a study, for irregular claims. A study needs none: regular claims are data.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The measures of claims that are code.
    pub own: FindOwn,
    /// Computes the sections about a figure. The first one gets heading, statement, claims and files of the figure.
    pub sections: fn(&FigureText, &[ExperimentData<'_>]) -> Vec<Section>,
}

impl Code {
    /// No code: all measures and charts are data.
    pub const NONE: Self = Self { own: |_, _| None, sections };
}

/// The texts of a study's files.
pub struct Texts<'t> {
    /// The folder of the files, as messages name it.
    pub folder: &'t str,
    /// `study.toml`.
    pub study: &'t str,
    /// `figures.toml`.
    pub figures: &'t str,
    /// Finds a scenario.
    pub scenario: FindScenario<'t>,
}

/// The files of a study in its folder.
const STUDY_FILE: &str = "study.toml";
const FIGURES_FILE: &str = "figures.toml";

/// A study that is ready to run: everything is checked, and no other process stores results in its folders.
pub struct ReadyStudy<'o> {
    study: &'o Study,
    options: &'o EvaluationOptions,
    figures: Vec<FigureText>,
    experiments: Vec<(&'o Experiment, Prepared, Lock)>,
}

impl ReadyStudy<'_> {
    /// Runs the experiments that the chosen figures need, and writes the report on all figures whose results are stored.
    /// Setting `cancel` from another thread stops the evaluation early. Finished runs are kept, and the report shows them.
    ///
    /// # Errors
    /// When results or report cannot be written.
    pub fn run(
        self,
        cancel: &AtomicBool,
        on_event: &dyn Fn(EvaluationEvent<'_>),
        progress: &(dyn Fn(JobProgress<'_>) + Sync),
    ) -> Result<Evaluation, StudyError> {
        let Self { study, options, figures, experiments } = self;
        for (experiment, prepared, lock) in experiments {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            on_event(EvaluationEvent::ExperimentStarted { experiment, runs: prepared.runs() });
            prepared.run(lock, options, cancel, progress)?;
        }
        let root = study.folder(&options.results, &options.changes);
        study.report_on(&figures, &root, &options.changes)
    }
}

impl Study {
    /// Reads a study from the texts of its files. `code` has the irregular measures and charts, which the files cannot express.
    ///
    /// # Errors
    /// All problems of `study.toml` and `figures.toml`.
    pub fn parse(
        id: &str,
        texts: &Texts<'_>,
        platforms: &[&'static dyn Platform],
        code: Code,
    ) -> Result<Self, Errors> {
        let parse = |text: &str, file: &str| Document::parse(text, &format!("{}/{file}", texts.folder));
        let files = both(parse(texts.study, STUDY_FILE), parse(texts.figures, FIGURES_FILE));
        let (study_file, figures_file) = files?;
        let ids = StudyText::experiment_ids(&study_file);
        let study = StudyText::read(&study_file, platforms, texts.scenario);
        let (study, figures) = both(study, read_figures(&figures_file, &ids))?;
        let StudyText { title, about, intro, heading, papers, experiments } = study;
        Ok(Self {
            id: id.to_owned(),
            about,
            title,
            experiments,
            statement_heading: heading,
            intro,
            papers,
            figures,
            figures_file,
            code,
        })
    }

    /// Reads a study of data alone from its folder, which has `study.toml`, `figures.toml` and the scenarios. Its name is the folder's.
    ///
    /// # Errors
    /// When a file cannot be read or is not valid, an experiment is no scenario, or a claim or panel names something that no experiment has.
    pub fn open(folder: &Path, platforms: &[&'static dyn Platform]) -> Result<Self, Errors> {
        let id = folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let read = |file: &str| -> Result<(String, String), Errors> {
            let name = folder.join(file).display().to_string();
            match fs::read_to_string(folder.join(file)) {
                Ok(text) => Ok((name, text)),
                Err(error) => Err(Problem::in_file(&name, format!("cannot be read: {error}")).into()),
            }
        };
        let text = |file: &str| read(file).map(|(_, text)| text);
        let scenario = |file: &str| read(file).map_err(|errors| errors.to_string());
        let (study, figures) = both(text(STUDY_FILE), text(FIGURES_FILE))?;
        let name = folder.display().to_string();
        let texts = Texts { folder: &name, study: &study, figures: &figures, scenario: &scenario };
        let study = Self::parse(&id.unwrap_or_default(), &texts, platforms, Code::NONE)?;
        study.check()?;
        Ok(study)
    }

    /// Returns whether a folder has a study.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(STUDY_FILE).is_file()
    }

    /// The statements and claims about its figures.
    pub fn figures(&self) -> &[FigureText] {
        &self.figures
    }

    /// The scenario files of its experiments: names and texts. Variants share a file.
    pub fn scenario_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.experiments.iter().map(|experiment| (&*experiment.file, &*experiment.text))
    }

    /// Checks that all experiments are valid scenarios, and that all claims and panels can be measured.
    ///
    /// # Errors
    /// All problems of scenarios, and all names in claims and panels that no experiment has.
    pub fn check(&self) -> Result<(), Errors> {
        check::check(&self.experiments, (&self.figures, &self.figures_file), self.code.own)
    }

    /// The folder of its results within the folder of all results. Results of changed experiments have a separate folder, so that
    /// they never replace others.
    pub fn folder(&self, results: &Path, changes: &ExperimentChanges) -> PathBuf {
        results.join(format!("{}{}", self.id, changes.folder_end()))
    }

    /// Gets ready to run the experiments that the chosen figures need: checks all of them, and takes the locks on all
    /// folders of results.
    ///
    /// # Errors
    /// When a figure does not exist, results would be lost or mixed with those of another version, or another process
    /// stores results in one of the folders.
    pub fn ready<'o>(&'o self, options: &'o EvaluationOptions) -> Result<ReadyStudy<'o>, StudyError> {
        let figures = self.chosen(&options.figures)?;
        let root = self.folder(&options.results, &options.changes);
        let prepared = self.prepare(&figures, &root, options)?;
        let since = (options.clock)();
        let locked = prepared.into_iter().map(|(experiment, prepared)| {
            let lock = prepared.lock(&root, &since)?;
            Ok((experiment, prepared, lock))
        });
        let experiments = locked.collect::<Result<_, StudyError>>()?;
        Ok(ReadyStudy { study: self, options, figures, experiments })
    }

    /// Draws figures and judges claims from the results that are stored in `results`, and writes the report.
    ///
    /// # Errors
    /// When no results are stored, they are of several versions, or the report cannot be written.
    pub fn report(&self, results: &Path, changes: &ExperimentChanges) -> Result<Evaluation, StudyError> {
        let root = self.folder(results, changes);
        let mut figures = self.figures.clone();
        let is_stored = |id: &String| Store::open(&root.join(id)).has_tables();
        figures.retain(|figure| figure.needs().all(is_stored));
        if self.needed(&figures).is_empty() {
            return Err(StudyError::Nothing { study: self.id.clone(), folder: root });
        }
        self.report_on(&figures, &root, changes)
    }

    /// Draws one figure from the results that are stored in `results`: its charts, each with the name of its files.
    ///
    /// # Errors
    /// When there is no such figure, it has no charts, or the results that it needs are not stored, or damaged.
    pub fn draw(
        &self,
        number: u32,
        results: &Path,
        changes: &ExperimentChanges,
    ) -> Result<Vec<(String, Figure)>, StudyError> {
        let chosen = self.chosen(&[number])?;
        let root = self.folder(results, changes);
        let stored = self.load(&root)?;
        let has =
            |id: &String| stored.iter().any(|(experiment, data)| experiment.id == *id && data.is_complete());
        if !chosen.iter().flat_map(|figure| &figure.experiments).all(has) {
            return Err(StudyError::Nothing { study: self.id.clone(), folder: root });
        }
        let sections = chosen.iter().flat_map(|figure| self.sections(figure, &stored));
        let figures = sections.flat_map(|section| section.figures);
        let drawn: Vec<_> = figures.filter(|(_, figure)| !figure.is_empty()).collect();
        if drawn.is_empty() {
            return Err(StudyError::NoCharts { study: self.id.clone(), number });
        }
        Ok(drawn)
    }

    /// Prepares the experiments that figures need, and checks all of them.
    fn prepare(
        &self,
        figures: &[FigureText],
        root: &Path,
        options: &EvaluationOptions,
    ) -> Result<Vec<(&Experiment, Prepared)>, StudyError> {
        let mut prepared = Vec::new();
        for experiment in self.needed(figures) {
            let ready = experiment.prepare(&options.changes, options.version)?;
            ready.check(root, options.existing)?;
            prepared.push((experiment, ready));
        }
        // Stored results that are not replaced now must be of the same version.
        let is_run = |id: &str| prepared.iter().any(|(experiment, _)| experiment.id == id);
        let mut others = origin::summaries(&self.experiments, root)?;
        others.retain(|(experiment, _)| !is_run(&experiment.id));
        let summaries: Vec<_> = others.iter().map(|(experiment, summary)| (*experiment, summary)).collect();
        let common = origin::common_version(&summaries, root, &options.changes)?;
        match common.filter(|version| *version != options.version) {
            Some(version) => {
                let (folder, other) = (root.join(&others[0].0.id), options.version.to_owned());
                Err(StudyError::Mixed { folder, version, other })
            }
            None => Ok(prepared),
        }
    }

    fn titled(&self, changes: &ExperimentChanges) -> String {
        match (changes.quick, changes.is_other()) {
            (false, false) => self.title.clone(),
            (true, false) => format!("{} (quick)", self.title),
            (false, true) => format!("{} (changed)", self.title),
            (true, true) => format!("{} (quick, changed)", self.title),
        }
    }

    fn chosen(&self, numbers: &[u32]) -> Result<Vec<FigureText>, StudyError> {
        let mut figures = self.figures.clone();
        let is_there = |number: &u32| figures.iter().any(|figure| figure.number == *number);
        if let Some(&number) = numbers.iter().find(|number| !is_there(number)) {
            let known: Vec<String> = figures.iter().map(|figure| figure.number.to_string()).collect();
            return Err(UnknownFigure { number, known: known.join(", ") }.into());
        }
        figures.retain(|figure| numbers.is_empty() || numbers.contains(&figure.number));
        Ok(figures)
    }

    fn needed(&self, figures: &[FigureText]) -> Vec<&Experiment> {
        let shown: BTreeSet<&str> = figures.iter().flat_map(FigureText::needs).map(String::as_str).collect();
        let is_needed = |experiment: &&Experiment| shown.contains(experiment.id.as_str());
        self.experiments.iter().filter(is_needed).collect()
    }

    /// Writes the report on these figures and on all other figures whose results are stored.
    fn report_on(
        &self,
        figures: &[FigureText],
        root: &Path,
        changes: &ExperimentChanges,
    ) -> Result<Evaluation, StudyError> {
        let earlier = report::read_claims(root)?;
        let stored = self.load(root)?;
        let origins: Vec<_> = stored.iter().map(|(one, data)| (*one, &data.summary)).collect();
        let version = origin::common_version(&origins, root, changes)?.unwrap_or_default();
        let shown = self.shown(figures, &stored, &earlier);
        let summaries: Vec<&Summary> = stored.iter().map(|(_, data)| &data.summary).collect();
        let page = Report {
            title: self.titled(changes),
            statement_heading: self.statement_heading.clone(),
            intro: self.intro.clone(),
            papers: self.papers.clone(),
            meta: if stored.is_empty() { Vec::new() } else { run_details(&summaries, &version, changes) },
            sections: shown.iter().flat_map(|figure| self.sections(figure, &stored)).collect(),
        };
        self.refuse_partial(&page, &earlier, root)?;
        let written = report::write(root, &page)?;
        let is_chosen = |number: &str| figures.iter().any(|figure| figure.number.to_string() == number);
        let needed = self.needed(figures);
        let find = |experiment: &&Experiment| stored.iter().find(|(one, _)| one.id == experiment.id);
        let complete =
            |experiment: &&Experiment| find(experiment).is_some_and(|(_, data)| data.is_complete());
        Ok(Evaluation {
            written,
            claims: page.claims().filter(|claim| is_chosen(&claim.figure)).cloned().collect(),
            failed: needed
                .iter()
                .filter_map(find)
                .flat_map(|(experiment, data)| failures(experiment, data))
                .collect(),
            complete: needed.iter().all(complete),
        })
    }

    /// Loads the experiments that have stored runs. After an interrupted evaluation, some have none.
    fn load(&self, root: &Path) -> Result<Vec<(&Experiment, Data)>, StudyError> {
        let mut stored = Vec::new();
        for experiment in &self.experiments {
            if let Some(data) = Data::load(&experiment.id, root)? {
                stored.push((experiment, data));
            }
        }
        Ok(stored)
    }

    /// The figures of a report: the chosen ones, those whose results are all stored, and those that need no results and
    /// were in the earlier report.
    fn shown(
        &self,
        chosen: &[FigureText],
        stored: &[(&Experiment, Data)],
        earlier: &[Claim],
    ) -> Vec<FigureText> {
        let is_stored = |id: &String| stored.iter().any(|(experiment, _)| experiment.id == *id);
        let was_shown =
            |figure: &FigureText| earlier.iter().any(|claim| claim.figure == figure.number.to_string());
        let mut figures = self.figures.clone();
        figures.retain(|figure| {
            let is_chosen = chosen.iter().any(|one| one.number == figure.number);
            let needs_nothing = figure.experiments.is_empty();
            is_chosen
                || (needs_nothing && was_shown(figure))
                || (!needs_nothing && figure.needs().all(is_stored))
        });
        figures
    }

    /// Refuses to replace an earlier report that has measured more, because results have been removed since then.
    fn refuse_partial(&self, page: &Report, earlier: &[Claim], root: &Path) -> Result<(), StudyError> {
        let is_known = |claim: &&Claim| self.figures.iter().any(|figure| is_listed(figure, claim));
        let is_measured = |id: &str| page.claims().any(|claim| claim.id == id && claim.measured.is_some());
        let lost = earlier.iter().filter(|claim| claim.measured.is_some()).filter(is_known);
        let mut lost: Vec<&str> =
            lost.filter(|claim| !is_measured(&claim.id)).map(|claim| claim.figure.as_str()).collect();
        lost.dedup();
        if lost.is_empty() {
            return Ok(());
        }
        Err(StudyError::Partial { report: root.join("report.html"), figures: lost.join(", ") })
    }

    /// The sections about a figure; none if its experiments have no results.
    fn sections(&self, figure: &FigureText, stored: &[(&Experiment, Data)]) -> Vec<Section> {
        let ids = &figure.experiments;
        let find = |id: &String| stored.iter().find(|(experiment, _)| experiment.id == *id);
        let data: Vec<ExperimentData<'_>> =
            ids.iter().filter_map(find).map(|(experiment, data)| (*experiment, data)).collect();
        let needed: Vec<ExperimentData<'_>> =
            figure.needs().filter_map(find).map(|(experiment, data)| (*experiment, data)).collect();
        if data.is_empty() && !ids.is_empty() {
            return Vec::new();
        }
        let mut sections = (self.code.sections)(figure, &data);
        if let Some(own) = sections.first_mut() {
            // Values of formulas are judged where they are drawn.
            if own.claims.is_empty() {
                own.claims = figure.judge(&needed, self.code.own);
            }
            if needed.iter().any(|(_, data)| data.timing.iter().any(|row| !row.timing_ok)) {
                own.claims = own.claims.drain(..).map(timing::doubted).collect();
            }
            debug_assert!(
                own.claims.iter().all(|claim| is_listed(figure, claim)),
                "figures.toml does not list this claim"
            );
            own.id = format!("figure-{}", figure.number);
            own.heading.clone_from(&figure.heading);
            figure.says.trim().clone_into(&mut own.paper_says);
            own.caption = caption(&data);
            own.notes.extend(data.iter().filter_map(|(experiment, data)| timing::note(&experiment.id, data)));
            own.files = data.iter().flat_map(|(experiment, _)| files(&experiment.id)).collect();
        }
        sections
    }
}

/// Both results, or the problems of both.
fn both<A, B>(one: Result<A, Errors>, other: Result<B, Errors>) -> Result<(A, B), Errors> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(errors), Ok(_)) | (Ok(_), Err(errors)) => Err(errors),
        (Err(one), Err(other)) => Err(Errors::new([one.problems(), other.problems()].concat())),
    }
}

/// The number of seeds behind each point, and the meaning of bars and bands; empty without results.
fn caption(data: &[ExperimentData<'_>]) -> String {
    let seeds: BTreeSet<usize> = data.iter().map(|(_, data)| data.summary.seeds.len()).collect();
    let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    if seeds.is_empty() {
        return String::new();
    }
    format!(
        "n = {} seeds. Bars and bands are 95 % confidence intervals of the mean, unless the legend says otherwise; distributions and \
         courses over time are of all seeds together.",
        seeds.join(" or ")
    )
}

/// Returns whether `figures.toml` lists the claim for this figure.
fn is_listed(figure: &FigureText, claim: &Claim) -> bool {
    figure.claim_ids().any(|id| claim.id.ends_with(id))
}

fn files(id: &str) -> [(String, String); 2] {
    [(format!("{id}: results"), format!("{id}/")), (format!("{id}: summary"), format!("{id}/summary.json"))]
}

fn failures(experiment: &Experiment, data: &Data) -> Vec<String> {
    let line = |failed: &cutline_results::FailedRun| {
        format!("{} at {}, seed {}: {}", experiment.id, failed.run.point, failed.run.seed, failed.reason)
    };
    data.summary.failed.iter().map(line).collect()
}
