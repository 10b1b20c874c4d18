//! A router's statistics as a document: a line of JSON. The router's own output and the replies of its socket have the same
//! format. Counters count from the router's start; an interval is the difference of two documents.

use crate::configuration::in_words;
use crate::replies::ErrorReply;
use crate::reservation_request::RouterDirection;
use cutline_aqm::{Count, SieveReadings};
use cutline_flow::FlowSelector;
use cutline_ports::PortStats;
use cutline_records::{BucketCounts, record, total};
use cutline_router::{
    CountedReservation, FlowCounters, HINTS, HintCounters, Loss, Shaper, ShaperStats, TopFlows, WaitCounts,
};
use cutline_units::{Duration, Hint, Histogram, Instant, Probability, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

record! {
    /// The statistics of a router at one time.
    #[derive(Deserialize)]
    pub struct Statistics {
        #[schemars(extend("enum" = ["interval", "end", "stats"]))]
        event: String, label, "`interval`, `end`, or `stats` for a reply.";
        elapsed_s: f64, counter("s"), "Time since the router's start.";
        forward: DirectionStatistics, part, "From `--in` to `--out`.";
        reverse: DirectionStatistics, part, "From `--out` to `--in`.";
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interfaces as "ports": Vec<Interface>, part, "The interfaces; not reported by interval.";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reload: Option<ReloadStatus>, part, "The status of reloads, for a router with a file.";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        autorate: Option<AutorateStatistics>, part, "Observations and changes of rates that follow the link; only if a rate does.";
        #[serde(default)]
        dropped_output: u64, counter("documents"), "Documents and messages of the router's output that were dropped, because they could not be written at once.";
        #[serde(default)]
        refused_clients: u64, counter("clients"), "Clients of the router's socket that were refused, because the largest number of clients was connected.";
    }

    /// Packets and bytes since the start.
    #[derive(Copy, Eq, Deserialize)]
    pub struct PacketCount {
        packets: u64, counter("packets"), "Packets; of a router, frames.";
        bytes: u64, counter("B"), "Bytes of these packets, as the interface shows them.";
    }

    /// One direction. At any time received = sent + dropped + queued.
    #[derive(Deserialize)]
    #[schemars(rename = "Direction")]
    pub struct DirectionStatistics {
        name as "direction": String, label, "Name of the direction, such as `eth0 -> eth1`.";
        rate_bps: u64, gauge("bit/s"), "Rate to which the direction is shaped.";
        queue: String, label, "Name of the queue of the direction, such as `TSQ over pie`.";
        received: PacketCount, counter("packets, B"), "Frames received.", shown("received");
        sent: PacketCount, counter("packets, B"), "Frames that the outgoing interface accepted.", shown("sent");
        #[schemars(with = "Losses")]
        dropped: BTreeMap<String, PacketCount>, counter("packets, B"), "Frames lost, by reason.", shown("dropped");
        queued_packets: u64, gauge("packets"), "Frames in the router, in the queue or waiting for the interface.", shown("queued");
        backlog: PacketCount, gauge("packets, B"), "Backlog of the queue.";
        probability: Option<f64>, gauge("0..1"), "The AQM's drop probability; null if it has none.";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sieve: Option<SieveStatistics>, part, "State and counters of Sieve; only if the queue is Sieve.";
        marked: PacketCount, counter("packets, B"), "Frames marked with congestion experienced (ECN).", shown("marked");
        remarked: PacketCount, counter("packets, B"), "Frames whose code point was changed.", shown("re-marked");
        not_ip: PacketCount, counter("packets, B"), "Frames that are not IP and passed without a hint.", shown("not IP");
        slipped_ms: f64, counter("ms"), "Total slip of the schedule, because the router was not scheduled in time.";
        departure_error_us: DepartureError, gauge("us"), "Lateness of frames at the interface.";
        #[serde(default)]
        waits_us: BucketCounts, histogram("us"), "Frames that left the queue, by their waiting time. A bucket has the waits below its bound.";
        hints: Vec<HintStatistics>, part, "The hints that have been seen, of frames that were not reserved.";
        #[serde(default)]
        reserved: ReservedStatistics, part, "Reserved flows.";
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flows: Vec<FlowStatistics>, part, "The flows that sent most in the last two seconds, at most 16. The router's table has 256 flows; one that sends much is listed within a few frames. Not reported by interval.";
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<HostStatistics>, part, "The hosts whose flows in this table sent or received most in the last two seconds, at most 16. Not reported by interval.";
    }

    /// A flow of a direction. Its counters count since it was listed; a flow that is listed again starts from zero.
    #[derive(Deserialize)]
    pub struct FlowStatistics {
        source: String, label, "The source.";
        source_port: Option<u16>, label, "The source port; null if it has none.";
        destination: String, label, "The destination.";
        destination_port: Option<u16>, label, "The destination port; null if it has none.";
        protocol: u8, label, "The protocol above IP, such as 17 for UDP.";
        code_point: u8, gauge("0..63"), "Code point (DSCP) of the flow's latest frame, as it arrived.";
        hint: u16, gauge("level"), "Delay hint of the flow's latest frame, by the router's table.";
        recent_bps: u64, gauge("bit/s"), "Arrival rate of the flow, averaged over about two seconds.";
        received: PacketCount, counter("packets, B"), "Frames that arrived.";
        departed: PacketCount, counter("packets, B"), "Frames that left the queue.";
        dropped: PacketCount, counter("packets, B"), "Frames that the queue dropped.";
        marked: PacketCount, counter("packets, B"), "Frames marked with congestion experienced (ECN).";
        mean_wait_ms: f64, gauge("ms"), "Mean waiting time of the frames that left the queue.";
        longest_wait_ms: f64, gauge("ms"), "The longest of these waits.";
        #[serde(default)]
        wait_p50_ms: Option<f64>, gauge("ms"), "Median waiting time of the frames that left the queue in about the last two seconds, by buckets whose bounds double; null if none has.";
        #[serde(default)]
        wait_p99_ms: Option<f64>, gauge("ms"), "The 99th percentile of these waits.";
    }

    /// A host of a direction: the sum of its flows in the router's table.
    #[derive(Deserialize)]
    pub struct HostStatistics {
        host: String, label, "Address of the host.";
        #[schemars(extend("enum" = ["source", "destination"]))]
        side: String, label, "`source` or `destination` of the flows.";
        flows: u64, gauge("flows"), "Flows of the host.";
        recent_bps: u64, gauge("bit/s"), "Arrival rate of these flows, averaged over about two seconds.";
        dropped_percent: f64, gauge("%"), "Frames that the queue dropped of those that arrived, since each flow was listed.";
        mean_wait_ms: f64, gauge("ms"), "Mean waiting time of the frames that left the queue, since each flow was listed.";
    }

    /// Values of Sieve, and its counters since it became the queue.
    #[derive(Copy, Deserialize)]
    pub struct SieveStatistics {
        below_fair_share: PacketCount, counter("packets, B"), "Frames of flows below their fair share. They do not wait behind the others.";
        above_fair_share: PacketCount, counter("packets, B"), "Frames of flows above their fair share. They waited for their own flow's packets, or were dropped.";
        fair_share_bps: u64, gauge("bit/s"), "The fair share of a flow.";
        load: Option<f64>, gauge("0..1"), "The part of the memory for flows that is in use; null if it cannot be read, as that of a queue in the kernel without CAP_SYS_ADMIN.";
    }

    /// Statistics of rates that follow the link, since the start.
    #[derive(Copy, Deserialize)]
    pub struct AutorateStatistics {
        requests: u64, counter("requests"), "Echo requests to the reflectors.", shown("requests");
        replies: u64, counter("replies"), "Replies of the reflectors.", shown("replies");
        #[serde(default)]
        replying: u64, gauge("reflectors"), "Reflectors that reply at present. Without one, no rate rises.", shown("replying");
        delayed_replies: u64, counter("replies"), "Replies that took longer than usual by more than the limit.", shown("delayed");
        delay_ms: Option<f64>, gauge("ms"), "Excess of the last reply over its usual time; null before the first.", shown("now ms");
        decreases: u64, counter("changes"), "Changes to a lower rate, both directions.", shown("rate lowered");
        increases: u64, counter("changes"), "Changes to a higher rate, both directions.", shown("rate raised");
    }

    /// The reserved flows of a direction. At any time conforming = departed + dropped + waiting.
    #[derive(Copy, Deserialize)]
    pub struct ReservedStatistics {
        reservations: u64, gauge("reservations"), "Present reservations.";
        rate_bps: u64, gauge("bit/s"), "Rate of the link that the reservations take, with the link's overhead.";
        conforming: PacketCount, counter("packets, B"), "Frames that conformed to their token bucket.", shown("conforming");
        excess: PacketCount, counter("packets, B"), "Frames that exceeded their token bucket, or found no room in the reserved class, and went into the queue.", shown("excess");
        dropped: PacketCount, counter("packets, B"), "Conforming frames that were lost, because there was no memory for them.", shown("lost");
        departed: PacketCount, counter("packets, B"), "Conforming frames whose transmission started.", shown("sent on");
        waiting_packets: u64, gauge("packets"), "Conforming frames that wait for the link.", shown("waiting");
        mean_wait_ms: f64, gauge("ms"), "Mean waiting time of the frames that departed.", shown("mean wait ms");
        longest_wait_ms: f64, gauge("ms"), "The longest of these waits.", shown("longest wait ms");
    }

    /// A reservation: a line of the reply to `reservations`.
    #[derive(Deserialize)]
    pub struct ReservationStatistics {
        #[schemars(extend("const" = "reservation"))]
        event: String, label, "`reservation`.";
        direction: RouterDirection, label, "Direction of the reservation.";
        reservation: u64, label, "Number of the reservation, which its client chose.";
        own: bool, label, "True if it belongs to the client of the request.";
        rate_bps: u64, gauge("bit/s"), "The token rate r, of IP datagrams.";
        bucket_bytes: u64, gauge("B"), "The depth b of the bucket.";
        min_policed_bytes: u64, gauge("B"), "The minimum policed unit m.";
        max_packet_bytes: u64, gauge("B"), "The largest packet M.";
        filters: Vec<FilterDocument>, part, "Filters of the reservation.";
        conforming: PacketCount, counter("packets, B"), "Frames that conformed to the bucket.";
        excess: PacketCount, counter("packets, B"), "Frames that exceeded their token bucket, or found no room in the reserved class, and went into the queue.";
        dropped: PacketCount, counter("packets, B"), "Conforming frames that were lost, because there was no memory for them.";
    }

    // A `FlowSelector` is not a record: `protocol` is a number here in any case, and addresses are text.
    /// Selector of a reservation's packets.
    #[derive(Eq, Deserialize)]
    pub struct FilterDocument {
        destination: String, label, "The destination.";
        protocol: u8, label, "The protocol above IP, such as 17 for UDP.";
        destination_port: Option<u16>, label, "The destination port; null for any.";
        source: Option<String>, label, "The source; null for any.";
        source_port: Option<u16>, label, "The source port; null for any.";
    }

    /// Lateness of frames' hand-over to the interface against the schedule; null before the first.
    #[derive(Copy, Deserialize)]
    pub struct DepartureError {
        p50: Option<f64>, gauge("us"), "The median.", shown("(median)");
        p99: Option<f64>, gauge("us"), "The 99th percentile.", shown("(p99)");
        max: Option<f64>, gauge("us"), "The latest.", shown("at most");
    }

    /// The counters of the frames with one hint.
    #[derive(Copy, Deserialize)]
    pub struct HintStatistics {
        hint: u16, label("level"), "Level of the hint, 1 to 16.", shown("hint");
        departed: PacketCount, counter("packets, B"), "Frames that left the queue.", shown("sent on");
        dropped: PacketCount, counter("packets, B"), "Frames that the queue dropped.", shown("dropped");
        mean_wait_ms: f64, gauge("ms"), "Mean waiting time of the frames that left the queue.", shown("mean wait ms");
        longest_wait_ms: f64, gauge("ms"), "The longest of these waits.", shown("longest wait ms");
    }

    /// An interface.
    #[derive(Eq, Deserialize)]
    pub struct Interface {
        name as "interface": String, label, "Name of the interface.";
        #[serde(default)]
        kind: String, label, "Kind of the interface's port, such as `packet socket`.";
        missed_packets: u64, counter("packets"), "Frames that arrived faster than they were read, and were lost; not among those received.";
        truncated: PacketCount, counter("packets, B"), "Frames longer than the MTU, which were dropped; not among those received.";
        without_checksum: PacketCount, counter("packets, B"), "Frames that arrived without a checksum, which could not be computed.";
    }

    /// The status of reloads of the router's file.
    #[derive(Deserialize)]
    pub struct ReloadStatus {
        done: u64, counter("reloads"), "Number of reloads that were applied.";
        refused: u64, counter("reloads"), "Number of reloads that were refused and changed nothing.";
        last_s: Option<f64>, gauge("s"), "Time of the last reload since the router's start; null before the first.";
        error: Option<String>, label, "Reason why the last reload was refused; null if it was applied.";
    }
}

/// Reason why a line has no statistics of a router.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// The line is not in the format of a router's statistics.
    #[error("this is no line of `cutline router --json --stats TIME`: {0}")]
    Other(#[from] serde_json::Error),
    /// A router has refused to answer.
    #[error("the router refused the request: {0}")]
    Refused(String),
}

/// A copy of a direction's statistics. The router is delayed by the copy only, and not by writing the document.
#[derive(Clone, Debug)]
pub struct ShaperSnapshot {
    rate: Rate,
    queue: String,
    stats: ShaperStats,
    queued: usize,
    backlog: PacketCount,
    probability: Option<Probability>,
    sieve: Option<SieveReadings>,
    reservations: usize,
    reserved_rate: Rate,
    reserved_waiting: usize,
    flows: TopFlows,
    clock: Instant,
}

/// The most flows, and the most hosts, of a direction's document.
const MOST_LISTED: usize = 16;

impl Statistics {
    /// Parses a line.
    ///
    /// # Errors
    /// When it is not a line of a router's statistics.
    pub fn parse(line: &str) -> Result<Self, StatisticsError> {
        ErrorReply::check(line)?;
        Ok(serde_json::from_str(line)?)
    }

    /// Returns the document as one line of JSON, without the end of the line.
    pub fn json(&self) -> String {
        json(self)
    }

    /// Returns the document without flows and hosts.
    #[must_use]
    pub fn without_flows(mut self) -> Self {
        for direction in [&mut self.forward, &mut self.reverse] {
            direction.flows.clear();
            direction.hosts.clear();
        }
        self
    }

    /// Returns the reverse direction if `reverse`, otherwise the forward direction.
    pub const fn direction(&self, reverse: bool) -> &DirectionStatistics {
        if reverse { &self.reverse } else { &self.forward }
    }
}

impl DirectionStatistics {
    /// Returns the rate it is shaped to.
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps)
    }

    /// Returns the frames lost for this reason.
    pub fn lost(&self, loss: Loss) -> PacketCount {
        self.dropped.get(loss.name()).copied().unwrap_or_default()
    }

    /// Returns the number of frames lost for any reason.
    pub fn dropped_packets(&self) -> u64 {
        total(self.dropped.values().map(|counted| counted.packets))
    }

    /// Returns the bytes of the frames lost for any reason.
    pub fn dropped_bytes(&self) -> u64 {
        total(self.dropped.values().map(|counted| counted.bytes))
    }
}

impl ReservationStatistics {
    pub(crate) fn new(direction: RouterDirection, own: bool, reservation: &CountedReservation) -> Self {
        let CountedReservation { id, bucket, filters, counters } = reservation;
        Self {
            event: "reservation".to_owned(),
            direction,
            reservation: id.number,
            own,
            rate_bps: bucket.rate.as_bps(),
            bucket_bytes: bucket.bucket.get(),
            min_policed_bytes: bucket.min_policed.get(),
            max_packet_bytes: bucket.max_packet.get(),
            filters: filters.iter().map(FilterDocument::from).collect(),
            conforming: counters.conforming.into(),
            excess: counters.excess.into(),
            dropped: counters.dropped.into(),
        }
    }

    pub(crate) fn json(&self) -> String {
        json(self)
    }
}

impl From<&FlowSelector> for FilterDocument {
    fn from(filter: &FlowSelector) -> Self {
        Self {
            destination: filter.destination.to_string(),
            protocol: filter.protocol.unwrap_or_default(),
            destination_port: filter.destination_port,
            source: filter.source.map(|source| source.to_string()),
            source_port: filter.source_port,
        }
    }
}

impl ShaperSnapshot {
    pub fn from_shaper(shaper: &Shaper) -> Self {
        let (spec, backlog) = (&shaper.params().queue, shaper.backlog());
        Self {
            rate: spec.rate,
            queue: in_words(spec),
            stats: shaper.stats().clone(),
            queued: shaper.queued(),
            backlog: PacketCount { packets: backlog.packets.into(), bytes: backlog.bytes },
            probability: shaper.probability(),
            sieve: shaper.readings().sieve,
            reservations: shaper.reservation_count(),
            reserved_rate: shaper.reserved_rate(),
            reserved_waiting: shaper.reserved_waiting(),
            flows: shaper.flows().clone(),
            clock: shaper.clock(),
        }
    }

    /// Returns the document's part about this direction, which is called `name`.
    pub fn direction(&self, name: String) -> DirectionStatistics {
        let stats = &self.stats;
        let lost = |loss: Loss| (loss.name().to_owned(), stats.lost(loss).into());
        DirectionStatistics {
            name,
            rate_bps: self.rate.as_bps(),
            queue: self.queue.clone(),
            received: stats.received.into(),
            sent: stats.sent.into(),
            dropped: Loss::ALL.into_iter().map(lost).collect(),
            queued_packets: self.queued as u64,
            backlog: self.backlog,
            probability: self.probability.map(Probability::get),
            sieve: self.sieve.map(SieveStatistics::from),
            marked: stats.marked.into(),
            remarked: stats.remarked.into(),
            not_ip: stats.not_ip.into(),
            slipped_ms: stats.slipped.as_millis_f64(),
            departure_error_us: stats.departure_error().into(),
            waits_us: waits(stats.waits()),
            hints: hints(stats),
            reserved: self.reserved(),
            flows: listed(self.flows.active(self.clock).map(FlowStatistics::from), |flow| flow.recent_bps),
            hosts: listed(self.hosts(), |host| host.recent_bps),
        }
    }

    /// Returns the sums of the flows of each host, as their source and as their destination.
    fn hosts(&self) -> impl Iterator<Item = HostStatistics> {
        let mut hosts: BTreeMap<(IpAddr, &str), Vec<FlowCounters>> = BTreeMap::new();
        for flow in self.flows.active(self.clock) {
            hosts.entry((flow.flow.destination, "destination")).or_default().push(flow);
            if let Some(source) = flow.flow.source {
                hosts.entry((source, "source")).or_default().push(flow);
            }
        }
        hosts.into_iter().map(|((host, side), flows)| HostStatistics::new(host, side, &flows))
    }

    fn reserved(&self) -> ReservedStatistics {
        let stats = &self.stats.reserved;
        ReservedStatistics {
            reservations: self.reservations as u64,
            rate_bps: self.reserved_rate.as_bps(),
            conforming: stats.conforming.into(),
            excess: stats.excess.into(),
            dropped: stats.dropped.into(),
            departed: stats.departed.into(),
            waiting_packets: self.reserved_waiting as u64,
            mean_wait_ms: stats.mean_wait().as_millis_f64(),
            longest_wait_ms: stats.longest_wait.as_millis_f64(),
        }
    }
}

impl Interface {
    pub(crate) fn new(name: &str, stats: PortStats) -> Self {
        let PortStats { kind, missed, truncated, unfilled } = stats;
        Self {
            name: name.to_owned(),
            kind: kind.name().to_owned(),
            missed_packets: missed,
            truncated: truncated.into(),
            without_checksum: unfilled.into(),
        }
    }
}

impl From<FlowCounters> for FlowStatistics {
    fn from(counters: FlowCounters) -> Self {
        let FlowCounters { flow, dscp, hint, received, marked, queue, recent_bps, recent_waits } = counters;
        let recent = BucketCounts {
            bounds: WaitCounts::bounds().map(Duration::as_millis_f64).collect(),
            counts: recent_waits.map(u64::from).to_vec(),
            sum: 0.0,
        };
        Self {
            source: flow.source.map(|source| source.to_string()).unwrap_or_default(),
            source_port: flow.source_port,
            destination: flow.destination.to_string(),
            destination_port: flow.destination_port,
            protocol: flow.protocol.unwrap_or_default(),
            code_point: dscp.get(),
            hint: hint.level(),
            recent_bps,
            received: received.into(),
            departed: queue.departed.into(),
            dropped: queue.dropped.into(),
            marked: marked.into(),
            mean_wait_ms: queue.mean_wait().as_millis_f64(),
            longest_wait_ms: queue.longest_wait.as_millis_f64(),
            wait_p50_ms: recent.quantile(0.5),
            wait_p99_ms: recent.quantile(0.99),
        }
    }
}

impl HostStatistics {
    fn new(host: IpAddr, side: &str, flows: &[FlowCounters]) -> Self {
        let sum = |of: fn(&FlowCounters) -> u64| flows.iter().map(of).sum::<u64>();
        let (received, departed) =
            (sum(|flow| flow.received.packets), sum(|flow| flow.queue.departed.packets));
        let waited_ms: f64 = flows.iter().map(|flow| flow.queue.waited.as_millis_f64()).sum();
        Self {
            host: host.to_string(),
            side: side.to_owned(),
            flows: flows.len() as u64,
            recent_bps: sum(|flow| flow.recent_bps),
            dropped_percent: 100.0 * sum(|flow| flow.queue.dropped.packets) as f64 / received.max(1) as f64,
            mean_wait_ms: waited_ms / departed.max(1) as f64,
        }
    }
}

impl From<SieveReadings> for SieveStatistics {
    fn from(SieveReadings { below, above, fair_share, load }: SieveReadings) -> Self {
        Self {
            below_fair_share: below.into(),
            above_fair_share: above.into(),
            fair_share_bps: fair_share.as_bps(),
            load: Some(load),
        }
    }
}

impl From<Count> for PacketCount {
    fn from(Count { packets, bytes }: Count) -> Self {
        Self { packets, bytes }
    }
}

impl From<&Histogram> for DepartureError {
    fn from(errors: &Histogram) -> Self {
        let us = |error: Duration| error.as_nanos() as f64 / 1e3;
        let quantile = |q| errors.quantile(q).map(us);
        Self { p50: quantile(0.5), p99: quantile(0.99), max: errors.max().map(us) }
    }
}

/// The schema of the frames lost: a property for each reason.
struct Losses;

impl JsonSchema for Losses {
    fn schema_name() -> Cow<'static, str> {
        "Losses".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let counted = generator.subschema_for::<PacketCount>().to_value();
        let of = |loss: Loss| {
            let mut schema = counted.clone();
            schema["description"] = loss.meaning().into();
            (loss.name().to_owned(), schema)
        };
        let properties: Map<String, Value> = Loss::ALL.into_iter().map(of).collect();
        json_schema!({
            "description": "Frames lost, by reason.",
            "type": "object",
            "properties": properties,
            "required": Loss::ALL.map(Loss::name),
        })
    }
}

pub(crate) fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("the documents have text keys only")
}

/// Returns the items with the highest rates, as many as a document has.
fn listed<T>(items: impl Iterator<Item = T>, rate: impl Fn(&T) -> u64) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_by_key(|item| Reverse(rate(item)));
    items.truncate(MOST_LISTED);
    items
}

fn waits(waits: &WaitCounts) -> BucketCounts {
    let us = |time: Duration| time.as_nanos() as f64 / 1e3;
    BucketCounts {
        bounds: WaitCounts::bounds().map(us).collect(),
        counts: waits.counts().to_vec(),
        sum: us(waits.sum()),
    }
}

/// Returns the counters of the hints that have been seen.
fn hints(stats: &ShaperStats) -> Vec<HintStatistics> {
    let of = |(hint, of): (u16, &HintCounters)| HintStatistics {
        hint,
        departed: of.departed.into(),
        dropped: of.dropped.into(),
        mean_wait_ms: of.mean_wait().as_millis_f64(),
        longest_wait_ms: of.longest_wait.as_millis_f64(),
    };
    let all = (1..=HINTS as u16).map(|level| (level, stats.hint(Hint::from_level(level))));
    all.filter(|(_, of)| of.departed.packets + of.dropped.packets > 0).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut statistics =
            Statistics { event: "stats".to_owned(), elapsed_s: 1.5, ..Statistics::default() };
        statistics
            .forward
            .dropped
            .insert(Loss::Early.name().to_owned(), PacketCount { packets: 3, bytes: 300 });
        let line = statistics.json();
        assert!(!line.contains('\n') && !line.contains("reload"), "{line}");
        let read = Statistics::parse(&line).unwrap();
        assert_eq!(read, statistics);
        assert_eq!((read.forward.lost(Loss::Early).packets, read.reverse.lost(Loss::Early).packets), (3, 0));
        assert_eq!((read.forward.dropped_packets(), read.forward.dropped_bytes()), (3, 300));
    }

    /// Any user may publish such a router.
    #[test]
    fn sums_do_not_overflow() {
        let mut direction = DirectionStatistics::default();
        let most = PacketCount { packets: u64::MAX, bytes: u64::MAX };
        direction.dropped.extend(Loss::ALL.map(|loss| (loss.name().to_owned(), most)));
        assert_eq!([direction.dropped_packets(), direction.dropped_bytes()], [u64::MAX; 2]);
    }

    #[test]
    fn numbers_are_read_to_their_last_place() {
        let slipped_ms = 3.751_844_674_407_370_6e22;
        let forward = DirectionStatistics { slipped_ms, ..DirectionStatistics::default() };
        let read = Statistics::parse(&Statistics { forward, ..Statistics::default() }.json()).unwrap();
        assert_eq!(read.forward.slipped_ms, slipped_ms);
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(Statistics::parse(r#"{"event":"stats"}"#).unwrap_err().to_string().contains("elapsed_s"));
        assert!(Statistics::parse("routing a -> b").is_err());
        let refused = Statistics::parse(&ErrorReply::new(&"not known").json()).unwrap_err().to_string();
        assert_eq!(refused, "the router refused the request: not known");
    }
}
