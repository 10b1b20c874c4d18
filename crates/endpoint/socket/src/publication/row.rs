//! The published row of a connection, made from its MIB.

use crate::connection_handle::SharedCalls;
use crate::mib::Mib;
use crate::publication::{ConnectionGlance, RowTexts};
use crate::reservation::ConnectionReservation;
use cutline_provision::GrantState;
use cutline_publish::{DELAY_BOUNDS_MS, DirectionRow, LimitRow, SocketRow, SpreadRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_signal::mib::{Conformance, HistogramSummary};
use cutline_signal::monitor::{Delivery, Received, Sent, Spread};
use cutline_signal::session::Participation;
use cutline_units::{Duration, Histogram, Instant};

/// Returns a brief view of a connection without making its row; `None` if it is not published.
pub fn glance(of: &dyn SharedCalls) -> Option<ConnectionGlance> {
    let connection = of.connection();
    if !connection.is_published() || connection.is_inherited() {
        return None;
    }
    let (state, rate, _) = reserved(connection.reservation().as_ref());
    Some(ConnectionGlance {
        activity: connection.activity(),
        participation: connection.participation(),
        is_reconnecting: of.is_reconnecting(),
        changes: connection.changes(),
        reservation: (state, rate),
    })
}

/// Returns the row of a connection under this number; `None` if its socket no longer has an address. `texts` are those of its last row.
pub fn row(of: &dyn SharedCalls, number: u64, texts: &mut RowTexts) -> Option<SocketRow> {
    let connection = of.connection();
    let [local, peer] = texts.addresses(of.addresses().ok()?);
    let mib = of.mib();
    let delays = buckets(connection.inbound().delays());
    let state = match connection.participation() {
        _ if of.is_reconnecting() => "reconnecting",
        Participation::Joining => "joining",
        Participation::Joined(_) => "agreed",
        Participation::Alone => "alone",
    };
    let (reservation, reserved_bps, refusal) = reserved(mib.reservation.as_ref());
    let tcp_rtt = mib.tcp.as_ref().map(|tcp| ms(tcp.rtt));
    Some(SocketRow {
        socket: number,
        transport: of.transport().to_owned(),
        local,
        peer,
        managed: connection.is_managed(),
        opened_unix_s: connection.opened().as_secs_f64(),
        state: state.to_owned(),
        hint: mib.hint.map(cutline_units::Hint::level),
        rtt_ms: tcp_rtt.or_else(|| mib.clock.as_ref().map(|clock| ms(clock.round_trip))),
        clock_error_ms: mib.clock.as_ref().map(|clock| ms(clock.error)),
        retransmissions: mib.tcp.as_ref().map(|tcp| u64::from(tcp.retransmissions)),
        reconnections: mib.feedback.reconnections,
        target_rate: mib.send.target_rate,
        send_queue_bytes: mib.feedback.send_queue.map_or(0, cutline_units::Bytes::get),
        waits: mib.feedback.queue_full.saturating_add(mib.feedback.pacing_waits),
        reservation: reservation.to_owned(),
        reserved_bps,
        refusal,
        send: sending(&mib, texts),
        receive: receiving(&mib, delays, texts),
    })
}

fn sending(mib: &Mib, texts: &mut RowTexts) -> DirectionRow {
    let send = &mib.send;
    direction(
        mib.at,
        texts.send(&send.contract),
        &send.conformance,
        (&send.sent, &send.received),
        send.last.as_ref(),
    )
}

fn receiving(mib: &Mib, delay_buckets_ms: Option<BucketCounts>, texts: &mut RowTexts) -> DirectionRow {
    let receive = &mib.receive;
    let counted = (&receive.sent, &receive.received);
    DirectionRow {
        delay: receive.delay.as_ref().map(spread_of_all),
        jitter: receive.jitter.as_ref().map(spread_of_all),
        delay_buckets_ms,
        ..direction(
            mib.at,
            texts.receive(&receive.contract),
            &receive.conformance,
            counted,
            receive.last.as_ref(),
        )
    }
}

fn direction(
    at: Instant,
    [offered, requested, effective]: [String; 3],
    conformance: &Conformance,
    (sent, received): (&Sent, &Received),
    last: Option<&Delivery>,
) -> DirectionRow {
    DirectionRow {
        offered,
        requested,
        effective,
        sent_messages: sent.messages,
        sent_bytes: sent.bytes,
        held_ms: ms(sent.held),
        received_messages: received.messages,
        received_bytes: received.bytes,
        lost_messages: received.lost(),
        late_messages: received.late,
        unread_ms: ms(received.unread),
        overflowed_datagrams: received.overflowed,
        rate: last.map(Delivery::rate),
        throughput_bps: last.map(|last| last.throughput().as_bps()),
        loss_percent: last.and_then(Delivery::loss),
        gap_ms: last.map(|last| ms(last.gap)),
        last_delay: last.and_then(|last| last.delay.as_ref()).map(spread),
        last_jitter: last.and_then(|last| last.jitter.as_ref()).map(spread),
        limits: limits(conformance),
        violations: violations(at, conformance),
        violations_begun: conformance.counts.iter().sum(),
        ..DirectionRow::default()
    }
}

fn limits(conformance: &Conformance) -> Vec<LimitRow> {
    let operation = &conformance.operation;
    let row = |axis: &cutline_quality::spec::Axis| {
        let seen = operation.seen().find(|(seen, ..)| seen.measure == axis.measure);
        LimitRow {
            measure: axis.measure.name().to_owned(),
            best: axis.best,
            worst: axis.worst,
            best_measured: seen.map(|(_, best, _)| best),
            worst_measured: seen.map(|(.., worst)| worst),
            begun: conformance.counts[axis.measure as usize],
        }
    };
    operation.region().axes().iter().map(row).collect()
}

fn violations(at: Instant, conformance: &Conformance) -> Vec<ViolationRow> {
    let row = |violation: &cutline_signal::violation::Violation| ViolationRow {
        measure: violation.measure.name().to_owned(),
        limit: violation.limit,
        measured: violation.measured,
        origin: violation.origin.name().to_owned(),
        for_s: at.saturating_since(violation.since).as_secs_f64(),
    };
    conformance.violations.iter().map(row).collect()
}

fn spread(of: &Spread) -> SpreadRow {
    SpreadRow { mean_ms: ms(of.mean), p99_ms: ms(of.quantile), max_ms: ms(of.worst), ..SpreadRow::default() }
}

fn spread_of_all(of: &HistogramSummary) -> SpreadRow {
    SpreadRow {
        mean_ms: ms(of.mean),
        p50_ms: Some(ms(of.p50)),
        p90_ms: Some(ms(of.p90)),
        p99_ms: ms(of.p99),
        max_ms: ms(of.max),
    }
}

/// Returns the delays by [`DELAY_BOUNDS_MS`]; `None` without any.
fn buckets(delays: &Histogram) -> Option<BucketCounts> {
    if delays.count() == 0 {
        return None;
    }
    let bounds = DELAY_BOUNDS_MS.map(|ms| Duration::from_secs_f64(ms / 1e3));
    let (counts, above) = delays.counts_by(bounds);
    let counts = counts.into_iter().chain([above]).collect();
    Some(BucketCounts { bounds: DELAY_BOUNDS_MS.to_vec(), counts, sum: ms(delays.sum()) })
}

/// Returns the state of a reservation, the reserved rate of the traffic sent, and the reason of a refusal.
fn reserved(status: Option<&ConnectionReservation>) -> (&'static str, Option<u64>, Option<String>) {
    let Some(status) = status else { return ("none", None, None) };
    let both = [&status.send, &status.receive];
    let rate = match &status.send {
        GrantState::Reserved(spec) => Some(spec.rate.as_bps()),
        _ => None,
    };
    let refusal = both.into_iter().find_map(|state| match state {
        GrantState::Failed(refusal) => Some(refusal.to_string()),
        _ => None,
    });
    let state = if status.is_lost {
        "ended"
    } else if refusal.is_some() {
        "refused"
    } else if both.iter().any(|state| matches!(state, GrantState::Pending)) {
        "waiting"
    } else if both.iter().any(|state| matches!(state, GrantState::Reserved(_))) {
        "reserved"
    } else {
        "none"
    };
    (state, rate, refusal)
}

fn ms(time: Duration) -> f64 {
    time.as_millis_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_provision::{Refusal, RefusalReason};

    #[test]
    fn a_reservation_that_was_held_has_ended_and_one_that_was_not_is_refused() {
        let failed = |reason| GrantState::Failed(Refusal::new(reason));
        let state = |send: GrantState, is_lost| {
            let status = ConnectionReservation {
                service: "rsvp",
                demand: None,
                send,
                receive: GrantState::NotRequested,
                is_lost,
            };
            let (state, rate, refusal) = reserved(Some(&status));
            (state, rate, refusal.is_some())
        };
        assert_eq!(state(GrantState::NotRequested, false), ("none", None, false));
        assert_eq!(state(GrantState::Pending, false), ("waiting", None, false));
        assert_eq!(state(failed(RefusalReason::Bandwidth), false), ("refused", None, true));
        assert_eq!(state(failed(RefusalReason::Ended), true), ("ended", None, true));
    }

    #[test]
    fn every_delay_is_in_one_bucket() {
        let mut delays = Histogram::default();
        assert_eq!(buckets(&delays), None);
        for ms in [0, 3, 4, 30, 700, 9000] {
            delays.record(Duration::from_millis(ms));
        }
        let buckets = buckets(&delays).unwrap();
        assert_eq!(buckets.counts, [1, 0, 2, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1]);
        assert!((buckets.sum - 9737.0).abs() < 1e-6, "{}", buckets.sum);
    }
}

#[cfg(test)]
#[path = "row_cost.rs"]
mod cost;
