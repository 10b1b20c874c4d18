//! Generators of graphs: names of nodes and the links between them, before they have rates, delays and queues.
//!
//! ```text
//! shapes   dumbbell, parking lot, fat-tree, leaf and spine
//! file     graphs from files: GraphML and node-link JSON
//! ```

mod file;
mod shapes;

pub use file::parse as parse_graph;
pub use shapes::{dumbbell, fat_tree, leaf_spine, parking_lot};

use std::collections::{BTreeMap, BTreeSet};

/// The largest number of hosts of a generated graph.
pub const MOST_HOSTS: usize = 16_384;
/// The largest number of nodes of a file.
pub const MOST_NODES: usize = 4_096;
/// The largest number of links of a generated graph, each counted once for both directions.
pub const MOST_JOINTS: usize = 100_000;

/// A graph without rates, delays and queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Skeleton {
    /// Names of the nodes, all different.
    pub nodes: Vec<String>,
    /// Links, each of which joins two different nodes in both directions.
    pub joints: Vec<Joint>,
    /// Demands of a file by source and sink, relative to each other; `None` if no file states demands. Their faults are errors only
    /// where demands are used.
    pub demands: Option<Result<BTreeMap<[usize; 2], f64>, String>>,
}

/// A link of a skeleton.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint {
    /// The indices of its two nodes; the first one is the host of an access link.
    pub ends: [usize; 2],
    /// True if it joins a host to the network.
    pub is_access: bool,
    /// Its length, km, if a file states it.
    pub km: Option<f64>,
    /// Its rate, bit/s, if a file states it.
    pub bps: Option<f64>,
}

impl Skeleton {
    /// Adds a node and returns its index.
    fn add(&mut self, name: String) -> usize {
        self.nodes.push(name);
        self.nodes.len() - 1
    }

    /// Joins two nodes inside the network.
    fn join(&mut self, from: usize, to: usize) {
        self.joints.push(Joint { ends: [from, to], is_access: false, km: None, bps: None });
    }

    /// Adds a host at a node.
    fn add_host(&mut self, name: String, at: usize) {
        let host = self.add(name);
        self.joints.push(Joint { ends: [host, at], is_access: true, km: None, bps: None });
    }

    /// Adds a number of hosts at every node: `NODE-h1`, `NODE-h2`, ...
    pub fn add_hosts_everywhere(&mut self, count: u64) {
        for node in 0..self.nodes.len() {
            for number in 1..=count {
                self.add_host(format!("{}-h{number}", self.nodes[node]), node);
            }
        }
    }

    /// Returns the hosts at each node of a file, to whose graph hosts were added; the node itself if it has none.
    pub fn hosts_at_nodes(&self) -> Vec<Vec<String>> {
        let access = || self.joints.iter().filter(|joint| joint.is_access);
        let nodes = self.nodes.len() - access().count();
        let mut hosts = vec![Vec::new(); nodes];
        for Joint { ends: [host, at], .. } in access() {
            hosts[*at].push(self.nodes[*host].clone());
        }
        for (hosts, node) in hosts.iter_mut().zip(&self.nodes).filter(|(hosts, _)| hosts.is_empty()) {
            hosts.push(node.clone());
        }
        hosts
    }

    /// Returns a name that two nodes have; `None` if all names differ.
    pub fn repeated_name(&self) -> Option<&str> {
        let mut taken = BTreeSet::new();
        self.nodes.iter().map(String::as_str).find(|name| !taken.insert(*name))
    }

    /// Returns two nodes between which no path leads; `None` if there are none.
    pub fn disconnected(&self) -> Option<[&str; 2]> {
        let mut neighbours = vec![Vec::new(); self.nodes.len()];
        for Joint { ends: [from, to], .. } in &self.joints {
            neighbours[*from].push(*to);
            neighbours[*to].push(*from);
        }
        let mut reached = BTreeSet::from([0]);
        let mut border = vec![0];
        while let Some(node) = border.pop() {
            border.extend(neighbours.get(node)?.iter().filter(|next| reached.insert(**next)));
        }
        let lost = (0..self.nodes.len()).find(|node| !reached.contains(node))?;
        Some([&self.nodes[0], &self.nodes[lost]])
    }
}
