//! Recorded traces as text. Each line is a message: its time in seconds since the start, and its size in bytes.
//!
//! ```text
//! # a comment
//! 0.000  160
//! 0.020  160
//! ```
//!
//! Spaces, tabs or a comma separate the columns. Times must not decrease. `tshark -T fields -e frame.time_relative -e
//! udp.length` writes such lines, but its length counts the header of 8 B, which is to be taken off.

use cutline_transport::app::Recorded;
use cutline_units::Duration;

/// The error for an invalid trace: the line, and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?}: {allowed}")]
pub struct TraceError {
    /// The line number, from 1; 0 for the whole text.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The allowed values.
    pub allowed: &'static str,
}

/// Reads a trace.
///
/// # Errors
/// Returns the first invalid line, or an error if there is no message.
pub fn parse_trace(text: &str) -> Result<Vec<Recorded>, TraceError> {
    let mut messages: Vec<Recorded> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let wrong = |allowed| TraceError { line, text: text.to_owned(), allowed };
        let message = message(text).map_err(wrong)?;
        if messages.last().is_some_and(|last| last.at > message.at) {
            return Err(wrong("times must not decrease"));
        }
        messages.push(message);
    }
    if messages.is_empty() {
        return Err(TraceError { line: 0, text: String::new(), allowed: "at least one message" });
    }
    Ok(messages)
}

fn message(text: &str) -> Result<Recorded, &'static str> {
    let columns: Vec<&str> = text.split([',', ' ', '\t']).filter(|column| !column.is_empty()).collect();
    let [at, bytes] = columns[..] else { return Err("two columns: seconds and bytes") };
    let at = at.parse().ok().filter(|at: &f64| (0.0..=1e6).contains(at));
    let at = Duration::from_secs_f64(at.ok_or("a time of 0..1000000 seconds")?);
    let bytes = bytes.parse().ok().filter(|bytes| (1..=1_000_000_000).contains(bytes));
    Ok(Recorded { at, bytes: bytes.ok_or("a size of 1..1000000000 bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_line_is_a_message() {
        let read = parse_trace("# time size\n0 160\n\n0.02,\t500 # two\n").unwrap();
        let at = Duration::from_millis;
        assert_eq!(read, [Recorded { at: at(0), bytes: 160 }, Recorded { at: at(20), bytes: 500 }]);
    }

    #[test]
    fn an_error_names_the_invalid_line() {
        let why = |text| parse_trace(text).unwrap_err().to_string();
        assert_eq!(why("0 1\n0.5"), "line 2: \"0.5\": two columns: seconds and bytes");
        assert_eq!(why("x 1"), "line 1: \"x 1\": a time of 0..1000000 seconds");
        assert_eq!(why("1 0"), "line 1: \"1 0\": a size of 1..1000000000 bytes");
        assert_eq!(why("1 1\n0.5 1"), "line 2: \"0.5 1\": times must not decrease");
        assert!(why("# nothing").contains("at least one message"));
    }

    proptest! {
        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,60}") {
            let _ = parse_trace(&text);
        }
    }
}
