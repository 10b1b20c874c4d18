//! The requests that a running router answers by its socket. A request is one line.

use cutline_config::quantity::{self, QuantityError};
use cutline_units::Duration;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A request. Its text is the line that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterRequest {
    /// The statistics.
    Statistics,
    /// The current configuration.
    Configuration,
    /// The status of reloads.
    Reload,
    /// The reservations: a line for each, and one at the end.
    Reservations,
    /// The statistics, repeatedly at this interval.
    Watch(Duration),
}

/// Reason why a line is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request is not known.
    #[error(
        "request {0:?} is not known: allowed are stats, config, reload status, reservations, watch TIME, and JSON objects that reserve"
    )]
    Unknown(String),
    /// The time is missing.
    #[error("watch: no time is given: allowed is a time from {least} to {most}", least = RouterRequest::WATCH.start(), most = RouterRequest::WATCH.end())]
    NoTime,
    /// The time is too short or too long.
    #[error("watch {0}: allowed is a time from {least} to {most}", least = RouterRequest::WATCH.start(), most = RouterRequest::WATCH.end())]
    OutOfRange(Duration),
    /// The time cannot be parsed.
    #[error("watch {0}: {1}")]
    NotATime(String, QuantityError),
}

impl RouterRequest {
    /// The allowed intervals of a watch.
    pub const WATCH: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
}

impl fmt::Display for RouterRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Statistics => f.write_str("stats"),
            Self::Configuration => f.write_str("config"),
            Self::Reload => f.write_str("reload status"),
            Self::Reservations => f.write_str("reservations"),
            Self::Watch(time) => write!(f, "watch {} ns", time.as_nanos()),
        }
    }
}

impl FromStr for RouterRequest {
    type Err = RequestError;

    fn from_str(line: &str) -> Result<Self, RequestError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["stats"] => Ok(Self::Statistics),
            ["config"] => Ok(Self::Configuration),
            ["reload", "status"] => Ok(Self::Reload),
            ["reservations"] => Ok(Self::Reservations),
            ["watch"] => Err(RequestError::NoTime),
            ["watch", ref time @ ..] => {
                let text = time.join(" ");
                let time = quantity::duration(&text).map_err(|error| RequestError::NotATime(text, error))?;
                let is_allowed = Self::WATCH.contains(&time);
                if is_allowed { Ok(Self::Watch(time)) } else { Err(RequestError::OutOfRange(time)) }
            }
            _ => Err(RequestError::Unknown(line.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let watch = RouterRequest::Watch(Duration::from_micros(100_001));
        for request in [
            RouterRequest::Statistics,
            RouterRequest::Configuration,
            RouterRequest::Reload,
            RouterRequest::Reservations,
            watch,
        ] {
            assert_eq!(request.to_string().parse(), Ok(request));
        }
        assert_eq!("watch 1s".parse(), Ok(RouterRequest::Watch(Duration::from_secs(1))));
    }

    #[test]
    fn errors_of_requests_name_the_known_requests() {
        for (line, what) in [
            ("statistics", "allowed are stats, config, reload status, reservations, watch TIME"),
            ("", "is not known"),
            ("watch", "no time is given"),
            ("watch 1 ms", "a time from 100 ms to 3600 s"),
            ("watch soon", "starts with no decimal number"),
        ] {
            let error = line.parse::<RouterRequest>().unwrap_err().to_string();
            assert!(error.contains(what), "{line}: {error}");
        }
    }
}
