//! Reads `[[flow]]` tables. Each describes a group of flows with the same parameters.

use super::{adaptive, app, arrivals, graph, qos, transport};
use crate::spec::{
    AdaptiveSpec, ClassSpec, DistributionsOf, FlowDirection, FlowGroupSpec, GraphSpec, StartSpec, Topology,
    TransportSpec,
};
use cutline_config::{TableReader, Value, kind};
use cutline_params::Choice as _;
use cutline_quality::Perspective;
use cutline_transport::app::{Params, TransferParams};
use cutline_units::{Bytes, Distribution, Duration, Ecn, HintBits};
use std::collections::BTreeSet;

/// The largest number of flows for which the series and distributions of every flow are kept by default.
const FEW_FLOWS: u64 = 200;

/// The parts of a scenario that restrict its flows.
pub(crate) struct Surroundings<'a> {
    pub(super) graph: Option<&'a GraphSpec>,
    /// Reason why `from` and `to` are refused; `None` if they are required.
    no_ends: Option<&'static str>,
    /// The largest hint level of a flow.
    levels: u16,
    /// The number of hint bits; the paper's if no queue has TSQ.
    bits: HintBits,
    pub(super) duration: Option<Duration>,
}

const IN_A_DUMBBELL: &str = "in a dumbbell every flow has its own source and sink: remove the key";
const WITHOUT_A_NETWORK: &str = "the flows of this file go from the sender to the receiver, or the other way with direction = \"reverse\": remove the key";

impl<'a> Surroundings<'a> {
    /// Returns the surroundings of flows without a network.
    pub fn nowhere() -> Self {
        let bits = HintBits::PAPER;
        let no_ends = Some(WITHOUT_A_NETWORK);
        Self { graph: None, no_ends, levels: bits.levels(), bits, duration: None }
    }

    /// Returns the surroundings of a scenario's flows. `bits` is `None` if no queue has TSQ or the topology is invalid.
    pub fn new(topology: Option<&'a Topology>, bits: Option<HintBits>, duration: Option<Duration>) -> Self {
        // Without TSQ no queue reads the hints, so every level is allowed. A sweep can then turn TSQ off.
        let graph = if let Some(Topology::Graph(graph)) = topology { Some(graph) } else { None };
        Self {
            graph,
            no_ends: matches!(topology, Some(Topology::Dumbbell(_))).then_some(IN_A_DUMBBELL),
            levels: bits.map_or(256, HintBits::levels),
            bits: bits.unwrap_or(HintBits::PAPER),
            duration,
        }
    }

    /// Returns whether the file has a network that could not be read, which is reported.
    pub(super) fn has_wrong_network(&self) -> bool {
        self.graph.is_none() && self.no_ends.is_none()
    }
}

pub(crate) fn read_all(root: &TableReader<'_>, around: &Surroundings<'_>) -> Vec<FlowGroupSpec> {
    let tables = root.tables("flow");
    if tables.is_empty() && !root.has("flow") {
        root.lacks("flow", "at least one [[flow]]");
    } else if matches!(root.node("flow").map(|node| &node.value), Some(Value::List(list)) if list.is_empty())
    {
        root.refuse("flow", "there must be at least one flow");
    }
    let few = are_few(&tables);
    let mut taken = BTreeSet::new();
    let groups: Vec<FlowGroupSpec> =
        tables.iter().filter_map(|table| read(table, around, few, &mut taken)).collect();
    if !groups.is_empty()
        && groups.len() == tables.len()
        && groups.iter().all(|group| group.count == 0 && group.arrivals.is_none())
    {
        let path = format!("{}.count", root.path_of(&format!("flow.{}", groups[0].name)));
        root.refuse_at(&path, "there must be at least one flow, and every group has count = 0");
    }
    groups
}

/// Returns whether there are at most [`FEW_FLOWS`] flows. An invalid count is reported when its flow is read.
fn are_few(tables: &[TableReader<'_>]) -> bool {
    let count = |table: &TableReader<'_>| match table.node("count").map(|node| &node.value) {
        Some(Value::Integer(count)) => u64::try_from(*count).unwrap_or(0),
        _ => 1,
    };
    tables.iter().map(count).fold(0, u64::saturating_add) <= FEW_FLOWS
}

fn read(
    reader: &TableReader<'_>,
    around: &Surroundings<'_>,
    few: bool,
    taken: &mut BTreeSet<String>,
) -> Option<FlowGroupSpec> {
    let name = name(reader, taken);
    let transport = transport::read(reader);
    let has_arrivals = reader.has(arrivals::KEY);
    let arrivals = if has_arrivals { arrivals::read(reader, around, transport.as_ref()) } else { None };
    let count = if has_arrivals { 0 } else { reader.or("count", &kind::integer(0, 10_000_000), 1) };
    let ends = if has_arrivals { Some(None) } else { ends(reader, around, transport.as_ref()) };
    let direction = direction(reader, around);
    let host = reader.optional("host", &kind::name());
    let tunnel = tunnel(reader, around);
    let class = class(reader);
    let (hint, adaptive) = adaptive::hint(reader, around.levels, around.bits);
    refuse_unjudged(reader, adaptive.as_ref(), class);
    let (ecn, lies) = ecn(reader);
    if let Some(transport) = &transport {
        refuse_ecn(reader, transport, ecn, lies);
    }
    let (start, stop) = times(reader, around);
    let app = if has_arrivals { Some(Params::Transfer(TRANSFER)) } else { app::read(reader) };
    if has_arrivals {
        refuse_adaptive(reader, adaptive.as_ref());
    } else if let (Some(transport), Some(app)) = (&transport, &app) {
        refuse_mismatch(reader, transport, app);
    }
    let qos = qos::read(reader, transport.as_ref());
    let program = qos::program(reader, transport.as_ref());
    let gateways = around.graph.and_then(|graph| qos::gateways(reader, graph, program));
    if around.graph.is_none() {
        refuse_routers(reader);
    }
    let few = few && !has_arrivals;
    let series = reader.or("series", &kind::flag(), few);
    let of = kind::one_of("one of", &[("flow", DistributionsOf::Flow), ("group", DistributionsOf::Group)]);
    let distributions =
        reader.or("distributions", &of, if few { DistributionsOf::Flow } else { DistributionsOf::Group });
    reader.finish();
    let (name, ends, class, transport, app, qos) = (name?, ends?, class?, transport?, app?, qos?);
    if has_arrivals && arrivals.is_none() {
        return None;
    }
    Some(FlowGroupSpec {
        name,
        count,
        arrivals,
        direction,
        ends,
        host,
        tunnel,
        class,
        hint,
        adaptive,
        ecn,
        start,
        stop,
        transport,
        app,
        qos,
        program,
        gateways,
        series,
        distributions,
    })
}

/// The application of a group with arrivals; each of its flows has its own size.
const TRANSFER: TransferParams = TransferParams { size: Distribution::Fixed(1.0) };

/// Refuses an adaptive hint of transfers, which end before it would have changed.
fn refuse_adaptive(reader: &TableReader<'_>, adaptive: Option<&AdaptiveSpec>) {
    if adaptive.is_some() {
        reader.refuse("hint", "the hints of transfers that arrive are constant: set a level");
    }
}

/// Refuses the keys of the laboratory with routers where there are no nodes.
fn refuse_routers(reader: &TableReader<'_>) {
    reader.node("gateways");
    for key in ["qos", "program", "gateways"].into_iter().filter(|key| reader.has(key)) {
        reader.refuse(key, "only a flow between nodes has it: use [[node]] and [[link]]");
    }
}

fn name(reader: &TableReader<'_>, taken: &mut BTreeSet<String>) -> Option<String> {
    let name = reader.required("name", &kind::name())?;
    if !taken.insert(name.clone()) {
        reader.refuse("name", &format!("another flow is called {name:?}"));
    }
    Some(name)
}

/// Reads source and sink: `Some(None)` if the flow must not set them, `None` if they are invalid.
#[expect(clippy::option_option, reason = "an invalid end differs from an end that a dumbbell does not need")]
fn ends(
    reader: &TableReader<'_>,
    around: &Surroundings<'_>,
    transport: Option<&TransportSpec>,
) -> Option<Option<(String, String)>> {
    if let Some(why) = around.no_ends {
        for key in ["from", "to"].into_iter().filter(|key| reader.has(key)) {
            reader.node(key);
            reader.refuse(key, why);
        }
        return Some(None);
    }
    let Some(graph) = around.graph else {
        reader.node("from");
        reader.node("to");
        return None;
    };
    let names: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    let from = reader.required("from", &graph::node_name(&names));
    let to = reader.required("to", &graph::node_name(&names));
    let (from, to) = (from?, to?);
    refuse_unreachable(reader, graph, (&from, &to), transport);
    Some(Some((from, to)))
}

/// Reads the end of a measurement that sends.
fn direction(reader: &TableReader<'_>, around: &Surroundings<'_>) -> FlowDirection {
    if around.no_ends == Some(WITHOUT_A_NETWORK) {
        let words = [
            ("forward", FlowDirection::Forward),
            ("reverse", FlowDirection::Reverse),
            ("bidirectional", FlowDirection::Bidirectional),
        ];
        return reader.or("direction", &kind::one_of("a direction", &words), FlowDirection::Forward);
    }
    if reader.has("direction") {
        reader.node("direction");
        reader.refuse("direction", "only the plans of `cutline tg send` have it");
    }
    FlowDirection::Forward
}

/// Reads the tunnel of a flow.
fn tunnel(reader: &TableReader<'_>, around: &Surroundings<'_>) -> Option<String> {
    let tunnel = reader.optional("tunnel", &kind::name());
    if tunnel.is_some() && around.no_ends == Some(WITHOUT_A_NETWORK) {
        reader.refuse("tunnel", "only the queues of a simulation see tunnels: remove the key");
    }
    tunnel
}

fn refuse_unreachable(
    reader: &TableReader<'_>,
    graph: &GraphSpec,
    (from, to): (&str, &str),
    transport: Option<&TransportSpec>,
) {
    let answers = transport.is_none_or(|transport| transport.params.adapts());
    if from == to {
        reader.refuse("to", "a flow goes from one node to another");
    } else if !graph.reaches(from, to) {
        reader.refuse("to", &format!("no path of links leads from {from:?} to {to:?}"));
    } else if answers && !graph.reaches(to, from) {
        reader.refuse(
            "to",
            &format!("no path of links leads back from {to:?} to {from:?}, and this transport needs one"),
        );
    }
}

/// The names of the classes, each with the key that only this class has.
const CLASSES: [(&str, &str); 6] = [
    ("none", ""),
    ("audio", ""),
    ("video", ""),
    ("file-transfer", "file-size"),
    ("web", "page-size"),
    ("game", "perspective"),
];

fn class(reader: &TableReader<'_>) -> Option<ClassSpec> {
    let kind = kind::one_of("a quality class", &CLASSES.map(|(class, _)| (class, class)));
    let class = if reader.node("class").is_none() { "none" } else { reader.optional("class", &kind)? };
    for (other, key) in CLASSES.iter().filter(|(other, key)| *other != class && reader.has(key)) {
        reader.node(key);
        reader.refuse(key, &format!("only the class {other:?} has this key"));
    }
    Some(match class {
        "audio" => ClassSpec::Audio,
        "video" => ClassSpec::Video,
        "file-transfer" => {
            ClassSpec::FileTransfer { file_size: reader.required("file-size", &kind::positive_size())? }
        }
        "web" => {
            ClassSpec::Web { page_size: reader.or("page-size", &kind::positive_size(), Bytes::new(100_000)) }
        }
        "game" => ClassSpec::Game { perspective: perspective(reader) },
        _ => ClassSpec::None,
    })
}

fn perspective(reader: &TableReader<'_>) -> Perspective {
    let words = Perspective::ALL.iter().map(|perspective| (perspective.name().to_owned(), *perspective));
    reader.or("perspective", &kind::choice("a perspective", words.collect()), Perspective::default())
}

/// Refuses an adaptive hint without a quality class, because the class defines the quality.
fn refuse_unjudged(reader: &TableReader<'_>, adaptive: Option<&AdaptiveSpec>, class: Option<ClassSpec>) {
    if adaptive.is_some() && class == Some(ClassSpec::None) {
        reader.refuse("hint", "an adaptive hint needs a quality class: set class");
    }
}

fn times(reader: &TableReader<'_>, around: &Surroundings<'_>) -> (StartSpec, Option<Duration>) {
    let start = start(reader);
    let stop = reader.optional("stop", &kind::positive_duration());
    let latest = match start {
        StartSpec::At(at) => at,
        StartSpec::Uniform { to, .. } => to,
    };
    if let Some(duration) = around.duration.filter(|duration| latest >= *duration && !latest.is_zero()) {
        reader.refuse("start", &format!("the simulation ends at {duration}"));
    } else if stop.is_some_and(|stop| stop <= latest) {
        reader.refuse("stop", &format!("it must be after the latest start, {latest}"));
    }
    (start, stop)
}

fn start(reader: &TableReader<'_>) -> StartSpec {
    let zero = StartSpec::At(Duration::ZERO);
    let expected = "a duration such as \"1 s\", or { from = \"0 s\", to = \"1 s\" } for a random one";
    let Some(node) = reader.node("start") else { return zero };
    if node.as_text().is_some() {
        return reader.or("start", &kind::duration().map(StartSpec::At), zero);
    }
    let Some(table) = reader.table_in(node, "start", expected) else { return zero };
    let from = table.required("from", &kind::duration());
    let to = table.required("to", &kind::duration());
    if let Some((from, _)) = from.zip(to).filter(|(from, to)| from >= to) {
        table.refuse("to", &format!("it must be later than from, {from}"));
    }
    table.finish();
    from.zip(to).map_or(zero, |(from, to)| StartSpec::Uniform { from, to })
}

/// Reads the ECN codepoint, and whether it may be wrong. `true` is ECT(0): the sender treats a mark like a loss. `"ect-1"` is ECT(1):
/// the sender reduces its rate in proportion to the share of marked packets. `"ect-1-lie"` is ECT(1) of a sender that does not.
fn ecn(reader: &TableReader<'_>) -> (Ecn, bool) {
    let flag = kind::flag().map(|on| (if on { Ecn::Ect0 } else { Ecn::NotEct }, false));
    let [honest, lie] =
        [("ect-1", false), ("ect-1-lie", true)].map(|(word, lies)| kind::word(word, (Ecn::Ect1, lies)));
    reader.or("ecn", &flag.or(honest).or(lie), (Ecn::NotEct, false))
}

/// Refuses a scalable congestion control such as DCTCP without ECN, and ECT(1) without a scalable congestion control
/// (RFC 9331 section 4.1) unless it is meant as a lie.
fn refuse_ecn(reader: &TableReader<'_>, transport: &TransportSpec, ecn: Ecn, lies: bool) {
    let control = transport.tcp().map(|tcp| &tcp.algorithm).filter(|control| control.is_scalable());
    let scalable = control.is_some();
    if let Some(control) = control.filter(|_| !ecn.is_capable()) {
        let name = control.name();
        let why = format!("congestion-control = {name:?} needs ECN: set ecn = true or \"ect-1\"");
        reader.refuse("ecn", &why);
    } else if ecn == Ecn::Ect1 && !scalable && !lies {
        reader.refuse(
            "ecn",
            "ECT(1) needs a scalable congestion control: use congestion-control = \"prague\" or \"dctcp\"",
        );
    }
}

/// Refuses an application that the transport cannot carry.
fn refuse_mismatch(reader: &TableReader<'_>, transport: &TransportSpec, app: &Params) {
    let params = &transport.params;
    let (kind, title) = (app.name(), params.title());
    if app.is_endless() && !params.adapts() {
        let why = format!(
            "{kind:?} sends as fast as the transport allows, and {title} has no rate limit: use kind = \"cbr\""
        );
        reader.refuse("app", &why);
    } else if app.needs_reliability() && !params.is_reliable() {
        reader.refuse("app", &format!("{kind:?} needs a reliable transport: use protocol = \"tcp\""));
    } else if let Some((key, largest)) = params.largest_message() {
        let largest = Bytes::new(u64::from(largest));
        if let Some(size) = app.message_size().map(Bytes::new).filter(|size| *size > largest) {
            let why = format!("a message of {size} does not fit {title}'s {key}, {largest}");
            reader.refuse("app", &why);
        }
    }
}
