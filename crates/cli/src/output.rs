//! Printing of results to stdout, and of messages to stderr.
//!
//! All output goes through here, [`crate::message`] or the router's outlets: clippy refuses other ways (clippy.toml). What a
//! terminal would obey is escaped, other than line ends and [`STYLES`]. A foreign text on a line is a
//! [`Printable`](cutline_text::Printable) in addition, because line ends stay here.

use crate::exit::Failure;
use cutline_text::Screen;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{ErrorKind, Write as _};
use std::ops::ControlFlow;

/// The escape sequences of our styles and of clap's: none, bold, underlined, red, green, yellow, cyan.
const STYLES: [&str; 7] = ["\x1b[0m", "\x1b[1m", "\x1b[4m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// Returns an output without what a terminal would obey.
pub fn harmless(text: &str) -> Cow<'_, str> {
    Screen { styles: &STYLES }.escaped(text)
}

/// Writes a message to stderr, on a line.
#[expect(clippy::disallowed_methods, reason = "this is the place that escapes")]
pub fn message(text: &str) {
    // A message that cannot be written is lost; the command continues.
    let _lost = anstream::stderr().lock().write_all((harmless(text).into_owned() + "\n").as_bytes());
}

/// Writes a result to stdout. A reader that closes the pipe early (`| head`) is no error.
///
/// # Errors
/// When stdout cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
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

/// Writes a JSON document as one line to stdout.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_json_line(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).expect("the documents have text keys only");
    print(&(cutline_text::json(&text).into_owned() + "\n"))
}

/// Writes a JSON document to stdout. Numbers that are not finite become null.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).expect("the documents have text keys only");
    print(&(cutline_text::json(&text).into_owned() + "\n"))
}
