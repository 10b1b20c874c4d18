//! Several congested routers in a row, with and without passing on how long a packet has waited. RED-Worcester leaves this
//! question open.

use cutline_study::{Data, Own, difference};

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
pub(crate) fn own(id: &str) -> Option<Own> {
    (id == "best-hint").then(|| -> Own {
        Box::new(|evidence| {
            difference(&best_hints(evidence.data, "tsq-pi-pass"), &best_hints(evidence.data, "tsq-pi")).into()
        })
    })
}
