//! Outcome of a run from the measurements of both ends of each flow, as the simulator's and with the same rows.
//!
//! A message is a packet here: a datagram, or a write of the application to a stream. Rates and losses are those of eq. 2 and 3 of
//! `QoSockets`, delays and jitter those of eq. 4 and 5, whose samples are messages.

use cutline_results::{DistributionRow, RunResult};
use cutline_signal::frame::DATAGRAM_HEADER;
use cutline_sim::measure::{DelayRecord, FlowInterval, FlowRecord, FlowTotals};
use cutline_sim::qos::QosRecord;
use cutline_sim::{FlowOutcome, FlowSpec, SimulationSettings};
use cutline_traffic::{ReceivedInterval, ReceiverReport, SenderReport, SentInterval};
use cutline_transport::endpoint::{TransportCounts, TransportParams};
use cutline_units::{Bytes, Duration, Instant};

/// Headers of a datagram: those of UDP and IPv4.
const UDP_HEADERS: u64 = 8 + 20;
/// Headers of a QoS connection's message on the wire: the session's, and those of UDP and IPv4.
const QOS_HEADERS: u64 = DATAGRAM_HEADER as u64 + UDP_HEADERS;

/// Measurements of a flow.
#[derive(Debug)]
pub struct Measured {
    pub outcome: FlowOutcome,
    /// Payload that the application has passed on in the measuring window, B.
    pub offered: u64,
}

fn packets(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The number of intervals of a run.
pub fn interval_count(settings: &SimulationSettings) -> usize {
    settings.duration.as_nanos().div_ceil(settings.interval.as_nanos()) as usize
}

/// The outcome of a flow of the traffic generator.
pub fn generated(
    flow: &FlowSpec,
    settings: &SimulationSettings,
    sent: &SenderReport,
    received: Option<&ReceiverReport>,
) -> Measured {
    let nothing = ReceiverReport::default();
    let received = received.unwrap_or(&nothing);
    let is_stream = matches!(flow.transport, TransportParams::Tcp(_));
    let headers = if is_stream { 0 } else { UDP_HEADERS };
    let delays = DelayRecord {
        one_way: received.delay.clone(),
        ipdv: received.ipdv.clone(),
        ..DelayRecord::default()
    };
    // The generator counts segments of a stream for the whole run alone, so messages are those that its payload makes.
    let messages = |bytes: u64| match flow.app.message_size().filter(|_| is_stream) {
        Some(size) => bytes / size.max(1),
        None => 0,
    };
    let sent_packets = if is_stream { messages(sent.window_bytes) } else { sent.window_packets };
    let totals = FlowTotals {
        sent: if is_stream { sent.messages } else { sent.packets },
        received: received.packets,
        dropped: received.lost,
    };
    let one_way_sum = delays.one_way.mean().unwrap_or_default() * delays.one_way.count();
    let record = FlowRecord {
        totals,
        sent_packets,
        sent_bytes: sent.window_bytes + headers * sent.window_packets,
        received_packets: received.window_packets,
        dropped_packets: received.window_lost.max(0) as u64,
        marked_packets: received.window_marked,
        delivered_bytes: received.window_bytes,
        one_way_sum,
        ..FlowRecord::default()
    };
    let interval = |index: usize| {
        let SentInterval { bytes, packets: count } = sent.intervals.get(index).copied().unwrap_or_default();
        let arrived: ReceivedInterval = received.intervals.get(index).copied().unwrap_or_default();
        FlowInterval {
            sent_packets: packets(if is_stream { messages(bytes) } else { count }),
            sent_bytes: bytes + headers * count,
            delivered_bytes: arrived.bytes,
            packets: packets(arrived.packets),
            marked: packets(arrived.marked),
            one_way_ns: arrived.delay_ns,
            ipdv_ns: arrived.ipdv_ns,
            dropped: packets(arrived.lost.max(0) as u64),
            ..FlowInterval::default()
        }
    };
    Measured {
        offered: sent.window_bytes,
        outcome: FlowOutcome {
            hint: flow.hint,
            record,
            delays: Some(Box::new(delays)),
            series: Some((0..interval_count(settings)).map(interval).collect()),
            transport: TransportCounts {
                retransmissions: sent.retransmissions,
                timeouts: sent.timeouts.unwrap_or(0),
                refused_bytes: sent.refused_bytes,
            },
            responses: None,
        },
    }
}

/// The outcome of a flow that is a QoS connection.
pub fn connected(flow: &FlowSpec, settings: &SimulationSettings, record: &QosRecord) -> Measured {
    let mut counts = FlowRecord::default();
    let mut delays = DelayRecord::default();
    let mut series = vec![FlowInterval::default(); interval_count(settings)];
    let index = |at: Instant| (at.as_nanos() / settings.interval.as_nanos()) as usize;
    let (mut last_delay, mut under_way, mut offered): (Option<Duration>, Vec<Instant>, u64) =
        (None, Vec::new(), 0);
    for message in &record.messages {
        let is_measured = settings.window.contains(message.sent);
        let bytes = u64::from(message.bytes);
        counts.totals.sent += 1;
        counts.sent_packets += u64::from(is_measured);
        counts.sent_bytes += u64::from(is_measured) * (bytes + QOS_HEADERS);
        offered += u64::from(is_measured) * bytes;
        if let Some(open) = series.get_mut(index(message.sent)) {
            open.sent_packets += 1;
            open.sent_bytes += bytes + QOS_HEADERS;
        }
        let (Some(arrived), Some(delay)) = (message.arrived, message.delay()) else {
            under_way.push(message.sent);
            continue;
        };
        // Messages sent before this one that have not arrived are lost. The loss is detected when this one arrives.
        for _ in under_way.drain(..) {
            counts.totals.dropped += 1;
            counts.dropped_packets += u64::from(settings.window.contains(arrived));
            series.get_mut(index(arrived)).into_iter().for_each(|open| open.dropped += 1);
        }
        counts.totals.received += 1;
        let change = last_delay.replace(delay).map(|last: Duration| last.abs_diff(delay));
        if settings.window.contains(arrived) {
            counts.received_packets += 1;
            counts.delivered_bytes += bytes;
            counts.one_way_sum += delay;
            delays.one_way.record(delay);
            if let Some(change) = change {
                delays.ipdv.record(change);
            }
        }
        if let Some(open) = series.get_mut(index(arrived)) {
            open.packets += 1;
            open.delivered_bytes += bytes;
            open.one_way_ns += delay.as_nanos();
            open.ipdv_ns += change.map_or(0, Duration::as_nanos);
        }
    }
    Measured {
        offered,
        outcome: FlowOutcome {
            hint: flow.hint,
            record: counts,
            delays: Some(Box::new(delays)),
            series: Some(series),
            transport: TransportCounts::default(),
            responses: None,
        },
    }
}

/// The name of the rate at which an application passed payload on, in the table of distributions: one value for each flow.
pub const OFFERED: &str = "offered_bps";

/// Adds the rates at which the applications passed payload on.
pub fn add_offered(
    rows: &mut RunResult,
    flows: &[FlowSpec],
    measured: &[Measured],
    settings: &SimulationSettings,
) {
    let seconds = settings.window.length().as_secs_f64();
    let row = |(flow, measured): (&FlowSpec, &Measured)| {
        DistributionRow::single(&flow.name, OFFERED, Bytes::new(measured.offered).bits() as f64 / seconds)
    };
    rows.distributions.extend(flows.iter().zip(measured).map(row));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routed::tests::{TESTBED, scenario};
    use cutline_sim::Window;
    use cutline_sim::qos::Passage;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn settings() -> SimulationSettings {
        let window = Window { from: at(500), until: at(1500) };
        let (duration, interval) = (Duration::from_millis(1500), Duration::from_millis(500));
        SimulationSettings { seed: 1, duration, window, interval }
    }

    /// Messages of 1000 B: sent at, arrived after.
    fn record(messages: &[(u64, Option<u64>)]) -> QosRecord {
        let passage = |&(sent, delay): &(u64, Option<u64>)| Passage {
            made: at(sent),
            sent: at(sent),
            arrived: delay.map(|delay| at(sent + delay)),
            bytes: 1000,
        };
        QosRecord { messages: messages.iter().map(passage).collect(), ..QosRecord::default() }
    }

    #[test]
    fn rates_loss_delay_and_jitter_are_the_paper_s_equations() {
        let network = scenario(TESTBED).network().unwrap();
        let messages = [
            (100, Some(10)),
            (600, Some(20)),
            (700, None),
            (800, Some(50)),
            (1100, Some(40)),
            (1200, None),
            (1490, Some(60)),
        ];
        let measured = connected(&network.flows()[0], &settings(), &record(&messages));
        let counts = measured.outcome.record;
        // In the window: six were sent, three arrived, one was found lost by the next arrival.
        assert_eq!((counts.sent_packets, counts.received_packets, counts.dropped_packets), (6, 3, 1));
        assert_eq!(
            (measured.offered, counts.sent_bytes, counts.delivered_bytes),
            (6000, 6000 + 6 * QOS_HEADERS, 3000)
        );
        let delays = measured.outcome.delays.unwrap();
        let mean = |histogram: &cutline_units::Histogram| histogram.mean().unwrap().as_millis_f64();
        assert!((mean(&delays.one_way) - 110.0 / 3.0).abs() < 0.5, "{}", mean(&delays.one_way));
        // |20 - 10|, |50 - 20| and |40 - 50|.
        assert!((mean(&delays.ipdv) - 50.0 / 3.0).abs() < 0.3, "{}", mean(&delays.ipdv));
        let series = measured.outcome.series.unwrap();
        let of = |index: usize| (series[index].sent_packets, series[index].packets, series[index].dropped);
        assert_eq!([of(0), of(1), of(2)], [(1, 1, 0), (3, 2, 1), (3, 1, 0)]);
        assert_eq!(counts.totals, FlowTotals { sent: 7, received: 5, dropped: 2 });
    }

    #[test]
    fn counters_of_generator_and_meter_become_a_flow() {
        let network = scenario(TESTBED).network().unwrap();
        let sent = SenderReport {
            packets: 90,
            bytes: 90_000,
            window_packets: 60,
            window_bytes: 60_000,
            intervals: vec![SentInterval { bytes: 30_000, packets: 30 }; 3],
            ..SenderReport::default()
        };
        let mut received = ReceiverReport {
            packets: 70,
            lost: 20,
            window_packets: 45,
            window_bytes: 45_000,
            window_lost: 15,
            intervals: vec![ReceivedInterval { bytes: 22_500, packets: 22, lost: 7, ..Default::default() }],
            ..ReceiverReport::default()
        };
        received.delay.record(Duration::from_millis(600));
        let flow = &network.flows()[0];
        let Measured { outcome, offered } = generated(flow, &settings(), &sent, Some(&received));
        let record = outcome.record;
        assert_eq!((offered, record.sent_bytes, record.dropped_packets), (60_000, 60_000 + 60 * 28, 15));
        let series = outcome.series.unwrap();
        assert_eq!(
            (series.len(), series[0].dropped, series[1].packets, series[2].sent_packets),
            (3, 7, 0, 30)
        );
        let silent = generated(flow, &settings(), &sent, None).outcome.record;
        assert_eq!((silent.sent_packets, silent.received_packets), (60, 0));
    }
}
