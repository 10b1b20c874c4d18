//! Several congested routers in a row, with and without passing on how long a packet has waited. RED-Worcester leaves this
//! question open.

use crate::claims::Own;
use crate::data::{Data, difference};
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::Study;

/// The study.
pub const CASCADE: Study = Study {
    id: "cascade",
    title: "Routers in a row",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("cascade/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, id| own(id),
    sections_of: panels::sections,
};

const INTRO: &str = "\
25 audio conferences with hint 6 and 25 bulk transfers cross one, two or three congested routers of 15 Mbit/s. Each router is also \
crossed by 50 other bulk transfers. Every path has a delay of 150 ms without queues. A router that passes on the waiting time \
subtracts the time that a packet has waited from its hint when the packet leaves; a level stands for 5 ms. Numbers are means over \
seeds with their 95 % confidence interval.";

const EXPERIMENTS: [Experiment; 1] = [Experiment::new("cascade", "TFRC", scenario!("cascade/cascade.toml"))
    .shortened_by(&[("duration", "25 s"), ("warm-up", "10 s"), ("seeds", "2")])];

/// The hints with which TSQ over PI is run through three routers.
const HINTS: [u16; 6] = [3, 6, 9, 12, 14, 15];

/// The quality of audio with a hint through three routers, by seed.
fn quality(data: &Data, queue: &str, hint: u16) -> Vec<f64> {
    let hint = hint.to_string();
    let point = [("link.r1-r2.queue", queue), ("flow.audio.to", "d3"), ("flow.audio.hint", hint.as_str())];
    data.by_seed(&point, "audio", |row| row.q)
}

/// The best hint of each seed.
fn best_hints(data: &Data, queue: &str) -> Vec<f64> {
    let tried = HINTS.map(|hint| quality(data, queue, hint));
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
            difference(&best_hints(evidence.data, "tsq-pi-pass"), &best_hints(evidence.data, "tsq-pi")).into()
        })
    })
}
