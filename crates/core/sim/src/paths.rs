//! All shortest paths of a network, and the choice of one of them for each flow (equal-cost multi-path, RFC 2992).
//!
//! A path is shortest if it has the fewest links. At each node, the links that lead to a neighbour that is nearer to the destination have
//! equal cost. A router chooses one of them by a hash of the flow's addresses and ports, so all packets of a flow take the same path. Here
//! a flow draws its links from a random stream of its own, which is a hash without the correlations of real ones: each of n links is
//! chosen with probability 1/n, independently of the other nodes and flows.
//!
//! Worked number: two hosts in different pods of a fat-tree with k = 4 have 2 aggregation switches to choose from, and 2 core switches
//! behind each of them, so 4 paths of 6 links (Al-Fares et al. 2008, section 2.2).

use crate::id::{LinkId, NodeId};
use crate::network::{Network, NetworkError};
use cutline_units::RandomStream;
use std::collections::{BTreeMap, VecDeque};

/// The distance of a node that does not reach the destination.
const UNREACHED: u16 = u16::MAX;

/// The shortest paths between the nodes of a network.
///
/// The distances to a destination are computed when they are first needed, and kept. Destinations with a single link to them share
/// those of its other end. With `d` distinct ends and `n` nodes this takes `2 d n` bytes, and time `d (n + links)`.
pub struct EqualCostPaths<'n> {
    network: &'n Network,
    /// The links that leave each node, in the order of adding.
    outgoing: Vec<Vec<LinkId>>,
    /// The links that lead to each node, in the order of adding.
    incoming: Vec<Vec<LinkId>>,
    /// For each destination, the number of links from every node to it.
    distances: BTreeMap<NodeId, Vec<u16>>,
}

/// Number and length of the shortest paths between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCount {
    /// The number of shortest paths; at most `u64::MAX`.
    pub paths: u64,
    /// The links of each of them.
    pub links: u16,
}

impl<'n> EqualCostPaths<'n> {
    /// Prepares the paths of a network.
    ///
    /// # Panics
    /// When the network has `u16::MAX` or more links in a row. Generated networks and files have at most some thousand nodes in a row.
    pub fn new(network: &'n Network) -> Self {
        let nodes = network.node_count();
        let (mut outgoing, mut incoming) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for id in network.link_ids() {
            let link = network.link(id);
            outgoing[link.from.0 as usize].push(id);
            incoming[link.to.0 as usize].push(id);
        }
        Self { network, outgoing, incoming, distances: BTreeMap::new() }
    }

    /// Draws one of the shortest paths from a node to another, with one draw at every node that has a choice.
    ///
    /// # Errors
    /// When no path exists.
    pub fn draw(
        &mut self,
        from: NodeId,
        to: NodeId,
        random: &mut RandomStream,
    ) -> Result<Vec<LinkId>, NetworkError> {
        let (anchor, last) = self.anchor(from, to);
        let network = self.network;
        let no_route = || NetworkError::NoRoute {
            from: network.node_name(from).into(),
            to: network.node_name(to).into(),
        };
        let distances = distances(network, &self.incoming, &mut self.distances, anchor);
        let length = distances[from.0 as usize];
        if length == UNREACHED {
            return Err(no_route());
        }
        let mut route = Vec::with_capacity(usize::from(length) + 1);
        let mut node = from;
        while node != anchor {
            let nearer = |link: &&LinkId| {
                distances[network.link(**link).to.0 as usize] == distances[node.0 as usize] - 1
            };
            let equal = self.outgoing[node.0 as usize].iter().filter(nearer);
            let choices = equal.clone().count();
            let chosen = if choices == 1 { 0 } else { (random.uniform() * choices as f64) as usize };
            let link = *equal.clone().nth(chosen).expect("a node that reaches the end has a link towards it");
            route.push(link);
            node = network.link(link).to;
        }
        route.extend(last);
        Ok(route)
    }

    /// Counts the shortest paths from every node to a destination, in the order of the nodes; `None` for the destination and for nodes
    /// that do not reach it.
    pub fn counts_to(&mut self, to: NodeId) -> Vec<Option<PathCount>> {
        let network = self.network;
        let (anchor, last) = match self.incoming[to.0 as usize][..] {
            [link] => (network.link(link).from, 1),
            _ => (to, 0),
        };
        let distances = distances(network, &self.incoming, &mut self.distances, anchor);
        let mut near_first: Vec<usize> =
            (0..distances.len()).filter(|node| distances[*node] != UNREACHED).collect();
        near_first.sort_by_key(|node| distances[*node]);
        let mut counts: Vec<Option<PathCount>> = vec![None; distances.len()];
        for node in near_first {
            let paths = if node == anchor.0 as usize {
                1
            } else {
                let ends = self.outgoing[node].iter().map(|link| network.link(*link).to.0 as usize);
                let nearer = ends.filter(|end| distances[*end] == distances[node] - 1);
                nearer
                    .filter_map(|end| counts[end])
                    .fold(0, |sum: u64, count| sum.saturating_add(count.paths))
            };
            counts[node] = Some(PathCount { paths, links: distances[node] + last });
        }
        counts[to.0 as usize] = None;
        counts
    }

    /// Returns the node whose distances lead to a destination, and the link from there to the destination if these are two nodes.
    fn anchor(&self, from: NodeId, to: NodeId) -> (NodeId, Option<LinkId>) {
        match self.incoming[to.0 as usize][..] {
            [link] if from != to => (self.network.link(link).from, Some(link)),
            _ => (to, None),
        }
    }
}

/// Returns the number of links from every node to a destination.
fn distances<'d>(
    network: &Network,
    incoming: &[Vec<LinkId>],
    known: &'d mut BTreeMap<NodeId, Vec<u16>>,
    to: NodeId,
) -> &'d [u16] {
    known.entry(to).or_insert_with(|| {
        let mut distances = vec![UNREACHED; incoming.len()];
        distances[to.0 as usize] = 0;
        let mut border = VecDeque::from([to]);
        while let Some(node) = border.pop_front() {
            let further = distances[node.0 as usize] + 1;
            assert!(further < UNREACHED, "a path has fewer than 65535 links");
            for link in &incoming[node.0 as usize] {
                let from = network.link(*link).from;
                if distances[from.0 as usize] == UNREACHED {
                    distances[from.0 as usize] = further;
                    border.push_back(from);
                }
            }
        }
        distances
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::LinkSpec;
    use cutline_aqm::{Limit, QueueSpec};
    use cutline_units::{Duration, Rate, Streams};
    use proptest::prelude::*;

    fn network(nodes: usize, links: &[(usize, usize)]) -> Network {
        let mut network = Network::new();
        let nodes: Vec<NodeId> = (0..nodes).map(|node| network.add_node(format!("n{node}"))).collect();
        let rate = Rate::from_mbps(1);
        for (from, to) in links.iter().filter(|(from, to)| from != to) {
            let queue = QueueSpec::drop_tail(Limit::Packets(10), rate);
            network.add_link(LinkSpec::new(nodes[*from], nodes[*to], rate, Duration::ZERO, queue));
        }
        network
    }

    fn stream(name: &str) -> RandomStream {
        Streams::new(1).stream(name, "path")
    }

    /// a - b, c - d - e: two paths from a to d.
    const DIAMOND: [(usize, usize); 5] = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)];

    #[test]
    fn paths_of_equal_cost_are_drawn_equally_often() {
        let network = network(5, &DIAMOND);
        let mut paths = EqualCostPaths::new(&network);
        let count = |paths, links| Some(PathCount { paths, links });
        assert_eq!(paths.counts_to(NodeId(4)), [count(2, 3), count(1, 2), count(1, 2), count(1, 1), None]);
        assert_eq!(paths.counts_to(NodeId(3)), [count(2, 2), count(1, 1), count(1, 1), None, None]);
        assert!(paths.counts_to(NodeId(0)).iter().all(Option::is_none));
        let over_the_first = (0..1000).filter(|flow| {
            let route = paths.draw(NodeId(0), NodeId(4), &mut stream(&format!("flow.{flow}"))).unwrap();
            route == [LinkId(0), LinkId(2), LinkId(4)]
        });
        let count = over_the_first.count();
        assert!((430..570).contains(&count), "{count} of 1000");
    }

    #[test]
    fn a_flow_keeps_its_path_and_a_missing_one_is_an_error() {
        let network = network(5, &DIAMOND);
        let draw = || EqualCostPaths::new(&network).draw(NodeId(0), NodeId(4), &mut stream("flow")).unwrap();
        assert_eq!(draw(), draw());
        let none = EqualCostPaths::new(&network).draw(NodeId(4), NodeId(1), &mut stream("flow"));
        assert_eq!(none.unwrap_err().to_string(), "no links lead from node `n4` to node `n1`");
    }

    proptest! {
        /// Against the search for one shortest route.
        #[test]
        fn drawn_paths_are_as_short_as_the_shortest(
            links in prop::collection::vec((0usize..9, 0usize..9), 1..40),
            from in 0u32..9,
            to in 0u32..9,
        ) {
            prop_assume!(from != to);
            let network = network(9, &links);
            let mut paths = EqualCostPaths::new(&network);
            let (from, to) = (NodeId(from), NodeId(to));
            let shortest = network.route(from, to);
            match paths.draw(from, to, &mut stream("flow")) {
                Err(error) => prop_assert_eq!(error, shortest.unwrap_err()),
                Ok(route) => {
                    prop_assert_eq!(route.len(), shortest.unwrap().len());
                    prop_assert_eq!(paths.counts_to(to)[from.0 as usize].unwrap().links as usize, route.len());
                    prop_assert_eq!(network.link(route[0]).from, from);
                    prop_assert_eq!(network.link(route[route.len() - 1]).to, to);
                    prop_assert!(route.windows(2).all(|two| network.link(two[0]).to == network.link(two[1]).from));
                }
            }
        }
    }
}
