//! The document of a host as metrics.
//!
//! Labels are bounded: of sockets, the number that is listed one by one is limited, and those of a program are added up beyond it.

use crate::document::{HostDocument, SocketEntry};
use cutline_openmetrics::{Metrics, TextFormat};
use cutline_router_service::{add_kernel_queue, add_statistics};
use std::collections::BTreeMap;

/// The most sockets with metrics of their own. Their labels have addresses, and a scraper keeps each combination of labels for long.
pub const MOST_SOCKETS: usize = 1000;

/// Returns the metrics of a host.
pub fn metrics(document: &HostDocument, format: TextFormat) -> String {
    let mut metrics = Metrics::new("cutline");
    metrics.add(&["monitor"], &[], document);
    for entry in document.sockets.iter().take(MOST_SOCKETS) {
        add_socket(&mut metrics, entry);
    }
    let unlisted = document.sockets.len().saturating_sub(MOST_SOCKETS);
    let help = "Sockets without metrics of their own, because there are too many.";
    metrics.add_gauge("monitor_unlisted_sockets", help, &[], unlisted as f64);
    for (program, sockets) in by_program(document) {
        let help = "QoS sockets of a program.";
        metrics.add_gauge("program_sockets", help, &[("program", program)], sockets as f64);
    }
    for entry in &document.programs {
        let pid = entry.pid.to_string();
        let labels = [("program", entry.row.program.as_str()), ("pid", &pid), ("method", &entry.row.method)];
        metrics.add(&["exec"], &labels, &*entry.row);
    }
    let mut router = Metrics::new("cutline_router");
    for entry in &document.routers {
        let pid = entry.pid.to_string();
        add_statistics(&mut router, &[("pid", &pid)], &entry.router);
    }
    metrics.append(router);
    let mut kernel = Metrics::new("cutline_qdisc");
    for entry in &document.kernel_queues {
        add_kernel_queue(&mut kernel, &entry.queue);
    }
    metrics.append(kernel);
    metrics.text(format)
}

fn add_socket(metrics: &mut Metrics, entry: &SocketEntry) {
    let SocketEntry { pid, uid, program, socket } = entry;
    let (pid, uid) = (pid.to_string(), uid.to_string());
    let labels = [
        ("program", program.as_str()),
        ("pid", &pid),
        ("uid", &uid),
        ("transport", &socket.transport),
        ("local", &socket.local),
        ("peer", &socket.peer),
    ];
    metrics.add(&["socket"], &labels, &**socket);
    for (name, direction) in [("send", &socket.send), ("receive", &socket.receive)] {
        let labels = [&labels[..], &[("direction", name)]].concat();
        metrics.add(&["socket"], &labels, direction);
        let spreads = [
            ("last_delay", &direction.last_delay),
            ("last_jitter", &direction.last_jitter),
            ("delay", &direction.delay),
            ("jitter", &direction.jitter),
        ];
        for (measure, spread) in spreads {
            if let Some(spread) = spread {
                metrics.add(&["socket", measure], &labels, spread);
            }
        }
        for limit in &direction.limits {
            let labels = [&labels[..], &[("measure", limit.measure.as_str())]].concat();
            metrics.add(&["socket", "limit"], &labels, limit);
        }
        for violation in &direction.violations {
            let more = [("measure", violation.measure.as_str()), ("origin", &violation.origin)];
            metrics.add(&["socket", "violation"], &[&labels[..], &more].concat(), violation);
        }
    }
}

fn by_program(document: &HostDocument) -> BTreeMap<&str, usize> {
    let mut programs = BTreeMap::new();
    for entry in &document.sockets {
        *programs.entry(entry.program.as_str()).or_default() += 1;
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::KernelQueueEntry;
    use cutline_publish::{DirectionRow, SocketRow, SpreadRow};
    use cutline_records::BucketCounts;
    use cutline_router_service::QdiscDocument;

    fn entry(number: u64) -> SocketEntry {
        let buckets = BucketCounts { bounds: vec![1.0, 5.0], counts: vec![2, 1, 0], sum: 4.0 };
        let receive = DirectionRow {
            received_messages: 7,
            loss_percent: Some(2.0),
            last_delay: Some(SpreadRow { p99_ms: 12.0, ..SpreadRow::default() }),
            delay_buckets_ms: Some(buckets),
            ..DirectionRow::default()
        };
        let local = format!("10.0.0.1:{number}");
        let socket =
            SocketRow { socket: number, transport: "udp".into(), local, receive, ..SocketRow::default() };
        SocketEntry { pid: 9, uid: 1000, program: "video".into(), socket: socket.into() }
    }

    #[test]
    fn a_socket_has_metrics_with_its_labels() {
        let document = HostDocument { sockets: vec![entry(5)], ..HostDocument::default() };
        let text = metrics(&document, TextFormat::Prometheus);
        let labels = "program=\"video\",pid=\"9\",uid=\"1000\",transport=\"udp\",local=\"10.0.0.1:5\",peer=\"\",direction=\"receive\"";
        for line in [
            format!("cutline_socket_received_messages_total{{{labels}}} 7"),
            format!("cutline_socket_loss_ratio{{{labels}}} 0.02"),
            format!("cutline_socket_last_delay_p99_seconds{{{labels}}} 0.012"),
            format!("cutline_socket_delay_seconds_bucket{{{labels},le=\"0.005\"}} 3"),
            format!("cutline_socket_delay_seconds_sum{{{labels}}} 0.004"),
            "cutline_program_sockets{program=\"video\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }

    /// `cutline qdisc show --metrics` has the same names and labels.
    #[test]
    fn a_queue_in_the_kernel_has_metrics_of_its_own() {
        let mut queue = QdiscDocument { interface: "eth0".to_owned(), ..QdiscDocument::default() };
        queue.statistics.queue = "sieve".to_owned();
        queue.statistics.sent.packets = 80;
        let queue = KernelQueueEntry { index: 2, queue: queue.into() };
        let document = HostDocument { kernel_queues: vec![queue], ..HostDocument::default() };
        let text = metrics(&document, TextFormat::Prometheus);
        let line = "cutline_qdisc_sent_packets_total{interface=\"eth0\",queue=\"sieve\"} 80";
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        assert!(!text.contains("cutline_router_"), "{text}");
    }

    #[test]
    fn the_number_of_labels_is_bounded() {
        let sockets = (0..MOST_SOCKETS as u64 + 50).map(entry).collect();
        let text = metrics(&HostDocument { sockets, ..HostDocument::default() }, TextFormat::OpenMetrics);
        let listed = text.lines().filter(|line| line.starts_with("cutline_socket_waits_total")).count();
        assert_eq!(listed, MOST_SOCKETS);
        assert!(text.contains("cutline_monitor_unlisted_sockets 50\n"), "{text}");
    }
}
