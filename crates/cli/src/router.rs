//! `cutline router`: the queue on real interfaces.

mod board;
mod client;
mod configuration;
mod document;
mod service;
pub(crate) mod settings;

use crate::exit::Failure;
use crate::{interrupt, output};
use board::Board;
use cutline_linux::privileges::{Kept, User, give_up};
use cutline_linux::{AnyPort, Hangup, LinuxError, LinuxPort as _, LocalSocket, Manager, Offloads, PortKind};
use cutline_router::{Overhead, Shaper, ShaperParams, Wire};
use cutline_scenario::{DirectionSpec, ProcessSpec, RouterSpec};
use cutline_units::{Duration, Rate, Streams};
use service::{Printer, Reloader, Service};
use settings::{BackArgs, CodePoints, QueueArgs, duration, overhead, rate};
use std::path::PathBuf;
use std::sync::Arc;

/// Route frames between two interfaces, each direction through a queue of its own
///
/// A transparent bump in the wire: what comes in by one interface goes out by the other, at the rate given, in the order
/// and with the losses of the queue. The interfaces should do nothing else (docs/guide/router.md). Needs root, or the
/// capability `CAP_NET_RAW`, and gives up what it does not need once it works. Ctrl-C ends it, and prints what was
/// counted. It is described by a file or by options, not by both; SIGHUP reads the file anew.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Read everything about the router from this file, and read it anew on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the file, say what it describes, and do nothing
    #[arg(long, requires = "config")]
    check: bool,
    #[command(flatten)]
    routing: Routing,
    /// Print what was counted so often [default: at the end only]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stats: Option<Duration>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Print JSON, one document a line
    #[arg(long)]
    json: bool,
}

/// What is done instead of routing.
#[derive(clap::Subcommand)]
enum Action {
    Stats(client::Args),
}

/// What a file would say.
#[derive(clap::Args)]
struct Routing {
    /// One interface; tun:NAME for a TUN interface of a host that routes, xdp:NAME by `AF_XDP`
    #[arg(
        long = "in",
        value_name = "INTERFACE",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    input: Option<String>,
    /// The other
    #[arg(
        long = "out",
        value_name = "INTERFACE",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    output: Option<String>,
    /// The rate from --in to --out, such as 15Mbit or "1.5 Mbit/s"
    #[arg(long, value_parser = rate, required_unless_present = "config", conflicts_with = "config")]
    rate: Option<Rate>,
    #[command(flatten)]
    queue: QueueArgs,
    #[command(flatten)]
    back: BackArgs,
    /// What the slowest link adds to a frame: none, ip, ethernet, docsis, ptm, pppoe-ptm, pppoe, pppoa, pppoe-atm
    #[arg(long, default_value = "ethernet", value_parser = overhead, conflicts_with = "config")]
    overhead: Overhead,
    #[command(flatten)]
    code_points: CodePoints,
    #[command(flatten)]
    process: ProcessArgs,
}

/// Where the router lives in its process.
#[derive(clap::Args)]
struct ProcessArgs {
    /// Look at the clock instead of sleeping for so long before each departure: exact, but it keeps a core busy
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "80us", value_parser = duration, conflicts_with = "config")]
    spin: Option<Duration>,
    /// Turn receive aggregation and transmit checksums of both interfaces off while it runs
    #[arg(long, conflicts_with = "config")]
    fix_offloads: bool,
    /// The seed of the queues' random numbers [default: from the clock; printed]
    #[arg(long, value_name = "N", conflicts_with = "config")]
    seed: Option<u64>,
    /// Answer `cutline router stats` at this local socket
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// Go on as this user of /etc/passwd once the interfaces are open
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    user: Option<String>,
}

const EXAMPLES: &str = "Examples:
  cutline router --in eth0 --out eth1 --rate 15Mbit --aqm pi --tsq
  cutline router --in lan --out wan --rate 50Mbit --rate-back 8Mbit --aqm fq-codel --overhead pppoe-ptm
  cutline router --in lan --out wan --rate 50Mbit --tsq --rate-back 8Mbit --aqm-back codel --socket /run/wan.sock
  cutline router --in tun:cut0 --out tun:cut1 --rate 20Mbit --tsq
  cutline router --in xdp:eth0 --out xdp:eth1 --rate 900Mbit --aqm fq-codel --fix-offloads
  cutline router --in a0 --out b0 --rate 15Mbit --tsq l=40ms,bits=4 --hint EF=4 --stats 1s --json
  cutline router --config /etc/cutline/router/lan.toml --check
  cutline router stats /run/cutline/lan.sock --watch 1s";

pub fn execute(args: &Args) -> Result<(), Failure> {
    if let Some(Action::Stats(args)) = &args.action {
        return client::execute(args);
    }
    let spec = match &args.config {
        Some(path) => RouterSpec::load(path)?,
        None => args.routing.spec()?,
    };
    if args.check { args.report(&spec) } else { args.route(spec) }
}

impl Args {
    fn report(&self, spec: &RouterSpec) -> Result<(), Failure> {
        if self.json {
            return output::print_json(&configuration::document(spec));
        }
        output::print(&format!("routing {}\n", configuration::line(spec)))
    }

    fn route(&self, spec: RouterSpec) -> Result<(), Failure> {
        let seed = spec.process.seed.unwrap_or_else(|| cutline_linux::now().as_nanos());
        let user = spec.process.user.as_deref().map(User::find).transpose()?;
        // Before the ports: changing them may restart a card, and AF_XDP wants them off.
        let _offloads = offloads(&spec)?;
        let mut ports = AnyPort::open_pair([&spec.input, &spec.output])?;
        let mut wire = wire(&spec, &ports, Streams::new(seed))?;
        let socket = socket(&spec.process, user.as_ref())?;
        // No thread is made before.
        give_up(Kept { net_admin: spec.process.fix_offloads }, user.as_ref())?;
        let stop = interrupt::cancel_flag("What waits in the queues is lost.".to_owned())?;
        let spec = Arc::new(spec);
        let reloader = self.reloader(&spec)?;
        let board = socket.as_ref().map(|socket| open_board(socket, &spec)).transpose()?;
        let manager = Manager::of_environment();
        let printer = Printer::new(self.json, self.stats);
        let mut service = Service::new(&spec, printer, self.duration, &manager, &stop)
            .with_reloader(reloader)
            .with_board(board);
        let line = configuration::line(&spec);
        anstream::eprintln!("routing {line}, seed {seed}");
        tell_kinds(&mut ports)?;
        manager.ready(&line);
        let spin = spec.process.spin.unwrap_or_default();
        let ended = cutline_linux::run(&mut wire, &mut ports, spin, &stop, &mut service);
        manager.stopping();
        // What was counted is printed even when an interface is gone.
        service.finish(&wire, &mut ports)?;
        Ok(ended?)
    }

    /// Without a file SIGHUP ends the router, as Ctrl-C does.
    fn reloader(&self, spec: &Arc<RouterSpec>) -> Result<Option<Reloader>, Failure> {
        let Some(path) = &self.config else { return Ok(None) };
        Ok(Some(Reloader::new(Hangup::catch()?, path.clone(), Arc::clone(spec))))
    }
}

impl Routing {
    fn spec(&self) -> Result<RouterSpec, Failure> {
        let Self { input: Some(input), output: Some(output), rate: Some(rate), .. } = self else {
            return Err(Failure::Usage("--in, --out and --rate are needed, or --config".to_owned()));
        };
        if input == output {
            return Err(Failure::Usage(format!("--in and --out are both `{input}`")));
        }
        let (hints, remark) = self.code_points.tables()?;
        let direction = |queue| DirectionSpec {
            queue,
            overhead: self.overhead,
            hints: hints.clone(),
            remark: remark.clone(),
        };
        let ProcessArgs { spin, fix_offloads, seed, socket, user } = &self.process;
        let (socket, user) = (socket.clone(), user.clone());
        Ok(RouterSpec {
            forth: direction(self.queue.spec(*rate)?),
            back: direction(self.back.spec(&self.queue, *rate)?),
            input: input.clone(),
            output: output.clone(),
            process: ProcessSpec { fix_offloads: *fix_offloads, spin: *spin, seed: *seed, socket, user },
        })
    }
}

fn wire(spec: &RouterSpec, [input, output]: &[AnyPort; 2], streams: Streams) -> Result<Wire, Failure> {
    Ok(Wire {
        forth: shaper(&spec.forth, output, streams, "forth")?,
        back: shaper(&spec.back, input, streams, "back")?,
    })
}

fn shaper(spec: &DirectionSpec, outgoing: &AnyPort, streams: Streams, name: &str) -> Result<Shaper, Failure> {
    let entity = format!("router.{name}");
    let base = ShaperParams {
        largest_frame: outgoing.largest_frame(),
        salt: streams.stream(&entity, "salt").uniform().to_bits(),
        ..ShaperParams::new(spec.queue.clone())
    };
    Shaper::new(service::params(&base, spec), streams.stream(&entity, "drop"))
        .map_err(|error| Failure::Usage(error.to_string()))
}

fn socket(process: &ProcessSpec, user: Option<&User>) -> Result<Option<LocalSocket>, Failure> {
    let Some(path) = &process.socket else { return Ok(None) };
    let socket = LocalSocket::bind(path)?;
    if let Some(user) = user {
        socket.give_to(user)?;
    }
    Ok(Some(socket))
}

fn open_board(socket: &LocalSocket, spec: &Arc<RouterSpec>) -> Result<Arc<Board>, Failure> {
    let board = Arc::new(Board::default());
    board.configure(spec);
    socket.serve(Arc::clone(&board).answer())?;
    Ok(board)
}

fn offloads(spec: &RouterSpec) -> Result<Vec<Offloads>, Failure> {
    if !spec.process.fix_offloads {
        return Ok(Vec::new());
    }
    let off = [&spec.input, &spec.output].map(|name| AnyPort::turn_offloads_off(name));
    Ok(off.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

/// What `AF_XDP` has got of an interface is not known before.
fn tell_kinds(ports: &mut [AnyPort; 2]) -> Result<(), Failure> {
    for port in ports {
        let (name, kind) = (port.name().to_owned(), port.stats()?.kind);
        match kind {
            PortKind::Packet | PortKind::Tun => {}
            PortKind::XdpZeroCopy => anstream::eprintln!("{name}: {}", kind.name()),
            PortKind::XdpDriver | PortKind::XdpKernel => {
                anstream::eprintln!("{name}: {}: a packet socket is as fast", kind.name());
            }
        }
    }
    Ok(())
}

impl From<LinuxError> for Failure {
    fn from(error: LinuxError) -> Self {
        match error {
            LinuxError::NoInterface { .. }
            | LinuxError::NoUser { .. }
            | LinuxError::NoTun { .. }
            | LinuxError::Unlike { .. }
            | LinuxError::Same { .. }
            | LinuxError::TooLong { .. }
            | LinuxError::TagsRemoved { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
