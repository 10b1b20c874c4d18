//! The TSQ paper's evaluation: the quality curves (figures 2 to 5) and the five experiments of section 4 (figures 8 to
//! 16; figure 1 is another paper's, 6 the algorithm, 7 the topology).
//!
//! The paper's "TCP-friendly CBR source" is run as TFRC, and again as TCP that carries the same constant rate. Its video
//! experiment is run with ns-2's TCP window of 20 packets, which the paper does not mention, and again without.

mod cheat;
mod curves;
mod hints;
mod mixes;

use crate::claims::{FigureText, UnknownFigure};
use crate::data::Data;
use crate::evaluation::{Evaluation, News, Options, ReproduceError};
use crate::experiment::Experiment;
use cutline_report::report::{self, Claim, Report, Section};
use cutline_scenario::runner::Progress;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const FIGURES: &str = include_str!("../../../../experiments/tsq/figures.toml");

const AUDIO: (&str, &str) = ("audio.toml", include_str!("../../../../experiments/tsq/audio.toml"));
const VIDEO: (&str, &str) = ("video.toml", include_str!("../../../../experiments/tsq/video.toml"));
const MIXED: (&str, &str) = ("mixed.toml", include_str!("../../../../experiments/tsq/mixed.toml"));
const CHEAT: (&str, &str) = ("cheat.toml", include_str!("../../../../experiments/tsq/cheat.toml"));
const UNRESPONSIVE: (&str, &str) =
    ("unresponsive.toml", include_str!("../../../../experiments/tsq/unresponsive.toml"));

/// TCP that carries a constant rate. What does not fit into a buffer of two packets is refused at the source, or the
/// delay in the sender would grow without bound.
const TCP_AUDIO: (&str, &str) = (
    "flow.audio.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets" }"#,
);
const TCP_VIDEO: (&str, &str) = (
    "flow.video.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets" }"#,
);
const TCP_VIDEO_20: (&str, &str) = (
    "flow.video.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets", max-window = "20 packets" }"#,
);
const NO_WINDOW: (&str, &str) =
    ("flow.bulk.transport", r#"{ protocol = "tcp", mss = "1000 B", header = "0 B" }"#);

const fn experiment(
    id: &'static str,
    label: &'static str,
    (file, text): (&'static str, &'static str),
    set: &'static [(&'static str, &'static str)],
) -> Experiment {
    Experiment { id, label, file, text, set }
}

/// Every experiment, variants included.
pub const EXPERIMENTS: [Experiment; 10] = [
    experiment("audio", "TFRC", AUDIO, &[]),
    experiment("audio-tcp", "TCP", AUDIO, &[TCP_AUDIO]),
    experiment("video", "TFRC, window of 20", VIDEO, &[]),
    experiment("video-tcp", "TCP, window of 20", VIDEO, &[TCP_VIDEO_20]),
    experiment("video-unlimited", "TFRC, no window", VIDEO, &[NO_WINDOW]),
    experiment("video-tcp-unlimited", "TCP, no window", VIDEO, &[TCP_VIDEO, NO_WINDOW]),
    experiment("mixed", "TFRC", MIXED, &[]),
    experiment("mixed-tcp", "TCP", MIXED, &[TCP_AUDIO]),
    experiment("cheat", "UDP", CHEAT, &[]),
    experiment("unresponsive", "UDP", UNRESPONSIVE, &[]),
];

/// The experiments that a figure shows, the paper's own first.
fn experiments_of(figure: u32) -> &'static [&'static str] {
    match figure {
        8..=10 => &["audio", "audio-tcp"],
        11..=13 => &["video", "video-tcp", "video-unlimited", "video-tcp-unlimited"],
        14 => &["mixed", "mixed-tcp"],
        15 => &["cheat"],
        16 => &["unresponsive"],
        _ => &[],
    }
}

/// What the paper says of its figures.
pub fn figures() -> Vec<FigureText> {
    FigureText::read(FIGURES)
}

/// Simulates what the chosen figures need, and writes the report. `cancel`, set from elsewhere, ends it early: what is
/// finished is kept, and reported on.
///
/// # Errors
/// When a figure is not there, or results or report cannot be written.
pub fn run(
    options: &Options,
    cancel: &AtomicBool,
    news: &dyn Fn(News<'_>),
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Evaluation, ReproduceError> {
    let figures = chosen(&options.figures)?;
    let root = options.results.join("tsq");
    for experiment in needed(&figures) {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        news(News::Experiment { experiment, runs: experiment.runs(options.quick)? });
        experiment.run(&root, options, cancel, progress)?;
    }
    report_on(&figures, &root)
}

/// Draws figures and judges claims anew from what is stored in `results`, and writes the report.
///
/// # Errors
/// When there is nothing stored, or the report cannot be written.
pub fn report(results: &Path) -> Result<Evaluation, ReproduceError> {
    let root = results.join("tsq");
    let stored = |figure: &FigureText| {
        experiments_of(figure.number).iter().all(|id| root.join(id).join("summary.json").exists())
    };
    let figures: Vec<FigureText> = figures().into_iter().filter(stored).collect();
    let first = &EXPERIMENTS[0];
    if needed(&figures).is_empty() {
        return Err(ReproduceError::Nothing { experiment: first.id, folder: root });
    }
    report_on(&figures, &root)
}

fn chosen(numbers: &[u32]) -> Result<Vec<FigureText>, ReproduceError> {
    let figures = figures();
    let known = || figures.iter().map(|figure| figure.number.to_string()).collect::<Vec<_>>().join(", ");
    if let Some(&number) =
        numbers.iter().find(|&&number| figures.iter().all(|figure| figure.number != number))
    {
        return Err(UnknownFigure { number, known: known() }.into());
    }
    Ok(figures.into_iter().filter(|figure| numbers.is_empty() || numbers.contains(&figure.number)).collect())
}

fn needed(figures: &[FigureText]) -> Vec<&'static Experiment> {
    let is_needed = |experiment: &&Experiment| {
        figures.iter().any(|figure| experiments_of(figure.number).contains(&experiment.id))
    };
    EXPERIMENTS.iter().filter(is_needed).collect()
}

fn report_on(figures: &[FigureText], root: &Path) -> Result<Evaluation, ReproduceError> {
    let mut stored = Vec::new();
    for experiment in needed(figures) {
        // An evaluation that was interrupted has not come to all of them.
        match Data::load(experiment, root) {
            Ok(data) => stored.push((experiment, data)),
            Err(ReproduceError::Nothing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let page = Report {
        title: "TSQ: the paper's evaluation, reproduced".into(),
        intro: INTRO.into(),
        meta: story(&stored),
        sections: figures.iter().filter_map(|figure| section(figure, &stored)).collect(),
    };
    let written = report::write(root, &page)?;
    Ok(Evaluation {
        written,
        claims: page.claims().cloned().collect(),
        failed: failures(&stored),
        complete: stored.len() == needed(figures).len() && stored.iter().all(|(_, data)| data.is_complete()),
    })
}

const INTRO: &str = "\
Every figure of the paper's evaluation, from simulated packets: the paper's text on the left hand, what we measured on \
the right. Numbers are means over seeds with their 95 % confidence interval (Student's t over replications, paired by \
seed where two settings are compared). A claim holds when the interval shows it, differs when the interval shows \
otherwise, and is unclear where the interval includes both.

The paper's \"TCP-friendly CBR source\" is run as TFRC (RFC 5348), and again as TCP that carries the same constant rate. \
A run lasts 100 s, of which the last 80 s are measured; the paper does not say which part it measured.";

fn section(figure: &FigureText, stored: &[(&'static Experiment, Data)]) -> Option<Section> {
    let of = |ids: &[&str]| -> Vec<(&'static Experiment, &Data)> {
        let wanted = stored.iter().filter(|(experiment, _)| ids.contains(&experiment.id));
        wanted.map(|(experiment, data)| (*experiment, data)).collect()
    };
    let data = of(experiments_of(figure.number));
    if data.is_empty() && figure.number > 5 {
        return None;
    }
    let found = match figure.number {
        2..=5 => curves::section(figure),
        8..=10 => hints::AUDIO.section(figure, &data),
        11..=13 => hints::VIDEO.section(figure, &data),
        14 | 16 => mixes::section(figure, &data),
        15 => cheat::section(figure, &data),
        number => unreachable!("figure {number} is in the table but nobody draws it"),
    };
    let file = |(experiment, _): &(&Experiment, &Data)| {
        let folder = format!("{}/", experiment.id);
        vec![
            (format!("{}: results", experiment.id), folder.clone()),
            (format!("{}: summary", experiment.id), format!("{folder}summary.json")),
        ]
    };
    Some(Section {
        id: format!("figure-{}", figure.number),
        heading: figure.heading.clone(),
        paper_says: figure.says.trim().to_owned(),
        files: data.iter().flat_map(file).collect(),
        ..found
    })
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
    let length = shortened
        .map_or_else(|| "100 s, as in the paper".to_owned(), |(_, value)| format!("{value} (quick)"));
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

fn failures(stored: &[(&'static Experiment, Data)]) -> Vec<String> {
    let of = |(experiment, data): &(&Experiment, Data)| {
        let line = |failed: &cutline_scenario::results::FailedRun| {
            format!("{} at {}, seed {}: {}", experiment.id, failed.run.point, failed.run.seed, failed.reason)
        };
        data.summary.failed.iter().map(line).collect::<Vec<_>>()
    };
    stored.iter().flat_map(of).collect()
}

/// All claims of a figure that an experiment makes must be among those that the paper's table lists.
fn claims_in_order(figure: &FigureText, made: Vec<Claim>) -> Vec<Claim> {
    debug_assert!(
        made.iter().all(|claim| figure.claim_ids().any(|id| claim.id.ends_with(id))),
        "a claim that figures.toml does not list"
    );
    made
}
