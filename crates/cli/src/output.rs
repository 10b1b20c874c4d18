//! Results on stdout.

use crate::exit::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};

/// Writes a result to stdout. A reader that has had enough (`| head`) is no error.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON document to stdout; a number that is not finite is null.
///
/// # Errors
/// When it cannot be written.
pub fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).expect("the documents have text keys only");
    print(&(text + "\n"))
}
