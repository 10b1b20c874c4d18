//! What a router has counted, for a terminal.

use crate::table::Table;
use cutline_router::Loss;
use cutline_router_service::{Counted, DepartureError, Direction, Interface, ReloadStatus, Statistics};

/// All of it.
pub fn whole(statistics: &Statistics) -> String {
    let head = format!("\nafter {:.1} s\n", statistics.elapsed_s);
    let interfaces: String = statistics.interfaces.iter().map(warnings).collect();
    let reload = statistics.reload.as_ref().map_or_else(String::new, reload);
    let process = around(statistics);
    head + &direction(&statistics.forward)
        + &direction(&statistics.reverse)
        + &interfaces
        + &process
        + &reload
}

/// What was lost beside frames.
fn around(statistics: &Statistics) -> String {
    let told = [
        (
            statistics.dropped_output,
            "documents and messages were dropped: nobody read them, or the disk is full",
        ),
        (statistics.refused_clients, "clients were refused: others had all seats"),
    ];
    let line = |(count, what)| format!("{count} {what}\n");
    told.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

/// What has happened since `before`, or the start: a line for each direction.
pub fn since(before: Option<&Statistics>, now: &Statistics) -> String {
    let span = now.elapsed_s - before.map_or(0.0, |before| before.elapsed_s);
    let line = |reverse| {
        let (before, after) = (before.map(|before| before.direction(reverse)), now.direction(reverse));
        let sent = before.map_or_else(Counted::default, |before| before.sent);
        let dropped = before.map_or(0, Direction::dropped_packets);
        let p = after.probability.map_or_else(String::new, |p| format!("  p {p:.2e}"));
        format!(
            "{:8.1} s  {}  {:8.3} Mbit/s  {:6.0} packets/s  backlog {} packets  dropped {}{p}\n",
            now.elapsed_s,
            after.name,
            (after.sent.bytes - sent.bytes) as f64 * 8e-6 / span,
            (after.sent.packets - sent.packets) as f64 / span,
            after.backlog.packets,
            after.dropped_packets() - dropped,
        )
    };
    line(false) + &line(true)
}

fn direction(direction: &Direction) -> String {
    let losses = Loss::ALL.map(|loss| format!("{} {}", loss.name(), direction.lost(loss).packets));
    let counted = format!(
        "\n{}: received {}, sent {}, dropped {} ({}), queued {}; marked {}, re-marked {}, not IP {}\n",
        direction.name,
        direction.received.packets,
        direction.sent.packets,
        direction.dropped_packets(),
        losses.join(", "),
        direction.queued_packets,
        direction.marked.packets,
        direction.remarked.packets,
        direction.not_ip.packets,
    );
    let slipped = match direction.slipped_ms {
        0.0 => String::new(),
        ms => format!("the schedule has slipped by {ms:.3} ms: the machine was too busy\n"),
    };
    counted + &departure_error(direction.departure_error_us) + &slipped + &hints(direction)
}

fn departure_error(error: DepartureError) -> String {
    let DepartureError { p50: Some(p50), p99: Some(p99), max: Some(max) } = error else {
        return String::new();
    };
    format!("handed over {p50:.1} us after its time (median), {p99:.1} us (p99), {max:.1} us at most\n")
}

fn hints(direction: &Direction) -> String {
    let mut table = Table::new(0, &["hint", "sent on", "dropped", "mean wait ms", "longest wait ms"]);
    for of in &direction.hints {
        let [mean, longest] = [of.mean_wait_ms, of.longest_wait_ms].map(|ms| format!("{ms:.2}"));
        let [departed, dropped] = [of.departed, of.dropped].map(|counted| counted.packets.to_string());
        table.add(vec![of.hint.to_string(), departed, dropped, mean, longest]);
    }
    if table.is_empty() { String::new() } else { table.render() }
}

/// What an operator should know.
fn warnings(interface: &Interface) -> String {
    let told = [
        (interface.missed_packets, "came faster than they were read, and were lost"),
        (
            interface.truncated.packets,
            "were longer than its MTU, and were dropped: turn GRO and TSO off (ethtool -K)",
        ),
        (
            interface.without_checksum.packets,
            "came without checksums: turn `tx` off at the sender's end (ethtool -K)",
        ),
    ];
    let line = |(count, what)| format!("{}: {count} frames {what}\n", interface.name);
    told.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

fn reload(status: &ReloadStatus) -> String {
    match (&status.error, status.last_s) {
        (Some(error), Some(at)) => format!("\nthe file was refused after {at:.1} s:\n{error}\n"),
        (None, Some(at)) => format!("\nthe file was taken over after {at:.1} s\n"),
        (_, None) => String::new(),
    }
}
