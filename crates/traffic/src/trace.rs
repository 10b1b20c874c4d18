//! A recorded trace as text: a line for each message, its time in seconds from the beginning and its size in bytes.
//!
//! ```text
//! # a comment
//! 0.000  160
//! 0.020  160
//! ```
//!
//! Columns are separated by blanks or a comma; times do not go backwards. `tshark -T fields -e frame.time_relative -e
//! udp.length` writes such lines.

use cutline_transport::app::Recorded;
use cutline_units::Duration;

/// Why a text is no trace: which line, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text:?}: {allowed}")]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What it may say.
    pub allowed: &'static str,
}

/// Reads a trace.
///
/// # Errors
/// The first line that is wrong.
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
            return Err(wrong("times do not go backwards"));
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
    fn lines_are_messages() {
        let read = parse_trace("# time size\n0 160\n\n0.02,\t500 # two\n").unwrap();
        let at = Duration::from_millis;
        assert_eq!(read, [Recorded { at: at(0), bytes: 160 }, Recorded { at: at(20), bytes: 500 }]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let why = |text| parse_trace(text).unwrap_err().to_string();
        assert_eq!(why("0 1\n0.5"), "line 2: \"0.5\": two columns: seconds and bytes");
        assert_eq!(why("x 1"), "line 1: \"x 1\": a time of 0..1000000 seconds");
        assert_eq!(why("1 0"), "line 1: \"1 0\": a size of 1..1000000000 bytes");
        assert_eq!(why("1 1\n0.5 1"), "line 2: \"0.5 1\": times do not go backwards");
        assert!(why("# nothing").contains("at least one message"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,60}") {
            let _ = parse_trace(&text);
        }
    }
}
