//! Check of a scenario: a description of its runs, its warnings, or all of its errors, as text and as documents.

use crate::spec::{FlowSpec, Scenario, Topology};
use crate::sweep::SweepPoint;
use cutline_config::{Errors, Problem};
use cutline_results::PointSummary;
use cutline_sim::{Network, StagePlan};
use cutline_text::Printable;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{Display, Write as _};

/// The largest number of points that are listed by name.
const LISTED: usize = 20;

/// Checks that `supports` accepts every point. Returns the warnings about them.
///
/// # Errors
/// The first unsupported point, and the reason.
pub fn check_points<E: Display>(
    points: &[SweepPoint],
    supports: impl Fn(&Scenario) -> Result<(), E>,
) -> Result<Vec<String>, String> {
    points.iter().try_for_each(|point| {
        supports(&point.scenario).map_err(|error| format!("{}: {error}", Printable(point.label())))
    })?;
    Ok(warnings(points))
}

/// Returns the warnings about all points, each once.
fn warnings(points: &[SweepPoint]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for warning in points.iter().flat_map(|point| point.scenario.warnings()) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    all
}

/// The runs, the network and the flows of a scenario.
#[derive(Serialize, JsonSchema)]
pub struct ScenarioDocument {
    /// The name of the scenario.
    name: String,
    /// The title of the scenario; null if it has none.
    title: Option<String>,
    /// The number of runs. Each point runs with each seed.
    runs: u64,
    /// The seeds of the replications.
    seeds: Vec<u64>,
    /// The simulated time, seconds.
    duration_s: f64,
    /// The time at which measuring starts, seconds.
    warm_up_s: f64,
    /// The time at which measuring ends, seconds.
    measure_until_s: f64,
    /// The number of nodes in the network of the first point.
    nodes: usize,
    /// The number of one-way links in the network of the first point.
    links: usize,
    /// The groups of flows of the first point.
    flows: Vec<FlowGroup>,
    /// The points of the sweep; a single one if there is no sweep.
    points: Vec<PointSummary>,
    /// Warnings about settings that are allowed and probably mistakes, such as a queue that is smaller than a
    /// packet.
    warnings: Vec<String>,
}

/// A group of flows with the same parameters.
#[derive(Serialize, JsonSchema)]
struct FlowGroup {
    /// The name of the group.
    name: String,
    /// The number of flows.
    count: u64,
    /// The title of the transport.
    transport: String,
    /// The quality class.
    class: &'static str,
    /// The delay hint, a level; the initial one if the hint adapts.
    hint: u16,
    /// True if the hint adapts.
    adaptive: bool,
}

/// Errors of a scenario.
#[derive(Serialize, JsonSchema)]
pub struct ErrorsDocument {
    /// All problems, in the order of the file.
    errors: Vec<ErrorDocument>,
}

/// A problem.
#[derive(Serialize, JsonSchema)]
struct ErrorDocument {
    /// The file, or the override as it was given.
    source: String,
    /// The line in the file, from 1; null for an override and for a key that the whole file lacks.
    line: Option<usize>,
    /// The column, characters from 1; null where line is.
    column: Option<usize>,
    /// The path of the key, such as dumbbell.rate; null if the file is not TOML.
    key: Option<String>,
    /// The error and the allowed values.
    message: String,
}

impl From<&Errors> for ErrorsDocument {
    fn from(errors: &Errors) -> Self {
        let error = |problem: &Problem| {
            let place = problem.location.as_ref().and_then(|location| location.line_column);
            let (line, column) = place.unzip();
            let (source, key) = (problem.source().to_owned(), problem.key.clone());
            ErrorDocument { source, line, column, key, message: problem.message() }
        };
        Self { errors: errors.problems().iter().map(error).collect() }
    }
}

/// Returns the document of a scenario with these points, at least one.
pub fn document(points: &[SweepPoint]) -> ScenarioDocument {
    let first = &points[0].scenario;
    let graph = first.graph();
    let group = |flow: &FlowSpec| FlowGroup {
        name: flow.name.clone(),
        count: flow.count,
        transport: flow.transport.params.title().to_owned(),
        class: flow.class.name(),
        hint: flow.hint.level(),
        adaptive: flow.adaptive.is_some(),
    };
    let point = |point: &SweepPoint| PointSummary {
        label: point.label(),
        settings: point.settings.iter().cloned().collect(),
    };
    ScenarioDocument {
        name: first.name.clone(),
        title: first.title.clone(),
        runs: points.len() as u64 * first.seeds,
        seeds: first.all_seeds().collect(),
        duration_s: first.duration.as_secs_f64(),
        warm_up_s: first.warm_up.as_secs_f64(),
        measure_until_s: first.measure_until.as_secs_f64(),
        nodes: graph.nodes.len(),
        links: graph.links.len(),
        flows: first.flows.iter().map(group).collect(),
        points: points.iter().map(point).collect(),
        warnings: warnings(points),
    }
}

/// Returns a text about the runs of a scenario with these points, at least one.
pub fn describe(points: &[SweepPoint]) -> String {
    let first = &points[0].scenario;
    let title = first.title.as_deref().map_or_else(String::new, |title| format!(": {}", Printable(title)));
    let runs = points.len() as u64 * first.seeds;
    let mut text = format!("{}{title}\n", Printable(&first.name));
    let _ = writeln!(text, "runs    {runs}: {} x {}", count(points.len(), "point"), seeds(first));
    let _ = writeln!(
        text,
        "time    {}, measured from {} to {}",
        first.duration, first.warm_up, first.measure_until
    );
    let _ = writeln!(text, "network {}", network(first));
    for flow in &first.flows {
        let _ = writeln!(text, "flows   {}", Printable(flows(flow)));
    }
    for point in points.iter().filter(|point| !point.settings.is_empty()).take(LISTED) {
        let _ = writeln!(text, "point   {}", Printable(point.label()));
    }
    if points.len() > LISTED {
        let _ = writeln!(text, "point   ... and {} more", points.len() - LISTED);
    }
    text
}

/// Returns the text of [`describe`], and how the network of the first point is simulated: in stages or event by event.
pub fn describe_simulated(points: &[SweepPoint]) -> String {
    let mut text = describe(points);
    if let Ok(network) = points[0].scenario.network() {
        let _ = writeln!(text, "engine  {}", Printable(engine(&network)));
    }
    text
}

fn engine(network: &Network) -> String {
    match StagePlan::new(network) {
        Ok(plan) => format!(
            "{}, lookahead {}, windows of {}",
            count(plan.stages, "stage"),
            plan.lookahead,
            plan.window()
        ),
        Err(obstacle) => format!("event by event: {obstacle}"),
    }
}

fn network(scenario: &Scenario) -> String {
    let graph = scenario.graph();
    let shape = match &scenario.topology {
        Topology::Dumbbell(dumbbell) => format!("a dumbbell at {}, {}", dumbbell.rate, dumbbell.delay),
        Topology::Graph(_) => "a graph".to_owned(),
    };
    format!("{shape}: {}, {}", count(graph.nodes.len(), "node"), count(graph.links.len(), "one-way link"))
}

fn flows(flow: &FlowSpec) -> String {
    let protocol = flow.transport.params.title();
    let (class, hint) = (flow.class.name(), flow.hint.level());
    let adapts = if flow.adaptive.is_some() { ", which adapts" } else { "" };
    format!("{} x {}: {protocol}, class {class}, hint {hint}{adapts}", flow.count, flow.name)
}

fn seeds(scenario: &Scenario) -> String {
    format!("{} from {}", count(scenario.seeds as usize, "seed"), scenario.seed)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
