//! `cutline translate`: settings of the host and requests to the network that an application needs, each with its reason.

use crate::arguments::{duration, percentage, rate};
use crate::exit::Failure;
use crate::{message, output, spec};
use cutline_baseline::HostFingerprint;
use cutline_config::Document;
use cutline_documents::TranslationDocument;
use cutline_params::{Choice as _, ParameterValue, Parameters as _, nearest};
use cutline_tables::{application, specification};
use cutline_text::Printable;
use cutline_translate::{
    ApplicationProfile, Baseline, Decision, Layer, Path, Protocol, Service, Translation, TranslationRequest,
    Unmet, translate,
};
use cutline_units::{Duration, IpVersion, Rate};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Show the consequences of an application's needs for its host and the network
///
/// Translates a class of applications, or a QoS specification, into a protocol, settings of its sockets, and marks and
/// requests to the network, with the reason of each value (docs/guide/translation.md). Nothing is changed on this machine.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A class (audio, video, file, web, game, telemetry), or a file with a specification (TOML, or JSON if its name ends with
    /// .json)
    application: String,
    /// Set a parameter of the class, or a key of the file such as send.max-delay="50 ms"; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// tcp, udp, r-tcp, r-udp (with a reservation) or direct (frames without IP) [default: the one that fits]
    #[arg(long, value_parser = Protocol::parse)]
    protocol: Option<Protocol>,
    /// hint, diffserv, best-effort or reservation [default: reservation for r-tcp and r-udp, else hint]
    #[arg(long, value_parser = Service::parse)]
    service: Option<Service>,
    /// Round-trip time of the path without queues, such as 50ms [default: 50 ms are assumed where it must be known]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Rate of the bottleneck, such as 10Mbit [default: not known]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<Rate>,
    /// Longest packet of the path, bytes [default: 1500]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u64>,
    /// Packets lost on the path, per cent [default: 0.1]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    loss: Option<f64>,
    /// Table of `cutline baseline` of this host: block, buffers and bandwidth are chosen by its measurements
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Use a table of --baseline that is of another host, too old, or not complete
    #[arg(long, requires = "baseline")]
    any_baseline: bool,
    /// The path has IPv6
    #[arg(long)]
    ipv6: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline translate audio --rtt 300ms
  cutline translate video --set bit-rate=\"4 Mbit/s\" --set interactive=false --protocol tcp
  cutline translate mine.toml --service reservation --rate 10Mbit
  cutline translate mine.toml --protocol r-udp --baseline baseline.json
  cutline translate game --json | jq .network";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let request = TranslationRequest {
        protocol: args.protocol,
        service: args.service,
        path: path(args)?,
        baseline: args.baseline.as_deref().map(|file| measured(file, args.any_baseline)).transpose()?,
        ..request(args)?
    };
    let translation = translate(&request).map_err(|error| Failure::Usage(error.to_string()))?;
    if args.json {
        output::print_json(&TranslationDocument::new(&args.application, &translation))
    } else {
        output::print_wrapped(&show(&args.application, &translation))
    }
}

/// Reads a table, and checks that it holds for this host now, unless `any` is set.
fn measured(file: &std::path::Path, any: bool) -> Result<Arc<Baseline>, Failure> {
    let shown = Printable(file.display());
    let document = cutline_baseline::load(file).map_err(|error| Failure::Failed(error.to_string()))?;
    let document = document.ok_or_else(|| Failure::Failed(format!("there is no table {shown}")))?;
    if document.is_of_one_host() {
        message::print(&format!(
            "warning: {shown} was measured within one host ({}): its rates and delays are not those of a network",
            document.path.receiver
        ));
    }
    let now = jiff::Timestamp::now().as_second().max(0).unsigned_abs();
    match document.check(&HostFingerprint::of_this_host(), now) {
        Err(why) if !any => {
            Err(Failure::Failed(format!("{shown}: {why}; --any-baseline uses it nevertheless")))
        }
        _ => Ok(Arc::new(document.baseline())),
    }
}

/// Returns the path that the options describe.
fn path(args: &Args) -> Result<Path, Failure> {
    let ip = if args.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
    let values = [
        ("rtt", args.rtt.map(ParameterValue::Duration)),
        ("rate", args.rate.map(|rate| ParameterValue::Count(rate.as_bps()))),
        ("mtu", args.mtu.map(ParameterValue::Count)),
        ("loss", args.loss.map(ParameterValue::Number)),
        ("ip", Some(ParameterValue::Choice(ip.name().into()))),
    ];
    let given = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Path::from_values(given).map_err(|error| Failure::Usage(format!("--{error}")))
}

/// Returns the request of a class or a file.
fn request(args: &Args) -> Result<TranslationRequest, Failure> {
    let Args { application, set, .. } = args;
    let pairs = set.iter().map(|text| pair(text)).collect::<Result<Vec<_>, _>>()?;
    if ApplicationProfile::NAMES.contains(&application.as_str()) {
        return application::request(application, &pairs)
            .map_err(|error| Failure::Usage(format!("{application}: {}", Printable(error))));
    }
    if !std::path::Path::new(application).exists() {
        let guess = nearest(application, ApplicationProfile::NAMES.iter().copied());
        let guess = guess.map_or_else(String::new, |name| format!("; did you mean {name}?"));
        return Err(Failure::Usage(format!(
            "there is no file \"{}\", and no class of that name; the classes are: {}{guess}",
            Printable(application),
            ApplicationProfile::NAMES.join(", ")
        )));
    }
    let mut document = Document::load_toml_or_json(std::path::Path::new(application))?;
    for (key, value) in pairs {
        document.set_text(key, value)?;
    }
    Ok(TranslationRequest::new(specification::specification(&document)?))
}

/// Returns key and value of a setting.
fn pair(text: &str) -> Result<(&str, &str), Failure> {
    let wrong = || Failure::Usage(format!("--set \"{}\": expected KEY=VALUE", Printable(text)));
    text.split_once('=').map(|(key, value)| (key.trim(), value.trim())).ok_or_else(wrong)
}

/// Width of text, if there is space.
const WIDTH: usize = 118;
/// Least width of a reason, on a narrow terminal.
const NARROWEST: usize = 30;

fn show(name: &str, translation: &Translation) -> String {
    let Translation { protocol, service, .. } = translation;
    let mut text = format!("{}: {}; {}\n", Printable(name), protocol.title(), service.title());
    if translation.decisions.iter().all(|decision| decision.layer != Layer::ApplicationProfile) {
        text += &spec::describe(&translation.specification);
    }
    for layer in Layer::ALL {
        let decisions: Vec<_> = translation.decisions.iter().filter(|one| one.layer == layer).collect();
        if !decisions.is_empty() {
            let _ = write!(text, "\n{layer}:\n\n{}", table(&decisions));
        }
    }
    if !translation.unmet.is_empty() {
        text += "\nThese demands cannot be met:\n";
    }
    for Unmet { direction, parameter, reason } in &translation.unmet {
        let _ = writeln!(text, "  {direction}.{parameter}: {reason}");
    }
    text
}

/// Returns decisions as a table whose last column has as many lines as it needs.
fn table(decisions: &[&Decision]) -> String {
    let value = |decision: &Decision| decision.value.clone().unwrap_or_else(|| "as it is".to_owned());
    let longest = |cell: &dyn Fn(&Decision) -> usize| {
        decisions.iter().map(|decision| cell(decision)).max().unwrap_or(0)
    };
    let first = longest(&|decision| decision.setting.chars().count()).max("setting".len());
    let second = longest(&|decision| value(decision).chars().count()).max("value".len());
    let room = output::width().map_or(WIDTH, |room| room.min(WIDTH));
    let mut text = format!("{:first$}  {:second$}  why\n{}\n", "setting", "value", "-".repeat(room));
    for decision in decisions {
        let Decision { setting, reason, source, .. } = decision;
        let source = if source.is_empty() { String::new() } else { format!(" [{source}]") };
        let mut start = format!("{setting:first$}  {:second$}  ", value(decision));
        let indent = start.chars().count();
        for line in lines(&format!("{reason}{source}"), room.saturating_sub(indent).max(NARROWEST)) {
            let _ = writeln!(text, "{start}{line}");
            start = " ".repeat(indent);
        }
    }
    text
}

/// Returns a text in lines of at most this many characters, unless a word is longer.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
