//! Document about the delivered traffic.

use crate::plan::{GatewayRoute, GatewaySide};
use cutline_provision::{Direction, GrantState};
use cutline_records::record;
use cutline_signal::mib::HistogramSummary;
use cutline_signal::monitor::{Received, Sent};
use cutline_socket::{ConnectionReservation, Mib, ReservationEvent};
use cutline_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::SocketAddr;

/// The most connections that a document lists. The traffic of others is in the totals.
pub const MOST_LISTED: usize = 1000;

/// Traffic that a gateway has carried.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GatewayDocument {
    /// Side of the gateway: `near` or `far`.
    pub side: &'static str,
    /// Run time, seconds.
    pub elapsed_s: f64,
    /// The routes.
    pub routes: Vec<RouteDocument>,
    /// The connections in the order in which they ended, the first thousand.
    pub connections: Vec<ConnectionDocument>,
    /// Connections beyond those; they are in the routes' totals.
    pub unlisted: u64,
    /// Error of the recording; null without one, or without a recording.
    pub record_error: Option<String>,
}

record! {
    /// A route, and all its connections.
    pub struct RouteDocument {
        transport: String, label, "Protocol of the programs: `tcp` or `udp`.";
        listen: String, label, "Address at which the gateway listens.", shown("listens at");
        to: String, label, "Address to which the gateway connects.", shown("connects to");
        totals: ConnectionTotals, part, "All connections.";
    }

    /// All connections of a route.
    pub struct ConnectionTotals {
        accepted: u64, counter("connections"), "Connections accepted.", shown("accepted");
        failed: u64, counter("connections"), "Connections that were not made, or broke.", shown("failed");
        turned_away: u64, counter("connections"), "Connections not accepted because there were too many, in all or of one address.", shown("turned away");
        strangers: u64, counter("connections"), "Connections whose peer was no near gateway, had another key, or said nothing in time; they are in no other counter.", shown("strangers");
        sent_messages: u64, counter("messages"), "Messages sent to the other gateway.", shown("messages sent");
        sent_bytes: u64, counter("B"), "Bytes of the messages sent to the other gateway.", shown("KB sent", 1e-3);
        received_messages: u64, counter("messages"), "Messages received from the other gateway.", shown("received");
        received_bytes: u64, counter("B"), "Bytes of the messages received from the other gateway.", shown("KB received", 1e-3);
        lost: u64, counter("messages"), "Messages from the other gateway that were lost.", shown("lost");
    }

    /// A connection.
    pub struct ConnectionDocument {
        connection: u64, label, "Number of the connection, from 1.";
        transport: String, label, "Protocol of the programs: `tcp` or `udp`.";
        listen: String, label, "Address at which the gateway has accepted it.";
        peer: String, label, "Address of the program or of the near gateway that has connected.";
        opened_s: f64, gauge("s"), "Time of its acceptance, by the host's monotonic clock.";
        elapsed_s: f64, gauge("s"), "Duration of the connection.";
        ending: String, part, "Reason of the connection's end.";
        failed: bool, part, "True if the connection was not made, or broke.";
        sent: DeliveredDocument, part, "Data sent to the other gateway.";
        received: DeliveredDocument, part, "Data received from the other gateway.";
        clock_error_ms: Option<f64>, gauge("ms"), "The largest error of the offset between the two hosts' clocks, and so of each delay; null if the offset is not known.";
        round_trip_ms: Option<f64>, gauge("ms"), "The latest round-trip time; null if it is not known.";
        retransmissions: Option<u64>, counter("packets"), "Segments that TCP sent again; null for datagrams.";
        oversized: u64, counter("messages"), "Datagrams of the programs that were longer than was agreed on, and not sent.";
        overflowed: u64, counter("messages"), "Datagrams that were dropped because too many waited for their turn at the rate agreed on.";
        unsent: u64, counter("messages"), "Datagrams that the system refused to send, to the other gateway or to the program.";
    }

    /// A direction of a connection.
    pub struct DeliveredDocument {
        sent_messages: u64, counter("messages"), "Messages sent; by the other gateway, as it reports.";
        sent_bytes: u64, counter("B"), "Bytes of the messages sent.";
        received_messages: u64, counter("messages"), "Messages received; by the other gateway, as it reports.";
        received_bytes: u64, counter("B"), "Bytes of the messages received.";
        lost: u64, counter("messages"), "Messages lost.";
        late: u64, counter("messages"), "Messages received after one with a higher number.";
        loss_percent: Option<f64>, gauge("%"), "Messages lost of those sent; null if none was sent.";
        received_bps: f64, gauge("bit/s"), "The mean throughput received, over the whole connection.";
        mean_delay_ms: Option<f64>, gauge("ms"), "The mean one-way delay; null if it is not known.";
        p99_delay_ms: Option<f64>, gauge("ms"), "99th percentile of the delay; null where the other gateway received.";
        max_delay_ms: Option<f64>, gauge("ms"), "The longest delay; null where the other gateway received.";
        mean_jitter_ms: Option<f64>, gauge("ms"), "The mean change of delay between consecutive messages; null where the other gateway received.";
        p99_jitter_ms: Option<f64>, gauge("ms"), "99th percentile of the change of delay; null where the other gateway received.";
        max_jitter_ms: Option<f64>, gauge("ms"), "The largest change; null where the other gateway received.";
        violations: u64, counter("violations"), "Number of times that a measure was outside of the agreement.";
        reserved_bps: Option<u64>, gauge("bit/s"), "The rate that the network has reserved; null if it has not.";
        refusal: Option<String>, part, "Reason of a refused reservation, and the grantable traffic; null if it was reserved, or not requested.";
    }
}

impl RouteDocument {
    pub(crate) fn new(route: &GatewayRoute) -> Self {
        Self {
            transport: route.transport.name().to_owned(),
            listen: route.listen.to_string(),
            to: route.to.clone(),
            totals: ConnectionTotals::default(),
        }
    }
}

impl ConnectionDocument {
    /// A connection of which nothing is known but that it was accepted.
    pub(crate) fn accepted(connection: u64, route: &GatewayRoute, peer: SocketAddr, opened_s: f64) -> Self {
        Self {
            connection,
            transport: route.transport.name().to_owned(),
            listen: route.listen.to_string(),
            peer: peer.to_string(),
            opened_s,
            ..Self::default()
        }
    }

    /// Adds the values of the MIB.
    pub(crate) fn measured(&mut self, mib: &Mib, elapsed: Duration) {
        let clock = mib.clock.as_ref();
        let violations = |counts: &[u64]| counts.iter().sum();
        let none = (None, None);
        self.sent = DeliveredDocument::new(
            &mib.send.sent,
            &mib.send.received,
            none,
            elapsed,
            violations(&mib.send.conformance.counts),
        );
        self.received = DeliveredDocument::new(
            &mib.receive.sent,
            &mib.receive.received,
            (mib.receive.delay, mib.receive.jitter),
            elapsed,
            violations(&mib.receive.conformance.counts),
        );
        self.clock_error_ms = clock.map(|clock| clock.error.as_millis_f64());
        self.round_trip_ms = clock.map(|clock| clock.round_trip.as_millis_f64());
        self.retransmissions = mib.tcp.map(|tcp| tcp.retransmissions.into());
    }

    /// Adds the reservations of the network, or the reason of their absence. The end of a connection ends reservations, so past ones are in events.
    pub(crate) fn reserved(
        &mut self,
        status: Option<&ConnectionReservation>,
        events: impl IntoIterator<Item = ReservationEvent>,
    ) {
        for event in events {
            match event {
                ReservationEvent::Granted(direction, bucket)
                | ReservationEvent::Changed(direction, bucket) => {
                    let of = self.direction(direction);
                    (of.reserved_bps, of.refusal) = (Some(bucket.rate.as_bps()), None);
                }
                ReservationEvent::Lost(direction, refusal) => {
                    let of = self.direction(direction);
                    if of.reserved_bps.is_none() {
                        of.refusal.get_or_insert_with(|| refusal.to_string());
                    }
                }
                ReservationEvent::Confirmed(..) => {}
            }
        }
        let Some(status) = status else { return };
        for (direction, state) in [(Direction::Send, &status.send), (Direction::Receive, &status.receive)] {
            let of = self.direction(direction);
            if let (GrantState::Failed(refusal), None) = (state, of.reserved_bps) {
                of.refusal.get_or_insert_with(|| refusal.to_string());
            }
        }
    }

    const fn direction(&mut self, direction: Direction) -> &mut DeliveredDocument {
        match direction {
            Direction::Send => &mut self.sent,
            Direction::Receive => &mut self.received,
        }
    }
}

impl DeliveredDocument {
    fn new(
        sent: &Sent,
        received: &Received,
        (delay, jitter): (Option<HistogramSummary>, Option<HistogramSummary>),
        elapsed: Duration,
        violations: u64,
    ) -> Self {
        let ms = |of: Option<HistogramSummary>, value: fn(&HistogramSummary) -> Duration| {
            of.as_ref().map(|of| value(of).as_millis_f64())
        };
        let mean = |of: &Received| {
            let has_delay = of.messages > 0 && !of.delay.is_zero();
            has_delay.then(|| of.delay.as_millis_f64() / of.messages as f64)
        };
        Self {
            // The peer's report of its sent traffic may be older than later arrivals.
            sent_messages: sent.messages.max(received.expected),
            sent_bytes: sent.bytes.max(received.bytes),
            received_messages: received.messages,
            received_bytes: received.bytes,
            lost: received.lost(),
            late: received.late,
            loss_percent: (received.expected > 0)
                .then(|| 100.0 * received.lost() as f64 / received.expected as f64),
            received_bps: throughput(received.bytes, elapsed),
            mean_delay_ms: ms(delay, |of| of.mean).or_else(|| mean(received)),
            p99_delay_ms: ms(delay, |of| of.p99),
            max_delay_ms: ms(delay, |of| of.max),
            mean_jitter_ms: ms(jitter, |of| of.mean),
            p99_jitter_ms: ms(jitter, |of| of.p99),
            max_jitter_ms: ms(jitter, |of| of.max),
            violations,
            reserved_bps: None,
            refusal: None,
        }
    }
}

fn throughput(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

impl ConnectionTotals {
    /// Adds a connection that has ended.
    pub(crate) fn add(&mut self, connection: &ConnectionDocument) {
        self.failed += u64::from(connection.failed);
        self.sent_messages += connection.sent.sent_messages;
        self.sent_bytes += connection.sent.sent_bytes;
        self.received_messages += connection.received.received_messages;
        self.received_bytes += connection.received.received_bytes;
        self.lost += connection.received.lost;
    }
}

impl GatewayDocument {
    pub(crate) fn new(side: GatewaySide, routes: &[GatewayRoute]) -> Self {
        Self {
            side: side.name(),
            elapsed_s: 0.0,
            routes: routes.iter().map(RouteDocument::new).collect(),
            connections: Vec::new(),
            unlisted: 0,
            record_error: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_provision::{Refusal, RefusalReason};
    use cutline_translate::TrafficSpec;
    use cutline_units::{Bytes, Rate};

    fn bucket(kbps: u64) -> TrafficSpec {
        TrafficSpec {
            rate: Rate::from_kbps(kbps),
            bucket: Bytes::new(2000),
            peak: Rate::from_mbps(1),
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        }
    }

    fn found(states: [GrantState; 2], events: Vec<ReservationEvent>) -> [(Option<u64>, Option<String>); 2] {
        let [send, receive] = states;
        let mut document = ConnectionDocument::default();
        let status = ConnectionReservation { service: "rsvp", demand: None, send, receive, is_lost: false };
        document.reserved(Some(&status), events);
        [document.sent, document.received].map(|of| (of.reserved_bps, of.refusal))
    }

    #[test]
    fn a_connection_has_its_reservation_or_its_refusal() {
        let ended = || Refusal::new(RefusalReason::Ended);
        let refused = Refusal { reason: RefusalReason::Bandwidth, node: None, available_bps: Some(400_000) };
        let send = Direction::Send;
        // The peer has gone first.
        let events = vec![
            ReservationEvent::Lost(send, refused.clone()),
            ReservationEvent::Granted(send, bucket(100)),
            ReservationEvent::Changed(send, bucket(50)),
            ReservationEvent::Lost(send, ended()),
            ReservationEvent::Lost(Direction::Receive, refused),
            ReservationEvent::Lost(Direction::Receive, ended()),
        ];
        let why = "the bandwidth is not available; 400 kbit/s would be granted".to_owned();
        let both = [GrantState::Failed(ended()), GrantState::Failed(ended())];
        assert_eq!(found(both, events), [(Some(50_000), None), (None, Some(why))]);
        // A missing answer is no event.
        let unanswered = GrantState::Failed(Refusal::new(RefusalReason::Unanswered));
        let why = "there was no answer in time".to_owned();
        assert_eq!(found([GrantState::NotRequested, unanswered], vec![]), [(None, None), (None, Some(why))]);
    }
}
