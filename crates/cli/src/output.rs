//! Results on stdout, messages on stderr.

use crate::exit::Failure;
use serde::Serialize;
use std::io::{ErrorKind, Write as _};
use std::ops::ControlFlow;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

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

/// Writes a message to stderr, and waits until it is written, at most for as long as `patience` says. A message that cannot
/// be written, because the disk is full or nobody reads, is lost: it neither ends the process nor keeps it.
pub fn say(message: String, patience: Option<Duration>) {
    let (written, wait) = channel();
    let write = move || {
        let _lost = anstream::stderr().write_all(message.as_bytes());
        let _is_unawaited = written.send(());
    };
    let is_started = thread::Builder::new().name("message".to_owned()).spawn(write).is_ok();
    if let Some(patience) = patience.filter(|_| is_started) {
        let _is_late = wait.recv_timeout(patience);
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
