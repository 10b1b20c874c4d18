//! The messages of a session, and how they are read and written: JSON, one message a line.

use crate::report::MeterReport;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};

/// The version of the protocol: both ends must have the same.
pub const PROTOCOL: u32 = 1;
/// The longest request, bytes.
pub const LONGEST_REQUEST: u64 = 4096;
/// The longest reply, bytes: a report of many flows with many intervals.
pub const LONGEST_REPLY: u64 = 1 << 30;

/// A request of the sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Asks for the receiver's clock.
    Clock,
    /// Asks for a run.
    Start(Start),
    /// Asks for the report.
    Finish,
}

/// The run that a sender asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The number of flows.
    pub flows: u32,
    /// The run's zero on the receiver's clock, ns.
    pub zero_ns: u64,
    /// The end of sending, from the run's zero, ns.
    pub until_ns: u64,
    /// The width of the intervals that the receiver keeps, ns; `None` for no intervals.
    pub interval_ns: Option<u64>,
}

/// A reply of the receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The first message of a session, sent without a request.
    Hello(Hello),
    /// The receiver's clock.
    Clock {
        /// When the request came, ns of the receiver's clock.
        came_ns: u64,
        /// When this reply left, ns of the receiver's clock.
        left_ns: u64,
    },
    /// The run can start.
    Ready {
        /// The port that traffic goes to.
        port: u16,
    },
    /// What the receiver has measured.
    Report(Box<MeterReport>),
    /// The receiver does not do what was asked, and why.
    Refused(String),
}

/// How a receiver introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol. Its name tells our receivers from others that speak JSON.
    pub cutline_tg: u32,
    /// `/proc/sys/kernel/random/boot_id`: the same on the same machine.
    pub boot_id: String,
}

/// A message as it is sent: its JSON and the end of the line.
///
/// # Errors
/// When it is not possible as JSON.
pub fn write_message(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the next message, of at most `longest` bytes; `None` at the end.
///
/// # Errors
/// When it cannot be read, is too long, has no end, or is not a message of this kind.
pub fn read_message<T: DeserializeOwned>(from: impl BufRead, longest: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let length = from.take(longest).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => serde_json::from_slice(&line).map(Some).map_err(io::Error::from),
        Some(_) if length as u64 == longest => {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("a line of more than {longest} bytes")))
        }
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
