//! Parts that the bindings of QoS sockets for other languages share.
//!
//! A language without Rust's types sets options by names and texts, and reads results as numbers:
//!
//! - [`Options`]: the options of a socket, by the names and texts that specification files have, or from such a file.
//! - [`Mib`], [`SessionEvent`] and [`ReservationEvent`]: plain structs, laid out as C lays them out.
//! - [`NameTable`]: the words for the numbers in these structs.
//! - [`AnySocket`]: a socket of any kind behind one handle.
//! - [`protect_thread`] and [`unprotect_thread`]: the protection of the calling thread.
//!
//! The sockets are those of `cutline-socket`, and the functions of a language are in its own crate.

mod address;
mod any_socket;
mod errno;
mod event;
mod mib;
mod names;
mod options;
mod protection;
mod reservation;

pub use address::{AnyAddress, is_direct};
pub use any_socket::{
    AddressText, AnyConnecting, AnySocket, CallFailure, SocketPlace, SocketType, UnsupportedCall,
};
pub use errno::errno_of;
pub use event::{EventKind, EventOrigin, SessionEvent, TrafficDirection};
pub use mib::{
    Axis, Details, DirectionMib, HistogramSummary, Interval, MEASURES, Mib, Negotiation, Requirements,
    SchedulingStats, SentInterval, Tcp, Tfrc, Totals,
};
pub use names::{NameTable, measure_names, parameter_names};
pub use options::Options;
pub use protection::{ProtectionError, ProtectionNumber, ThreadPriority, protect_thread, unprotect_thread};
pub use reservation::{
    ConnectionReservation, DirectionReservation, GrantState, Refusal, RefusalReason, ReservationEvent,
    ReservationEventKind, TokenBucket,
};

use cutline_units::Duration;
use std::io;

/// The room for a text, bytes, with the zero at its end.
pub const TEXT: usize = 512;
/// The room for the name of a service or an address, bytes, with the zero at its end.
pub const NAME: usize = 64;

/// A text in the room for it, with zeros at its end. It is cut at a character if it is longer.
fn text<const ROOM: usize>(text: &str) -> [u8; ROOM] {
    let mut room = [0; ROOM];
    let mut length = text.len().min(ROOM - 1);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    room[..length].copy_from_slice(&text.as_bytes()[..length]);
    room
}

/// The text in such a room.
fn words(room: &[u8]) -> &str {
    let end = room.iter().position(|byte| *byte == 0).unwrap_or(room.len());
    std::str::from_utf8(&room[..end]).unwrap_or_default()
}

/// Returns the system's message about an error, without its number, which languages show themselves.
pub fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// A time in nanoseconds.
fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// A time in nanoseconds; -1 if it is unknown.
fn nanos_or_unknown(time: Option<Duration>) -> i64 {
    time.map_or(-1, nanos)
}

/// A count as C has it; a larger one is the largest that C can hold.
fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
