//! What was found, as tables for people.

use super::found::Found;
use crate::table::{Table, number};
use cutline_traffic::control::ClockReport;
use cutline_traffic::{MeterReport, Summary};
use cutline_units::{Duration, Histogram};

/// The most failures that are told one by one.
const MOST_FAILURES: usize = 10;
/// Above this a generator's own lateness should be known to who reads its delays.
const LATE: Duration = Duration::from_millis(5);

/// Everything of both ends.
pub fn sent(found: &Found<'_>) -> String {
    let elapsed = found.outcome.elapsed;
    let mut rows: Vec<(&str, &str, &Summary)> = found
        .flows
        .groups
        .iter()
        .zip(&found.groups)
        .map(|(group, of)| (&*group.name, group.transport, of))
        .collect();
    if rows.len() > 1 {
        rows.push(("all", "", &found.total));
    }
    let mut text = format!("after {:.1} s\n", elapsed.as_secs_f64());
    if let Some(interval) = found.interval {
        text += &intervals(&found.total, interval);
    }
    text += &throughput(&rows, elapsed);
    text += &times("delay, ms", &rows, |of| (&of.delay, Some(&of.ipdv)));
    text += &times("response time, ms", &rows, |of| (&of.responses, None));
    text += &clock(&found.outcome.clock);
    text += &lateness(&found.total);
    text + &trouble(found)
}

/// What a receiver found, whose flows have numbers and no names.
pub fn received(report: &MeterReport, elapsed: Duration, interval: Option<Duration>) -> String {
    let mut all = Summary::default();
    report.flows.iter().for_each(|flow| all.add_received(flow));
    all.flows = report.flows.len() as u64;
    let rows = [("all", "", &all)];
    let series = interval.map_or_else(String::new, |interval| intervals(&all, interval));
    series
        + &throughput(&rows, elapsed)
        + &times("delay, ms", &rows, |of| (&of.delay, Some(&of.ipdv)))
        + &strangers(report)
}

fn throughput(rows: &[(&str, &str, &Summary)], elapsed: Duration) -> String {
    let mut table = Table::new(
        2,
        &[
            "flows",
            "over",
            "number",
            "sent Mbit/s",
            "received Mbit/s",
            "packets",
            "lost",
            "lost %",
            "late",
            "marked",
            "resent",
            "refused KB",
        ],
    );
    let seconds = elapsed.as_secs_f64().max(1e-9);
    for (name, transport, of) in rows {
        let loss = of.loss().filter(|_| *transport != "tcp");
        table.add(vec![
            (*name).to_owned(),
            (*transport).to_owned(),
            of.flows.to_string(),
            number(of.sent_bytes as f64 * 8e-6 / seconds),
            number(of.goodput_bps(elapsed) * 1e-6),
            of.received_packets.to_string(),
            of.lost.to_string(),
            loss.map_or_else(|| "-".to_owned(), |loss| number(loss * 100.0)),
            of.reordered.to_string(),
            of.marked.to_string(),
            of.retransmissions.to_string(),
            number(of.refused_bytes as f64 * 1e-3),
        ]);
    }
    format!("\n{}", table.render())
}

/// Distributions by group, if there is anything in them, and the mean of another beside them.
fn times<'s>(
    head: &str,
    rows: &[(&str, &str, &'s Summary)],
    of: impl Fn(&'s Summary) -> (&'s Histogram, Option<&'s Histogram>),
) -> String {
    let mut table =
        Table::new(1, &[head, "number", "least", "mean", "median", "95 %", "99 %", "greatest", "variation"]);
    for (name, _, summary) in rows {
        let (histogram, other) = of(summary);
        if histogram.count() == 0 {
            continue;
        }
        let ms =
            |time: Option<Duration>| time.map_or_else(|| "-".to_owned(), |time| number(time.as_millis_f64()));
        table.add(vec![
            (*name).to_owned(),
            histogram.count().to_string(),
            ms(histogram.min()),
            ms(histogram.mean()),
            ms(histogram.quantile(0.5)),
            ms(histogram.quantile(0.95)),
            ms(histogram.quantile(0.99)),
            ms(histogram.max()),
            ms(other.and_then(Histogram::mean)),
        ]);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

fn intervals(all: &Summary, width: Duration) -> String {
    let mut table = Table::new(0, &["from s", "Mbit/s", "packets", "lost", "marked", "mean delay ms"]);
    for (i, interval) in (0_u64..).zip(&all.intervals) {
        table.add(vec![
            number(i as f64 * width.as_secs_f64()),
            number(interval.bytes as f64 * 8e-6 / width.as_secs_f64()),
            interval.packets.to_string(),
            interval.lost.to_string(),
            interval.marked.to_string(),
            interval.mean_delay().map_or_else(|| "-".to_owned(), |delay| number(delay.as_millis_f64())),
        ]);
    }
    format!("\n{}", table.render())
}

fn clock(clock: &ClockReport) -> String {
    if clock.same {
        return "\nBoth ends have the same clock.\n".to_owned();
    }
    let drift = match clock.after {
        Some(_) => format!("; it drifted by {} us during the run", number(clock.drift_ns() as f64 * 1e-3)),
        None => "; its drift is not known".to_owned(),
    };
    let error = number(clock.error().as_millis_f64());
    format!("\nDelays are corrected for the receiver's clock, ±{error} ms{drift}.\n")
}

fn lateness(total: &Summary) -> String {
    match total.lateness.quantile(0.99) {
        Some(late) if late > LATE => format!(
            "This machine was late: 1 % of the messages were written more than {} ms after their time.\n",
            number(late.as_millis_f64())
        ),
        _ => String::new(),
    }
}

fn trouble(found: &Found<'_>) -> String {
    let told = found.failures().take(MOST_FAILURES).map(|(name, error)| format!("flow {name}: {error}\n"));
    let more = found.failures().count().saturating_sub(MOST_FAILURES);
    let counts = [
        (more as u64, "flows more failed"),
        (found.total.unsent, "datagrams were not taken by the kernel of this machine"),
    ];
    let strange = found.outcome.received.as_ref().map_or_else(String::new, strangers);
    told.collect::<String>() + &counted(&counts) + &strange
}

fn strangers(report: &MeterReport) -> String {
    let told = [
        (report.overflowed, "datagrams found the receiver's own buffer full, and count as lost"),
        (report.strangers, "datagrams or connections were of no flow of this run"),
    ];
    counted(&told)
}

/// A line each for those that are not zero.
fn counted(told: &[(u64, &str)]) -> String {
    let line = |(count, what): &(u64, &str)| format!("{count} {what}\n");
    told.iter().filter(|(count, _)| *count > 0).map(line).collect()
}
