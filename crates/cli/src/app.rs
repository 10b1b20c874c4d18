//! `cutline app`: lists the sources of traffic and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_documents::ParameterDocument;
use cutline_transport::app::{self, ApplicationDescription};
use schemars::JsonSchema;
use serde::Serialize;

/// List the sources of traffic and their parameters
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
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the source; empty if there is none.
    source: &'static str,
    /// True if the source waits until every byte is delivered, and so needs a reliable transport.
    waits_for_delivery: bool,
    /// True if the supply of data is unlimited.
    endless: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
}

/// All sources of traffic.
#[derive(Serialize, JsonSchema)]
pub struct ApplicationList(Vec<ApplicationDocument>);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (items, documents) = app::describe().into_iter().map(describe).unzip();
    Catalogue { noun: "application", items, documents }.execute(&args.command, ApplicationList)
}

fn describe(about: ApplicationDescription) -> (CatalogueItem, ApplicationDocument) {
    let ApplicationDescription { name, title, source, parameters, waits_for_delivery, endless } = about;
    let item = CatalogueItem::new(
        [name, title, source],
        parameters,
        vec![("waits for delivery", waits_for_delivery), ("endless", endless)],
    );
    let parameters = item.parameter_documents();
    (item, ApplicationDocument { name, title, source, waits_for_delivery, endless, parameters })
}
