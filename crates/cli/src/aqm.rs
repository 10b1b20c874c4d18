//! `cutline aqm`: lists the AQMs of the registry and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_documents::{AqmDocument, AqmList};

/// List the queue management algorithms and their parameters
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cutline aqm list
  cutline aqm show pi
  cutline aqm show tsq --json   # TSQ, which works on top of any law";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let all: Vec<_> = registry::describe().into_iter().chain([registry::describe_tsq()]).collect();
    let documents = all.iter().map(AqmDocument::from).collect();
    let items = all.into_iter().map(item).collect();
    Catalogue { noun: "AQM", items, documents }.execute(&args.command, AqmList)
}

fn item(aqm: AqmDescription) -> CatalogueItem {
    let AqmDescription { name, title, source, parameters, takes_tsq } = aqm;
    CatalogueItem::new([name, title, source], parameters, vec![("TSQ on it", takes_tsq)])
}
