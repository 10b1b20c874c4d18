//! What was found, as tables for people.

use super::found::Found;
use crate::table::{Table, cells, number, titles};
use cutline_traffic::control::ClockReport;
use cutline_traffic::{Distribution, GroupTotals, IntervalDocument, MeterReport, Summary, Totals};
use cutline_units::Duration;

/// The most failures that are told one by one.
const MOST_FAILURES: usize = 10;
/// Above this a generator's own lateness should be known to who reads its delays.
const LATE: Duration = Duration::from_millis(5);

/// Everything of both ends.
pub fn sent(found: &Found<'_>) -> String {
    let mut rows = found.group_totals();
    let total = found.totals(&found.total);
    let mut text = format!("after {:.1} s\n", found.outcome.elapsed.as_secs_f64()) + &intervals(&total);
    if rows.len() > 1 {
        rows.push(all(total));
    }
    text += &throughput(&rows);
    text += &delays(&rows);
    text += &times("response time, ms", &rows, |of| (of.response_ms.as_ref(), None));
    text += &clock(&found.outcome.clock);
    text += &lateness(&found.total);
    text + &trouble(found)
}

/// What a receiver found, whose flows have numbers and no names.
pub fn received(report: &MeterReport, elapsed: Duration, interval: Option<Duration>) -> String {
    let mut summary = Summary::default();
    report.flows.iter().for_each(|flow| summary.add_received(flow));
    summary.flows = report.flows.len() as u64;
    let rows = [all(Totals::new(&summary, elapsed, interval))];
    intervals(&rows[0].totals) + &throughput(&rows) + &delays(&rows) + &strangers(report)
}

/// The row of all flows.
fn all(totals: Totals) -> GroupTotals {
    GroupTotals { name: "all".to_owned(), transport: String::new(), totals }
}

fn throughput(rows: &[GroupTotals]) -> String {
    let titles: Vec<_> = ["flows", "over"].into_iter().chain(titles::<Totals>()).collect();
    let mut table = Table::new(2, &titles);
    for GroupTotals { name, transport, totals } in rows {
        table.add([name.clone(), transport.clone()].into_iter().chain(cells(totals)).collect());
    }
    format!("\n{}", table.render())
}

fn delays(rows: &[GroupTotals]) -> String {
    times("delay, ms", rows, |of| (of.delay_ms.as_ref(), of.ipdv_ms.as_ref()))
}

/// Distributions by group, if there is anything in them, and the mean of another beside them.
fn times(
    head: &str,
    rows: &[GroupTotals],
    of: impl Fn(&Totals) -> (Option<&Distribution>, Option<&Distribution>),
) -> String {
    let titles: Vec<_> = [head].into_iter().chain(titles::<Distribution>()).chain(["variation"]).collect();
    let mut table = Table::new(1, &titles);
    for GroupTotals { name, totals, .. } in rows {
        let (Some(distribution), other) = of(totals) else { continue };
        let variation = other.and_then(|other| other.mean).map_or_else(|| "-".to_owned(), number);
        table.add([name.clone()].into_iter().chain(cells(distribution)).chain([variation]).collect());
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

/// What came in each interval, if it was asked for.
fn intervals(totals: &Totals) -> String {
    let Some(intervals) = &totals.intervals else { return String::new() };
    let mut table = Table::new(0, &titles::<IntervalDocument>());
    for interval in intervals {
        table.add(cells(interval));
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
