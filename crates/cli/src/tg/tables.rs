//! The measurements as text tables.

use crate::table::{Table, cells, number, titles};
use cutline_text::Printable;
use cutline_traffic::control::ClockReport;
use cutline_traffic::{
    DistributionDocument, FlowsSummary, GroupTotals, IntervalDocument, MeterReport, PlanDirection,
    SendResults, SenderReport, Totals,
};
use cutline_units::Duration;

/// The largest number of failures that are listed.
const MOST_FAILURES: usize = 10;
/// Above this the lateness of the generator is reported, because it affects the delays.
const LATE: Duration = Duration::from_millis(5);

/// Returns all measurements of both ends as text.
pub fn sent(found: &SendResults<'_>, per_flow: bool, with_intervals: bool) -> String {
    let mut rows = found.group_totals();
    let total = found.totals(&found.total);
    let mut text = format!("after {:.1} s\n", found.outcome.elapsed.as_secs_f64());
    if with_intervals {
        text += &intervals(&total);
    }
    if per_flow {
        let flows = found.flow_totals();
        text += &(throughput(&flows) + &delays(&flows));
    }
    if rows.len() > 1 {
        rows.push(all(total));
    }
    text += &throughput(&rows);
    text += &delays(&rows);
    text += &response_times(&rows);
    text += &clock(&found.outcome.clock);
    text += &lateness(&found.total);
    text + &trouble(found)
}

/// Returns the measurements of a receiver as text. Its flows have numbers and no names.
pub fn received(report: &MeterReport, elapsed: Duration, interval: Option<Duration>) -> String {
    let mut summary = FlowsSummary::default();
    report.flows.iter().for_each(|flow| summary.add_received(flow));
    summary.flows = report.flows.len() as u64;
    let rows = [all(Totals::new(&summary, elapsed, interval))];
    intervals(&rows[0].totals) + &throughput(&rows) + &delays(&rows) + &strangers(report)
}

/// Returns the measurements of the flows that a receiver has sent; empty without any.
pub fn sent_here(flows: &[SenderReport]) -> String {
    if flows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(0, &["flows sent", "MB", "packets", "resent", "refused KB", "failed"]);
    let sum = |of: fn(&SenderReport) -> u64| flows.iter().map(of).fold(0, u64::saturating_add);
    table.add(vec![
        flows.len().to_string(),
        number(sum(|flow| flow.bytes) as f64 * 1e-6),
        sum(|flow| flow.packets).to_string(),
        sum(|flow| flow.retransmissions).to_string(),
        number(sum(|flow| flow.refused_bytes) as f64 * 1e-3),
        sum(|flow| u64::from(flow.error.is_some())).to_string(),
    ]);
    format!("\n{}", table.render())
}

/// Returns the row of all flows.
fn all(totals: Totals) -> GroupTotals {
    let (name, transport, direction) = ("all".to_owned(), String::new(), String::new());
    GroupTotals { name, transport, direction, totals }
}

/// Returns the table of rates and losses, with the direction if there are two.
fn throughput(rows: &[GroupTotals]) -> String {
    let has_direction = rows.iter().any(|row| row.direction == PlanDirection::Reverse.name());
    let words: &[&str] = if has_direction { &["flows", "over", "direction"] } else { &["flows", "over"] };
    let titles: Vec<_> = words.iter().copied().chain(titles::<Totals>()).collect();
    let mut table = Table::new(words.len(), &titles);
    for GroupTotals { name, transport, direction, totals } in rows {
        let row = [name, transport, direction].into_iter().take(words.len()).cloned();
        table.add(row.chain(cells(totals)).collect());
    }
    format!("\n{}", table.render())
}

fn delays(rows: &[GroupTotals]) -> String {
    let has_buffers = rows.iter().any(|row| row.totals.buffer_wait_ms.is_some());
    let more: &[&str] = if has_buffers { &["variation", "own buffer", "network"] } else { &["variation"] };
    times(
        "delay, ms",
        rows,
        |totals| totals.delay_ms.as_ref(),
        more,
        |totals| {
            let mean =
                |distribution: &Option<DistributionDocument>| distribution.as_ref().and_then(|it| it.mean);
            // The wait is an estimate, which may exceed a short delay. Both parts add up to the delay here.
            let buffers =
                mean(&totals.delay_ms).zip(totals.network_mean_ms).map(|(all, network)| all - network);
            vec![
                mean(&totals.ipdv_ms),
                buffers.filter(|_| totals.buffer_wait_ms.is_some()),
                totals.network_mean_ms,
            ]
        },
    )
}

fn response_times(rows: &[GroupTotals]) -> String {
    times("response time, ms", rows, |totals| totals.response_ms.as_ref(), &[], |_| Vec::new())
}

/// Returns a table of the groups' distributions, with means of other quantities in the columns `more`; empty if there are no
/// values.
fn times(
    head: &str,
    rows: &[GroupTotals],
    choose: impl Fn(&Totals) -> Option<&DistributionDocument>,
    more: &[&str],
    means: impl Fn(&Totals) -> Vec<Option<f64>>,
) -> String {
    let titles: Vec<_> =
        [head].into_iter().chain(titles::<DistributionDocument>()).chain(more.iter().copied()).collect();
    let mut table = Table::new(1, &titles);
    for GroupTotals { name, totals, .. } in rows {
        let Some(distribution) = choose(totals) else { continue };
        let means = means(totals).into_iter().take(more.len());
        let means = means.map(|mean| mean.map_or_else(|| "-".to_owned(), number));
        table.add([name.clone()].into_iter().chain(cells(distribution)).chain(means).collect());
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

/// Returns the table of intervals; empty if they were not measured.
fn intervals(totals: &Totals) -> String {
    let Some(intervals) = &totals.intervals else { return String::new() };
    let mut table = Table::new(0, &titles::<IntervalDocument>());
    for interval in intervals {
        table.add(cells(interval));
    }
    format!("\n{}", table.render())
}

/// Returns a sentence about the clocks.
pub fn clock(clock: &ClockReport) -> String {
    if clock.same {
        return "\nBoth ends use the same clock.\n".to_owned();
    }
    let drift = match clock.after {
        Some(_) => format!("; it drifted by {} us during the run", number(clock.drift_ns() as f64 * 1e-3)),
        None => "; its drift is unknown".to_owned(),
    };
    let error = number(clock.error().as_millis_f64());
    format!("\nDelays are corrected for the receiver's clock, ±{error} ms{drift}.\n")
}

fn lateness(total: &FlowsSummary) -> String {
    match total.lateness.quantile(0.99) {
        Some(late) if late > LATE => format!(
            "The sender was late: 1 % of the messages were written more than {} ms after their time.\n",
            number(late.as_millis_f64())
        ),
        _ => String::new(),
    }
}

/// Returns the flows that failed, and the counters of unusual events.
pub fn trouble(found: &SendResults<'_>) -> String {
    let listed = found
        .failures()
        .take(MOST_FAILURES)
        .map(|(name, error)| format!("flow {}: {}\n", Printable(name), Printable(error)));
    let more = found.failures().count().saturating_sub(MOST_FAILURES);
    let counts = [
        (more as u64, "more flows failed"),
        (found.total.unsent, "datagrams were refused by the sender's kernel"),
    ];
    let strange = found.outcome.received.as_ref().map_or_else(String::new, strangers);
    listed.collect::<String>() + &counted(&counts) + &strange
}

fn strangers(report: &MeterReport) -> String {
    let counts = [
        (report.overflowed, "datagrams overflowed the receiver's buffer and count as lost"),
        (report.strangers, "datagrams or connections belonged to no flow of this run"),
    ];
    counted(&counts)
}

/// Returns one line for each count that is not zero.
fn counted(counts: &[(u64, &str)]) -> String {
    let line = |(count, what): &(u64, &str)| format!("{count} {what}\n");
    counts.iter().filter(|(count, _)| *count > 0).map(line).collect()
}
