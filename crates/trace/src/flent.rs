//! Interval series as a flent data file (`.flent.gz`): gzipped JSON, version 4 of flent's format.
//!
//! flent draws what its own tests define, so the file says that it is of flent's test `rtt_fair_var_up`: any number of
//! hosts, a throughput and a delay for each, sums, averages and Jain's fairness. A host is a flow here:
//!
//! | flent's series | what it is |
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
use std::sync::Arc;

/// The version of flent's format; flent 2 reads up to this.
const FORMAT: u32 = 4;
/// The flent whose format this is.
const FLENT: &str = "2.1.1";
/// flent's test whose plots fit.
const TEST: &str = "rtt_fair_var_up";
const BEGINNING: &str = "1970-01-01T00:00:00.000000Z";
/// flent's settings list links with commas between.
const SEPARATOR: &str = ",";

/// Why there is no flent file of a run.
#[derive(Debug, thiserror::Error)]
pub enum FlentError {
    /// Nothing to draw.
    #[error("no flow keeps its interval series: set flow.NAME.series=true for those that are to be drawn")]
    NoSeries,
    /// The file cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
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
    let series = all_series(&flows);
    let document = json!({
        "version": FORMAT,
        "metadata": metadata(scenario, seed, version, &flows, run, &series),
        "x_values": ends,
        "results": results(&series),
        "raw_values": raw_values(&ends, &series, &run.queue_series),
    });
    let mut zipped = GzBuilder::new().mtime(0).write(out, Compression::default());
    serde_json::to_writer(&mut zipped, &document).map_err(io::Error::from)?;
    Ok(zipped.finish()?.flush()?)
}

fn all_series(flows: &[&[SeriesRow]]) -> Vec<Series> {
    let name = |rows: &[SeriesRow]| Arc::clone(&rows[0].flow);
    let goodput = flows.iter().map(|rows| Series {
        name: format!("TCP upload BE {}", name(rows)),
        unit: "Mbits/s",
        values: rows.iter().map(|row| Some(row.goodput_bps * 1e-6)).collect(),
    });
    let goodput: Vec<Series> = goodput.collect();
    let delay = flows.iter().map(|rows| Series {
        name: format!("Ping (ms) ICMP {}", name(rows)),
        unit: "ms",
        values: rows.iter().map(|row| row.one_way_mean_ms).collect(),
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

/// Jain's index (RFC 5166 section 3.3); `None` where nobody gets anything.
fn fairness(values: &[f64]) -> Option<f64> {
    let (sum, squares) = (values.iter().sum::<f64>(), values.iter().map(|value| value * value).sum::<f64>());
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

fn metadata(
    scenario: &Scenario,
    seed: u64,
    version: &str,
    flows: &[&[SeriesRow]],
    run: &RunResult,
    series: &[Series],
) -> Value {
    let hosts: Vec<&str> = flows.iter().map(|rows| &*rows[0].flow).collect();
    let seconds = scenario.duration.as_secs_f64();
    let links: Vec<&str> = queues(&run.queue_series).map(|rows| &*rows[0].link).collect();
    let links = links.join(SEPARATOR);
    let units = series.iter().map(|series| (series.name.clone(), json!({ "UNITS": series.unit })));
    json!({
        "NAME": TEST,
        "TITLE": scenario.title.as_ref().unwrap_or(&scenario.name),
        "NOTE": format!("{} with seed {seed}, simulated by cutline {version}; delays are one-way", scenario.name),
        "TIME": BEGINNING,
        "T0": BEGINNING,
        "LOCAL_HOST": "cutline",
        "HOST": hosts[0],
        "HOSTS": hosts,
        "LENGTH": seconds,
        "TOTAL_LENGTH": seconds,
        "STEP_SIZE": scenario.interval.as_secs_f64(),
        "IP_VERSION": 4,
        "FLENT_VERSION": FLENT,
        "DATA_FILENAME": format!("{}.flent.gz", scenario.name),
        "TEST_PARAMETERS": { "qdisc_stats_hosts": links, "qdisc_stats_interfaces": links },
        "SERIES_META": units.collect::<Map<String, Value>>(),
    })
}

fn results(series: &[Series]) -> Map<String, Value> {
    series.iter().map(|series| (series.name.clone(), json!(series.values))).collect()
}

/// What there is at each moment; a moment without a value is left out.
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

/// A queue's interval, by the names that flent gives to what `tc -s qdisc` tells.
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
