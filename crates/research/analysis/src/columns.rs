//! The columns of the tables and the swept keys, by their name.

use crate::AnalysisError;
use cutline_params::nearest;
use cutline_results::{Column, Row};
use cutline_text::Printable;

/// Returns the names of the quantities in two tables, each once.
pub fn quantities<A: Row, B: Row>() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = quantities_of::<A>();
    for name in quantities_of::<B>() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the names of the quantities in a table.
pub fn quantities_of<R: Row>() -> Vec<&'static str> {
    R::columns().into_iter().filter(Column::is_quantity).map(|column| column.about.name).collect()
}

/// Returns the error that a measure is unknown, with the likely one: one that begins with it, or that is spelt like it.
pub fn unknown(what: &str, measure: &str, known: &[&'static str]) -> AnalysisError {
    let longer =
        known.iter().find(|name| name.strip_prefix(measure).is_some_and(|rest| rest.starts_with('_')));
    let near = longer.copied().or_else(|| nearest(measure, known.iter().copied()));
    let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    let measure = Printable(measure);
    let known = known.join(", ");
    AnalysisError::choice("measure", format_args!("{measure}: not {what}; {meant}expected one of: {known}"))
}

/// Returns the swept key whose path, or the end of whose path, is `by`.
///
/// # Errors
/// The names of the swept keys, if none of them matches.
pub fn swept_key<'k>(keys: &[&'k str], by: &str) -> Result<&'k str, AnalysisError> {
    let is_asked = |key: &&str| *key == by || key.strip_suffix(by).is_some_and(|rest| rest.ends_with('.'));
    if let Some(key) = keys.iter().copied().find(is_asked) {
        return Ok(key);
    }
    let there = if keys.is_empty() {
        "nothing is swept in these results".to_owned()
    } else {
        format!("not a swept key; expected one of: {}", keys.join(", "))
    };
    Err(AnalysisError::choice("by", format_args!("{by}: {there}")))
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn the_measure_that_is_meant_is_named() {
        let known = ["goodput_bps", "queuing_p50_ms", "queuing_p99_ms", "q"];
        for (given, meant) in [
            ("queuing_p99", "queuing_p99_ms"),
            ("goodput", "goodput_bps"),
            ("queuing_p90_ms", "queuing_p50_ms"),
        ] {
            let message = unknown("a column", given, &known).to_string();
            assert!(message.contains(&format!("did you mean {meant}?")), "{message}");
        }
        let message = unknown("a column", "zebra", &known).to_string();
        assert!(!message.contains("did you mean"), "{message}");
    }
}
