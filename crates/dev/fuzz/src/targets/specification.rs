//! Specifications of a connection's needs, as TOML and as JSON.
//!
//! - Specifications read back the same after they were written to a file.
//! - Two ends with the same specification agree on it.

use super::toml_files::{NAME, refused};
use cutline_config::{Document, Errors};
use cutline_quality::spec::{ConnectionSpecification, Specification, agree};
use cutline_tables::specification;
use std::fmt::Write as _;

pub fn toml(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    check(Document::parse(text, NAME), text)
}

pub fn json(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    check(Document::parse_json(text, NAME), text)
}

fn check(document: Result<Document, Errors>, text: &str) -> bool {
    match document.and_then(|document| specification::specification(&document)) {
        Ok(ConnectionSpecification { send, receive, .. }) => {
            for spec in [send, receive] {
                assert_eq!(read(&written(&spec)), spec);
                let set = specification::written(&spec).len();
                assert_eq!(agree(&spec, &spec).map(|agreed| agreed.items.len()), Ok(set));
            }
            true
        }
        Err(errors) => refused(&errors, text),
    }
}

/// A direction as a file of its own.
fn written(spec: &Specification) -> String {
    let mut text = String::from("[send]\n");
    for (name, value) in specification::written(spec) {
        let _infallible = writeln!(text, "{name} = {value}");
    }
    let names: Vec<_> = spec.coerced.iter().map(|parameter| format!("{:?}", parameter.name())).collect();
    let _infallible = writeln!(text, "coerce = [{}]", names.join(", "));
    text
}

fn read(text: &str) -> Specification {
    let document = Document::parse(text, NAME).unwrap_or_else(|errors| panic!("{text}: {errors}"));
    specification::specification(&document).unwrap_or_else(|errors| panic!("{text}: {errors}")).send
}
