//! Several congested routers in a row, with and without passing on how long a packet has waited. RED-Worcester leaves this
//! question open.

use crate::claims::{FigureText, Own};
use crate::data::{Data, Point, difference, mean};
use crate::experiment::{Experiment, scenario, text_of};
use crate::study::{ExperimentData, Study};
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_results::FlowRow;

/// The study.
pub const CASCADE: Study = Study {
    id: "cascade",
    title: "Routers in a row",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("cascade/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, id| own(id),
    sections_of,
};

const INTRO: &str = "\
25 audio conferences with hint 6 and 25 bulk transfers cross one, two or three congested routers of 15 Mbit/s. Each router is also \
crossed by 50 other bulk transfers. Every path has a delay of 150 ms without queues. A router that passes on the waiting time \
subtracts the time that a packet has waited from its hint when the packet leaves; a level stands for 5 ms. Numbers are means over \
seeds with their 95 % confidence interval.";

const EXPERIMENTS: [Experiment; 1] = [Experiment::new("cascade", "TFRC", scenario!("cascade/cascade.toml"))
    .shortened_by(&[("duration", "25 s"), ("warm-up", "10 s"), ("seeds", "2")])];

const ROUTERS: [u16; 3] = [1, 2, 3];

/// A queue without and with passing on the waiting time, each with its name in charts.
type Pair = [(&'static str, &'static str); 2];

const TSQ: Pair = [("tsq-pi", "without"), ("tsq-pi-pass", "passed on")];
const FINE: (&str, &str) = ("tsq-pi-fine", "passed on, 8 bits");
const AGE: (&str, &str) = ("tsq-pi-age", "credit for age");
const WIDE: (&str, &str) = ("tsq-pi-wide", "passed on, 20 ms a level");
const REDW: Pair = [("redw", "REDW"), ("redw-pass", "REDW, passed on")];
const TSQ_REDW: Pair = [("tsq-redw", "TSQ over REDW"), ("tsq-redw-pass", "TSQ over REDW, passed on")];

/// The hint with which all queues are run.
const DEFAULT_HINT: u16 = 6;
/// The hints with which TSQ over PI is run through three routers.
const HINTS: [u16; 6] = [3, 6, 9, 12, 14, 15];

/// A queue, the number of routers with it, and the hint of audio.
#[derive(Clone, Copy)]
struct Case {
    queue: &'static str,
    routers: u16,
    hint: u16,
}

fn default_case(queue: &'static str, routers: u16) -> Case {
    // With 8 bits there are 16 times as many levels.
    let hint = if queue == FINE.0 { 16 * DEFAULT_HINT } else { DEFAULT_HINT };
    Case { queue, routers, hint }
}

impl Case {
    fn point(self, data: &Data) -> Option<&Point> {
        let (routers, hint) = (format!("d{}", self.routers), self.hint.to_string());
        data.point_with_values(&[
            ("link.r1-r2.queue", self.queue),
            ("flow.audio.to", routers.as_str()),
            ("flow.audio.hint", hint.as_str()),
        ])
    }

    fn measure(self, data: &Data, group: &str, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.point(data).map_or_else(Vec::new, |point| data.per_seed(point, group, measure))
    }

    fn delay(self, data: &Data) -> Vec<f64> {
        self.measure(data, "audio", |row| row.queuing_mean_ms)
    }

    fn quality(self, data: &Data) -> Vec<f64> {
        self.measure(data, "audio", |row| row.q)
    }

    fn loss(self, data: &Data) -> Vec<f64> {
        self.measure(data, "audio", |row| Some(100.0 * row.loss_ratio?))
    }

    fn goodput(self, data: &Data, group: &str) -> Vec<f64> {
        self.measure(data, group, |row| Some(row.goodput_bps / 1e3))
    }
}

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    let (charts, we_see) = match figure.number {
        1 => (
            by_routers(data, &[TSQ[0], TSQ[1], FINE, AGE]).into(),
            numbers(data, &[TSQ[0], TSQ[1], FINE, AGE]),
        ),
        2 => (hint_charts(data), hints(data)),
        _ => (redw_charts(data), numbers(data, &[REDW[0], REDW[1], TSQ_REDW[0], TSQ_REDW[1]])),
    };
    let mut figures =
        vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))];
    if figure.number == 1 {
        // A separate figure, because it has other lines.
        figures.insert(0, ("figure-1-delay".to_owned(), Figure::new(cdfs(data))));
    }
    vec![Section { we_see, figures, ..Section::default() }]
}

/// The distributions of end-to-end queuing delay with TSQ over PI.
fn cdfs(data: &Data) -> Chart {
    let cdf = Chart::new("End-to-end queuing delay of audio, by number of routers")
        .x(Axis::linear("Queuing delay, ms").from(0.0))
        .y(Axis::linear("Share of packets").range(0.0, 1.0));
    TSQ.iter().fold(cdf, |chart, (queue, name)| {
        ROUTERS.into_iter().fold(chart, |chart, routers| {
            let point = default_case(queue, routers).point(data);
            let cdf = point.and_then(|point| data.delay_cdf(point, "audio", "queuing_ms"));
            // With one router there is no next router to pass anything on to.
            match cdf.filter(|_| routers > 1 || *queue == TSQ[0].0) {
                Some(cdf) => chart.plot(Line::new(format!("{routers}, {name}"), cdf.points())),
                None => chart,
            }
        })
    })
}

fn redw_charts(data: &Data) -> Vec<Chart> {
    let queues = [REDW[0], REDW[1], TSQ_REDW[0], TSQ_REDW[1]];
    let [quality, loss] = by_routers(data, &queues);
    let delay = line_chart(data, "Queuing delay of audio", "Queuing delay, ms", &queues, Case::delay);
    vec![delay, quality, loss]
}

/// Quality and loss of audio by the number of routers.
fn by_routers(data: &Data, queues: &[(&'static str, &'static str)]) -> [Chart; 2] {
    [
        line_chart(data, "Quality of audio", "Quality", queues, Case::quality),
        line_chart(data, "Packets of audio lost", "Packets lost, %", queues, Case::loss),
    ]
}

fn line_chart(
    data: &Data,
    title: &str,
    y: &str,
    queues: &[(&'static str, &'static str)],
    measure: fn(Case, &Data) -> Vec<f64>,
) -> Chart {
    let x = Axis::linear("Routers").range(0.8, 3.2).ticks(ROUTERS.map(f64::from));
    let chart = Chart::new(title).x(x).y(Axis::linear(y).from(0.0));
    queues.iter().fold(chart, |chart, (queue, name)| {
        let dot = |routers| {
            let estimate = mean(&measure(default_case(queue, routers), data))?;
            Some(Dot::from_estimate(f64::from(routers), &estimate))
        };
        chart.plot(Line::new(*name, ROUTERS.into_iter().filter_map(dot).collect::<Vec<_>>()).markers())
    })
}

fn hint_charts(data: &Data) -> Vec<Chart> {
    let chart = |title: &str, y: &str, measure: fn(Case, &Data) -> Vec<f64>| {
        let x = Axis::linear("Hint of audio at the first router").range(2.0, 16.0);
        let chart = Chart::new(title).x(x).y(Axis::linear(y).from(0.0));
        [TSQ[0], TSQ[1], WIDE, AGE].iter().fold(chart, |chart, (queue, name)| {
            let dot = |hint| {
                let estimate = mean(&measure(Case { queue, routers: 3, hint }, data))?;
                Some(Dot::from_estimate(f64::from(hint), &estimate))
            };
            chart.plot(Line::new(*name, HINTS.into_iter().filter_map(dot).collect::<Vec<_>>()).markers())
        })
    };
    vec![
        chart("Quality of audio through three routers", "Quality", Case::quality),
        chart("Queuing delay of audio through three routers", "Queuing delay, ms", Case::delay),
    ]
}

/// The hint with the best mean quality through three routers, and its quality by seed.
fn best(data: &Data, queue: &'static str) -> Option<(u16, Vec<f64>)> {
    let tried = HINTS.map(|hint| (hint, Case { queue, routers: 3, hint }.quality(data)));
    let mean_of = |values: &[f64]| mean(values).map_or(f64::NEG_INFINITY, |estimate| estimate.mean);
    tried.into_iter().max_by(|(_, one), (_, other)| mean_of(one).total_cmp(&mean_of(other)))
}

/// The best hint of each seed.
fn best_hints(data: &Data, queue: &'static str) -> Vec<f64> {
    let tried = HINTS.map(|hint| Case { queue, routers: 3, hint }.quality(data));
    let seeds = tried.iter().map(Vec::len).min().unwrap_or(0);
    let of_seed = |seed: usize| {
        let at = |index: &usize| tried[*index][seed];
        let best = (0..HINTS.len()).max_by(|one, other| at(one).total_cmp(&at(other)));
        f64::from(HINTS[best.expect("there is at least one hint")])
    };
    (0..seeds).map(of_seed).collect()
}

/// The measures of claims that are code.
fn own(id: &str) -> Option<Own> {
    (id == "best-hint").then(|| -> Own {
        Box::new(|evidence| {
            difference(&best_hints(evidence.data, TSQ[1].0), &best_hints(evidence.data, TSQ[0].0)).into()
        })
    })
}

fn shown(values: &[f64], decimals: usize) -> String {
    mean(values).map_or_else(|| "-".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
}

fn numbers(data: &Data, queues: &[(&'static str, &'static str)]) -> String {
    let part = |case: Case| {
        format!(
            "{}: {} ms, {} % lost, quality {}, bulk {} kbit/s",
            case.routers,
            shown(&case.delay(data), 0),
            shown(&case.loss(data), 1),
            shown(&case.quality(data), 3),
            shown(&case.goodput(data, "bulk"), 0),
        )
    };
    let line = |(queue, name): &(&'static str, &'static str)| {
        let parts = ROUTERS.map(|routers| part(default_case(queue, routers)));
        format!("{name}. Audio by the number of routers, and bulk beside it. {}.", parts.join("; "))
    };
    queues.iter().map(line).collect::<Vec<_>>().join("\n\n")
}

fn hints(data: &Data) -> String {
    let line = |(queue, name): (&'static str, &'static str)| {
        best(data, queue).map_or_else(String::new, |(hint, quality)| {
            let delay = Case { queue, routers: 3, hint }.delay(data);
            format!(
                "{name}: the best hint is {hint}, with a quality of {} at {} ms.",
                shown(&quality, 3),
                shown(&delay, 0)
            )
        })
    };
    [TSQ[0], TSQ[1], WIDE, AGE].map(line).join("\n\n")
}
