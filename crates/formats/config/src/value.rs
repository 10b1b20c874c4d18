//! The tree of a TOML file: values, and the place of each in the file.

use crate::span::Span;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of a document.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A float as it was written, so that nothing is rounded before its kind is known.
    Float(String),
    /// `true` or `false`.
    Flag(bool),
    /// A date, or a whole number that does not fit 64 bits. No kind of value allows it.
    Other(String),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Place of the value.
    pub span: Span,
}

/// A key and the value it is set to.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// Place of the key.
    pub key: Span,
    /// The value.
    pub node: Node,
}

/// A table, sorted by the names of its keys.
#[derive(Clone, Debug, Default)]
pub struct Table(pub BTreeMap<String, TableEntry>);

impl Node {
    /// A value from a text outside any document: TOML, or a string without quotes.
    pub(crate) fn from_text(text: &str) -> Self {
        let whole = Span { source: 0, bytes: 0..text.len() };
        DeValue::parse(text).map_or_else(
            |_| Self { value: Value::Text(text.trim().to_owned()), span: whole },
            |value| Self::from_toml(value, 0),
        )
    }

    /// A list outside any document.
    pub(crate) fn list(items: impl Iterator<Item = Self>) -> Self {
        Self { value: Value::List(items.collect()), span: Span { source: 0, bytes: 0..0 } }
    }

    /// The table; `None` for another value.
    pub fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    /// The string; `None` for another value.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.get(key).map(|entry| &entry.node)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_text()
    }

    /// The name by which a path chooses this member of a list of tables: the key `name`, the key `id` or, for a link, its
    /// two ends.
    pub fn member_name(&self) -> Option<String> {
        let ends = || Some(format!("{}-{}", self.text("from")?, self.text("to")?));
        self.text("name").or_else(|| self.text("id")).map(str::to_owned).or_else(ends)
    }

    /// The keys in the order in which the file has them.
    pub fn in_file_order(&self) -> Vec<(&str, &TableEntry)> {
        let mut entries: Vec<(&str, &TableEntry)> =
            self.0.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
        entries.sort_by_key(|(_, entry)| (entry.key.source, entry.key.bytes.start));
        entries
    }
}

impl Value {
    /// The value in its one canonical spelling, on one line: the keys of tables are sorted.
    pub fn canonical(&self) -> String {
        self.on_one_line(&|table| table.0.iter().map(|(key, entry)| (key.as_str(), entry)).collect())
    }

    /// The value on one line, with the keys of tables in the order of the file.
    pub fn inline(&self) -> String {
        self.on_one_line(&Table::in_file_order)
    }

    fn on_one_line(&self, entries: Ordered) -> String {
        match self {
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Float(text) | Self::Other(text) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(list) => {
                let parts: Vec<String> = list.iter().map(|node| node.value.on_one_line(entries)).collect();
                format!("[{}]", parts.join(", "))
            }
            Self::Table(table) => {
                let pair = |(key, entry): (&str, &TableEntry)| {
                    format!("{key} = {}", entry.node.value.on_one_line(entries))
                };
                let parts: Vec<String> = entries(table).into_iter().map(pair).collect();
                format!("{{ {} }}", parts.join(", "))
            }
        }
    }
}

/// The order in which the keys of a table are written.
type Ordered<'o> = &'o dyn Fn(&Table) -> Vec<(&str, &TableEntry)>;

impl Node {
    /// A value as the TOML library read it from the source of this index.
    pub(crate) fn from_toml(value: Spanned<DeValue<'_>>, source: usize) -> Self {
        let span = Span { source, bytes: value.span() };
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => Value::Other(number.as_str().to_owned()),
            },
            DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Flag(flag),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
            DeValue::Array(list) => {
                Value::List(list.into_iter().map(|node| Self::from_toml(node, source)).collect())
            }
            DeValue::Table(table) => Value::Table(Table::from_toml(table, source)),
        };
        Self { value, span }
    }
}

impl Table {
    /// A table as the TOML library read it from the source of this index.
    pub(crate) fn from_toml(table: DeTable<'_>, source: usize) -> Self {
        let entry = |(key, node): (Spanned<Cow<'_, str>>, Spanned<DeValue<'_>>)| {
            let span = Span { source, bytes: key.span() };
            (key.into_inner().into_owned(), TableEntry { key: span, node: Node::from_toml(node, source) })
        };
        Self(table.into_iter().map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::Document;

    #[test]
    fn a_value_is_written_in_the_order_of_the_file_or_in_its_canonical_one() {
        let document =
            Document::parse("t = { b = [1, 'x'], a = { d = 1.50, c = true } }\n", "x.toml").unwrap();
        let value = &document.root().get("t").unwrap().value;
        assert_eq!(value.inline(), "{ b = [1, \"x\"], a = { d = 1.50, c = true } }");
        assert_eq!(value.canonical(), "{ a = { c = true, d = 1.50 }, b = [1, \"x\"] }");
    }
}
