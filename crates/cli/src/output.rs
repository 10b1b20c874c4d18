//! Printing of results to stdout.

use crate::exit::Failure;
use crate::screen::harmless;
use crate::wrap;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};
use std::ops::ControlFlow;

/// Writes a result to stdout. A reader that closes the pipe early (`| head`) is no error.
///
/// # Errors
/// When stdout cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// Writes words and tables to stdout. Lines that are wider than the terminal are broken between words.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_wrapped(text: &str) -> Result<(), Failure> {
    print(&wrapped(text))
}

/// Returns text whose tables fit the terminal that shows stdout.
pub fn wrapped(text: &str) -> String {
    wrap::within(text, width())
}

/// The columns of the terminal that shows stdout; `None` if it goes elsewhere.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub fn width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into())
}

/// Writes a part of an endless output to stdout. Returns `Break` if the reader has closed the pipe.
///
/// # Errors
/// When stdout cannot be written.
#[expect(clippy::disallowed_methods, reason = "this is the place that escapes")]
pub fn print_on(text: &str) -> Result<ControlFlow<()>, Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
    }
}

/// Returns a JSON document as one line.
pub fn json_line(document: &impl Serialize) -> String {
    let text = serde_json::to_string(document).expect("the documents have text keys only");
    cutline_text::json(&text).into_owned() + "\n"
}

/// Returns a JSON document as it is printed. Numbers that are not finite become null.
pub fn json(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document).expect("the documents have text keys only");
    cutline_text::json(&text).into_owned() + "\n"
}

/// Writes a JSON document to stdout. Numbers that are not finite become null.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    print(&json(document))
}
