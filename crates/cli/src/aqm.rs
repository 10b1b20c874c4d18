//! `cutline aqm`: which AQMs there are and what can be set on them, from the registry.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_aqm::TsqParams;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_params::{Parameter, Parameters as _, Value};
use serde_json::json;

/// List the queues' algorithms and what can be set on them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cutline aqm list
  cutline aqm show pi
  cutline aqm show tsq --json";

#[derive(Subcommand)]
enum Command {
    /// All of them
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One of them: its source and its parameters
    Show {
        /// Its name in a scenario, or tsq, which rides on any of them
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::List { json: true } => output::print_json(&all().iter().map(as_json).collect::<Vec<_>>()),
        Command::List { json: false } => output::print(&list()),
        Command::Show { name, json } => {
            let aqm = find(name)?;
            if *json { output::print_json(&as_json(&aqm)) } else { output::print(&show(&aqm)) }
        }
    }
}

/// Every AQM, and TSQ.
fn all() -> Vec<AqmDescription> {
    let tsq = AqmDescription {
        name: "tsq",
        title: "TSQ",
        source: "the TSQ paper, section 3; on top of any that decides by a probability: tsq = true or { ... }",
        parameters: TsqParams::describe(),
        takes_tsq: false,
    };
    registry::describe().into_iter().chain([tsq]).collect()
}

fn find(name: &str) -> Result<AqmDescription, Failure> {
    let names: Vec<_> = all().iter().map(|aqm| aqm.name).collect();
    let unknown = || Failure::Usage(format!("there is no AQM {name:?}; there are: {}", names.join(", ")));
    all().into_iter().find(|aqm| aqm.name == name).ok_or_else(unknown)
}

fn list() -> String {
    let mut table = Table::new(4, &["name", "title", "TSQ on it", "source"]);
    for aqm in all() {
        let tsq = if aqm.takes_tsq { "yes" } else { "no" };
        table.add([aqm.name, aqm.title, tsq, aqm.source].map(str::to_owned).to_vec());
    }
    table.render()
}

fn show(aqm: &AqmDescription) -> String {
    let mut table = Table::new(5, &["parameter", "allowed", "default", "default from", "meaning"]);
    for parameter in &aqm.parameters {
        let (allowed, default) = (parameter.allowed(), parameter.default_text());
        let cells = [parameter.name, &allowed, &default, parameter.source, parameter.doc];
        table.add(cells.map(str::to_owned).to_vec());
    }
    let parameters = if table.is_empty() { "It has no parameters.\n".to_owned() } else { table.render() };
    format!("{}: {} ({})\n\n{parameters}", aqm.name, aqm.title, aqm.source)
}

fn as_json(aqm: &AqmDescription) -> serde_json::Value {
    let parameter = |parameter: &&Parameter| {
        json!({
            "name": parameter.name,
            "unit": parameter.unit,
            "kind": parameter.kind.name(),
            "allowed": parameter.kind.to_string(),
            "default": value(&parameter.default),
            "source": parameter.source,
            "doc": parameter.doc,
        })
    };
    let parameters: Vec<_> = aqm.parameters.iter().map(parameter).collect();
    json!({
        "name": aqm.name,
        "title": aqm.title,
        "source": aqm.source,
        "takes_tsq": aqm.takes_tsq,
        "parameters": parameters,
    })
}

/// Numbers and switches as such; times and frequencies as a scenario writes them; null for what is off.
fn value(value: &Value) -> serde_json::Value {
    match value {
        Value::Number(x) => json!(x),
        Value::Count(n) => json!(n),
        Value::Flag(flag) => json!(flag),
        Value::Durations(times) => json!(times.iter().map(ToString::to_string).collect::<Vec<_>>()),
        Value::Counts(counts) => json!(counts),
        Value::Duration(_) | Value::Frequency(_) | Value::Choice(_) | Value::Distribution(_) => {
            json!(value.to_string())
        }
        Value::Off => serde_json::Value::Null,
    }
}
