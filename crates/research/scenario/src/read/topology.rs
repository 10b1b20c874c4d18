//! Reads `[topology]`: a graph that is generated from a few numbers, or that a file describes.

use super::text_file;
use crate::generate::{self, Joint, MOST_HOSTS, MOST_JOINTS, Skeleton};
use crate::spec::{Generated, GraphLinkSpec, GraphSpec, NodeSpec};
use cutline_config::{TableReader, kind};
use cutline_tables::queue::{self, Named};
use cutline_units::Duration;

/// The key of the table.
pub(super) const KEY: &str = "topology";

/// Time that light takes for a kilometre of fibre, at 200,000 km/s.
const NANOS_PER_KM: f64 = 5000.0;

/// Kinds of topology.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dumbbell,
    ParkingLot,
    FatTree,
    LeafSpine,
    File,
}

const KINDS: [(&str, Kind); 5] = [
    ("dumbbell", Kind::Dumbbell),
    ("parking-lot", Kind::ParkingLot),
    ("fat-tree", Kind::FatTree),
    ("leaf-spine", Kind::LeafSpine),
    ("file", Kind::File),
];

/// The keys that only some kinds have.
const OWN: [(&str, &[&str]); 5] = [
    ("dumbbell", &["pairs"]),
    ("parking-lot", &["hops"]),
    ("fat-tree", &["k"]),
    ("leaf-spine", &["leaves", "spines", "hosts"]),
    ("file", &["file", "hosts", "default-delay"]),
];

pub(super) fn read(reader: &TableReader<'_>, named: &Named) -> Option<GraphSpec> {
    let Some(kind) = reader.required("kind", &kind::one_of("a kind of topology", &KINDS)) else {
        // The kind determines which other keys are allowed.
        reader.report_missing();
        return None;
    };
    let skeleton = skeleton(reader, kind);
    let rate = reader.required("rate", &kind::rate());
    let delay = if kind == Kind::File {
        reader.optional("delay", &kind::duration())
    } else {
        reader.required("delay", &kind::duration())
    };
    let default_delay =
        (kind == Kind::File).then(|| reader.optional("default-delay", &kind::duration())).flatten();
    if default_delay.is_some() && delay.is_some() {
        reader.refuse("default-delay", "delay sets the delay of all links, too: use one of them");
    }
    let switch_queue = queue::optional(reader, "queue", named).unwrap_or_else(queue::default_queue);
    let host_rate = reader.optional("host-rate", &kind::rate());
    let host_delay = reader.optional("host-delay", &kind::duration());
    let host_queue = queue::optional(reader, "host-queue", named).unwrap_or_else(queue::default_queue);
    let chosen = KINDS.iter().find(|(_, other)| *other == kind).map_or("", |(name, _)| name);
    reader.finish_explaining(|key| {
        let having: Vec<String> =
            OWN.iter().filter(|(_, keys)| keys.contains(&key)).map(|(name, _)| format!("{name:?}")).collect();
        (!having.is_empty())
            .then(|| format!("is for kind = {}, and here kind = {chosen:?}", having.join(" or ")))
    });
    let ((skeleton, description), rate) = (skeleton?, rate?);
    let mut links = Vec::with_capacity(2 * skeleton.joints.len());
    for Joint { ends: [from, to], is_access, km } in &skeleton.joints {
        let [from, to] = [from, to].map(|end| skeleton.nodes[*end].as_str());
        let of_length = km.map(|km| Duration::from_nanos((km * NANOS_PER_KM).round() as u64));
        let delay = if *is_access {
            host_delay.or(delay).or(Some(Duration::ZERO))
        } else {
            delay.or(of_length).or(default_delay)
        };
        let Some(delay) = delay else {
            let why = format!(
                "the file has no length of the edge from {from:?} to {to:?}: set delay, or default-delay for \
                 the links without a length"
            );
            reader.refuse("file", &why);
            return None;
        };
        let rate = if *is_access { host_rate.unwrap_or(rate) } else { rate };
        let up = if *is_access { &host_queue } else { &switch_queue };
        links.push(GraphLinkSpec::new(from, to, rate, delay, up));
        links.push(GraphLinkSpec::new(to, from, rate, delay, &switch_queue));
    }
    let nodes = skeleton.nodes.into_iter().map(|name| NodeSpec { name }).collect();
    Some(GraphSpec {
        nodes,
        links,
        generated: Some(Generated { description, from_file: kind == Kind::File }),
    })
}

/// Reads the keys of a kind, and returns its graph with a description.
fn skeleton(reader: &TableReader<'_>, kind: Kind) -> Option<(Skeleton, String)> {
    match kind {
        Kind::Dumbbell => {
            let pairs = reader.required("pairs", &kind::integer(1, MOST_HOSTS as i64 / 2))?;
            Some((generate::dumbbell(pairs), format!("a dumbbell with {pairs} pairs of hosts")))
        }
        Kind::ParkingLot => {
            let hops = reader.required("hops", &kind::integer(1, 1000))?;
            Some((generate::parking_lot(hops), format!("a parking lot of {hops} hops")))
        }
        Kind::FatTree => {
            let even = kind::integer(2, 40).only("which is even", |k| k % 2 == 0);
            let k = reader.required("k", &even)?;
            Some((generate::fat_tree(k), format!("a fat-tree with k = {k}")))
        }
        Kind::LeafSpine => leaf_spine(reader),
        Kind::File => file(reader),
    }
}

fn leaf_spine(reader: &TableReader<'_>) -> Option<(Skeleton, String)> {
    let leaves = reader.required("leaves", &kind::integer(2, 4096));
    let spines = reader.required("spines", &kind::integer(1, 4096));
    let hosts = reader.required("hosts", &kind::integer(1, 4096));
    let (leaves, spines, hosts) = (leaves?, spines?, hosts?);
    if leaves * hosts > MOST_HOSTS as u64 {
        let all = leaves * hosts;
        reader.refuse(
            "hosts",
            &format!(
                "{leaves} leaves with {hosts} hosts each are {all} hosts; allowed are up to {MOST_HOSTS}"
            ),
        );
        return None;
    }
    if leaves * (spines + hosts) > MOST_JOINTS as u64 {
        let all = leaves * (spines + hosts);
        reader.refuse(
            "spines",
            &format!("the network would have {all} links; allowed are up to {MOST_JOINTS}"),
        );
        return None;
    }
    Some((
        generate::leaf_spine(leaves, spines, hosts),
        format!("{leaves} leaves and {spines} spines, with {hosts} hosts at each leaf"),
    ))
}

fn file(reader: &TableReader<'_>) -> Option<(Skeleton, String)> {
    let hosts = reader.or("hosts", &kind::integer(0, MOST_HOSTS as i64), 1);
    if !reader.has("file") {
        reader.lacks("file", "a file in GraphML or in node-link JSON");
        return None;
    }
    let mut skeleton = text_file::optional(reader, "file", generate::parse_graph)?;
    let nodes = skeleton.nodes.len();
    if nodes as u64 * hosts > MOST_HOSTS as u64 {
        let all = nodes as u64 * hosts;
        reader.refuse(
            "hosts",
            &format!("{nodes} nodes with {hosts} hosts each are {all} hosts; allowed are up to {MOST_HOSTS}"),
        );
        return None;
    }
    skeleton.add_hosts_everywhere(hosts);
    if let Some(name) = skeleton.repeated_name() {
        reader.refuse(
            "hosts",
            &format!(
                "a host would have the name {name:?}, which a node of the file has: rename the node, or set hosts = 0"
            ),
        );
        return None;
    }
    let name = reader.node("file").and_then(|node| node.as_text()).unwrap_or_default();
    Some((skeleton, format!("the graph in {name}")))
}
