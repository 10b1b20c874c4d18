//! Parameters in a document: which kind of value each is written as, and reading those that a table sets.
//!
//! A parameter is written as the quantity that its kind and unit make it: packets as `"200 packets"`, B as `"1000 B"`,
//! bit/s as `"15 Mbit/s"`, times and frequencies with their units, anything else as a number.

use crate::distribution;
use crate::kind::{self, ValueKind};
use crate::reader::TableReader;
use crate::value::Node;
use cutline_params::{Parameter, ParameterError, ParameterValue};
use cutline_units::{Bytes, Distribution, Duration, Rate};

/// The parameters that a table sets. A wrong one is reported and left out, so that the others can be judged; a required one
/// that is absent is noted, and reported by [`TableReader::finish`].
pub fn values(
    reader: &TableReader<'_>,
    parameters: &[&'static Parameter],
) -> Vec<(&'static str, ParameterValue)> {
    parameters.iter().filter_map(|parameter| Some((parameter.name, value(reader, parameter)?))).collect()
}

fn value(reader: &TableReader<'_>, parameter: &Parameter) -> Option<ParameterValue> {
    use cutline_params::ParameterKind as Allowed;
    let node = reader.node(parameter.name);
    match (parameter.kind, node.filter(|node| node.as_table().is_some())) {
        (Allowed::Distribution { least, most }, Some(table)) => {
            distribution::read(reader, parameter, (least, most), table).map(ParameterValue::Distribution)
        }
        _ if parameter.required => reader.required(parameter.name, &kind_of(parameter)),
        _ => reader.optional(parameter.name, &kind_of(parameter)),
    }
}

/// Parameters made from a table's values; `None` when they are not allowed together, which is reported, or when a required
/// one is not among them, which has been.
pub fn checked<P>(reader: &TableReader<'_>, params: Result<P, ParameterError>) -> Option<P> {
    let report = |error: ParameterError| {
        if !error.is_missing() {
            refuse(reader, &error);
        }
    };
    params.map_err(report).ok()
}

/// Explains a key that belongs to other values of `choice`, such as `aqm`, than `chosen`, for [`TableReader::finish_explaining`].
pub fn of_others<'a, P: AsRef<[&'a Parameter]>>(
    key: &str,
    (choice, chosen): (&str, &str),
    others: impl IntoIterator<Item = (&'a str, P)>,
) -> Option<String> {
    const MOST: usize = 4;
    let has = |parameters: &P| parameters.as_ref().iter().any(|parameter| parameter.name == key);
    let having = others.into_iter().filter(|(name, parameters)| *name != chosen && has(parameters));
    let names: Vec<String> = having.map(|(name, _)| format!("{name:?}")).collect();
    if names.is_empty() {
        return None;
    }
    let (shown, rest) = names.split_at(names.len().min(MOST));
    let more = if rest.is_empty() { "" } else { " and others" };
    Some(format!("is for {choice} = {}{more}, and here {choice} = {chosen:?}", shown.join(" or ")))
}

/// Reports a parameter that each key allows by itself, but not together with the others.
fn refuse(reader: &TableReader<'_>, error: &ParameterError) {
    let ParameterError { parameter, value, allowed, .. } = error;
    if reader.has(parameter) {
        reader.refuse(parameter, &format!("it must be {allowed}"));
    } else {
        reader.refuse(parameter, &format!("the default, {value}, is not allowed: it must be {allowed}"));
    }
}

/// Returns the kind of a parameter's value, with its range: a value of its kind, `"off"` (or `"none"`) if the
/// parameter can be switched off, and `true` and `false` if they have a meaning.
pub fn kind_of(parameter: &Parameter) -> ValueKind<ParameterValue> {
    let mut kind = value_of(parameter);
    if parameter.optional {
        kind = kind.or(off());
    }
    if let Some(on) = parameter.on.clone() {
        kind = kind.or(kind::flag().map(move |flag| if flag { on.clone() } else { ParameterValue::Off }));
    }
    kind
}

/// A parameter's value from a text outside any document, such as an option of the command line: as in a file, but for the
/// quotes; a plain number has the parameter's unit, and a list needs no brackets.
///
/// # Errors
/// When it is not allowed: the allowed values.
pub fn parse(parameter: &Parameter, text: &str) -> Result<ParameterValue, String> {
    let kind = kind_of(parameter);
    let with_unit = || kind.read(&Node::from_text(&format!("{text} {}", parameter.unit)));
    let list = || {
        let items = text.trim_start_matches('[').trim_end_matches(']').split(',');
        kind.read(&Node::list(items.map(Node::from_text)))
    };
    let read = kind.read(&Node::from_text(text)).or_else(|_| with_unit()).or_else(|_| list());
    read.map_err(|_| parameter.allowed())
}

/// A value as a document has it: in quotes if it has a unit.
pub fn written(parameter: &Parameter, value: &ParameterValue) -> String {
    match (value, parameter.unit) {
        (ParameterValue::Count(n), "packets") => format!("\"{n} packets\""),
        (ParameterValue::Count(n), "B") => format!("\"{}\"", Bytes::new(*n)),
        (ParameterValue::Count(n), "bit/s") => format!("\"{}\"", Rate::from_bps(*n)),
        (
            ParameterValue::Duration(_)
            | ParameterValue::Frequency(_)
            | ParameterValue::Choice(_)
            | ParameterValue::Off,
            _,
        ) => {
            format!("\"{value}\"")
        }
        _ => value.to_string(),
    }
}

fn off() -> ValueKind<ParameterValue> {
    ValueKind::new("\"off\"", |node| match node.as_text() {
        Some("off" | "none") => Ok(ParameterValue::Off),
        _ => Err(String::new()),
    })
}

/// Returns the kind of the parameter's own values.
fn value_of(parameter: &Parameter) -> ValueKind<ParameterValue> {
    use cutline_params::ParameterKind as Allowed;
    match parameter.kind {
        Allowed::Number { least, most } => number(parameter.unit, least, most),
        Allowed::Count { least, most } => count(parameter.unit, least, most),
        Allowed::Duration { least, most } => {
            let range = format!("from {least} to {most}");
            kind::duration()
                .only(&range, move |time| (least..=most).contains(time))
                .map(ParameterValue::Duration)
        }
        Allowed::Frequency { least, most } => {
            let range = format!("from {least} Hz to {most} Hz");
            kind::any_frequency()
                .only(&range, move |hz| (least..=most).contains(hz))
                .map(ParameterValue::Frequency)
        }
        Allowed::Flag => kind::flag().map(ParameterValue::Flag),
        Allowed::Durations { len, least, most } => {
            let range = format!("each from {least} to {most}");
            let fit = move |times: &Vec<Duration>| times.iter().all(|time| (least..=most).contains(time));
            let times = kind::list(len, "durations such as \"5 ms\"", kind::duration());
            times.only(&range, fit).map(|times| ParameterValue::Durations(times.into()))
        }
        Allowed::Counts { len, least, most } => {
            let each = kind::integer(least as i64, most as i64);
            let what = format!("whole numbers from {least} to {most}");
            kind::list(len, &what, each).map(|counts| ParameterValue::Counts(counts.into()))
        }
        Allowed::Distribution { least, most } => {
            let quantity = distribution::quantity(parameter.unit, least, most);
            ValueKind::new(distribution::expected(&quantity), move |node| quantity.read(node))
                .map(|fixed| ParameterValue::Distribution(Distribution::Fixed(fixed)))
        }
        Allowed::Registered(table) => choice(&table.names()),
        Allowed::Choice(names) => choice(names),
        Allowed::CountOr { least, most, names } => count(parameter.unit, least, most).or(choice(names)),
    }
}

fn choice(names: &[&'static str]) -> ValueKind<ParameterValue> {
    let word = |name: &&'static str| (*name, ParameterValue::Choice((*name).into()));
    kind::one_of("one of", &names.iter().map(word).collect::<Vec<_>>())
}

fn number(unit: &str, least: f64, most: f64) -> ValueKind<ParameterValue> {
    if unit == "packets" {
        let range = format!("from {least} to {most} packets");
        return kind::any_packets()
            .only(&range, move |n| (least..=most).contains(&(*n as f64)))
            .map(|n| ParameterValue::Number(n as f64));
    }
    let range = format!("from {least} to {most}");
    let number = match unit {
        // A number between 0 and 1 without a unit is a probability, a share or a weight.
        "" if least >= 0.0 && most <= 1.0 => kind::share(),
        "%" => kind::percentage(),
        _ => kind::number(),
    };
    number.only(&range, move |x| (least..=most).contains(x)).map(ParameterValue::Number)
}

fn count(unit: &str, least: u64, most: u64) -> ValueKind<ParameterValue> {
    let allowed = move |n: u64| (least..=most).contains(&n);
    match unit {
        "packets" => {
            let range = format!("from {least} to {most} packets");
            kind::any_packets().only(&range, move |n| allowed(*n)).map(ParameterValue::Count)
        }
        "B" => {
            let range = format!("from {} to {}", Bytes::new(least), Bytes::new(most));
            kind::size()
                .only(&range, move |size| allowed(size.get()))
                .map(|size| ParameterValue::Count(size.get()))
        }
        "bit/s" => {
            let range = format!("from {} to {}", Rate::from_bps(least), Rate::from_bps(most));
            kind::rate()
                .only(&range, move |rate| allowed(rate.as_bps()))
                .map(|r| ParameterValue::Count(r.as_bps()))
        }
        _ => kind::integer(least as i64, most.min(i64::MAX as u64) as i64).map(ParameterValue::Count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use cutline_params::ParameterKind as Allowed;

    fn parameter(unit: &'static str, kind: Allowed) -> Parameter {
        Parameter {
            name: "x",
            unit,
            kind,
            optional: false,
            on: None,
            required: false,
            default: ParameterValue::Off,
            source: "a test",
            doc: "a test",
        }
    }

    fn read(unit: &'static str, allowed: Allowed, text: &str) -> Result<ParameterValue, String> {
        let parameter = parameter(unit, allowed);
        let document = Document::parse(&format!("x = {text}"), "test.toml").unwrap();
        kind_of(&parameter).read(document.root().get("x").unwrap())
    }

    #[test]
    fn a_unit_says_how_a_parameter_is_written() {
        let (number, count) =
            (Allowed::Number { least: 0.0, most: 9e3 }, Allowed::Count { least: 1, most: 9000 });
        assert_eq!(read("packets", number, "\"200 packets\""), Ok(ParameterValue::Number(200.0)));
        assert_eq!(read("per packet", number, "1.5"), Ok(ParameterValue::Number(1.5)));
        assert_eq!(read("packets", count, "\"5 packets\""), Ok(ParameterValue::Count(5)));
        assert_eq!(read("B", count, "\"1 KB\""), Ok(ParameterValue::Count(1000)));
        assert_eq!(read("bit/s", count, "\"8 kbit/s\""), Ok(ParameterValue::Count(8000)));
        assert_eq!(read("", count, "4"), Ok(ParameterValue::Count(4)));
        assert_eq!(read("", Allowed::Flag, "true"), Ok(ParameterValue::Flag(true)));
        assert_eq!(read("", Allowed::Choice(&["a", "b"]), "\"b\""), Ok(ParameterValue::Choice("b".into())));
    }

    #[test]
    fn probabilities_and_shares_are_read_as_percentages_too() {
        let share = Allowed::Number { least: 0.0, most: 0.5 };
        for text in ["0.05", "\"5 %\"", "\"5%\"", "\"5.0 %\""] {
            assert_eq!(read("", share, text), Ok(ParameterValue::Number(0.05)), "{text}");
        }
        assert!(read("", share, "\"51 %\"").is_err(), "beyond the range");
        assert!(read("", share, "\"0.05\"").unwrap_err().contains("unit is missing"));
        let percentage = Allowed::Number { least: 0.0, most: 100.0 };
        for text in ["5", "5.0", "\"5 %\""] {
            assert_eq!(read("%", percentage, text), Ok(ParameterValue::Number(5.0)), "{text}");
        }
        assert!(read("", percentage, "\"5 %\"").is_err(), "a number that is no share");
    }

    /// Also where a document has no quotes: on the command line.
    #[test]
    fn an_option_may_be_a_percentage() {
        let up_to = |unit, most| parameter(unit, Allowed::Number { least: 0.0, most });
        for text in ["5%", "5 %", "0.05"] {
            assert_eq!(parse(&up_to("", 1.0), text), Ok(ParameterValue::Number(0.05)), "{text}");
        }
        for text in ["5%", "5 %", "5"] {
            assert_eq!(parse(&up_to("%", 100.0), text), Ok(ParameterValue::Number(5.0)), "{text}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let number = Allowed::Number { least: 0.0, most: 1.0 };
        assert!(read("", number, "1.5").is_err());
        assert!(read("packets", number, "\"2 packets\"").is_err());
        assert!(read("B", Allowed::Count { least: 1, most: 10 }, "\"11 B\"").is_err());
        assert!(read("", Allowed::Choice(&["a", "b"]), "\"c\"").is_err());
    }
}
