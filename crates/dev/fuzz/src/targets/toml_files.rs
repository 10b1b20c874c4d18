//! Files that people write: scenarios with changes by `--set`, flows of the generator, routers.
//!
//! - An error names the file, and a problem with a place names line, column and key; both can be shown, and hold nothing that a
//!   terminal would obey.
//! - A point of a sweep is the same as the file with the point's settings on top.
//! - A router that was read can be shown as text and as JSON, and its queues can be built.
//! - A group of flows has as many names as flows.

use cutline_config::Errors;
use cutline_router_service::{RouterSpec, configuration, summary};
use cutline_scenario::spec::ArrivalsSpec;
use cutline_scenario::{FlowsFile, Scenario, ScenarioFile, SweepPoint};
use cutline_text::{Printable, is_obeyed};

/// Name of the file in messages.
pub(super) const NAME: &str = "input.toml";
/// Messages about a text before there are keys.
const SYNTAX: [&str; 5] = [
    "this is not TOML",
    "this is not JSON",
    "this is not a JSON object",
    "is there twice",
    "null is no value",
];
/// The scenario that settings are put on.
const SETTINGS_OF: &str = include_str!("settings.toml");
/// Larger sweeps are left alone: their time and memory grow with their points, not with their text.
const MOST_POINTS: usize = 64;
/// Larger groups of flows are left alone for the same reason.
const MOST_FLOWS: u64 = 1000;
/// Sweeps of larger generated graphs, too.
const MOST_NODES: usize = 1000;

pub fn scenario(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match ScenarioFile::parse(text, NAME) {
        Ok(file) => check_scenario(&file),
        Err(errors) => refused(&errors, text),
    }
}

/// Lines `KEY=VALUE`, as `--set` takes them.
pub fn settings(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut file = ScenarioFile::parse(SETTINGS_OF, NAME).unwrap_or_else(|errors| panic!("{errors}"));
    let mut set = 0;
    for pair in text.lines() {
        match file.set_pair(pair) {
            Ok(()) => set += 1,
            Err(errors) => assert!(errors.to_string().contains("--set "), "{errors}"),
        }
    }
    assert_eq!(file.overrides().len(), set);
    check_scenario(&file) && set > 0
}

pub fn flows(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match FlowsFile::parse(text, NAME) {
        Ok(file) => {
            for flow in file.flows.iter().filter(|flow| flow.count <= MOST_FLOWS) {
                assert_eq!(flow.member_names().count(), flow.count as usize);
            }
            assert!(!file.flows.is_empty());
            true
        }
        Err(errors) => refused(&errors, text),
    }
}

pub fn router(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match RouterSpec::parse(text, NAME) {
        Ok(spec) => {
            for direction in [&spec.forward, &spec.reverse] {
                assert!(direction.queue.build::<u32>().is_ok(), "a queue that was read can be built");
            }
            let document = serde_json::to_string(&configuration(&spec)).expect("its keys are text");
            assert!(!document.is_empty() && !summary(&spec).is_empty());
            assert!(spec.fixed_differences(&spec).is_empty());
            true
        }
        Err(errors) => refused(&errors, text),
    }
}

fn check_scenario(file: &ScenarioFile) -> bool {
    match file.scenario() {
        Ok(scenario) => {
            if !check_network(&scenario) || scenario.graph().nodes.len() > MOST_NODES {
                return true;
            }
        }
        Err(errors) => return refused(&errors, file.text()),
    }
    match file.points() {
        Ok(points) if points > MOST_POINTS => true,
        Ok(points) => check_sweep(file, points),
        Err(errors) => refused(&errors, file.text()),
    }
}

/// Checks that the scenario has a network, or an error with the reason. Returns false if it has too many flows for that: a
/// dumbbell has two hosts for each.
fn check_network(scenario: &Scenario) -> bool {
    let arrivals = scenario.flows.iter().filter_map(|flow| flow.arrivals.as_ref());
    let expected: f64 = arrivals.map(ArrivalsSpec::expected).sum();
    if scenario.flow_count() > MOST_FLOWS || expected > MOST_FLOWS as f64 {
        return false;
    }
    if let Err(error) = scenario.network() {
        assert!(!error.to_string().is_empty());
    }
    true
}

fn check_sweep(file: &ScenarioFile, points: usize) -> bool {
    let expanded = match file.expand() {
        Ok(expanded) => expanded,
        Err(errors) => return refused(&errors, file.text()),
    };
    assert_eq!(expanded.len(), points);
    for point in expanded.first().into_iter().chain(expanded.last()) {
        check_point(file, point);
    }
    true
}

/// A text that looks like a number or a switch is one on the command line, which may be refused there.
fn check_point(file: &ScenarioFile, point: &SweepPoint) {
    let mut file = file.clone();
    let set = point.settings.iter().try_for_each(|(path, value)| file.set(path, value));
    if let Ok(scenario) = set.and_then(|()| file.scenario()) {
        let same = Scenario { canonical: point.scenario.canonical.clone(), ..scenario } == point.scenario;
        assert!(same, "{} is not the same as its settings", point.label());
    }
}

/// Checks that errors name the place, the key and the fault. Always false: the input was not accepted.
pub(super) fn refused(errors: &Errors, text: &str) -> bool {
    let lines = text.lines().count();
    let rendered = errors.render();
    assert!(!errors.problems().is_empty() && !rendered.is_empty());
    let obeyed = rendered.chars().find(|c| is_obeyed(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(obeyed, None, "nothing that a terminal obeys is in {rendered:?}");
    for problem in errors.problems() {
        let message = problem.to_string();
        let Some(location) = &problem.location else {
            assert!(message.starts_with(NAME), "{message}");
            continue;
        };
        assert!(message.starts_with(&Printable(&location.source).to_string()), "{message}");
        assert!(problem.key.is_some() || SYNTAX.iter().any(|what| message.contains(what)), "{message}");
        if let Some((line, column)) = location.line_column {
            assert_eq!(location.source, NAME);
            assert!((1..=lines + 1).contains(&line) && column >= 1, "{message}");
            assert!(message.contains(&format!(":{line}:{column}: ")), "{message}");
        } else {
            assert!(location.source.starts_with("--set "), "{message}");
        }
    }
    false
}
