//! A client that queries a running router by its socket.

use crate::error::{RouterClientError, RouterClientErrorKind};
use crate::request::RouterRequest;
use crate::statistics::{Statistics, StatisticsError};
use cutline_service::LineClient;
use cutline_sys::now;
use cutline_units::Duration;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// A request that has been sent, and the connection on which replies arrive.
#[derive(Debug)]
pub struct RouterClient {
    path: PathBuf,
    lines: LineClient,
    /// Longest time between two replies.
    patience: Duration,
}

/// A line from a router.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterReply {
    /// The line without its end.
    pub line: String,
    /// The statistics in the line, if it has any.
    pub statistics: Option<Statistics>,
}

/// The part that all lines of a router have in common.
#[derive(Deserialize)]
struct Event {
    event: String,
}

/// The longest line, bytes: a router's statistics have a few thousand.
pub(crate) const LONGEST: usize = 1 << 20;

impl RouterClient {
    /// Sends a request to the router whose socket is at `path`. Each reply may take `patience`, in addition to the interval of
    /// a watch.
    ///
    /// # Errors
    /// When no process listens there, or this process may not connect.
    pub fn ask(path: &Path, request: RouterRequest, patience: Duration) -> Result<Self, RouterClientError> {
        let between = if let RouterRequest::Watch(time) = request { time } else { Duration::ZERO };
        let patience = patience + between;
        let ask = || {
            let mut lines = LineClient::connect(path, LONGEST, patience)?;
            lines.send(&request.to_string(), now().saturating_add(patience))?;
            Ok(lines)
        };
        let lines = ask().map_err(|kind| RouterClientError { path: path.to_owned(), kind })?;
        Ok(Self { path: path.to_owned(), lines, patience })
    }

    /// Waits for the next reply and returns it.
    ///
    /// # Errors
    /// When no reply arrives, when it is a refusal, or when it is not from a router.
    pub fn reply(&mut self) -> Result<RouterReply, RouterClientError> {
        self.read().map_err(|kind| RouterClientError { path: self.path.clone(), kind })
    }

    fn read(&mut self) -> Result<RouterReply, RouterClientErrorKind> {
        let line = next_line(&mut self.lines, self.patience)?;
        Ok(RouterReply::parse(line)?)
    }
}

/// Returns a router's next line.
pub(crate) fn next_line(lines: &mut LineClient, patience: Duration) -> Result<&str, RouterClientErrorKind> {
    let line = lines
        .next(now().saturating_add(patience))?
        .ok_or(io::ErrorKind::TimedOut)
        .map_err(io::Error::from)?;
    let is_text = |_| io::Error::new(io::ErrorKind::InvalidData, "its line is not UTF-8");
    Ok(std::str::from_utf8(line).map_err(is_text)?)
}

impl RouterReply {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When it is a refusal, or not a line of a router.
    pub fn parse(line: &str) -> Result<Self, StatisticsError> {
        let Event { event } = serde_json::from_str(line)?;
        let is_other =
            matches!(event.as_str(), "config" | "reload" | "reservation" | "reservations" | "done");
        let statistics = (!is_other).then(|| Statistics::parse(line)).transpose()?;
        Ok(Self { line: line.to_owned(), statistics })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replies::ErrorReply;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    /// Returns a client's result of a router's answer.
    fn hear(answer: &str, request: RouterRequest) -> (String, Result<RouterReply, RouterClientError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let answer = answer.to_owned();
        let router = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream);
            let mut question = String::new();
            lines.read_line(&mut question).unwrap();
            lines.get_mut().write_all(answer.as_bytes()).unwrap();
            question
        });
        let reply = RouterClient::ask(&path, request, Duration::from_secs(60)).unwrap().reply();
        (router.join().unwrap(), reply)
    }

    #[test]
    fn answers_of_a_router_are_read() {
        let statistics = Statistics { event: "stats".to_owned(), elapsed_s: 7.0, ..Statistics::default() };
        let (question, reply) = hear(&(statistics.json() + "\n"), RouterRequest::Statistics);
        assert_eq!((question.as_str(), reply.unwrap().statistics), ("stats\n", Some(statistics)));
        let (question, reply) = hear("{\"event\":\"config\",\"config\":{}}\n", RouterRequest::Configuration);
        assert_eq!((question.as_str(), reply.unwrap().statistics), ("config\n", None));
    }

    #[test]
    fn errors_name_the_socket() {
        let missing = RouterClient::ask(Path::new("/nosuch"), RouterRequest::Reload, Duration::from_secs(1))
            .unwrap_err();
        assert!(missing.to_string().starts_with("the router at /nosuch: "), "{missing}");
        for (answer, what) in [
            ("", "it has closed its socket"),
            ("{\"event\":\"stats\"", "it has closed its socket"),
            ("words\n", "this is no line of"),
            ("{\"event\":\"stats\"}\n", "elapsed_s"),
            (&(ErrorReply::new(&"no time").json() + "\n"), "the router refused the request: no time"),
        ] {
            let (_, reply) = hear(answer, RouterRequest::Statistics);
            let error = reply.unwrap_err().to_string();
            assert!(error.contains(what), "{answer}: {error}");
        }
    }
}
