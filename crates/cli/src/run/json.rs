//! The JSON document of `cutline run --json`: the rows of the tables, run by run.

use super::outcome::Outcome;
use cutline_results::{FlowRow, QueueRow, TimingRow};
use cutline_scenario::SweepPoint;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name, version, seeds, where the results are, and every run with its flows and queues.
pub fn document(points: &[SweepPoint], outcome: &Outcome) -> Value {
    let scenario = &points[0].scenario;
    json!({
        "name": scenario.name,
        "version": outcome.version,
        "seeds": scenario.all_seeds().collect::<Vec<_>>(),
        "results_dir": outcome.folder,
        "runs": runs(points, outcome),
    })
}

fn runs(points: &[SweepPoint], outcome: &Outcome) -> Vec<Value> {
    let mut flows: BTreeMap<(&str, u64), Vec<&FlowRow>> = BTreeMap::new();
    for row in &outcome.flows {
        flows.entry((&row.point, row.seed)).or_default().push(row);
    }
    let mut queues: BTreeMap<(&str, u64), Vec<&QueueRow>> = BTreeMap::new();
    for row in &outcome.queues {
        queues.entry((&row.point, row.seed)).or_default().push(row);
    }
    let run = |point: &SweepPoint, seed: u64| {
        let label = point.label();
        let (flows, queues) = (flows.get(&(&*label, seed))?, queues.get(&(&*label, seed))?);
        let mut document = json!({
            "point": label,
            "settings": point.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
            "seed": seed,
            "run": &*flows.first()?.run,
            "flows": flows.iter().map(|row| flow(row)).collect::<Vec<_>>(),
            "queues": queues.iter().map(|row| queue(row)).collect::<Vec<_>>(),
        });
        if let Some(row) = outcome.timing.iter().find(|row| *row.point == *label && row.seed == seed) {
            document["timing"] = timing(row);
        }
        Some(document)
    };
    let of_point = |point: &SweepPoint| {
        point.scenario.all_seeds().filter_map(|seed| run(point, seed)).collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}

fn flow(row: &FlowRow) -> Value {
    json!({
        "name": &*row.flow,
        "group": &*row.group,
        "class": &*row.class,
        "hint": row.hint,
        "goodput_bps": row.goodput_bps,
        "sent_bps": row.sent_bps,
        "refused_bps": row.refused_bps,
        "loss_ratio": row.loss_ratio,
        "mark_ratio": row.mark_ratio,
        "packets_sent": row.packets_sent,
        "packets_received": row.packets_received,
        "drops": row.packets_dropped,
        "marks": row.packets_marked,
        "retransmissions": row.retransmissions,
        "timeouts": row.timeouts,
        "queuing_ms": {
            "mean": row.queuing_mean_ms,
            "p50": row.queuing_p50_ms,
            "p90": row.queuing_p90_ms,
            "p95": row.queuing_p95_ms,
            "p99": row.queuing_p99_ms,
            "max": row.queuing_max_ms,
        },
        "one_way_ms": {
            "mean": row.one_way_mean_ms,
            "p50": row.one_way_p50_ms,
            "p95": row.one_way_p95_ms,
            "p99": row.one_way_p99_ms,
            "max": row.one_way_max_ms,
        },
        "ipdv_ms": { "mean": row.ipdv_mean_ms, "p95": row.ipdv_p95_ms },
        "transfers": row.transfers,
        "transfer_ms": { "mean": row.transfer_mean_ms, "p95": row.transfer_p95_ms },
        "qd": row.qd,
        "qt": row.qt,
        "q": row.q,
    })
}

fn queue(row: &QueueRow) -> Value {
    json!({
        "name": &*row.link,
        "aqm": &*row.aqm,
        "tsq": row.tsq == 1,
        "rate_bps": row.rate_bps,
        "utilisation": row.utilisation,
        "backlog_packets": {
            "mean": row.backlog_mean_packets,
            "sd": row.backlog_sd_packets,
            "max": row.backlog_max_packets,
        },
        "backlog_bytes": { "mean": row.backlog_mean_bytes, "max": row.backlog_max_bytes },
        "drop_ratio": row.drop_ratio,
        "mark_ratio": row.mark_ratio,
        "probability": { "mean": row.probability_mean, "sd": row.probability_sd },
        "average_packets": row.average_mean_packets,
        "max_p": row.max_p_mean,
        "delay_ms": {
            "mean": row.delay_mean_ms,
            "p50": row.delay_p50_ms,
            "p95": row.delay_p95_ms,
            "p99": row.delay_p99_ms,
            "max": row.delay_max_ms,
        },
        "arrived": row.arrived,
        "departed": row.departed,
        "dropped": row.dropped,
        "dropped_early": row.dropped_early,
        "dropped_full": row.dropped_full,
        "marked": row.marked,
    })
}

fn timing(row: &TimingRow) -> Value {
    json!({
        "timing_ok": row.is_valid(),
        "problem": &*row.problem,
        "departure_error_ms": {
            "p50": row.departure_error_p50_ms,
            "p99": row.departure_error_p99_ms,
            "max": row.departure_error_max_ms,
            "bound": row.departure_bound_ms,
        },
        "reading_delay_p99_ms": row.reading_delay_p99_ms,
        "source_lateness_p99_ms": row.source_lateness_p99_ms,
        "network_cpu": row.network_cpu,
        "machine_busy": row.machine_busy,
        "machine_stolen": row.machine_stolen,
        "frames": row.frames,
        "missed": row.missed,
        "failed_flows": row.failed_flows,
    })
}
