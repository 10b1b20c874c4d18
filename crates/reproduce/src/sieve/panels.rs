//! The panels of the figures: a measure of a group, by one key of the sweep along the axis and by another as series.

use crate::data::{Data, mean};
use crate::measure::{Measure, kbps};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Bars, Chart, Line, Point as Dot};
use cutline_report::stats::Estimate;

/// Values of swept keys, and their name in charts.
type Place = (&'static str, &'static [(&'static str, &'static str)]);

/// A panel.
pub(super) struct Panel {
    experiment: &'static str,
    title: &'static str,
    y: &'static str,
    measure: Measure,
    /// On a logarithmic axis, which suits delays.
    is_log: bool,
    /// The settings of all its values.
    at: &'static [(&'static str, &'static str)],
    along: &'static [Place],
    series: &'static [(Place, &'static str)],
}

const P99: Measure = |row| row.queuing_p99_ms;
const Q: Measure = |row| row.q;
const NONE: &[(&str, &str)] = &[];

impl Panel {
    fn values(&self, data: &Data, along: &Place, (series, group): &(Place, &str)) -> Option<Estimate> {
        let at = [self.at, along.1, series.1].concat();
        mean(&data.by_seed(&at, group, self.measure))
    }

    fn data<'d>(&self, stored: &[ExperimentData<'d>]) -> Option<&'d Data> {
        stored.iter().find(|(experiment, _)| experiment.id == self.experiment).map(|(_, data)| *data)
    }

    /// The chart; `None` without results.
    pub(super) fn chart(&self, stored: &[ExperimentData<'_>]) -> Option<Chart> {
        let data = self.data(stored)?;
        let y = if self.is_log { Axis::log(self.y, 10) } else { Axis::linear(self.y).from(0.0) };
        let chart =
            Chart::new(self.title).x(Axis::categories("", self.along.iter().map(|(name, _)| *name))).y(y);
        Some(self.series.iter().fold(chart, |chart, series| {
            let dot = |(x, along): (usize, &Place)| {
                let value = self.values(data, along, series)?;
                // A logarithmic axis has no zero.
                (!self.is_log || value.mean > 0.0).then(|| Dot::from_estimate(x as f64, &value))
            };
            let dots: Vec<Dot> = self.along.iter().enumerate().filter_map(dot).collect();
            let name = series.0.0;
            if self.is_log {
                chart.plot(Line::scatter(name, dots))
            } else {
                chart.plot(Bars::new(name, dots))
            }
        }))
    }

    /// The numbers in words; `None` without results.
    pub(super) fn words(&self, stored: &[ExperimentData<'_>]) -> Option<String> {
        let data = self.data(stored)?;
        let line = |series: &(Place, &str)| {
            let values = self.along.iter().map(|along| {
                let value = self.values(data, along, series);
                let value = value.map_or_else(|| "-".to_owned(), |value| shown(value.mean));
                format!("{} {value}", along.0)
            });
            format!("{}: {}.", series.0.0, values.collect::<Vec<_>>().join(", "))
        };
        let lines = self.series.iter().map(line).collect::<Vec<_>>().join(" ");
        Some(format!("{} ({}). {lines}", self.title, self.y))
    }
}

/// Three digits, which is what the intervals allow.
fn shown(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// The panels of a figure.
pub(super) fn of(figure: u32) -> &'static [Panel] {
    match figure {
        1 => &MIXES,
        2 => &LIARS,
        3 => &FLOODS,
        4 => &PING,
        5 => &PATHS,
        6 => &FLOWS,
        7 => &PARTS,
        8 => &SETTINGS,
        9 => &CLASSES,
        _ => &RATES,
    }
}

const QUEUES: &[Place] = &[
    ("drop-tail", &[("dumbbell.queue", "drop-tail")]),
    ("PI", &[("dumbbell.queue", "pi")]),
    ("PIE", &[("dumbbell.queue", "pie")]),
    ("CoDel", &[("dumbbell.queue", "codel")]),
    ("FQ-CoDel", &[("dumbbell.queue", "fq-codel")]),
    ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
    ("DRR", &[("dumbbell.queue", "drr")]),
    ("priority", &[("dumbbell.queue", "priority")]),
    ("DualPI2", &[("dumbbell.queue", "dual-pi2")]),
    ("TSQ, hint 6", &[("dumbbell.queue", "tsq")]),
    ("TSQ, hint 1", &[("dumbbell.queue", "tsq-1")]),
    ("FQ-PIE", &[("dumbbell.queue", "fq-pie")]),
    ("CAKE", &[("dumbbell.queue", "cake")]),
    ("Sieve", &[("dumbbell.queue", "sieve")]),
];

const fn mixes(group: &'static str) -> [(Place, &'static str); 4] {
    [
        (("99 : 1", &[("flow.bulk.count", "99")]), group),
        (("75 : 25", &[("flow.bulk.count", "75")]), group),
        (("50 : 50", &[("flow.bulk.count", "50")]), group),
        (("25 : 75", &[("flow.bulk.count", "25")]), group),
    ]
}

const MIXES: [Panel; 3] = [
    Panel {
        experiment: "sieve-mixes",
        title: "Quality of audio",
        y: "Quality",
        measure: Q,
        is_log: false,
        at: NONE,
        along: QUEUES,
        series: &mixes("audio"),
    },
    Panel {
        experiment: "sieve-mixes",
        title: "Queuing delay of audio, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: QUEUES,
        series: &mixes("audio"),
    },
    Panel {
        experiment: "sieve-mixes",
        title: "Throughput of a transfer",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: QUEUES,
        series: &mixes("bulk"),
    },
];

const LYING: &[Place] = &[
    ("TSQ, nobody", &[("dumbbell.queue", "tsq"), ("flow.liar.hint", "16")]),
    ("TSQ, they lie", &[("dumbbell.queue", "tsq"), ("flow.liar.hint", "1")]),
    ("Sieve, nobody", &[("dumbbell.queue", "sieve"), ("flow.liar.hint", "16")]),
    ("Sieve, they lie", &[("dumbbell.queue", "sieve"), ("flow.liar.hint", "1")]),
];

const LIARS: [Panel; 4] = [
    liars("sieve-liars", "NewReno, 300 ms", NEWRENO, &EIGHTY),
    liars("sieve-liars", "CUBIC, 300 ms", CUBIC, &EIGHTY),
    liars("sieve-liars-short", "NewReno, 10 ms", NEWRENO, &TWENTY),
    liars("sieve-liars-short", "CUBIC, 10 ms", CUBIC, &TWENTY),
];

const NEWRENO: &[(&str, &str)] = &[("flow.liar.transport.congestion-control", "newreno")];
const CUBIC: &[(&str, &str)] = &[("flow.liar.transport.congestion-control", "cubic")];

const EIGHTY: [(Place, &str); 6] = [
    (("liars, 10 %", &[("flow.liar.count", "8")]), "liar"),
    (("the other 90 %", &[("flow.liar.count", "8")]), "honest"),
    (("liars, 50 %", &[("flow.liar.count", "40")]), "liar"),
    (("the other 50 %", &[("flow.liar.count", "40")]), "honest"),
    (("liars, 90 %", &[("flow.liar.count", "72")]), "liar"),
    (("the other 10 %", &[("flow.liar.count", "72")]), "honest"),
];

const TWENTY: [(Place, &str); 6] = [
    (("liars, 10 %", &[("flow.liar.count", "2")]), "liar"),
    (("the other 90 %", &[("flow.liar.count", "2")]), "honest"),
    (("liars, 50 %", &[("flow.liar.count", "10")]), "liar"),
    (("the other 50 %", &[("flow.liar.count", "10")]), "honest"),
    (("liars, 90 %", &[("flow.liar.count", "18")]), "liar"),
    (("the other 10 %", &[("flow.liar.count", "18")]), "honest"),
];

const fn liars(
    experiment: &'static str,
    title: &'static str,
    at: &'static [(&'static str, &'static str)],
    series: &'static [(Place, &'static str); 6],
) -> Panel {
    Panel {
        experiment,
        title,
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at,
        along: LYING,
        series,
    }
}

const FLOOD_QUEUES: &[Place] = &[
    ("PI", &[("dumbbell.queue", "pi")]),
    ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
    ("priority", &[("dumbbell.queue", "priority")]),
    ("TSQ", &[("dumbbell.queue", "tsq")]),
    ("FQ-PIE", &[("dumbbell.queue", "fq-pie")]),
    ("CAKE", &[("dumbbell.queue", "cake")]),
    ("Sieve", &[("dumbbell.queue", "sieve")]),
];

const SMALL_16: &[(&str, &str)] =
    &[("flow.flood.count", "1"), ("flow.flood.hint", "16"), ("flow.flood.app.rate", "1.5 Mbit/s")];
const SMALL_1: &[(&str, &str)] =
    &[("flow.flood.count", "1"), ("flow.flood.hint", "1"), ("flow.flood.app.rate", "1.5 Mbit/s")];
const LARGE_1: &[(&str, &str)] = &[("flow.flood.count", "1"), ("flow.flood.app.rate", "6 Mbit/s")];
const NEW_FLOWS: &[(&str, &str)] = &[("flow.new.count", "20000")];

const fn floods(group: &'static str) -> [(Place, &'static str); 4] {
    [
        (("1.5 Mbit/s", SMALL_16), group),
        (("1.5 Mbit/s, hint 1", SMALL_1), group),
        (("6 Mbit/s, hint 1", LARGE_1), group),
        (("new flows", NEW_FLOWS), group),
    ]
}

const fn flood(title: &'static str, y: &'static str, measure: Measure, is_log: bool, group: Floods) -> Panel {
    Panel {
        experiment: "sieve-floods",
        title,
        y,
        measure,
        is_log,
        at: NONE,
        along: FLOOD_QUEUES,
        series: match group {
            Floods::Audio => &FLOODED_AUDIO,
            Floods::Bulk => &FLOODED_BULK,
            Floods::Flood => &THE_FLOOD,
        },
    }
}

/// Whose measure a panel about floods shows.
#[derive(Clone, Copy)]
enum Floods {
    Audio,
    Bulk,
    Flood,
}

const FLOODED_AUDIO: [(Place, &str); 4] = floods("audio");
const FLOODED_BULK: [(Place, &str); 4] = floods("bulk");
const THE_FLOOD: [(Place, &str); 3] = [
    (("1.5 Mbit/s", SMALL_16), "flood"),
    (("1.5 Mbit/s, hint 1", SMALL_1), "flood"),
    (("6 Mbit/s, hint 1", LARGE_1), "flood"),
];

const FLOODS: [Panel; 5] = [
    flood("Quality of audio", "Quality", Q, false, Floods::Audio),
    flood("Queuing delay of audio, 99th percentile", "Queuing delay, ms", P99, true, Floods::Audio),
    flood("Throughput of a transfer", "Throughput, kbit/s", kbps, false, Floods::Bulk),
    flood("Throughput of the flood", "Throughput, kbit/s", kbps, false, Floods::Flood),
    Panel {
        experiment: "sieve-split",
        title: "Throughput of a transfer if one host has ten of 40",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: &[
            ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
            ("CAKE", &[("dumbbell.queue", "cake")]),
            ("Sieve", &[("dumbbell.queue", "sieve")]),
            ("Sieve by source", &[("dumbbell.queue", "sieve-hosts")]),
        ],
        series: &[(("another host's", NONE), "one"), (("one of the ten", NONE), "split")],
    },
];

const LINKS: &[Place] = &[
    ("2 Mbit/s; 0 ms", &[("dumbbell.rate", "2 Mbit/s"), ("dumbbell.delay", "0 ms")]),
    ("2 Mbit/s; 20 ms", &[("dumbbell.rate", "2 Mbit/s"), ("dumbbell.delay", "10 ms")]),
    ("2 Mbit/s; 50 ms", &[("dumbbell.rate", "2 Mbit/s"), ("dumbbell.delay", "25 ms")]),
    ("15 Mbit/s; 0 ms", &[("dumbbell.rate", "15 Mbit/s"), ("dumbbell.delay", "0 ms")]),
    ("15 Mbit/s; 20 ms", &[("dumbbell.rate", "15 Mbit/s"), ("dumbbell.delay", "10 ms")]),
    ("15 Mbit/s; 50 ms", &[("dumbbell.rate", "15 Mbit/s"), ("dumbbell.delay", "25 ms")]),
    ("100 Mbit/s; 0 ms", &[("dumbbell.rate", "100 Mbit/s"), ("dumbbell.delay", "0 ms")]),
    ("100 Mbit/s; 20 ms", &[("dumbbell.rate", "100 Mbit/s"), ("dumbbell.delay", "10 ms")]),
    ("100 Mbit/s; 50 ms", &[("dumbbell.rate", "100 Mbit/s"), ("dumbbell.delay", "25 ms")]),
];

const fn by_default(group: &'static str) -> [(Place, &'static str); 4] {
    [
        (("PIE", &[("dumbbell.queue", "pie")]), group),
        (("FQ-CoDel", &[("dumbbell.queue", "fq-codel")]), group),
        (("CAKE", &[("dumbbell.queue", "cake")]), group),
        (("Sieve", &[("dumbbell.queue", "sieve")]), group),
    ]
}

const PING: [Panel; 2] = [
    Panel {
        experiment: "sieve-ping",
        title: "Queuing delay of the ping, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: LINKS,
        series: &by_default("ping"),
    },
    Panel {
        experiment: "sieve-ping",
        title: "Throughput of a transfer",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: true,
        at: NONE,
        along: LINKS,
        series: &by_default("bulk"),
    },
];

const WEB_QUEUES: &[Place] = &[
    ("PI", &[("dumbbell.queue", "pi")]),
    ("PIE", &[("dumbbell.queue", "pie")]),
    ("FQ-CoDel", &[("dumbbell.queue", "fq-codel")]),
    ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
    ("TSQ", &[("dumbbell.queue", "tsq")]),
    ("FQ-PIE", &[("dumbbell.queue", "fq-pie")]),
    ("CAKE", &[("dumbbell.queue", "cake")]),
    ("Sieve", &[("dumbbell.queue", "sieve")]),
];

const PATHS: [Panel; 3] = [
    Panel {
        experiment: "sieve-rtt",
        title: "Throughput of a transfer, by its round-trip time",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: &[
            ("PI", &[("link.r1-d.queue", "pi")]),
            ("FQ-CoDel, 65,536", &[("link.r1-d.queue", "fq-codel-free")]),
            ("FQ-PIE", &[("link.r1-d.queue", "fq-pie")]),
            ("CAKE", &[("link.r1-d.queue", "cake")]),
            ("Sieve", &[("link.r1-d.queue", "sieve")]),
        ],
        series: &[
            (("20 ms", NONE), "bulk-20"),
            (("60 ms", NONE), "bulk-60"),
            (("150 ms", NONE), "bulk-150"),
            (("300 ms", NONE), "bulk-300"),
        ],
    },
    Panel {
        experiment: "sieve-web",
        title: "Pages of one reader in 80 s",
        y: "Pages",
        measure: |row| row.transfers.map(|pages| pages as f64),
        is_log: false,
        at: NONE,
        along: WEB_QUEUES,
        series: &[(("pages", NONE), "web")],
    },
    Panel {
        experiment: "sieve-web",
        title: "Throughput of a transfer beside them",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: WEB_QUEUES,
        series: &[(("transfers", NONE), "bulk")],
    },
];

const MANY_QUEUES: &[Place] = &[
    ("PI", &[("dumbbell.queue", "pi")]),
    ("FQ-CoDel", &[("dumbbell.queue", "fq-codel")]),
    ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
    ("Sieve, 1 kB", &[("dumbbell.queue", "sieve-1k")]),
    ("4 kB", &[("dumbbell.queue", "sieve-4k")]),
    ("16 kB", &[("dumbbell.queue", "sieve-16k")]),
    ("64 kB", &[("dumbbell.queue", "sieve-64k")]),
    ("1 MB", &[("dumbbell.queue", "sieve-1m")]),
];

const fn many(group: &'static str) -> [(Place, &'static str); 3] {
    [
        (("990 : 10", &[("flow.bulk.count", "990")]), group),
        (("750 : 250", &[("flow.bulk.count", "750")]), group),
        (("250 : 750", &[("flow.bulk.count", "250")]), group),
    ]
}

const FLOWS: [Panel; 3] = [
    Panel {
        experiment: "sieve-flows",
        title: "Queuing delay of audio, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: MANY_QUEUES,
        series: &many("audio"),
    },
    Panel {
        experiment: "sieve-flows",
        title: "Quality of audio",
        y: "Quality",
        measure: Q,
        is_log: false,
        at: NONE,
        along: MANY_QUEUES,
        series: &many("audio"),
    },
    Panel {
        experiment: "sieve-flows",
        title: "Throughput of a transfer",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: MANY_QUEUES,
        series: &many("bulk"),
    },
];

const ABLATIONS: &[Place] = &[
    ("all of it", &[("queue.sieve.without", "nothing")]),
    ("without first", &[("queue.sieve.without", "first")]),
    ("price of the rate", &[("queue.sieve.without", "rate-price")]),
    ("cap", &[("queue.sieve.without", "cap")]),
    ("order", &[("queue.sieve.without", "order")]),
    ("price of the place", &[("queue.sieve.without", "place-price")]),
];

const PARTS: [Panel; 3] = [
    Panel {
        experiment: "sieve-parts",
        title: "Queuing delay of audio, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: ABLATIONS,
        series: &[
            (("nobody lies", &[("flow.liar.hint", "16")]), "audio"),
            (("half lie", &[("flow.liar.hint", "1")]), "audio"),
        ],
    },
    Panel {
        experiment: "sieve-parts",
        title: "Throughput of a transfer if half lie",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: &[("flow.liar.hint", "1")],
        along: ABLATIONS,
        series: &[(("liar", NONE), "liar"), (("honest", NONE), "honest")],
    },
    Panel {
        experiment: "sieve-parts",
        title: "Throughput of 1.5 Mbit/s over UDP",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: &[("flow.liar.hint", "16")],
        along: ABLATIONS,
        series: &[(("flood", NONE), "flood")],
    },
];

const BY_SETTING: &[Place] = &[
    ("eta 0.8", &[("queue.sieve.eta", "0.8")]),
    ("0.9", &[("queue.sieve.eta", "0.9")]),
    (
        "as it is",
        &[("queue.sieve.eta", "0.95"), ("queue.sieve.tau", "250 ms"), ("queue.sieve.target", "100 ms")],
    ),
    ("0.98", &[("queue.sieve.eta", "0.98")]),
    ("0.99", &[("queue.sieve.eta", "0.99")]),
    ("1.0", &[("queue.sieve.eta", "1.0")]),
    ("1.01", &[("queue.sieve.eta", "1.01")]),
    ("1.02", &[("queue.sieve.eta", "1.02")]),
    ("1.03", &[("queue.sieve.eta", "1.03")]),
    ("1.05", &[("queue.sieve.eta", "1.05")]),
    ("tau 60 ms", &[("queue.sieve.tau", "60 ms")]),
    ("125 ms", &[("queue.sieve.tau", "125 ms")]),
    ("500 ms", &[("queue.sieve.tau", "500 ms")]),
    ("1 s", &[("queue.sieve.tau", "1 s")]),
    ("target 15 ms", &[("queue.sieve.target", "15 ms")]),
    ("30 ms", &[("queue.sieve.target", "30 ms")]),
    ("200 ms", &[("queue.sieve.target", "200 ms")]),
];

const SETTINGS: [Panel; 3] = [
    Panel {
        experiment: "sieve-settings",
        title: "Queuing delay of audio, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: BY_SETTING,
        series: &[(("audio", NONE), "audio")],
    },
    Panel {
        experiment: "sieve-settings",
        title: "Median queuing delay of a transfer",
        y: "Queuing delay, ms",
        measure: |row| row.queuing_p50_ms,
        is_log: true,
        at: NONE,
        along: BY_SETTING,
        series: &[(("transfer", NONE), "bulk")],
    },
    Panel {
        experiment: "sieve-settings",
        title: "Throughput of a flow",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: BY_SETTING,
        series: &[(("transfer", NONE), "bulk"), (("audio", NONE), "audio")],
    },
];

const CLASS_QUEUES: &[Place] = &[
    ("PIE", &[("dumbbell.queue", "pie")]),
    ("CoDel", &[("dumbbell.queue", "codel")]),
    ("FQ-CoDel", &[("dumbbell.queue", "fq-codel")]),
    ("FQ-CoDel, 65,536", &[("dumbbell.queue", "fq-codel-free")]),
    ("FQ-PIE", &[("dumbbell.queue", "fq-pie")]),
    ("CAKE", &[("dumbbell.queue", "cake")]),
    ("priority", &[("dumbbell.queue", "priority")]),
    ("DualPI2", &[("dumbbell.queue", "dual-pi2")]),
    ("TSQ over PIE", &[("dumbbell.queue", "tsq")]),
    ("Sieve", &[("dumbbell.queue", "sieve")]),
];

const SPARSE_KINDS: [(Place, &str); 4] = [
    (("game", NONE), "game"),
    (("call", NONE), "audio"),
    (("video", NONE), "video"),
    (("pages", NONE), "web"),
];

const CLASSES: [Panel; 3] = [
    Panel {
        experiment: "sieve-classes",
        title: "Queuing delay, 99th percentile",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: CLASS_QUEUES,
        series: &SPARSE_KINDS,
    },
    Panel {
        experiment: "sieve-classes",
        title: "Quality",
        y: "Quality",
        measure: Q,
        is_log: false,
        at: NONE,
        along: CLASS_QUEUES,
        series: &SPARSE_KINDS,
    },
    Panel {
        experiment: "sieve-classes",
        title: "Throughput of a transfer",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: false,
        at: NONE,
        along: CLASS_QUEUES,
        series: &[(("transfer", NONE), "bulk")],
    },
];

const BY_RATE: &[Place] = &[
    ("1 Mbit/s", &[("dumbbell.rate", "1 Mbit/s")]),
    ("10 Mbit/s", &[("dumbbell.rate", "10 Mbit/s")]),
    ("100 Mbit/s", &[("dumbbell.rate", "100 Mbit/s")]),
    ("1 Gbit/s", &[("dumbbell.rate", "1 Gbit/s")]),
];

const fn queues_by_rate(group: &'static str) -> [(Place, &'static str); 4] {
    [
        (("FQ-CoDel, 1", &[("dumbbell.queue", "fq-codel-free"), ("flow.bulk.count", "1")]), group),
        (("FQ-CoDel, 10", &[("dumbbell.queue", "fq-codel-free"), ("flow.bulk.count", "10")]), group),
        (("Sieve, 1", &[("dumbbell.queue", "sieve"), ("flow.bulk.count", "1")]), group),
        (("Sieve, 10", &[("dumbbell.queue", "sieve"), ("flow.bulk.count", "10")]), group),
    ]
}

const RATES: [Panel; 2] = [
    Panel {
        experiment: "sieve-rates",
        title: "Queuing delay of a call, 99th percentile, beside 1 and 10 transfers",
        y: "Queuing delay, ms",
        measure: P99,
        is_log: true,
        at: NONE,
        along: BY_RATE,
        series: &queues_by_rate("audio"),
    },
    Panel {
        experiment: "sieve-rates",
        title: "Throughput of a transfer",
        y: "Throughput, kbit/s",
        measure: kbps,
        is_log: true,
        at: NONE,
        along: BY_RATE,
        series: &queues_by_rate("bulk"),
    },
];
