//! Names and units of measures on axes.

use super::source::joined;

/// A measure on an axis.
pub struct Label {
    /// The name.
    pub name: String,
    /// The unit, empty for a number without one.
    pub unit: &'static str,
    /// The factor from the unit of the tables.
    pub scale: f64,
}

impl Label {
    /// The name with the unit.
    pub fn text(&self) -> String {
        joined(&[&self.name, self.unit])
    }
}

/// Names of the tables' measures, and units in which people do not read them.
const NAMES: &[(&str, &str, &str, f64)] = &[
    ("goodput_bps", "Goodput of a flow", "kbit/s", 1e-3),
    ("sent_bps", "Rate sent by a flow", "kbit/s", 1e-3),
    ("refused_bps", "Refused by the sender's buffer", "kbit/s", 1e-3),
    ("loss_ratio", "Packets lost", "%", 100.0),
    ("drop_ratio", "Packets dropped", "%", 100.0),
    ("mark_ratio", "Packets marked", "%", 100.0),
    ("lost_ratio", "Packets lost on the link", "%", 100.0),
    ("reordered_ratio", "Packets reordered", "%", 100.0),
    ("utilisation", "Utilisation", "%", 100.0),
    ("probability", "Probability of a drop or mark", "%", 100.0),
    ("probability_mean", "Probability of a drop or mark", "%", 100.0),
    ("q", "Quality Q", "", 1.0),
    ("qd", "Quality by delay Qd", "", 1.0),
    ("qt", "Quality by throughput Qt", "", 1.0),
    ("hint", "Delay hint", "", 1.0),
    ("queuing_ms", "Queuing delay", "ms", 1.0),
    ("one_way_ms", "One-way delay", "ms", 1.0),
    ("transfer_ms", "Time of a transfer", "ms", 1.0),
    ("transfer_short_ms", "Time of a transfer up to 100 KB", "ms", 1.0),
    ("transfer_medium_ms", "Time of a transfer of 100 KB to 10 MB", "ms", 1.0),
    ("transfer_long_ms", "Time of a transfer above 10 MB", "ms", 1.0),
    ("backlog_packets", "Packets waiting", "", 1.0),
    ("average_packets", "Average queue", "packets", 1.0),
    ("target_packets", "Target queue", "packets", 1.0),
    ("packets_dropped", "Packets dropped", "", 1.0),
    ("packets_marked", "Packets marked", "", 1.0),
    ("timeouts", "Timeouts of a flow", "", 1.0),
];
/// The beginnings of names of delays.
const DELAYS: &[(&str, &str)] = &[
    ("queuing_", "Queuing delay"),
    ("one_way_", "One-way delay"),
    ("delay_", "Delay"),
    ("ipdv_", "Delay variation"),
    ("transfer_", "Time of a transfer"),
    ("backlog_", "Backlog"),
];
/// The last words of names that are units.
const UNITS: &[(&str, &str)] =
    &[("ms", "ms"), ("packets", "packets"), ("bytes", "B"), ("bps", "bit/s"), ("s", "s")];
const STATISTICS: &[(&str, &str)] = &[
    ("mean", "mean"),
    ("max", "largest"),
    ("p50", "median"),
    ("p90", "90th percentile"),
    ("p95", "95th percentile"),
    ("p99", "99th percentile"),
    ("sd", "standard deviation"),
];

/// Returns the name of a measure on an axis.
pub fn label(measure: &str) -> Label {
    if let Some((_, name, unit, scale)) = NAMES.iter().find(|(column, ..)| *column == measure) {
        return Label { name: (*name).to_owned(), unit, scale: *scale };
    }
    let (stem, unit) = UNITS
        .iter()
        .find_map(|(word, unit)| Some((measure.strip_suffix(word)?.strip_suffix('_')?, *unit)))
        .unwrap_or((measure, ""));
    let delay = DELAYS.iter().find_map(|(start, name)| {
        Some((*name, format!("{stem}_").strip_prefix(start)?.trim_end_matches('_').to_owned()))
    });
    let name = match delay {
        Some((name, rest)) => {
            let statistic =
                STATISTICS.iter().find(|(word, _)| *word == rest).map_or(&*rest, |(_, text)| text);
            joined(&[name, statistic])
        }
        None => stem.replace('_', " "),
    };
    Label { name, unit, scale: 1.0 }
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn measures_have_names_and_units_that_people_read() {
        for (measure, text) in [
            ("queuing_p99_ms", "Queuing delay, 99th percentile, ms"),
            ("one_way_mean_ms", "One-way delay, mean, ms"),
            ("transfer_short_ms", "Time of a transfer up to 100 KB, ms"),
            ("transfer_p95_ms", "Time of a transfer, 95th percentile, ms"),
            ("backlog_sd_packets", "Backlog, standard deviation, packets"),
            ("packets_sent", "packets sent"),
            ("loss_ratio", "Packets lost, %"),
        ] {
            assert_eq!(label(measure).text(), text);
        }
        assert_eq!(label("goodput_bps").scale, 1e-3);
    }
}
