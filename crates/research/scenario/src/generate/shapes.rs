//! Graphs of regular shapes.

use super::Skeleton;

/// Returns a dumbbell, `s1..sN - r1 = r2 - d1..dN`.
pub fn dumbbell(pairs: u64) -> Skeleton {
    let mut graph = Skeleton::default();
    let (left, right) = (graph.add("r1".to_owned()), graph.add("r2".to_owned()));
    graph.join(left, right);
    for number in 1..=pairs {
        graph.add_host(format!("s{number}"), left);
        graph.add_host(format!("d{number}"), right);
    }
    graph
}

/// Returns a parking lot: routers `r0..rN` in a row. Hosts `s0` and `d0` are at its ends, `s1` and `d1` at those of the first hop, and so
/// on, so that flows from `s0` to `d0` meet others at every hop (Floyd 1991).
pub fn parking_lot(hops: u64) -> Skeleton {
    let mut graph = Skeleton::default();
    let routers: Vec<usize> = (0..=hops).map(|number| graph.add(format!("r{number}"))).collect();
    for two in routers.windows(2) {
        graph.join(two[0], two[1]);
    }
    graph.add_host("s0".to_owned(), routers[0]);
    graph.add_host("d0".to_owned(), routers[routers.len() - 1]);
    for (number, two) in (1..).zip(routers.windows(2)) {
        graph.add_host(format!("s{number}"), two[0]);
        graph.add_host(format!("d{number}"), two[1]);
    }
    graph
}

/// Returns the fat-tree of switches with k ports each (Al-Fares et al. 2008, section 2.2): k pods of k/2 edge and k/2 aggregation
/// switches, (k/2)^2 core switches, and k/2 hosts at each edge switch. The i-th aggregation switch of each pod is joined to the i-th
/// group of k/2 core switches. `k` is even.
///
/// Worked number: k = 4 has 16 hosts, 20 switches and 48 links.
pub fn fat_tree(k: u64) -> Skeleton {
    let half = k / 2;
    let mut graph = Skeleton::default();
    let cores: Vec<usize> = (1..=half * half).map(|number| graph.add(format!("core{number}"))).collect();
    let mut host = 0;
    for pod in 1..=k {
        let aggregation: Vec<usize> =
            (1..=half).map(|number| graph.add(format!("agg{pod}-{number}"))).collect();
        for (switch, group) in aggregation.iter().zip(cores.chunks(half as usize)) {
            for core in group {
                graph.join(*switch, *core);
            }
        }
        for number in 1..=half {
            let edge = graph.add(format!("edge{pod}-{number}"));
            for switch in &aggregation {
                graph.join(edge, *switch);
            }
            for _ in 0..half {
                host += 1;
                graph.add_host(format!("h{host}"), edge);
            }
        }
    }
    graph
}

/// Returns leaves and spines: every leaf is joined to every spine, and has a number of hosts.
pub fn leaf_spine(leaves: u64, spines: u64, hosts: u64) -> Skeleton {
    let mut graph = Skeleton::default();
    let spines: Vec<usize> = (1..=spines).map(|number| graph.add(format!("spine{number}"))).collect();
    let mut host = 0;
    for number in 1..=leaves {
        let leaf = graph.add(format!("leaf{number}"));
        for spine in &spines {
            graph.join(leaf, *spine);
        }
        for _ in 0..hosts {
            host += 1;
            graph.add_host(format!("h{host}"), leaf);
        }
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Returns the number of nodes with each number of neighbours.
    fn degrees(graph: &Skeleton) -> BTreeMap<usize, usize> {
        let mut neighbours = vec![0; graph.nodes.len()];
        graph.joints.iter().flat_map(|joint| joint.ends).for_each(|end| neighbours[end] += 1);
        let mut degrees = BTreeMap::new();
        for degree in neighbours {
            *degrees.entry(degree).or_default() += 1;
        }
        degrees
    }

    fn names_differ(graph: &Skeleton) -> bool {
        graph.nodes.iter().collect::<std::collections::BTreeSet<_>>().len() == graph.nodes.len()
    }

    #[test]
    fn a_fat_tree_has_the_sizes_of_the_paper() {
        for k in [2, 4, 6, 8, 16] {
            let graph = fat_tree(k);
            let (hosts, switches) = (k * k * k / 4, 5 * k * k / 4);
            // Every switch uses all of its ports.
            assert_eq!(
                degrees(&graph),
                BTreeMap::from([(1, hosts as usize), (k as usize, switches as usize)])
            );
            assert_eq!(graph.joints.len() as u64, 3 * hosts);
            assert!(names_differ(&graph) && graph.disconnected().is_none());
        }
    }

    #[test]
    fn leaves_and_spines_are_all_joined() {
        let graph = leaf_spine(3, 4, 5);
        assert_eq!(degrees(&graph), BTreeMap::from([(1, 15), (3, 4), (9, 3)]));
        assert!(names_differ(&graph) && graph.disconnected().is_none());
    }

    #[test]
    fn a_parking_lot_has_a_source_and_a_sink_for_every_hop() {
        let graph = parking_lot(3);
        assert_eq!(graph.nodes, ["r0", "r1", "r2", "r3", "s0", "d0", "s1", "d1", "s2", "d2", "s3", "d3"]);
        let at = |host: &str| {
            let [_, at] = graph
                .joints
                .iter()
                .map(|joint| joint.ends)
                .find(|[end, _]| graph.nodes[*end] == host)
                .unwrap();
            &*graph.nodes[at]
        };
        assert_eq!(["s0", "d0", "s1", "d1", "s3", "d3"].map(at), ["r0", "r3", "r0", "r1", "r2", "r3"]);
        assert_eq!(degrees(&dumbbell(4)), BTreeMap::from([(1, 8), (5, 2)]));
    }

    #[test]
    fn a_node_apart_is_found() {
        let mut graph = dumbbell(1);
        graph.add("island".to_owned());
        assert_eq!(graph.disconnected(), Some(["r1", "island"]));
    }
}
