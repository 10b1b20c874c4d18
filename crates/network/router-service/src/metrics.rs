//! A router's statistics for Prometheus: the text format, and an endpoint that answers with it.
//!
//! The metrics are those of the documents ([`cutline_openmetrics`]): a counter `sent` in packets and bytes is
//! `cutline_router_sent_packets_total` and `cutline_router_sent_bytes_total`, with a label for the direction. Their help is the meaning in
//! the documents.
//!
//! The endpoint implements the part of HTTP/1.1 that a scraper needs: one request on a connection, of which only the first line counts, and a reply
//! with its length. One connection is served at a time, and each has two seconds.

use crate::kernel_queue::QdiscDocument;
use crate::snapshots::StatsSnapshots;
use crate::statistics::{DirectionStatistics, Statistics};
use cutline_openmetrics::{Metrics, TextFormat};
use cutline_sys::{SysError, now};
use cutline_units::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// A bound endpoint that does not answer yet.
#[derive(Debug)]
pub struct Endpoint(TcpListener);

/// Time that a scraper may take for its request and our reply.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request, bytes.
const LONGEST: usize = 8192;
/// The stack of the thread, bytes.
const STACK: usize = 256 * 1024;
/// Prefix of all metrics' names.
const PREFIX: &str = "cutline_router";

impl Endpoint {
    /// Binds an endpoint.
    ///
    /// # Errors
    /// When the address is not one of this machine, or in use.
    pub fn bind(address: SocketAddr) -> Result<Self, SysError> {
        TcpListener::bind(address).map(Self).map_err(|error| no_listener(address, error))
    }

    /// Checks that the address is one of this machine. Its port may be in use, by a router that runs.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(address: SocketAddr) -> Result<(), SysError> {
        // The system chooses the port. An IPv6 scope is kept.
        let mut free = address;
        free.set_port(0);
        TcpListener::bind(free).map(drop).map_err(|error| no_listener(address, error))
    }

    /// Starts a thread that answers scrapers until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(self, snapshots: Arc<StatsSnapshots>) -> Result<(), SysError> {
        let serve = move || {
            loop {
                match self.0.accept() {
                    // A scraper that has gone or is too slow gets nothing, and the next one is served.
                    Ok((stream, _)) => drop(answer(stream, &snapshots)),
                    // There may be no file descriptors left; later there may be some.
                    Err(_) => thread::park_timeout(std_time(PATIENCE)),
                }
            }
        };
        let failed = |error| SysError::new("the metrics' thread cannot be started", error);
        thread::Builder::new()
            .name("metrics".to_owned())
            .stack_size(STACK)
            .spawn(serve)
            .map_err(failed)
            .map(drop)
    }
}

fn no_listener(address: SocketAddr, error: io::Error) -> SysError {
    SysError::new(format!("metrics = {address}: cannot listen there"), error)
}

fn answer(mut stream: TcpStream, snapshots: &StatsSnapshots) -> io::Result<()> {
    stream.set_write_timeout(Some(std_time(PATIENCE)))?;
    let line = first_line(&mut stream)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => match snapshots.statistics() {
            Some(statistics) => {
                ("200 OK", "text/plain; version=0.0.4; charset=utf-8", exposition(&statistics))
            }
            None => ("503 Service Unavailable", PLAIN, "the router does not answer\n".to_owned()),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", PLAIN, "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", PLAIN, "only GET is answered\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn std_time(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}

/// Reads a request up to its empty line, and returns its first line. Further bytes are discarded.
fn first_line(stream: &mut TcpStream) -> io::Result<String> {
    let end = now() + PATIENCE;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = end.saturating_since(now());
        if left.is_zero() || request.len() > LONGEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(std_time(left)))?;
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => request.extend_from_slice(&buffer[..n]),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// The statistics in the text format of Prometheus, version 0.0.4.
pub fn exposition(statistics: &Statistics) -> String {
    let mut metrics = Metrics::new(PREFIX);
    add_statistics(&mut metrics, &[], statistics);
    metrics.text(TextFormat::Prometheus)
}

/// Adds a router's statistics to metrics, all with these labels.
pub fn add_statistics(metrics: &mut Metrics, labels: &[(&str, &str)], statistics: &Statistics) {
    metrics.add(&[], labels, statistics);
    if let Some(autorate) = &statistics.autorate {
        metrics.add(&["autorate"], labels, autorate);
    }
    for (way, direction) in [("forward", &statistics.forward), ("reverse", &statistics.reverse)] {
        let own =
            [("direction", way), ("link", direction.name.as_str()), ("queue", direction.queue.as_str())];
        let labels = [labels, &own].concat();
        add_direction(metrics, &labels, direction);
        metrics.add(&["reserved"], &labels, &direction.reserved);
    }
    for interface in &statistics.interfaces {
        let labels = [labels, &[("interface", interface.name.as_str())]].concat();
        metrics.add(&["interface"], &labels, interface);
    }
}

/// Adds the statistics of a direction to metrics, without those of reservations.
fn add_direction(metrics: &mut Metrics, labels: &[(&str, &str)], direction: &DirectionStatistics) {
    metrics.add(&[], labels, direction);
    if let Some(sieve) = &direction.sieve {
        metrics.add(&["sieve"], labels, sieve);
    }
    for hint in &direction.hints {
        let level = hint.hint.to_string();
        metrics.add(&["hint"], &[labels, &[("hint", level.as_str())]].concat(), hint);
    }
}

/// Adds the queue of an interface in the kernel to metrics, with labels for interface and queue.
pub fn add_kernel_queue(metrics: &mut Metrics, document: &QdiscDocument) {
    let QdiscDocument { interface, statistics, .. } = document;
    add_direction(metrics, &[("interface", interface.as_str()), ("queue", &statistics.queue)], statistics);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{HintStatistics, PacketCount};
    use std::collections::BTreeMap;

    fn statistics() -> Statistics {
        let sent = PacketCount { packets: 7, bytes: 900 };
        let dropped = BTreeMap::from([("early".to_owned(), PacketCount { packets: 2, bytes: 300 })]);
        let hint = HintStatistics { hint: 6, departed: sent, mean_wait_ms: 1.5, ..HintStatistics::default() };
        let forward = DirectionStatistics {
            name: "a -> \"b\"".to_owned(),
            queue: "sieve".to_owned(),
            rate_bps: 15_000_000,
            sent,
            dropped,
            hints: vec![hint],
            ..DirectionStatistics::default()
        };
        Statistics { event: "stats".to_owned(), elapsed_s: 2.5, forward, ..Statistics::default() }
    }

    #[test]
    fn every_counter_and_gauge_is_a_metric_with_its_meaning() {
        let text = exposition(&statistics());
        for line in [
            "# TYPE cutline_router_sent_packets_total counter",
            "# HELP cutline_router_sent_packets_total Frames that the outgoing interface accepted.",
            "cutline_router_sent_packets_total{direction=\"forward\",link=\"a -> \\\"b\\\"\",queue=\"sieve\"} 7",
            "cutline_router_sent_bytes_total{direction=\"forward\",link=\"a -> \\\"b\\\"\",queue=\"sieve\"} 900",
            "cutline_router_dropped_packets_total{direction=\"forward\",link=\"a -> \\\"b\\\"\",queue=\"sieve\",reason=\"early\"} 2",
            "cutline_router_rate_bytes_per_second{direction=\"forward\",link=\"a -> \\\"b\\\"\",queue=\"sieve\"} 1875000",
            "cutline_router_hint_mean_wait_seconds{direction=\"forward\",link=\"a -> \\\"b\\\"\",queue=\"sieve\",hint=\"6\"} 0.0015",
            "cutline_router_elapsed_seconds_total 2.5",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        // Each family once, with its type before its samples.
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut once = types.clone();
        once.dedup();
        assert_eq!(types, once);
    }
}
