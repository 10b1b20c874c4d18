//! `cutline aqm`: which AQMs there are and what can be set on them, from the registry.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_aqm::TsqParams;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_params::{Parameter, Parameters as _, Value};
use schemars::JsonSchema;
use serde::Serialize;

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
        Command::List { json: true } => {
            output::print_json(&AqmList(all().iter().map(AqmDocument::from).collect()))
        }
        Command::List { json: false } => output::print(&list()),
        Command::Show { name, json } => {
            let aqm = find(name)?;
            if *json { output::print_json(&AqmDocument::from(&aqm)) } else { output::print(&show(&aqm)) }
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

/// An AQM, or TSQ, and what can be set on it.
#[derive(Serialize, JsonSchema)]
pub struct AqmDocument {
    /// Its name in a scenario.
    name: &'static str,
    /// Its title.
    title: &'static str,
    /// The paper or standard that it is from.
    source: &'static str,
    /// Whether TSQ works on top of it.
    takes_tsq: bool,
    /// Its parameters.
    parameters: Vec<ParameterDocument>,
}

/// A parameter.
#[derive(Serialize, JsonSchema)]
struct ParameterDocument {
    /// Its key in a scenario.
    name: &'static str,
    /// The unit of its value; empty for values that have it with them, and for plain numbers.
    unit: &'static str,
    /// What kind of value it takes.
    kind: &'static str,
    /// The values that are allowed, in words.
    allowed: String,
    /// The default.
    default: Setting,
    /// Where the default is from.
    source: &'static str,
    /// What it is.
    doc: &'static str,
}

/// The value of a parameter.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Setting {
    /// A count.
    Count(u64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A time, a frequency or a choice, as a scenario writes it.
    Text(String),
    /// Times, as a scenario writes them.
    Texts(Vec<String>),
    /// Counts.
    Counts(Vec<u64>),
    /// Off.
    Off,
}

/// All AQMs, and TSQ.
#[derive(Serialize, JsonSchema)]
pub struct AqmList(Vec<AqmDocument>);

impl From<&AqmDescription> for AqmDocument {
    fn from(aqm: &AqmDescription) -> Self {
        let parameter = |parameter: &&'static Parameter| ParameterDocument {
            name: parameter.name,
            unit: parameter.unit,
            kind: parameter.kind.name(),
            allowed: parameter.kind.to_string(),
            default: (&parameter.default).into(),
            source: parameter.source,
            doc: parameter.doc,
        };
        Self {
            name: aqm.name,
            title: aqm.title,
            source: aqm.source,
            takes_tsq: aqm.takes_tsq,
            parameters: aqm.parameters.iter().map(parameter).collect(),
        }
    }
}

/// Numbers and switches as such; times and frequencies as a scenario writes them; null for what is off.
impl From<&Value> for Setting {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(x) => Self::Number(*x),
            Value::Count(n) => Self::Count(*n),
            Value::Flag(flag) => Self::Flag(*flag),
            Value::Durations(times) => Self::Texts(times.iter().map(ToString::to_string).collect()),
            Value::Counts(counts) => Self::Counts(counts.to_vec()),
            Value::Duration(_) | Value::Frequency(_) | Value::Choice(_) => Self::Text(value.to_string()),
            Value::Off => Self::Off,
        }
    }
}
