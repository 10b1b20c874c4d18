//! `cutline app`: which sources of traffic there are and what can be set on them.

use crate::catalogue::{Catalogue, Command, Item, ParameterDocument};
use crate::exit::Failure;
use cutline_transport::app::{self, ApplicationDescription};
use schemars::JsonSchema;
use serde::Serialize;

/// List the sources of traffic and what can be set on them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cutline app list
  cutline app show on-off
  cutline app show files --json";

/// A source of traffic and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct ApplicationDocument {
    /// Its name in a scenario.
    name: &'static str,
    /// Its title.
    title: &'static str,
    /// The paper or standard that defines it; empty without one.
    source: &'static str,
    /// Whether it waits until every byte is delivered, and so needs a reliable transport.
    waits_for_delivery: bool,
    /// Whether it writes without end.
    endless: bool,
    /// Its parameters.
    parameters: Vec<ParameterDocument>,
}

/// All sources of traffic.
#[derive(Serialize, JsonSchema)]
pub struct ApplicationList(Vec<ApplicationDocument>);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (items, documents) = app::describe().into_iter().map(describe).unzip();
    Catalogue { noun: "application", items, documents }.execute(&args.command, ApplicationList)
}

fn describe(about: ApplicationDescription) -> (Item, ApplicationDocument) {
    let ApplicationDescription { name, title, source, parameters, waits_for_delivery, endless } = about;
    let properties = vec![("waits for delivery", waits_for_delivery), ("endless", endless)];
    let item =
        Item { name, title, source, parameters, properties, other_defaults: Vec::new(), choices: None };
    let parameters = item.parameter_documents();
    (item, ApplicationDocument { name, title, source, waits_for_delivery, endless, parameters })
}
