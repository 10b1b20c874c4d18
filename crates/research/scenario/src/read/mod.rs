//! Reads a [`Scenario`] from a document: the top-level keys, then the topology, then the flows. Unknown keys are errors.

mod aal5;
mod adaptive;
mod app;
mod arrivals;
mod dumbbell;
pub(crate) mod flow;
mod graph;
mod impairment;
mod qos;
mod rate_trace;
mod text_file;
mod topology;
mod transport;

use crate::spec::{
    FlowGroupSpec, QualityDelay, RateChange, Scenario, Topology, TrafficMatrix, TransferSizes,
};
use crate::sweep::SWEEP_KEYS;
use cutline_config::{Document, Errors, TableReader, ValueKind, kind};
use cutline_sim::Deliveries;
use cutline_tables::queue::{self, QueueConfig};
use cutline_units::{Duration, HintBits};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys that do not affect the result of a run with a given seed.
const NOT_SIMULATED: [&str; 6] = ["name", "title", "description", "seed", "seeds", SWEEP_KEYS];

/// The largest number of flows in a scenario. Current computers cannot simulate more.
const MOST_FLOWS: u64 = 10_000_000;

/// The largest number of intervals of all series of a run together. Each takes some 100 bytes of memory.
const MOST_INTERVALS: u64 = 4_000_000;

/// The largest sum of a run's duration and the delays of all links: 292 years, half of the clock.
const MOST_NANOS: u64 = u64::MAX / 2;

/// Reads the scenario that a document describes.
pub(crate) fn scenario(document: &Document) -> Result<Scenario, Errors> {
    cutline_config::read(document, read)
}

/// The duration of a run, and the start, end and interval of the measurement.
struct Times {
    duration: Duration,
    warm_up: Duration,
    measure_until: Duration,
    interval: Duration,
}

fn read(root: &TableReader<'_>) -> Option<Scenario> {
    let name = root.required("name", &kind::name());
    let title = root.optional("title", &kind::text());
    let description = root.optional("description", &kind::text());
    let seed = root.or("seed", &kind::integer(0, i64::MAX), 1);
    let seeds = root.or("seeds", &kind::integer(1, 1_000_000), 1);
    let times = times(root);
    let quality_delay = root.or("quality-delay", &quality_delay(), QualityDelay::OneWay);
    let duration = times.as_ref().map(|times| times.duration);
    let topology = topology(root, duration);
    let hint_bits = topology.as_ref().and_then(|topology| hint_bits(root, topology));
    let flows = flow::read_all(root, &flow::Surroundings::new(topology.as_ref(), hint_bits, duration));
    root.node(SWEEP_KEYS);
    root.finish();
    let expected =
        |flow: &FlowGroupSpec| flow.arrivals.as_ref().map_or(0, |arrivals| arrivals.expected() as u64);
    if flows.iter().map(|flow| flow.count + expected(flow)).sum::<u64>() > MOST_FLOWS {
        root.report("flow", None, format!(": there are more than {MOST_FLOWS} flows in all"));
    }
    let Times { duration, warm_up, measure_until, interval } = times?;
    if let Some(topology) = &topology {
        check_intervals(root, (duration, interval), topology, &flows);
        check_clock(root, duration, topology);
    }
    let (topology, mut canonical) = (topology?, root.document().canonical(&NOT_SIMULATED));
    if canonical.contains(rate_trace::KEY) {
        // The file may change while its name stays.
        let rates = rate_trace::digest(rate_changes(&topology), deliveries(&topology));
        canonical = format!("{canonical}\n{} {rates}", rate_trace::KEY);
    }
    if let Some(digest) = digest_of_files(&topology, &flows) {
        canonical = format!("{canonical}\nfiles {digest}");
    }
    Some(Scenario {
        name: name?,
        title,
        description,
        seed,
        seeds,
        duration,
        warm_up,
        measure_until,
        interval,
        quality_delay,
        hint_bits: hint_bits.unwrap_or(HintBits::PAPER),
        topology,
        flows,
        canonical,
    })
}

fn quality_delay() -> ValueKind<QualityDelay> {
    kind::one_of(
        "a quality's delay",
        &[
            ("one-way", QualityDelay::OneWay),
            ("propagation-and-queuing", QualityDelay::PropagationAndQueuing),
        ],
    )
}

fn times(root: &TableReader<'_>) -> Option<Times> {
    let duration = root.required("duration", &kind::positive_duration());
    let warm_up = root.or("warm-up", &kind::duration(), Duration::ZERO);
    let until = root.optional("measure-until", &kind::positive_duration());
    let interval = root.optional("interval", &kind::positive_duration());
    let duration = duration?;
    let measure_until = until.unwrap_or(duration);
    if measure_until > duration {
        root.refuse("measure-until", &format!("the simulation lasts {duration}"));
    } else if warm_up >= measure_until {
        root.refuse("warm-up", &format!("it must be before the end of the measurement, {measure_until}"));
    } else if let Some(interval) = interval.filter(|interval| *interval > measure_until - warm_up) {
        root.refuse(
            "interval",
            &format!("{interval} is longer than the measured time, {}", measure_until - warm_up),
        );
    }
    let interval = interval.unwrap_or(Duration::from_secs(1));
    Some(Times { duration, warm_up, measure_until, interval })
}

/// Refuses an interval that is so short that the series would not fit the memory.
fn check_intervals(
    root: &TableReader<'_>,
    (duration, interval): (Duration, Duration),
    topology: &Topology,
    flows: &[FlowGroupSpec],
) {
    let of_flows: u64 = flows.iter().filter(|flow| flow.series).map(|flow| flow.count).sum();
    let of_queues = match topology {
        Topology::Dumbbell(_) => 1,
        Topology::Graph(graph) => graph.links.len() as u64,
    };
    let series = of_flows + of_queues;
    let each = duration.as_nanos().div_ceil(interval.as_nanos());
    if each.saturating_mul(series) <= MOST_INTERVALS {
        return;
    }
    let ms = duration.as_nanos().saturating_mul(series).div_ceil(MOST_INTERVALS).div_ceil(1_000_000);
    let least = Duration::from_millis(ms);
    let keeps = if of_flows > 1 { ", or set series = false for a [[flow]]" } else { "" };
    root.refuse(
        "interval",
        &format!(
            "{series} series of {each} intervals each are more than {MOST_INTERVALS} intervals; it must be at least {least}{keeps}"
        ),
    );
}

/// Refuses a duration that leaves no time on the clock for packets on their way and for timers. The clock has 64 bits of nanoseconds,
/// which are 584 years.
fn check_clock(root: &TableReader<'_>, duration: Duration, topology: &Topology) {
    let delays = match topology {
        Topology::Dumbbell(dumbbell) => vec![dumbbell.delay, dumbbell.access_delay, dumbbell.access_delay],
        Topology::Graph(graph) => graph.links.iter().map(|link| link.delay).collect(),
    };
    let sum = delays.iter().fold(duration.as_nanos(), |sum, delay| sum.saturating_add(delay.as_nanos()));
    if sum > MOST_NANOS {
        root.refuse("duration", "with the delays of all links it must be below 292 years, half of the clock");
    }
}

fn topology(root: &TableReader<'_>, duration: Option<Duration>) -> Option<Topology> {
    let named = queue::named(root);
    let generated = root.table(topology::KEY, "a table: write [topology]");
    if let Some(table) = generated {
        for other in ["dumbbell", "node", "link"].into_iter().filter(|other| root.node(other).is_some()) {
            root.refuse_at(other, "a scenario with a [topology] has no other nodes and links");
        }
        return topology::read(&table, &named).map(Topology::Graph);
    }
    let dumbbell = root.table("dumbbell", "a table: write [dumbbell]");
    let is_graph = root.has("node") || root.has("link");
    if dumbbell.is_some() && is_graph {
        let other = if root.has("node") { "node" } else { "link" };
        root.refuse_at(
            other,
            "a scenario has either a [dumbbell] or [[node]] and [[link]], and this one has both",
        );
    }
    if is_graph && dumbbell.is_none() {
        return graph::read(root, &named, duration).map(Topology::Graph);
    }
    root.node("node");
    root.node("link");
    if !root.has("dumbbell") && !root.has(topology::KEY) {
        root.lacks("dumbbell", "[dumbbell], [topology], or [[node]] and [[link]]");
    }
    dumbbell.and_then(|table| dumbbell::read(&table, &named, duration)).map(Topology::Dumbbell)
}

/// Returns a digest of other files than the scenario about a graph and its traffic, which may change while their names stay;
/// `None` without such files.
fn digest_of_files(topology: &Topology, flows: &[FlowGroupSpec]) -> Option<String> {
    let mut hash = Sha256::new();
    let mut any = false;
    if let Topology::Graph(graph) = topology
        && graph.generated.as_ref().is_some_and(|generated| generated.from_file)
    {
        any = true;
        for link in &graph.links {
            hash.update(link.name.as_bytes());
            hash.update(link.rate.as_bps().to_le_bytes());
            hash.update(link.delay.as_nanos().to_le_bytes());
        }
    }
    for arrivals in flows.iter().filter_map(|flow| flow.arrivals.as_ref()) {
        if let TransferSizes::Empirical(table) = &arrivals.sizes {
            any = true;
            table.numbers().for_each(|number| hash.update(number.to_le_bytes()));
        }
        if let TrafficMatrix::Pairs(demands) = &arrivals.matrix {
            any = true;
            for demand in demands.iter() {
                hash.update([demand.from.as_bytes(), b" ", demand.to.as_bytes()].concat());
                hash.update(demand.cumulative.to_le_bytes());
            }
        }
        if let TrafficMatrix::Demands(demands) = &arrivals.matrix {
            any = true;
            for (ends, weight) in &demands.weights {
                let [from, to] = ends.map(|node| demands.hosts[node][0].as_bytes());
                hash.update([from, b" ", to].concat());
                hash.update(weight.to_le_bytes());
            }
        }
    }
    let first = hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    any.then(|| format!("{first:016x}"))
}

/// Returns the changes of all links' rates.
fn rate_changes(topology: &Topology) -> impl Iterator<Item = &RateChange> {
    let (dumbbell, graph) = match topology {
        Topology::Dumbbell(dumbbell) => (Some(dumbbell), None),
        Topology::Graph(graph) => (None, Some(graph)),
    };
    let of_links = graph.into_iter().flat_map(|graph| &graph.links).flat_map(|link| &link.rate_changes);
    dumbbell.into_iter().flat_map(|dumbbell| &dumbbell.rate_changes).chain(of_links)
}

/// Returns the records of deliveries of all links that follow one.
fn deliveries(topology: &Topology) -> impl Iterator<Item = &Arc<Deliveries>> {
    let (dumbbell, graph) = match topology {
        Topology::Dumbbell(dumbbell) => (dumbbell.deliveries.as_ref(), None),
        Topology::Graph(graph) => (None, Some(graph)),
    };
    let of_links =
        graph.into_iter().flat_map(|graph| &graph.links).filter_map(|link| link.deliveries.as_ref());
    dumbbell.into_iter().chain(of_links)
}

/// Returns the number of hint bits, which must be the same in all TSQ queues; `None` if no queue has TSQ.
fn hint_bits(root: &TableReader<'_>, topology: &Topology) -> Option<HintBits> {
    let mut by_bits: BTreeMap<u64, String> = BTreeMap::new();
    for (place, queue) in queues(topology) {
        if let Some(tsq) = queue.tsq {
            by_bits.entry(tsq.bits).or_insert(place);
        }
    }
    let mut found = by_bits.iter();
    let (bits, at) = found.next()?;
    if let Some((other, elsewhere)) = found.next() {
        let why = format!(
            ": TSQ must have the same bits everywhere, but {at} has {bits} and {elsewhere} has {other}"
        );
        let key = ["dumbbell", topology::KEY].into_iter().find(|key| root.has(key));
        let key = key.map_or("link", |key| if key == "dumbbell" { elsewhere.as_str() } else { key });
        root.report(key, root.document().locate(key).as_ref(), why);
    }
    Some(HintBits::new(*bits).expect("the kind of bits allows 1..8"))
}

/// Returns every queue with its name in messages.
fn queues(topology: &Topology) -> Vec<(String, &Arc<QueueConfig>)> {
    match topology {
        Topology::Dumbbell(dumbbell) => vec![
            ("dumbbell.queue".to_owned(), &dumbbell.queue),
            ("dumbbell.reverse-queue".to_owned(), &dumbbell.reverse_queue),
            ("dumbbell.access-queue".to_owned(), &dumbbell.access_queue),
        ],
        Topology::Graph(graph) => {
            graph.links.iter().map(|link| (format!("the link {}", link.name), &link.queue)).collect()
        }
    }
}
