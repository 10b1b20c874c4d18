//! `cutline aqm`: which AQMs there are and what can be set on them, from the registry.

use crate::catalogue::{Catalogue, Command, Item, Property};
use crate::exit::Failure;
use cutline_aqm::TsqParams;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_params::Parameters as _;

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
  cutline aqm show tsq --json   # TSQ, which rides on any of them";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let tsq = AqmDescription {
        name: "tsq",
        title: "TSQ",
        source: "the TSQ paper, section 3; on top of any that decides by a probability: tsq = true or { ... }",
        parameters: TsqParams::describe(),
        takes_tsq: false,
    };
    let items = registry::describe().into_iter().chain([tsq]).map(item).collect();
    Catalogue { noun: "AQM", items }.execute(&args.command)
}

fn item(aqm: AqmDescription) -> Item {
    let AqmDescription { name, title, source, parameters, takes_tsq } = aqm;
    let properties = vec![Property { heading: "TSQ on it", key: "takes_tsq", holds: takes_tsq }];
    Item { name, title, source, parameters, properties, other_defaults: Vec::new(), choices: None }
}
