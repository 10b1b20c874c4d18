//! `cutline spec`: QoS specifications: the classes, files, and the agreement of two ends.

use crate::catalogue::CatalogueItem;
use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use clap::Subcommand;
use cutline_config::Document;
use cutline_documents::{
    AgreementDocument, SpecificationDocument, SpecificationList, SpecificationParameters,
};
use cutline_params::{Choice as _, ParameterValue, Parameters as _};
use cutline_quality::spec::{
    Agreement, AgreementItem as Agreed, CapacityProfile, Conflicts, ConnectionSpecification, Preset,
    Specification,
};
use cutline_tables::specification;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Show the needs of applications: QoS specifications by class or from files
///
/// A specification gives the acceptable rates, delays, jitter and losses for each direction of a connection
/// (docs/guide/specification.md). It is a file, TOML or JSON, or the name of a class of application.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cutline spec list
  cutline spec show video
  cutline spec show video --toml > mine.toml
  cutline spec show mine.toml --figure region.svg
  cutline spec agree mine.toml theirs.json";

#[derive(Subcommand)]
enum Command {
    /// List the classes of applications and their specifications
    List {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// List the parameters, with their units and ranges
    Parameters {
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Show a specification: parameters, throughput, region of operation, properties of TAPS (RFC 9622)
    Show {
        /// A class, or a file (TOML, or JSON if its name ends with .json)
        specification: String,
        /// Print JSON instead of text
        #[arg(long, conflicts_with = "toml")]
        json: bool,
        /// Print the specification as a file that can be changed
        #[arg(long)]
        toml: bool,
        /// Also draw the region of operation of the sent data, as a radar chart, or as bars with one or two measures: FILE.svg,
        /// FILE.png or FILE.pdf
        #[cfg(feature = "charts")]
        #[arg(long, value_name = "FILE")]
        figure: Option<PathBuf>,
        /// Replace the file of the figure if it exists
        #[cfg(feature = "charts")]
        #[arg(long, requires = "figure")]
        force: bool,
    },
    /// Show the agreement of two ends; exit code 1 if they do not agree
    Agree {
        /// This end: a class or a file
        ours: String,
        /// The other end: a class or a file
        theirs: String,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::List { json: true } => output::print_json(&SpecificationList::of_classes()),
        Command::List { json: false } => output::print_wrapped(&list()),
        Command::Parameters { json: true } => output::print_json(&SpecificationParameters::new()),
        Command::Parameters { json: false } => output::print_wrapped(&parameters().parameters_table()),
        Command::Show { specification, json, toml, .. } => {
            let spec = load(specification)?;
            #[cfg(feature = "charts")]
            if let Command::Show { figure: Some(file), force, .. } = &args.command {
                draw(&spec.send, specification, file, *force)?;
            }
            match (json, toml) {
                (true, _) => output::print_json(&SpecificationDocument::new(specification, &spec)),
                (_, true) => output::print(&file(&spec)),
                (false, false) => output::print_wrapped(&show(specification, &spec)),
            }
        }
        Command::Agree { ours, theirs, json } => agree(&load(ours)?, &load(theirs)?, *json),
    }
}

/// Returns the specification of a class, for both directions, or that of a file.
fn load(specification: &str) -> Result<ConnectionSpecification, Failure> {
    if let Ok(preset) = Preset::parse(specification) {
        let spec = preset.specification();
        return Ok(ConnectionSpecification { send: spec.clone(), receive: spec, profile: None });
    }
    if !Path::new(specification).exists() {
        let names = Preset::NAMES.join(", ");
        return Err(Failure::Usage(format!(
            "there is no file {specification:?}, and no class of that name; the classes are: {names}"
        )));
    }
    let document = Document::load_toml_or_json(Path::new(specification))?;
    Ok(specification::specification(&document)?)
}

fn parameters() -> CatalogueItem {
    let about = ["specification", "QoS specification", "QoSockets section II"];
    CatalogueItem::new(about, Specification::describe(), Vec::new())
}

fn list() -> String {
    let mut table =
        Table::new(7, &["class", "rate", "delay", "jitter", "loss", "recovery", "capacity profile"]);
    for preset in Preset::ALL {
        let spec = preset.specification();
        let limit = |value: Option<String>| value.unwrap_or_else(|| "any".to_owned());
        let range = |least: Option<String>, most: Option<String>| match (least, most) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (least, most) => limit(most.or(least)),
        };
        table.add(vec![
            preset.name().to_owned(),
            range(text(spec.min_throughput()), text(spec.max_throughput())),
            range(text(spec.min_delay), text(spec.max_delay)),
            limit(text(spec.jitter)),
            limit(spec.loss.map(|loss| format!("{loss} %"))),
            limit(text(spec.recovery)),
            CapacityProfile::from_specification(&spec).name().to_owned(),
        ]);
    }
    table.render()
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Returns the directions with their names.
fn directions(spec: &ConnectionSpecification) -> [(&'static str, &Specification); 2] {
    [("send", &spec.send), ("receive", &spec.receive)]
}

fn show(name: &str, spec: &ConnectionSpecification) -> String {
    format!("{name}\n{}", describe(spec))
}

/// Returns the parameters of both directions as text.
pub fn describe(spec: &ConnectionSpecification) -> String {
    let mut text = String::new();
    if spec.send == spec.receive {
        let _ = write!(text, "\nboth directions:\n\n{}", show_direction(&spec.send));
    } else {
        for (direction, spec) in directions(spec) {
            let _ = write!(text, "\n{direction}:\n\n{}", show_direction(spec));
        }
    }
    if let Some(profile) = spec.profile {
        let _ = writeln!(text, "\ncapacity profile: {profile}");
    }
    text
}

fn show_direction(spec: &Specification) -> String {
    if *spec == (Specification { coerced: spec.coerced, ..Specification::OPEN }) {
        return "It demands nothing.\n".to_owned();
    }
    let mut table = Table::new(4, &["parameter", "value", "coerced", "meaning"]);
    for (about, (name, value)) in Specification::describe().into_iter().zip(spec.values()) {
        if value != ParameterValue::Off {
            let coerced = spec.coerced.iter().any(|parameter| parameter.name() == name);
            let coerced = if coerced { "yes" } else { "no" };
            table.add([name, &about.with_unit(&value), coerced, about.doc].map(str::to_owned).to_vec());
        }
    }
    let mut text = table.render();
    let throughputs = [
        ("least", spec.min_throughput()),
        ("useful", spec.max_throughput()),
        ("peak", spec.peak_throughput()),
    ];
    let known: Vec<_> =
        throughputs.into_iter().filter_map(|(name, rate)| Some(format!("{name} {}", rate?))).collect();
    if !known.is_empty() {
        let _ = writeln!(text, "\nthroughput: {}", known.join(", "));
    }
    let _ = writeln!(
        text,
        "capacity profile that fits (RFC 9622): {}",
        CapacityProfile::from_specification(spec)
    );
    text
}

/// Returns a specification as the file that describes it.
fn file(spec: &ConnectionSpecification) -> String {
    let mut text = String::from("# A QoS specification: docs/guide/specification.md\n");
    if let Some(profile) = spec.profile {
        let _ = writeln!(text, "connCapacityProfile = \"{profile}\"");
    }
    for (direction, spec) in directions(spec) {
        let _ = writeln!(text, "\n[{direction}]");
        for (name, value) in specification::written(spec) {
            let _ = writeln!(text, "{name} = {value}");
        }
        let names: Vec<_> = spec.coerced.iter().map(|parameter| format!("{:?}", parameter.name())).collect();
        let _ = match names.len() {
            0 => writeln!(text, "coerce = false"),
            n if n == Specification::describe().len() => writeln!(text, "coerce = true"),
            _ => writeln!(text, "coerce = [{}]", names.join(", ")),
        };
    }
    text
}

#[cfg(feature = "charts")]
fn draw(spec: &Specification, name: &str, file: &Path, force: bool) -> Result<(), Failure> {
    use crate::output_file::OutputFile;
    use cutline_text::Printable;

    let format = crate::picture_file::format("--figure", file)?;
    let region = cutline_quality::spec::Region::new(spec);
    if region.axes().is_empty() {
        let name = Printable(name);
        return Err(Failure::Failed(format!(
            "--figure: {name} limits no measure of the sent data: there is nothing to draw"
        )));
    }
    let radar = cutline_report::region::radar(&format!("Region of operation: {name}"), &region, &[]);
    let ends = radar.ends_in_words();
    let radar = radar.subtitle(ends);
    if format != cutline_report::chart::Format::Svg {
        crate::picture_file::warn_of_scripts(name);
    }
    let bytes = radar.file(format).map_err(|error| Failure::Failed(error.to_string()))?;
    OutputFile::create(file, force)?.write_all(&bytes)
}

fn agree(
    ours: &ConnectionSpecification,
    theirs: &ConnectionSpecification,
    json: bool,
) -> Result<(), Failure> {
    let agreements = ours.agree(theirs);
    if json {
        output::print_json(&AgreementDocument::new(&agreements))?;
    } else {
        let [send, receive] = &agreements;
        let text = [("send", send), ("receive", receive)].map(|(name, agreed)| show_agreement(name, agreed));
        output::print_wrapped(&text.join("\n"))?;
    }
    if agreements.iter().all(Result::is_ok) {
        return Ok(());
    }
    Err(Failure::Failed("the two ends do not agree".to_owned()))
}

fn show_agreement(direction: &str, agreed: &Result<Agreement, Conflicts>) -> String {
    match agreed {
        Ok(Agreement { items, .. }) if items.is_empty() => {
            format!("{direction}: agreed; neither end demands anything\n")
        }
        Ok(Agreement { items, .. }) => {
            let mut table = Table::new(4, &["parameter", "offered", "requested", "effective"]);
            for Agreed { parameter, offered, requested, effective } in items {
                let about = parameter.about();
                let end = |value: &Option<ParameterValue>| {
                    value.as_ref().map_or("open".to_owned(), |value| about.with_unit(value))
                };
                table.add(vec![
                    parameter.name().to_owned(),
                    end(offered),
                    end(requested),
                    about.with_unit(effective),
                ]);
            }
            format!("{direction}: agreed\n\n{}", table.render())
        }
        Err(Conflicts(conflicts)) => {
            let lines = conflicts.iter().map(|conflict| format!("  {conflict}\n"));
            format!("{direction}: not agreed\n{}", lines.collect::<String>())
        }
    }
}
