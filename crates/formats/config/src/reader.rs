//! Reads a table key by key, strictly: a key that the reader does not request is unknown, and is an error.
//!
//! A [`TableReader`] returns values of a [`ValueKind`] and remembers which keys were requested. [`TableReader::finish`] then
//! reports the missing keys, and the unknown ones with the nearest right name. Problems are collected, so that one reading
//! finds them all.

use crate::document::Document;
use crate::kind::ValueKind;
use crate::located::Located;
use crate::problem::{Errors, MISSING, Problem, shorten};
use crate::span::Span;
use crate::value::{Node, Table, Value};
use cutline_params::nearest;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Reads a whole document with `reading`, which gets the reader of the file's table and must call
/// [`TableReader::finish`] on it.
///
/// # Errors
/// Everything that is wrong with the document.
///
/// # Panics
/// When `reading` answers `None` although it has reported no problem.
pub fn read<T>(
    document: &Document,
    reading: impl FnOnce(&TableReader<'_>) -> Option<T>,
) -> Result<T, Errors> {
    let context = Context { document, problems: RefCell::default() };
    let span = Span { source: 0, bytes: 0..0 };
    let result = reading(&TableReader::new(&context, document.root(), span, String::new()));
    let problems = context.problems.into_inner();
    match result {
        Some(value) if problems.is_empty() => Ok(value),
        _ => Err(Errors::new(problems)),
    }
}

/// State shared by all readers of one document.
struct Context<'a> {
    document: &'a Document,
    problems: RefCell<Vec<Problem>>,
}

/// One table being read.
pub struct TableReader<'a> {
    context: &'a Context<'a>,
    table: &'a Table,
    span: Span,
    path: String,
    asked: RefCell<BTreeSet<String>>,
    /// Missing required keys, and their expected values.
    missing: RefCell<Vec<(String, String)>>,
}

impl<'a> TableReader<'a> {
    fn new(context: &'a Context<'a>, table: &'a Table, span: Span, path: String) -> Self {
        Self { context, table, span, path, asked: RefCell::default(), missing: RefCell::default() }
    }

    /// A reader of `table` in the place of this one: the table with some values replaced, such as names by the values that they stand
    /// for. Problems are reported under this table's path, once if several such tables have the same.
    pub fn replaced_by<'t>(&self, table: &'t Table) -> TableReader<'t>
    where
        'a: 't,
    {
        TableReader::new(self.context, table, self.span.clone(), self.path.clone())
    }

    /// The table that is read.
    pub const fn contents(&self) -> &'a Table {
        self.table
    }

    /// The place of the table, for problems that are found later.
    pub fn place(&self) -> Located<()> {
        Located { value: (), key: self.path.clone(), span: self.span.clone() }
    }

    /// The document that the table belongs to.
    pub const fn document(&self) -> &'a Document {
        self.context.document
    }

    /// Reports a problem with the key at `path`, a path from the file's own table; the message is the key's name followed by
    /// `text`.
    pub fn report(&self, path: &str, span: Option<&Span>, text: String) {
        let problem = self.document().problem(span, Some(path), text);
        self.context.problems.borrow_mut().push(problem);
    }

    /// Reports that the value at `path`, a path from the file's own table, is not allowed although it is of the right kind.
    pub fn refuse_at(&self, path: &str, why: &str) {
        let document = self.document();
        let span = document.locate(path);
        let written = span.as_ref().map(|span| document.written(span));
        let text = match written.filter(|written| !written.starts_with('[')) {
            Some(written) => format!(": value {} is not allowed: {why}", shorten(written)),
            None => format!(": {why}"),
        };
        self.report(path, span.as_ref(), text);
    }

    /// The path of one of this table's keys.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key, which counts as known from now on.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.table.get(key)
    }

    /// Returns whether the table has a key. The key does not count as known from this alone.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of a key; `None` when it is absent, or wrong and reported.
    pub fn optional<T: 'static>(&self, key: &str, kind: &ValueKind<T>) -> Option<T> {
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
    pub fn or<T: 'static>(&self, key: &str, kind: &ValueKind<T>, default: T) -> T {
        self.optional(key, kind).unwrap_or(default)
    }

    /// The value of a key that must be there; `None` when it is absent or wrong, which is reported.
    pub fn required<T: 'static>(&self, key: &str, kind: &ValueKind<T>) -> Option<T> {
        if self.node(key).is_none() {
            self.lacks(key, &kind.expected);
        }
        self.optional(key, kind)
    }

    /// As [`optional`](Self::optional), with the place of the value.
    pub fn located<T: 'static>(&self, key: &str, kind: &ValueKind<T>) -> Option<Located<T>> {
        let value = self.optional(key, kind)?;
        let span = self.node(key)?.span.clone();
        Some(Located { value, key: self.path_of(key), span })
    }

    /// The values of a list; `None` when the key is absent, or not a list and reported. Each wrong value is reported and
    /// left out.
    pub fn list<T: 'static>(&self, key: &str, kind: &ValueKind<T>) -> Option<Vec<T>> {
        let node = self.node(key)?;
        let Value::List(list) = &node.value else {
            self.wrong(key, node, &format!("a list, each value {}", kind.expected), "");
            return None;
        };
        let value = |node: &Node| {
            kind.read(node).map_err(|reason| self.wrong(key, node, &kind.expected, &reason)).ok()
        };
        Some(list.iter().filter_map(value).collect())
    }

    /// Reports that a value is not allowed although it is of the right kind.
    pub fn refuse_located<T>(&self, value: &Located<T>, why: &str) {
        self.context.problems.borrow_mut().push(self.document().refused(value, why));
    }

    /// Notes that a required key is absent; [`TableReader::finish`] reports it.
    pub fn lacks(&self, key: &str, expected: &str) {
        self.missing.borrow_mut().push((key.to_owned(), expected.to_owned()));
    }

    /// A reader of the table that a key holds; `None` when it is absent, or not a table and reported.
    pub fn table(&self, key: &str, expected: &str) -> Option<TableReader<'a>> {
        let node = self.node(key)?;
        self.table_in(node, key, expected)
    }

    /// A reader of a value of this table that should be a table; `None` when it is not one, which is reported.
    pub fn table_in(&self, node: &'a Node, key: &str, expected: &str) -> Option<TableReader<'a>> {
        if let Value::Table(table) = &node.value {
            return Some(TableReader::new(self.context, table, node.span.clone(), self.path_of(key)));
        }
        self.wrong(key, node, expected, "");
        None
    }

    /// As [`tables`](Self::tables), of a list that must be there.
    pub fn required_tables(&self, key: &str) -> Vec<TableReader<'a>> {
        if !self.has(key) {
            self.lacks(key, &self.list_of_tables(key));
        }
        self.tables(key)
    }

    /// Readers of the tables of a list such as `[[flow]]`, each with a path that names it.
    pub fn tables(&self, key: &str) -> Vec<TableReader<'a>> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::List(list) = &node.value else {
            self.wrong(key, node, &self.list_of_tables(key), "");
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
            Some(TableReader::new(self.context, table, node.span.clone(), path(i)))
        };
        list.iter().enumerate().filter_map(member).collect()
    }

    /// The expectation of a list of tables, with its header where that is the key alone.
    fn list_of_tables(&self, key: &str) -> String {
        if self.path.is_empty() {
            format!("a list of tables: write [[{key}]]")
        } else {
            "a list of tables".to_owned()
        }
    }

    /// The names of all keys of this table, with their values.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.table.0.iter().map(|(key, entry)| (key.as_str(), &entry.node))
    }

    /// Reports an unexpected value.
    pub fn wrong(&self, key: &str, node: &Node, expected: &str, reason: &str) {
        let shown = shorten(self.shown(node));
        let reason = if reason.is_empty() { String::new() } else { format!("; {reason}") };
        let text = format!(": value {shown} is not allowed: expected {expected}{reason}");
        self.report(&self.path_of(key), Some(&node.span), text);
    }

    /// Reports that the value of a key is not allowed although it is of the right kind. Of an absent key it reports `why`
    /// at the table.
    pub fn refuse(&self, key: &str, why: &str) {
        let Some(node) = self.table.get(key) else {
            return self.report(&self.path_of(key), Some(&self.span), format!(": {why}"));
        };
        let text = format!(": value {} is not allowed: {why}", shorten(self.shown(node)));
        self.report(&self.path_of(key), Some(&node.span), text);
    }

    /// Reports the unknown and the missing keys. Call it after everything has been read.
    pub fn finish(&self) {
        self.finish_explaining(|_| None);
    }

    /// As [`finish`](Self::finish), with an explanation of some unknown keys, as the end of the sentence "key K ...".
    pub fn finish_explaining(&self, explain: impl Fn(&str) -> Option<String>) {
        let suggested = self.report_unknown(&explain);
        self.missing.borrow_mut().retain(|(key, _)| !suggested.contains(key));
        self.report_missing();
    }

    /// Reports the missing keys alone: for a table whose other keys cannot be judged.
    pub fn report_missing(&self) {
        for (key, expected) in self.missing.take() {
            let span = (!self.path.is_empty()).then_some(&self.span);
            self.report(&self.path_of(&key), span, format!("{MISSING}: expected {expected}"));
        }
    }

    /// Reports the unknown keys; returns the names that were suggested instead.
    fn report_unknown(&self, explain: &dyn Fn(&str) -> Option<String>) -> BTreeSet<String> {
        let asked = self.asked.borrow();
        let mut suggested = BTreeSet::new();
        for (key, entry) in self.table.0.iter().filter(|(key, _)| !asked.contains(*key)) {
            // A key that is already in the file is not suggested; an override may mean it.
            let may_be_meant = |name: &&str| !entry.key.is_of_file() || !self.has(name);
            let free = asked.iter().map(String::as_str).filter(may_be_meant);
            if let Some(why) = explain(key) {
                self.report(&self.path_of(key), Some(&entry.key), format!(" {why}"));
                continue;
            }
            let near = nearest(key, free);
            suggested.extend(near.map(str::to_owned));
            let text = match near {
                Some(near) => format!(" is not known here: did you mean {near:?}?"),
                None => format!(" is not known here: known are {}", list(&asked)),
            };
            self.report(&self.path_of(key), Some(&entry.key), text);
        }
        suggested
    }

    fn shown(&self, node: &Node) -> &'a str {
        match &node.value {
            Value::Table(_) => "{...}",
            Value::List(list) if list.is_empty() => "[]",
            Value::List(_) => "[...]",
            _ => self.document().written(&node.span),
        }
    }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;

    fn errors<T>(text: &str, reading: impl FnOnce(&TableReader<'_>) -> Option<T>) -> String {
        let document = Document::parse(text, "x.toml").expect("the test's own text is TOML");
        read(&document, reading).err().expect("it is refused").to_string()
    }

    #[test]
    fn each_wrong_value_of_a_list_is_reported_at_its_place() {
        let errors = errors("names = ['a', 1, 'b', true]\nnumbers = 3\n", |root| {
            let names = root.list("names", &kind::text());
            root.list("numbers", &kind::number());
            assert_eq!(names, Some(vec!["a".to_owned(), "b".to_owned()]));
            names
        });
        assert_eq!(
            errors,
            "x.toml:1:15: key \"names\": value 1 is not allowed: expected a text in quotes\n\
             x.toml:1:23: key \"names\": value true is not allowed: expected a text in quotes\n\
             x.toml:2:11: key \"numbers\": value 3 is not allowed: expected a list, each value a number such as 1.5"
        );
    }

    #[test]
    fn a_replaced_table_has_the_path_of_the_first_and_each_problem_once() {
        let errors = errors("[link]\nrate = 'fast'\n", |root| {
            let reader = root.table("link", "a table")?;
            for _ in 0..2 {
                let table = reader.contents().clone();
                let replaced = reader.replaced_by(&table);
                replaced.required("rate", &kind::number());
                replaced.finish();
            }
            Some(())
        });
        assert_eq!(
            errors,
            "x.toml:2:8: key \"link.rate\": value 'fast' is not allowed: expected a number such as 1.5"
        );
    }

    #[test]
    fn a_list_of_tables_that_must_be_there_is_named_with_its_header() {
        let errors = errors("[a]\n", |root| {
            root.required_tables("flow");
            let table = root.table("a", "a table")?;
            table.required_tables("b");
            table.finish();
            root.finish();
            Some(())
        });
        assert_eq!(
            errors,
            "x.toml: key \"flow\" is missing: expected a list of tables: write [[flow]]\n\
             x.toml:1:1: key \"a.b\" is missing: expected a list of tables"
        );
    }
}
