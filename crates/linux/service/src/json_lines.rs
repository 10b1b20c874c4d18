//! Client of a service that answers in JSON, a document a line.

use crate::lines::{ExchangeError, LineClient, LineTooLong};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Time that a service may take to accept a connection, and to read a request: seconds, on a host that is busy with other work.
const PATIENCE: Duration = Duration::from_secs(10);

/// A service of this host, as messages name it.
#[derive(Debug)]
pub struct LocalService {
    /// Its name.
    pub name: &'static str,
    /// A sentence with the command that starts it.
    pub remedy: &'static str,
}

/// A client's connection to a service of this host.
#[derive(Debug)]
pub struct JsonLineClient {
    service: &'static LocalService,
    path: PathBuf,
    lines: LineClient,
}

/// Reason why the exchange with a service has failed.
#[derive(Debug, thiserror::Error)]
#[error("{} at {}: {problem}", service.name, Printable(path.display()))]
pub struct JsonLineError {
    service: &'static LocalService,
    /// The path of its socket.
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("the service does not run: {0}")]
    Absent(&'static str),
    #[error("this user may not connect: only the owner and the group of the socket may")]
    Forbidden,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the service has closed the connection")]
    Closed,
    #[error("the service has not answered in time")]
    Late,
    #[error("the service has sent an answer of another kind")]
    Unexpected,
    #[error("the service refused the request: {}", Printable(.0))]
    Refused(String),
    #[error("the answer cannot be read: {0}")]
    Line(#[from] serde_json::Error),
    #[error("the answer is longer than {} B", .0.longest)]
    TooLong(LineTooLong),
}

impl JsonLineError {
    /// Returns whether the service has not answered in time.
    pub fn is_late(&self) -> bool {
        match &self.problem {
            Problem::Late => true,
            // A service that is stopped accepts no connection.
            Problem::Io(error) => error.kind() == io::ErrorKind::WouldBlock,
            _ => false,
        }
    }
}

impl JsonLineClient {
    /// Connects to a service whose socket is at `path`, and whose lines have at most `longest` bytes.
    ///
    /// # Errors
    /// When no process listens there, or this process may not connect.
    pub fn connect(
        service: &'static LocalService,
        path: &Path,
        longest: usize,
    ) -> Result<Self, JsonLineError> {
        let path = path.to_owned();
        match LineClient::connect(&path, longest, PATIENCE) {
            Ok(lines) => Ok(Self { service, path, lines }),
            Err(error) => {
                Err(JsonLineError { service, path, problem: Problem::of_connecting(error, service) })
            }
        }
    }

    /// Sends a line, to which its end is added.
    ///
    /// # Errors
    /// When the connection has ended, or the service does not read.
    pub fn send(&mut self, line: &str) -> Result<(), JsonLineError> {
        let sent = self.lines.send(line, now().saturating_add(PATIENCE));
        sent.map_err(|error| self.error(error.into()))
    }

    /// Returns the next document of the service, or `None` if none arrives within `time`.
    ///
    /// # Errors
    /// When the connection has ended, or the line is not a document of this type.
    pub fn receive<T: DeserializeOwned>(&mut self, time: Duration) -> Result<Option<T>, JsonLineError> {
        let document = match self.lines.next(now().saturating_add(time)) {
            Ok(None) => return Ok(None),
            Ok(Some(line)) => serde_json::from_slice(line).map_err(Problem::from),
            Err(error) => Err(error.into()),
        };
        document.map(Some).map_err(|problem| self.error(problem))
    }

    /// Returns the answer to the first request of a connection.
    ///
    /// # Errors
    /// Those of [`JsonLineClient::receive`], and when the service does not answer in time.
    pub fn greeting<T: DeserializeOwned>(&mut self) -> Result<T, JsonLineError> {
        self.receive(PATIENCE)?.ok_or_else(|| self.late())
    }

    /// Returns a document that is a part of a line.
    ///
    /// # Errors
    /// When it is not a document of this type.
    pub fn document<T: DeserializeOwned>(&self, part: serde_json::Value) -> Result<T, JsonLineError> {
        serde_json::from_value(part).map_err(|error| self.error(error.into()))
    }

    /// Returns the error for a request that the service has not answered in time.
    pub fn late(&self) -> JsonLineError {
        self.error(Problem::Late)
    }

    /// Returns the error for an answer to another request.
    pub fn unexpected(&self) -> JsonLineError {
        self.error(Problem::Unexpected)
    }

    /// Returns the error for a refusal with this message.
    pub fn refused(&self, message: String) -> JsonLineError {
        self.error(Problem::Refused(message))
    }

    fn error(&self, problem: Problem) -> JsonLineError {
        JsonLineError { service: self.service, path: self.path.clone(), problem }
    }
}

impl AsFd for JsonLineClient {
    /// The descriptor to wait for. It does not report lines that are already received: before waiting, receive until there
    /// is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}

impl Problem {
    fn of_connecting(error: io::Error, service: &LocalService) -> Self {
        match error.kind() {
            // A service that was killed leaves its socket behind.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Self::Absent(service.remedy),
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            _ => error.into(),
        }
    }
}

impl From<ExchangeError> for Problem {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Io(error) => Self::Io(error),
            ExchangeError::Closed => Self::Closed,
            ExchangeError::Late => Self::Late,
            ExchangeError::TooLong(error) => Self::TooLong(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    const SERVICE: LocalService = LocalService { name: "a service", remedy: "`start it` starts it" };

    /// The message of the error that a client reports after these bytes of its service, with the folder left out.
    fn error_after(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = JsonLineClient::connect(&SERVICE, &path, 20).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(bytes).unwrap();
        drop(stream);
        let error = client.greeting::<Vec<u8>>().unwrap_err().to_string();
        error.replace(folder.path().to_str().unwrap(), "")
    }

    #[test]
    fn errors_name_service_socket_and_reason() {
        assert_eq!(error_after(b""), "a service at /s: the service has closed the connection");
        assert_eq!(error_after(&[b'1'; 21]), "a service at /s: the answer is longer than 20 B");
        let malformed = error_after(b"[1,\n");
        assert!(malformed.starts_with("a service at /s: the answer cannot be read: EOF"), "{malformed}");
        let absent = JsonLineClient::connect(&SERVICE, Path::new("/nowhere/s"), 20).unwrap_err();
        let what_to_do = "a service at /nowhere/s: the service does not run: `start it` starts it";
        assert_eq!(absent.to_string(), what_to_do);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let killed = JsonLineClient::connect(&SERVICE, &path, 20).unwrap_err().to_string();
        assert_eq!(killed.replace(folder.path().to_str().unwrap(), "/nowhere"), what_to_do);
    }

    #[test]
    fn documents_arrive_in_order_and_silence_is_not_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = JsonLineClient::connect(&SERVICE, &path, 20).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"[1]\n[2,3]\n").unwrap();
        assert_eq!(client.greeting::<Vec<u8>>().unwrap(), [1]);
        assert_eq!(client.receive::<Vec<u8>>(PATIENCE).unwrap(), Some(vec![2, 3]));
        assert_eq!(client.receive::<Vec<u8>>(Duration::from_millis(1)).unwrap(), None);
        assert!(client.late().is_late() && !client.unexpected().is_late());
        assert_eq!(
            client.refused("no".to_owned()).problem.to_string(),
            "the service refused the request: no"
        );
    }
}
