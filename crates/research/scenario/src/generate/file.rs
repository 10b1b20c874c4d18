//! Graphs from files: `GraphML`, and the node-link JSON of `NetworkX`, which `TopoHub` uses.
//!
//! Of a file count the names of its nodes, its edges, and their lengths: the attribute `dist` of an edge, km, or else the distance of
//! its ends on the globe, if these have positions (`pos`, or `Longitude` and `Latitude`). The attribute `LinkSpeedRaw` of an edge, which
//! files of the Internet Topology Zoo have, is its rate, bit/s. Parallel edges are one link with the sum of their rates. JSON may have
//! demands (`graph.demands`), as the networks of `SNDlib` have them in `TopoHub`.

use super::{Joint, MOST_JOINTS, MOST_NODES, Skeleton};
use roxmltree::{Document, ParsingOptions};
use serde::Deserialize;
use serde_json::Value;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The mean radius of the Earth, km (IUGG).
const EARTH_KM: f64 = 6371.0;
/// Words for the name of a node, the best one first.
const NAMES: [&str; 2] = ["name", "label"];
/// The attribute of an edge with its rate, bit/s.
const SPEED: &str = "LinkSpeedRaw";
/// The place of demands in node-link JSON.
const DEMANDS: &str = "graph.demands";
/// The largest demand.
const MOST_DEMAND: f64 = 1e15;

/// A node of a file.
struct FileNode {
    id: String,
    name: Option<String>,
    /// Longitude and latitude, degrees.
    position: Option<[f64; 2]>,
}

/// An edge of a file, between two nodes by their identifiers.
struct FileEdge {
    ends: [String; 2],
    km: Option<f64>,
    bps: Option<f64>,
}

/// The contents of a file.
struct FileGraph {
    nodes: Vec<FileNode>,
    edges: Vec<FileEdge>,
    /// Values by sink in tables by source; null if there are none.
    demands: Value,
}

/// Reads a graph; XML if the text begins with `<`, else JSON.
///
/// # Errors
/// A message that names the fault of the text, with its place if that is known.
pub fn parse(text: &str) -> Result<Skeleton, String> {
    let graph = if text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        graphml(text)
    } else {
        json(text)
    }?;
    skeleton(&graph)
}

fn skeleton(FileGraph { nodes, edges, demands }: &FileGraph) -> Result<Skeleton, String> {
    if nodes.len() < 2 || nodes.len() > MOST_NODES {
        return Err(format!("it has {} nodes; allowed are 2 to {MOST_NODES}", nodes.len()));
    }
    if edges.len() > MOST_JOINTS {
        return Err(format!("it has {} edges; allowed are up to {MOST_JOINTS}", edges.len()));
    }
    let mut graph = Skeleton { nodes: names(nodes), ..Skeleton::default() };
    let mut indices = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if indices.insert(&node.id, index).is_some() {
            return Err(format!("two nodes have the id {:?}", node.id));
        }
    }
    let mut joined = BTreeMap::new();
    for (number, edge) in (1..).zip(edges) {
        let find = |end: &String| {
            indices
                .get(end)
                .copied()
                .ok_or_else(|| format!("edge {number}: there is no node with the id {end:?}"))
        };
        let [from, to] = [find(&edge.ends[0])?, find(&edge.ends[1])?];
        if from == to {
            return Err(format!("edge {number} joins the node {:?} with itself", edge.ends[0]));
        }
        let on_globe = || Some(globe_km(nodes[from].position?, nodes[to].position?));
        let km = edge.km.or_else(on_globe);
        if let Some(km) = km.filter(|km| !(0.0..=1e6).contains(km)) {
            return Err(format!("edge {number}: a length of {km} km; allowed are 0 to 1000000 km"));
        }
        match joined.entry([from.min(to), from.max(to)]) {
            Entry::Vacant(first) => {
                first.insert(graph.joints.len());
                graph.joints.push(Joint { ends: [from, to], is_access: false, km, bps: edge.bps });
            }
            Entry::Occupied(first) => {
                let joint = &mut graph.joints[*first.get()];
                joint.bps = [joint.bps, edge.bps].into_iter().flatten().reduce(|sum, bps| sum + bps);
            }
        }
    }
    graph.demands = (!demands.is_null()).then(|| read_demands(demands, &indices));
    match graph.disconnected() {
        Some([one, other]) => Err(format!("no path leads from the node {one:?} to {other:?}")),
        None => Ok(graph),
    }
}

/// Reads demands: tables of values by sink, in a table by source. Sources and sinks are identifiers of nodes. Demands of zero are left
/// out.
fn read_demands(
    demands: &Value,
    indices: &BTreeMap<&String, usize>,
) -> Result<BTreeMap<[usize; 2], f64>, String> {
    let find = |id: &String| {
        let unknown = || format!("{DEMANDS}: there is no node with the id {id:?}");
        indices.get(id).copied().ok_or_else(unknown)
    };
    let mut found = BTreeMap::new();
    let sources = demands.as_object().ok_or_else(|| format!("{DEMANDS} is no table of sources"))?;
    for (source, sinks) in sources {
        let from = find(source)?;
        let sinks = sinks.as_object().ok_or_else(|| format!("{DEMANDS}.{source} is no table of sinks"))?;
        for (sink, value) in sinks {
            let to = find(sink)?;
            let weight = value.as_f64().filter(|weight| (0.0..=MOST_DEMAND).contains(weight));
            let weight = weight
                .ok_or_else(|| format!("{DEMANDS}.{source}.{sink} is no number from 0 to {MOST_DEMAND:e}"))?;
            if weight > 0.0 && from == to {
                return Err(format!("{DEMANDS}.{source}.{sink} leads from a node to itself"));
            }
            if weight > 0.0 {
                found.insert([from, to], weight);
            }
        }
    }
    if found.is_empty() { Err(format!("{DEMANDS} has no value above 0")) } else { Ok(found) }
}

/// Returns the names of nodes in the network: their names in the file with `-` in the place of other characters than letters, digits, `_`
/// and `.`; those that several nodes have, and empty ones, are followed by the identifier.
fn names(nodes: &[FileNode]) -> Vec<String> {
    let plain = |text: &str| {
        let keep = |c: char| if c.is_alphanumeric() || c == '_' || c == '.' { c } else { '-' };
        text.trim().chars().map(keep).collect::<String>()
    };
    let wanted: Vec<String> =
        nodes.iter().map(|node| plain(node.name.as_deref().unwrap_or(&node.id))).collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &wanted {
        *uses.entry(name).or_default() += 1;
    }
    let mut taken: BTreeSet<String> =
        wanted.iter().filter(|name| uses[name.as_str()] == 1 && !name.is_empty()).cloned().collect();
    let mut unique = |(index, name): (usize, &String)| {
        if uses[name.as_str()] == 1 && !name.is_empty() {
            return name.clone();
        }
        let with_id = format!("{name}-{}", plain(&nodes[index].id));
        let mut candidates = [with_id.clone()].into_iter().chain((2..).map(|n| format!("{with_id}-{n}")));
        candidates.find(|name| taken.insert(name.clone())).expect("numbers do not end")
    };
    wanted.iter().enumerate().map(&mut unique).collect()
}

/// Returns a longitude and a latitude as a position; `None` if they are no degrees, as in a drawing.
fn globe_position([longitude, latitude]: [f64; 2]) -> Option<[f64; 2]> {
    let on_globe = longitude.abs() <= 360.0 && latitude.abs() <= 90.0;
    on_globe.then_some([longitude, latitude])
}

/// Returns the distance between two positions along a great circle (haversine formula), km.
fn globe_km([lon, lat]: [f64; 2], [other_lon, other_lat]: [f64; 2]) -> f64 {
    let half_square = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
    let chord = half_square(lat, other_lat)
        + lat.to_radians().cos() * other_lat.to_radians().cos() * half_square(lon, other_lon);
    2.0 * EARTH_KM * chord.clamp(0.0, 1.0).sqrt().asin()
}

/// The document of a graph in node-link form.
#[derive(Deserialize)]
struct NodeLink {
    #[serde(default)]
    directed: bool,
    /// Attributes of the graph.
    #[serde(default)]
    graph: Value,
    nodes: Vec<BTreeMap<String, Value>>,
    /// `NetworkX` wrote `links` before version 3.4, and writes `edges` since.
    #[serde(alias = "links")]
    edges: Vec<BTreeMap<String, Value>>,
}

fn json(text: &str) -> Result<FileGraph, String> {
    let graph: NodeLink = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("it is neither GraphML nor a graph in node-link JSON: {error}"))?;
    if graph.directed {
        return Err("it is a directed graph; only undirected graphs are allowed".to_owned());
    }
    let word = |value: Option<&Value>| match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let node = |(number, node): (usize, &BTreeMap<String, Value>)| {
        let position = node.get("pos").and_then(|pos| {
            let two = pos.as_array().filter(|two| two.len() == 2)?;
            globe_position([two[0].as_f64()?, two[1].as_f64()?])
        });
        Ok(FileNode {
            id: word(node.get("id")).ok_or_else(|| format!("node {number} has no id, a text or a number"))?,
            name: NAMES.iter().find_map(|key| word(node.get(*key))),
            position,
        })
    };
    let edge = |(number, edge): (usize, &BTreeMap<String, Value>)| {
        let end = |key| {
            word(edge.get(key)).ok_or_else(|| format!("edge {number} has no {key}, a text or a number"))
        };
        let number = |key| edge.get(key).and_then(Value::as_f64);
        Ok(FileEdge { ends: [end("source")?, end("target")?], km: number("dist"), bps: number(SPEED) })
    };
    let nodes = (1..).zip(&graph.nodes).map(node).collect::<Result<_, String>>()?;
    let edges = (1..).zip(&graph.edges).map(edge).collect::<Result<_, String>>()?;
    Ok(FileGraph { nodes, edges, demands: graph.graph.get("demands").cloned().unwrap_or_default() })
}

fn graphml(text: &str) -> Result<FileGraph, String> {
    // An element, its text and the line break behind it.
    let nodes_limit = u32::try_from((MOST_NODES + MOST_JOINTS) * 100).unwrap_or(u32::MAX);
    let options = ParsingOptions { nodes_limit, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text.trim_start_matches('\u{feff}'), options)
        .map_err(|error| format!("it is not XML: {error}"))?;
    let root = document.root_element();
    if !root.has_tag_name("graphml") && root.tag_name().name() != "graphml" {
        return Err(format!("it is not GraphML: its element is <{}>", root.tag_name().name()));
    }
    let named = |name: &'static str| move |node: &roxmltree::Node<'_, '_>| node.tag_name().name() == name;
    let graph = root.children().find(named("graph")).ok_or("it has no <graph>")?;
    if graph.attribute("edgedefault") == Some("directed") {
        return Err("it is a directed graph; only undirected graphs are allowed".to_owned());
    }
    let keys: BTreeMap<&str, &str> = root
        .children()
        .filter(named("key"))
        .filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect();
    let place = |node: roxmltree::Node<'_, '_>| {
        let at = document.text_pos_at(node.range().start);
        format!("line {}", at.row)
    };
    let data = |node: roxmltree::Node<'_, '_>| -> BTreeMap<String, String> {
        let all = node.children().filter(named("data")).filter_map(|data| {
            let key = data.attribute("key")?;
            let name = keys.get(key).copied().unwrap_or(key);
            Some((name.to_owned(), data.text().unwrap_or_default().to_owned()))
        });
        all.collect()
    };
    let number = |data: &BTreeMap<String, String>, key: &str| data.get(key)?.trim().parse::<f64>().ok();
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for element in graph.children().filter(roxmltree::Node::is_element) {
        let needs = |key: &str| {
            element.attribute(key).map(str::to_owned).ok_or_else(|| {
                format!("{}: the <{}> has no {key}", place(element), element.tag_name().name())
            })
        };
        match element.tag_name().name() {
            "node" => {
                let data = data(element);
                let degrees = number(&data, "Longitude").zip(number(&data, "Latitude"));
                nodes.push(FileNode {
                    id: needs("id")?,
                    name: NAMES.iter().find_map(|key| data.get(*key).cloned()),
                    position: degrees.and_then(|(longitude, latitude)| globe_position([longitude, latitude])),
                });
            }
            "edge" => {
                if matches!(element.attribute("directed"), Some("true" | "1")) {
                    return Err(format!(
                        "{}: the <edge> is directed; only undirected graphs are allowed",
                        place(element)
                    ));
                }
                let data = data(element);
                let (km, bps) = (number(&data, "dist"), number(&data, SPEED));
                edges.push(FileEdge { ends: [needs("source")?, needs("target")?], km, bps });
            }
            _ => (),
        }
    }
    Ok(FileGraph { nodes, edges, demands: Value::Null })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{ "directed": false, "multigraph": false, "graph": { "name": "three" },
        "nodes": [{ "id": 0, "name": "New York", "pos": [-74.0, 40.7] }, { "id": 1, "pos": [2.3, 48.9] }, { "id": "c" }],
        "links": [{ "source": 0, "target": 1, "LinkSpeedRaw": 1e10 }, { "source": 1, "target": "c", "dist": 78.7, "LinkSpeedRaw": 2e9 },
            { "source": "c", "target": 1, "LinkSpeedRaw": 500000000 }] }"#;

    const GRAPHML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
        <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
          <key attr.name="label" attr.type="string" for="node" id="d0"/>
          <key attr.name="Latitude" attr.type="double" for="node" id="d1"/>
          <key attr.name="Longitude" attr.type="double" for="node" id="d2"/>
          <key attr.name="dist" attr.type="double" for="edge" id="d3"/>
          <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4"/>
          <graph edgedefault="undirected">
            <node id="0"><data key="d0">New York</data><data key="d1">40.7</data><data key="d2">-74.0</data></node>
            <node id="1"><data key="d1">48.9</data><data key="d2">2.3</data></node>
            <node id="c"/>
            <edge source="0" target="1"><data key="d4">10000000000.0</data></edge>
            <edge source="1" target="c"><data key="d3">78.7</data><data key="d4">2500000000.0</data></edge>
          </graph>
        </graphml>"#;

    #[test]
    fn both_formats_give_the_same_graph() {
        let graph = parse(JSON).unwrap();
        assert_eq!(graph.nodes, ["New-York", "1", "c"]);
        assert_eq!(graph.joints.len(), 2, "parallel edges are one link");
        assert_eq!(graph.joints[1].km, Some(78.7));
        let rates: Vec<Option<f64>> = graph.joints.iter().map(|joint| joint.bps).collect();
        assert_eq!(rates, [Some(1e10), Some(2.5e9)], "the rates of parallel edges are added");
        // New York to Paris.
        let km = graph.joints[0].km.unwrap();
        assert!((5800.0..5880.0).contains(&km), "{km}");
        assert_eq!(parse(GRAPHML).unwrap(), graph);
        assert_eq!(parse(&JSON.replace("\"links\"", "\"edges\"")).unwrap(), graph);
    }

    #[test]
    fn positions_of_a_drawing_give_no_length() {
        let drawn = JSON.replace("[2.3, 48.9]", "[2.3, 489.0]");
        assert_eq!(
            parse(&drawn).unwrap().joints.iter().map(|joint| joint.km).collect::<Vec<_>>(),
            [None, Some(78.7)]
        );
        let drawn = GRAPHML.replace("48.9", "489.0");
        assert_eq!(
            parse(&drawn).unwrap().joints.iter().map(|joint| joint.km).collect::<Vec<_>>(),
            [None, Some(78.7)]
        );
    }

    /// Returns the demands of the graph with this text in the place of them.
    fn demands(text: &str) -> Option<Result<BTreeMap<[usize; 2], f64>, String>> {
        let name = "\"name\": \"three\"";
        parse(&JSON.replace(name, &format!("{name}, \"demands\": {text}"))).unwrap().demands
    }

    #[test]
    fn demands_are_read_by_identifier() {
        let read = demands(r#"{ "c": { "0": 2.5, "1": 0 }, "0": { "1": 3, "0": 0 }, "1": {} }"#);
        assert_eq!(read, Some(Ok(BTreeMap::from([([0, 1], 3.0), ([2, 0], 2.5)]))));
        assert_eq!(parse(JSON).unwrap().demands, None);
        assert_eq!(parse(GRAPHML).unwrap().demands, None);
    }

    #[test]
    fn faults_of_demands_are_kept_for_their_use() {
        for (text, why) in [
            ("[]", "graph.demands is no table of sources"),
            (r#"{ "0": 3 }"#, "graph.demands.0 is no table of sinks"),
            (r#"{ "7": { "0": 1 } }"#, "graph.demands: there is no node with the id \"7\""),
            (r#"{ "0": { "d": 1 } }"#, "graph.demands: there is no node with the id \"d\""),
            (r#"{ "0": { "1": -1 } }"#, "graph.demands.0.1 is no number from 0 to 1e15"),
            (r#"{ "0": { "1": "1" } }"#, "graph.demands.0.1 is no number from 0 to 1e15"),
            (r#"{ "0": { "0": 1 } }"#, "graph.demands.0.0 leads from a node to itself"),
            (r#"{ "0": { "1": 0 } }"#, "graph.demands has no value above 0"),
        ] {
            assert_eq!(demands(text), Some(Err(why.to_owned())));
        }
    }

    #[test]
    fn equal_names_get_the_identifier() {
        let text = r#"{ "nodes": [{ "id": 0, "name": "a" }, { "id": 1, "name": "a" }, { "id": 2, "name": "a-0" }],
            "edges": [{ "source": 0, "target": 1 }, { "source": 1, "target": 2 }] }"#;
        assert_eq!(parse(text).unwrap().nodes, ["a-0-2", "a-1", "a-0"]);
    }

    #[test]
    fn errors_of_a_graph_are_reported() {
        let edges = |edges: &str| {
            format!(r#"{{ "nodes": [{{ "id": 0 }}, {{ "id": 1 }}, {{ "id": 2 }}], "edges": [{edges}] }}"#)
        };
        for (text, why) in [
            (String::new(), "neither GraphML nor"),
            ("<gml/>".to_owned(), "its element is <gml>"),
            ("<graphml>".to_owned(), "it is not XML"),
            ("<graphml/>".to_owned(), "no <graph>"),
            ("<graphml><graph edgedefault='directed'/></graphml>".to_owned(), "directed"),
            ("<graphml><graph>\n<node/></graph></graphml>".to_owned(), "line 2: the <node> has no id"),
            (
                "<graphml><graph>\n<edge source='a' target='b' directed='true'/></graph></graphml>"
                    .to_owned(),
                "line 2: the <edge> is directed",
            ),
            (JSON.replace("\"directed\": false", "\"directed\": true"), "directed"),
            (r#"{ "nodes": [], "edges": [] }"#.to_owned(), "it has 0 nodes; allowed are 2 to 4096"),
            (r#"{ "nodes": [{ "id": 0 }, {}], "edges": [] }"#.to_owned(), "node 2 has no id"),
            (
                r#"{ "nodes": [{ "id": 0 }, { "id": 0 }], "edges": [] }"#.to_owned(),
                "two nodes have the id \"0\"",
            ),
            (edges(r#"{ "source": 0, "target": 7 }"#), "edge 1: there is no node with the id \"7\""),
            (edges(r#"{ "source": 0 }"#), "edge 1 has no target"),
            (edges(r#"{ "source": 0, "target": [1] }"#), "edge 1 has no target, a text or a number"),
            (edges(r#"{ "source": 0, "target": 0 }"#), "edge 1 joins the node \"0\" with itself"),
            (edges(r#"{ "source": 0, "target": 1, "dist": -3 }"#), "edge 1: a length of -3 km"),
            (edges(r#"{ "source": 0, "target": 1 }"#), "no path leads from the node \"0\" to \"2\""),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(why), "{error} against {why}");
        }
    }
}
