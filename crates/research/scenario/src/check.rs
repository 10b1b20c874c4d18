//! Check of a scenario: a description of its runs, its warnings, or all of its errors, as text and as documents.

use crate::lower::LowerError;
use crate::simulate::transfer_bytes;
use crate::spec::{ArrivalsSpec, FlowGroupSpec, GraphSpec, Scenario, Topology};
use crate::sweep::SweepPoint;
use cutline_config::{Errors, Problem};
use cutline_results::PointSummary;
use cutline_sim::{EqualCostPaths, LinkId, Network, NodeId, PathCount, StagePlan};
use cutline_text::Printable;
use cutline_units::{Bytes, Instant, Streams};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The number of hosts in the network of the first point: nodes with one neighbour.
    hosts: usize,
    /// The shortest paths between hosts in the network of the first point; null for a network that is not generated.
    paths: Option<HostPaths>,
    /// The engine that simulates the network of the first point; null in a document of a laboratory.
    engine: Option<EngineDocument>,
    /// The groups of flows of the first point.
    flows: Vec<FlowGroup>,
    /// The points of the sweep; a single one if there is no sweep.
    points: Vec<PointSummary>,
    /// Warnings about settings that are allowed and probably mistakes, such as a queue that is smaller than a
    /// packet.
    warnings: Vec<String>,
}

/// The shortest paths between different hosts.
#[derive(Serialize, JsonSchema)]
struct HostPaths {
    /// The links of the shortest path between the nearest hosts.
    least_links: u16,
    /// The links of the shortest path between the most distant hosts.
    most_links: u16,
    /// The largest number of shortest paths between two hosts.
    most_paths: u64,
}

/// The engine that simulates a network. Both engines have the same results.
#[derive(Serialize, JsonSchema)]
struct EngineDocument {
    /// The engine: `stages` that exchange packets by windows of time, or the `event-loop` with its calendar.
    name: &'static str,
    /// The number of stages; null for the event loop.
    stages: Option<usize>,
    /// The least latency from one stage to another, seconds; null for the event loop.
    lookahead_s: Option<f64>,
    /// The length of a window, seconds; null for the event loop.
    window_s: Option<f64>,
    /// The reason why the network is simulated event by event; null for stages.
    reason: Option<String>,
}

impl EngineDocument {
    fn new(network: &Network) -> Self {
        match StagePlan::new(network) {
            Ok(plan) => Self {
                name: "stages",
                stages: Some(plan.stages),
                lookahead_s: Some(plan.lookahead.as_secs_f64()),
                window_s: Some(plan.window().as_secs_f64()),
                reason: None,
            },
            Err(obstacle) => Self {
                name: "event-loop",
                stages: None,
                lookahead_s: None,
                window_s: None,
                reason: Some(obstacle.to_string()),
            },
        }
    }
}

/// A group of flows with the same parameters.
#[derive(Serialize, JsonSchema)]
struct FlowGroup {
    /// The name of the group.
    name: String,
    /// The number of flows; of transfers that arrive, those in the run with the first seed.
    count: u64,
    /// Transfers that arrive at random; null for a group with a fixed number of flows.
    arrivals: Option<ArrivalsDocument>,
    /// The title of the transport.
    transport: String,
    /// The quality class.
    class: &'static str,
    /// The delay hint, a level; the initial one if the hint adapts.
    hint: u16,
    /// True if the hint adapts.
    adaptive: bool,
}

/// Transfers that arrive as a Poisson process.
#[derive(Serialize, JsonSchema)]
struct ArrivalsDocument {
    /// The mean number of transfers each second.
    per_second: f64,
    /// The load of the busiest link of a host, payload over its rate; null if the rate of arrivals was given.
    load: Option<f64>,
    /// The mean size of a transfer, bytes; null if it is infinite.
    mean_bytes: Option<f64>,
    /// The time from which transfers arrive, seconds.
    from_s: f64,
    /// The time until which transfers arrive, seconds.
    until_s: f64,
}

impl From<&ArrivalsSpec> for ArrivalsDocument {
    fn from(arrivals: &ArrivalsSpec) -> Self {
        Self {
            per_second: arrivals.per_second,
            load: arrivals.load,
            mean_bytes: Some(arrivals.sizes.mean()).filter(|mean| mean.is_finite()),
            from_s: arrivals.from.as_secs_f64(),
            until_s: arrivals.until.as_secs_f64(),
        }
    }
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

/// Returns the [`document`] of a scenario with the engine that simulates the network of the first point.
pub fn document_simulated(points: &[SweepPoint]) -> ScenarioDocument {
    let engine = points[0].scenario.network().ok().map(|network| EngineDocument::new(&network));
    ScenarioDocument { engine, ..document(points) }
}

/// Returns the document of a scenario with these points, at least one, without an engine.
pub fn document(points: &[SweepPoint]) -> ScenarioDocument {
    let first = &points[0].scenario;
    let graph = first.graph();
    let drawn = drawn(first);
    let group = |(flow, drawn): (&FlowGroupSpec, &usize)| FlowGroup {
        name: flow.name.clone(),
        count: flow.count + *drawn as u64,
        arrivals: flow.arrivals.as_ref().map(ArrivalsDocument::from),
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
        hosts: graph.hosts().count(),
        paths: first.network().ok().and_then(|network| host_paths(&graph, &network)),
        engine: None,
        flows: first.flows.iter().zip(&drawn).map(group).collect(),
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
    let _ = writeln!(text, "network {}", Printable(network(first)));
    if let Some(paths) = paths(first) {
        let _ = writeln!(text, "paths   {paths}");
    }
    for (flow, drawn) in first.flows.iter().zip(drawn(first)) {
        let _ = writeln!(text, "flows   {}", Printable(flows(flow, first.seed, drawn)));
    }
    for point in points.iter().filter(|point| !point.settings.is_empty()).take(LISTED) {
        let _ = writeln!(text, "point   {}", Printable(point.label()));
    }
    if points.len() > LISTED {
        let _ = writeln!(text, "point   ... and {} more", points.len() - LISTED);
    }
    text
}

/// Returns the text of [`describe`], and the engine that simulates the network of the first point: in stages or event by event.
pub fn describe_simulated(points: &[SweepPoint]) -> String {
    let mut text = describe(points);
    if let Ok(network) = points[0].scenario.network() {
        let _ = writeln!(text, "engine  {}", Printable(engine(&network)));
    }
    text
}

/// Returns the flows of a scenario in the run with its first seed, as lines of comma-separated values below a line with their names: flow,
/// group, source, sink, start in seconds, size in bytes (empty unless the flow is a transfer of a known size), and the nodes of its path
/// and of that of its acknowledgements, with blanks between.
///
/// # Errors
/// If the network cannot be built.
pub fn flows_table(scenario: &Scenario) -> Result<String, LowerError> {
    let network = scenario.network()?;
    let streams = Streams::new(scenario.seed);
    let path = |route: &[LinkId]| {
        let first = network.node_name(network.link(route[0]).from);
        let others = route.iter().map(|link| network.node_name(network.link(*link).to));
        [first].into_iter().chain(others).collect::<Vec<_>>().join(" ")
    };
    let mut text = "flow,group,from,to,start_s,bytes,path,return_path\n".to_owned();
    for flow in network.flows() {
        let (there, back) = (path(&flow.route), path(&flow.return_route));
        let [from, to] = [&there, &back].map(|path| path.split(' ').next().unwrap_or_default());
        let start = (flow.start_with(streams) - Instant::ZERO).as_secs_f64();
        let bytes = transfer_bytes(&flow.app).map_or_else(String::new, |bytes| bytes.to_string());
        let group = &network.groups()[flow.group.0 as usize];
        let _ = writeln!(text, "{},{group},{from},{to},{start:.9},{bytes},{there},{back}", flow.name);
    }
    Ok(text)
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
    let links = count(graph.links.len(), "one-way link");
    let shape = match (&scenario.topology, &graph.generated) {
        (Topology::Dumbbell(dumbbell), _) => format!("a dumbbell at {}, {}", dumbbell.rate, dumbbell.delay),
        (Topology::Graph(_), Some(generated)) => {
            let hosts = graph.hosts().count();
            let (others, what) = (graph.nodes.len() - hosts, "other node");
            return format!(
                "{}: {}, {}, {links}",
                generated.description,
                count(hosts, "host"),
                count(others, what)
            );
        }
        (Topology::Graph(_), None) => "a graph".to_owned(),
    };
    format!("{shape}: {}, {links}", count(graph.nodes.len(), "node"))
}

/// Returns a phrase about the shortest paths between hosts; `None` for a network that is not generated.
fn paths(scenario: &Scenario) -> Option<String> {
    let paths = host_paths(&scenario.graph(), &scenario.network().ok()?)?;
    let links = if paths.least_links == paths.most_links {
        count(usize::from(paths.most_links), "link")
    } else {
        format!("{} to {} links", paths.least_links, paths.most_links)
    };
    Some(format!("{links} from host to host, up to {} equal", paths.most_paths))
}

/// Returns the shortest paths between hosts; `None` for a network that is not generated, or with fewer than two hosts.
fn host_paths(graph: &GraphSpec, network: &Network) -> Option<HostPaths> {
    graph.generated.as_ref()?;
    let numbers: BTreeMap<&str, u32> = graph.nodes.iter().map(|node| node.name.as_str()).zip(0..).collect();
    // Hosts at the same node have the same paths to others. Two of them show the path between themselves.
    let mut of_node: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    let hosts: BTreeSet<&str> = graph.hosts().collect();
    for link in graph.links.iter().filter(|link| hosts.contains(link.from.as_str())) {
        let at_node = of_node.entry(&link.to).or_default();
        if at_node.len() < 2 {
            at_node.push(NodeId(numbers[link.from.as_str()]));
        }
    }
    let hosts: Vec<NodeId> = of_node.into_values().flatten().collect();
    let mut paths = EqualCostPaths::new(network);
    let counts = hosts.iter().flat_map(|to| {
        let counts = paths.counts_to(*to);
        hosts.iter().filter_map(move |from| counts[from.0 as usize])
    });
    let all = counts.map(|PathCount { paths, links }| HostPaths {
        least_links: links,
        most_links: links,
        most_paths: paths,
    });
    all.reduce(|one, other| HostPaths {
        least_links: one.least_links.min(other.least_links),
        most_links: one.most_links.max(other.most_links),
        most_paths: one.most_paths.max(other.most_paths),
    })
}

/// Returns the number of transfers of each group in the run with the first seed.
fn drawn(scenario: &Scenario) -> Vec<usize> {
    let mut drawn = vec![0; scenario.flows.len()];
    scenario.transfers(scenario.seed).iter().for_each(|transfer| drawn[transfer.group] += 1);
    drawn
}

fn arrivals(arrivals: &ArrivalsSpec, seed: u64, drawn: usize) -> String {
    let load = arrivals.load.map_or_else(String::new, |load| format!(", load {load:.4}"));
    let load = load.trim_end_matches('0').trim_end_matches('.');
    let mean = arrivals.sizes.mean();
    let mean =
        if mean.is_finite() { Bytes::new(mean.round() as u64).to_string() } else { "infinite".to_owned() };
    let (per_second, from, until) = (arrivals.per_second, arrivals.from, arrivals.until);
    format!(
        "{drawn} with seed {seed}; {per_second:.1} a second from {from} to {until}{load}, mean size {mean}"
    )
}

fn flows(flow: &FlowGroupSpec, seed: u64, drawn: usize) -> String {
    let protocol = flow.transport.params.title();
    let (class, hint) = (flow.class.name(), flow.hint.level());
    let adapts = if flow.adaptive.is_some() { ", which adapts" } else { "" };
    if let Some(spec) = &flow.arrivals {
        let arrivals = arrivals(spec, seed, drawn);
        return format!("{}: {protocol}, class {class}, hint {hint}, {arrivals}", flow.name);
    }
    format!("{} x {}: {protocol}, class {class}, hint {hint}{adapts}", flow.count, flow.name)
}

fn seeds(scenario: &Scenario) -> String {
    format!("{} from {}", count(scenario.seeds as usize, "seed"), scenario.seed)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
