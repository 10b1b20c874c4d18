//! The kinds of value that keys have: rates, times, sizes, counts, switches, names, choices.

use crate::quantity::{self, DURATION, Dimension, FREQUENCY, PACKETS, QuantityError, RATE, SIZE};
use crate::suggestion::suggestion;
use crate::value::{Node, Value};
use cutline_units::{Bytes, Duration, Probability, Rate};

/// A kind of value: its description in messages, and the conversion of a value of the file to a `T`.
pub struct ValueKind<T> {
    /// Expectation in messages: `a rate such as "15 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)`.
    pub expected: String,
    read: Reading<T>,
}

/// Converts a value. An error is a reason to add to the description of the expected value; it may be empty.
type Reading<T> = Box<dyn Fn(&Node) -> Result<T, String>>;

impl<T: 'static> ValueKind<T> {
    /// A kind that messages call `expected`. The error of `read` is a reason to add to that; it may be empty.
    pub fn new(expected: impl Into<String>, read: impl Fn(&Node) -> Result<T, String> + 'static) -> Self {
        Self { expected: expected.into(), read: Box::new(read) }
    }

    /// The values of this kind that `allowed` accepts; `condition` describes them.
    pub fn only(self, condition: &str, allowed: impl Fn(&T) -> bool + 'static) -> Self {
        let Self { expected, read } = self;
        let check = move |node: &Node| {
            read(node).and_then(|value| if allowed(&value) { Ok(value) } else { Err(String::new()) })
        };
        Self::new(format!("{expected}, {condition}"), check)
    }

    /// The same kind with every value converted by `change`.
    pub fn map<U: 'static>(self, change: impl Fn(T) -> U + 'static) -> ValueKind<U> {
        let Self { expected, read } = self;
        ValueKind::new(expected, move |node| read(node).map(&change))
    }

    /// The values of this kind and of another.
    pub fn or(self, other: Self) -> Self {
        let expected = format!("{} or {}", self.expected, other.expected);
        Self::new(expected, move |node| {
            (self.read)(node).or_else(|first| {
                // Without a reason, the description of the expected value is enough: the value has the form of the first kind, and is out of its range.
                (other.read)(node)
                    .map_err(|second| if second.is_empty() || first.is_empty() { first } else { second })
            })
        })
    }

    /// Converts a value of the file.
    ///
    /// # Errors
    /// When it is not allowed: a reason to add to the description of the expected value, which may be empty.
    pub fn read(&self, node: &Node) -> Result<T, String> {
        (self.read)(node)
    }
}

/// A bit rate, above zero.
pub fn rate() -> ValueKind<Rate> {
    quantity(&RATE, quantity::rate).only("above 0", |rate| rate.as_bps() > 0)
}

/// A duration, zero included.
pub fn duration() -> ValueKind<Duration> {
    quantity(&DURATION, quantity::duration)
}

/// A duration above zero.
pub fn positive_duration() -> ValueKind<Duration> {
    duration().only("above 0", |duration| !duration.is_zero())
}

/// A list of `len` values, which messages call `what`.
pub fn list<T: 'static>(len: usize, what: &str, each: ValueKind<T>) -> ValueKind<Vec<T>> {
    ValueKind::new(format!("a list of {len} {what}"), move |node| {
        let Value::List(list) = &node.value else { return Err(String::new()) };
        if list.len() != len {
            return Err(format!("it has {}", list.len()));
        }
        list.iter().map(|node| each.read(node)).collect()
    })
}

/// A size in bytes, zero included.
pub fn size() -> ValueKind<Bytes> {
    quantity(&SIZE, quantity::size)
}

/// A size of at least one byte.
pub fn positive_size() -> ValueKind<Bytes> {
    size().only("above 0", |size| size.get() > 0)
}

/// A size that fits a packet, 1..=65535 bytes (the total length of an IPv4 packet, RFC 791 section 3.1).
pub fn packet_size() -> ValueKind<Bytes> {
    size().only("from 1 B to 65535 B", |size| (1..=65_535).contains(&size.get()))
}

/// A number of packets, zero included.
pub fn any_packets() -> ValueKind<u64> {
    quantity(&PACKETS, quantity::packets)
}

/// A number of packets, at least one.
pub fn packets() -> ValueKind<u64> {
    any_packets().only("at least 1 packet", |packets| *packets > 0)
}

/// A frequency in hertz, zero included.
pub fn any_frequency() -> ValueKind<f64> {
    quantity(&FREQUENCY, quantity::frequency)
}

/// A finite number.
pub fn number() -> ValueKind<f64> {
    ValueKind::new("a number such as 1.5", as_number)
}

/// A probability or another share of a whole: a number such as 0.05, or a percentage such as `"5 %"`.
pub fn share() -> ValueKind<f64> {
    ValueKind::new("a number such as 0.05, or a percentage such as \"5 %\"", |node| match node.as_text() {
        Some(text) => quantity::percent(text).map(Probability::get).map_err(|error| error.to_string()),
        None => as_number(node),
    })
}

/// A number of per cent: 5 and `"5 %"` are the same.
pub fn percentage() -> ValueKind<f64> {
    ValueKind::new("a number of per cent, such as 5 or \"5 %\"", |node| match node.as_text() {
        Some(text) => quantity::percentage(text).map_err(|error| error.to_string()),
        None => as_number(node),
    })
}

/// A whole number of per cent from 0 to `most`: 150 and `"150 %"` are the same.
///
/// # Panics
/// When `most` is negative.
pub fn whole_percentage(most: i64) -> ValueKind<u64> {
    let number = integer(0, most);
    let expected = format!("{} of per cent, such as 50 or \"50 %\"", number.expected);
    ValueKind::new(expected, move |node| match node.as_text() {
        Some(text) => {
            let value = quantity::whole_percentage(text).map_err(|error| error.to_string())?;
            if i64::try_from(value).is_ok_and(|value| value <= most) { Ok(value) } else { Err(String::new()) }
        }
        None => number.read(node),
    })
}

/// A whole number from `low` to `high`; `i64::MAX` stands for no upper limit.
///
/// # Panics
/// When `low` is negative.
pub fn integer(low: i64, high: i64) -> ValueKind<u64> {
    assert!(low >= 0, "counts are not negative");
    let range = if high == i64::MAX { format!("of at least {low}") } else { format!("from {low} to {high}") };
    ValueKind::new(format!("a whole number {range}"), move |node| match node.value {
        Value::Integer(number) if (low..=high).contains(&number) => Ok(number as u64),
        _ => Err(String::new()),
    })
}

/// `true` or `false`.
pub fn flag() -> ValueKind<bool> {
    ValueKind::new("true or false", |node| match node.value {
        Value::Flag(flag) => Ok(flag),
        _ => Err(String::new()),
    })
}

/// A string.
pub fn text() -> ValueKind<String> {
    ValueKind::new("a text in quotes", |node| node.as_text().map(str::to_owned).ok_or_else(String::new))
}

/// A name of letters, digits, `-` and `_`, which can be part of a path of keys and of a file's name.
pub fn name() -> ValueKind<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text().only("of letters, digits, - and _", move |name| !name.is_empty() && name.chars().all(good))
}

/// The longest name of an interface, bytes (`IFNAMSIZ`, less the zero at its end).
const LONGEST_INTERFACE: usize = 15;

/// The longest path of a local socket, bytes (unix(7): `sun_path`, less the zero at its end).
const LONGEST_SOCKET_PATH: usize = 107;

/// The name of a network interface.
pub fn interface() -> ValueKind<String> {
    let fits = |name: &String| (1..=LONGEST_INTERFACE).contains(&name.len());
    text().only("the name of an interface, of 1 to 15 bytes", fits)
}

/// An absolute path that a local socket can have.
pub fn absolute_path() -> ValueKind<String> {
    let fits =
        |path: &String| path.starts_with('/') && path.len() <= LONGEST_SOCKET_PATH && !path.contains('\0');
    text().only("an absolute path of at most 107 bytes", fits)
}

/// The most words that a message lists.
const MOST_WORDS: usize = 24;

/// One of a few words, each standing for a value. `what` describes them in messages.
pub fn choice<T: Clone + 'static>(what: &str, words: Vec<(String, T)>) -> ValueKind<T> {
    let names: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let expected = match names.len() {
        0 => format!("{what}; there is none"),
        1..=MOST_WORDS => format!("{what}: {}", names.join(", ")),
        _ => what.to_owned(),
    };
    ValueKind::new(expected, move |node| {
        let given = node.as_text().ok_or_else(String::new)?;
        let found = words.iter().find(|(word, _)| word == given);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let near = suggestion(given, words.iter().map(|(word, _)| word.as_str()));
            near.trim_start_matches(", ").to_owned()
        })
    })
}

/// [`choice`] of words known when the program was written.
pub fn one_of<T: Clone + 'static>(what: &str, words: &[(&str, T)]) -> ValueKind<T> {
    choice(what, words.iter().map(|(word, value)| ((*word).to_owned(), value.clone())).collect())
}

/// A single word, standing for a value.
pub fn word<T: Clone + 'static>(word: &'static str, value: T) -> ValueKind<T> {
    ValueKind::new(format!("{word:?}"), move |node| match node.as_text() {
        Some(text) if text == word => Ok(value.clone()),
        _ => Err(String::new()),
    })
}

fn quantity<T: 'static>(
    dimension: &Dimension,
    parse: impl Fn(&str) -> Result<T, QuantityError> + 'static,
) -> ValueKind<T> {
    let units = if dimension.units.is_empty() { String::new() } else { format!(" ({})", dimension.units) };
    let expected = format!("{} such as {:?}{units}", dimension.noun, dimension.example);
    ValueKind::new(expected, move |node| match node.as_text() {
        Some(text) => parse(text).map_err(|error| error.to_string()),
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
