//! `cutline schema`: the JSON documents of the commands, and their schemas.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use cutline_documents::{
    AgreementDocument, ApplicationDocument, ApplicationList, AqmDocument, AqmList, SpecificationDocument,
    SpecificationList, SpecificationParameters, TranslationDocument, TransportDocument, TransportList,
};
use cutline_records::schema_of;
use cutline_results::{RunsDocument, Summary};
use cutline_scenario::check;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

/// List the JSON documents of the commands, or print the JSON Schema of one
///
/// A schema (draft 2020-12) describes every property with its meaning, and with its unit if it is a number. Objects have
/// no other properties. The guide describes all documents (docs/guide/json.md, docs/schemas).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Name of the document [default: list all documents]
    name: Option<String>,
    /// Print the list as JSON; a schema is always JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline schema
  cutline schema run
  cutline schema run | jq '.\"$defs\"[\"Row of flows\"].properties | keys'";

/// A document that has a schema.
struct Document {
    name: &'static str,
    /// The commands that print the document, and the files that contain it.
    by: &'static [&'static str],
    schema: fn() -> Schema,
}

/// All documents, with the commands and files that have them.
const DOCUMENTS: &[Document] = &[
    document::<RunsDocument<'_>>("run", &["cutline run --json", "cutline lab run --json"]),
    document::<Summary>("summary", &["summary.json in a folder of results"]),
    document::<check::ScenarioDocument>("check", &["cutline check --json"]),
    document::<check::ErrorsDocument>("check-errors", &["cutline check --json, of a scenario with errors"]),
    document::<cutline_analysis::compare::ComparisonDocument<'_>>("compare", &["cutline compare --json"]),
    document::<AqmList>("aqm-list", &["cutline aqm list --json"]),
    document::<AqmDocument>("aqm", &["cutline aqm show --json"]),
    document::<TransportList>("transport-list", &["cutline transport list --json"]),
    document::<TransportDocument>("transport", &["cutline transport show --json"]),
    document::<ApplicationList>("app-list", &["cutline app list --json"]),
    document::<ApplicationDocument>("app", &["cutline app show --json"]),
    document::<SpecificationList>("spec-list", &["cutline spec list --json"]),
    document::<SpecificationDocument>("spec", &["cutline spec show --json"]),
    document::<SpecificationParameters>("spec-parameters", &["cutline spec parameters --json"]),
    document::<AgreementDocument>("spec-agreement", &["cutline spec agree --json"]),
    document::<TranslationDocument>("translation", &["cutline translate --json"]),
    #[cfg(feature = "studies")]
    document::<cutline_report::report::Claims<'_>>(
        "claims",
        &["cutline reproduce --json", "cutline report --json", "claims.json beside a report"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_router_service::Statistics>(
        "router",
        &[
            "cutline router --json (a line for each interval and one at the end)",
            "cutline router stats --json",
        ],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_router_service::Configuration>(
        "router-config",
        &["cutline router --config FILE --check --json"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_router_service::SocketReply>(
        "router-socket",
        &["the local socket of a router (a line for each answer)", "cutline router stats --config"],
    ),
    #[cfg(feature = "qdisc")]
    document::<cutline_router_service::QdiscList>("qdisc", &["cutline qdisc show --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_provision::status::Status>("reservations", &["cutline reservations --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_allocation::status::ManagerStatus>("manager", &["cutline manager --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_monitor::HostDocument>(
        "host",
        &["cutline top --once --json", "the path /api/host of the page, with a hundred sockets"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_exec::ExecDocument>("exec", &["cutline exec --json FILE"]),
    #[cfg(feature = "machine")]
    document::<cutline_gateway::GatewayDocument>("gateway", &["cutline gateway --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_gateway::RecordLine<'_>>(
        "gateway-record",
        &["cutline gateway --record FILE (a line for each event, interval and message)"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_doctor::ReportDocument<'_>>("doctor", &["cutline doctor --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_doctor::BottleneckDocument<'_>>(
        "doctor-bottleneck",
        &["cutline doctor bottleneck --json"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_monitor::Explanation>(
        "doctor-explain",
        &["cutline doctor explain --json", "the path /api/explain of the page"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_traffic::SendDocument>("tg-send", &["cutline tg send --json"]),
    #[cfg(feature = "machine")]
    document::<cutline_traffic::ReceiveDocument>(
        "tg-receive",
        &["cutline tg receive --json (a line for each sender)"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_traffic::responsiveness::ResponsivenessDocument>(
        "tg-rrul",
        &["cutline tg rrul --json"],
    ),
    #[cfg(feature = "machine")]
    document::<cutline_baseline::BaselineDocument>(
        "baseline",
        &["cutline baseline --json", "the file of cutline baseline"],
    ),
    #[cfg(feature = "charts")]
    document::<cutline_analysis::picture::Picture>("plot", &["cutline plot --json"]),
    document::<Documents>("schema", &["cutline schema --json"]),
];

const fn document<T: JsonSchema>(name: &'static str, by: &'static [&'static str]) -> Document {
    Document { name, by, schema: schema_of::<T> }
}

/// The documents that have a schema.
#[derive(Serialize, JsonSchema)]
struct Documents(Vec<Described>);

/// A document that has a schema.
#[derive(Serialize, JsonSchema)]
struct Described {
    /// The name of the document.
    name: &'static str,
    /// The commands that print the document, and the files that contain it.
    by: &'static [&'static str],
    /// The contents of the document.
    what: String,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.name {
        Some(name) => output::print_json(&find(name)?.schema()),
        None if args.json => {
            output::print_json(&Documents(DOCUMENTS.iter().map(Document::described).collect()))
        }
        None => output::print_wrapped(&list()),
    }
}

fn find(name: &str) -> Result<&'static Document, Failure> {
    let names: Vec<_> = DOCUMENTS.iter().map(|document| document.name).collect();
    let unknown =
        || Failure::Usage(format!("unknown document {name:?}; expected one of: {}", names.join(", ")));
    DOCUMENTS.iter().find(|document| document.name == name).ok_or_else(unknown)
}

fn list() -> String {
    let mut table = Table::new(2, &["name", "printed or written by"]);
    for document in DOCUMENTS {
        for (name, by) in [document.name].into_iter().chain(std::iter::repeat("")).zip(document.by) {
            table.add(vec![name.to_owned(), (*by).to_owned()]);
        }
    }
    table.render()
}

impl Document {
    fn schema(&self) -> Schema {
        let mut schema = (self.schema)();
        schema.insert("title".to_owned(), Value::from(self.name));
        schema
    }

    fn described(&self) -> Described {
        let schema = (self.schema)();
        let what = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let sentence = what.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        Described { name: self.name, by: self.by, what: sentence }
    }
}
