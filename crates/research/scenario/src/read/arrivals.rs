//! Reads the arrivals of transfers: `arrivals = { load = 0.5, size-file = "web-search.cdf" }`.

use super::flow::Surroundings;
use super::text_file;
use crate::spec::{
    ArrivalsSpec, Demands, Generated, GraphSpec, SizeTable, TrafficMatrix, TransferSizes, TransportSpec,
};
use cutline_config::{TableReader, kind, parameter};
use cutline_params::{ParameterValue, Parameters as _};
use cutline_transport::app::TransferParams;
use cutline_units::Duration;
use std::sync::Arc;

/// The key of arrivals.
pub(super) const KEY: &str = "arrivals";

const EXPECTED: &str = "a table such as { load = 0.5, size-file = \"web-search.cdf\" }";

/// The largest expected number of transfers of a group. Current computers cannot simulate more.
const MOST_TRANSFERS: f64 = 10_000_000.0;

/// Keys of a flow that arrivals take the place of.
const REPLACED: [&str; 11] =
    ["count", "from", "to", "start", "stop", "app", "qos", "program", "gateways", "series", "distributions"];

/// Words for a matrix.
#[derive(Clone, Copy)]
enum Word {
    AllToAll,
    Permutation,
    Demands,
    SymmetricDemands,
}

/// Reads the arrivals of a group of flows; `None` if they are wrong, which is reported.
pub(super) fn read(
    flow: &TableReader<'_>,
    around: &Surroundings<'_>,
    transport: Option<&TransportSpec>,
) -> Option<ArrivalsSpec> {
    for key in REPLACED.into_iter().filter(|key| flow.node(key).is_some()) {
        flow.refuse(key, "arrivals draw the flows of the group, each a transfer of its own: remove the key");
    }
    if transport.is_some_and(|transport| !transport.params.is_reliable()) {
        flow.refuse(KEY, "a transfer needs a reliable transport: use protocol = \"tcp\"");
    }
    let reader = flow.table(KEY, EXPECTED)?;
    let Some(graph) = around.graph else {
        // Without a graph its keys cannot be judged.
        for (key, _) in reader.entries() {
            reader.node(key);
        }
        if !around.has_wrong_network() {
            flow.refuse(
                KEY,
                "only the flows of a graph have arrivals: use [topology], or [[node]] and [[link]]",
            );
        }
        return None;
    };
    let sizes = sizes(&reader);
    let matrix = matrix(&reader, graph);
    let times = times(&reader, around.duration);
    let load = reader
        .optional("load", &kind::share().only("above 0, at most 1", |load| *load > 0.0 && *load <= 1.0));
    let rate = reader.optional("rate", &kind::any_frequency().only("above 0", |rate| *rate > 0.0));
    match (reader.has("load"), reader.has("rate")) {
        (false, false) => {
            reader.lacks("load", "the load of the busiest host, such as 0.5, or rate = \"1000 Hz\"");
        }
        (true, true) => reader.refuse("rate", "load sets the rate of the arrivals, too: use one of them"),
        _ => (),
    }
    reader.finish();
    let (sizes, matrix, (from, until)) = (sizes?, matrix?, times?);
    let per_second = match (load, rate) {
        (Some(load), None) => rate_of_load(&reader, graph, &matrix, &sizes, load)?,
        (None, Some(rate)) => rate,
        _ => return None,
    };
    let arrivals = ArrivalsSpec { per_second, load, from, until, matrix, sizes };
    if arrivals.expected() > MOST_TRANSFERS {
        let key = if load.is_some() { "load" } else { "rate" };
        let expected = arrivals.expected();
        reader.refuse(
            key,
            &format!("{expected:.0} transfers are expected; allowed are up to {MOST_TRANSFERS}"),
        );
        return None;
    }
    Some(arrivals)
}

fn sizes(reader: &TableReader<'_>) -> Option<TransferSizes> {
    let size = TransferParams::describe();
    let given = if reader.has("size") { parameter::values(reader, &size) } else { Vec::new() };
    let file = text_file::optional(reader, "size-file", SizeTable::parse);
    match (reader.has("size"), reader.has("size-file")) {
        (true, true) => reader.refuse("size-file", "size sets the sizes, too: use one of them"),
        (false, false) => {
            reader.lacks("size-file", "a file with the distribution of sizes, or size = \"100 KB\"");
        }
        _ => (),
    }
    let given = given.into_iter().find_map(|(_, value)| match value {
        ParameterValue::Distribution(distribution) => Some(TransferSizes::Distribution(distribution)),
        _ => None,
    });
    given.or_else(|| Some(TransferSizes::Empirical(Arc::new(file?))))
}

fn matrix(reader: &TableReader<'_>, graph: &GraphSpec) -> Option<TrafficMatrix> {
    let words = [
        ("all-to-all", Word::AllToAll),
        ("permutation", Word::Permutation),
        ("demands", Word::Demands),
        ("symmetric-demands", Word::SymmetricDemands),
    ];
    let word = reader.or("matrix", &kind::one_of("a traffic matrix", &words), Word::AllToAll);
    let file = text_file::optional(reader, "matrix-file", |text| TrafficMatrix::parse(text, graph));
    if reader.has("matrix-file") {
        if reader.has("matrix") {
            reader.refuse("matrix", "matrix-file sets the pairs, too: use one of them");
        }
        return file;
    }
    let hosts: Arc<[String]> = graph.hosts().map(str::to_owned).collect();
    let needs_hosts = matches!(word, Word::AllToAll | Word::Permutation);
    if needs_hosts && hosts.len() < 2 {
        reader.refuse_at(
            &reader.path_of("matrix"),
            &format!(
                "the network has {} hosts, and at least 2 are needed: a host is a node with one neighbour; \
                 set matrix-file for other nodes",
                hosts.len()
            ),
        );
        return None;
    }
    match word {
        Word::AllToAll => Some(TrafficMatrix::AllToAll(hosts)),
        Word::Permutation => Some(TrafficMatrix::Permutation(hosts)),
        Word::Demands => demands(reader, graph).map(TrafficMatrix::Demands),
        Word::SymmetricDemands => {
            demands(reader, graph).map(|demands| TrafficMatrix::Demands(Arc::new(demands.symmetric())))
        }
    }
}

/// Returns the demands of the graph's file. It reports a graph without them.
fn demands(reader: &TableReader<'_>, graph: &GraphSpec) -> Option<Arc<Demands>> {
    let from_file = graph.generated.as_ref().filter(|generated| generated.from_file);
    let Some(Generated { description, demands, .. }) = from_file else {
        reader.refuse(
            "matrix",
            "demands are those of a graph in a file: set kind = \"file\" in [topology], or matrix-file",
        );
        return None;
    };
    match demands {
        Some(Ok(demands)) => return Some(Arc::clone(demands)),
        Some(Err(why)) => reader.refuse("matrix", &format!("{description}: {why}")),
        None => reader.refuse(
            "matrix",
            &format!(
                "{description} has no graph.demands, as TopoHub's networks of SNDlib have: set matrix-file, or \
                 another matrix"
            ),
        ),
    }
    None
}

fn times(reader: &TableReader<'_>, duration: Option<Duration>) -> Option<(Duration, Duration)> {
    let from = reader.or("from", &kind::duration(), Duration::ZERO);
    let until = reader.optional("until", &kind::positive_duration());
    let (until, duration) = (until.or(duration)?, duration?);
    if until > duration {
        reader.refuse("until", &format!("the simulation ends at {duration}"));
        return None;
    }
    if from >= until {
        reader.refuse("from", &format!("it must be before the end of the arrivals, {until}"));
        return None;
    }
    Some((from, until))
}

/// Returns the rate of arrivals at which the busiest link of a host carries `load` of its rate, in payload, transfers per second.
fn rate_of_load(
    reader: &TableReader<'_>,
    graph: &GraphSpec,
    matrix: &TrafficMatrix,
    sizes: &TransferSizes,
    load: f64,
) -> Option<f64> {
    let bits = 8.0 * sizes.mean();
    if !bits.is_finite() {
        reader
            .refuse("load", "the mean size is infinite, so that no rate has a load: set rate, or a maximum");
        return None;
    }
    // Bits each second of a node, sent and received.
    let rates = graph.node_rates();
    let shares = matrix.shares();
    let seconds_of = |(node, shares): (&&str, &[f64; 2])| {
        let rates = rates.get(*node).copied().unwrap_or_default();
        shares
            .iter()
            .zip(rates)
            .map(|(share, rate)| if *share > 0.0 { share / rate } else { 0.0 })
            .fold(0.0, f64::max)
    };
    // The seconds for which a bit of the whole traffic occupies the busiest link, on the average.
    let busiest = shares.iter().map(seconds_of).fold(0.0, f64::max);
    if !busiest.is_finite() {
        reader.refuse("load", "a node of the matrix has no link: set rate");
        return None;
    }
    Some(load / (busiest * bits))
}
