//! `cutline aqm`: lists the AQMs of the registry and their parameters.

use crate::catalogue::{Catalogue, CatalogueItem, Command};
use crate::exit::Failure;
use cutline_aqm::TsqParams;
use cutline_aqm::registry::{self, AqmDescription};
use cutline_documents::ParameterDocument;
use cutline_params::Parameters as _;
use schemars::JsonSchema;
use serde::Serialize;

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

/// An AQM, or TSQ, and its parameters.
#[derive(Serialize, JsonSchema)]
pub struct AqmDocument {
    /// The name in a scenario.
    name: &'static str,
    /// The title.
    title: &'static str,
    /// The paper or standard that defines the algorithm.
    source: &'static str,
    /// True if TSQ works on top of the algorithm.
    takes_tsq: bool,
    /// The parameters.
    parameters: Vec<ParameterDocument>,
}

/// All AQMs, and TSQ.
#[derive(Serialize, JsonSchema)]
pub struct AqmList(Vec<AqmDocument>);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let tsq = AqmDescription {
        name: "tsq",
        title: "TSQ",
        source: "the TSQ paper, section 3; on top of any AQM that decides by a probability: tsq = true or { ... }",
        parameters: TsqParams::describe(),
        takes_tsq: false,
    };
    let all = registry::describe().into_iter().chain([tsq]);
    let (items, documents) = all.map(describe).unzip();
    Catalogue { noun: "AQM", items, documents }.execute(&args.command, AqmList)
}

fn describe(aqm: AqmDescription) -> (CatalogueItem, AqmDocument) {
    let AqmDescription { name, title, source, parameters, takes_tsq } = aqm;
    let item = CatalogueItem::new([name, title, source], parameters, vec![("TSQ on it", takes_tsq)]);
    let parameters = item.parameter_documents();
    (item, AqmDocument { name, title, source, takes_tsq, parameters })
}
