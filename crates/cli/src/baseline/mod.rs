//! `cutline baseline`: measures the performance of this host and a path, as a table for `cutline translate`.

mod tables;

use crate::arguments::{duration, rate};
use crate::exit::Failure;
#[cfg(feature = "charts")]
use crate::picture_file::PictureFile;
use crate::progress::Countdown;
use crate::tg::{key, resolve};
use crate::{interrupt, message, output};
use cutline_baseline::{BaselineDocument, FileError, HostFingerprint, Invalid, RowKey};
use cutline_baseline_runner::{
    BaselinePlan, FarEnd, FarEndKind, LEAST_BLOCK, MARGINS, MOST_BLOCK, PAPER_BLOCKS, PAPER_RATES, RunError,
    Runner, SHARES,
};
use cutline_files::FileLock;
use cutline_sys::address::ZonedIp;
use cutline_sys::clock;
use cutline_text::Printable;
use cutline_traffic::DIRECT;
use cutline_units::{Duration, Rate};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Measure the performance of this host and a path, as a table for `cutline translate`
///
/// Sends blocks of several sizes over TCP and UDP at several rates, with the buffers of the kernel and with larger ones, and measures
/// throughput, loss and its place, delay, round-trip time, retransmissions and processor time (QUANTA section 4.1,
/// docs/guide/baseline.md). HOST runs `cutline tg receive`. Each measurement is stored in the table at once: Ctrl-C ends the command, and
/// the same command continues where it was.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the command line")]
pub struct Args {
    /// Host of `cutline tg receive`, a name or an address [default port: 5203]
    #[arg(value_name = "HOST[:PORT]", required_unless_present_any = ["loopback", "namespaces", "show"])]
    receiver: Option<String>,
    /// Measure this host alone, over its loopback interface
    #[arg(long, conflicts_with_all = ["receiver", "from", "key_file"])]
    loopback: bool,
    /// Measure this host alone, between two network namespaces that are joined by a pair of virtual interfaces; requires root
    #[arg(long, conflicts_with_all = ["receiver", "loopback", "from", "key_file"])]
    namespaces: bool,
    /// Show the table without measuring
    #[arg(long, conflicts_with_all = ["receiver", "loopback", "namespaces", "from", "key_file"])]
    show: bool,
    /// File of the table
    #[arg(long, short, value_name = "FILE", default_value = "baseline.json")]
    output: PathBuf,
    /// Protocols, with commas between: tcp, udp, direct (frames below IP, to a receiver on the same link)
    #[arg(long, value_name = "NAMES", default_value = "tcp,udp", value_delimiter = ',', value_parser = protocol)]
    protocols: Vec<String>,
    /// Payload rates, with commas between, beside those that are chosen for the host [default: those of QUANTA: 500kbit, 1500kbit, 10Mbit,
    /// 25Mbit, 65Mbit]
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = rate)]
    rates: Vec<Rate>,
    /// Sizes of blocks, bytes, with commas between [default: those of QUANTA: 1024, 8192, 65536]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(LEAST_BLOCK..=MOST_BLOCK))]
    blocks: Vec<u64>,
    /// Least duration of a measurement, 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = measuring_time)]
    duration: Duration,
    /// Least number of blocks of a measurement at a rate, which lasts longer for it
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    least_blocks: u32,
    /// Largest rate [default: 100Mbit to a HOST, else no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<Rate>,
    /// Also send UDP and frames to HOST as fast as their sockets take them, which disturbs other traffic on the path; without HOST this is always
    /// measured
    #[arg(long)]
    flood: bool,
    /// Source address; a link-local one with its interface, `fe80::1%eth0`
    #[arg(long, value_name = "ADDRESS")]
    from: Option<ZonedIp>,
    /// File with the key that the receiver has, too; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Replace an existing table by a new one; replace the file of --plot
    #[arg(long)]
    force: bool,
    #[cfg(feature = "charts")]
    /// Draw throughput, loss and delay to FILE, which ends in .svg, .png or .pdf
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the table as one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline baseline host-b --key-file key
  cutline baseline host-b --max-rate 1Gbit --flood -o lab.json --plot lab.svg
  cutline baseline --loopback --duration 500ms
  sudo cutline baseline --namespaces --rates 10Mbit,100Mbit --blocks 1400,8192
  cutline baseline --show --json | jq '.rows[] | select(.loss_ratio == 0)'
  cutline translate video --baseline baseline.json";

/// Parses the name of a protocol.
fn protocol(text: &str) -> Result<String, String> {
    match text {
        "tcp" | "udp" | DIRECT => Ok(text.to_owned()),
        _ => Err("expected tcp, udp or direct".to_owned()),
    }
}

/// Parses the duration of a measurement.
fn measuring_time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    duration(text).and_then(|time| {
        if range.contains(&time) { Ok(time) } else { Err("it must be 100ms to 1h".to_owned()) }
    })
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    // Two runs would overwrite each other's measurements.
    let _lock = if args.show { None } else { Some(lock(&args.output)?) };
    let existing = existing(args)?;
    if args.show {
        let document =
            existing.ok_or_else(|| Failure::Failed(format!("there is no table {}", shown(&args.output))))?;
        #[cfg(feature = "charts")]
        if let Some(picture) = PictureFile::create(args.plot.as_deref(), args.force)? {
            picture.draw("baseline", &cutline_baseline_runner::picture::baseline(&document))?;
        }
        return print(args, &document);
    }
    // Errors of the picture's file are reported before the work.
    #[cfg(feature = "charts")]
    let picture = PictureFile::create(args.plot.as_deref(), args.force)?;
    let far = FarEnd::new(far(args)?)?;
    let runner = Runner::new(&plan(args), far, &args.output, existing, crate::program::BUILD);
    let mut runner = runner.map_err(|error| match error {
        RunError::Other { .. } | RunError::Old(_) => Failure::Failed(format!(
            "{}: {error}; --force replaces it by a new table, -o FILE names another",
            shown(&args.output)
        )),
        other => other.into(),
    })?;
    let kept = format!("Measurements are kept in {}; the same command continues them.", shown(&args.output));
    let stop = interrupt::cancel_flag(kept)?;
    let had = runner.document().rows.len();
    if had > 0 && !runner.document().complete {
        message::print(&format!("{} has {had} measurements; continuing", shown(&args.output)));
    }
    let bar = Countdown::new();
    let outcome = runner.run(&stop, |progress| {
        let next = progress.next.as_ref().map_or_else(String::new, describe);
        bar.update(progress.done, progress.all, progress.left, &next);
    });
    bar.finish();
    outcome?;
    let document = runner.document();
    if !document.complete {
        let interrupted = stop.load(Ordering::Relaxed);
        let why = if interrupted { "interrupted" } else { "not complete" };
        return Err(Failure::Failed(format!(
            "{why} after {} measurements, which are in {}",
            document.rows.len(),
            shown(&args.output)
        )));
    }
    #[cfg(feature = "charts")]
    if let Some(picture) = picture {
        picture.draw("baseline", &cutline_baseline_runner::picture::baseline(document))?;
    }
    print(args, document)
}

/// Locks the table that this run writes, after a check that its file may be written.
fn lock(path: &Path) -> Result<FileLock, Failure> {
    let lock = cutline_baseline::check_path(path).and_then(|()| cutline_baseline::lock(path));
    lock.map_err(|error| {
        let remedy = if matches!(error, FileError::Locked { .. }) {
            "; wait until it has ended, or name another file with -o FILE"
        } else {
            ""
        };
        Failure::Failed(format!("{error}{remedy}"))
    })
}

/// Returns the table that is in the file; `None` if there is none, or it is to be replaced.
fn existing(args: &Args) -> Result<Option<BaselineDocument>, Failure> {
    if args.force && !args.show {
        return Ok(None);
    }
    let loaded = cutline_baseline::load(&args.output);
    loaded.map_err(|error| match error {
        FileError::System { .. } | FileError::Locked { .. } => Failure::Failed(error.to_string()),
        FileError::Damaged { .. } | FileError::Format { .. } => {
            Failure::Failed(format!("{error}; --force replaces it by a new table, -o FILE names another"))
        }
    })
}

fn far(args: &Args) -> Result<FarEndKind, Failure> {
    let Some(receiver) = &args.receiver else {
        return Ok(if args.namespaces { FarEndKind::Namespaces } else { FarEndKind::Loopback });
    };
    let from = args.from.map(|address| address.with_port(0));
    let addresses = resolve(receiver, from)?;
    let key = args.key_file.as_deref().map(key).transpose()?;
    Ok(FarEndKind::Host { name: receiver.clone(), addresses, key, from })
}

fn plan(args: &Args) -> BaselinePlan {
    let or =
        |given: &[u64], default: &[u64]| if given.is_empty() { default.to_vec() } else { given.to_vec() };
    let is_local = args.receiver.is_none();
    // A host elsewhere may be behind a slow link that others use, too.
    let most = if is_local { Rate::from_bps(1_000_000_000_000) } else { Rate::from_mbps(100) };
    let mut protocols = args.protocols.clone();
    protocols.sort_unstable();
    protocols.dedup();
    BaselinePlan {
        protocols,
        rates: if args.rates.is_empty() {
            PAPER_RATES.map(Rate::from_kbps).to_vec()
        } else {
            args.rates.clone()
        },
        shares: SHARES.to_vec(),
        margins: MARGINS.to_vec(),
        blocks: or(&args.blocks, &PAPER_BLOCKS),
        duration: args.duration,
        least_blocks: args.least_blocks,
        max_rate: args.max_rate.unwrap_or(most),
        unlimited_udp: args.flood || is_local,
        seed: args.seed,
    }
}

/// Returns a measurement in a few words.
fn describe(key: &RowKey) -> String {
    let load = match (key.load_bps, key.requested_percent) {
        (None, _) => "no limit".to_owned(),
        (Some(load), None) => Rate::from_bps(load).to_string(),
        (Some(load), Some(percent)) => format!("{} in {percent} %", Rate::from_bps(load)),
    };
    format!("{} {load}, {} B, {} buffers", key.protocol, key.block, key.queue.name())
}

/// Prints the table, and whether it is valid here.
fn print(args: &Args, document: &BaselineDocument) -> Result<(), Failure> {
    let now = clock::unix_time().as_nanos() / 1_000_000_000;
    let invalid = document.check(&HostFingerprint::of_this_host(), now).err().map(|why| {
        let remedy = match why {
            Invalid::Host { .. } | Invalid::Old { .. } => "; --force replaces it by a new table",
            Invalid::Incomplete => "",
        };
        format!("This table is not valid here: {why}{remedy}.")
    });
    if args.json {
        // A command that measures nothing says why.
        if let Some(invalid) = invalid.filter(|_| !args.show) {
            message::print(&invalid);
        }
        return output::print_json(document);
    }
    let validity = invalid.map_or_else(String::new, |invalid| format!("\n{invalid}\n"));
    output::print_wrapped(&(tables::show(document) + &validity))
}

fn shown(path: &Path) -> String {
    Printable(path.display()).to_string()
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Control(error) => error.into(),
            RunError::Traffic(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}
