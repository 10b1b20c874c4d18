//! `cutline tg send`: generates traffic and prints the measurements of both ends.

use super::flows;
use super::options::FlowArgs;
use super::tables;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::{interrupt, message, output};
use cutline_lab::groups;
use cutline_scenario::FlowsFile;
use cutline_sys::address::{self, ZonedIp};
use cutline_text::Printable;
use cutline_traffic::control::{self, SendParams};
use cutline_traffic::{DatagramOptions, PlanDirection, SendResults};
use cutline_units::{Duration, Streams};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;

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
    /// Source address; a link-local one with its interface, `fe80::1%eth0`
    #[arg(long, value_name = "ADDRESS")]
    from: Option<ZonedIp>,
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
    /// File with the key that the receiver has, too; other users must not be able to read it
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
    let file = args.plan.as_deref().map(FlowsFile::load).transpose()?;
    let from_file = |value: fn(&FlowsFile) -> Option<Duration>| file.as_ref().and_then(value);
    let seed = args.seed.or_else(|| file.as_ref().and_then(|file| file.seed)).unwrap_or(1);
    let duration =
        args.duration.or_else(|| from_file(|file| file.duration)).unwrap_or(Duration::from_secs(10));
    let asked = args.interval.or_else(|| from_file(|file| file.interval));
    let flent = args.flent.as_deref().map(|path| OutputFile::for_flent(path, args.force)).transpose()?;
    let interval = asked.or_else(|| flent.is_some().then_some(super::flent::INTERVAL));
    let from = args.from.map(|address| address.with_port(0));
    let receivers = resolve(&args.receiver, from)?;
    let receiver = receivers[0];
    let streams = Streams::new(seed);
    let flows = match &file {
        Some(file) => groups::from_file(file, streams, from, receiver)
            .map_err(|error| Failure::Usage(error.to_string()))?,
        None => flows::from_options(&args.flows, from, receiver)?,
    };
    for plan in &flows.plans {
        plan.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let key = args.key_file.as_deref().map(super::key).transpose()?;
    let stop = interrupt::cancel_flag("The measurements so far are printed.".to_owned())?;
    let (datagrams, blocking) = (DatagramOptions::default(), false);
    let params = SendParams { duration, linger: args.linger, interval, streams, key, datagrams, blocking };
    let count = flows.plans.len();
    let (verb, preposition) = match (flows.has(PlanDirection::Reverse), flows.has(PlanDirection::Forward)) {
        (false, _) => ("sending", "to"),
        (true, false) => ("receiving", "from"),
        (true, true) => ("exchanging", "with"),
    };
    message::print(&format!("{verb} {count} flows {preposition} {receiver} for {duration}, seed {seed}"));
    let outcome = control::send(&receivers, flows.plans.clone(), params, &stop)?;
    let found = SendResults::new(&params, &flows, &outcome);
    if args.json {
        output::print_json(&found.document())?;
    } else {
        output::print_wrapped(&tables::sent(&found, args.per_flow, asked.is_some()))?;
    }
    if let Some(target) = flent {
        super::flent::write(&target, &found, &found.flow_totals())?;
    }
    super::judged(&found, &stop)
}

/// Returns the addresses of a receiver. The default port is [`control::PORT`]. With a source address only those of its family are left.
pub fn resolve(text: &str, from: Option<SocketAddr>) -> Result<Vec<SocketAddr>, Failure> {
    let found = address::lookup(text, Some(control::PORT)).map_err(|error| {
        let why = format!("{}: the address cannot be found: {error}", Printable(text));
        if error.kind() == ErrorKind::InvalidInput { Failure::Usage(why) } else { Failure::Failed(why) }
    })?;
    let fits = |address: &SocketAddr| from.is_none_or(|from| from.is_ipv4() == address.is_ipv4());
    let found: Vec<_> = found.into_iter().filter(fits).collect();
    if let (true, Some(from)) = (found.is_empty(), from) {
        let why = format!("--from {}: {} has no address of the same family", from.ip(), Printable(text));
        return Err(Failure::Usage(why));
    }
    Ok(found)
}
