//! The control session between a sender and a receiver: a TCP connection beside the traffic.
//!
//! Requests and replies are JSON, one per line, in this order:
//!
//! | sender | receiver | content |
//! | --- | --- | --- |
//! | | `hello` | protocol version, boot id |
//! | `clock` | `clock` | several times: NTP's exchange (RFC 5905 section 8) |
//! | `start` | `ready` | the number of flows, the run's zero on the receiver's clock; the port for the traffic |
//! | `clock` | `clock` | after the run, to measure the drift |
//! | `finish` | `report` | the meter's measurements |
//!
//! The receiver may answer any request with `refused` and a reason. A line that is too long or invalid ends the
//! session. A lost connection also ends it. Both ends keep their measurements up to then.

mod exchange;
pub mod message;
mod receiver;
mod sender;

pub use exchange::{ClockEstimate, ClockReport};
pub use receiver::{Receiver, Session};
pub use sender::{Outcome, SendParams, send};

use cutline_units::Duration;
use message::{
    Hello, LONGEST_REPLY, LONGEST_REQUEST, PROTOCOL, Reply, Request, Start, read_message, write_message,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;

/// The default port of a receiver.
pub const PORT: u16 = 5203;
/// An error that ends a session early.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The connection to the receiver failed.
    #[error("cannot connect to {address}: {source}; is `cutline tg receive` running there?")]
    Unreachable {
        /// The receiver's address and port.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server at this address is not a receiver.
    #[error("{0} does not answer as a receiver of cutline tg")]
    Stranger(String),
    /// The receiver has another version of the protocol.
    #[error(
        "the receiver has version {theirs} of the protocol, the sender has version {PROTOCOL}: \
         use the same release of cutline at both ends"
    )]
    Version {
        /// The receiver's version.
        theirs: u32,
    },
    /// The receiver refused a request, for this reason.
    #[error("the receiver refused the request: {0}")]
    Refused(String),
    /// The connection was lost.
    #[error("the connection to the other end broke: {0}")]
    Broken(io::Error),
    /// The other end did not send the expected message.
    #[error("the other end violated the protocol: {0}")]
    Unexpected(String),
    /// The receiver was stopped. It sent its measurements up to then.
    #[error("the receiver was stopped before the end")]
    Stopped,
    /// The generator or the meter failed.
    #[error(transparent)]
    Traffic(#[from] crate::TrafficError),
}

/// A connection that carries messages as lines.
struct Line {
    reader: BufReader<TcpStream>,
}

impl Line {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }

    fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.stream().write_all(&write_message(message)?)
    }

    /// Receives the next message; returns `None` at the end of the stream.
    fn receive<T: DeserializeOwned>(&mut self, longest: u64) -> io::Result<Option<T>> {
        read_message(&mut self.reader, longest)
    }

    /// Waits up to `time` for a message or the end of the stream.
    fn wait(&self, time: Duration) -> io::Result<Waited> {
        if !self.reader.buffer().is_empty() {
            return Ok(Waited::Message);
        }
        self.stream().set_read_timeout(Some(std(time)))?;
        match self.stream().peek(&mut [0]) {
            Ok(0) => Ok(Waited::End),
            Ok(_) => Ok(Waited::Message),
            Err(error) if is_timeout(&error) => Ok(Waited::Nothing),
            Err(error) => Err(error),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Message,
    Nothing,
    End,
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Converts a duration into the standard library's type, at least 1 ns.
fn std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos().max(1))
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}
