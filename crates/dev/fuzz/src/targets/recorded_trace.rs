//! Recorded traces as text: `cutline_traffic::parse_trace`.
//!
//! - Times do not go backwards, and times and sizes are within their ranges.
//! - Traces read back the same after they were written.
//! - An error names a line of the input, and the allowed values.

use cutline_traffic::parse_trace;
use std::fmt::Write as _;

pub fn parse(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let messages = match parse_trace(text) {
        Ok(messages) => messages,
        Err(error) => {
            assert!(error.line <= text.lines().count() && !error.allowed.is_empty(), "{error:?}");
            assert!(text.contains(&error.text), "{error:?}");
            return false;
        }
    };
    assert!(messages.is_sorted_by_key(|message| message.at));
    let mut written = String::new();
    for message in &messages {
        assert!((1..=1_000_000_000).contains(&message.bytes), "{message:?}");
        let ns = message.at.as_nanos();
        assert!(ns <= 1_000_000 * 1_000_000_000, "{message:?}");
        let _ = writeln!(written, "{}.{:09} {}", ns / 1_000_000_000, ns % 1_000_000_000, message.bytes);
    }
    assert_eq!(parse_trace(&written).as_ref(), Ok(&messages), "{written}");
    true
}
