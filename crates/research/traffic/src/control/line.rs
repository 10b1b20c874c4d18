//! A connection that carries messages as lines, with a deadline for each.

use super::ControlError;
use super::key::{Key, Role, Seal};
use super::message::{ControlReply, read_line, split_tag, write_message};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

/// The longest time without progress while a message is sent or received.
const LONGEST_STALL: std::time::Duration = std::time::Duration::from_secs(10);

/// A connection that carries messages.
pub(super) struct Line {
    reader: BufReader<Timed>,
    /// With a key, every message has a tag.
    seal: Option<Seal>,
}

/// A stream whose reading and writing end with an error at a deadline.
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Message,
    Nothing,
    End,
}

impl Line {
    pub(super) fn new(stream: TcpStream, seal: Option<Seal>) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(Timed { stream, deadline: Instant::ZERO }), seal })
    }

    /// Authenticates all further messages.
    pub(super) fn seal(&mut self, key: &Key, role: Role, hello: &[u8], open: &[u8]) {
        self.seal = Some(Seal::new(key, role, hello, open));
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.reader.get_ref().stream
    }

    /// Sends a message within `time`.
    pub(super) fn send(&mut self, message: &impl Serialize, time: Duration) -> Result<(), ControlError> {
        let message = write_message(message).map_err(ControlError::Broken)?;
        self.send_bytes(&message, time)
    }

    /// Sends an encoded message, which ends with a line end, within `time`. A longer one may take longer: as long as at
    /// 100 kB/s.
    pub(super) fn send_bytes(&mut self, message: &[u8], time: Duration) -> Result<(), ControlError> {
        let sealed = self.seal.as_mut().map(|seal| seal.close(message.trim_ascii_end()));
        let bytes = sealed.as_deref().unwrap_or(message);
        let timed = self.reader.get_mut();
        timed.deadline = now().saturating_add(time + Duration::from_micros(10 * bytes.len() as u64));
        timed.write_all(bytes).map_err(ControlError::Broken)
    }

    /// Receives the next message within `time`; returns `None` at the end of the stream.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        longest: u64,
        time: Duration,
    ) -> Result<Option<T>, ControlError> {
        let Some(line) = self.receive_line(longest, time)? else { return Ok(None) };
        let message = match &mut self.seal {
            None => Some(&line[..]),
            Some(seal) => seal.open(&line),
        };
        let Some(message) = message else { return Err(refusal(&line).unwrap_or(ControlError::Forged)) };
        serde_json::from_slice(message).map(Some).map_err(|error| ControlError::Broken(error.into()))
    }

    /// Receives the next line within `time`, whatever is in it.
    pub(super) fn receive_line(
        &mut self,
        longest: u64,
        time: Duration,
    ) -> Result<Option<Vec<u8>>, ControlError> {
        self.reader.get_mut().deadline = now().saturating_add(time);
        read_line(&mut self.reader, longest).map_err(ControlError::Broken)
    }

    /// Waits up to `time` for a message or the end of the stream.
    pub(super) fn wait(&self, time: Duration) -> Result<Waited, ControlError> {
        if !self.reader.buffer().is_empty() {
            return Ok(Waited::Message);
        }
        let peeked = self.stream().set_read_timeout(Some(std(time)));
        match peeked.and_then(|()| self.stream().peek(&mut [0])) {
            Ok(0) => Ok(Waited::End),
            Ok(_) => Ok(Waited::Message),
            Err(error) if is_timeout(&error) => Ok(Waited::Nothing),
            Err(error) => Err(ControlError::Broken(error)),
        }
    }
}

/// Returns the refusal in a line without a tag. A receiver that cannot authenticate a sender cannot authenticate its refusal
/// either; it ends the session in any case.
fn refusal(line: &[u8]) -> Option<ControlError> {
    if split_tag(line).is_some() {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(ControlReply::Refused(why)) => Some(ControlError::Refused(why)),
        _ => None,
    }
}

impl Timed {
    fn left(&self) -> io::Result<std::time::Duration> {
        let left = self.deadline.saturating_since(now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(std(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(late)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?.min(LONGEST_STALL)))?;
        self.stream.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the error of a call that took too long by its usual name.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Converts a duration into the standard library's type, at least 1 us: a socket's time-out of zero is none.
pub(super) fn std(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos().max(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn pair() -> (Line, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Line::new(listener.accept().unwrap().0, None).unwrap(), other)
    }

    fn is_late(error: &ControlError) -> bool {
        matches!(error, ControlError::Broken(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    #[test]
    fn a_message_byte_by_byte_ends_at_the_deadline() {
        let (mut line, mut other) = pair();
        let began = now();
        thread::scope(|scope| {
            scope.spawn(move || {
                while other.write_all(b" ").is_ok() {
                    thread::park_timeout(std::time::Duration::from_millis(20));
                }
            });
            let error = line.receive::<ControlReply>(1 << 20, Duration::from_millis(300)).unwrap_err();
            assert!(is_late(&error), "{error:?}");
            drop(line);
        });
        assert!(now().saturating_since(began) < Duration::from_secs(60));
    }

    #[test]
    fn writing_an_unread_message_ends_at_the_deadline() {
        let (mut line, _other) = pair();
        let began = now();
        let long = [&vec![b' '; 16 << 20][..], b"\n"].concat();
        line.reader.get_mut().deadline = began + Duration::from_millis(300);
        let error = line.reader.get_mut().write_all(&long).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(now().saturating_since(began) < Duration::from_secs(60));
    }
}
