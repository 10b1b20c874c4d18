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
    settings.extend(for_each_queue(status));
    settings.push("drops where a router would mark (ECN)".to_owned());
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

/// Returns words for an interface with a queue for each transmit queue, or for those that were in use when it was added.
pub fn for_each_queue(status: &QdiscStatus) -> Option<String> {
    let queues = status.hardware_queues;
    let without = status.transmit_queues.saturating_sub(queues);
    (queues > 1).then(|| match without {
        0 => format!("one for each of {queues} transmit queues"),
        more => {
            format!("one for each of {queues} transmit queues, none for {more} that are in use since then")
        }
    })
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
    use cutline_qdisc::testing::{NOW, status};

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
    fn the_text_has_the_state_of_a_change() {
        let mut status = status("pi2", true);
        let shown = text(&status, NOW);
        assert!(shown.contains("eth0 at 10 Mbit/s through TSQ over pi2"), "{shown}");
        assert!(
            shown.contains("limit 64000 B and 1000 packets, drops where a router would mark (ECN), ")
                && !shown.contains("last change"),
            "{shown}"
        );
        status.config.generation = 4;
        assert!(text(&status, NOW).contains("with the next packet"));
        status.counters.refused_generation = 4;
        assert!(text(&status, NOW).contains("refused"));
    }
}
