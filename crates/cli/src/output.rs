//! Results on stdout.

use crate::exit::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};
use std::ops::ControlFlow;

/// Writes a result to stdout. A reader that has had enough (`| head`) is no error.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    print_on(text).map(drop)
}

/// Writes a part of what has no end to stdout; breaks when its reader has had enough.
///
/// # Errors
/// When it cannot be written.
pub fn print_on(text: &str) -> Result<ControlFlow<()>, Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Failure::Failed(format!("stdout cannot be written: {error}"))),
    }
}

/// Writes one JSON document in a line to stdout.
///
/// # Errors
/// When it cannot be written.
pub fn print_json_line(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(document).expect("the documents have text keys only");
    print(&(text + "\n"))
}

/// Writes one JSON document to stdout; a number that is not finite is null.
///
/// # Errors
/// When it cannot be written.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).expect("the documents have text keys only");
    print(&(text + "\n"))
}
