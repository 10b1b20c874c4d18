//! Files beside a scenario: graphs, and distributions of sizes.
//!
//! - A graph that was read is connected, and its nodes have different names without blanks and commas.
//! - Its demands are between two of its nodes, above 0 and finite.
//! - A distribution has a mean in the range of sizes.
//! - An error is a sentence.

use cutline_scenario::parse_graph;
use cutline_scenario::spec::SizeTable;
use std::collections::BTreeSet;

pub fn graph(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match parse_graph(text) {
        Ok(graph) => {
            let names: BTreeSet<&String> = graph.nodes.iter().collect();
            assert_eq!(names.len(), graph.nodes.len());
            assert!(names.iter().all(|name| !name.contains([' ', ',', '\n'])), "{names:?}");
            assert_eq!(graph.disconnected(), None);
            assert!(graph.joints.iter().all(|joint| joint.ends[0] != joint.ends[1]));
            if let Some(Ok(demands)) = &graph.demands {
                let is_pair = |[from, to]: &[usize; 2]| from != to && (*from).max(*to) < graph.nodes.len();
                assert!(!demands.is_empty() && demands.keys().all(is_pair));
                assert!(demands.values().all(|weight| *weight > 0.0 && *weight <= 1e15));
            }
            true
        }
        Err(why) => {
            assert!(!why.is_empty());
            false
        }
    }
}

pub fn sizes(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match SizeTable::parse(text) {
        Ok(table) => {
            let mean = table.mean();
            assert!((0.0..=1e15).contains(&mean), "{mean}");
            true
        }
        Err(why) => {
            assert!(!why.is_empty());
            false
        }
    }
}
