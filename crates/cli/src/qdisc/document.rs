//! Queues of the kernel as text and as metrics.

use crate::direction_text::direction;
use cutline_openmetrics::{Metrics, TextFormat};
use cutline_qdisc::QdiscStatus;
use cutline_qdisc::layout::QdiscConfig;
use cutline_router_service::{QdiscDocument, add_kernel_queue};
use cutline_units::{Bytes, Instant};

/// Returns the statistics as text, with the configuration.
pub fn text(status: &QdiscStatus, now: Instant) -> String {
    let QdiscStatus { config, counters, .. } = status;
    let document = QdiscDocument::new(status, now);
    let mut settings = vec![limit(config)];
    if config.shape_bps == 0 {
        settings.push("not shaped".to_owned());
    }
    settings.push(format!("overhead {} B, at least {} B", config.overhead, config.least_bytes));
    settings.push(format!("{:.1} s since it was added", document.elapsed_s));
    let mut text = direction(&document.statistics, &format!("{}\n", settings.join(", ")));
    if counters.refused_generation == config.generation {
        text += "the last change was refused by the kernel's program\n";
    } else if counters.generation != config.generation {
        text += "the last change is in use with the next packet\n";
    }
    text
}

/// Returns the statistics as metrics in the text format of Prometheus, with labels for interface and queue.
pub fn metrics(found: &[QdiscStatus], now: Instant) -> String {
    let mut metrics = Metrics::new("cutline_qdisc");
    for status in found {
        add_kernel_queue(&mut metrics, &QdiscDocument::new(status, now));
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

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
    use cutline_qdisc::QdiscSettings;
    use cutline_qdisc::layout::{CountLayout, HintLayout, Layout, QdiscCounters};
    use cutline_router::Overhead;
    use cutline_units::{HintTable, Rate};

    const NOW: Instant = Instant::from_nanos(3_500_000_000);

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
        (counters.running, counters.generation, counters.since) = (1, 3, 1_000_000_000);
        let counted = |packets| CountLayout { packets, bytes: 1000 * packets };
        (counters.received, counters.sent) = (counted(100), counted(80));
        (counters.early, counters.overflow, counters.unsent) = (counted(6), counted(5), counted(4));
        counters.backlog = counted(5);
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
        QdiscStatus { interface: "eth0".to_owned(), index: 2, queue, instance: 0, config, counters, load }
    }

    #[test]
    fn metrics_have_labels_for_interface_and_queue() {
        let text = metrics(&[status("pi2", true), status("sieve", false)], NOW);
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
    fn the_text_says_what_has_become_of_a_change() {
        let mut status = status("pi2", true);
        let shown = text(&status, NOW);
        assert!(shown.contains("eth0 at 10 Mbit/s through TSQ over pi2"), "{shown}");
        assert!(
            shown.contains("limit 64000 B and 1000 packets") && !shown.contains("last change"),
            "{shown}"
        );
        status.config.generation = 4;
        assert!(text(&status, NOW).contains("with the next packet"));
        status.counters.refused_generation = 4;
        assert!(text(&status, NOW).contains("refused"));
    }
}
