//! Queues of the kernel as a document, in the records of the router, and as text.

use crate::direction_text::direction;
use cutline_openmetrics::{Metrics, TextFormat};
use cutline_qdisc::layout::{CountLayout, HintLayout, LawLayout, QdiscConfig, QdiscCounters};
use cutline_qdisc::{KernelQueue, QdiscStatus, in_words};
use cutline_records::BucketCounts;
use cutline_router::{Loss, WaitCounts};
use cutline_router_service::{
    DepartureError, Direction, HintStatistics, PacketCount, SieveStatistics, add_direction,
};
use cutline_units::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::Serialize;

/// The queues in the kernel, by interface.
#[derive(Serialize, JsonSchema)]
pub struct QdiscList(Vec<QdiscDocument>);

/// The queue of an interface in the kernel.
#[derive(Serialize, JsonSchema)]
pub struct QdiscDocument {
    /// The interface.
    interface: String,
    /// Kind of the queueing discipline, as `tc` shows it.
    kind: &'static str,
    /// True from adding to removing.
    running: bool,
    /// Time since the queue was added, s.
    elapsed_s: f64,
    /// True if the queue sends at its rate; false if the interface has this rate by itself.
    shaped: bool,
    /// Most packets that wait.
    limit_packets: u32,
    /// Most bytes that wait, with overhead; null for no such limit.
    limit_bytes: Option<u64>,
    /// Bytes that the link adds to each packet and segment.
    overhead_bytes: i32,
    /// Least bytes of a packet or segment on the link.
    least_bytes: u32,
    /// Number of the configuration that was written last.
    written_generation: u32,
    /// Number of the configuration in use. A change is taken over by the next packet.
    generation: u32,
    /// Number of the last configuration that the program has refused; 0 for none.
    refused_generation: u32,
    /// Average queue of Adaptive RED, packets; null for other laws.
    average_packets: Option<f64>,
    /// Target of Adaptive RED, packets; null for other laws.
    target_packets: Option<f64>,
    /// Drop probability of Adaptive RED at its upper threshold, 0 to 1; null for other laws.
    max_p: Option<f64>,
    /// Statistics, as those of a direction of `cutline router`. There are no reservations, no list of flows and no departure errors.
    statistics: Direction,
}

impl QdiscList {
    pub fn new(found: &[QdiscStatus]) -> Self {
        Self(found.iter().map(QdiscDocument::new).collect())
    }
}

impl QdiscDocument {
    fn new(status: &QdiscStatus) -> Self {
        let QdiscStatus { interface, queue, config, counters, .. } = status;
        let is_red = matches!(law(*queue, config), Some(LawLayout::RedWorcester(_)));
        let of_red = |value: f64| is_red.then_some(value);
        Self {
            interface: interface.clone(),
            kind: queue.kernel_name(),
            running: counters.running != 0,
            elapsed_s: elapsed(counters).as_secs_f64(),
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

/// Returns the statistics as text, with the configuration.
pub fn text(status: &QdiscStatus) -> String {
    let QdiscStatus { config, counters, .. } = status;
    let mut settings = vec![limit(config)];
    if config.shape_bps == 0 {
        settings.push("not shaped".to_owned());
    }
    settings.push(format!("overhead {} B, at least {} B", config.overhead, config.least_bytes));
    settings.push(format!("{:.1} s since it was added", elapsed(counters).as_secs_f64()));
    let mut text = direction(&statistics(status), &format!("{}\n", settings.join(", ")));
    if counters.refused_generation == config.generation {
        text += "the last change was refused by the kernel's program\n";
    } else if counters.generation != config.generation {
        text += "the last change is in use with the next packet\n";
    }
    text
}

/// Returns the statistics as metrics in the text format of Prometheus, with labels for interface and queue.
pub fn metrics(found: &[QdiscStatus]) -> String {
    let mut metrics = Metrics::new("cutline_qdisc");
    for status in found {
        let labels =
            [("interface", status.interface.as_str()), ("queue", in_words(status.queue, &status.config))];
        add_direction(&mut metrics, &labels, &statistics(status));
    }
    metrics.text(TextFormat::Prometheus)
}

/// Returns the limit of a configuration in words.
pub fn limit(config: &QdiscConfig) -> String {
    match config.limit_bytes {
        0 => format!("limit {} packets", config.limit_packets),
        bytes => format!("limit {} and {} packets", Bytes::new(bytes), config.limit_packets),
    }
}

/// Returns the statistics in the record of a direction of the router.
fn statistics(status: &QdiscStatus) -> Direction {
    let QdiscStatus { interface, queue, config, counters, .. } = status;
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
    Direction {
        name: interface.clone(),
        rate_bps: config.link_bps,
        queue: in_words(*queue, config).to_owned(),
        received: count(&counters.received),
        sent: count(&counters.sent),
        dropped: Loss::ALL.into_iter().map(lost).collect(),
        queued_packets: counters.backlog.packets,
        backlog: count(&counters.backlog),
        probability: has_probability.then(|| probability(counters.probability)),
        sieve: status.load.map(|load| SieveStatistics {
            below_fair_share: count(&counters.below_fair_share),
            above_fair_share: count(&counters.above_fair_share),
            fair_share_bps: counters.fair_share_bps,
            load,
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
        ..Direction::default()
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
    fixed as f64 / (1_u64 << cutline_qdisc::layout::PROBABILITY_BITS) as f64
}

fn packets(fixed: u64) -> f64 {
    fixed as f64 / f64::from(1 << cutline_qdisc::layout::PACKET_BITS)
}

fn elapsed(counters: &QdiscCounters) -> Duration {
    cutline_sys::now().saturating_since(Instant::from_nanos(counters.since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
    use cutline_qdisc::QdiscSettings;
    use cutline_qdisc::layout::{LEVELS, Layout, PROBABILITY_BITS};
    use cutline_router::Overhead;
    use cutline_units::{HintTable, Rate};

    /// A queue that has received, dropped and sent packets.
    fn status(aqm: &str, tsq: bool) -> QdiscStatus {
        let queue = QueueSpec {
            limit: Limit::Bytes(64_000),
            ecn: false,
            aqm: AqmSpec::from_values(aqm, []).unwrap(),
            tsq: tsq.then(TsqParams::default),
            rate: Rate::from_mbps(10),
        };
        let settings =
            QdiscSettings { queue, shaped: true, overhead: Overhead::Ethernet, hints: HintTable::standard() };
        let mut counters = QdiscCounters::from_bytes(&vec![0; QdiscCounters::SIZE]).unwrap();
        (counters.running, counters.generation) = (1, 3);
        let counted = |packets| CountLayout { packets, bytes: 1000 * packets };
        (counters.received, counters.sent) = (counted(100), counted(80));
        (counters.early, counters.overflow, counters.unsent) = (counted(6), counted(5), counted(4));
        counters.backlog = counted(5);
        counters.probability = 1 << (PROBABILITY_BITS - 2);
        counters.slipped = 2_500_000;
        counters.waits[10] = 80;
        counters.waits_sum = 80_000_000;
        counters.hints[5] = HintLayout {
            departed: counted(80),
            dropped: counted(11),
            waited: 80_000_000,
            longest_wait: 3_000_000,
        };
        let load = (!tsq).then_some(0.25);
        let config = settings.config(Bytes::new(14), 1, 3).unwrap();
        let queue = settings.kernel_queue().unwrap();
        QdiscStatus { interface: "eth0".to_owned(), queue, instance: 0, config, counters, slots: 1000, load }
    }

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
        let document = serde_json::to_value(QdiscList::new(&all)).unwrap();
        let errors: Vec<_> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{document:#}");
        assert_eq!(
            (document[1]["kind"].as_str(), document[2]["limit_bytes"].as_u64()),
            (Some("cutline_tsq1"), Some(64_000))
        );
    }

    #[test]
    fn metrics_have_labels_for_interface_and_queue() {
        let text = metrics(&[status("pi2", true), status("sieve", false)]);
        for line in [
            "cutline_qdisc_sent_packets_total{interface=\"eth0\",queue=\"TSQ over pi2\"} 80",
            "cutline_qdisc_dropped_packets_total{interface=\"eth0\",queue=\"sieve\",reason=\"unsent\"} 4",
            "cutline_qdisc_hint_departed_packets_total{interface=\"eth0\",queue=\"TSQ over pi2\",hint=\"6\"} 80",
            "cutline_qdisc_sieve_load_ratio{interface=\"eth0\",queue=\"sieve\"} 0.25",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("reserved"), "{text}");
    }

    #[test]
    fn sieve_has_its_values_and_no_probability() {
        let found = statistics(&status("sieve", false));
        assert_eq!((found.probability, found.sieve.unwrap().load), (None, 0.25));
        assert_eq!(found.queue, "sieve");
        let red = QdiscDocument::new(&status("red-worcester", true));
        assert!(red.average_packets.is_some() && red.max_p.is_some());
        assert_eq!(QdiscDocument::new(&status("pi", true)).average_packets, None);
    }

    #[test]
    fn the_text_says_what_has_become_of_a_change() {
        let mut status = status("pi2", true);
        let shown = text(&status);
        assert!(shown.contains("eth0 at 10 Mbit/s through TSQ over pi2"), "{shown}");
        assert!(
            shown.contains("limit 64000 B and 1000 packets") && !shown.contains("last change"),
            "{shown}"
        );
        status.config.generation = 4;
        assert!(text(&status).contains("with the next packet"));
        status.counters.refused_generation = 4;
        assert!(text(&status).contains("refused"));
    }
}
