//! Applications that adapt their hint to the quality that they get. Do they find the best hint, alone and among others that
//! adapt?

mod charts;
mod measure;

use crate::claims::{FigureText, Judge, judged};
use crate::data::{Data, difference, mean};
use crate::experiment::Experiment;
use crate::study::{ExperimentData, Study};
use cutline_report::chart::Figure;
use cutline_report::report::{Claim, Section};
use cutline_report::stats::Estimate;
use measure::{ALL, Course, END_S, LOAD_END_S, LOAD_START_S, NAMES, ONE, TestedHints};

/// The study.
pub const ADAPTIVE: Study = Study {
    id: "adaptive",
    title: "Hints that follow the quality",
    statement_heading: "The question",
    intro: INTRO,
    figures: include_str!("../../../../experiments/adaptive/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
A controller sets the hint of each application. It tries hints and keeps the better one: a compass search with paired trials in \
random order, a test of significance, and periods of rest. Its only input is a report that the receiver sends every second on the \
reverse path. The network is the TSQ paper's dumbbell (15 Mbit/s, 300 ms round-trip time without queues) with TSQ over PI. Quality \
is that of the paper. Numbers are means over seeds with their 95 % confidence interval. The best fixed hint is the one with the \
best mean over the same seeds, so its quality is slightly overestimated.";

const QUICK: &[(&str, &str)] = &[("duration", "240 s"), ("warm-up", "120 s"), ("seeds", "2")];
const QUICK_STEP: &[(&str, &str)] = &[("warm-up", "600 s"), ("seeds", "2"), ("flow.audio.count", "5")];

const EXPERIMENTS: [Experiment; 4] = [
    Experiment::new(
        "adaptive-one",
        "one",
        ("one.toml", include_str!("../../../../experiments/adaptive/one.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "adaptive-all",
        "all",
        ("all.toml", include_str!("../../../../experiments/adaptive/all.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "adaptive-mixed",
        "mixed",
        ("mixed.toml", include_str!("../../../../experiments/adaptive/mixed.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "adaptive-step",
        "step",
        ("step.toml", include_str!("../../../../experiments/adaptive/step.toml")),
    )
    .shortened_by(QUICK_STEP),
];

/// The tolerance of comparisons of quality.
const TOLERANCE: f64 = 0.02;
/// The tolerance of comparisons of hints, in levels.
const TOLERANCE_LEVELS: f64 = 2.0;

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(experiment, data)) = stored.first() else { return Vec::new() };
    let (charts, we_see, judge): (_, _, fn(Claim, &str, &Data) -> Claim) = match figure.number {
        1 => (charts::one(data), tried(data, ONE), |claim, id, data| judge_tried(claim, id, data, ONE)),
        2 => (charts::all(data), tried(data, ALL), |claim, id, data| judge_tried(claim, id, data, ALL)),
        3 => (charts::mixed(data), mixed(data), judge_mixed),
        _ => (charts::step(data), step(data), judge_step),
    };
    let claims = figure.claim_ids().map(|id| judge(figure.claim(experiment.id, id), id, data));
    vec![Section {
        we_see,
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))],
        claims: claims.collect(),
        ..Section::default()
    }]
}

/// Figures 1 and 2: only the hints of audio adapt.
fn judge_tried(claim: Claim, id: &str, data: &Data, tried: TestedHints) -> Claim {
    let point = |start| measure::adapting(data, start);
    let quality = |start| measure::quality(data, point(start), "audio");
    let resting = |start| measure::final_hint(data, point(start), "audio");
    match id {
        "same-place" => judged(claim, difference(&resting(16), &resting(1)), same_level),
        "gain" => {
            let largest = measure::quality(data, measure::fixed(data, 16), "audio");
            judged(claim, difference(&quality(16), &largest), |estimate| estimate.is_above(0.0))
        }
        "spread" => judged(claim, mean(&measure::spread(data, point(16), "audio")), |estimate| {
            estimate.is_below(TOLERANCE_LEVELS)
        }),
        "still" => judged(claim, mean(&measure::hint_deviation(data, point(16), "audio")), |estimate| {
            estimate.is_below(1.0)
        }),
        id => {
            let start = id.strip_prefix("regret-").and_then(|start| start.parse().ok());
            let start = start.unwrap_or_else(|| {
                unreachable!("figures.toml has the claim `{id}`, but no code measures it")
            });
            let best = measure::best_fixed(data, tried.fixed).map_or_else(Vec::new, |(_, quality)| quality);
            judged(claim, difference(&best, &quality(start)), |estimate| estimate.is_below(TOLERANCE))
        }
    }
}

fn same_level(estimate: &Estimate) -> cutline_report::report::Verdict {
    estimate.meets(-TOLERANCE_LEVELS, TOLERANCE_LEVELS)
}

fn judge_mixed(claim: Claim, id: &str, data: &Data) -> Claim {
    let resting = |start, group| measure::final_hint(data, measure::all_adapting(data, start), group);
    let audio = |start| measure::quality(data, measure::all_adapting(data, start), "audio");
    let parts = |claim, start| {
        judged(claim, difference(&resting(start, "file"), &resting(start, "audio")), |estimate| {
            estimate.is_above(0.0)
        })
    };
    match id {
        "parts-16" => parts(claim, 16),
        "parts-1" => parts(claim, 1),
        "same-place" => judged(claim, difference(&resting(16, "file"), &resting(1, "file")), same_level),
        "same-audio" => {
            judged(claim, difference(&audio(16), &audio(1)), |estimate| estimate.meets(-TOLERANCE, TOLERANCE))
        }
        "still" => {
            let unrest = measure::hint_deviation(data, measure::all_adapting(data, 16), "file");
            judged(claim, mean(&unrest), |estimate| estimate.is_below(1.0))
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn judge_step(claim: Claim, id: &str, data: &Data) -> Claim {
    let (adapting, fixed) = (measure::adapting(data, 16), measure::fixed(data, 6));
    let quality = Course::from_quality(data, adapting);
    let hints = Course::from_hints(data, adapting, "audio");
    let gain = |from, until| {
        difference(&quality.between(from, until), &Course::from_quality(data, fixed).between(from, until))
    };
    // The last third of each phase.
    let (before, high, after) =
        (hints.between(400.0, LOAD_START_S), hints.between(1000.0, LOAD_END_S), hints.between(1600.0, END_S));
    let soon = |estimate: &Estimate| estimate.is_below(120.0);
    match id {
        "up" => judged(claim, mean(&quality.settling_time(LOAD_START_S, LOAD_END_S, TOLERANCE)), soon),
        "down" => judged(claim, mean(&quality.settling_time(LOAD_END_S, END_S, TOLERANCE)), soon),
        "follows" => judged(claim, difference(&high, &before), |estimate| estimate.is_above(0.0)),
        "returns" => judged(claim, difference(&after, &before), same_level),
        "light" => judged(claim, gain(300.0, LOAD_START_S), |estimate| estimate.is_above(0.0)),
        "heavy" => judged(claim, gain(900.0, LOAD_END_S), |estimate| estimate.is_not_below(0.0)),
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

/// The mean and half the width of the interval, or a dash without values.
fn shown(values: &[f64], decimals: usize) -> String {
    mean(values).map_or_else(
        || "-".to_owned(),
        |estimate| format!("{:.decimals$} ± {:.decimals$}", estimate.mean, estimate.half_width()),
    )
}

fn tried(data: &Data, tried: TestedHints) -> String {
    let best = measure::best_fixed(data, tried.fixed);
    let best = best.map_or_else(String::new, |(hint, quality)| {
        format!("The best fixed hint is {hint}, with a quality of {}.", shown(&quality, 3))
    });
    let line = |&start: &u16| {
        let point = measure::adapting(data, start);
        format!(
            "From {start}: quality {}, hint {} at the end; between flows the standard deviation is {}, over the last third of \
             the run {}.",
            shown(&measure::quality(data, point, "audio"), 3),
            shown(&measure::final_hint(data, point, "audio"), 1),
            shown(&measure::spread(data, point, "audio"), 1),
            shown(&measure::hint_deviation(data, point, "audio"), 2),
        )
    };
    [best].into_iter().chain(tried.starts.iter().map(line)).collect::<Vec<_>>().join("\n\n")
}

fn mixed(data: &Data) -> String {
    let class = |start, (group, name): &(&str, &str)| {
        let point = measure::all_adapting(data, start);
        format!(
            "{name}: hint {}, quality {}",
            shown(&measure::final_hint(data, point, group), 1),
            shown(&measure::quality(data, point, group), 3)
        )
    };
    let line = |start| {
        let classes: Vec<String> = NAMES.iter().map(|names| class(start, names)).collect();
        format!("From {start}. {}.", classes.join("; "))
    };
    [16, 1].map(line).join("\n\n")
}

fn step(data: &Data) -> String {
    let (adapting, fixed) = (measure::adapting(data, 16), measure::fixed(data, 6));
    let (hints, quality) =
        (Course::from_hints(data, adapting, "audio"), Course::from_quality(data, adapting));
    let six = Course::from_quality(data, fixed);
    let line = |(name, from, until): (&str, f64, f64)| {
        format!(
            "{name}: hint {}, quality {}; with hint 6 {}.",
            shown(&hints.between(from, until), 1),
            shown(&quality.between(from, until), 3),
            shown(&six.between(from, until), 3),
        )
    };
    let parts =
        [("Before", 400.0, LOAD_START_S), ("High load", 1000.0, LOAD_END_S), ("After", 1600.0, END_S)];
    parts.map(line).join("\n\n")
}
