//! The columns of the tables that a command shows by their name.

use crate::exit::Failure;
use cutline_params::nearest;
use cutline_results::{Column, Row};
use cutline_text::Printable;

/// The names of the quantities in two tables, each once.
pub fn quantities<A: Row, B: Row>() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = quantities_of::<A>();
    for name in quantities_of::<B>() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The names of the quantities in a table.
pub fn quantities_of<R: Row>() -> Vec<&'static str> {
    R::columns().into_iter().filter(Column::is_quantity).map(|column| column.about.name).collect()
}

/// Reports that a measure is unknown, and the likely one: one that begins with it, or that is spelt like it.
pub fn unknown(what: &str, measure: &str, known: &[&'static str]) -> Failure {
    let longer =
        known.iter().find(|name| name.strip_prefix(measure).is_some_and(|rest| rest.starts_with('_')));
    let near = longer.copied().or_else(|| nearest(measure, known.iter().copied()));
    let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    Failure::Usage(format!(
        "--measure {}: not {what}; {meant}expected one of: {}",
        Printable(measure),
        known.join(", ")
    ))
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
            let Failure::Usage(message) = unknown("a column", given, &known) else {
                panic!("a wrong option")
            };
            assert!(message.contains(&format!("did you mean {meant}?")), "{message}");
        }
        let Failure::Usage(message) = unknown("a column", "zebra", &known) else { panic!("a wrong option") };
        assert!(!message.contains("did you mean"), "{message}");
    }

    use crate::exit::Failure;
}
