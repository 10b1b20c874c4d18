//! Applications that adapt their hint to the quality they get: do they find the best one, alone and among their like?

mod charts;
mod measure;

use crate::claims::{FigureText, Judge, judged};
use crate::data::{Data, mean};
use crate::experiment::Experiment;
use crate::study::{Stored, Study};
use cutline_report::chart::Figure;
use cutline_report::report::{Claim, Section};
use cutline_report::stats::Estimate;
use measure::{Course, Tried, less};

/// The study.
pub const ADAPTIVE: Study = Study {
    id: "adaptive",
    title: "Hints that follow the quality",
    statement_heading: "The question",
    intro: INTRO,
    figures: include_str!("../../../../experiments/adaptive/figures.toml"),
    experiments: &EXPERIMENTS,
    sections_of,
};

const INTRO: &str = "\
Applications whose hint is set by a controller that tries hints and keeps the better: compass search with paired trials in \
random order, a test of significance, and rest. It sees the reports that a receiver sends every second over the way back, and \
nothing else. The TSQ paper's dumbbell (15 Mbit/s, 300 ms of round trip without queues), TSQ over PI. Quality is the paper's. \
Numbers are means over seeds with their 95 % confidence interval; the best fixed hint is the best of the same seeds' means, so it \
is flattered a little.";

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

const ONE: Tried = Tried { fixed: &[2, 4, 6, 7, 8, 9, 10, 12, 16], starts: &[1, 8, 16] };
const ALL: Tried = Tried { fixed: &[4, 5, 6, 7], starts: &[1, 16] };

/// The groups of the mix, and what they are called.
const NAMES: [(&str, &str); 3] = [("audio", "audio"), ("video", "video"), ("file", "file transfer")];

/// When load comes and goes, s, and when the run ends.
const COMES: f64 = 600.0;
const GOES: f64 = 1200.0;
const ENDS: f64 = 1800.0;

/// Differences that count as none: of quality, and of hints in levels.
const NEAR: f64 = 0.02;
const NEAR_LEVELS: f64 = 2.0;

fn sections_of(figure: &FigureText, stored: &[Stored<'_>]) -> Vec<Section> {
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

/// Figures 1 and 2: audio alone adapts.
fn judge_tried(claim: Claim, id: &str, data: &Data, tried: Tried) -> Claim {
    let point = |start| measure::adapting(data, start);
    let quality = |start| measure::quality(data, point(start), "audio");
    let resting = |start| measure::resting(data, point(start), "audio");
    match id {
        "same-place" => judged(claim, less(&resting(16), &resting(1)), same_level),
        "gain" => {
            let largest = measure::quality(data, measure::fixed(data, 16), "audio");
            judged(claim, less(&quality(16), &largest), |found| found.is_above(0.0))
        }
        "spread" => judged(claim, mean(&measure::spread(data, point(16), "audio")), |found| {
            found.is_below(NEAR_LEVELS)
        }),
        "still" => {
            judged(claim, mean(&measure::unrest(data, point(16), "audio")), |found| found.is_below(1.0))
        }
        id => {
            let start = id.strip_prefix("regret-").and_then(|start| start.parse().ok());
            let start =
                start.unwrap_or_else(|| unreachable!("figures.toml claims `{id}`, which nobody measures"));
            let best = measure::best_fixed(data, tried.fixed).map_or_else(Vec::new, |(_, quality)| quality);
            judged(claim, less(&best, &quality(start)), |found| found.is_below(NEAR))
        }
    }
}

fn same_level(found: &Estimate) -> cutline_report::report::Verdict {
    found.meets(-NEAR_LEVELS, NEAR_LEVELS)
}

fn judge_mixed(claim: Claim, id: &str, data: &Data) -> Claim {
    let resting = |start, group| measure::resting(data, measure::all_adapting(data, start), group);
    let audio = |start| measure::quality(data, measure::all_adapting(data, start), "audio");
    let parts = |claim, start| {
        judged(claim, less(&resting(start, "file"), &resting(start, "audio")), |found| found.is_above(0.0))
    };
    match id {
        "parts-16" => parts(claim, 16),
        "parts-1" => parts(claim, 1),
        "same-place" => judged(claim, less(&resting(16, "file"), &resting(1, "file")), same_level),
        "same-audio" => judged(claim, less(&audio(16), &audio(1)), |found| found.meets(-NEAR, NEAR)),
        "still" => {
            let unrest = measure::unrest(data, measure::all_adapting(data, 16), "file");
            judged(claim, mean(&unrest), |found| found.is_below(1.0))
        }
        id => unreachable!("figures.toml claims `{id}`, which nobody measures"),
    }
}

fn judge_step(claim: Claim, id: &str, data: &Data) -> Claim {
    let (adapting, fixed) = (measure::adapting(data, 16), measure::fixed(data, 6));
    let quality = Course::of_quality(data, adapting);
    let hints = Course::of_hints(data, adapting, "audio");
    let gain = |from, until| {
        less(&quality.between(from, until), &Course::of_quality(data, fixed).between(from, until))
    };
    // The last third of each time.
    let (before, high, after) =
        (hints.between(400.0, COMES), hints.between(1000.0, GOES), hints.between(1600.0, ENDS));
    let soon = |found: &Estimate| found.is_below(120.0);
    match id {
        "up" => judged(claim, mean(&quality.time_to_rest(COMES, GOES, NEAR)), soon),
        "down" => judged(claim, mean(&quality.time_to_rest(GOES, ENDS, NEAR)), soon),
        "follows" => judged(claim, less(&high, &before), |found| found.is_above(0.0)),
        "returns" => judged(claim, less(&after, &before), same_level),
        "light" => judged(claim, gain(300.0, COMES), |found| found.is_above(0.0)),
        "heavy" => judged(claim, gain(900.0, GOES), |found| found.is_not_below(0.0)),
        id => unreachable!("figures.toml claims `{id}`, which nobody measures"),
    }
}

/// Mean and half of the interval, or a dash.
fn shown(values: &[f64], decimals: usize) -> String {
    mean(values).map_or_else(
        || "-".to_owned(),
        |found| format!("{:.decimals$} ± {:.decimals$}", found.mean, found.half_width()),
    )
}

fn tried(data: &Data, tried: Tried) -> String {
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
            shown(&measure::resting(data, point, "audio"), 1),
            shown(&measure::spread(data, point, "audio"), 1),
            shown(&measure::unrest(data, point, "audio"), 2),
        )
    };
    [best].into_iter().chain(tried.starts.iter().map(line)).collect::<Vec<_>>().join("\n\n")
}

fn mixed(data: &Data) -> String {
    let class = |start, (group, name): &(&str, &str)| {
        let point = measure::all_adapting(data, start);
        format!(
            "{name}: hint {}, quality {}",
            shown(&measure::resting(data, point, group), 1),
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
    let (hints, quality) = (Course::of_hints(data, adapting, "audio"), Course::of_quality(data, adapting));
    let six = Course::of_quality(data, fixed);
    let line = |(name, from, until): (&str, f64, f64)| {
        format!(
            "{name}: hint {}, quality {}; with hint 6 {}.",
            shown(&hints.between(from, until), 1),
            shown(&quality.between(from, until), 3),
            shown(&six.between(from, until), 3),
        )
    };
    let parts = [("Before", 400.0, COMES), ("High load", 1000.0, GOES), ("After", 1600.0, ENDS)];
    parts.map(line).join("\n\n")
}
