//! The options `--pcap`, `--flent` and `--watch`: one run as files for other tools, and in the terminal.

use super::watch::{self, Screen, Speed};
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::program::VERSION;
use cutline_results::RunResult;
use cutline_scenario::{Scenario, SimulateError, SweepPoint};
use cutline_sim::{Network, Simulation};
use cutline_trace::{Capture, flent};
use cutline_units::{Duration, Instant};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The options for traces.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// Write the packets at a link's queue to FILE as pcapng, for Wireshark (docs/guide/traces.md); for a single run only
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pcap: Option<PathBuf>,
    /// Link that --pcap shows, such as "r1->r2", together with its reverse link [default: the bottleneck, or the first
    /// link with an AQM]
    #[arg(long, value_name = "LINK", requires = "pcap")]
    pcap_link: Option<String>,
    /// Write the interval series to FILE for flent's plotter; the name must end in .gz; for a single run only
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    flent: Option<PathBuf>,
    /// Show queues and flows in the terminal during the run, SPEED simulated seconds a second or as fast as they come; for a
    /// single run only
    #[arg(long, value_name = "SPEED|max", num_args = 0..=1, require_equals = true, default_missing_value = "10", value_parser = watch::speed, conflicts_with_all = ["resume", "quiet"])]
    watch: Option<Speed>,
}

/// The open files of the traces.
pub struct Traces {
    pcap: Option<(OutputFile, cutline_sim::LinkId)>,
    flent: Option<OutputFile>,
    watch: Option<Speed>,
}

impl TraceArgs {
    /// Opens the files before the simulation, so that errors are reported early.
    ///
    /// # Errors
    /// When there is more than one run, the link does not exist, a file exists and `force` is not given, or a file cannot be created.
    pub fn open(&self, points: &[SweepPoint], force: bool) -> Result<Traces, Failure> {
        let options = [
            ("--pcap", self.pcap.is_some()),
            ("--flent", self.flent.is_some()),
            ("--watch", self.watch.is_some()),
        ];
        if let Some((option, _)) = options.into_iter().find(|(_, is_set)| *is_set) {
            refuse_several_runs(option, points, points[0].scenario.seeds)?;
        }
        if self.watch.is_some() {
            watch::terminal()?;
        }
        let link = self.pcap.as_ref().map(|_| self.captured_link(&points[0].scenario)).transpose()?;
        let pcap = self.pcap.as_deref().map(|path| OutputFile::create(path, force)).transpose()?.zip(link);
        let flent = self.flent.as_deref().map(|path| OutputFile::for_flent(path, force)).transpose()?;
        Ok(Traces { pcap, flent, watch: self.watch })
    }

    /// Returns whether the run is shown while it runs.
    pub const fn watches(&self) -> bool {
        self.watch.is_some()
    }

    fn captured_link(&self, scenario: &Scenario) -> Result<cutline_sim::LinkId, Failure> {
        let network = scenario.network().map_err(|error| Failure::Usage(error.to_string()))?;
        cutline_trace::link_named(&network, self.pcap_link.as_deref())
            .map_err(|error| Failure::Usage(format!("--pcap-link: {error}")))
    }
}

impl Traces {
    /// Simulates a scenario and writes its traces. `progress` is called with the simulated time since its last call.
    ///
    /// # Errors
    /// When the scenario cannot be simulated, the run was interrupted, or a file cannot be written.
    pub fn simulate(
        &self,
        scenario: &Scenario,
        seed: u64,
        threads: impl Fn(&Network) -> NonZeroUsize,
        cancel: &AtomicBool,
        progress: &(dyn Fn(Duration) + Sync),
    ) -> Result<RunResult, String> {
        let network = scenario.network_of(seed).map_err(|error| error.to_string())?;
        let mut screen = self.watch.map(|speed| Screen::new(scenario, &network, speed));
        let mut before = Instant::ZERO;
        let mut after_step = |simulation: &Simulation| {
            progress(simulation.time().saturating_since(before));
            before = simulation.time();
            if let Some(screen) = &mut screen {
                screen.show(simulation, cancel);
            }
        };
        let threads = threads(&network);
        let result = match &self.pcap {
            None if threads > NonZeroUsize::MIN && self.watch.is_none() => {
                let mut before = Instant::ZERO;
                let step = |now: Instant| {
                    progress(now.saturating_since(before));
                    before = now;
                };
                let run = scenario.simulate_on(threads, &network, seed, cancel, step);
                run.map_err(|error| error.to_string())?
            }
            None => scenario
                .simulate_network(&network, seed, cancel, |simulation| {
                    after_step(simulation);
                    Ok::<_, SimulateError>(())
                })
                .map_err(|error| error.to_string())?,
            Some((target, link)) => {
                let application = format!("cutline {VERSION}");
                let capture = Capture { link: *link, application: &application };
                cutline_trace::simulate_captured(scenario, seed, cancel, capture, target.file(), after_step)
                    .map_err(|error| target.message(&error))?
            }
        };
        if let Some(target) = &self.flent {
            flent::write(target.file(), scenario, seed, VERSION, &result)
                .map_err(|error| target.message(&error))?;
        }
        Ok(result)
    }
}

/// Returns an error if there is more than one run: a single point of a sweep with a single seed is needed.
pub fn refuse_several_runs(what: &str, points: &[SweepPoint], seeds: u64) -> Result<(), Failure> {
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
        "{what} is for a single run, but there are {runs}: {points}{seeds}; choose one, for example: {}",
        remedy.join(" ")
    )))
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./{}:".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{text}'") }
}
