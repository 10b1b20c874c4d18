//! `cutline transport`: which transports and congestion controls there are and what can be set on them.

use crate::catalogue::{Catalogue, Command, Item, Property};
use crate::exit::Failure;
use cutline_transport::endpoint::{Defaults, Transport as _, TransportDescription, TransportParams};
use cutline_transport::tcp::{self, ControlDescription, Tcp};

/// List the transports and what can be set on them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cutline transport list
  cutline transport show tcp    # with its congestion controls
  cutline transport show tfrc --json

\"default\" is that of the RFCs, \"ns-2\" the one with defaults = \"ns-2\".";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let items = TransportParams::all().into_iter().map(item).collect();
    Catalogue { noun: "transport", items }.execute(&args.command)
}

fn item(about: TransportDescription) -> Item {
    let TransportDescription { name, title, source, parameters, reliable, adapts } = about;
    let properties = vec![
        Property { heading: "reliable", key: "reliable", holds: reliable },
        Property { heading: "adapts its rate", key: "adapts", holds: adapts },
    ];
    let ns2 = TransportParams::from_values(name, Defaults::Ns2, []).expect("defaults are valid").values();
    let other_defaults = vec![("ns-2", ns2.into_iter().map(|(_, value)| value).collect())];
    let controls = || tcp::congestion_controls().into_iter().map(control).collect();
    let choices = (name == Tcp::NAME).then(|| ("congestion-control", controls()));
    Item { name, title, source, parameters, properties, other_defaults, choices }
}

fn control(about: ControlDescription) -> Item {
    let ControlDescription { name, title, source, parameters, scalable } = about;
    let properties = vec![Property { heading: "scalable", key: "scalable", holds: scalable }];
    Item { name, title, source, parameters, properties, other_defaults: Vec::new(), choices: None }
}
