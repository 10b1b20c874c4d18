//! `cutline router`: the queue on real interfaces.

mod settings;
mod statistics;

use crate::exit::Failure;
use crate::interrupt;
use cutline_aqm::QueueSpec;
use cutline_linux::{AnyPort, LinuxError, LinuxPort as _, Offloads};
use cutline_router::{Overhead, Shaper, ShaperParams, Wire};
use cutline_units::{Duration, HintTable, Rate, RemarkTable, Streams};
use settings::{CodePoints, QueueArgs, duration, overhead, rate};
use statistics::Reporter;

/// Route frames between two interfaces, each direction through a queue of its own
///
/// A transparent bump in the wire: what comes in by one interface goes out by the other, at the rate given, in the order
/// and with the losses of the queue. The interfaces should do nothing else (docs/guide/router.md). Needs root, or the
/// capability `CAP_NET_RAW`. Ctrl-C ends it, and prints what was counted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// One interface; tun:NAME for a TUN interface of a host that routes
    #[arg(long = "in", value_name = "INTERFACE")]
    input: String,
    /// The other
    #[arg(long = "out", value_name = "INTERFACE")]
    output: String,
    /// The rate from --in to --out, such as 15Mbit or "1.5 Mbit/s"
    #[arg(long, value_parser = rate)]
    rate: Rate,
    /// The rate from --out to --in [default: the same]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_back: Option<Rate>,
    #[command(flatten)]
    queue: QueueArgs,
    /// What the slowest link adds to a frame: none, ip, ethernet, docsis, ptm, pppoe-ptm, pppoe, pppoa, pppoe-atm
    #[arg(long, default_value = "ethernet", value_parser = overhead)]
    overhead: Overhead,
    #[command(flatten)]
    code_points: CodePoints,
    /// Print what was counted so often [default: at the end only]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stats: Option<Duration>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Print JSON, one document a line
    #[arg(long)]
    json: bool,
    /// Look at the clock instead of sleeping for so long before each departure: exact, but it keeps a core busy
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "80us", value_parser = duration)]
    spin: Option<Duration>,
    /// Turn receive aggregation and transmit checksums of both interfaces off while it runs
    #[arg(long)]
    fix_offloads: bool,
    /// The seed of the queues' random numbers [default: from the clock; printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

const EXAMPLES: &str = "Examples:
  cutline router --in eth0 --out eth1 --rate 15Mbit --aqm pi --tsq
  cutline router --in lan --out wan --rate 50Mbit --rate-back 8Mbit --aqm fq-codel --overhead pppoe-ptm
  cutline router --in tun:cut0 --out tun:cut1 --rate 20Mbit --tsq
  cutline router --in a0 --out b0 --rate 15Mbit --tsq l=40ms,bits=4 --hint EF=4 --stats 1s --json";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let seed = args.seed.unwrap_or_else(|| cutline_linux::now().as_nanos());
    let forth = args.queue.spec(args.rate)?;
    let back = args.queue.spec(args.rate_back.unwrap_or(args.rate))?;
    if args.input == args.output {
        return Err(Failure::Usage(format!("--in and --out are both `{}`", args.input)));
    }
    let tables = args.code_points.tables()?;
    let mut ports = AnyPort::open_pair([&args.input, &args.output])?;
    let [input, output] = &ports;
    let mut wire = Wire {
        forth: args.shaper(forth, &tables, output, Streams::new(seed), "forth")?,
        back: args.shaper(back, &tables, input, Streams::new(seed), "back")?,
    };
    let _offloads = args.offloads()?;
    let stop = interrupt::cancel_flag("What waits in the queues is lost.".to_owned())?;
    anstream::eprintln!("{}", args.describe(&wire, seed));
    let mut reporter = Reporter::new(&args.input, &args.output, args.json, args.stats, args.duration, &stop);
    let ended =
        cutline_linux::run(&mut wire, &mut ports, args.spin.unwrap_or_default(), &stop, &mut reporter);
    // What was counted is printed even when an interface is gone.
    reporter.finish(&wire, &mut ports)?;
    Ok(ended?)
}

impl Args {
    fn shaper(
        &self,
        queue: QueueSpec,
        (hints, remark): &(HintTable, RemarkTable),
        outgoing: &AnyPort,
        streams: Streams,
        name: &str,
    ) -> Result<Shaper, Failure> {
        let entity = format!("router.{name}");
        let params = ShaperParams {
            overhead: self.overhead,
            largest_frame: outgoing.largest_frame(),
            hints: hints.clone(),
            remark: remark.clone(),
            salt: streams.stream(&entity, "salt").uniform().to_bits(),
            ..ShaperParams::new(queue)
        };
        Shaper::new(params, streams.stream(&entity, "drop"))
            .map_err(|error| Failure::Usage(error.to_string()))
    }

    fn offloads(&self) -> Result<Vec<Offloads>, Failure> {
        let names = [&self.input, &self.output];
        // The kernel undoes what it does for TUN interfaces itself.
        let asked_for = names.into_iter().filter(|name| self.fix_offloads && !name.starts_with("tun:"));
        Ok(asked_for.map(|name| Offloads::turn_off(name)).collect::<Result<_, _>>()?)
    }

    fn describe(&self, wire: &Wire, seed: u64) -> String {
        let Self { input, output, .. } = self;
        let [forth, back] = [&wire.forth, &wire.back].map(|shaper| shaper.params().queue.rate);
        let queue = &wire.forth.params().queue;
        let tsq = if queue.tsq.is_some() { "TSQ over " } else { "" };
        let aqm = queue.aqm.name();
        format!("routing {input} -> {output} at {forth} and back at {back} through {tsq}{aqm}, seed {seed}")
    }
}

impl From<LinuxError> for Failure {
    fn from(error: LinuxError) -> Self {
        match error {
            LinuxError::NoInterface { .. } | LinuxError::NoTun { .. } | LinuxError::Unlike { .. } => {
                Self::Usage(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}
