//! `cutline app`: which sources of traffic there are and what can be set on them.

use crate::catalogue::{Catalogue, Command, Item, Property};
use crate::exit::Failure;
use cutline_transport::app::{self, ApplicationDescription};

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

pub fn execute(args: &Args) -> Result<(), Failure> {
    let items = app::describe().into_iter().map(item).collect();
    Catalogue { noun: "application", items }.execute(&args.command)
}

fn item(about: ApplicationDescription) -> Item {
    let ApplicationDescription { name, title, source, parameters, waits_for_delivery, endless } = about;
    let properties = vec![
        Property { heading: "waits for delivery", key: "waits_for_delivery", holds: waits_for_delivery },
        Property { heading: "endless", key: "endless", holds: endless },
    ];
    Item { name, title, source, parameters, properties, other_defaults: Vec::new(), choices: None }
}
