//! Paths of keys such as `flow.audio.hint` or `dumbbell.queue.limit`: setting and finding their values.
//!
//! In the lists of tables that a document names, such as `[[flow]]`, a path chooses a member by its name.

use crate::span::Span;
use crate::suggestion::suggestion;
use crate::value::{Node, Table, TableEntry, Value};
use std::iter::Peekable;

/// Effect of a new value on the other keys of its table. It is called before the change, with the table, the key and the value.
pub type ChangeRule = fn(&mut Table, &str, &Node);

/// A new value of a key.
pub struct Setting<'k> {
    /// Place at which the path was written.
    pub key: &'k Span,
    /// The value.
    pub node: Node,
    /// Its effect on the other keys of the table.
    pub rule: ChangeRule,
}

/// Puts a value where a path points, making the tables on the way. `true` leaves a table that is there as it is, so that
/// a sweep can switch it off (`false`) and on (`true`).
pub fn set(root: &mut Table, lists: &[&str], path: &str, setting: Setting<'_>) -> Result<(), String> {
    let names = names(path);
    if names.iter().any(|name| name.is_empty()) {
        return Err("a path is names joined by dots, such as flow.audio.hint".to_owned());
    }
    if names.len() > 1 && lists.contains(&names[0]) && root.get(names[0]).is_none() {
        return Err(format!("the file has no [[{}]]", names[0]));
    }
    set_in_table(root, &names, &[], setting)
}

/// The names in a path. As in TOML, one in quotation marks may have dots: `sweep."dumbbell.delay"`.
fn names(path: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let names = path.split(|c| {
        is_quoted ^= c == '"';
        c == '.' && !is_quoted
    });
    names.map(|name| name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)).collect()
}

/// The span of the longest part of `path` that exists; a member of a list may be `flow[2]`, too.
pub fn locate(root: &Table, path: &str) -> Option<Span> {
    let mut found = None;
    let mut table = root;
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let Some(node) = table.get(name.split('[').next()?) else { break };
        found = Some(node.span.clone());
        let member = match &node.value {
            Value::Table(_) => Some(node),
            Value::List(list) => choose(list, name, &mut names),
            _ => None,
        };
        let Some(member) = member else { break };
        found = Some(member.span.clone());
        let Some(next) = member.as_table() else { break };
        table = next;
    }
    found
}

/// The member of a list that `flow[2]` or the name after `flow.` chooses.
fn choose<'n, 'p>(
    list: &'n [Node],
    name: &str,
    rest: &mut Peekable<impl Iterator<Item = &'p str>>,
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
    setting: Setting<'_>,
) -> Result<(), String> {
    let (name, rest) = (names[0], &names[1..]);
    if rest.is_empty() {
        put(table, name, setting);
        return Ok(());
    }
    let so_far = [before, &[name]].concat();
    let empty = || TableEntry {
        key: setting.key.clone(),
        node: Node { value: Value::Table(Table::default()), span: setting.key.clone() },
    };
    let entry = table.0.entry(name.to_owned()).or_insert_with(empty);
    match &mut entry.node.value {
        Value::Table(next) => set_in_table(next, rest, &so_far, setting),
        Value::List(list) if before.is_empty() => set_in_list(list, name, rest, setting),
        // A table that was switched on with its defaults is a table from now on.
        value @ Value::Flag(true) => {
            *value = Value::Table(Table::default());
            set_in_table(table, names, before, setting)
        }
        value => Err(format!("{} is {}, which has no keys", so_far.join("."), value.canonical())),
    }
}

fn set_in_list(list: &mut [Node], kind: &str, names: &[&str], setting: Setting<'_>) -> Result<(), String> {
    let member = names[0];
    let known: Vec<String> =
        list.iter().filter_map(|node| node.as_table().and_then(Table::member_name)).collect();
    let at = known.iter().position(|name| name == member);
    let chosen = list.iter_mut().filter(|node| node.as_table().and_then(Table::member_name).is_some());
    match (at.and_then(|at| chosen.into_iter().nth(at)).map(|node| &mut node.value), names.len()) {
        (Some(_), 1) => {
            Err(format!("it names a whole {kind}: name one of its keys, such as {kind}.{member}.KEY"))
        }
        (Some(Value::Table(table)), _) => set_in_table(table, &names[1..], &[kind, member], setting),
        _ => {
            let hint = suggestion(member, known.iter().map(String::as_str));
            Err(format!("there is no {kind} {member:?}{hint}"))
        }
    }
}

fn put(table: &mut Table, name: &str, setting: Setting<'_>) {
    let is_table = table.get(name).is_some_and(|old| old.as_table().is_some());
    let Setting { key, node, rule } = setting;
    if is_table && matches!(node.value, Value::Flag(true)) {
        return;
    }
    rule(table, name, &node);
    table.0.insert(name.to_owned(), TableEntry { key: key.clone(), node });
}
