//! `cutline check`: what a scenario would run, or everything that is wrong with it.

use crate::exit::Failure;
use crate::output;
use crate::scenario_args::ScenarioArgs;
use cutline_scenario::spec::{FlowSpec, Topology};
use cutline_scenario::{Scenario, SweepPoint};
use std::fmt::Write as _;

/// Read a scenario and say what it would run, or everything that is wrong with it
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

const EXAMPLES: &str = "Examples:
  cutline check examples/dumbbell.toml
  cutline check examples/dumbbell.toml --set flow.bulk.count=50";

/// Points of a sweep that are listed by name.
const LISTED: usize = 20;

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (_, points) = args.scenario.load()?;
    for point in &points {
        // Some mistakes only the network sees, such as a flow without a route.
        point.scenario.network().map_err(|error| Failure::Usage(format!("{}: {error}", point.label())))?;
    }
    output::print(&describe(&points))
}

fn describe(points: &[SweepPoint]) -> String {
    let first = &points[0].scenario;
    let title = first.title.as_deref().map_or_else(String::new, |title| format!(": {title}"));
    let runs = points.len() as u64 * first.seeds;
    let mut text = format!("{}{title}\n", first.name);
    let _ = writeln!(text, "runs    {runs}: {} x {}", count(points.len(), "point"), seeds(first));
    let _ = writeln!(
        text,
        "time    {}, measured from {} to {}",
        first.duration, first.warm_up, first.measure_until
    );
    let _ = writeln!(text, "network {}", network(first));
    for flow in &first.flows {
        let _ = writeln!(text, "flows   {}", flows(flow));
    }
    for point in points.iter().filter(|point| !point.settings.is_empty()).take(LISTED) {
        let _ = writeln!(text, "point   {}", point.label());
    }
    if points.len() > LISTED {
        let _ = writeln!(text, "point   ... and {} more", points.len() - LISTED);
    }
    text
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
