//! A reader's side of the monitor's local socket.

use crate::document::HostDocument;
use cutline_service::{ExchangeError, LineClient};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::Duration;
use std::io;
use std::path::Path;

/// The longest answer, bytes: rows of all processes at their limits.
const LONGEST_ANSWER: usize = 512 << 20;
/// Time that a monitor may take to answer, unless the client sets another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the monitor of this host.
#[derive(Debug)]
pub struct MonitorClient {
    client: LineClient,
    patience: Duration,
}

/// Reason why the monitor has not answered.
#[derive(Debug, thiserror::Error)]
pub enum MonitorClientError {
    /// No monitor listens, or this process may not query it.
    #[error(
        "no monitor answers at {path} ({error}): `sudo cutline monitor` starts one, and so does a table [monitor] in the file of cutlined"
    )]
    Away {
        /// Path of the socket.
        path: String,
        /// Reason of the system.
        error: io::Error,
    },
    /// A monitor that does not answer in time, or has gone.
    #[error("the monitor does not answer: {0}")]
    Silent(String),
    /// A monitor that refuses the request.
    #[error("the monitor refused the request: {0}")]
    Refused(String),
    /// An answer that is not understood.
    #[error("the monitor's answer is not understood ({0}): is it of another version?")]
    Other(String),
}

impl MonitorClient {
    /// Connects to the monitor that listens at `path`.
    ///
    /// # Errors
    /// When there is none.
    pub fn connect(path: &Path) -> Result<Self, MonitorClientError> {
        LineClient::connect(path, LONGEST_ANSWER, PATIENCE)
            .map(|client| Self { client, patience: PATIENCE })
            .map_err(|error| MonitorClientError::Away { path: Printable(path.display()).to_string(), error })
    }

    /// Sets the time that the monitor may take to answer, instead of 10 s.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Requests the document of the host.
    ///
    /// # Errors
    /// When the monitor does not answer, or refuses.
    pub fn host(&mut self) -> Result<HostDocument, MonitorClientError> {
        let until = now().saturating_add(self.patience);
        self.client.send("host", until).map_err(silent)?;
        let line = self.client.next(until).map_err(silent)?;
        let line = line.ok_or_else(|| MonitorClientError::Silent("it takes too long".to_owned()))?;
        serde_json::from_slice(line).map_err(|error| refused(line).unwrap_or_else(|| other(&error)))
    }
}

fn other(error: &serde_json::Error) -> MonitorClientError {
    MonitorClientError::Other(error.to_string())
}

fn refused(line: &[u8]) -> Option<MonitorClientError> {
    let answer: serde_json::Value = serde_json::from_slice(line).ok()?;
    let why = answer.get("error")?.as_str()?;
    Some(MonitorClientError::Refused(Printable(why).to_string()))
}

fn silent(error: ExchangeError) -> MonitorClientError {
    let why = match error {
        ExchangeError::Io(error) => error.to_string(),
        ExchangeError::Closed => "it has closed the connection".to_owned(),
        ExchangeError::Late => "it takes too long".to_owned(),
        ExchangeError::TooLong(_) => "its answer is too long".to_owned(),
    };
    MonitorClientError::Silent(why)
}
