//! Any graph: `[[node]]`, `[[link]]`, and whether one node can reach another.

use super::queue::{self, Named};
use crate::kind;
use crate::reader::TableReader;
use crate::spec::{GraphSpec, LinkSpec, NodeSpec, RateChange};
use std::collections::BTreeSet;

pub(super) fn read(root: &TableReader<'_>, named: &Named) -> Option<GraphSpec> {
    let nodes = nodes(root);
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let links: Option<Vec<_>> =
        root.tables("link").into_iter().map(|table| link(table, &names, named)).collect();
    if !root.has("node") {
        root.lacks("node", "at least two [[node]] with a name each");
    } else if !root.has("link") {
        root.lacks("link", "at least one [[link]] from a node to a node");
    }
    let links: Vec<LinkSpec> = links?.into_iter().flatten().collect();
    refuse_parallel(root, &links);
    Some(GraphSpec { nodes, links })
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

/// One or both directions of a link.
fn link(reader: TableReader<'_>, nodes: &[String], named: &Named) -> Option<Vec<LinkSpec>> {
    // The name is what a path such as `link.backbone.rate` chooses it by.
    reader.optional("name", &kind::name());
    let from = reader.required("from", &node_name(nodes));
    let to = reader.required("to", &node_name(nodes));
    let rate = reader.required("rate", &kind::rate());
    let delay = reader.required("delay", &kind::duration());
    let both_ways = reader.or("both-ways", &kind::flag(), true);
    let queue = queue::optional(&reader, "queue", named).unwrap_or_else(queue::default_queue);
    let back = queue::optional(&reader, "reverse-queue", named);
    let rate_changes = rate_changes(&reader);
    if back.is_some() && !both_ways {
        reader.refuse("reverse-queue", "the link goes one way only (both-ways = false)");
    }
    if from.is_some() && from == to {
        reader.refuse("to", "a link joins two different nodes");
    }
    reader.finish();
    let (from, to, rate, delay) = (from?, to?, rate?, delay?);
    let forth = LinkSpec { rate_changes, ..LinkSpec::new(&from, &to, rate, delay, &queue) };
    let back =
        both_ways.then(|| LinkSpec::new(&to, &from, rate, delay, &back.unwrap_or_else(queue::default_queue)));
    Some([Some(forth), back].into_iter().flatten().collect())
}

/// The name of one of these nodes; any name when none could be read.
pub(super) fn node_name(nodes: &[String]) -> crate::reader::Kind<String> {
    if nodes.is_empty() {
        return kind::name();
    }
    kind::choice("the name of a [[node]]", nodes.iter().map(|name| (name.clone(), name.clone())).collect())
}

/// Routes are by node, so two links between the same nodes in the same direction have no meaning.
fn refuse_parallel(root: &TableReader<'_>, links: &[LinkSpec]) {
    let mut seen = BTreeSet::new();
    for link in links.iter().filter(|link| !seen.insert((&link.from, &link.to))) {
        let place = root.cx.document.locate("link");
        let text = format!(": there are two links from {:?} to {:?}", link.from, link.to);
        root.cx.report("link", place.as_ref(), text);
    }
}

pub(super) fn rate_changes(reader: &TableReader<'_>) -> Vec<RateChange> {
    let mut changes: Vec<RateChange> = Vec::new();
    for table in reader.tables("rate-changes") {
        let at = table.required("at", &kind::positive_duration());
        let rate = table.required("rate", &kind::rate());
        if let (Some(at), Some(last)) = (at, changes.last()) {
            if at <= last.at {
                table.refuse(
                    "at",
                    &format!("changes stand in order of time, and the one before is at {}", last.at),
                );
            }
        }
        table.finish();
        changes.extend(at.zip(rate).map(|(at, rate)| RateChange { at, rate }));
    }
    changes
}

impl GraphSpec {
    /// Whether packets can get from one node to another.
    pub fn reaches(&self, from: &str, to: &str) -> bool {
        let mut reached = BTreeSet::from([from]);
        let mut edge = vec![from];
        while let Some(node) = edge.pop() {
            let next = self.links.iter().filter(|link| link.from == node).map(|link| link.to.as_str());
            edge.extend(next.filter(|to| reached.insert(to)));
        }
        reached.contains(to)
    }
}
