//! Applications that adapt their hint to the quality that they get. Do they find the best hint, alone and among others that
//! adapt?

mod charts;
mod measure;

use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean};
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_report::chart::Figure;
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use measure::{ALL, Course, END_S, LOAD_END_S, LOAD_START_S, NAMES, ONE, TestedHints};

/// The study.
pub const ADAPTIVE: Study = Study {
    id: "adaptive",
    title: "Hints that follow the quality",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("adaptive/figures.toml"),
    experiments: &EXPERIMENTS,
    own,
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

const EXPERIMENTS: [Experiment; 5] = [
    Experiment::new("adaptive-one", "one", scenario!("adaptive/one.toml")).shortened_by(QUICK),
    Experiment::new("adaptive-all", "all", scenario!("adaptive/all.toml")).shortened_by(QUICK),
    Experiment::new("adaptive-mixed", "mixed", scenario!("adaptive/mixed.toml")).shortened_by(QUICK),
    Experiment::new("adaptive-step", "step", scenario!("adaptive/step.toml")).shortened_by(QUICK_STEP),
    Experiment::new("adaptive-laws", "laws", scenario!("adaptive/laws.toml")).shortened_by(QUICK),
];

/// How close to its final value quality counts as settled, relative to it.
const TOLERANCE: f64 = 0.02;

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    let (charts, we_see) = match figure.number {
        1 => (charts::one(data), tried(data, ONE)),
        2 => (charts::all(data), tried(data, ALL)),
        3 => (charts::mixed(data), mixed(data)),
        4 => (charts::step(data), step(data)),
        _ => return panels::sections(figure, stored),
    };
    vec![Section {
        we_see,
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))],
        ..Section::default()
    }]
}

/// The measures of the claims of figures 1 to 4, all of which are code.
fn own(figure: &FigureText, id: &str) -> Option<Own> {
    let measure: Measure = match figure.number {
        1 => measure_tried(id, ONE)?,
        2 => measure_tried(id, ALL)?,
        3 => Box::new(measure_mixed(id)?),
        _ => Box::new(measure_step(id)?),
    };
    Some(Box::new(move |evidence| measure(evidence.data).into()))
}

/// What is measured of stored results.
type Measure = Box<dyn Fn(&Data) -> Option<Estimate>>;

/// Figures 1 and 2: only the hints of audio adapt.
fn measure_tried(id: &str, tried: TestedHints) -> Option<Measure> {
    fn quality(data: &Data, start: u16) -> Vec<f64> {
        measure::quality(data, measure::adapting(data, start), "audio")
    }
    fn resting(data: &Data, start: u16) -> Vec<f64> {
        measure::final_hint(data, measure::adapting(data, start), "audio")
    }
    Some(match id {
        "same-place" => Box::new(|data| difference(&resting(data, 16), &resting(data, 1))),
        "gain" => Box::new(|data| {
            let largest = measure::quality(data, measure::fixed(data, 16), "audio");
            difference(&quality(data, 16), &largest)
        }),
        "spread" => Box::new(|data| mean(&measure::spread(data, measure::adapting(data, 16), "audio"))),
        "still" => {
            Box::new(|data| mean(&measure::hint_deviation(data, measure::adapting(data, 16), "audio")))
        }
        id => {
            let start: u16 = id.strip_prefix("regret-")?.parse().ok()?;
            Box::new(move |data| {
                let best =
                    measure::best_fixed(data, tried.fixed).map_or_else(Vec::new, |(_, quality)| quality);
                difference(&best, &quality(data, start))
            })
        }
    })
}

fn measure_mixed(id: &str) -> Option<fn(&Data) -> Option<Estimate>> {
    fn resting(data: &Data, start: u16, group: &str) -> Vec<f64> {
        measure::final_hint(data, measure::all_adapting(data, start), group)
    }
    fn audio(data: &Data, start: u16) -> Vec<f64> {
        measure::quality(data, measure::all_adapting(data, start), "audio")
    }
    Some(match id {
        "parts-16" => |data| difference(&resting(data, 16, "file"), &resting(data, 16, "audio")),
        "parts-1" => |data| difference(&resting(data, 1, "file"), &resting(data, 1, "audio")),
        "same-place" => |data| difference(&resting(data, 16, "file"), &resting(data, 1, "file")),
        "same-audio" => |data| difference(&audio(data, 16), &audio(data, 1)),
        "still" => |data| mean(&measure::hint_deviation(data, measure::all_adapting(data, 16), "file")),
        _ => return None,
    })
}

fn measure_step(id: &str) -> Option<fn(&Data) -> Option<Estimate>> {
    fn quality(data: &Data) -> Course {
        Course::from_quality(data, measure::adapting(data, 16))
    }
    fn hints(data: &Data) -> Course {
        Course::from_hints(data, measure::adapting(data, 16), "audio")
    }
    fn gain(data: &Data, from: f64, until: f64) -> Option<Estimate> {
        let fixed = Course::from_quality(data, measure::fixed(data, 6));
        difference(&quality(data).between(from, until), &fixed.between(from, until))
    }
    // Hints are those of the last third of each phase.
    Some(match id {
        "up" => |data| mean(&quality(data).settling_time(LOAD_START_S, LOAD_END_S, TOLERANCE)),
        "down" => |data| mean(&quality(data).settling_time(LOAD_END_S, END_S, TOLERANCE)),
        "follows" => |data| {
            let hints = hints(data);
            difference(&hints.between(1000.0, LOAD_END_S), &hints.between(400.0, LOAD_START_S))
        },
        "returns" => |data| {
            let hints = hints(data);
            difference(&hints.between(1600.0, END_S), &hints.between(400.0, LOAD_START_S))
        },
        "light" => |data| gain(data, 300.0, LOAD_START_S),
        "heavy" => |data| gain(data, 900.0, LOAD_END_S),
        _ => return None,
    })
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
