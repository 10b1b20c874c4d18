//! `cutline app`: lists the sources of traffic and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_documents::{ApplicationDocument, ApplicationList};
use cutline_transport::app::{self, ApplicationDescription};

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

pub fn execute(args: &Args) -> Result<(), Failure> {
    let all = app::describe();
    let documents = all.iter().map(ApplicationDocument::from).collect();
    let items = all.into_iter().map(item).collect();
    Catalogue { noun: "application", items, documents }.execute(&args.command, ApplicationList)
}

fn item(about: ApplicationDescription) -> CatalogueItem {
    let ApplicationDescription { name, title, source, parameters, waits_for_delivery, endless } = about;
    let properties = vec![("waits for delivery", waits_for_delivery), ("endless", endless)];
    CatalogueItem::new([name, title, source], parameters, properties)
}
