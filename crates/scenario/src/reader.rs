//! Reads a table key by key, strictly: what is not asked for is unknown, and said so with the nearest right name.
//!
//! A [`TableReader`] hands out values of a [`Kind`] and remembers which keys were asked for; [`TableReader::finish`]
//! then reports the missing and the unknown ones. Problems are collected, so that one reading finds them all.

use crate::document::{Document, Node, Place, Table, Value};
use crate::nearest::nearest;
use crate::problem::Problem;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What a key may be set to: how it is described, and how a value becomes a `T`.
pub(crate) struct Kind<T> {
    /// `a rate such as "15 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)`
    pub expected: String,
    read: Reading<T>,
}

/// A value, or a reason to add to what is expected, which may be empty.
type Reading<T> = Box<dyn Fn(&Node) -> Result<T, String>>;

impl<T: 'static> Kind<T> {
    pub fn new(expected: impl Into<String>, read: impl Fn(&Node) -> Result<T, String> + 'static) -> Self {
        Self { expected: expected.into(), read: Box::new(read) }
    }

    /// Only values that `allowed` accepts, which `condition` describes.
    pub fn only(self, condition: &str, allowed: impl Fn(&T) -> bool + 'static) -> Self {
        let Self { expected, read } = self;
        let check = move |node: &Node| {
            read(node).and_then(|value| if allowed(&value) { Ok(value) } else { Err(String::new()) })
        };
        Self::new(format!("{expected}, {condition}"), check)
    }

    pub fn map<U: 'static>(self, change: impl Fn(T) -> U + 'static) -> Kind<U> {
        let Self { expected, read } = self;
        Kind::new(expected, move |node| read(node).map(&change))
    }

    /// This kind or another.
    pub fn or(self, other: Self) -> Self {
        let expected = format!("{} or {}", self.expected, other.expected);
        Self::new(expected, move |node| {
            (self.read)(node).or_else(|first| {
                (other.read)(node).map_err(|second| if second.is_empty() { first } else { second })
            })
        })
    }

    pub fn read(&self, node: &Node) -> Result<T, String> {
        (self.read)(node)
    }
}

/// What all readers of one document share.
pub(crate) struct Context<'a> {
    pub document: &'a Document,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Context<'a> {
    pub fn new(document: &'a Document) -> Self {
        Self { document, problems: RefCell::new(Vec::new()) }
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    /// Reports a problem with the key at `path`; `text` goes on after the key's name.
    pub fn report(&self, path: &str, place: Option<&Place>, text: String) {
        let problem = Problem::new(&self.document.sources, place, Some(path.to_owned()), text);
        self.problems.borrow_mut().push(problem);
    }

    /// Reports that the value at `path` is not allowed although it has the right form.
    pub fn refuse(&self, path: &str, why: &str) {
        let node = self.document.locate(path);
        let text = match &node {
            Some(place) if !self.document.written(place).starts_with('[') => {
                format!(": value {} is not allowed: {why}", shorten(self.document.written(place)))
            }
            _ => format!(": {why}"),
        };
        self.report(path, node.as_ref(), text);
    }

    pub fn root(&'a self) -> TableReader<'a> {
        let place = Place { source: 0, bytes: 0..0 };
        TableReader::new(self, &self.document.root, place, String::new())
    }
}

/// One table being read.
pub(crate) struct TableReader<'a> {
    pub cx: &'a Context<'a>,
    table: &'a Table,
    place: Place,
    pub path: String,
    asked: RefCell<BTreeSet<String>>,
    /// Required keys that are not there, and what they should be.
    missing: RefCell<Vec<(String, String)>>,
}

impl<'a> TableReader<'a> {
    pub fn new(cx: &'a Context<'a>, table: &'a Table, place: Place, path: String) -> Self {
        Self { cx, table, place, path, asked: RefCell::default(), missing: RefCell::default() }
    }

    /// The path of one of this table's keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The node of a key, which from now on counts as known.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.table.get(key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of a key; `None` when it is absent or, after a report, wrong.
    pub fn optional<T: 'static>(&self, key: &str, kind: &Kind<T>) -> Option<T> {
        let node = self.node(key)?;
        match kind.read(node) {
            Ok(value) => Some(value),
            Err(reason) => {
                self.wrong(key, node, &kind.expected, &reason);
                None
            }
        }
    }

    /// The value of a key or, when it is absent or wrong, `default`.
    pub fn or<T: 'static>(&self, key: &str, kind: &Kind<T>, default: T) -> T {
        self.optional(key, kind).unwrap_or(default)
    }

    /// The value of a key that must be there; `None` after a report.
    pub fn required<T: 'static>(&self, key: &str, kind: &Kind<T>) -> Option<T> {
        if self.node(key).is_none() {
            self.lacks(key, &kind.expected);
        }
        self.optional(key, kind)
    }

    /// Notes that a required key is absent.
    pub fn lacks(&self, key: &str, expected: &str) {
        self.missing.borrow_mut().push((key.to_owned(), expected.to_owned()));
    }

    /// A reader of the table that a key holds; `None` when absent or, after a report, no table.
    pub fn table(&self, key: &str, expected: &str) -> Option<TableReader<'a>> {
        let node = self.node(key)?;
        self.table_in(node, key, expected)
    }

    /// A reader of a node of this table that should be a table.
    pub fn table_in(&self, node: &'a Node, key: &str, expected: &str) -> Option<TableReader<'a>> {
        if let Value::Table(table) = &node.value {
            return Some(TableReader::new(self.cx, table, node.place.clone(), self.path_of(key)));
        }
        self.wrong(key, node, expected, "");
        None
    }

    /// Readers of the tables of a list such as `[[flow]]`, each with a path that names it.
    pub fn tables(&self, key: &str) -> Vec<TableReader<'a>> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::List(list) = &node.value else {
            self.wrong(key, node, &format!("a list of tables: write [[{key}]]"), "");
            return Vec::new();
        };
        let names: Vec<Option<String>> =
            list.iter().map(|node| node.as_table().and_then(Table::member_name)).collect();
        let path = |i: usize| match &names[i] {
            Some(name) if names.iter().flatten().filter(|other| *other == name).count() == 1 => {
                self.path_of(&format!("{key}.{name}"))
            }
            _ => self.path_of(&format!("{key}[{}]", i + 1)),
        };
        let member = |(i, node): (usize, &'a Node)| {
            let Value::Table(table) = &node.value else {
                self.wrong(key, node, &format!("a table: write [[{key}]]"), "");
                return None;
            };
            Some(TableReader::new(self.cx, table, node.place.clone(), path(i)))
        };
        list.iter().enumerate().filter_map(member).collect()
    }

    /// The names of all keys of this table, with their values.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.table.0.iter().map(|(key, entry)| (key.as_str(), &entry.node))
    }

    /// Reports a value that is not what was expected.
    pub fn wrong(&self, key: &str, node: &Node, expected: &str, reason: &str) {
        let shown = shorten(self.shown(node));
        let reason = if reason.is_empty() { String::new() } else { format!("; {reason}") };
        let text = format!(": value {shown} is not allowed: expected {expected}{reason}");
        self.cx.report(&self.path_of(key), Some(&node.place), text);
    }

    /// Reports something about the value of a key that is there.
    pub fn refuse(&self, key: &str, why: &str) {
        let Some(node) = self.table.get(key) else {
            return self.cx.report(&self.path_of(key), Some(&self.place), format!(": {why}"));
        };
        let text = format!(": value {} is not allowed: {why}", shorten(self.shown(node)));
        self.cx.report(&self.path_of(key), Some(&node.place), text);
    }

    /// Reports what is unknown and what is missing. Read everything first.
    pub fn finish(&self) {
        let suggested = self.report_unknown();
        self.missing.borrow_mut().retain(|(key, _)| !suggested.contains(key));
        self.report_missing();
    }

    /// Reports what is missing alone: for a table whose other keys cannot be judged.
    pub fn report_missing(&self) {
        for (key, expected) in self.missing.take() {
            let place = (!self.path.is_empty()).then_some(&self.place);
            self.cx.report(&self.path_of(&key), place, format!(" is missing: expected {expected}"));
        }
    }

    /// Reports the unknown keys, and answers which names were suggested instead.
    fn report_unknown(&self) -> BTreeSet<String> {
        let asked = self.asked.borrow();
        let mut suggested = BTreeSet::new();
        for (key, entry) in self.table.0.iter().filter(|(key, _)| !asked.contains(*key)) {
            let free = asked.iter().map(String::as_str).filter(|name| !self.has(name));
            let near = nearest(key, free);
            suggested.extend(near.map(str::to_owned));
            let text = match near {
                Some(near) => format!(" is not known here: did you mean {near:?}?"),
                None => format!(" is not known here: known are {}", list(&asked)),
            };
            self.cx.report(&self.path_of(key), Some(&entry.key), text);
        }
        suggested
    }

    fn shown(&self, node: &Node) -> &'a str {
        match &node.value {
            Value::Table(_) => "{...}",
            Value::List(list) if list.is_empty() => "[]",
            Value::List(_) => "[...]",
            _ => self.cx.document.written(&node.place),
        }
    }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// At most 40 characters of one line of what was written.
fn shorten(written: &str) -> String {
    let line = written.lines().next().unwrap_or_default();
    if line.chars().count() <= 40 && line.len() == written.len() {
        return line.to_owned();
    }
    format!("{}...", line.chars().take(37).collect::<String>())
}
