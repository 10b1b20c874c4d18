//! The MIB of a connection as plain data.

use crate::{ConnectionReservation, count, nanos, nanos_or_unknown};
use cutline_manager::scheduling;
use cutline_quality::spec::{Agreement, Measure, Specification};
use cutline_signal::mib::{self, Conformance, Contract, TcpFigures};
use cutline_signal::monitor::{self, Delivery, Received, Sent};
use cutline_signal::negotiation::NegotiationStats;
use cutline_signal::rate_control::TfrcFigures;
use cutline_socket as socket;
use serde::Serialize;

/// Number of measures: rate, delay, gap, jitter, loss, recovery, in this order.
pub const MEASURES: usize = Measure::ALL.len();

/// Requirements on a direction. An open number is NaN; an open time or size is -1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Requirements {
    /// The lowest acceptable rate, messages/s.
    pub min_rate: f64,
    /// The highest useful rate, messages/s.
    pub max_rate: f64,
    /// The highest rate of a burst, messages/s.
    pub peak_rate: f64,
    /// The longest message, bytes.
    pub size: i64,
    /// The delay below which a shorter delay has no further use, ns.
    pub min_delay_ns: i64,
    /// The longest acceptable one-way delay, ns.
    pub max_delay_ns: i64,
    /// The longest time between the arrivals of two messages, ns.
    pub max_gap_ns: i64,
    /// The largest change of delay between consecutive messages, ns.
    pub jitter_ns: i64,
    /// The largest share of messages lost, per cent.
    pub loss: f64,
    /// The longest time to recover a broken connection, ns.
    pub recovery_ns: i64,
    /// 1 if messages may be delivered out of order, 0 if not, -1 if this is open.
    pub reordering: i64,
}

/// Traffic received since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Totals {
    /// Messages received, without duplicates.
    pub messages: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Messages lost.
    pub lost: i64,
    /// Messages received after one with a higher number.
    pub late: i64,
    /// Messages received more than once.
    pub duplicated: i64,
    /// Time in which received data waited because the application did not read, ns.
    pub unread_ns: i64,
    /// Datagrams that the receiving host dropped because the receive buffer of the socket was full.
    pub overflowed: i64,
}

/// Traffic delivered in an interval, and its measures. Unknown times are -1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Interval {
    /// Length of the interval, ns. Before the first interval it is -1, and the other fields are 0.
    pub length_ns: i64,
    /// Messages that the sender has sent in the interval.
    pub sent: i64,
    /// Messages received, without duplicates.
    pub messages: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Messages lost; negative if messages arrived that had been counted as lost.
    pub lost: i64,
    /// Messages received after one with a higher number.
    pub late: i64,
    /// Messages received more than once.
    pub duplicated: i64,
    /// Messages received per second.
    pub rate: f64,
    /// The throughput, bit/s.
    pub throughput_bps: i64,
    /// The mean one-way delay, ns.
    pub delay_mean_ns: i64,
    /// The quantile of the delays that is compared with the limit, ns.
    pub delay_quantile_ns: i64,
    /// The longest delay, ns.
    pub delay_worst_ns: i64,
    /// The mean jitter, ns.
    pub jitter_mean_ns: i64,
    /// The quantile of the jitters that is compared with the limit, ns.
    pub jitter_quantile_ns: i64,
    /// The largest jitter, ns.
    pub jitter_worst_ns: i64,
    /// The longest time without an arrival, ns.
    pub gap_ns: i64,
    /// Time in which received data waited because the application did not read, ns.
    pub unread_ns: i64,
    /// Datagrams that the receiving host dropped because the receive buffer of the socket was full.
    pub overflowed: i64,
}

/// Summary of a distribution of times. If it is empty, count is 0 and the times are -1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct HistogramSummary {
    /// Number of values.
    pub count: i64,
    /// The mean, ns.
    pub mean_ns: i64,
    /// The median, ns.
    pub p50_ns: i64,
    /// The 90th percentile, ns.
    pub p90_ns: i64,
    /// The 99th percentile, ns.
    pub p99_ns: i64,
    /// The greatest, ns.
    pub max_ns: i64,
}

/// Management information of a direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct DirectionMib {
    /// The effective specification: the agreement, or this end's own specification.
    pub effective: Requirements,
    /// 1 if both ends have agreed on this specification, otherwise 0.
    pub agreed: i64,
    /// Messages sent since the beginning; for the direction that this end receives, as the peer reports.
    pub sent_messages: i64,
    /// Their bytes.
    pub sent_bytes: i64,
    /// Time in which the sending application was held back, ns.
    pub held_ns: i64,
    /// Traffic received since the beginning; for the direction that this end sends, as the peer reports.
    pub received: Totals,
    /// The last interval of measurement.
    pub last: Interval,
    /// The measures that are outside their limits now: bit 1 << measure for each.
    pub violated: i64,
    /// Number of violations of each measure: rate, delay, gap, jitter, loss, recovery.
    pub violations: [i64; MEASURES],
}

/// A measure in the region of operation, in its unit: messages/s, ms, or per cent. Unknown numbers are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Axis {
    /// The best value; a better one has no further use. NaN if any value is acceptable, and then nothing is measured.
    pub best: f64,
    /// The worst acceptable value.
    pub worst: f64,
    /// The best value measured since the specification took effect.
    pub best_measured: f64,
    /// The worst value measured since the specification took effect.
    pub worst_measured: f64,
    /// Worst value of the present violation, while the measure is outside its limit.
    pub violated: f64,
    /// The largest error of `violated` due to the two clocks.
    pub violated_error: f64,
    /// Start of the violation, by the monotonic clock, ns; -1 without a violation.
    pub violated_since_ns: i64,
}

/// Further management information of a direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Details {
    /// Requirements of this end. All fields are open if the ends have not agreed.
    pub offered: Requirements,
    /// Requirements of the peer. All fields are open if the ends have not agreed.
    pub requested: Requirements,
    /// The requirements in effect that may be weakened: bit 1 << n for field n, counted from 0 at `min_rate`.
    pub coerced: i64,
    /// The region of operation, and the measurements in it: rate, delay, gap, jitter, loss, recovery.
    pub operation: [Axis; MEASURES],
    /// Start of the last interval of measurement, by the monotonic clock of the receiving end, ns; -1 before the first.
    pub last_since_ns: i64,
    /// The time from the last arrival to the end of that interval, ns.
    pub silence_ns: i64,
    /// Messages received with an impossible number; no other field counts them.
    pub impossible: i64,
    /// The sum of the delays of the messages received, ns.
    pub delay_sum_ns: i64,
}

/// Traffic that this end has sent in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct SentInterval {
    /// Start of the interval, by the monotonic clock, ns; -1 before the first.
    pub since_ns: i64,
    /// Length of the interval, ns. Before the first interval it is -1, and the other fields are 0.
    pub length_ns: i64,
    /// Messages.
    pub messages: i64,
    /// Their bytes.
    pub bytes: i64,
    /// The throughput, bit/s.
    pub throughput_bps: i64,
    /// Time in which the application was held back, ns.
    pub held_ns: i64,
}

/// The messages of negotiations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Negotiation {
    /// Messages sent.
    pub sent: i64,
    /// Messages that were sent again.
    pub sent_again: i64,
    /// Messages received and used.
    pub received: i64,
    /// Messages received that repeat an earlier one, or came too late.
    pub stale: i64,
    /// Messages of another session, kind or version, and malformed ones.
    pub ignored: i64,
    /// Messages with a wrong authentication tag, or without one.
    pub unauthenticated: i64,
}

/// The kernel's data about a TCP connection. All fields are -1 for a datagram socket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Tcp {
    /// The smoothed round-trip time, ns.
    pub rtt_ns: i64,
    /// The variation of the round-trip time, ns.
    pub rtt_deviation_ns: i64,
    /// The least round-trip time, ns.
    pub min_rtt_ns: i64,
    /// The congestion window, segments.
    pub congestion_window: i64,
    /// Segments sent again since the beginning.
    pub retransmissions: i64,
    /// Bytes written and not yet sent.
    pub not_sent: i64,
    /// The rate at which the peer acknowledges data, bit/s.
    pub delivery_rate_bps: i64,
    /// The rate at which data is paced, bit/s.
    pub pacing_rate_bps: i64,
}

/// TFRC's state of the direction in which this end sends. Without TFRC (option `rate-control`) the loss event rate is NaN, and
/// the other fields are -1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Tfrc {
    /// The allowed rate, of messages without headers, bit/s.
    pub rate_bps: i64,
    /// The average round-trip time, ns; -1 also before the first feedback.
    pub rtt_ns: i64,
    /// The loss event rate that the peer has reported, 0 to 1.
    pub loss_event_rate: f64,
    /// Feedback of the peer that was used.
    pub feedback: i64,
    /// Number of expiries of the nofeedback timer, each of which halved the rate.
    pub nofeedback: i64,
    /// Feedback that was stale, impossible, or not authentic.
    pub refused: i64,
}

/// Messages of a managed datagram socket, and their deadlines. All fields are -1 for a stream, and without a share of the host
/// (option `allocation`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct SchedulingStats {
    /// Messages sent since the share was granted.
    pub sent: i64,
    /// Messages that left more than the longest acceptable delay after the call that sent them.
    pub missed: i64,
    /// The longest time by which a message was late, ns.
    pub latest_ns: i64,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Mib {
    /// Size of this struct, set by the caller. Later versions have more fields at its end.
    #[serde(skip)]
    pub size: usize,
    /// Time of these values, by the monotonic clock, ns.
    pub at_ns: i64,
    /// Direction in which this end sends.
    pub send: DirectionMib,
    /// Direction in which this end receives.
    pub receive: DirectionMib,
    /// The one-way delays received since the beginning.
    pub delay: HistogramSummary,
    /// The jitters received since the beginning.
    pub jitter: HistogramSummary,
    /// The rate at which the application should send, messages/s; NaN if no rate is requested.
    pub target_rate: f64,
    /// The delay hint of the packets that this end sends, 1 to 16; -1 if they have none.
    pub hint: i64,
    /// The peer's clock minus the clock of this host, ns; valid if `clock_error_ns` is not -1.
    pub clock_offset_ns: i64,
    /// The largest error of `clock_offset_ns`, ns; -1 if the offset is unknown.
    pub clock_error_ns: i64,
    /// The latest round-trip time of a report, ns; -1 if it is unknown.
    pub round_trip_ns: i64,
    /// Reports of the peer that were used.
    pub reports: i64,
    /// Number of times that sending had to wait because the send queue was full.
    pub queue_full: i64,
    /// Number of times that sending had to wait for the agreed rate, or was refused until then.
    pub pacing_waits: i64,
    /// Messages sent although the application exceeded the agreed rate.
    pub unpaced: i64,
    /// Total time that sending has waited, ns.
    pub waited_ns: i64,
    /// Messages that were not sent because the interface's queue had no room; only datagrams show it.
    pub no_buffers: i64,
    /// The kernel's data about the TCP connection.
    pub tcp: Tcp,
    /// Further information about the direction in which this end sends.
    pub send_details: Details,
    /// Further information about the direction in which this end receives.
    pub receive_details: Details,
    /// Traffic that this end has sent in the last interval.
    pub last_sent: SentInterval,
    /// Rate that the application may use beyond that of the last interval, by the agreement and by TFRC,
    /// messages/s of the longest; NaN if it is unknown, or no rate limit is in effect.
    pub residual_rate: f64,
    /// The same as a throughput, bit/s; -1 also if no message size is in effect, except with TFRC.
    pub residual_bps: i64,
    /// Send queue of the socket, bytes: for a stream the data written and not acknowledged, for datagrams the
    /// data not sent by the interface, with the kernel's overhead; -1 if unknown.
    pub send_queue: i64,
    /// The memory that the send queue may take, with the kernel's overhead, bytes; -1 if it is unknown.
    pub send_buffer: i64,
    /// Number of ICMP messages that report the peer as unreachable for the time being.
    pub unreachable: i64,
    /// The messages of negotiations.
    pub negotiation: Negotiation,
    /// Reports of the peer that were not newer than an earlier one.
    pub reports_stale: i64,
    /// Reports that contradict themselves, earlier ones, or the sent traffic.
    pub reports_refused: i64,
    /// Number of times that one of the two clocks was set.
    pub clock_steps: i64,
    /// TFRC's state of the direction in which this end sends.
    pub tfrc: Tfrc,
    /// Number of reconnections. The numbers of messages are those of the present connection.
    pub reconnections: i64,
    /// Time of the last reconnection, by the monotonic clock, ns; -1 if there was none.
    pub reconnected_ns: i64,
    /// State of the reservation.
    pub reservation: ConnectionReservation,
    /// Messages and their deadlines.
    pub scheduling: SchedulingStats,
}

impl From<Option<scheduling::SchedulingStats>> for SchedulingStats {
    fn from(it: Option<scheduling::SchedulingStats>) -> Self {
        Self {
            sent: it.map_or(-1, |it| count(it.sent)),
            missed: it.map_or(-1, |it| count(it.missed)),
            latest_ns: nanos_or_unknown(it.map(|it| it.latest)),
        }
    }
}

impl From<&Specification> for Requirements {
    fn from(spec: &Specification) -> Self {
        Self {
            min_rate: spec.min_rate.unwrap_or(f64::NAN),
            max_rate: spec.max_rate.unwrap_or(f64::NAN),
            peak_rate: spec.peak_rate.unwrap_or(f64::NAN),
            size: spec.size.map_or(-1, |size| count(size.get())),
            min_delay_ns: nanos_or_unknown(spec.min_delay),
            max_delay_ns: nanos_or_unknown(spec.max_delay),
            max_gap_ns: nanos_or_unknown(spec.max_gap),
            jitter_ns: nanos_or_unknown(spec.jitter),
            loss: spec.loss.unwrap_or(f64::NAN),
            recovery_ns: nanos_or_unknown(spec.recovery),
            reordering: spec.reordering.map_or(-1, i64::from),
        }
    }
}

impl From<&Received> for Totals {
    fn from(it: &Received) -> Self {
        Self {
            messages: count(it.messages),
            bytes: count(it.bytes),
            lost: count(it.lost()),
            late: count(it.late),
            duplicated: count(it.duplicated),
            unread_ns: nanos(it.unread),
            overflowed: count(it.overflowed),
        }
    }
}

impl From<Option<&Delivery>> for Interval {
    fn from(last: Option<&Delivery>) -> Self {
        let it = last.copied().unwrap_or_default();
        Self {
            length_ns: nanos_or_unknown(last.map(Delivery::length)),
            sent: count(it.sent),
            messages: count(it.messages),
            bytes: count(it.bytes),
            lost: it.lost,
            late: count(it.late),
            duplicated: count(it.duplicated),
            rate: it.rate(),
            throughput_bps: if last.is_some() { count(it.throughput().as_bps()) } else { 0 },
            delay_mean_ns: nanos_or_unknown(it.delay.map(|delay| delay.mean)),
            delay_quantile_ns: nanos_or_unknown(it.delay.map(|delay| delay.quantile)),
            delay_worst_ns: nanos_or_unknown(it.delay.map(|delay| delay.worst)),
            jitter_mean_ns: nanos_or_unknown(it.jitter.map(|jitter| jitter.mean)),
            jitter_quantile_ns: nanos_or_unknown(it.jitter.map(|jitter| jitter.quantile)),
            jitter_worst_ns: nanos_or_unknown(it.jitter.map(|jitter| jitter.worst)),
            gap_ns: nanos(it.gap),
            unread_ns: nanos(it.unread),
            overflowed: count(it.overflowed),
        }
    }
}

impl From<Option<mib::HistogramSummary>> for HistogramSummary {
    fn from(it: Option<mib::HistogramSummary>) -> Self {
        Self {
            count: it.map_or(0, |it| count(it.count)),
            mean_ns: nanos_or_unknown(it.map(|it| it.mean)),
            p50_ns: nanos_or_unknown(it.map(|it| it.p50)),
            p90_ns: nanos_or_unknown(it.map(|it| it.p90)),
            p99_ns: nanos_or_unknown(it.map(|it| it.p99)),
            max_ns: nanos_or_unknown(it.map(|it| it.max)),
        }
    }
}

impl DirectionMib {
    fn new(
        contract: &Contract,
        sent: &Sent,
        (received, last): (&Received, Option<&Delivery>),
        conformance: &Conformance,
    ) -> Self {
        let bit = |violation: &cutline_signal::violation::Violation| 1 << violation.measure as i64;
        Self {
            effective: (&contract.effective).into(),
            agreed: i64::from(contract.agreement.is_some()),
            sent_messages: count(sent.messages),
            sent_bytes: count(sent.bytes),
            held_ns: nanos(sent.held),
            received: received.into(),
            last: last.into(),
            violated: conformance.violations.iter().map(bit).sum(),
            violations: conformance.counts.map(count),
        }
    }
}

impl Details {
    fn new(
        contract: &Contract,
        (received, last): (&Received, Option<&Delivery>),
        conformance: &Conformance,
    ) -> Self {
        let agreed = |asked: fn(&Agreement) -> Specification| {
            contract.agreement.as_ref().map_or(Specification::OPEN, asked)
        };
        Self {
            offered: (&agreed(Agreement::offered)).into(),
            requested: (&agreed(Agreement::requested)).into(),
            coerced: contract.effective.coerced.bits().into(),
            operation: Measure::ALL.map(|measure| Axis::new(measure, conformance)),
            last_since_ns: last.map_or(-1, |last| count(last.since.as_nanos())),
            silence_ns: last.map_or(0, |last| nanos(last.silence)),
            impossible: count(received.impossible),
            delay_sum_ns: nanos(received.delay),
        }
    }
}

impl Axis {
    fn new(measure: Measure, conformance: &Conformance) -> Self {
        let axis = conformance.operation.region().axis(measure);
        let seen = conformance.operation.seen().find(|(axis, ..)| axis.measure == measure);
        let violation = conformance.violations.iter().find(|violation| violation.measure == measure);
        Self {
            best: axis.map_or(f64::NAN, |axis| axis.best),
            worst: axis.map_or(f64::NAN, |axis| axis.worst),
            best_measured: seen.map_or(f64::NAN, |(_, best, _)| best),
            worst_measured: seen.map_or(f64::NAN, |(_, _, worst)| worst),
            violated: violation.map_or(f64::NAN, |violation| violation.measured),
            violated_error: violation.map_or(f64::NAN, |violation| violation.error),
            violated_since_ns: violation.map_or(-1, |violation| count(violation.since.as_nanos())),
        }
    }
}

impl From<Option<monitor::SentInterval>> for SentInterval {
    fn from(it: Option<monitor::SentInterval>) -> Self {
        Self {
            since_ns: it.map_or(-1, |it| count(it.since.as_nanos())),
            length_ns: nanos_or_unknown(it.map(|it| it.until.saturating_since(it.since))),
            messages: it.map_or(0, |it| count(it.sent.messages)),
            bytes: it.map_or(0, |it| count(it.sent.bytes)),
            throughput_bps: it.map_or(0, |it| count(it.throughput().as_bps())),
            held_ns: it.map_or(0, |it| nanos(it.sent.held)),
        }
    }
}

impl From<&NegotiationStats> for Negotiation {
    fn from(it: &NegotiationStats) -> Self {
        Self {
            sent: count(it.sent),
            sent_again: count(it.sent_again),
            received: count(it.received),
            stale: count(it.stale),
            ignored: count(it.ignored),
            unauthenticated: count(it.unauthenticated),
        }
    }
}

impl From<Option<TcpFigures>> for Tcp {
    fn from(it: Option<TcpFigures>) -> Self {
        Self {
            rtt_ns: nanos_or_unknown(it.map(|it| it.rtt)),
            rtt_deviation_ns: nanos_or_unknown(it.map(|it| it.rtt_deviation)),
            min_rtt_ns: nanos_or_unknown(it.map(|it| it.min_rtt)),
            congestion_window: it.map_or(-1, |it| i64::from(it.congestion_window)),
            retransmissions: it.map_or(-1, |it| i64::from(it.retransmissions)),
            not_sent: it.map_or(-1, |it| count(it.not_sent.get())),
            delivery_rate_bps: it.map_or(-1, |it| count(it.delivery_rate.as_bps())),
            pacing_rate_bps: it.map_or(-1, |it| count(it.pacing_rate.as_bps())),
        }
    }
}

impl From<Option<TfrcFigures>> for Tfrc {
    fn from(it: Option<TfrcFigures>) -> Self {
        Self {
            rate_bps: it.map_or(-1, |it| count(it.rate.as_bps())),
            rtt_ns: nanos_or_unknown(it.and_then(|it| it.rtt)),
            loss_event_rate: it.map_or(f64::NAN, |it| it.loss_event_rate),
            feedback: it.map_or(-1, |it| count(it.feedback)),
            nofeedback: it.map_or(-1, |it| count(it.nofeedback)),
            refused: it.map_or(-1, |it| count(it.refused)),
        }
    }
}

impl From<&socket::Mib> for Mib {
    fn from(it: &socket::Mib) -> Self {
        let (send, receive) = (&it.send, &it.receive);
        Self {
            size: size_of::<Self>(),
            at_ns: count(it.at.as_nanos()),
            send: DirectionMib::new(
                &send.contract,
                &send.sent,
                (&send.received, send.last.as_ref()),
                &send.conformance,
            ),
            receive: DirectionMib::new(
                &receive.contract,
                &receive.sent,
                (&receive.received, receive.last.as_ref()),
                &receive.conformance,
            ),
            delay: receive.delay.into(),
            jitter: receive.jitter.into(),
            target_rate: send.target_rate.unwrap_or(f64::NAN),
            hint: it.hint.map_or(-1, |hint| i64::from(hint.level())),
            clock_offset_ns: it.clock.map_or(0, |clock| clock.offset.as_nanos()),
            clock_error_ns: nanos_or_unknown(it.clock.map(|clock| clock.error)),
            round_trip_ns: nanos_or_unknown(it.clock.map(|clock| clock.round_trip)),
            reports: count(it.reports.used),
            queue_full: count(it.feedback.queue_full),
            pacing_waits: count(it.feedback.pacing_waits),
            unpaced: count(it.feedback.unpaced),
            waited_ns: nanos(it.feedback.waited),
            no_buffers: count(it.feedback.no_buffers),
            tcp: it.tcp.into(),
            send_details: Details::new(
                &send.contract,
                (&send.received, send.last.as_ref()),
                &send.conformance,
            ),
            receive_details: Details::new(
                &receive.contract,
                (&receive.received, receive.last.as_ref()),
                &receive.conformance,
            ),
            last_sent: send.last_sent.into(),
            residual_rate: send.residual.map_or(f64::NAN, |left| left.rate),
            residual_bps: send
                .residual
                .and_then(|left| left.throughput)
                .map_or(-1, |left| count(left.as_bps())),
            send_queue: it.feedback.send_queue.map_or(-1, |bytes| count(bytes.get())),
            send_buffer: it.feedback.send_buffer.map_or(-1, |bytes| count(bytes.get())),
            unreachable: count(it.feedback.unreachable),
            negotiation: (&it.negotiation).into(),
            reports_stale: count(it.reports.stale),
            reports_refused: count(it.reports.refused),
            clock_steps: count(it.clock_steps),
            tfrc: it.tfrc.into(),
            reconnections: count(it.feedback.reconnections),
            reconnected_ns: it.feedback.reconnected.map_or(-1, |at| count(at.as_nanos())),
            reservation: it.reservation.as_ref().into(),
            scheduling: it.scheduling.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Duration, Rate};

    #[test]
    fn deadlines_are_numbers_and_without_a_share_unknown() {
        let stats = scheduling::SchedulingStats { sent: 9, missed: 2, latest: Duration::from_millis(3) };
        let SchedulingStats { sent, missed, latest_ns } = Some(stats).into();
        assert_eq!((sent, missed, latest_ns), (9, 2, 3_000_000));
        let SchedulingStats { sent, missed, latest_ns } = None.into();
        assert_eq!([sent, missed, latest_ns], [-1; 3]);
    }

    #[test]
    fn the_figures_of_tfrc_are_numbers_and_without_it_unknown() {
        let figures = TfrcFigures {
            rate: Rate::from_kbps(640),
            rtt: Some(Duration::from_millis(20)),
            loss_event_rate: 0.01,
            feedback: 5,
            nofeedback: 1,
            refused: 2,
        };
        let Tfrc { rate_bps, rtt_ns, loss_event_rate, feedback, nofeedback, refused } = Some(figures).into();
        assert_eq!((rate_bps, rtt_ns, loss_event_rate), (640_000, 20_000_000, 0.01));
        assert_eq!((feedback, nofeedback, refused), (5, 1, 2));
        assert_eq!(Tfrc::from(Some(TfrcFigures { rtt: None, ..figures })).rtt_ns, -1);
        let Tfrc { rate_bps, rtt_ns, loss_event_rate, feedback, nofeedback, refused } = None.into();
        assert_eq!([rate_bps, rtt_ns, feedback, nofeedback, refused], [-1; 5]);
        assert!(loss_event_rate.is_nan());
    }
}
