//! Claims that are written once for many rows.

use std::collections::BTreeMap;

/// The rows by their name.
pub(crate) type Rows = BTreeMap<String, Vec<toml::Table>>;

/// Repeats a claim for every combination of the rows that its `each` names; once if it has none.
///
/// # Errors
/// When there are no rows with this name, or a text names a value that a row does not have.
pub(crate) fn repeat(claim: &toml::Table, rows: &Rows) -> Result<Vec<toml::Table>, String> {
    let mut claim = claim.clone();
    let Some(each) = claim.remove("each") else { return Ok(vec![claim]) };
    let names: Vec<String> =
        each.try_into().map_err(|error| format!("`each` is a list of names: {error}"))?;
    let mut claims = vec![claim];
    for name in names {
        let of = rows.get(&name).ok_or_else(|| format!("[rows] has no `{name}`"))?;
        let filled = claims.iter().flat_map(|claim| of.iter().map(|row| fill_table(claim, &name, row)));
        claims = filled.collect::<Result<_, _>>()?;
    }
    Ok(claims)
}

fn fill_table(table: &toml::Table, name: &str, row: &toml::Table) -> Result<toml::Table, String> {
    table.iter().map(|(key, value)| Ok((fill_text(key, name, row)?, fill(value, name, row)?))).collect()
}

fn fill(value: &toml::Value, name: &str, row: &toml::Table) -> Result<toml::Value, String> {
    Ok(match value {
        toml::Value::String(text) => match whole(text, name) {
            // A text that is nothing but a value keeps its type.
            Some(key) => of_row(row, name, key)?.clone(),
            None => toml::Value::String(fill_text(text, name, row)?),
        },
        toml::Value::Table(table) => toml::Value::Table(fill_table(table, name, row)?),
        toml::Value::Array(values) => {
            toml::Value::Array(values.iter().map(|value| fill(value, name, row)).collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    })
}

/// The key of a row if the text is `{NAME.KEY}` and nothing else.
fn whole<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let key = text.strip_prefix('{')?.strip_suffix('}')?.strip_prefix(name)?.strip_prefix('.')?;
    (!key.contains(['{', '}'])).then_some(key)
}

fn fill_text(text: &str, name: &str, row: &toml::Table) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    let begin = format!("{{{name}.");
    while let Some((before, after)) = rest.split_once(&begin) {
        let (key, after) = after.split_once('}').ok_or_else(|| format!("`{text}`: a brace is not closed"))?;
        let value = of_row(row, name, key)?;
        filled += before;
        filled += &super::quantity::text(value);
        rest = after;
    }
    Ok(filled + rest)
}

fn of_row<'r>(row: &'r toml::Table, name: &str, key: &str) -> Result<&'r toml::Value, String> {
    row.get(key).ok_or_else(|| format!("a row of `{name}` has no `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        toml::from_str(
            "queue = [{ id = 'pi', hint = 6 }, { id = 'red', hint = 8 }]\nmix = [{ n = 1 }, { n = 2 }]",
        )
        .unwrap()
    }

    fn claim(text: &str) -> toml::Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_claim_is_repeated_for_every_combination() {
        let text = "id = '{queue.id}-{mix.n}'\neach = ['queue', 'mix']\nat = { 'flow.{queue.id}.hint' = '{queue.hint}' }\nabove = 0";
        let claims = repeat(&claim(text), &rows()).unwrap();
        let ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["pi-1", "pi-2", "red-1", "red-2"]);
        assert_eq!(claims[3]["at"]["flow.red.hint"].as_integer(), Some(8), "a number stays a number");
        assert_eq!(claims[0]["above"].as_integer(), Some(0));
        assert!(!claims[0].contains_key("each"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = |text| repeat(&claim(text), &rows()).unwrap_err();
        assert!(error("each = ['link']").contains("no `link`"));
        assert!(error("each = ['queue']\nid = '{queue.name}'").contains("has no `name`"));
        assert!(error("each = 'queue'").contains("list of names"));
    }
}
