//! The option `--flent`: the intervals of a measurement as a file for flent's plotter.

use super::found::Found;
use crate::exit::Failure;
use crate::program::VERSION;
use cutline_text::Printable;
use cutline_trace::flent::{Measured, MeasuredFlow, write_measured};
use cutline_traffic::GroupTotals;
use cutline_units::Duration;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// The width of intervals if none is given: that of flent's own tests.
pub const INTERVAL: Duration = Duration::from_millis(200);

/// The file.
pub struct Target {
    path: PathBuf,
    file: File,
}

impl Target {
    /// Creates the file, before anything is sent. One that has something in it is never replaced.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let shown = Printable(path.display());
        // flent decides by the name whether a file is compressed.
        if path.extension().is_none_or(|extension| extension != "gz") {
            let name = path.with_extension("flent.gz");
            let name = Printable(name.display());
            return Err(Failure::Usage(format!("--flent {shown}: the name must end in .gz, such as {name}")));
        }
        let cannot = |error: std::io::Error| Failure::Failed(format!("{shown}: cannot be written: {error}"));
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(cannot)?;
        // An empty one is what a measurement that failed has left.
        if file.metadata().map_err(cannot)?.len() > 0 {
            return Err(Failure::Failed(format!(
                "{shown} exists and is kept: remove it, or choose another name"
            )));
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes a series for each of `rows`: flows, or groups of flows.
    pub fn write(self, found: &Found<'_>, rows: &[GroupTotals]) -> Result<(), Failure> {
        let width = found.interval.unwrap_or(INTERVAL).as_secs_f64();
        let flow = |row: &GroupTotals| MeasuredFlow {
            name: row.name.clone(),
            goodput_bps: row.totals.intervals.iter().flatten().map(|interval| interval.goodput_bps).collect(),
            delay_ms: row.totals.intervals.iter().flatten().map(|interval| interval.mean_delay_ms).collect(),
        };
        let measured = Measured {
            name: "cutline-tg".to_owned(),
            title: format!("cutline tg, {}", found.receiver),
            note: format!(
                "measured by cutline {VERSION} with seed {}; delays are one-way, of messages over TCP and of datagrams otherwise",
                found.seed
            ),
            length_s: found.duration.as_secs_f64(),
            step_s: width,
            flows: rows.iter().map(flow).collect(),
        };
        write_measured(&self.file, &measured)
            .map_err(|error| Failure::Failed(format!("{}: {error}", Printable(self.path.display()))))
    }
}
