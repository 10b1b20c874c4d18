//! The statistics of a router as text.

use crate::direction_text::direction;
use crate::table::{cells, titles};
use cutline_router_service::{
    AutorateStatistics, DirectionInterval, DirectionStatistics, Interface, ReloadStatus, Statistics,
    TRUNCATED, UNFILLED,
};
use cutline_text::Printable;
use serde_json::Value;

/// Returns all statistics, with the parameters of the queues if the configuration is known.
pub fn whole(statistics: &Statistics, configuration: Option<&Value>) -> String {
    let of = |way: &str| configuration.map_or_else(String::new, |all| parameters(&all[way]));
    let head = format!("\nafter {:.1} s\n", statistics.elapsed_s);
    let interfaces: String = statistics.interfaces.iter().map(warnings).collect();
    let reload = statistics.reload.as_ref().map_or_else(String::new, reload);
    let process = other_losses(statistics);
    head + &direction(&statistics.forward, &of("forward"))
        + &direction(&statistics.reverse, &of("reverse"))
        + &statistics.autorate.as_ref().map_or_else(String::new, autorate)
        + &interfaces
        + &process
        + &reload
}

/// Returns the state of rates that follow the link, in a line.
fn autorate(found: &AutorateStatistics) -> String {
    let shown = titles::<AutorateStatistics>().into_iter().zip(cells(found));
    let shown: Vec<_> = shown.map(|(title, cell)| format!("{title} {cell}")).collect();
    format!("\nautorate: {}\n", shown.join(", "))
}

/// Returns the losses of documents, messages and clients.
fn other_losses(statistics: &Statistics) -> String {
    let losses = [
        (
            statistics.dropped_output,
            "documents and messages were dropped: they were not read, or the disk is full",
        ),
        (statistics.refused_clients, "clients were refused: the largest number of clients was connected"),
    ];
    let line = |(count, what)| format!("{count} {what}\n");
    losses.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

/// Returns one line per direction about the time since `before`, or since the start.
pub fn since(before: Option<&Statistics>, now: &Statistics) -> String {
    let start = Statistics::default();
    let intervals = DirectionInterval::both(before.unwrap_or(&start), now);
    intervals.iter().flatten().map(|interval| interval_line(interval, now.elapsed_s)).collect()
}

fn interval_line(interval: &DirectionInterval<'_>, at_s: f64) -> String {
    let after = interval.after();
    let p = after.probability.map_or_else(String::new, |p| format!("  p {p:.2e}"));
    let wait = interval.waits().mean_ms().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2} ms"));
    format!(
        "{at_s:8.1} s  {}  {:8.3} Mbit/s  {:6.0} packets/s  wait {wait}  backlog {} packets ({:.1} ms)  dropped {}{p}\n",
        Printable(&after.name),
        interval.sent_bps() / 1e6,
        interval.per_second(|direction| direction.sent.packets),
        after.backlog.packets,
        after.backlog.bytes as f64 * 8e3 / after.rate_bps as f64,
        interval.grown(DirectionStatistics::dropped_packets),
    )
}

/// Returns the limit and the parameters of a direction's queue in a line.
fn parameters(configuration: &Value) -> String {
    let queue = &configuration["queue"];
    let pairs = |values: &Value, before: &str| -> Vec<String> {
        let values = values.as_object().into_iter().flatten();
        values.filter_map(|(name, value)| Some(format!("{before}{name} {}", value.as_str()?))).collect()
    };
    let all = [
        vec![format!("limit {}", queue["limit"].as_str().unwrap_or("-"))],
        pairs(&queue["parameters"], ""),
        pairs(&queue["below"]["parameters"], "below: "),
        pairs(&queue["tsq"], "TSQ: "),
    ];
    format!("{}\n", Printable(all.concat().join(", ")))
}

/// Warnings about an interface, one per line.
fn warnings(interface: &Interface) -> String {
    let counts = [
        (interface.missed_packets, "arrived faster than they were read, and were lost"),
        (interface.truncated.packets, TRUNCATED),
        (interface.without_checksum.packets, UNFILLED),
    ];
    let line = |(count, what)| format!("{}: {count} frames {what}\n", Printable(&interface.name));
    counts.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

fn reload(status: &ReloadStatus) -> String {
    match (&status.error, status.last_s) {
        (Some(error), Some(at)) => format!("\nthe file was refused after {at:.1} s:\n{error}\n"),
        (None, Some(at)) => format!("\nthe file was applied after {at:.1} s\n"),
        (_, None) => String::new(),
    }
}
