//! What was found, as JSON: times in ms, sizes in bytes, rates in bit/s; payload everywhere.

use super::found::Found;
use cutline_sys::tcp::TcpInfo;
use cutline_traffic::control::ClockReport;
use cutline_traffic::{MeterReport, ReceivedInterval, ReceiverReport, SenderReport, Summary};
use cutline_units::{Duration, Histogram, Rate};
use serde_json::{Value, json};

/// Everything of both ends, one document.
pub fn sent(found: &Found<'_>) -> Value {
    let outcome = found.outcome;
    let groups = found.flows.groups.iter().zip(&found.groups).map(|(group, of)| {
        let mut document = summary(of, outcome.elapsed, found.interval);
        document["name"] = group.name.as_str().into();
        document["transport"] = group.transport.into();
        document
    });
    let flows = outcome.sent.iter().map(|sent| {
        let received = found.received.get(&sent.flow).map(|received| receiver(received, found.interval));
        json!({ "name": sent.name, "flow": sent.flow, "sent": sender(sent), "received": received })
    });
    json!({
        "receiver": found.receiver.to_string(),
        "seed": found.seed,
        "duration_s": found.duration.as_secs_f64(),
        "elapsed_s": outcome.elapsed.as_secs_f64(),
        "clock": clock(&outcome.clock),
        "groups": groups.collect::<Vec<_>>(),
        "total": summary(&found.total, outcome.elapsed, found.interval),
        "flows": flows.collect::<Vec<_>>(),
        "overflowed": outcome.received.as_ref().map(|report| report.overflowed),
        "strangers": outcome.received.as_ref().map(|report| report.strangers),
        "error": outcome.error.as_ref().map(ToString::to_string),
    })
}

/// What a receiver found.
pub fn received(report: &MeterReport, interval: Option<Duration>) -> Value {
    json!({
        "overflowed": report.overflowed,
        "strangers": report.strangers,
        "flows": report.flows.iter().map(|flow| receiver(flow, interval)).collect::<Vec<_>>(),
    })
}

fn summary(of: &Summary, elapsed: Duration, interval: Option<Duration>) -> Value {
    json!({
        "flows": of.flows,
        "failed": of.failed,
        "sent_bytes": of.sent_bytes,
        "sent_packets": of.sent_packets,
        "received_bytes": of.received_bytes,
        "received_packets": of.received_packets,
        "goodput_bps": of.goodput_bps(elapsed),
        "lost": of.lost,
        "reordered": of.reordered,
        "duplicated": of.duplicated,
        "marked": of.marked,
        "retransmissions": of.retransmissions,
        "refused_bytes": of.refused_bytes,
        "unsent": of.unsent,
        "delay_ms": histogram(&of.delay),
        "ipdv_ms": histogram(&of.ipdv),
        "response_ms": histogram(&of.responses),
        "lateness_ms": histogram(&of.lateness),
        "intervals": series(&of.intervals, interval),
    })
}

fn sender(report: &SenderReport) -> Value {
    json!({
        "bytes": report.bytes,
        "packets": report.packets,
        "messages": report.messages,
        "refused_bytes": report.refused_bytes,
        "unsent": report.unsent,
        "added_bytes": report.added_bytes,
        "retransmissions": report.retransmissions,
        "timeouts": report.timeouts,
        "response_ms": histogram(&report.responses),
        "lateness_ms": histogram(&report.lateness),
        "tcp": report.tcp.as_ref().map(tcp),
        "tfrc_rtt_ms": report.tfrc_rtt.map(Duration::as_millis_f64),
        "error": report.error,
    })
}

fn receiver(report: &ReceiverReport, interval: Option<Duration>) -> Value {
    json!({
        "flow": report.flow,
        "bytes": report.bytes,
        "packets": report.packets,
        "lost": report.lost,
        "reordered": report.reordered,
        "duplicated": report.duplicated,
        "marked": report.marked,
        "first_s": report.first.map(Duration::as_secs_f64),
        "last_s": report.last.map(Duration::as_secs_f64),
        "traffic_class": report.traffic_class,
        "loss_event_rate": report.loss_event_rate,
        "delay_ms": histogram(&report.delay),
        "ipdv_ms": histogram(&report.ipdv),
        "intervals": series(&report.intervals, interval),
        "error": report.error,
    })
}

/// A distribution, and its buckets as least value, greatest, count; null of nothing.
fn histogram(of: &Histogram) -> Value {
    if of.count() == 0 {
        return Value::Null;
    }
    let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
    let buckets = of
        .buckets()
        .map(|bucket| json!([bucket.low.as_millis_f64(), bucket.high.as_millis_f64(), bucket.count]));
    json!({
        "count": of.count(),
        "mean": ms(of.mean()),
        "standard_deviation": ms(of.standard_deviation()),
        "min": ms(of.min()),
        "p50": ms(of.quantile(0.5)),
        "p95": ms(of.quantile(0.95)),
        "p99": ms(of.quantile(0.99)),
        "max": ms(of.max()),
        "buckets": buckets.collect::<Vec<_>>(),
    })
}

fn series(intervals: &[ReceivedInterval], width: Option<Duration>) -> Option<Value> {
    let width = width?;
    let one = |(i, of): (u64, &ReceivedInterval)| {
        let ipdv = of.ipdv_ns.checked_div(of.packets).map(|ns| Duration::from_nanos(ns).as_millis_f64());
        json!({
            "from_s": i as f64 * width.as_secs_f64(),
            "bytes": of.bytes,
            "packets": of.packets,
            "lost": of.lost,
            "marked": of.marked,
            "mean_delay_ms": of.mean_delay().map(Duration::as_millis_f64),
            "mean_ipdv_ms": ipdv,
        })
    };
    Some((0..).zip(intervals).map(one).collect())
}

fn clock(clock: &ClockReport) -> Value {
    json!({
        "same": clock.same,
        "error_ms": clock.error().as_millis_f64(),
        "offset_ms": clock.offset().as_nanos() as f64 * 1e-6,
        "drift_ms": clock.after.map(|_| clock.drift_ns() as f64 * 1e-6),
        "round_trip_ms": clock.before.round_trip.as_millis_f64(),
    })
}

fn tcp(info: &TcpInfo) -> Value {
    json!({
        "rtt_ms": info.rtt.as_millis_f64(),
        "rtt_deviation_ms": info.rtt_deviation.as_millis_f64(),
        "min_rtt_ms": info.min_rtt.as_millis_f64(),
        "rto_ms": info.rto.as_millis_f64(),
        "congestion_window": info.congestion_window,
        "slow_start_threshold": info.slow_start_threshold,
        "max_segment": info.max_segment,
        "data_segments": info.data_segments,
        "retransmissions": info.retransmissions,
        "timeouts": info.timeouts,
        "delivered": info.delivered,
        "delivered_ce": info.delivered_ce,
        "bytes_sent": info.bytes_sent,
        "bytes_retransmitted": info.bytes_retransmitted,
        "bytes_acked": info.bytes_acked,
        "not_sent": info.not_sent,
        "pacing_rate_bps": Rate::as_bps(info.pacing_rate),
        "delivery_rate_bps": Rate::as_bps(info.delivery_rate),
        "ecn": info.ecn,
        "sack": info.sack,
    })
}
