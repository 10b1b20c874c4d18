//! JSON as a second spelling of a document: the same tree, with a span for every key and value.

use crate::problem::{Errors, Problem};
use crate::span::{Source, Span};
use crate::value::{Node, Table, TableEntry, Value};
use jsonc_parser::ast::{Object, Value as Json};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// JSON as RFC 8259 has it, and nothing of JSON5.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The object that the source at index 0 consists of.
///
/// # Errors
/// When the text is no JSON object, has a name twice in an object, or has null as a value.
pub(crate) fn parse(sources: &[Source]) -> Result<Table, Errors> {
    let text = &sources[0].text;
    let problem = |range: Range, text: String| Problem::new(sources, Some(&span(range)), None, text);
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT)
        .map_err(|error| problem(error.range(), format!("this is not JSON: {}", error.kind())))?;
    match parsed.value {
        Some(Json::Object(object)) => {
            let mut problems = Vec::new();
            let root = table(object, &mut |range, text| problems.push(problem(range, text)));
            if problems.is_empty() { Ok(root) } else { Err(Errors::new(problems)) }
        }
        other => {
            let range = other.map_or(Range { start: 0, end: text.len() }, |value| value.range());
            Err(problem(range, "this is not a JSON object".to_owned()).into())
        }
    }
}

/// Reports a problem: its place and its text.
type Report<'r> = &'r mut dyn FnMut(Range, String);

fn table(object: Object<'_>, report: Report<'_>) -> Table {
    let mut table = Table::default();
    for property in object.properties {
        let range = property.name.range();
        let name = property.name.into_string();
        let entry = TableEntry { key: span(range), node: node(property.value, report) };
        if table.0.insert(name.clone(), entry).is_some() {
            report(range, format!("the name {name:?} is there twice"));
        }
    }
    table
}

fn node(json: Json<'_>, report: Report<'_>) -> Node {
    let range = json.range();
    let value = match json {
        Json::StringLit(text) => Value::Text(text.value.into_owned()),
        Json::NumberLit(number) => {
            number.value.parse().map_or_else(|_| whole_or_float(number.value), Value::Integer)
        }
        Json::BooleanLit(flag) => Value::Flag(flag.value),
        Json::Array(array) => {
            Value::List(array.elements.into_iter().map(|json| node(json, report)).collect())
        }
        Json::Object(object) => Value::Table(table(object, report)),
        Json::NullKeyword(_) => {
            report(range, "null is no value here: leave the name out".to_owned());
            Value::Other("null".to_owned())
        }
    };
    Node { value, span: span(range) }
}

/// A number that does not fit 64 bits as a whole one.
fn whole_or_float(text: &str) -> Value {
    let is_float = text.contains(['.', 'e', 'E']);
    if is_float { Value::Float(text.to_owned()) } else { Value::Other(text.to_owned()) }
}

const fn span(range: Range) -> Span {
    Span { source: 0, bytes: range.start..range.end }
}

#[cfg(test)]
mod tests {
    use crate::Document;

    fn canonical(text: &str) -> Result<String, String> {
        let document = Document::parse_json(text, "x.json").map_err(|errors| errors.to_string())?;
        Ok(document.canonical(&[]))
    }

    #[test]
    fn the_same_tree_as_in_toml() {
        let json = r#"{"a": [1, 2.50, "5 ms", true], "t": {"x": {"y": -3}}}"#;
        let toml = "a = [1, 2.50, '5 ms', true]\nt.x.y = -3\n";
        assert_eq!(canonical(json), Ok(Document::parse(toml, "x.toml").unwrap().canonical(&[])));
    }

    #[test]
    fn invalid_json_is_refused_with_its_place() {
        for (text, expected) in [
            ("{\"a\": 1,}", "x.json:1:8: this is not JSON: "),
            ("{\"a\": 0x10}", "x.json:1:7: this is not JSON: "),
            ("", "x.json:1:1: this is not a JSON object"),
            ("[1]", "x.json:1:1: this is not a JSON object"),
            ("{\"a\": 1,\n \"a\": 2}", "x.json:2:2: the name \"a\" is there twice"),
            ("{\"a\": {\"b\": null}}", "x.json:1:13: null is no value here: leave the name out"),
        ] {
            let error = canonical(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(canonical(&deep).unwrap_err().contains("nesting"));
    }
}
