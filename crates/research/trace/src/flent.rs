//! Interval series of simulated runs and of measurements as a flent data file (`.flent.gz`): gzipped JSON, version 4 of flent's format.
//!
//! flent draws the series that its own tests define, so the file claims to be of flent's test `rtt_fair_var_up`: any number of
//! hosts, a throughput and a delay for each, sums, averages and Jain's fairness. A host is a flow here:
//!
//! | flent's series | meaning |
//! | --- | --- |
//! | `TCP upload BE FLOW` | goodput, Mbit/s, whatever the transport |
//! | `TCP upload sum`, `avg`, `fairness` | over the flows |
//! | `Ping (ms) ICMP FLOW` | mean one-way delay, ms: not a round trip; missing where nothing was received |
//! | `Ping (ms) avg` | mean of the flows' |
//! | `qdisc_stats_LINK` | of each queue with a series, in the raw values: backlog, drops, marks, delay |
//!
//! Plots that show them: `totals`, `upload`, `ping`, `ping_cdf`, `box_combine_up`, `bar_fairness`, `backlog`, `drops`,
//! `delay` and more. Time 0 is 1970-01-01, so the same seed gives the same bytes.

use cutline_results::{QueueSeriesRow, RunResult, SeriesRow};
use cutline_scenario::Scenario;
use flate2::{Compression, GzBuilder};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// The version of flent's format; flent 2 reads up to this.
const FORMAT: u32 = 4;
/// The flent whose format this is.
const FLENT: &str = "2.1.1";
/// flent's test whose plots fit.
const TEST: &str = "rtt_fair_var_up";
const BEGINNING: &str = "1970-01-01T00:00:00.000000Z";
/// flent's settings list links with commas between.
const SEPARATOR: &str = ",";

/// Reason why there is no flent file of a run.
#[derive(Debug, thiserror::Error)]
pub enum FlentError {
    /// Nothing to draw.
    #[error("no flow keeps its interval series: set flow.NAME.series=true for the flows to draw")]
    NoSeries,
    /// Nothing was received.
    #[error("no flow has received anything, so there is nothing to draw")]
    NoIntervals,
    /// The file cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A measurement over a real network.
#[derive(Clone, Debug, PartialEq)]
pub struct RealNetwork {
    /// A name for the file.
    pub name: String,
    /// The title of plots.
    pub title: String,
    /// Note for a reader.
    pub note: String,
    /// The duration, seconds.
    pub length_s: f64,
    /// The width of the intervals, seconds.
    pub step_s: f64,
    /// The flows, with different names.
    pub flows: Vec<MeasuredFlow>,
}

/// The intervals of a flow. Those that are missing at the end had no packets.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFlow {
    /// The flow's name.
    pub name: String,
    /// Goodput in each interval, bit/s.
    pub goodput_bps: Vec<f64>,
    /// Mean one-way delay in each interval, ms; `None` without packets.
    pub delay_ms: Vec<Option<f64>>,
}

/// One flow's or one total's values, one an interval.
struct Series {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
}

/// Writes a run's interval series as a flent data file. `version` is Cutline's.
///
/// # Errors
/// When no flow has a series, or the file cannot be written.
pub fn write(
    out: impl Write,
    scenario: &Scenario,
    seed: u64,
    version: &str,
    run: &RunResult,
) -> Result<(), FlentError> {
    let flows: Vec<&[SeriesRow]> = run.series.chunk_by(|one, next| one.flow == next.flow).collect();
    let Some(first) = flows.first() else { return Err(FlentError::NoSeries) };
    let ends: Vec<f64> = first.iter().map(|row| row.end_s).collect();
    let measured: Vec<_> = flows.iter().map(|rows| simulated(rows)).collect();
    let series = all_series(&measured);
    let links: Vec<&str> = queues(&run.queue_series).map(|rows| &*rows[0].link).collect();
    let about = About {
        name: &scenario.name,
        title: scenario.title.as_ref().unwrap_or(&scenario.name),
        note: format!(
            "{} with seed {seed}, simulated by cutline {version}; delays are one-way",
            scenario.name
        ),
        hosts: measured.iter().map(|flow| &*flow.name).collect(),
        length_s: scenario.duration.as_secs_f64(),
        step_s: scenario.interval.as_secs_f64(),
        links: &links.join(SEPARATOR),
    };
    write_document(out, &about.metadata(&series), &ends, &series, &run.queue_series)
}

/// Writes a measurement as a flent data file.
///
/// # Errors
/// When no flow has an interval, or the file cannot be written.
pub fn write_measured(out: impl Write, measured: &RealNetwork) -> Result<(), FlentError> {
    let RealNetwork { name, title, note, length_s, step_s, ref flows } = measured.clone();
    let intervals = flows.iter().map(|flow| flow.goodput_bps.len()).max().unwrap_or(0);
    if intervals == 0 {
        return Err(FlentError::NoIntervals);
    }
    let filled = |flow: &MeasuredFlow| {
        let mut flow = flow.clone();
        flow.goodput_bps.resize(intervals, 0.0);
        flow.delay_ms.resize(intervals, None);
        flow
    };
    let flows: Vec<_> = flows.iter().map(filled).collect();
    let ends: Vec<f64> = (1..=intervals).map(|interval| interval as f64 * step_s).collect();
    let series = all_series(&flows);
    let hosts: Vec<&str> = flows.iter().map(|flow| &*flow.name).collect();
    let about = About { name: &name, title: &title, note, hosts, length_s, step_s, links: "" };
    write_document(out, &about.metadata(&series), &ends, &series, &[])
}

fn write_document(
    out: impl Write,
    metadata: &Value,
    ends: &[f64],
    series: &[Series],
    queue_series: &[QueueSeriesRow],
) -> Result<(), FlentError> {
    let document = json!({
        "version": FORMAT,
        "metadata": metadata,
        "x_values": ends,
        "results": results(series),
        "raw_values": raw_values(ends, series, queue_series),
    });
    let mut zipped = GzBuilder::new().mtime(0).write(out, Compression::default());
    serde_json::to_writer(&mut zipped, &document).map_err(io::Error::from)?;
    Ok(zipped.finish()?.flush()?)
}

/// Returns the intervals of a simulated flow.
fn simulated(rows: &[SeriesRow]) -> MeasuredFlow {
    MeasuredFlow {
        name: rows[0].flow.to_string(),
        goodput_bps: rows.iter().map(|row| row.goodput_bps).collect(),
        delay_ms: rows.iter().map(|row| row.one_way_mean_ms).collect(),
    }
}

fn all_series(flows: &[MeasuredFlow]) -> Vec<Series> {
    let goodput = flows.iter().map(|flow| Series {
        name: format!("TCP upload BE {}", flow.name),
        unit: "Mbits/s",
        values: flow.goodput_bps.iter().map(|bps| Some(bps * 1e-6)).collect(),
    });
    let goodput: Vec<Series> = goodput.collect();
    let delay = flows.iter().map(|flow| Series {
        name: format!("Ping (ms) ICMP {}", flow.name),
        unit: "ms",
        values: flow.delay_ms.clone(),
    });
    let delay: Vec<Series> = delay.collect();
    let totals = [
        total("TCP upload sum", "Mbits/s", &goodput, |values| Some(values.iter().sum())),
        total("TCP upload avg", "Mbits/s", &goodput, mean),
        total("TCP upload fairness", "Idx", &goodput, fairness),
        total("Ping (ms) avg", "ms", &delay, mean),
    ];
    goodput.into_iter().chain(delay).chain(totals).collect()
}

/// A value for each interval from those that the parts have there.
fn total(name: &str, unit: &'static str, parts: &[Series], of: impl Fn(&[f64]) -> Option<f64>) -> Series {
    let intervals = parts[0].values.len();
    let at = |index: usize| parts.iter().filter_map(|part| part.values[index]).collect::<Vec<f64>>();
    Series { name: name.to_owned(), unit, values: (0..intervals).map(|index| of(&at(index))).collect() }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Jain's index (RFC 5166 section 3.3); `None` where all rates are 0.
fn fairness(values: &[f64]) -> Option<f64> {
    let (sum, squares) = (values.iter().sum::<f64>(), values.iter().map(|value| value * value).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Metadata of a file.
struct About<'a> {
    name: &'a str,
    title: &'a str,
    note: String,
    /// Hosts for flent: the flows.
    hosts: Vec<&'a str>,
    length_s: f64,
    step_s: f64,
    /// The links whose queues have a series, with [`SEPARATOR`] between.
    links: &'a str,
}

impl About<'_> {
    fn metadata(&self, series: &[Series]) -> Value {
        let units = series.iter().map(|series| (series.name.clone(), json!({ "UNITS": series.unit })));
        json!({
            "NAME": TEST,
            "TITLE": self.title,
            "NOTE": self.note,
            "TIME": BEGINNING,
            "T0": BEGINNING,
            "LOCAL_HOST": "cutline",
            "HOST": self.hosts[0],
            "HOSTS": self.hosts,
            "LENGTH": self.length_s,
            "TOTAL_LENGTH": self.length_s,
            "STEP_SIZE": self.step_s,
            "IP_VERSION": 4,
            "FLENT_VERSION": FLENT,
            "DATA_FILENAME": format!("{}.flent.gz", self.name),
            "TEST_PARAMETERS": { "qdisc_stats_hosts": self.links, "qdisc_stats_interfaces": self.links },
            "SERIES_META": units.collect::<Map<String, Value>>(),
        })
    }
}

fn results(series: &[Series]) -> Map<String, Value> {
    series.iter().map(|series| (series.name.clone(), json!(series.values))).collect()
}

/// Returns the values at each moment; a moment without a value is left out.
fn raw_values(ends: &[f64], series: &[Series], queue_series: &[QueueSeriesRow]) -> Map<String, Value> {
    let point = |(end, value): (&f64, &Option<f64>)| value.map(|value| json!({ "t": end, "val": value }));
    let points = |series: &Series| ends.iter().zip(&series.values).filter_map(point).collect::<Vec<Value>>();
    let series = series.iter().map(|series| (series.name.clone(), Value::from(points(series))));
    let queues = queues(queue_series).map(|rows| {
        let points = rows.iter().map(queue_point).collect::<Vec<Value>>();
        (format!("qdisc_stats_{}", rows[0].link), Value::from(points))
    });
    series.chain(queues).collect()
}

fn queues(rows: &[QueueSeriesRow]) -> impl Iterator<Item = &[QueueSeriesRow]> {
    rows.chunk_by(|one, next| one.link == next.link)
}

/// A queue's interval, by the names that flent gives to the counters of `tc -s qdisc`.
fn queue_point(row: &QueueSeriesRow) -> Value {
    let mut point = json!({
        "t": row.end_s,
        "backlog_bytes": row.backlog_bytes,
        "backlog_packets": row.backlog_packets,
        "dropped": row.dropped,
        "ecn_mark": row.marked,
    });
    if let Some(delay) = row.delay_mean_ms {
        point["delay"] = json!(delay);
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_jains() {
        assert_eq!(fairness(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(fairness(&[1.0, 0.0]), Some(0.5));
        assert_eq!(fairness(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_total_takes_what_is_there() {
        let series =
            |values: &[Option<f64>]| Series { name: String::new(), unit: "ms", values: values.to_vec() };
        let parts = [series(&[Some(1.0), None]), series(&[Some(3.0), None])];
        assert_eq!(total("avg", "ms", &parts, mean).values, [Some(2.0), None]);
    }

    #[test]
    fn a_queue_without_departures_has_no_delay() {
        let row = QueueSeriesRow { end_s: 1.0, dropped: 3, ..QueueSeriesRow::default() };
        let point = queue_point(&row);
        assert_eq!((&point["dropped"], point.get("delay")), (&json!(3), None));
    }
}
