//! `cutline qdisc`: TSQ and Sieve as queueing disciplines of the kernel.

mod document;

use crate::arguments::{duration, overhead};
use crate::exit::Failure;
use crate::queue_args::{aqm_spec, hint_table, limit, link_rate, tsq_params};
use crate::{message, output};
use cutline_aqm::{Aqm as _, AqmSpec, Discipline as _, Limit, Pi2, QueueSpec, Sieve, TsqParams};
use cutline_params::ParameterValue;
use cutline_qdisc::{
    BPFFS, ChangeOutcome, KernelQueues, QdiscChange, QdiscError, QdiscSettings, QdiscStatus, Removal,
    default_limit, default_sieve_memory, in_words,
};
use cutline_qdisc_loader::{INSTANCES, ObjectLoader};
use cutline_router::Overhead;
use cutline_router_service::{QdiscList, queue_notes};
use cutline_text::Printable;
use cutline_units::{Duration, Rate};
use std::path::PathBuf;

/// Put TSQ or Sieve into the kernel, as the queueing discipline of an interface
///
/// Requires Linux 6.16 or later with `CONFIG_NET_SCH_BPF` (see `cutline doctor`), and root or the capabilities `CAP_NET_ADMIN`, `CAP_BPF`,
/// `CAP_PERFMON` and `CAP_SYS_ADMIN`. The queue sends at the given rate, drops instead of marking, and stays when the command has ended
/// (docs/guide/qdisc.md). Other kernels have the same queues outside of the kernel: `cutline router up`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Add(AddArgs),
    Change(ChangeArgs),
    Show(ShowArgs),
    Del(DelArgs),
}

/// Add a queue at the root of an interface
///
/// The default is Sieve, which needs the rate alone. With --tsq it is TSQ over the law of --aqm.
#[derive(clap::Args)]
#[command(after_help = ADD_EXAMPLES)]
struct AddArgs {
    #[command(flatten)]
    place: Place,
    /// Rate of the link, to which the queue shapes, such as 100Mbit; a little below the true rate
    #[arg(long, value_parser = link_rate)]
    rate: Rate,
    /// Do not shape: the interface itself has this rate
    #[arg(long)]
    unshaped: bool,
    /// Algorithm: sieve, or with --tsq one of pi2, pi, red-worcester, ared, drop-tail [default: sieve, or pi2 with --tsq]
    #[arg(long, value_name = "NAME")]
    aqm: Option<String>,
    #[command(flatten)]
    queue: QueueOptions,
    /// Overhead of the link for each packet: none, ip, ethernet, docsis, pppoe, or the bytes added to each IP packet, such as 18
    #[arg(long, default_value = "ethernet", value_parser = overhead)]
    overhead: Overhead,
    /// Set a queue for each transmit queue in use, below `mq`; the rate and the limit are those of all of them together
    #[arg(long)]
    mq: bool,
    /// Replace a queueing discipline of another program on the interface; `cutline qdisc del` does not bring it back
    #[arg(long)]
    replace: bool,
    /// Largest number of interfaces with such a queue, or of transmit queues with --mq, in all network namespaces; it holds from the first queue to the last
    /// [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    instances: Option<u32>,
}

/// Change the queue of an interface while packets wait in it
///
/// Options that are left out keep their values. --aqm, --set and --rtt reset all other parameters of the algorithm to their defaults, and --tsq
/// resets those of TSQ. --hint gives the other code points their standard hints. To change from TSQ to Sieve or back, use `del` and `add`.
#[derive(clap::Args)]
#[command(after_help = CHANGE_EXAMPLES)]
struct ChangeArgs {
    #[command(flatten)]
    place: Place,
    /// Rate of the link, to which the queue shapes
    #[arg(long, value_parser = link_rate)]
    rate: Option<Rate>,
    /// Do not shape: the interface itself has the rate of --rate
    #[arg(long, requires = "rate")]
    unshaped: bool,
    /// Algorithm: the law under TSQ [default: the present one]
    #[arg(long, value_name = "NAME")]
    aqm: Option<String>,
    #[command(flatten)]
    queue: QueueOptions,
    /// Overhead of the link for each packet
    #[arg(long, value_parser = overhead)]
    overhead: Option<Overhead>,
    /// Require a queue for each transmit queue in use, as `add --mq` sets them: an interface with fewer queues is refused
    #[arg(long)]
    mq: bool,
}

/// Options of the queue that both commands have.
#[derive(clap::Args)]
struct QueueOptions {
    /// Set a parameter of the algorithm, such as tau="100 ms"; may be repeated (`cutline aqm show NAME`)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Use TSQ on top of the algorithm, with optional parameters, such as l=40ms,bits=4
    #[arg(long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "")]
    tsq: Option<String>,
    /// Round-trip time of most connections through the link, without its queue, for Sieve [default: 100 ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Largest backlog, such as "1000 packets" or "64 KB" [default of add: 1000 packets, more with Sieve on fast links]
    #[arg(long, value_parser = limit)]
    limit: Option<Limit>,
    /// Assign a hint from 1 to 16 to a code point, such as EF=4; may be repeated; the others have their standard hints
    #[arg(long, value_name = "CODEPOINT=LEVEL")]
    hint: Vec<String>,
}

/// Show the queues of interfaces with their statistics
///
/// Without an interface it shows all of this network namespace. The statistics count from `add`.
#[derive(clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct ShowArgs {
    /// The word `dev`, and the interface
    #[arg(value_name = "dev INTERFACE", num_args = 0..=2)]
    place: Vec<String>,
    #[command(flatten)]
    pins: PinArgs,
    /// Print JSON: a list, with the statistics of `cutline router stats`
    #[arg(long)]
    json: bool,
    /// Print metrics in the text format of Prometheus, such as for the textfile collector of `node_exporter`
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// Remove the queue of an interface
///
/// Packets that wait are dropped, and the interface gets the kernel's default queueing discipline. The programs are unloaded with the last queue. If the
/// interface has been removed, the memory of its queue is freed.
#[derive(clap::Args)]
#[command(after_help = DEL_EXAMPLES)]
struct DelArgs {
    #[command(flatten)]
    place: Place,
    /// Remove the queueing disciplines that other programs have set for single transmit queues as well
    #[arg(long)]
    all: bool,
}

/// An interface, and the place of the pins.
#[derive(clap::Args)]
struct Place {
    /// The word `dev`, which may be omitted, and the interface
    #[arg(value_name = "dev INTERFACE", num_args = 1..=2, required = true)]
    interface: Vec<String>,
    #[command(flatten)]
    pins: PinArgs,
}

#[derive(clap::Args)]
struct PinArgs {
    /// File system for eBPF in which the queues are pinned; another one where a container or `ip netns exec` hides the usual one
    #[arg(long, value_name = "FOLDER", default_value = BPFFS)]
    bpffs: PathBuf,
}

const EXAMPLES: &str = "Examples:
  cutline qdisc add dev eth0 --rate 100Mbit
  cutline qdisc add dev eth0 --rate 20Mbit --aqm pi2 --tsq --overhead pppoe
  cutline qdisc change dev eth0 --rate 50Mbit
  cutline qdisc show dev eth0
  cutline qdisc del dev eth0";

const ADD_EXAMPLES: &str = "Examples:
  cutline qdisc add dev eth0 --rate 100Mbit
  cutline qdisc add dev eth0 --rate 100Mbit --rtt 30ms --limit \"2000 packets\"
  cutline qdisc add dev eth0 --rate 20Mbit --tsq --hint EF=4
  cutline qdisc add dev eth0 --rate 15Mbit --aqm pi --set q-ref=100 --tsq l=60ms
  cutline qdisc add dev eth0 --rate 10Gbit --mq
  cutline qdisc add dev eth0 --rate 1Gbit --unshaped --replace";

const CHANGE_EXAMPLES: &str = "Examples:
  cutline qdisc change dev eth0 --rate 50Mbit
  cutline qdisc change dev eth0 --set target=\"10 ms\"
  cutline qdisc change dev eth0 --limit \"500 packets\" --overhead docsis";

const SHOW_EXAMPLES: &str = "Examples:
  cutline qdisc show
  cutline qdisc show dev eth0
  cutline qdisc show --json | jq '.[0].statistics.dropped'
  cutline qdisc show --metrics > /var/lib/prometheus/node-exporter/cutline.prom";

const DEL_EXAMPLES: &str = "Example:
  cutline qdisc del dev eth0";

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Action::Add(args) => args.add(),
        Action::Change(args) => args.change(),
        Action::Show(args) => args.show(),
        Action::Del(args) => args.remove(),
    }
}

impl AddArgs {
    fn add(&self) -> Result<(), Failure> {
        let name = self.place.interface()?;
        let settings = self.settings()?;
        let added = self.place.pins.queues().add(
            name,
            &settings,
            self.replace,
            &ObjectLoader { instances: self.instances.unwrap_or(INSTANCES) },
        )?;
        output::print(&format!("{}: {}\n", Printable(name), in_a_line(&added)))?;
        print_notes(&added, Some(self.rate), Some(settings.queue.limit));
        if let Some(note) = note_on_instances(self.instances, &added) {
            message::print(&note);
        }
        Ok(())
    }

    fn settings(&self) -> Result<QdiscSettings, Failure> {
        let tsq = self.queue.tsq()?;
        let default = if tsq.is_some() { Pi2::NAME } else { Sieve::<()>::NAME };
        let mut aqm = self.queue.aqm(self.aqm.as_deref().unwrap_or(default))?;
        if let AqmSpec::Sieve(params) = &mut aqm
            && !self.queue.sets_memory()
        {
            params.memory = default_sieve_memory(self.rate);
        }
        if let (AqmSpec::Sieve(_), Some(_)) = (&aqm, tsq) {
            return Err(Failure::Usage(
                "--tsq needs a law, such as --aqm pi2: Sieve orders packets itself".to_owned(),
            ));
        }
        if tsq.is_none() && aqm.takes_tsq() {
            let why =
                format!("--aqm {} is a law for --tsq: the kernel has this law only with TSQ", aqm.name());
            return Err(Failure::Usage(why));
        }
        let limit = self.queue.limit.unwrap_or_else(|| default_limit(&aqm, self.rate));
        let queue = QueueSpec { limit, ecn: false, aqm, tsq, rate: self.rate };
        let hints = hint_table(&self.queue.hint)?;
        Ok(QdiscSettings { queue, shaped: !self.unshaped, overhead: self.overhead, hints, mq: self.mq })
    }
}

impl ChangeArgs {
    fn change(&self) -> Result<(), Failure> {
        let (name, queues) = (self.place.interface()?, self.place.pins.queues());
        let change = self.settings(|| Ok(queues.show(name)?))?;
        if change.is_empty() {
            return Err(Failure::Usage("no change is given: use an option such as --rate 50Mbit".to_owned()));
        }
        if self.mq {
            queues.show(name)?.check_each_transmit_queue()?;
        }
        let when = match queues.change(name, &change)? {
            ChangeOutcome::InUse => "in use",
            ChangeOutcome::WithNextPacket => "in use with the next packet",
        };
        let changed = queues.show(name)?;
        output::print(&format!("{}: {}; {when}\n", Printable(name), in_a_line(&changed)))?;
        print_notes(&changed, self.rate, change.limit);
        if self.queue.sets_memory() {
            message::print("note: memory does not change: `cutline qdisc add` allocates that of the flows");
        }
        Ok(())
    }

    fn settings(
        &self,
        present: impl FnOnce() -> Result<QdiscStatus, Failure>,
    ) -> Result<QdiscChange, Failure> {
        let QueueOptions { set, rtt, limit, hint, .. } = &self.queue;
        let aqm = match &self.aqm {
            Some(name) => Some(self.queue.aqm(name)?),
            None if set.is_empty() && rtt.is_none() => None,
            None => Some(self.queue.aqm(present()?.algorithm())?),
        };
        Ok(QdiscChange {
            rate: self.rate.map(|rate| (rate, !self.unshaped)),
            aqm,
            tsq: self.queue.tsq()?,
            limit: *limit,
            overhead: self.overhead,
            hints: if hint.is_empty() { None } else { Some(hint_table(hint)?) },
        })
    }
}

impl ShowArgs {
    fn show(&self) -> Result<(), Failure> {
        let queues = self.pins.queues();
        let (found, others) = if self.place.is_empty() {
            queues.list()?
        } else {
            (vec![queues.show(interface(&self.place)?)?], 0)
        };
        let now = cutline_sys::now();
        if self.json {
            return output::print_json(&QdiscList::new(&found, now));
        }
        if self.metrics {
            return output::print(&document::metrics(&found, now));
        }
        let mut text = if found.is_empty() && self.place.is_empty() {
            "no interface of this network namespace has a queue of Cutline's in the kernel\n".to_owned()
        } else {
            found.iter().map(|status| document::text(status, now)).collect()
        };
        if others > 0 {
            text = format!("{text}\nqueues in other network namespaces: {others}\n");
        }
        output::print(&text)
    }
}

impl DelArgs {
    fn remove(&self) -> Result<(), Failure> {
        let name = self.place.interface()?;
        let done = match self.place.pins.queues().remove(name, self.all)? {
            Removal::Removed => "the queue was removed",
            Removal::Freed => "the queue was removed before; its memory was freed",
            Removal::NoInterface => {
                "there is no such interface; if a removed interface had a queue, its memory was freed"
            }
        };
        output::print(&format!("{}: {done}\n", Printable(name)))
    }
}

impl QueueOptions {
    fn tsq(&self) -> Result<Option<TsqParams>, Failure> {
        self.tsq.as_deref().map(tsq_params).transpose()
    }

    /// Returns whether the memory of Sieve's flows is among the options.
    fn sets_memory(&self) -> bool {
        self.set.iter().any(|set| set.split_once('=').is_some_and(|(key, _)| key.trim() == "memory"))
    }

    /// Returns an algorithm with the parameters of the options.
    fn aqm(&self, name: &str) -> Result<AqmSpec, Failure> {
        if self.rtt.is_some() && name != Sieve::<()>::NAME {
            return Err(Failure::Usage(format!("--rtt is for Sieve, and the algorithm is {name}")));
        }
        aqm_spec(name, &self.set, self.rtt.map(|rtt| ("rtt", ParameterValue::Duration(rtt))))
    }
}

impl Place {
    fn interface(&self) -> Result<&str, Failure> {
        interface(&self.interface)
    }
}

impl PinArgs {
    fn queues(&self) -> KernelQueues {
        KernelQueues::new(&self.bpffs)
    }
}

/// Returns the interface of `dev INTERFACE`, or of `INTERFACE`.
fn interface(words: &[String]) -> Result<&str, Failure> {
    match words {
        [name] => Ok(name),
        [dev, name] if dev == "dev" => Ok(name),
        _ => Err(Failure::Usage(format!("{}: write `dev INTERFACE`", Printable(words.join(" "))))),
    }
}

/// Returns queue, rate and limit in a line.
fn in_a_line(status: &QdiscStatus) -> String {
    let config = &status.config;
    let rate = Rate::from_bps(config.link_bps);
    let shaped = if config.shape_bps == 0 { "without shaping, for a link of" } else { "at" };
    let each = document::for_each_queue(status).map(|words| format!(", {words}")).unwrap_or_default();
    format!("{} {shaped} {rate}, {}{each}", in_words(status.queue, config), document::limit(config))
}

/// Returns a note where the number of instances is another one than `wanted`.
fn note_on_instances(wanted: Option<u32>, added: &QdiscStatus) -> Option<String> {
    let (kind, instances) = (added.queue.kernel_name(), added.instances);
    wanted.filter(|wanted| *wanted != instances).map(|wanted| {
        format!(
            "note: --instances {wanted} has no effect: the number for {kind} was set to {instances} with its first queue, and holds until its last one is \
             removed (docs/guide/qdisc.md)"
        )
    })
}

/// Prints the notes on a new rate, a new limit, or both.
fn print_notes(status: &QdiscStatus, rate: Option<Rate>, limit: Option<Limit>) {
    for note in queue_notes(status, rate, limit) {
        message::print(&note);
    }
}

impl From<QdiscError> for Failure {
    fn from(error: QdiscError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::Failed(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Action {
        let words = std::iter::once("qdisc").chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}")).args.action
    }

    fn added(line: &str) -> Result<QdiscSettings, String> {
        let Action::Add(args) = parsed(line) else { panic!("{line}") };
        args.settings().map_err(|failure| match failure {
            Failure::Usage(why) => why,
            other => panic!("{other:?}"),
        })
    }

    fn changed(line: &str) -> QdiscChange {
        let Action::Change(args) = parsed(line) else { panic!("{line}") };
        args.settings(|| panic!("the present queue is not asked for: {line}")).unwrap()
    }

    #[test]
    fn sieve_is_the_default_and_pi2_below_tsq() {
        let plain = added("add dev eth0 --rate 100Mbit").unwrap();
        assert_eq!((plain.queue.aqm.name(), plain.queue.tsq, plain.shaped), ("sieve", None, true));
        assert_eq!((plain.queue.rate, plain.overhead), (Rate::from_mbps(100), Overhead::Ethernet));
        assert_eq!(plain.queue.limit, Limit::Packets(1111));
        assert_eq!(added("add eth0 --rate 100Mbit --aqm sieve").unwrap(), plain);
        let memory = |line: &str| match added(line).unwrap().queue.aqm {
            AqmSpec::Sieve(params) => params.memory,
            other => panic!("{other:?}"),
        };
        assert_eq!(memory("add eth0 --rate 100Mbit --rtt 30ms"), 18_500);
        assert_eq!(memory("add eth0 --rate 200Mbit"), 65_536);
        assert_eq!(memory("add eth0 --rate 100Mbit --set memory=32768"), 32_768);
        let tsq = added("add dev eth0 --rate 20Mbit --tsq l=60ms --hint EF=4 --unshaped").unwrap();
        assert_eq!((tsq.queue.aqm.name(), tsq.shaped), ("pi2", false));
        assert_eq!(tsq.queue.tsq.unwrap().l, Duration::from_millis(60));
        assert_eq!(tsq.hints.hint("EF".parse().unwrap()).level(), 4);
        assert!(!tsq.mq && added("add dev eth0 --rate 10Gbit --mq").unwrap().mq);
    }

    #[test]
    fn a_queue_for_each_transmit_queue_is_named_and_may_be_required() {
        let one = cutline_qdisc::testing::status("sieve", false);
        assert!(!in_a_line(&one).contains("transmit"), "{}", in_a_line(&one));
        // With one transmit queue, `--mq` is as true as it can be.
        one.check_each_transmit_queue().unwrap();
        let each = QdiscStatus { transmit_queues: 8, hardware_queues: 8, ..one.clone() };
        assert!(in_a_line(&each).ends_with("one for each of 8 transmit queues"), "{}", in_a_line(&each));
        each.check_each_transmit_queue().unwrap();
        // The driver uses fewer than before, and more than before (`ethtool -L`).
        QdiscStatus { transmit_queues: 4, ..each.clone() }.check_each_transmit_queue().unwrap();
        let more = QdiscStatus { transmit_queues: 12, ..each };
        assert!(in_a_line(&more).contains("none for 4 that are in use since then"), "{}", in_a_line(&more));
        for (status, has) in [
            (QdiscStatus { transmit_queues: 8, ..one }, "one queue for all"),
            (more, "a queue for 8 of the 12 transmit queues"),
        ] {
            let refused = Failure::from(status.check_each_transmit_queue().unwrap_err());
            assert!(
                matches!(&refused, Failure::Usage(why) if why.contains(has) && why.contains("--replace --mq")),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_number_of_instances_without_effect_is_reported() {
        let Action::Add(args) = parsed("add dev eth0 --rate 1Mbit --instances 40000") else { panic!("add") };
        let added = cutline_qdisc::testing::status("sieve", false);
        let note = note_on_instances(args.instances, &added).unwrap();
        assert!(note.contains("--instances 40000 has no effect"), "{note}");
        assert!(note.contains("cutline_sieve3 was set to 64"), "{note}");
        assert_eq!(note_on_instances(Some(64), &added), None);
        let Action::Add(args) = parsed("add dev eth0 --rate 1Mbit") else { panic!("add") };
        let added = QdiscStatus { instances: 40_000, ..added };
        assert_eq!(note_on_instances(args.instances, &added), None, "none is wanted");
        assert_eq!(INSTANCES, 64, "the help names it");
    }

    #[test]
    fn del_leaves_other_programs_alone_unless_all_is_given() {
        let all = |line: &str| matches!(parsed(line), Action::Del(DelArgs { all: true, .. }));
        assert_eq!([all("del dev eth0"), all("del dev eth0 --all")], [false, true]);
    }

    #[test]
    fn contradictions_are_named() {
        let refused = |line: &str, words: &str| {
            let why = added(line).unwrap_err();
            assert!(why.contains(words), "{line}: {why}");
        };
        refused("add dev eth0 --rate 1Mbit --aqm sieve --tsq", "needs a law");
        refused("add dev eth0 --rate 1Mbit --aqm pi", "law for --tsq");
        refused("add dev eth0 --rate 1Mbit --aqm pi2 --tsq --rtt 30ms", "--rtt is for Sieve");
        refused("add dev eth0 --rate 1Mbit --set rtt=9h", "rtt = 9h");
        refused("add dev eth0 --rate 1Mbit --set target=9ms", "has been replaced by \"rtt\"");
        refused("add dev eth0 --rate 1Mbit --hint EF=17", "--hint EF=17");
    }

    #[test]
    fn an_interface_is_written_as_tc_writes_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (text, name) in
            [("dev eth0", Some("eth0")), ("eth0", Some("eth0")), ("dev", Some("dev")), ("on eth0", None)]
        {
            assert_eq!(interface(&words(text)).ok(), name, "{text}");
        }
        assert!(Line::try_parse_from(["qdisc", "del"]).is_err());
        assert!(Line::try_parse_from(["qdisc", "add", "dev", "eth0"]).is_err(), "a rate is needed");
        assert!(Line::try_parse_from(["qdisc", "change", "dev", "eth0", "--unshaped"]).is_err());
    }

    #[test]
    fn a_change_has_the_given_options_alone() {
        assert!(changed("change dev eth0").is_empty());
        let rate = changed("change dev eth0 --rate 4Mbit");
        assert_eq!(rate, QdiscChange { rate: Some((Rate::from_mbps(4), true)), ..QdiscChange::default() });
        let law = changed("change dev eth0 --aqm pi2 --set target=10ms --tsq");
        assert_eq!((law.aqm.unwrap().name(), law.tsq), ("pi2", Some(TsqParams::default())));
        let line = changed("change dev eth0 --limit 64KB --overhead docsis --hint AF41=2");
        assert_eq!((line.limit, line.overhead), (Some(Limit::Bytes(64_000)), Some(Overhead::Docsis)));
        assert!(line.hints.is_some() && line.rate.is_none() && line.aqm.is_none());
    }
}
