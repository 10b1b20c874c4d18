//! `--pcap` and `--flent`: one run as the files of other tools.

use crate::exit::Failure;
use crate::program::VERSION;
use cutline_results::RunResult;
use cutline_scenario::{Scenario, SweepPoint};
use cutline_trace::{Capture, flent};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Which traces are asked for.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// Write the packets at a link's queue to FILE as pcapng, for Wireshark (docs/guide/traces.md); of one run only
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pcap: Option<PathBuf>,
    /// The link that --pcap shows, such as "r1->r2", with the one back beside it [default: the bottleneck, or the first
    /// link with an AQM]
    #[arg(long, value_name = "LINK", requires = "pcap")]
    pcap_link: Option<String>,
    /// Write the interval series to FILE, whose name ends in .flent.gz, for flent's plotter; of one run only
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    flent: Option<PathBuf>,
}

/// The files that are to be written.
pub struct Traces {
    pcap: Option<(Target, cutline_sim::LinkId)>,
    flent: Option<Target>,
}

/// A file that is open.
struct Target {
    path: PathBuf,
    file: File,
}

impl TraceArgs {
    /// Opens the files, so that what cannot be written is known before anything is simulated.
    ///
    /// # Errors
    /// When there is more than one run, no such link, or a file cannot be made.
    pub fn open(&self, points: &[SweepPoint]) -> Result<Traces, Failure> {
        let options = [("--pcap", &self.pcap), ("--flent", &self.flent)];
        if let Some((option, _)) = options.into_iter().find(|(_, path)| path.is_some()) {
            refuse_several_runs(option, points)?;
        }
        let pcap = self.pcap.as_deref().map(|path| self.open_pcap(path, &points[0].scenario)).transpose()?;
        let flent = self.flent.as_deref().map(open_flent).transpose()?;
        Ok(Traces { pcap, flent })
    }

    fn open_pcap(&self, path: &Path, scenario: &Scenario) -> Result<(Target, cutline_sim::LinkId), Failure> {
        let network = scenario.network().map_err(|error| Failure::Usage(error.to_string()))?;
        let link = cutline_trace::link_named(&network, self.pcap_link.as_deref())
            .map_err(|error| Failure::Usage(format!("--pcap-link: {error}")))?;
        Ok((Target::create(path)?, link))
    }
}

impl Traces {
    /// Simulates a scenario and writes what is asked for.
    ///
    /// # Errors
    /// When it cannot be simulated, was interrupted, or a file cannot be written.
    pub fn simulate(&self, scenario: &Scenario, seed: u64, cancel: &AtomicBool) -> Result<RunResult, String> {
        let result = match &self.pcap {
            None => scenario.simulate(seed, cancel).map_err(|error| error.to_string())?,
            Some((target, link)) => {
                let application = format!("cutline {VERSION}");
                let capture = Capture { link: *link, application: &application };
                cutline_trace::simulate_captured(scenario, seed, cancel, capture, &target.file)
                    .map_err(|error| target.failure(&error))?
            }
        };
        if let Some(target) = &self.flent {
            flent::write(&target.file, scenario, seed, VERSION, &result)
                .map_err(|error| target.failure(&error))?;
        }
        Ok(result)
    }
}

impl Target {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path)
            .map_err(|error| Failure::Failed(format!("{}: cannot be written: {error}", path.display())))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn failure(&self, error: &dyn std::error::Error) -> String {
        format!("{}: {error}", self.path.display())
    }
}

fn open_flent(path: &Path) -> Result<Target, Failure> {
    // flent goes by the name.
    if path.extension().is_none_or(|extension| extension != "gz") {
        let (shown, name) = (path.display(), path.with_extension("flent.gz"));
        let why =
            format!("--flent {shown}: flent reads a file as gzipped by its name: call it {}", name.display());
        return Err(Failure::Usage(why));
    }
    Target::create(path)
}

/// A trace is of one run: one point of a sweep with one seed.
fn refuse_several_runs(option: &str, points: &[SweepPoint]) -> Result<(), Failure> {
    let seeds = points[0].scenario.seeds;
    let mut remedy: Vec<String> = Vec::new();
    if points.len() > 1 {
        let settings = points[0].settings.iter().map(|(key, value)| quoted(&format!("{key}={value}")));
        remedy.push("--set sweep={}".to_owned());
        remedy.extend(settings.map(|setting| format!("--set {setting}")));
    }
    if seeds > 1 {
        remedy.push("--seeds 1".to_owned());
    }
    if remedy.is_empty() {
        return Ok(());
    }
    let (points, runs) = (points.len(), points.len() as u64 * seeds);
    let points = if points == 1 { String::new() } else { format!("{points} points of a sweep x ") };
    let seeds = if seeds == 1 { "1 seed".to_owned() } else { format!("{seeds} seeds") };
    Err(Failure::Usage(format!(
        "{option} writes one run, and there are {runs}: {points}{seeds}; choose one, such as: {}",
        remedy.join(" ")
    )))
}

/// For a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./{}:".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{text}'") }
}
