//! Reads applications: `app = { kind = "bulk" | "cbr" | ..., ... }`. The other keys are the application's parameters.

use cutline_config::{TableReader, kind, parameter};
use cutline_transport::app::{self, Params};

const EXPECTED: &str = "a table such as { kind = \"bulk\" }";

pub(super) fn read(flow: &TableReader<'_>) -> Option<Params> {
    if !flow.has("app") {
        flow.lacks("app", EXPECTED);
    }
    let reader = flow.table("app", EXPECTED)?;
    let words = app::describe().into_iter().map(|about| (about.name.to_owned(), about)).collect();
    let Some(about) = reader.required("kind", &kind::choice("a kind of application", words)) else {
        // The kind determines which other keys are allowed.
        reader.report_missing();
        return None;
    };
    let values = parameter::values(&reader, &about.parameters);
    let params = parameter::checked(&reader, Params::from_values(about.name, values));
    let others = app::describe();
    let others = || others.iter().map(|other| (other.name, &other.parameters));
    reader.finish_explaining(|key| parameter::of_others(key, ("kind", about.name), others()));
    params
}
