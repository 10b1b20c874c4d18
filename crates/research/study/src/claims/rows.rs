//! Claims that are written once for many rows.

use cutline_config::{Node, Span, Table, TableEntry, TableReader, Value, kind, suggestion};
use std::collections::BTreeMap;

/// The rows by their name.
pub(crate) type Rows<'d> = BTreeMap<&'d str, Vec<&'d Table>>;

/// Reads the tables of `[rows]`.
pub(crate) fn read_rows<'d>(root: &TableReader<'d>) -> Rows<'d> {
    let Some(rows) = root.table("rows", "lists of tables, by name") else { return Rows::new() };
    let of = |name| rows.tables(name).iter().map(TableReader::contents).collect();
    rows.entries().map(|(name, _)| (name, of(name))).collect()
}

/// Repeats a table for every combination of the rows that its `each` names; once if it has none. Names of rows and of their
/// values that do not exist are reported.
pub(crate) fn repeat(reader: &TableReader<'_>, rows: &Rows<'_>) -> Vec<Table> {
    let mut table = reader.contents().clone();
    table.0.remove("each");
    let words = rows.keys().map(|name| ((*name).to_owned(), (*name).to_owned())).collect();
    let names = reader.list("each", &kind::choice("the name of rows in [rows]", words)).unwrap_or_default();
    let mut tables = vec![table];
    for name in &names {
        let fill = |table: &Table, values| Row { name, values }.fill(reader, table);
        tables = tables
            .iter()
            .flat_map(|table| rows[name.as_str()].iter().map(move |values| fill(table, values)))
            .collect();
    }
    tables
}

/// A row with the name of its list.
#[derive(Clone, Copy)]
struct Row<'r> {
    name: &'r str,
    values: &'r Table,
}

/// A place that names a value which the row does not have, and the reason.
type Fault = (Span, String);

impl<'r> Row<'r> {
    /// The table with the values of the row in the place of their names. Values that do not exist are reported.
    fn fill(self, reader: &TableReader<'_>, table: &Table) -> Table {
        let mut filled = Table::default();
        for (key, entry) in &table.0 {
            let mut faults = Vec::new();
            self.fill_entry(&mut filled, key, entry, &mut faults);
            for (span, why) in faults {
                reader.report(&reader.path_of(key), Some(&span), format!(": {why}"));
            }
        }
        filled
    }

    fn fill_entry(self, filled: &mut Table, key: &str, entry: &TableEntry, faults: &mut Vec<Fault>) {
        let name = self.fill_text(key, &entry.key, faults);
        let node = self.fill_node(&entry.node, faults);
        filled.0.insert(name, TableEntry { key: entry.key.clone(), node });
    }

    fn fill_node(self, node: &Node, faults: &mut Vec<Fault>) -> Node {
        let value = match &node.value {
            Value::Text(text) => match self.whole(text) {
                // A text that is nothing but a value keeps its type.
                Some(key) => return self.value(key, &node.span, faults).unwrap_or(node).clone(),
                None => Value::Text(self.fill_text(text, &node.span, faults)),
            },
            Value::List(list) => Value::List(list.iter().map(|node| self.fill_node(node, faults)).collect()),
            Value::Table(table) => {
                let mut filled = Table::default();
                for (key, entry) in &table.0 {
                    self.fill_entry(&mut filled, key, entry, faults);
                }
                Value::Table(filled)
            }
            other => other.clone(),
        };
        Node { value, span: node.span.clone() }
    }

    /// The key of the row if the text is `{NAME.KEY}` and nothing else.
    fn whole(self, text: &str) -> Option<&str> {
        let key = text.strip_prefix('{')?.strip_suffix('}')?.strip_prefix(self.name)?.strip_prefix('.')?;
        (!key.contains(['{', '}'])).then_some(key)
    }

    fn fill_text(self, text: &str, span: &Span, faults: &mut Vec<Fault>) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        let begin = format!("{{{}.", self.name);
        while let Some((before, after)) = rest.split_once(&begin) {
            let Some((key, after)) = after.split_once('}') else {
                faults.push((span.clone(), format!("a brace is not closed in {text:?}")));
                break;
            };
            filled += before;
            filled += &self.value(key, span, faults).map(|node| plain(&node.value)).unwrap_or_default();
            rest = after;
        }
        filled + rest
    }

    /// The value of a key of the row. `span` is where it is named.
    fn value(self, key: &str, span: &Span, faults: &mut Vec<Fault>) -> Option<&'r Node> {
        let node = self.values.get(key);
        if node.is_none() {
            let keys: Vec<&str> = self.values.0.keys().map(String::as_str).collect();
            let near = suggestion(key, keys.iter().copied());
            let known = if near.is_empty() { format!("; it has {}", keys.join(", ")) } else { near };
            faults.push((span.clone(), format!("a row of {:?} has no {key:?}{known}", self.name)));
        }
        node
    }
}

/// A value as a scenario writes it, without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Float(text) => text.parse::<f64>().map_or_else(|_| text.clone(), |number| number.to_string()),
        other => other.inline(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_config::{Document, Errors, read};

    const ROWS: &str = "[rows]\nqueue = [{ id = 'pi', hint = 6 }, { id = 'red', hint = 8.0 }]\nmix = [{ n = 1 }, { n = 2 }]\n";

    fn repeated(claim: &str) -> Result<Vec<Table>, Errors> {
        let document = Document::parse(&format!("{ROWS}[claim]\n{claim}\n"), "figures.toml")?;
        read(&document, |root| {
            let rows = read_rows(root);
            Some(repeat(&root.table("claim", "a claim")?, &rows))
        })
    }

    #[test]
    fn a_claim_is_repeated_for_every_combination() {
        let claims = repeated(
            "id = '{queue.id}-{mix.n}'\neach = ['queue', 'mix']\nat = { 'flow.{queue.id}.hint' = '{queue.hint}' }\nabove = 0",
        )
        .unwrap();
        let ids: Vec<&str> = claims.iter().filter_map(|claim| claim.get("id")?.as_text()).collect();
        assert_eq!(ids, ["pi-1", "pi-2", "red-1", "red-2"]);
        let hint = |claim: &Table| claim.get("at")?.as_table()?.get("flow.red.hint").cloned();
        assert!(matches!(hint(&claims[3]).unwrap().value, Value::Float(_)), "a number stays a number");
        assert_eq!(plain(&hint(&claims[3]).unwrap().value), "8");
        assert!(matches!(claims[0].get("above").unwrap().value, Value::Integer(0)));
        assert!(claims[0].get("each").is_none());
    }

    #[test]
    fn missing_rows_are_named() {
        let error = |text| repeated(text).unwrap_err().to_string();
        assert_eq!(
            error("each = ['queues']"),
            "figures.toml:5:9: key \"claim.each\": value 'queues' is not allowed: expected the name of rows in [rows]: \"mix\", \
             \"queue\"; did you mean \"queue\"?"
        );
        assert_eq!(
            error("each = ['queue']\nid = '{queue.name}'"),
            "figures.toml:6:6: key \"claim.id\": a row of \"queue\" has no \"name\"; it has hint, id"
        );
        assert_eq!(
            error("each = ['queue']\nid = '{queue.id'"),
            "figures.toml:6:6: key \"claim.id\": a brace is not closed in \"{queue.id\""
        );
        assert_eq!(
            error("each = 'queue'"),
            "figures.toml:5:8: key \"claim.each\": value 'queue' is not allowed: expected a list, each value the name of rows in \
             [rows]: \"mix\", \"queue\""
        );
    }
}
