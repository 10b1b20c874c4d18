//! The statistics of a direction as text: of the router, and of a queue in the kernel.

use crate::table::{Table, cells, titles};
use cutline_records::Record as _;
use cutline_router_service::{DepartureError, DirectionStatistics, HintStatistics};
use cutline_text::Printable;
use cutline_units::Rate;
use serde_json::Value;

/// Returns name, rate, queue, parameters and counters. `parameters` is empty or a line.
pub fn direction(direction: &DirectionStatistics, parameters: &str) -> String {
    let shown = DirectionStatistics::fields().into_iter().filter_map(|field| {
        let title = field.about.heading?.title;
        Some(format!("{title} {}", counted(&field.value(direction))))
    });
    let p = direction.probability.map_or_else(String::new, |p| format!(", p {:.3} %", 100.0 * p));
    let counted = format!(
        "\n{} at {} through {}\n{parameters}{}\nwaiting: {} packets, {} B{p}\n",
        Printable(&direction.name),
        Rate::from_bps(direction.rate_bps),
        Printable(&direction.queue),
        shown.collect::<Vec<_>>().join(", "),
        direction.backlog.packets,
        direction.backlog.bytes,
    );
    let slipped = match direction.slipped_ms {
        0.0 => String::new(),
        ms => format!("the schedule has slipped by {ms:.3} ms: the machine was too busy\n"),
    };
    counted
        + &sieve(direction)
        + &departure_error(&direction.departure_error_us)
        + &slipped
        + &hints(direction)
}

/// Returns the number of packets, as a sum with its summands if there are several.
fn counted(value: &Value) -> String {
    let Value::Object(values) = value else { return value.to_string() };
    if let Some(packets) = values.get("packets") {
        return packets.to_string();
    }
    let packets = |value: &Value| value["packets"].as_u64().unwrap_or_default();
    let summands: Vec<_> =
        values.iter().map(|(name, value)| format!("{} {}", Printable(name), packets(value))).collect();
    format!("{} ({})", values.values().map(packets).sum::<u64>(), summands.join(", "))
}

fn sieve(direction: &DirectionStatistics) -> String {
    direction.sieve.as_ref().map_or_else(String::new, |sieve| {
        let in_use = sieve
            .load
            .map_or_else(String::new, |load| format!(", {:.0} % of its memory in use", 100.0 * load));
        format!(
            "sieve: {} below the fair share, {} above; fair share {:.3} Mbit/s{in_use}\n",
            sieve.below_fair_share.packets,
            sieve.above_fair_share.packets,
            sieve.fair_share_bps as f64 / 1e6,
        )
    })
}

fn departure_error(error: &DepartureError) -> String {
    let shown = DepartureError::fields().into_iter().filter_map(|field| {
        Some(format!("{:.1} us {}", field.value(error).as_f64()?, field.about.heading?.title))
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    format!("sent late by {}\n", shown.join(", "))
}

fn hints(direction: &DirectionStatistics) -> String {
    let mut table = Table::new(0, &titles::<HintStatistics>());
    for of in &direction.hints {
        table.add(cells(of));
    }
    if table.is_empty() { String::new() } else { table.render() }
}
