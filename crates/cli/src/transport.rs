//! `cutline transport`: lists the transports, the congestion controls and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_documents::{TransportDocument, TransportList, other_defaults};
use cutline_transport::endpoint::{Transport as _, TransportDescription, TransportParams};
use cutline_transport::tcp::{self, ControlDescription, Tcp};

/// List the transports and their parameters
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

The column \"default\" has the values of the RFCs, \"ns-2\" and \"linux\" those with defaults = \"ns-2\" and \"linux\".";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let all = TransportParams::all().into_iter().map(|about| {
        let controls = if about.name == Tcp::NAME { tcp::congestion_controls() } else { Vec::new() };
        let document = TransportDocument::new(&about, &controls);
        (item(about, controls), document)
    });
    let (items, documents) = all.unzip();
    Catalogue { noun: "transport", items, documents }.execute(&args.command, TransportList)
}

fn item(about: TransportDescription, controls: Vec<ControlDescription>) -> CatalogueItem {
    let TransportDescription { name, title, source, parameters, reliable, adapts } = about;
    let properties = vec![("reliable", reliable), ("adapts its rate", adapts)];
    let has_controls = !controls.is_empty();
    let controls = controls.into_iter().map(control).collect();
    CatalogueItem {
        other_defaults: other_defaults(name),
        choices: has_controls.then_some(("congestion-control", controls)),
        ..CatalogueItem::new([name, title, source], parameters, properties)
    }
}

fn control(about: ControlDescription) -> CatalogueItem {
    let ControlDescription { name, title, source, parameters, scalable, paced } = about;
    CatalogueItem::new([name, title, source], parameters, vec![("scalable", scalable), ("paced", paced)])
}
