//! `cutline tg rrul`: delay under load in several classes.

use super::send::resolve;
use super::{flent, tables};
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output_file::OutputFile;
#[cfg(feature = "charts")]
use crate::picture_file::PictureFile;
use crate::table::{Table, number};
use crate::{interrupt, message, output};
use cutline_sys::address::ZonedIp;
use cutline_traffic::control::{self, SendParams};
use cutline_traffic::responsiveness::{
    ClassDocument, LoadedDirection, Responsiveness, ResponsivenessDocument, RrulClass, SETTLING,
};
use cutline_traffic::{DatagramOptions, DistributionDocument, FlowGroups, SendResults, TcpOptions};
use cutline_units::{Duration, Streams};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Measure delay under load: probes in several classes, while TCP fills the path in both directions
///
/// Sends small UDP probes in each class, both ways, first on the idle path and then beside TCP flows of the same class in both
/// directions, as flent's test RRUL does. Prints the delays of each class when idle and under load, the rates, and a grade by
/// the added delay (docs/guide/tg.md). HOST runs `cutline tg receive`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Host of `cutline tg receive`, a name or an address [default port: 5203]
    #[arg(value_name = "HOST[:PORT]")]
    receiver: String,
    /// Code points of the classes, with commas between, such as hint-1,hint-6,hint-16 or EF,default
    #[arg(long, value_name = "NAMES", default_value = "default,CS1,CS5,EF", value_delimiter = ',', value_parser = class)]
    classes: Vec<RrulClass>,
    /// TCP flows of each class in each direction
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    flows: u32,
    /// Time without load
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    idle: Duration,
    /// Time with load; probes count from its second second on
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    duration: Duration,
    /// Time between two probes of a class, 1ms to 1s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    probe_interval: Duration,
    /// Congestion control of TCP by its name in the kernel, such as reno, cubic or bbr
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// Source address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<ZonedIp>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// File with the key that the receiver has, too; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[cfg(feature = "charts")]
    /// Draw delays and rates over time to FILE, which ends in .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the intervals of all flows to FILE for flent's plotter; the name must end in .gz
    #[arg(long, value_name = "FILE")]
    flent: Option<PathBuf>,
    /// Replace the files of --plot and --flent if they exist
    #[arg(long)]
    force: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline tg rrul host --key-file key
  cutline tg rrul host --classes hint-1,hint-6,hint-12,hint-16 --plot rrul.svg
  cutline tg rrul host --classes default --flows 4 --duration 60s --json";

/// The width of the intervals.
const INTERVAL: Duration = flent::INTERVAL;
/// Time to wait for packets that are still in the network.
const LINGER: Duration = Duration::from_millis(500);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let measurement = measurement(args)?;
    #[cfg(feature = "charts")]
    let picture = PictureFile::create(args.plot.as_deref(), args.force)?;
    let from = args.from.map(|address| address.with_port(0));
    let receivers = resolve(&args.receiver, from)?;
    let receiver = receivers[0];
    let key = args.key_file.as_deref().map(super::key).transpose()?;
    let flent = args.flent.as_deref().map(|path| OutputFile::for_flent(path, args.force)).transpose()?;
    let flows = flows(&measurement, from, receiver);
    for plan in &flows.plans {
        plan.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let stop = interrupt::cancel_flag("The measurements so far are printed.".to_owned())?;
    let (duration, streams, interval) = (measurement.duration(), Streams::new(args.seed), Some(INTERVAL));
    let (datagrams, blocking) = (DatagramOptions::default(), false);
    let params = SendParams { duration, linger: LINGER, interval, streams, key, datagrams, blocking };
    let classes = measurement.classes.len();
    message::print(&format!(
        "measuring {classes} classes with {receiver}: {} idle, {} with load, seed {}",
        args.idle, args.duration, args.seed
    ));
    let outcome = control::send(&receivers, flows.plans.clone(), params, &stop)?;
    let document = measurement.document(&outcome, args.seed, INTERVAL);
    let found = SendResults::new(&params, &flows, &outcome);
    if args.json {
        output::print_json(&document)?;
    } else {
        let end = tables::clock(&outcome.clock) + &tables::trouble(&found);
        output::print_wrapped(&(table(&document) + &verdict(&document) + &end))?;
    }
    #[cfg(feature = "charts")]
    if let Some(picture) = picture {
        picture.draw("rrul", &cutline_traffic::picture::delay_under_load(&document))?;
    }
    if let Some(target) = flent {
        flent::write(&target, &found, &found.flow_totals())?;
    }
    super::judged(&found, &stop)
}

fn measurement(args: &Args) -> Result<Responsiveness, Failure> {
    let probe_intervals = Duration::from_millis(1)..=Duration::from_secs(1);
    if !probe_intervals.contains(&args.probe_interval) {
        let given = args.probe_interval;
        return Err(Failure::Usage(format!("--probe-interval {given}: must be 1 ms to 1 s")));
    }
    if args.duration <= SETTLING {
        let given = args.duration;
        return Err(Failure::Usage(format!("--duration {given}: must be above {SETTLING}")));
    }
    let is_repeated = |&i: &usize| args.classes[..i].iter().any(|class| class.dscp == args.classes[i].dscp);
    if let Some(i) = (1..args.classes.len()).find(is_repeated) {
        let name = &args.classes[i].name;
        return Err(Failure::Usage(format!("--classes: the code point of {name} is named twice")));
    }
    let congestion_control = args.congestion_control.clone();
    Ok(Responsiveness {
        classes: args.classes.clone(),
        flows: args.flows,
        tcp: TcpOptions { congestion_control, ..TcpOptions::default() },
        probe_interval: args.probe_interval,
        idle: args.idle,
        loaded: args.duration,
    })
}

/// Returns the plans; each flow is a group.
fn flows(measurement: &Responsiveness, from: Option<SocketAddr>, to: SocketAddr) -> FlowGroups {
    let mut flows = FlowGroups::default();
    for plan in measurement.plans(from, to) {
        flows.add(plan.name.clone(), [plan]);
    }
    flows
}

/// Parses the code point of a class, which is its name.
fn class(text: &str) -> Result<RrulClass, String> {
    let dscp = text.parse().map_err(|error: cutline_units::DscpError| error.to_string())?;
    Ok(RrulClass { name: text.to_owned(), dscp })
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

/// Returns a table with two rows for each class.
fn table(document: &ResponsivenessDocument) -> String {
    let idle = ["idle median ms", "idle 95 %"];
    let loaded = ["load median ms", "load 95 %", "load 99 %", "added ms", "lost %", "Mbit/s"];
    let titles: Vec<_> = ["class", "direction"].into_iter().chain(idle).chain(loaded).collect();
    let mut table = Table::new(2, &titles);
    for class in &document.classes {
        for (name, of) in [("forward", &class.forward), ("reverse", &class.reverse)] {
            let words = [class.name.clone(), name.to_owned()];
            table.add(words.into_iter().chain(row(of).into_iter().map(shown)).collect());
        }
    }
    format!("\n{}", table.render())
}

fn row(of: &LoadedDirection) -> [Option<f64>; 8] {
    let of_idle = |value: fn(&DistributionDocument) -> Option<f64>| of.idle_ms.as_ref().and_then(value);
    let of_loaded = |value: fn(&DistributionDocument) -> Option<f64>| of.loaded_ms.as_ref().and_then(value);
    [
        of_idle(|it| it.p50),
        of_idle(|it| it.p95),
        of_loaded(|it| it.p50),
        of_loaded(|it| it.p95),
        of_loaded(|it| it.p99),
        of.added_ms,
        of.loss_ratio.map(|ratio| ratio * 100.0),
        Some(of.goodput_bps * 1e-6),
    ]
}

/// Returns the result of both directions together, and the grade.
fn verdict(document: &ResponsivenessDocument) -> String {
    let titles = ["class", "idle round trip ms", "under load ms", "added ms", "round trips per minute"];
    let mut table = Table::new(1, &titles);
    for class in &document.classes {
        let ClassDocument { idle_round_trip_ms, loaded_round_trip_ms, added_ms, .. } = *class;
        let values = [idle_round_trip_ms, loaded_round_trip_ms, added_ms].map(shown);
        let rate = class.round_trips_per_minute.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        table.add([class.name.clone()].into_iter().chain(values).chain([rate]).collect());
    }
    let line = match (&document.grade, document.added_ms, document.round_trips_per_minute) {
        (Some(grade), Some(added), Some(rate)) => format!(
            "Grade {grade}: load adds up to {} ms to a round trip (worst class); {rate:.0} round trips per minute \
             (slowest class).\n",
            number(added)
        ),
        _ => "No grade: no probe of a class arrived.\n".to_owned(),
    };
    format!("\n{}\n{line}", table.render())
}
