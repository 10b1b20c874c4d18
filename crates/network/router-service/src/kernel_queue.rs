//! The queue of an interface in the kernel as a document, with the statistics of a direction of the router.

use crate::statistics::{DepartureError, DirectionStatistics, HintStatistics, PacketCount, SieveStatistics};
use cutline_qdisc::layout::{
    CountLayout, HintLayout, LawLayout, PACKET_BITS, PROBABILITY_BITS, QdiscConfig, QdiscCounters,
};
use cutline_qdisc::{KernelQueue, QdiscStatus, in_words};
use cutline_records::{BucketCounts, record};
use cutline_router::{Loss, WaitCounts};
use cutline_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

record! {
    /// The queue of an interface in the kernel.
    #[derive(Deserialize)]
    pub struct QdiscDocument {
        interface: String, label, "The interface.";
        kind: String, label, "Kind of the queueing discipline, as `tc` shows it.";
        running: bool, label, "True while the queue is installed; of a queue for each transmit queue, while all are.";
        hardware_queues: u32, label, "Number of transmit queues with a queue each, whose rate, limits and statistics are those of all together; 1 for one queue.";
        elapsed_s: f64, counter("s"), "Time since the queue was added.";
        shaped: bool, label, "True if the queue sends at its rate; false if the interface has this rate by itself.";
        limit_packets: u32, gauge("packets"), "Most packets that wait.";
        limit_bytes: Option<u64>, gauge("B"), "Most bytes that wait, with overhead; null for no such limit.";
        overhead_bytes: i32, gauge("B"), "Bytes that the link adds to each packet and segment.";
        least_bytes: u32, gauge("B"), "Least bytes of a packet or segment on the link.";
        written_generation: u32, label, "Number of the configuration that was written last.";
        generation: u32, label, "Number of the configuration in use. A change is taken over by the next packet.";
        refused_generation: u32, label, "Number of the last configuration that the program has refused; 0 for none.";
        average_packets: Option<f64>, gauge("packets"), "Average queue of Adaptive RED; null for other laws.";
        target_packets: Option<f64>, gauge("packets"), "Target of Adaptive RED; null for other laws.";
        max_p: Option<f64>, gauge("0..1"), "Drop probability of Adaptive RED at its upper threshold; null for other laws.";
        statistics: DirectionStatistics, part, "Statistics, as those of a direction of `cutline router`. There are no reservations, no list of flows and no departure errors.";
    }
}

/// The queues in the kernel, by interface.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QdiscList(Vec<QdiscDocument>);

impl QdiscList {
    /// Returns the list of queues that were read at `now`.
    pub fn new(found: &[QdiscStatus], now: Instant) -> Self {
        Self(found.iter().map(|status| QdiscDocument::new(status, now)).collect())
    }
}

impl QdiscDocument {
    /// Returns the document of a queue that was read at `now`.
    pub fn new(status: &QdiscStatus, now: Instant) -> Self {
        let QdiscStatus { interface, queue, config, counters, .. } = status;
        let is_red = matches!(law(*queue, config), Some(LawLayout::RedWorcester(_)));
        let of_red = |value: f64| is_red.then_some(value);
        Self {
            interface: interface.clone(),
            kind: queue.kernel_name().to_owned(),
            running: counters.running != 0,
            hardware_queues: status.hardware_queues,
            elapsed_s: elapsed(counters, now).as_secs_f64(),
            shaped: config.shape_bps != 0,
            limit_packets: config.limit_packets,
            limit_bytes: (config.limit_bytes != 0).then_some(config.limit_bytes),
            overhead_bytes: config.overhead,
            least_bytes: config.least_bytes,
            written_generation: config.generation,
            generation: counters.generation,
            refused_generation: counters.refused_generation,
            average_packets: of_red(packets(counters.average)),
            target_packets: of_red(packets(counters.target)),
            max_p: of_red(probability(counters.max_p)),
            statistics: statistics(status),
        }
    }
}

/// Returns the statistics in the record of a direction of the router.
fn statistics(status: &QdiscStatus) -> DirectionStatistics {
    let QdiscStatus { interface, queue, config, counters, load, .. } = status;
    let lost = |loss: Loss| {
        let counted = match loss {
            Loss::Early => count(&counters.early),
            Loss::Overflow => count(&counters.overflow),
            Loss::Unsent => count(&counters.unsent),
            // The kernel has these checks before the queue.
            Loss::Oversize | Loss::Runt | Loss::Memory => PacketCount::default(),
        };
        (loss.name().to_owned(), counted)
    };
    let has_probability = !matches!(law(*queue, config), None | Some(LawLayout::None));
    let us = |time: Duration| time.as_nanos() as f64 / 1e3;
    DirectionStatistics {
        name: interface.clone(),
        rate_bps: config.link_bps,
        queue: in_words(*queue, config).to_owned(),
        received: count(&counters.received),
        sent: count(&counters.sent),
        dropped: Loss::ALL.into_iter().map(lost).collect(),
        queued_packets: counters.backlog.packets,
        backlog: count(&counters.backlog),
        probability: has_probability.then(|| probability(counters.probability)),
        sieve: (*queue == KernelQueue::Sieve).then(|| SieveStatistics {
            below_fair_share: count(&counters.below_fair_share),
            above_fair_share: count(&counters.above_fair_share),
            fair_share_bps: counters.fair_share_bps,
            load: *load,
        }),
        marked: count(&counters.marked),
        not_ip: count(&counters.not_ip),
        slipped_ms: milliseconds(counters.slipped),
        departure_error_us: DepartureError::default(),
        waits_us: BucketCounts {
            bounds: WaitCounts::bounds().map(us).collect(),
            counts: counters.waits.to_vec(),
            sum: us(Duration::from_nanos(counters.waits_sum)),
        },
        hints: counters.hints.iter().zip(1..).filter_map(hint).collect(),
        ..DirectionStatistics::default()
    }
}

/// Returns the law under TSQ; `None` for Sieve.
fn law(queue: KernelQueue, config: &QdiscConfig) -> Option<LawLayout> {
    if queue == KernelQueue::Tsq { LawLayout::of(config) } else { None }
}

/// Returns the statistics of a level, if any packet had it.
fn hint((of, hint): (&HintLayout, u16)) -> Option<HintStatistics> {
    let departed = of.departed.packets;
    (departed + of.dropped.packets > 0).then(|| HintStatistics {
        hint,
        departed: count(&of.departed),
        dropped: count(&of.dropped),
        mean_wait_ms: milliseconds(of.waited) / departed.max(1) as f64,
        longest_wait_ms: milliseconds(of.longest_wait),
    })
}

fn count(of: &CountLayout) -> PacketCount {
    PacketCount { packets: of.packets, bytes: of.bytes }
}

fn milliseconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_millis_f64()
}

fn probability(fixed: u64) -> f64 {
    fixed as f64 / (1_u64 << PROBABILITY_BITS) as f64
}

fn packets(fixed: u64) -> f64 {
    fixed as f64 / f64::from(1 << PACKET_BITS)
}

fn elapsed(counters: &QdiscCounters, now: Instant) -> Duration {
    now.saturating_since(Instant::from_nanos(counters.since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_qdisc::layout::LEVELS;
    use cutline_qdisc::testing::{NOW, status};

    #[test]
    fn statistics_are_a_direction_of_the_router() {
        let found = statistics(&status("pi2", true));
        assert_eq!(
            (found.name.as_str(), found.rate_bps, found.queue.as_str()),
            ("eth0", 10_000_000, "TSQ over pi2")
        );
        let parts = found.sent.packets + found.dropped_packets() + found.queued_packets;
        assert_eq!((found.received.packets, found.lost(Loss::Unsent).packets), (parts, 4));
        assert_eq!((found.probability, found.sieve, found.slipped_ms), (Some(0.25), None, 2.5));
        assert_eq!(found.waits_us.bounds.len() + 1, found.waits_us.counts.len());
        assert_eq!((found.waits_us.sum, found.waits_us.counts[10]), (80_000.0, 80));
        let [hint] = &found.hints[..] else { panic!("{:?}", found.hints) };
        assert_eq!((hint.hint, hint.mean_wait_ms, hint.longest_wait_ms), (6, 1.0, 3.0));
        assert!(usize::from(hint.hint) <= LEVELS);
    }

    #[test]
    fn the_document_keeps_to_its_schema() {
        let schema = cutline_records::schema_of::<QdiscList>();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        let all = [status("sieve", false), status("red-worcester", true), status("pi", true)];
        let document = serde_json::to_value(QdiscList::new(&all, NOW)).unwrap();
        let errors: Vec<_> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{document:#}");
        assert_eq!(
            (document[1]["kind"].as_str(), document[2]["limit_bytes"].as_u64()),
            (Some("cutline_tsq3"), Some(64_000))
        );
        assert_eq!(document[0]["hardware_queues"].as_u64(), Some(1));
        let read: QdiscDocument = serde_json::from_value(document[0].clone()).unwrap();
        assert_eq!((&read, read.elapsed_s), (&QdiscDocument::new(&all[0], NOW), 2.5));
    }

    #[test]
    fn sieve_has_its_values_and_no_probability() {
        let found = statistics(&status("sieve", false));
        assert_eq!((found.probability, found.sieve.unwrap().load), (None, Some(0.25)));
        assert_eq!(found.queue, "sieve");
        let unread = statistics(&QdiscStatus { load: None, ..status("sieve", false) });
        assert_eq!(unread.sieve.unwrap().load, None, "its table needs a privilege, and its counters none");
        let red = QdiscDocument::new(&status("red-worcester", true), NOW);
        assert!(red.average_packets.is_some() && red.max_p.is_some());
        assert_eq!(QdiscDocument::new(&status("pi", true), NOW).average_packets, None);
    }
}
