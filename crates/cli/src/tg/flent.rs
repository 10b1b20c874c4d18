//! The option `--flent`: the intervals of a measurement as a file for flent's plotter.

use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::program::VERSION;
use cutline_trace::flent::{MeasuredFlow, RealNetwork, write_measured};
use cutline_traffic::{GroupTotals, SendResults};
use cutline_units::Duration;

/// The width of intervals if none is given: that of flent's own tests.
pub const INTERVAL: Duration = Duration::from_millis(200);

/// Writes a series for each of `rows`: flows, or groups of flows.
pub fn write(target: &OutputFile, found: &SendResults<'_>, rows: &[GroupTotals]) -> Result<(), Failure> {
    let width = found.interval.unwrap_or(INTERVAL).as_secs_f64();
    let flow = |row: &GroupTotals| MeasuredFlow {
        name: row.name.clone(),
        goodput_bps: row.totals.intervals.iter().flatten().map(|interval| interval.goodput_bps).collect(),
        delay_ms: row.totals.intervals.iter().flatten().map(|interval| interval.mean_delay_ms).collect(),
    };
    let measured = RealNetwork {
        name: "cutline-tg".to_owned(),
        title: format!("cutline tg, {}", found.outcome.receiver),
        note: format!(
            "measured by cutline {VERSION} with seed {}; delays are one-way, of messages over TCP and of datagrams otherwise",
            found.seed
        ),
        length_s: found.duration.as_secs_f64(),
        step_s: width,
        flows: rows.iter().map(flow).collect(),
    };
    write_measured(target.file(), &measured).map_err(|error| Failure::Failed(target.message(&error)))
}
