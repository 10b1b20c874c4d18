//! Reads `[topology]`: a graph that is generated from a few numbers, or that a file describes.

use super::text_file;
use crate::generate::{self, Joint, MOST_HOSTS, MOST_JOINTS, Skeleton};
use crate::spec::{Demands, Generated, GraphLinkSpec, GraphSpec, NodeSpec};
use cutline_config::{TableReader, ValueKind, kind};
use cutline_tables::queue::{self, Named};
use cutline_units::{Duration, Rate};
use std::sync::Arc;

/// The key of the table.
pub(super) const KEY: &str = "topology";

/// Time that light takes for a kilometre of fibre, at 200,000 km/s.
const NANOS_PER_KM: f64 = 5000.0;

/// The largest rate of a link in a file, bit/s.
const MOST_BPS: f64 = 1e15;

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
    ("file", &["file", "hosts", "default-rate", "default-delay"]),
];

/// A quantity of the links between switches, or between the nodes of a file.
struct Setting<T> {
    /// Value of all links; `None` if the file states them.
    all: Option<T>,
    /// Value of links of which the file states none.
    default: Option<T>,
}

pub(super) fn read(reader: &TableReader<'_>, named: &Named) -> Option<GraphSpec> {
    let Some(kind) = reader.required("kind", &kind::one_of("a kind of topology", &KINDS)) else {
        // The kind determines which other keys are allowed.
        reader.report_missing();
        return None;
    };
    let skeleton = skeleton(reader, kind);
    let rate = setting(reader, kind, ["rate", "default-rate"], &kind::rate());
    let delay = setting(reader, kind, ["delay", "default-delay"], &kind::duration());
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
    let ((mut skeleton, description), rate, delay) = (skeleton?, rate?, delay?);
    let mut links = Vec::with_capacity(2 * skeleton.joints.len());
    for joint in &skeleton.joints {
        let Joint { ends, is_access, .. } = joint;
        let [from, to] = ends.map(|end| skeleton.nodes[end].as_str());
        let (rate, delay) = if *is_access {
            let Some(rate) = host_rate.or(rate.all).or(rate.default) else {
                let why = "the file has no rates of the links of hosts: set host-rate, or hosts = 0";
                reader.refuse("host-rate", why);
                return None;
            };
            (rate, host_delay.or(delay.all).unwrap_or(Duration::ZERO))
        } else {
            let found = rate.of_link(joint).and_then(|rate| Ok((rate, delay.of_link(joint)?)));
            let refuse =
                |why: String| reader.refuse("file", &format!("the edge from {from:?} to {to:?} has {why}"));
            found.map_err(refuse).ok()?
        };
        let up = if *is_access { &host_queue } else { &switch_queue };
        links.push(GraphLinkSpec::new(from, to, rate, delay, up));
        links.push(GraphLinkSpec::new(to, from, rate, delay, &switch_queue));
    }
    let read = skeleton.demands.take();
    let with_hosts = |weights| Arc::new(Demands { hosts: skeleton.hosts_at_nodes(), weights });
    let demands = read.map(|read| read.map(with_hosts));
    let nodes = skeleton.nodes.into_iter().map(|name| NodeSpec { name }).collect();
    Some(GraphSpec {
        nodes,
        links,
        generated: Some(Generated { description, from_file: kind == Kind::File, demands }),
    })
}

/// Reads a quantity of the links; `None` if it is wrong, which is reported. `keys` are those of all links and of the default.
fn setting<T: 'static>(
    reader: &TableReader<'_>,
    kind: Kind,
    keys: [&str; 2],
    values: &ValueKind<T>,
) -> Option<Setting<T>> {
    let [key, default_key] = keys;
    if kind != Kind::File {
        let all = reader.required(key, values)?;
        return Some(Setting { all: Some(all), default: None });
    }
    let [all, default] = keys.map(|key| reader.optional(key, values));
    if reader.has(key) && reader.has(default_key) {
        reader.refuse(default_key, &format!("{key} sets the {key} of all links, too: use one of them"));
        return None;
    }
    let is_read = reader.has(key) == all.is_some() && reader.has(default_key) == default.is_some();
    is_read.then_some(Setting { all, default })
}

impl Setting<Rate> {
    /// Returns the rate of a link between nodes, or the rest of the sentence "the edge has ...".
    fn of_link(&self, joint: &Joint) -> Result<Rate, String> {
        match (self.all, joint.bps) {
            (Some(all), _) => Ok(all),
            (None, Some(bps)) if (1.0..=MOST_BPS).contains(&bps) => Ok(Rate::from_bps(bps.round() as u64)),
            (None, Some(bps)) => {
                Err(format!("a LinkSpeedRaw of {bps} bit/s; allowed are 1 to {MOST_BPS:e}: set rate"))
            }
            (None, None) => self.default.ok_or_else(|| {
                "no rate (LinkSpeedRaw) in the file: set rate, or default-rate for the links without one"
                    .to_owned()
            }),
        }
    }
}

impl Setting<Duration> {
    /// Returns the delay of a link between nodes, or the rest of the sentence "the edge has ...".
    fn of_link(&self, joint: &Joint) -> Result<Duration, String> {
        let of_length = joint.km.map(|km| Duration::from_nanos((km * NANOS_PER_KM).round() as u64));
        self.all.or(of_length).or(self.default).ok_or_else(|| {
            "no length in the file: set delay, or default-delay for the links without one".to_owned()
        })
    }
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
