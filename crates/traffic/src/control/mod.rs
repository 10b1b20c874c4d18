//! How a sender and a receiver on different machines come together: one TCP connection beside the traffic.
//!
//! Requests and replies are JSON, one a line, in this order:
//!
//! | sender | receiver | |
//! | --- | --- | --- |
//! | | `hello` | protocol version, boot id |
//! | `clock` | `clock` | several times: NTP's exchange (RFC 5905 section 8) |
//! | `start` | `ready` | how many flows, the run's zero on the receiver's clock; the port that traffic goes to |
//! | `clock` | `clock` | after the run, so that drift is seen |
//! | `finish` | `report` | what the meter found |
//!
//! Instead of any reply there may be `refused` with a reason. A line that is longer than it can be, or is no JSON, ends the
//! session; so does a connection that breaks, and what was measured by then is kept.

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

/// The port that a receiver listens at where none is given.
pub const PORT: u16 = 5203;
/// Why a session came to an end before its time.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No connection.
    #[error("{address} cannot be reached: {source}; is `cutline tg receive` running there?")]
    Unreachable {
        /// Who was called.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody else answers there.
    #[error("{0} answers, but not as a receiver of cutline tg")]
    Stranger(String),
    /// A receiver of another version.
    #[error(
        "the receiver speaks version {theirs} of the protocol, and this is version {PROTOCOL}: use the same cutline"
    )]
    Version {
        /// Its version.
        theirs: u32,
    },
    /// It does not want to.
    #[error("the receiver refuses: {0}")]
    Refused(String),
    /// The connection broke.
    #[error("the connection to the other end broke: {0}")]
    Broken(io::Error),
    /// What came is not what should.
    #[error("the other end sent what was not asked for: {0}")]
    Unexpected(String),
    /// The receiver was stopped; what it had found by then is there.
    #[error("the receiver was stopped before the end")]
    Stopped,
    /// The traffic could not be sent or measured at all.
    #[error(transparent)]
    Traffic(#[from] crate::TrafficError),
}

/// A connection that carries a line each way.
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

    /// The next message; `None` at the end.
    fn receive<T: DeserializeOwned>(&mut self, longest: u64) -> io::Result<Option<T>> {
        read_message(&mut self.reader, longest)
    }

    /// Whether something comes, or the end, within a time.
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

/// A duration above zero as the standard library has it.
fn std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos().max(1))
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}
