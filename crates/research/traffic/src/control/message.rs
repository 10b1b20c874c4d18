//! Reads and writes the messages of a session: JSON, one message per line.

pub use super::reverse::{Carrier, Law, Member, ReverseFlows, Setting, TestParameters};
use crate::host::HostUse;
use crate::report::{MeterReport, SenderReport};
pub use cutline_signal::authentication::TAG;
use cutline_units::Duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};

/// The version of the protocol. Both ends must have the same version.
pub const PROTOCOL: u32 = 5;
/// The longest request but `start`, bytes.
pub const LONGEST_REQUEST: u64 = 4096;
/// The longest `start`, bytes. It names the flows that the receiver sends.
pub const LONGEST_START: u64 = 1 << 20;
/// The longest reply, bytes. A report of many flows with many intervals is long.
pub const LONGEST_REPLY: u64 = 1 << 30;

/// Interval of a sender's signs of life during a run.
pub const BEAT: Duration = Duration::from_secs(2);
/// The longest silence of a sender during a run. A process that was stopped, whose kernel still answers, is silent.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(15);

/// The length of a tag in a line, hexadecimal digits.
const DIGITS: usize = 2 * TAG;

/// A request of the sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlRequest {
    /// The first message of a sender.
    Open(Open),
    /// Request for the receiver's clock.
    Clock,
    /// Request for a run.
    Start(RunRequest),
    /// Question whether the receiver has the connections and the proven paths of all flows that it sends.
    Gather,
    /// Start of the run.
    Begin(Begin),
    /// Sign of life of the sender during the run. There is no reply.
    Alive,
    /// Request for the report.
    Finish,
}

/// The first message of a sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// A random number that the sender has never used before, in hexadecimal digits.
    pub nonce: String,
}

/// Run that a sender requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The number of flows of both directions. Their numbers are below it.
    pub flows: u32,
    /// The end of sending, from the run's zero, ns.
    pub until_ns: u64,
    /// The width of the intervals that both ends keep, ns; `None` for no intervals.
    pub interval_ns: Option<u64>,
    /// The seed of the random numbers of the flows that the receiver sends.
    #[serde(default)]
    pub seed: u64,
    /// The size of the receiver's buffer for datagrams, bytes; `None` for its default.
    #[serde(default)]
    pub receive_buffer: Option<u32>,
    /// Address of the sender on its link if it sends frames; `None` if it sends none.
    #[serde(default)]
    pub frames_from: Option<[u8; 6]>,
    /// The flows that the receiver sends.
    #[serde(default)]
    pub reverse: Vec<ReverseFlows>,
}

/// The beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The run's zero on the receiver's clock, ns.
    pub zero_ns: u64,
    /// The receiver's clock minus the sender's, ns. The receiver's messages have the time of the sender's clock.
    pub offset_ns: i64,
}

/// A reply of the receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlReply {
    /// The first message of a session, sent without a request.
    Hello(Hello),
    /// The receiver serves the sender from now on.
    Opened {
        /// The content of `/proc/sys/kernel/random/boot_id`; equal on the same machine.
        boot_id: String,
    },
    /// The receiver's clock.
    Clock {
        /// The arrival time of the request, ns of the receiver's clock.
        came_ns: u64,
        /// The departure time of this reply, ns of the receiver's clock.
        left_ns: u64,
    },
    /// The run is allowed.
    Ready {
        /// The port of the traffic.
        port: u16,
        /// The token that packets and connections must have.
        token: u64,
        /// The receiver of frames; `None` if the request has none.
        #[serde(default)]
        frames_to: Option<FramesTo>,
    },
    /// The receiver has the connections and the proven paths of all flows that it sends.
    Gathered,
    /// The receiver is ready to receive and to send.
    Begun,
    /// The receiver's measurements.
    Report(Box<Report>),
    /// The receiver refuses the request, for this reason.
    Refused(String),
}

/// The receiver of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesTo {
    /// Its address on the link.
    pub link: [u8; 6],
    /// Its port.
    pub port: u16,
}

/// The measurements of a receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Measurements of received flows.
    pub received: MeterReport,
    /// Measurements of sent flows.
    pub sent: Vec<SenderReport>,
    /// Work and losses of the receiver's host.
    pub host: HostUse,
}

/// The first message of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol. The field's name distinguishes this protocol from others that use JSON.
    pub cutline_tg: u32,
    /// Empty. Senders of version 1 report another version only if the property is there.
    #[serde(default)]
    pub boot_id: String,
    /// True if the receiver requires a key.
    #[serde(default)]
    pub key: bool,
    /// A random number that the receiver has never used before, in hexadecimal digits.
    #[serde(default)]
    pub nonce: String,
}

/// Returns the encoded message: its JSON and a line end.
///
/// # Errors
/// Returns an error if the message cannot be encoded as JSON.
pub fn write_message(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads the next message, of at most `longest` bytes; returns `None` at the end of the stream.
///
/// # Errors
/// Returns an error if the message cannot be read, is too long, has no line end, or is not of type `T`.
pub fn read_message<T: DeserializeOwned>(from: impl BufRead, longest: u64) -> io::Result<Option<T>> {
    let line = read_line(from, longest)?;
    line.map(|line| serde_json::from_slice(&line).map_err(io::Error::from)).transpose()
}

/// Reads the next line, of at most `longest` bytes with its end; returns it without its end, or `None` at the end of the
/// stream.
pub(super) fn read_line(from: impl BufRead, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let length = from.take(longest).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => {
            line.pop();
            Ok(Some(line))
        }
        Some(_) if length as u64 == longest => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the line is longer than {longest} bytes"),
        )),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Returns the tag and the message of a line that begins with 64 hexadecimal digits and a space; `None` if it has no tag.
pub fn split_tag(line: &[u8]) -> Option<([u8; TAG], &[u8])> {
    let (digits, rest) = line.split_first_chunk::<DIGITS>()?;
    let mut tag = [0; TAG];
    for (byte, pair) in tag.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some((tag, rest.strip_prefix(b" ")?))
}
