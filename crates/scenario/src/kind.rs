//! The kinds of value that keys of a scenario have.

use crate::document::{Node, Value};
use crate::nearest::suggestion;
use crate::quantity::{self, DURATION, Dimension, FREQUENCY, PACKETS, QuantityError, RATE, SIZE};
use crate::reader::Kind;
use crate::spec::Bound;
use cutline_units::{Bytes, Duration, Rate};
use std::fmt::Display;

/// A bit rate, above zero.
pub(crate) fn rate() -> Kind<Rate> {
    quantity(&RATE, quantity::rate).only("above 0", |rate| rate.as_bps() > 0)
}

/// A duration; zero is one.
pub(crate) fn duration() -> Kind<Duration> {
    quantity(&DURATION, quantity::duration)
}

/// A duration above zero.
pub(crate) fn positive_duration() -> Kind<Duration> {
    duration().only("above 0", |duration| !duration.is_zero())
}

/// A list of so many things, called `what`.
pub(crate) fn list<T: 'static>(len: usize, what: &str, each: Kind<T>) -> Kind<Vec<T>> {
    Kind::new(format!("a list of {len} {what}"), move |node| {
        let Value::List(list) = &node.value else { return Err(String::new()) };
        if list.len() != len {
            return Err(format!("it has {}", list.len()));
        }
        list.iter().map(|node| each.read(node)).collect()
    })
}

/// A size in bytes; zero is one.
pub(crate) fn size() -> Kind<Bytes> {
    quantity(&SIZE, quantity::size)
}

/// A size of at least one byte.
pub(crate) fn positive_size() -> Kind<Bytes> {
    size().only("above 0", |size| size.get() > 0)
}

/// A size that fits a packet, 1..=65535 bytes (the total length of an IPv4 packet, RFC 791 section 3.1).
pub(crate) fn packet_size() -> Kind<Bytes> {
    size().only("from 1 B to 65535 B", |size| (1..=65_535).contains(&size.get()))
}

/// The size of a packet that carries no payload, 1..=1500 bytes.
pub(crate) fn control_size() -> Kind<Bytes> {
    size().only("from 1 B to 1500 B", |size| (1..=1500).contains(&size.get()))
}

/// A header's size: what fits beside at least one byte in a packet.
pub(crate) fn header_size() -> Kind<Bytes> {
    size().only("at most 1000 B", |size| size.get() <= 1000)
}

/// A number of packets; zero is one.
pub(crate) fn any_packets() -> Kind<u64> {
    quantity(&PACKETS, quantity::packets)
}

/// A number of packets, at least one.
pub(crate) fn packets() -> Kind<u64> {
    any_packets().only("at least 1 packet", |packets| *packets > 0)
}

/// A number of packets, or `"none"` for no bound.
pub(crate) fn bound() -> Kind<Bound> {
    packets().map(Bound::Packets).or(word("none", Bound::None))
}

/// A frequency in hertz; zero is one.
pub(crate) fn any_frequency() -> Kind<f64> {
    quantity(&FREQUENCY, quantity::frequency)
}

/// A number.
pub(crate) fn number() -> Kind<f64> {
    Kind::new("a number such as 1.5", as_number)
}

/// A whole number from `low` to `high`.
pub(crate) fn integer(low: i64, high: i64) -> Kind<u64> {
    assert!(low >= 0, "counts are not negative");
    let range = if high == i64::MAX { format!("of at least {low}") } else { format!("from {low} to {high}") };
    Kind::new(format!("a whole number {range}"), move |node| match node.value {
        Value::Integer(number) if (low..=high).contains(&number) => Ok(number as u64),
        _ => Err(String::new()),
    })
}

/// `true` or `false`.
pub(crate) fn flag() -> Kind<bool> {
    Kind::new("true or false", |node| match node.value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(String::new()),
    })
}

/// A text.
pub(crate) fn text() -> Kind<String> {
    Kind::new("a text in quotes", |node| node.as_text().map(str::to_owned).ok_or_else(String::new))
}

/// A name: letters, digits, `-` and `_`, which a path and a file name can hold.
pub(crate) fn name() -> Kind<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text().only("of letters, digits, - and _", move |name| !name.is_empty() && name.chars().all(good))
}

/// One of a few words, each standing for a value.
pub(crate) fn choice<T: Clone + 'static>(what: &str, words: Vec<(String, T)>) -> Kind<T> {
    let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let expected = if names.len() > 12 { what.to_owned() } else { format!("{what}: {}", names.join(", ")) };
    Kind::new(expected, move |node| {
        let given = node.as_text().ok_or_else(String::new)?;
        let found = words.iter().find(|(word, _)| word == given);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let near = suggestion(given, words.iter().map(|(word, _)| word.as_str()));
            near.trim_start_matches(", ").to_owned()
        })
    })
}

/// [`choice`] of words known when the program was written.
pub(crate) fn one_of<T: Clone + 'static>(what: &str, words: &[(&str, T)]) -> Kind<T> {
    choice(what, words.iter().map(|(word, value)| ((*word).to_owned(), value.clone())).collect())
}

/// A single word.
fn word<T: Clone + 'static>(word: &'static str, value: T) -> Kind<T> {
    Kind::new(format!("{word:?}"), move |node| match node.as_text() {
        Some(text) if text == word => Ok(value.clone()),
        _ => Err(String::new()),
    })
}

fn quantity<T: 'static>(
    dimension: &Dimension,
    parse: impl Fn(&str) -> Result<T, QuantityError> + 'static,
) -> Kind<T> {
    let units = if dimension.units.is_empty() { String::new() } else { format!(" ({})", dimension.units) };
    let expected = format!("{} such as {:?}{units}", dimension.noun, dimension.example);
    Kind::new(expected, move |node| match node.as_text() {
        Some(text) => parse(text).map_err(reason),
        None => Err(String::new()),
    })
}

fn as_number(node: &Node) -> Result<f64, String> {
    match &node.value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(text) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err("it is not finite".to_owned()),
        },
        _ => Err(String::new()),
    }
}

fn reason(error: impl Display) -> String {
    error.to_string()
}
