//! Sweeps: all combinations of the values of some keys. Each combination is a separate scenario.
//!
//! `[sweep]` maps paths to lists (`"flow.audio.hint" = [1, 2, 3]` or `{ from = 1, to = 16 }`). The first path in the file
//! varies slowest. Paths in one `[[sweep.together]]` vary together: their lists have the same length, and each point takes
//! the n-th value of every list. A path that the command line sets is removed from the sweep. Points that then have the
//! same values are merged.

use crate::spec::Scenario;
use cutline_config::{Document, Errors, Node, Problem, Span, Table, Value};
use cutline_results::PointRow;
use std::collections::BTreeSet;

/// The key of the sweep's table.
pub(crate) const SWEEP_KEYS: &str = "sweep";

/// The key of the list of tables whose paths vary together.
const TOGETHER: &str = "together";

/// The label of the only point of a scenario without a sweep.
pub const BASE: &str = "base";

/// Keys that have the same value at all points of a sweep.
const SHARED: [&str; 6] = ["name", "title", "description", "seed", "seeds", SWEEP_KEYS];

/// The largest number of points in a sweep. More are probably a mistake.
const MOST_POINTS: usize = 100_000;

const LIST: &str = "a list such as [1, 2, 3], or { from = 1, to = 16, step = 1 }";

/// One combination of a sweep's values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// The paths that vary and their values at this point, in the order of the file; empty without a sweep.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
}

impl SweepPoint {
    /// Returns the name of the point: `flow.audio.hint=6,dumbbell.queue.tsq=true`, or `base` without a sweep.
    pub fn label(&self) -> String {
        label(&self.settings)
    }

    /// Returns the rows of the table of points: one for each key that varies.
    pub fn rows(&self) -> Vec<PointRow> {
        PointRow::from_settings(&self.label(), &self.settings)
    }
}

pub(crate) fn label(settings: &[(String, String)]) -> String {
    if settings.is_empty() {
        return BASE.to_owned();
    }
    settings.iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>().join(",")
}

/// One path of a sweep and its values.
struct Axis<'a> {
    path: String,
    key: &'a Span,
    values: Vec<Node>,
}

/// Axes that vary together: at least one axis, all with the same number of values.
type Bundle<'a> = Vec<Axis<'a>>;

/// One combination of values: the settings, and the document with these settings.
pub(crate) struct Combination {
    pub document: Document,
    pub settings: Vec<(String, String)>,
}

/// Returns all combinations of a document's sweep, in order; the document itself if it has no sweep. Paths for which
/// `is_set` returns true do not vary. A combination is made when its turn comes, and has no sweep: together they would
/// take memory that grows with the square of their number.
pub(crate) fn combinations(
    document: &Document,
    is_set: impl Fn(&str) -> bool,
) -> Result<impl ExactSizeIterator<Item = Result<Combination, Errors>>, Errors> {
    let (bundles, points) = varying(document, is_set)?;
    let base = document.without(SWEEP_KEYS);
    Ok((0..points).map(move |index| combination(&base, &bundles, index)))
}

/// Returns the number of combinations of a document's sweep; 1 if it has no sweep.
pub(crate) fn points(document: &Document, is_set: impl Fn(&str) -> bool) -> Result<usize, Errors> {
    varying(document, is_set).map(|(_, points)| points)
}

/// Returns the bundles of a document's sweep, and the number of their combinations.
fn varying(document: &Document, is_set: impl Fn(&str) -> bool) -> Result<(Vec<Bundle<'_>>, usize), Errors> {
    let mut reader = SweepReader { document, problems: Vec::new(), taken: BTreeSet::new() };
    let mut bundles = reader.bundles();
    if !reader.problems.is_empty() {
        return Err(Errors::new(reader.problems));
    }
    for bundle in &mut bundles {
        leave_out(bundle, &is_set);
    }
    bundles.retain(|bundle| !bundle.is_empty());
    let points = bundles.iter().map(|bundle| bundle[0].values.len()).try_fold(1usize, usize::checked_mul);
    if let Some(points) = points.filter(|points| *points <= MOST_POINTS) {
        return Ok((bundles, points));
    }
    let text = format!(": there are more than {MOST_POINTS} points");
    Err(reader.problem(SWEEP_KEYS, None, text).into())
}

/// Removes the overridden paths from a bundle, and then the duplicate rows.
fn leave_out(bundle: &mut Bundle<'_>, is_set: impl Fn(&str) -> bool) {
    let all = bundle.len();
    bundle.retain(|axis| !is_set(&axis.path));
    let Some(first) = bundle.first().filter(|_| bundle.len() < all) else { return };
    let mut seen = BTreeSet::new();
    let row = |i: usize| bundle.iter().map(|axis| shown(&axis.values[i])).collect::<Vec<_>>();
    let is_new: Vec<bool> = (0..first.values.len()).map(|i| seen.insert(row(i))).collect();
    for axis in bundle {
        let mut is_new = is_new.iter();
        axis.values.retain(|_| is_new.next() == Some(&true));
    }
}

/// Returns the combination with number `index`. The number is written in the mixed radix of the bundles' lengths; the first
/// bundle has the most significant digit.
fn combination(base: &Document, bundles: &[Bundle<'_>], mut index: usize) -> Result<Combination, Errors> {
    let mut chosen = vec![0; bundles.len()];
    for (digit, bundle) in chosen.iter_mut().zip(bundles).rev() {
        *digit = index % bundle[0].values.len();
        index /= bundle[0].values.len();
    }
    let mut point = Combination { document: base.clone(), settings: Vec::new() };
    let mut problems = Vec::new();
    let set = bundles.iter().zip(chosen);
    let mut set: Vec<(&Axis<'_>, &Node)> =
        set.flat_map(|(bundle, i)| bundle.iter().map(move |axis| (axis, &axis.values[i]))).collect();
    point.settings.extend(set.iter().map(|(axis, node)| (axis.path.clone(), shown(node))));
    // An AQM removes parameters that it does not have, so its own parameters come after it.
    set.sort_by_key(|(axis, _)| axis.path.rsplit('.').next() != Some("aqm"));
    for (axis, node) in set {
        let node = node.clone();
        if let Err(why) = point.document.set(&axis.path, axis.key, node) {
            let key = format!("{SWEEP_KEYS}.{}", axis.path);
            problems.push(base.problem(Some(axis.key), Some(&key), format!(": {why}")));
        }
    }
    if problems.is_empty() { Ok(point) } else { Err(Errors::new(problems)) }
}

/// Formats a value for a label. Text has no quotes.
fn shown(node: &Node) -> String {
    node.as_text().map_or_else(|| node.value.canonical(), str::to_owned)
}

struct SweepReader<'a> {
    document: &'a Document,
    problems: Vec<Problem>,
    taken: BTreeSet<String>,
}

impl<'a> SweepReader<'a> {
    fn bundles(&mut self) -> Vec<Bundle<'a>> {
        let Some(node) = self.document.root().get(SWEEP_KEYS) else { return Vec::new() };
        let Value::Table(table) = &node.value else {
            self.wrong(SWEEP_KEYS, node, "a table: write [sweep]");
            return Vec::new();
        };
        let mut bundles: Vec<Bundle<'a>> = Vec::new();
        for (name, entry) in &table.0 {
            if name == TOGETHER {
                bundles.extend(self.together(&entry.node));
            } else {
                bundles.extend(self.axes(name, &entry.key, &entry.node).into_iter().map(|axis| vec![axis]));
            }
        }
        bundles.sort_by_key(|bundle| bundle[0].key.bytes.start);
        bundles
    }

    fn together(&mut self, node: &'a Node) -> Vec<Bundle<'a>> {
        let key = format!("{SWEEP_KEYS}.{TOGETHER}");
        let Value::List(list) = &node.value else {
            self.wrong(&key, node, "a list of tables: write [[sweep.together]]");
            return Vec::new();
        };
        let bundles: Vec<Bundle<'a>> = list.iter().map(|member| self.bundle(&key, member)).collect();
        bundles.into_iter().filter(|bundle| !bundle.is_empty()).collect()
    }

    fn bundle(&mut self, key: &str, member: &'a Node) -> Bundle<'a> {
        let Value::Table(table) = &member.value else {
            self.wrong(key, member, "a table: write [[sweep.together]]");
            return Vec::new();
        };
        let mut bundle = self.flatten("", table);
        bundle.sort_by_key(|axis| axis.key.bytes.start);
        let Some(first) = bundle.first() else { return bundle };
        let (length, of) = (first.values.len(), first.path.clone());
        for axis in bundle.iter().filter(|axis| axis.values.len() != length) {
            let text = format!(
                ": it has {} values and {of} has {length}, but they vary together",
                axis.values.len()
            );
            let problem = self.problem(&format!("{key}.{}", axis.path), Some(axis.key), text);
            self.problems.push(problem);
        }
        bundle
    }

    fn flatten(&mut self, before: &str, table: &'a Table) -> Vec<Axis<'a>> {
        let path = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") };
        table.0.iter().flat_map(|(name, entry)| self.axes(&path(name), &entry.key, &entry.node)).collect()
    }

    /// Returns the axis of a path. Dotted keys without quotes are nested tables; their axes are returned instead.
    fn axes(&mut self, path: &str, key: &'a Span, node: &'a Node) -> Vec<Axis<'a>> {
        match &node.value {
            Value::Table(table) if !is_range(table) => self.flatten(path, table),
            _ => self.axis(path, key, node).into_iter().collect(),
        }
    }

    fn axis(&mut self, path: &str, key: &'a Span, node: &'a Node) -> Option<Axis<'a>> {
        let name = format!("{SWEEP_KEYS}.{path}");
        if SHARED.contains(&path.split('.').next()?) {
            let problem =
                self.problem(&name, Some(key), format!(": {path} is the same at all points of a sweep"));
            self.problems.push(problem);
            return None;
        }
        if !self.taken.insert(path.to_owned()) {
            let problem = self.problem(&name, Some(key), format!(": {path} is swept twice"));
            self.problems.push(problem);
            return None;
        }
        match values(node) {
            Some(values) if !values.is_empty() => Some(Axis { path: path.to_owned(), key, values }),
            Some(_) => {
                let problem =
                    self.problem(&name, Some(&node.span), ": there are no values to sweep over".to_owned());
                self.problems.push(problem);
                None
            }
            None => {
                self.wrong(&name, node, LIST);
                None
            }
        }
    }

    fn wrong(&mut self, key: &str, node: &Node, expected: &str) {
        let text = format!(": value {} is not allowed: expected {expected}", node.value.canonical());
        let problem = self.problem(key, Some(&node.span), text);
        self.problems.push(problem);
    }

    fn problem(&self, key: &str, span: Option<&Span>, text: String) -> Problem {
        self.document.problem(span, Some(key), text)
    }
}

/// Returns whether a table is a range, `{ from = 1, to = 16 }`, and not the result of dotted keys.
fn is_range(table: &Table) -> bool {
    let scalar =
        |key| table.get(key).is_some_and(|node| !matches!(node.value, Value::List(_) | Value::Table(_)));
    scalar("from") && scalar("to")
}

/// Returns the values of a list or a range; `None` for other nodes.
fn values(node: &Node) -> Option<Vec<Node>> {
    match &node.value {
        Value::List(list) => Some(list.clone()),
        Value::Table(table) => range(table, &node.span),
        _ => None,
    }
}

fn range(table: &Table, span: &Span) -> Option<Vec<Node>> {
    let integer = |key| match table.get(key)?.value {
        Value::Integer(number) => Some(number),
        _ => None,
    };
    let step = if table.get("step").is_some() { integer("step")? } else { 1 };
    let (from, to) = (integer("from")?, integer("to")?);
    let known = table.0.keys().all(|key| ["from", "to", "step"].contains(&key.as_str()));
    if step < 1 || !known || (to.checked_sub(from)?) / step >= MOST_POINTS as i64 {
        return None;
    }
    let node = |number| Node { value: Value::Integer(number), span: span.clone() };
    Some((from..=to).step_by(step as usize).map(node).collect())
}
