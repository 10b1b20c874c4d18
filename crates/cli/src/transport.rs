//! `cutline transport`: lists the transports, the congestion controls and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_documents::ParameterDocument;
use cutline_transport::endpoint::{Defaults, Transport as _, TransportDescription, TransportParams};
use cutline_transport::tcp::{self, ControlDescription, Tcp};
use schemars::JsonSchema;
use serde::Serialize;

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

/// A transport and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct TransportDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The standards that define the transport.
    source: &'static str,
    /// True if every byte is delivered, in order.
    reliable: bool,
    /// True if the sender adapts its rate.
    adapts: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
    /// The congestion controls that a scenario can choose; empty if the transport has no choice.
    congestion_controls: Vec<ControlDocument>,
}

/// A congestion control and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct ControlDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the congestion control.
    source: &'static str,
    /// True if the response to marks is proportional to their share. Otherwise a mark counts as a loss, or not at all.
    scalable: bool,
    /// True if the control sets a pacing rate from samples of the delivery rate. It then turns on `sack` and `rack`.
    paced: bool,
    /// The parameters in addition to those of the transport.
    parameters: Vec<ParameterDocument>,
}

/// All transports.
#[derive(Serialize, JsonSchema)]
pub struct TransportList(Vec<TransportDocument>);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let (items, documents) = TransportParams::all().into_iter().map(describe).unzip();
    Catalogue { noun: "transport", items, documents }.execute(&args.command, TransportList)
}

fn describe(about: TransportDescription) -> (CatalogueItem, TransportDocument) {
    let TransportDescription { name, title, source, parameters, reliable, adapts } = about;
    let properties = vec![("reliable", reliable), ("adapts its rate", adapts)];
    let values = |(title, defaults)| {
        let params = TransportParams::from_values(name, defaults, []).expect("defaults are valid");
        (title, params.values().into_iter().map(|(_, value)| value).collect())
    };
    let others = Defaults::ALL.into_iter().filter(|(_, defaults)| *defaults != Defaults::default());
    let other_defaults = others.map(values).collect();
    let has_controls = name == Tcp::NAME;
    let controls = if has_controls { tcp::congestion_controls() } else { Vec::new() };
    let (controls, congestion_controls) = controls.into_iter().map(describe_control).unzip();
    let choices = has_controls.then_some(("congestion-control", controls));
    let item = CatalogueItem {
        other_defaults,
        choices,
        ..CatalogueItem::new([name, title, source], parameters, properties)
    };
    let parameters = item.parameter_documents();
    (item, TransportDocument { name, title, source, reliable, adapts, parameters, congestion_controls })
}

fn describe_control(about: ControlDescription) -> (CatalogueItem, ControlDocument) {
    let ControlDescription { name, title, source, parameters, scalable, paced } = about;
    let item =
        CatalogueItem::new([name, title, source], parameters, vec![("scalable", scalable), ("paced", paced)]);
    let parameters = item.parameter_documents();
    (item, ControlDocument { name, title, source, scalable, paced, parameters })
}
