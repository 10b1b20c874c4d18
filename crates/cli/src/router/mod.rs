//! `cutline router`: the router on real interfaces.

mod listener;
pub(crate) mod settings;
mod setup;
mod stats;
mod text;
mod up;
mod view;

use crate::arguments::{duration, overhead};
use crate::exit::Failure;
use crate::queue_args::link_rate;
use crate::{interrupt, output};
use cutline_monitor::RouterView;
use cutline_ports::{PortError, PortKind};
use cutline_router::Overhead;
use cutline_router_service::{
    DirectionSpec, ProcessSpec, Restored, Router, RouterSpec, Schedule, ServiceError, StartRequirements,
    configuration, summary, warnings,
};
use cutline_sys::address::parse_listen_address;
use cutline_units::{Bytes, Duration, Rate};
use cutline_wire::FlowKeys;
use listener::Printer;
use settings::{AutorateArgs, CodePoints, QueueArgs, ReverseArgs, interval, memory};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Forward frames between two interfaces, with a separate queue for each direction
///
/// The router is transparent: frames that arrive at one interface leave by the other, at the given rate, in the order and
/// with the losses of the queue. The interfaces must have no other use: on a host that routes, use `cutline router up`
/// (docs/guide/router.md). Requires root or the capability `CAP_NET_RAW`; privileges that are no longer needed are dropped after the start. Ctrl-C ends the router and
/// prints the statistics. The configuration is a file or options, not both. SIGHUP reloads the file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Configuration file, which is reloaded on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the file or the options, print the configuration and the missing requirements of this machine, and exit
    #[arg(long, visible_alias = "dry-run")]
    check: bool,
    #[command(flatten)]
    routing: Routing,
    /// Interval of printed statistics, at least 10ms [default: only at the end]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    stats: Option<Duration>,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Show the router as a page at an address of this host's loopback [default: 127.0.0.1:9467]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = view::DEFAULT, value_parser = view::address)]
    view: Option<SocketAddr>,
    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
}

/// Commands that do not start a router.
#[derive(clap::Subcommand)]
enum Action {
    Stats(stats::Args),
    Config(stats::ConfigArgs),
    Status(stats::StatusArgs),
    Up(up::UpArgs),
    Down(up::DownArgs),
    Setup(setup::SetupArgs),
    Undo(setup::UndoArgs),
    /// Turn on the offloads that a killed router has turned off
    ///
    /// --fix-offloads records the offloads that it turns off in /run/cutline, or in the folder of `RUNTIME_DIRECTORY`.
    /// Every router does this when it starts. Requires root or the capability `CAP_NET_ADMIN`.
    Restore,
}

/// Options for everything that a file can describe.
#[derive(clap::Args)]
struct Routing {
    /// First interface; tun:NAME for a TUN interface of a routing host, xdp:NAME for an interface with `AF_XDP`
    #[arg(
        long = "in",
        value_name = "INTERFACE",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    input: Option<String>,
    /// Second interface
    #[arg(
        long = "out",
        value_name = "INTERFACE",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    output: Option<String>,
    /// Rate from --in to --out, such as 15Mbit or "1.5 Mbit/s"
    #[arg(long, value_parser = link_rate, required_unless_present = "config", conflicts_with = "config")]
    rate: Option<Rate>,
    #[command(flatten)]
    queue: QueueArgs,
    #[command(flatten)]
    reverse: ReverseArgs,
    #[command(flatten)]
    autorate: AutorateArgs,
    /// Overhead of the slowest link per frame: none, ip, ethernet, docsis, ptm, pppoe-ptm, pppoe, pppoa, pppoe-atm, or the bytes
    /// added to each IP packet, such as 18; atm:10 and ptm:22 count in cells and in code blocks
    #[arg(long, default_value = "ethernet", value_parser = overhead, conflicts_with = "config")]
    overhead: Overhead,
    /// Leading bits of an IPv6 address that name a host, for queues that separate hosts
    #[arg(long, value_name = "BITS", default_value_t = FlowKeys::HOST_PREFIX, value_parser = clap::value_parser!(u8).range(1..=128), conflicts_with = "config")]
    ipv6_host_prefix: u8,
    #[command(flatten)]
    code_points: CodePoints,
    #[command(flatten)]
    process: ProcessArgs,
}

/// Options of the process.
#[derive(clap::Args)]
struct ProcessArgs {
    /// Time to poll the clock before each departure instead of sleeping; precise, but keeps a core busy
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "80us", value_parser = duration, conflicts_with = "config")]
    spin: Option<Duration>,
    /// Turn off receive aggregation and transmit checksums of both interfaces while the router runs
    #[arg(long, conflicts_with = "config")]
    fix_offloads: bool,
    /// Seed of the queues' random numbers [default: random; it is printed]
    #[arg(long, value_name = "N", conflicts_with = "config")]
    seed: Option<u64>,
    /// Local socket for `cutline router stats` [default: /run/cutline/router-PID.sock]
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// Address at which Prometheus scrapes the statistics, such as 127.0.0.1:9105; its path is /metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen_address, conflicts_with = "config")]
    metrics: Option<SocketAddr>,
    /// Largest memory for waiting frames; each direction has half of it [default: 67 MB]
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "config")]
    memory: Option<Bytes>,
    /// User of /etc/passwd to change to when the interfaces are open
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    user: Option<String>,
    /// Bridge the interfaces even if this host uses them itself: has addresses or routes there, or forwards between them
    #[arg(long, conflicts_with = "config")]
    force_bridge: bool,
}

const EXAMPLES: &str = "On a host that routes, such as the gateway of a home or an office:
  cutline router up --lan eth0 --wan eth1 --rate 20Mbit --reverse-rate 100Mbit
  cutline router down
Between two interfaces that have no other use:
  cutline router --in eth0 --out eth1 --rate 15Mbit
  cutline router --in eth0 --out eth1 --rate 15Mbit --rtt 30ms
  cutline router --in eth0 --out eth1 --rate 15Mbit --aqm pie --set target=\"15 ms\" --tsq
  cutline router --in lan --out wan --rate 50Mbit --reverse-rate 8Mbit --aqm fq-codel --overhead pppoe-ptm
  cutline router --in lan --out wan --rate 50Mbit --tsq --reverse-rate 8Mbit --reverse-aqm codel --socket /run/wan.sock
  cutline router --in tun:cut0 --out tun:cut1 --rate 20Mbit --tsq
  cutline router --in xdp:eth0 --out xdp:eth1 --rate 900Mbit --aqm fq-codel --fix-offloads
  cutline router --in lan --out lte0 --rate 30Mbit --autorate 5Mbit..80Mbit --reflector 192.0.2.1 --reflector 192.0.2.2
  cutline router --in a0 --out b0 --rate 15Mbit --tsq l=40ms,bits=4 --hint EF=4 --stats 1s --json
  cutline router --config /etc/cutline/router/lan.toml --check
  cutline router stats --watch 1s
  cutline router status";

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.action {
        Some(Action::Stats(args)) => return stats::execute(args),
        Some(Action::Config(args)) => return stats::config(args),
        Some(Action::Status(args)) => return stats::status(args),
        Some(Action::Up(args)) => return up::up(args),
        Some(Action::Down(args)) => return up::down(args),
        Some(Action::Setup(args)) => return setup::setup(args),
        Some(Action::Undo(args)) => return setup::undo(args),
        Some(Action::Restore) => return restore(),
        None => {}
    }
    let spec = match &args.config {
        Some(path) => RouterSpec::load(path)?,
        None => args.routing.spec()?,
    };
    if args.check { args.report(&spec) } else { args.route(spec) }
}

impl Args {
    fn report(&self, spec: &RouterSpec) -> Result<(), Failure> {
        let StartRequirements { obstacles, notices, .. } = StartRequirements::check(spec);
        if self.json {
            output::print_json(&configuration(spec))?;
        } else {
            let lines = [vec![format!("routing {}", summary(spec))], warnings(spec), notices].concat();
            output::print(&(lines.join("\n") + "\n"))?;
        }
        if obstacles.is_empty() {
            return Ok(());
        }
        let obstacles: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
        Err(Failure::Failed(format!("the router cannot start now: {}", obstacles.join("\n"))))
    }

    fn route(&self, spec: RouterSpec) -> Result<(), Failure> {
        let warnings = warnings(&spec);
        // Privileges are dropped before a thread is created, because a thread would keep them.
        let view = self.view.map(RouterView::bind).transpose()?;
        let mut router = Router::open(spec)?;
        let stop = interrupt::cancel_flag("Packets in the queues are lost.".to_owned())?;
        // Without a file SIGHUP ends the router, as Ctrl-C does.
        if let Some(path) = &self.config {
            router.reload_from(path)?;
        }
        let mut printer = Printer::new(self.json);
        printer.say(format!("routing {}, seed {}", router.summary(), router.seed()));
        for (name, kind) in router.interfaces()? {
            if let Some(line) = kind_message(&name, kind) {
                printer.say(line);
            }
        }
        for warning in warnings {
            printer.say(warning);
        }
        router.notices().iter().for_each(|notice| printer.say(notice.clone()));
        if let Some(view) = view {
            printer.say(format!("the page is at http://{}/", view.address()));
            let statistics = router.statistics();
            view.serve(move || statistics.get())?;
        }
        let schedule = Schedule { duration: self.duration, interval: self.stats };
        let ended = router.run(schedule, &stop, &mut printer);
        let printed = printer.finish();
        ended?;
        printed
    }
}

/// Turns on the offloads that killed routers have turned off, and prints them.
fn restore() -> Result<(), Failure> {
    let mut failed = Vec::new();
    for restored in cutline_router_service::restore() {
        match restored {
            Restored::Done { interface, names } => {
                output::print(&format!("{interface}: {}\n", names.join(", ")))?;
            }
            Restored::Failed(why) => failed.push(why),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Failed(failed.join("\n"))) }
}

impl Routing {
    fn spec(&self) -> Result<RouterSpec, Failure> {
        let Self { input: Some(input), output: Some(output), rate: Some(rate), .. } = self else {
            return Err(Failure::Usage("--in, --out and --rate are required, or --config".to_owned()));
        };
        if input == output {
            return Err(Failure::Usage(format!("--in and --out are both `{input}`")));
        }
        let (hints, remark) = self.code_points.tables()?;
        let (forward, reverse) = (self.queue.spec(*rate)?, self.reverse.spec(&self.queue, *rate)?);
        let ([forward_range, reverse_range], autorate) = self.autorate.spec([forward.rate, reverse.rate])?;
        let direction = |queue, autorate| DirectionSpec {
            queue,
            autorate,
            overhead: self.overhead,
            host_prefix: self.ipv6_host_prefix,
            hints: hints.clone(),
            remark: remark.clone(),
        };
        let ProcessArgs { spin, fix_offloads, seed, socket, metrics, memory, user, force_bridge } =
            &self.process;
        let (socket, user) = (socket.clone(), user.clone());
        Ok(RouterSpec {
            forward: direction(forward, forward_range),
            reverse: direction(reverse, reverse_range),
            autorate,
            input: input.clone(),
            output: output.clone(),
            process: ProcessSpec {
                fix_offloads: *fix_offloads,
                spin: *spin,
                seed: *seed,
                socket,
                metrics: *metrics,
                memory: *memory,
                user,
                force_bridge: *force_bridge,
                reservations: None,
            },
        })
    }
}

/// Returns a message about the mode of `AF_XDP` that an interface supports.
fn kind_message(interface: &str, kind: PortKind) -> Option<String> {
    match kind {
        PortKind::XdpZeroCopy => Some(format!("{interface}: {}", kind.name())),
        PortKind::XdpDriver | PortKind::XdpKernel => {
            Some(format!("{interface}: {}: a packet socket is as fast", kind.name()))
        }
        _ => None,
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Sys(error) => error.into(),
            PortError::NotTun { .. }
            | PortError::Mismatch { .. }
            | PortError::SameInterface { .. }
            | PortError::MtuTooLarge { .. }
            | PortError::VlanTagsRemoved { .. } => Self::Usage(error.to_string()),
            PortError::Removed { .. } | PortError::NoXdp { .. } | PortError::Busy { .. } => {
                Self::Failed(error.to_string())
            }
        }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Port(error) => error.into(),
            ServiceError::Sys(error) => error.into(),
            ServiceError::InUse { .. } | ServiceError::Taken { .. } => Self::Failed(error.to_string()),
            ServiceError::NoUser { .. } | ServiceError::Queue(_) => Self::Usage(error.to_string()),
        }
    }
}
