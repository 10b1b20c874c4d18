//! Reads a graph of `[[node]]` and `[[link]]` tables, and computes which nodes can reach each other.

use super::rate_trace::{self, Course};
use super::{aal5, impairment};
use crate::spec::{GraphLinkSpec, GraphSpec, NodeSpec, RateChange};
use cutline_config::{TableReader, ValueKind, kind};
use cutline_tables::queue::{self, Named, QueueConfig};
use cutline_units::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn read(root: &TableReader<'_>, named: &Named, duration: Option<Duration>) -> Option<GraphSpec> {
    let nodes = nodes(root);
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let mut joined = BTreeSet::new();
    let read = |table| link(&table, &names, named, duration, &mut joined);
    // All links are read before the first failure returns, so that every problem is reported.
    let links: Vec<Option<Vec<GraphLinkSpec>>> = root.tables("link").into_iter().map(read).collect();
    if !root.has("node") {
        root.lacks("node", "at least two [[node]] with a name each");
        return None;
    }
    if !root.has("link") {
        root.lacks("link", "at least one [[link]] from a node to a node");
        return None;
    }
    let links: Vec<Vec<GraphLinkSpec>> = links.into_iter().collect::<Option<_>>()?;
    Some(GraphSpec { nodes, links: links.into_iter().flatten().collect(), generated: None })
}

fn nodes(root: &TableReader<'_>) -> Vec<NodeSpec> {
    let mut taken = BTreeSet::new();
    let mut nodes = Vec::new();
    for table in root.tables("node") {
        let name = table.required("name", &kind::name());
        if let Some(name) = name.clone().filter(|name| !taken.insert(name.clone())) {
            table.refuse("name", &format!("another node is called {name:?}"));
        }
        table.finish();
        nodes.extend(name.map(|name| NodeSpec { name }));
    }
    nodes
}

/// The ordered pairs of nodes that already have a link.
type Joined = BTreeSet<(String, String)>;

/// Reads a link: one `GraphLinkSpec` for each direction.
fn link(
    reader: &TableReader<'_>,
    nodes: &[String],
    named: &Named,
    duration: Option<Duration>,
    joined: &mut Joined,
) -> Option<Vec<GraphLinkSpec>> {
    // Paths such as `link.backbone.rate` select the link by this name.
    reader.optional("name", &kind::name());
    let from = reader.required("from", &node_name(nodes));
    let to = reader.required("to", &node_name(nodes));
    let rate = reader.required("rate", &kind::rate());
    let delay = reader.required("delay", &kind::duration());
    let both_ways = reader.or("both-ways", &kind::flag(), true);
    let queue = queue::optional(reader, "queue", named).unwrap_or_else(queue::default_queue);
    let reverse_queue = queue::optional(reader, "reverse-queue", named);
    let Course { rate_changes, deliveries } = course(reader, duration);
    let impairment = impairment::read(reader, "impairment", delay);
    let reverse_impairment = impairment::read(reader, "reverse-impairment", delay);
    let aal5 = aal5::read(reader, deliveries.is_some());
    for (key, impairment) in [("impairment", &impairment), ("reverse-impairment", &reverse_impairment)] {
        impairment::check_unit(reader, key, impairment.as_ref(), reader.has(aal5::KEY));
    }
    for key in ["reverse-queue", "reverse-impairment"] {
        if reader.has(key) && !both_ways {
            reader.refuse(key, "the link goes one way only (both-ways = false)");
        }
    }
    reader.finish();
    let (from, to, rate, delay) = (from?, to?, rate?, delay?);
    join(reader, (&from, &to), both_ways, joined)?;
    let forward = GraphLinkSpec {
        rate_changes,
        deliveries,
        impairment,
        aal5: aal5.clone(),
        ..GraphLinkSpec::new(&from, &to, rate, delay, &queue)
    };
    let reverse_queue = reverse_queue.unwrap_or_else(|| Arc::new(QueueConfig::drop_tail(queue.limit)));
    let reverse = both_ways.then(|| GraphLinkSpec {
        impairment: reverse_impairment,
        aal5,
        ..GraphLinkSpec::new(&to, &from, rate, delay, &reverse_queue)
    });
    Some([Some(forward), reverse].into_iter().flatten().collect())
}

/// Records the nodes that a link joins. Routes are computed between nodes, so a parallel link is refused.
fn join(
    reader: &TableReader<'_>,
    (from, to): (&str, &str),
    both_ways: bool,
    joined: &mut Joined,
) -> Option<()> {
    if from == to {
        reader.refuse("to", "a link joins two different nodes");
        return None;
    }
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let forward = joined.insert(pair(from, to));
    let reverse = !both_ways || joined.insert(pair(to, from));
    if !(forward && reverse) {
        reader.refuse("to", &format!("another link already joins {from:?} and {to:?}"));
        return None;
    }
    Some(())
}

/// Returns the kind of a node's name: one of `nodes`, or any name if no node could be read.
pub(super) fn node_name(nodes: &[String]) -> ValueKind<String> {
    if nodes.is_empty() {
        return kind::name();
    }
    kind::choice("the name of a node", nodes.iter().map(|name| (name.clone(), name.clone())).collect())
}

/// Reads the course of a link's rate in a simulation of this length: changes one by one, or a record.
pub(super) fn course(reader: &TableReader<'_>, duration: Option<Duration>) -> Course {
    let mut changes: Vec<RateChange> = Vec::new();
    for table in reader.tables("rate-changes") {
        let at = table.required("at", &kind::positive_duration());
        let rate = table.required("rate", &kind::rate());
        let last = changes.last().map_or(Duration::ZERO, |change| change.at);
        if at.is_some_and(|at| at <= last) {
            table.refuse(
                "at",
                &format!("rate changes must be in order of time, and the previous one is at {last}"),
            );
        }
        table.finish();
        changes.extend(at.zip(rate).map(|(at, rate)| RateChange { at, rate }));
    }
    let traced = rate_trace::read(reader, duration);
    if reader.has(rate_trace::KEY) && reader.has("rate-changes") {
        reader.refuse(
            rate_trace::KEY,
            "it sets the link's rate all the time, and rate-changes do so, too: use one of them",
        );
    }
    traced.unwrap_or(Course { rate_changes: changes, deliveries: None })
}

impl GraphSpec {
    /// Returns whether a path of links leads from one node to another.
    pub fn reaches(&self, from: &str, to: &str) -> bool {
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        self.links.iter().for_each(|link| next.entry(&link.from).or_default().push(&link.to));
        let mut reached = BTreeSet::from([from]);
        let mut edge = vec![from];
        while let Some(node) = edge.pop() {
            edge.extend(next.get(node).into_iter().flatten().filter(|to| reached.insert(**to)));
        }
        reached.contains(to)
    }
}
