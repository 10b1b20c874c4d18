//! A scenario file as a tree in which every key and value remembers where it was written.
//!
//! The tree can be changed (`--set`, a sweep) before it is read: a value that was put in keeps the place it came
//! from, so a message about it points at the sweep's list or the command line, not at the line it replaced.

use crate::nearest::suggestion;
use crate::problem::{Problem, Source};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where something was written: a range of bytes in one of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub source: usize,
    pub bytes: Range<usize>,
}

/// A value of the file. Floats stay text, so that nothing is rounded before its kind is known.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(String),
    Flag(bool),
    Other(String),
    List(Vec<Node>),
    Table(Table),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub place: Place,
}

/// A key's place and what it is set to.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Place,
    pub node: Node,
}

/// A table, in the order of its keys' names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(pub BTreeMap<String, Entry>);

/// A whole file with its sources: the file itself first, then one per override.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub sources: Arc<Vec<Source>>,
    pub root: Table,
}

/// The lists of tables whose members a path may choose by name.
const NAMED_LISTS: [&str; 3] = ["flow", "node", "link"];

impl Node {
    pub fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key).map(|entry| &entry.node)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// What a path calls this member of a named list: its name, or for a link its two ends.
    pub fn member_name(&self) -> Option<String> {
        let ends = || Some(format!("{}-{}", self.text("from")?, self.text("to")?));
        self.text("name").map(str::to_owned).or_else(ends)
    }
}

impl Document {
    /// The tree of a file's text, or everything that keeps it from being TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, Vec<Problem>> {
        let sources = Arc::new(vec![Source::file(name, text)]);
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let root = convert_table(table.into_inner(), 0);
            return Ok(Self { sources, root });
        }
        let place = |error: &toml::de::Error| Place { source: 0, bytes: error.span().unwrap_or(0..0) };
        let not_toml = |error: &toml::de::Error| {
            Problem::new(
                &sources,
                Some(&place(error)),
                None,
                format!("this is not TOML: {}", error.message()),
            )
        };
        Err(errors.iter().map(not_toml).collect())
    }

    /// Takes one more source in and parses it as a single value; what is no TOML value is a text without quotes.
    pub fn parse_value(&mut self, source: Source) -> Node {
        let index = self.sources.len();
        let text = source.text.clone();
        Arc::make_mut(&mut self.sources).push(source);
        if let Ok(value) = DeValue::parse(&text) {
            return convert(value, index);
        }
        let place = Place { source: index, bytes: 0..text.len() };
        Node { value: Value::Text(text.trim().to_owned()), place }
    }

    /// Puts a value where a path such as `flow.audio.hint` or `dumbbell.queue.limit` points, making the tables on the
    /// way. `true` leaves a table that is there as it is, so that a sweep can switch it off (`false`) and on (`true`).
    pub fn set(&mut self, path: &str, key: &Place, node: Node) -> Result<(), String> {
        let names: Vec<&str> = path.split('.').collect();
        if names.iter().any(|name| name.is_empty()) {
            return Err("a path is names joined by dots, such as flow.audio.hint".to_owned());
        }
        set_in_table(&mut self.root, &names, &[], key, node)
    }

    /// The place of the longest part of `path` that exists.
    pub fn locate(&self, path: &str) -> Option<Place> {
        let mut found = None;
        let mut table = &self.root;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let Some(entry) = table.0.get(name.split('[').next()?) else { break };
            found = Some(entry.node.place.clone());
            let member = match &entry.node.value {
                Value::Table(_) => Some(&entry.node),
                Value::List(list) => choose(list, name, &mut names),
                _ => None,
            };
            let Some(member) = member else { break };
            found = Some(member.place.clone());
            let Some(next) = member.as_table() else { break };
            table = next;
        }
        found
    }

    /// The text at a place, as it was written.
    pub fn written(&self, place: &Place) -> &str {
        self.sources[place.source].text.get(place.bytes.clone()).unwrap_or_default()
    }

    /// The file's content in one fixed form: keys sorted, comments and the keys in `without` left out. Two files with
    /// the same canonical text describe the same simulation.
    pub fn canonical(&self, without: &[&str]) -> String {
        let mut text = String::new();
        for (key, entry) in self.root.0.iter().filter(|(key, _)| !without.contains(&key.as_str())) {
            let _ = writeln!(text, "{key} = {}", write_value(&entry.node.value));
        }
        text
    }
}

/// The member of a list that `flow[2]` or the name behind `flow.` chooses.
fn choose<'n, 'p>(
    list: &'n [Node],
    name: &str,
    rest: &mut std::iter::Peekable<impl Iterator<Item = &'p str>>,
) -> Option<&'n Node> {
    if let Some((_, index)) = name.split_once('[') {
        let index: usize = index.trim_end_matches(']').parse().ok()?;
        return list.get(index.checked_sub(1)?);
    }
    let wanted = rest.next()?;
    list.iter().find(|node| node.as_table().and_then(Table::member_name).as_deref() == Some(wanted))
}

fn set_in_table(
    table: &mut Table,
    names: &[&str],
    before: &[&str],
    key: &Place,
    node: Node,
) -> Result<(), String> {
    let (name, rest) = (names[0], &names[1..]);
    if rest.is_empty() {
        put(table, name, key, node);
        return Ok(());
    }
    let so_far = [before, &[name]].concat();
    let made = || Entry {
        key: key.clone(),
        node: Node { value: Value::Table(Table::default()), place: key.clone() },
    };
    if before.is_empty() && NAMED_LISTS.contains(&name) && !table.0.contains_key(name) {
        return Err(format!("the scenario has no [[{name}]]"));
    }
    let entry = table.0.entry(name.to_owned()).or_insert_with(made);
    match &mut entry.node.value {
        Value::Table(next) => set_in_table(next, rest, &so_far, key, node),
        Value::List(list) if before.is_empty() => set_in_list(list, name, rest, key, node),
        // A table that was switched on with its defaults is a table from now on.
        value @ Value::Flag(true) => {
            *value = Value::Table(Table::default());
            set_in_table(table, names, before, key, node)
        }
        value => Err(format!("{} is {}, which has no keys", so_far.join("."), write_value(value))),
    }
}

fn set_in_list(list: &mut [Node], kind: &str, names: &[&str], key: &Place, node: Node) -> Result<(), String> {
    let member = names[0];
    let known: Vec<String> =
        list.iter().filter_map(|node| node.as_table().and_then(Table::member_name)).collect();
    let at = known.iter().position(|name| name == member);
    let chosen = list.iter_mut().filter(|node| node.as_table().and_then(Table::member_name).is_some());
    match (at.and_then(|at| chosen.into_iter().nth(at)).map(|node| &mut node.value), names.len()) {
        (Some(_), 1) => {
            Err(format!("it names a whole {kind}: name one of its keys, such as {kind}.{member}.KEY"))
        }
        (Some(Value::Table(table)), _) => set_in_table(table, &names[1..], &[kind, member], key, node),
        _ => {
            let hint = suggestion(member, known.iter().map(String::as_str));
            Err(format!("there is no {kind} {member:?}{hint}"))
        }
    }
}

fn put(table: &mut Table, name: &str, key: &Place, node: Node) {
    let is_table = table.get(name).is_some_and(|old| old.as_table().is_some());
    if is_table && matches!(node.value, Value::Flag(true)) {
        return;
    }
    table.0.insert(name.to_owned(), Entry { key: key.clone(), node });
}

/// A value in its one canonical spelling, on one line.
pub(crate) fn write_value(value: &Value) -> String {
    match value {
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Float(text) | Value::Other(text) => text.clone(),
        Value::Flag(flag) => flag.to_string(),
        Value::List(list) => {
            let parts: Vec<String> = list.iter().map(|node| write_value(&node.value)).collect();
            format!("[{}]", parts.join(", "))
        }
        Value::Table(table) => {
            let pair =
                |(key, entry): (&String, &Entry)| format!("{key} = {}", write_value(&entry.node.value));
            let parts: Vec<String> = table.0.iter().map(pair).collect();
            format!("{{ {} }}", parts.join(", "))
        }
    }
}

fn convert(value: Spanned<DeValue<'_>>, source: usize) -> Node {
    let place = Place { source, bytes: value.span() };
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Other(number.as_str().to_owned()),
        },
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(list) => Value::List(list.into_iter().map(|node| convert(node, source)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(table, source)),
    };
    Node { value, place }
}

fn convert_table(table: DeTable<'_>, source: usize) -> Table {
    let entry = |(key, node): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let place = Place { source, bytes: key.span() };
        let name: std::borrow::Cow<'_, str> = key.into_inner();
        (name.into_owned(), Entry { key: place, node: convert(node, source) })
    };
    Table(table.into_iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(text, "x.toml").expect("the test's own text is TOML")
    }

    fn set(document: &mut Document, path: &str, value: &str) -> Result<(), String> {
        let node = document.parse_value(Source::file("set", value));
        let place = node.place.clone();
        document.set(path, &place, node)
    }

    #[test]
    fn a_path_reaches_named_members_and_makes_tables() {
        let mut doc = document("[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\n[[link]]\nfrom='x'\nto='y'\n");
        set(&mut doc, "flow.b.hint", "6").unwrap();
        set(&mut doc, "link.x-y.queue.tsq.l", "40 ms").unwrap();
        let text = doc.canonical(&[]);
        assert_eq!(
            text,
            "flow = [{ name = \"a\" }, { hint = 6, name = \"b\" }]\n\
             link = [{ from = \"x\", queue = { tsq = { l = \"40 ms\" } }, to = \"y\" }]\n"
        );
    }

    #[test]
    fn a_table_can_be_switched_off_and_on() {
        let mut doc = document("[queue]\ntsq = { bits = 4 }\n");
        set(&mut doc, "queue.tsq", "true").unwrap();
        assert_eq!(doc.canonical(&[]), "queue = { tsq = { bits = 4 } }\n");
        set(&mut doc, "queue.tsq", "false").unwrap();
        assert_eq!(doc.canonical(&[]), "queue = { tsq = false }\n");
    }

    #[test]
    fn a_path_that_leads_nowhere_says_so() {
        let mut doc = document("name = 'n'\n[[flow]]\nname = 'audio'\n");
        let mut why = |path| set(&mut doc, path, "1").unwrap_err();
        assert_eq!(why("flow.audoi.hint"), "there is no flow \"audoi\", did you mean \"audio\"?");
        assert_eq!(why("flow.audio"), "it names a whole flow: name one of its keys, such as flow.audio.KEY");
        assert_eq!(why("name.x"), "name is \"n\", which has no keys");
        assert_eq!(why("link.a.rate"), "the scenario has no [[link]]");
        assert_eq!(why("a..b"), "a path is names joined by dots, such as flow.audio.hint");
    }

    #[test]
    fn canonical_text_forgets_order_and_comments() {
        let one = document("b = 2 # two\na = [1, 0x10]\n");
        let two = document("a = [1, 16]\n\nb = 2\n");
        assert_eq!(one.canonical(&[]), two.canonical(&[]));
        assert_eq!(one.canonical(&["a"]), "b = 2\n");
    }

    #[test]
    fn a_place_is_found_by_path_or_index() {
        let doc = document("[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\nhint = 7\n");
        let text = |path: &str| doc.written(&doc.locate(path).unwrap()).to_owned();
        assert_eq!(text("flow.b.hint"), "7");
        assert_eq!(text("flow[2].hint"), "7");
        assert_eq!(text("flow.b.app.rate"), "[[flow]]");
        assert!(doc.locate("dumbbell").is_none());
    }
}
