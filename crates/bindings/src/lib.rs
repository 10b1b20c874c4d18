//! What the faces of QoS sockets in other languages have in common.
//!
//! A language without Rust's types says what it needs by names and texts, and is told what it gets as numbers:
//!
//! - [`Options`]: the options of a socket, by the names and texts that specification files have, or from such a file.
//! - [`Mib`] and [`Event`]: plain structs, laid out as C lays them out.
//!
//! Here are no sockets: those are in `cutline-socket`, and the functions of a language are in its own crate.

mod event;
mod mib;
mod options;

pub use event::{Event, EventKind, Side, TEXT};
pub use mib::{
    Axis, Details, Direction, Distribution, Interval, MEASURES, Mib, Negotiation, Requirements, SentInterval,
    Tcp, Tfrc, Totals,
};
pub use options::Options;

use cutline_units::Duration;

/// A time in nanoseconds.
fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// A time in nanoseconds; -1 if it is unknown.
fn nanos_or_unknown(time: Option<Duration>) -> i64 {
    time.map_or(-1, nanos)
}

/// A count as C has it; what is larger than any count is the largest.
fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
