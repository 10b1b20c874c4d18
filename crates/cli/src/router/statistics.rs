//! What the router has counted, by interval and at the end, for people and for scripts.

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use cutline_aqm::Count;
use cutline_linux::{AnyPort, LinuxPort as _, Observer, PortStats};
use cutline_router::{HINTS, HintStats, Loss, Shaper, ShaperStats, Wire};
use cutline_units::{Duration, Hint, Instant};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints by interval, and ends the router after its time.
pub struct Reporter<'a> {
    directions: [String; 2],
    json: bool,
    interval: Duration,
    stop: &'a AtomicBool,
    started: Instant,
    report_at: Instant,
    ends: Instant,
    /// When the last interval ended, and what had been sent and dropped in each direction.
    last: (Instant, [[Count; 2]; 2]),
    /// What could not be printed.
    failure: Option<Failure>,
}

impl<'a> Reporter<'a> {
    pub fn new(
        input: &str,
        output: &str,
        json: bool,
        interval: Option<Duration>,
        duration: Option<Duration>,
        stop: &'a AtomicBool,
    ) -> Self {
        let directions = [format!("{input} -> {output}"), format!("{output} -> {input}")];
        let started = cutline_linux::now();
        let after = |time: Option<Duration>| started.saturating_add(time.unwrap_or(Duration::MAX));
        Self {
            directions,
            json,
            interval: interval.unwrap_or(Duration::MAX),
            stop,
            started,
            report_at: after(interval),
            ends: after(duration),
            last: (started, [[Count::default(); 2]; 2]),
            failure: None,
        }
    }

    /// Prints everything at the end.
    pub fn finish(self, wire: &Wire, ports: &mut [AnyPort; 2]) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let [first, second] = ports;
        let stats = [first.stats()?, second.stats()?];
        let elapsed = cutline_linux::now() - self.started;
        if self.json {
            let ports =
                [(first.name(), stats[0]), (second.name(), stats[1])].map(|(name, stats)| port(name, stats));
            return self.print_line(&json!({ "ports": ports }), "end", elapsed, wire);
        }
        let directions = [&wire.forth, &wire.back];
        let mut text = format!("\nafter {:.1} s\n", elapsed.as_secs_f64());
        for (name, shaper) in self.directions.iter().zip(directions) {
            text += &summary(name, shaper);
        }
        [first.name(), second.name()]
            .iter()
            .zip(stats)
            .for_each(|(name, stats)| text += &warnings(name, stats));
        output::print(&text)
    }

    fn report(&mut self, now: Instant, wire: &Wire) -> Result<(), Failure> {
        let elapsed = now - self.started;
        if self.json {
            return self.print_line(&json!({}), "interval", elapsed, wire);
        }
        let (since, before) = self.last;
        let directions = [&wire.forth, &wire.back];
        let counts = directions.map(|shaper| [shaper.stats().sent, shaper.stats().dropped()]);
        let span = (now - since).as_secs_f64();
        let line = |place: usize, shaper: &Shaper| {
            let [sent, dropped] = [0, 1].map(|which| difference(counts[place][which], before[place][which]));
            let p = shaper.probability().map_or_else(String::new, |p| format!("  p {:.2e}", p.get()));
            format!(
                "{:8.1} s  {}  {:8.3} Mbit/s  {:6.0} packets/s  backlog {} packets  dropped {}{p}\n",
                elapsed.as_secs_f64(),
                self.directions[place],
                sent.bytes as f64 * 8e-6 / span,
                sent.packets as f64 / span,
                shaper.backlog().packets,
                dropped.packets,
            )
        };
        let text = line(0, &wire.forth) + &line(1, &wire.back);
        self.last = (now, counts);
        output::print(&text)
    }

    /// One document in one line, with `more` in it.
    fn print_line(&self, more: &Value, event: &str, elapsed: Duration, wire: &Wire) -> Result<(), Failure> {
        let mut document = json!({
            "event": event,
            "elapsed_s": elapsed.as_secs_f64(),
            "forth": direction(&self.directions[0], &wire.forth),
            "back": direction(&self.directions[1], &wire.back),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            document[key] = value.clone();
        }
        output::print(&format!("{document}\n"))
    }
}

impl Observer<AnyPort> for Reporter<'_> {
    fn look(&mut self, now: Instant, wire: &Wire, _: &mut [AnyPort; 2]) -> Instant {
        if now >= self.report_at {
            self.failure = self.report(now, wire).err();
            while self.report_at <= now {
                self.report_at = self.report_at.saturating_add(self.interval);
            }
        }
        if now >= self.ends || self.failure.is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.report_at.min(self.ends)
    }
}

fn difference(now: Count, before: Count) -> Count {
    Count { packets: now.packets - before.packets, bytes: now.bytes - before.bytes }
}

/// A direction at the end, for people.
fn summary(name: &str, shaper: &Shaper) -> String {
    let stats = shaper.stats();
    let losses = Loss::ALL.iter().map(|&loss| format!("{} {}", loss.name(), stats.lost(loss).packets));
    let text = format!(
        "\n{name}: received {}, sent {}, dropped {} ({}), queued {}; marked {}, re-marked {}, not IP {}\n",
        stats.received.packets,
        stats.sent.packets,
        stats.dropped().packets,
        losses.collect::<Vec<_>>().join(", "),
        shaper.queued(),
        stats.marked.packets,
        stats.remarked.packets,
        stats.not_ip.packets,
    );
    let slipped = match stats.slipped {
        Duration::ZERO => String::new(),
        by => format!("the schedule has slipped by {by}: the machine was too busy\n"),
    };
    let text = text + &slipped;
    let mut table = Table::new(0, &["hint", "sent on", "dropped", "mean wait ms", "longest wait ms"]);
    for (hint, of) in by_hint(stats) {
        let times = [of.mean_wait(), of.longest_wait].map(|time| format!("{:.2}", time.as_millis_f64()));
        let [mean, longest] = times;
        let counts = [of.departed, of.dropped].map(|count| count.packets.to_string());
        let [departed, dropped] = counts;
        table.add(vec![hint.to_string(), departed, dropped, mean, longest]);
    }
    if table.is_empty() { text } else { text + &table.render() }
}

/// What an operator should know of a port.
fn warnings(name: &str, stats: PortStats) -> String {
    let PortStats { missed, truncated, unfilled } = stats;
    let told = [
        (missed, "came faster than they were read, and were lost"),
        (truncated.packets, "were longer than its MTU, and were dropped: turn GRO and TSO off (ethtool -K)"),
        (unfilled.packets, "came without checksums: turn `tx` off at the sender's end (ethtool -K)"),
    ];
    let line = |(count, what)| format!("{name}: {count} frames {what}\n");
    told.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
}

/// A direction as JSON; packets and bytes since the start.
fn direction(name: &str, shaper: &Shaper) -> Value {
    let stats = shaper.stats();
    let dropped: serde_json::Map<_, _> =
        Loss::ALL.iter().map(|&loss| (loss.name().to_owned(), count(stats.lost(loss)))).collect();
    let hints = by_hint(stats).map(|(hint, of)| {
        json!({
            "hint": hint.level(),
            "departed": count(of.departed),
            "dropped": count(of.dropped),
            "mean_wait_ms": of.mean_wait().as_millis_f64(),
            "longest_wait_ms": of.longest_wait.as_millis_f64(),
        })
    });
    let backlog = shaper.backlog();
    json!({
        "direction": name,
        "rate_bps": shaper.params().queue.rate.as_bps(),
        "received": count(stats.received),
        "sent": count(stats.sent),
        "dropped": dropped,
        "queued_packets": shaper.queued(),
        "backlog": { "packets": backlog.packets, "bytes": backlog.bytes },
        "probability": shaper.probability().map(cutline_units::Probability::get),
        "marked": count(stats.marked),
        "remarked": count(stats.remarked),
        "not_ip": count(stats.not_ip),
        "slipped_ms": stats.slipped.as_millis_f64(),
        "hints": hints.collect::<Vec<_>>(),
    })
}

fn port(name: &str, stats: PortStats) -> Value {
    let PortStats { missed, truncated, unfilled } = stats;
    json!({
        "interface": name,
        "missed_packets": missed,
        "truncated": count(truncated),
        "without_checksum": count(unfilled),
    })
}

fn count(count: Count) -> Value {
    json!({ "packets": count.packets, "bytes": count.bytes })
}

/// The hints that have been seen.
fn by_hint(stats: &ShaperStats) -> impl Iterator<Item = (Hint, &HintStats)> {
    let all = (1..=HINTS as u16).map(Hint::from_level).map(|hint| (hint, stats.of_hint(hint)));
    all.filter(|(_, of)| of.departed.packets + of.dropped.packets > 0)
}
