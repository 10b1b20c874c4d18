//! Rows for tests and benchmarks.

use crate::{DELAY_BOUNDS_MS, DirectionRow, LimitRow, SocketRow, SpreadRow};
use cutline_records::BucketCounts;

/// Returns the row of a socket that receives 50 messages a second within its limits, after so many seconds. Everything is known in the
/// direction in which it receives. All measured values are other ones in the next second.
pub fn receiving_socket(socket: u64, second: u64) -> SocketRow {
    let ms = |base: f64| base + (socket * 7 + second) as f64 / 1e3;
    let spread = |base| SpreadRow {
        mean_ms: ms(base),
        p50_ms: Some(ms(base)),
        p90_ms: Some(ms(base * 2.0)),
        p99_ms: ms(base * 3.0),
        max_ms: ms(base * 4.0),
    };
    let limit = |measure: &str, best, worst| LimitRow {
        measure: measure.to_owned(),
        best,
        worst,
        best_measured: Some(ms(best)),
        worst_measured: Some(ms(best)),
        begun: 0,
    };
    let words = "min-rate = 40 messages/s, max-delay = 400 ms, jitter = 50 ms, loss = 1 %".to_owned();
    let receive = DirectionRow {
        offered: words.clone(),
        requested: words.clone(),
        effective: words,
        sent_messages: second * 50,
        sent_bytes: second * 50_000,
        received_messages: second * 50,
        received_bytes: second * 50_000,
        rate: Some(50.0),
        throughput_bps: Some(400_000 + second),
        loss_percent: Some(0.0),
        gap_ms: Some(ms(20.0)),
        last_delay: Some(spread(10.0)),
        last_jitter: Some(spread(2.0)),
        delay: Some(spread(10.0)),
        jitter: Some(spread(2.0)),
        delay_buckets_ms: Some(BucketCounts {
            bounds: DELAY_BOUNDS_MS.to_vec(),
            counts: vec![second; DELAY_BOUNDS_MS.len() + 1],
            sum: ms(500.0),
        }),
        limits: vec![
            limit("rate", 50.0, 40.0),
            limit("delay", 0.0, 400.0),
            limit("jitter", 0.0, 50.0),
            limit("loss", 0.0, 1.0),
        ],
        ..DirectionRow::default()
    };
    SocketRow {
        socket,
        transport: "udp".to_owned(),
        local: "192.0.2.1:5203".to_owned(),
        peer: format!("192.0.2.2:{socket}"),
        opened_unix_s: 1_700_000_000.5,
        state: "agreed".to_owned(),
        reservation: "none".to_owned(),
        rtt_ms: Some(ms(20.0)),
        receive,
        ..SocketRow::default()
    }
}
