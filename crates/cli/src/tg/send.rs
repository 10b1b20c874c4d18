//! `cutline tg send`: generates traffic and prints the measurements of both ends.

use super::flows::Flows;
use super::found::Found;
use super::options::FlowArgs;
use super::tables;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::{interrupt, message, output};
use cutline_scenario::FlowsFile;
use cutline_text::Printable;
use cutline_traffic::control::{self, SendParams};
use cutline_units::{Duration, Streams};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Send flows to a receiver, or receive flows from it, and print the measurements of both ends
///
/// Options describe one group of flows, a file with --plan several. Ctrl-C ends the run early and prints the measurements
/// so far.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Host of `cutline tg receive`, a name or an address [default port: 5203]
    #[arg(value_name = "HOST[:PORT]")]
    receiver: String,
    #[command(flatten)]
    flows: FlowArgs,
    /// File with several groups; its `[[flow]]` tables are those of a scenario
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Source address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<std::net::IpAddr>,
    /// Duration of the run [default: the plan's, or 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Also print the measures of each interval of this width
    #[arg(long, value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,
    /// Time to wait after the run for packets that are still in the network
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
    linger: Duration,
    /// Seed of the random numbers [default: the plan's, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// File with the key that the receiver has, too; nobody else may read it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Also print a row for each flow
    #[arg(long)]
    per_flow: bool,
    /// Write the intervals to FILE for flent's plotter; the name must end in .gz [intervals: 200ms unless --interval is
    /// given]
    #[arg(long, value_name = "FILE")]
    flent: Option<PathBuf>,
    /// Replace the file of --flent if it exists
    #[arg(long, requires = "flent")]
    force: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline tg send 192.0.2.7 --flows 8 --congestion-control cubic --duration 30s --interval 1s
  cutline tg send host --transport udp --rate 128kbit --size 160 --flows 25 --hint 6
  cutline tg send host --reverse --flows 4 --interval 1s
  cutline tg send host --bidirectional --transport udp --rate 2Mbit --hint 6
  cutline tg send host --app files --size pareto:4KB:1.2:1MB --think 2s --flows 50 --json
  cutline tg send host:6000 --transport udp --trace game.txt --repeat 20ms --dscp EF
  cutline tg send host --plan mixed.toml
  cutline tg send host --flows 8 --per-flow --flent up.flent.gz
  cutline tg send host --key-file key --flows 8";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let receiver = resolve(&args.receiver)?;
    let file = args.plan.as_deref().map(FlowsFile::load).transpose()?;
    let from_file = |value: fn(&FlowsFile) -> Option<Duration>| file.as_ref().and_then(value);
    let seed = args.seed.or_else(|| file.as_ref().and_then(|file| file.seed)).unwrap_or(1);
    let duration =
        args.duration.or_else(|| from_file(|file| file.duration)).unwrap_or(Duration::from_secs(10));
    let asked = args.interval.or_else(|| from_file(|file| file.interval));
    let flent = args.flent.as_deref().map(|path| OutputFile::for_flent(path, args.force)).transpose()?;
    let interval = asked.or_else(|| flent.is_some().then_some(super::flent::INTERVAL));
    let from = args.from.map(|address| SocketAddr::new(address, 0));
    let streams = Streams::new(seed);
    let flows = match &file {
        Some(file) => Flows::from_file(file, streams, from, receiver)?,
        None => Flows::from_options(&args.flows, from, receiver)?,
    };
    for plan in &flows.plans {
        plan.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let key = args.key_file.as_deref().map(super::key).transpose()?;
    let stop = interrupt::cancel_flag("The measurements so far are printed.".to_owned())?;
    let params = SendParams { duration, linger: args.linger, interval, streams, key };
    let count = flows.plans.len();
    let (verb, preposition) = match (flows.has_reverse(), flows.has_forward()) {
        (false, _) => ("sending", "to"),
        (true, false) => ("receiving", "from"),
        (true, true) => ("exchanging", "with"),
    };
    message::print(&format!("{verb} {count} flows {preposition} {receiver} for {duration}, seed {seed}"));
    let outcome = control::send(receiver, flows.plans.clone(), params, &stop)?;
    let found = Found::new(receiver, (seed, duration, interval), &flows, &outcome);
    if args.json {
        output::print_json(&found.document())?;
    } else {
        output::print_wrapped(&tables::sent(&found, args.per_flow, asked.is_some()))?;
    }
    if let Some(target) = flent {
        super::flent::write(&target, &found, &found.flow_totals())?;
    }
    found.judge(stop.load(Ordering::Relaxed))
}

/// Resolves the receiver's address. The default port is [`control::PORT`].
pub fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        return Ok(SocketAddr::new(address, control::PORT));
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { text.to_owned() } else { format!("{text}:{}", control::PORT) };
    let found = with_port.to_socket_addrs();
    let mut found = found.map_err(|error| {
        Failure::Failed(format!("{}: the address cannot be found: {error}", Printable(text)))
    })?;
    found.next().ok_or_else(|| Failure::Failed(format!("{}: the name has no address", Printable(text))))
}
