//! Metrics by name, and their text.

use crate::base_unit::{BaseUnit, base_unit};
use cutline_records::{BucketCounts, Field, FieldKind, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A text format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextFormat {
    /// The text format of Prometheus, version 0.0.4.
    #[default]
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

/// Metrics by name.
#[derive(Debug)]
pub struct Metrics {
    prefix: String,
    families: BTreeMap<String, Family>,
}

/// The samples of a metric.
#[derive(Debug)]
struct Family {
    help: String,
    kind: Kind,
    /// The base unit, without its underscore; empty if there is none.
    unit: &'static str,
    samples: String,
    /// Hashes of the labels of its samples.
    series: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl TextFormat {
    /// Returns the format that a scraper accepts, by the header `Accept` of its request.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the content type of the format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metrics {
    /// Creates an empty set of metrics, whose names begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), families: BTreeMap::new() }
    }

    /// Adds the counters, gauges and histograms of a record. `path` is between the prefix and the names of the fields.
    ///
    /// Both formats allow a name with the same labels once, so the first value stays where a later one has all labels of it.
    pub fn add<R: Record>(&mut self, path: &[&str], labels: &[(&str, &str)], record: &R) {
        for field in R::fields() {
            match field.kind {
                FieldKind::Counter => self.add_numbers(path, labels, Kind::Counter, &field, record),
                FieldKind::Gauge => self.add_numbers(path, labels, Kind::Gauge, &field, record),
                FieldKind::Histogram => self.add_histogram(path, labels, &field, record),
                FieldKind::Label | FieldKind::Part => {}
            }
        }
    }

    /// Adds a gauge that is no field of a record.
    pub fn add_gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let name = format!("{}_{name}", self.prefix);
        let family = self.family(name.clone(), help, Kind::Gauge, "");
        if family.is_new(labels, &[]) {
            sample(&mut family.samples, &name, labels, &[], value);
        }
    }

    /// Adds all metrics of another set, which has another prefix.
    pub fn append(&mut self, mut other: Self) {
        self.families.append(&mut other.families);
    }

    fn add_numbers<R: Record>(
        &mut self,
        path: &[&str],
        labels: &[(&str, &str)],
        kind: Kind,
        field: &Field<R>,
        record: &R,
    ) {
        let about = &field.about;
        for (below, number) in field.numbers(record) {
            // Packets and bytes are metrics of their own; a reason before them is a label. Other numbers have their path in the name.
            let (stem, base, reason) = match &below[..] {
                [] => {
                    let (stem, base) = base_unit(about.name, about.unit);
                    (stem.to_owned(), base, None)
                }
                [reasons @ .., counted] if counted == "packets" || counted == "bytes" => {
                    let ending = if counted == "bytes" { "_bytes" } else { "_packets" };
                    (about.name.to_owned(), BaseUnit { ending, divisor: 1.0 }, reasons.first())
                }
                path => {
                    let (stem, base) = base_unit(about.name, about.unit);
                    (format!("{stem}_{}", path.join("_")), base, None)
                }
            };
            let name = self.name(path, &stem, base);
            let reason = reason.map(|reason| [("reason", reason.as_str())]);
            let more = reason.as_ref().map_or(&[][..], |reason| &reason[..]);
            let value = base.value(number.as_f64().unwrap_or_default());
            let (full, unit) = match kind {
                Kind::Counter => (format!("{name}_total"), unit_of(base)),
                _ => (name.clone(), unit_of(base)),
            };
            let family = self.family(name, about.meaning, kind, unit);
            if family.is_new(labels, more) {
                sample(&mut family.samples, &full, labels, more, value);
            }
        }
    }

    fn add_histogram<R: Record>(
        &mut self,
        path: &[&str],
        labels: &[(&str, &str)],
        field: &Field<R>,
        record: &R,
    ) {
        let Ok(counts) = serde_json::from_value::<BucketCounts>(field.value(record)) else { return };
        let (stem, base) = base_unit(field.about.name, field.about.unit);
        let name = self.name(path, stem.strip_suffix("_buckets").unwrap_or(stem), base);
        let family = self.family(name.clone(), field.about.meaning, Kind::Histogram, unit_of(base));
        if !family.is_new(labels, &[]) {
            return;
        }
        let (mut below, mut last) = (0_u64, f64::NEG_INFINITY);
        let bucket = format!("{name}_bucket");
        for (count, bound) in counts.counts.iter().zip(&counts.bounds) {
            below = below.saturating_add(*count);
            let bound = base.value(*bound);
            // Bounds rise, unless a process has stated others.
            if bound > last && bound.is_finite() {
                sample(&mut family.samples, &bucket, labels, &[("le", &number(bound))], below as f64);
                last = bound;
            }
        }
        below = counts.count();
        sample(&mut family.samples, &bucket, labels, &[("le", "+Inf")], below as f64);
        sample(&mut family.samples, &format!("{name}_sum"), labels, &[], base.value(counts.sum));
        sample(&mut family.samples, &format!("{name}_count"), labels, &[], below as f64);
    }

    /// Returns the name of a metric; that of a counter without its ending.
    fn name(&self, path: &[&str], stem: &str, base: BaseUnit) -> String {
        let words = [self.prefix.as_str()].into_iter().chain(path.iter().copied()).chain([stem]);
        let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_");
        format!("{name}{}", base.ending)
    }

    fn family(&mut self, name: String, help: &str, kind: Kind, unit: &'static str) -> &mut Family {
        let new =
            || Family { help: help.to_owned(), kind, unit, samples: String::new(), series: BTreeSet::new() };
        self.families.entry(name).or_insert_with(new)
    }

    /// Returns the text of all metrics.
    pub fn text(&self, format: TextFormat) -> String {
        let mut text = String::new();
        for (name, Family { help, kind, unit, samples, .. }) in &self.families {
            // Prometheus' own format has the ending of a counter in the name of the family.
            let ending = match (format, kind) {
                (TextFormat::Prometheus, Kind::Counter) => "_total",
                _ => "",
            };
            let _ =
                writeln!(text, "# HELP {name}{ending} {}", escaped(help, format == TextFormat::OpenMetrics));
            let _ = writeln!(text, "# TYPE {name}{ending} {}", kind.name());
            if format == TextFormat::OpenMetrics && !unit.is_empty() {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            text.push_str(samples);
        }
        if format == TextFormat::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

impl Family {
    /// Notes a series. Returns whether it is new.
    fn is_new(&mut self, labels: &[(&str, &str)], more: &[(&str, &str)]) -> bool {
        let mut hasher = DefaultHasher::new();
        labels.iter().chain(more).for_each(|label| label.hash(&mut hasher));
        self.series.insert(hasher.finish())
    }
}

fn unit_of(base: BaseUnit) -> &'static str {
    base.ending.strip_prefix('_').unwrap_or_default()
}

fn sample(to: &mut String, name: &str, labels: &[(&str, &str)], more: &[(&str, &str)], value: f64) {
    to.push_str(name);
    let mut before = '{';
    for (label, value) in labels.iter().chain(more) {
        let _ = write!(to, "{before}{label}=\"{}\"", escaped(value, true));
        before = ',';
    }
    let end = if before == ',' { "}" } else { "" };
    let _ = writeln!(to, "{end} {}", number(value));
}

/// A number as both formats write it.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}

/// A text in a help, or within the quotes of a label.
fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_records::record;

    record! {
        /// Frames and bytes.
        pub struct Both {
            packets: u64, counter("packets"), "Packets.";
            bytes: u64, counter("B"), "Bytes.";
        }

        /// A queue.
        pub struct Queue {
            name: String, label, "Its name.";
            dropped: BTreeMap<String, Both>, counter("packets, B"), "Frames dropped, by reason.";
            sent: Both, counter("packets, B"), "Frames \"sent\".";
            wait_buckets_ms: BucketCounts, histogram("ms"), "Waiting times.";
            load: f64, gauge("0..1"), "Load.";
        }
    }

    fn queue() -> Queue {
        let both = Both { packets: 2, bytes: 300 };
        Queue {
            name: "q".to_owned(),
            dropped: BTreeMap::from([("early".to_owned(), both.clone())]),
            sent: both,
            wait_buckets_ms: BucketCounts { bounds: vec![1.0, 5.0], counts: vec![3, 0, 1], sum: 20.0 },
            load: 0.5,
        }
    }

    #[test]
    fn every_kind_of_field_is_a_metric() {
        let mut metrics = Metrics::new("cutline");
        metrics.add(&["router"], &[("link", "a -> \"b\"\n")], &queue());
        let expected = r#"# HELP cutline_router_dropped_bytes_total Frames dropped, by reason.
# TYPE cutline_router_dropped_bytes_total counter
cutline_router_dropped_bytes_total{link="a -> \"b\"\n",reason="early"} 300
# HELP cutline_router_dropped_packets_total Frames dropped, by reason.
# TYPE cutline_router_dropped_packets_total counter
cutline_router_dropped_packets_total{link="a -> \"b\"\n",reason="early"} 2
# HELP cutline_router_load_ratio Load.
# TYPE cutline_router_load_ratio gauge
cutline_router_load_ratio{link="a -> \"b\"\n"} 0.5
# HELP cutline_router_sent_bytes_total Frames "sent".
# TYPE cutline_router_sent_bytes_total counter
cutline_router_sent_bytes_total{link="a -> \"b\"\n"} 300
# HELP cutline_router_sent_packets_total Frames "sent".
# TYPE cutline_router_sent_packets_total counter
cutline_router_sent_packets_total{link="a -> \"b\"\n"} 2
# HELP cutline_router_wait_seconds Waiting times.
# TYPE cutline_router_wait_seconds histogram
cutline_router_wait_seconds_bucket{link="a -> \"b\"\n",le="0.001"} 3
cutline_router_wait_seconds_bucket{link="a -> \"b\"\n",le="0.005"} 3
cutline_router_wait_seconds_bucket{link="a -> \"b\"\n",le="+Inf"} 4
cutline_router_wait_seconds_sum{link="a -> \"b\"\n"} 0.02
cutline_router_wait_seconds_count{link="a -> \"b\"\n"} 4
"#;
        assert_eq!(metrics.text(TextFormat::Prometheus), expected);
    }

    /// A gauge of the same name is one of them.
    /// A process may state any bounds and counts.
    #[test]
    fn a_histogram_has_rising_bounds_and_all_of_its_values() {
        let le = |bounds: Vec<f64>, counts: Vec<u64>| {
            let mut metrics = Metrics::new("cutline");
            let wait_buckets_ms = BucketCounts { bounds, counts, sum: 0.0 };
            metrics.add(&[], &[], &Queue { wait_buckets_ms, ..Queue::default() });
            let text = metrics.text(TextFormat::Prometheus);
            let lines = text.lines().filter_map(|line| line.strip_prefix("cutline_wait_seconds_"));
            lines.filter(|line| !line.starts_with("sum")).map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = ["bucket{le=\"0.002\"} 1", "bucket{le=\"+Inf\"} 10", "count 10"];
        assert_eq!(le(vec![2.0, 2.0, 1.0], vec![1, 2, 3, 4]), expected);
        assert_eq!(le(vec![2.0], vec![1, 2, 3, 4]), expected);
        assert_eq!(le(vec![2.0], vec![]), ["bucket{le=\"+Inf\"} 0", "count 0"]);
    }

    #[test]
    fn a_series_is_there_once() {
        let mut metrics = Metrics::new("cutline");
        metrics.add(&["router"], &[("link", "a")], &queue());
        let once = metrics.text(TextFormat::Prometheus);
        metrics.add(&["router"], &[("link", "a")], &Queue { load: 0.25, ..queue() });
        metrics.add_gauge("router_load_ratio", "Load.", &[("link", "a")], 0.75);
        assert_eq!(metrics.text(TextFormat::Prometheus), once);
        metrics.add(&["router"], &[("link", "b")], &queue());
        assert_eq!(metrics.text(TextFormat::Prometheus).matches("_load_ratio{").count(), 2);
    }

    #[test]
    fn open_metrics_name_units_and_an_end() {
        let mut metrics = Metrics::new("cutline");
        metrics.add(&[], &[], &queue());
        metrics.add_gauge("up", "Whether it runs.", &[], 1.0);
        let text = metrics.text(TextFormat::OpenMetrics);
        for line in [
            "# TYPE cutline_sent_packets counter",
            "# UNIT cutline_sent_packets packets",
            "cutline_sent_packets_total 2",
            "# HELP cutline_sent_packets Frames \\\"sent\\\".",
            "# UNIT cutline_wait_seconds seconds",
            "cutline_up 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_scraper_that_accepts_open_metrics_gets_them() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2";
        assert_eq!(TextFormat::accepted(prometheus), TextFormat::OpenMetrics);
        assert_eq!(TextFormat::accepted("*/*"), TextFormat::Prometheus);
    }
}
