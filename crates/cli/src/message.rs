//! Messages on stderr.

use crate::screen::harmless;
use std::io::Write as _;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Writes a message to stderr, on a line.
#[expect(clippy::disallowed_methods, reason = "this is a place that escapes")]
pub fn print(text: &str) {
    // A message that cannot be written is lost; the command continues.
    let _lost = anstream::stderr().lock().write_all((harmless(text).into_owned() + "\n").as_bytes());
}

/// Writes a message to stderr, and waits at most `patience` until it is written. If it cannot be written, because the disk is
/// full or not read, the message is lost; the process continues.
pub fn write(message: String, patience: Option<Duration>) {
    let (written, wait) = channel();
    let task = move || {
        #[expect(clippy::disallowed_methods, reason = "this is a place that escapes")]
        let _lost = anstream::stderr().write_all(harmless(&message).as_bytes());
        let _is_unawaited = written.send(());
    };
    let is_started = thread::Builder::new().name("message".to_owned()).spawn(task).is_ok();
    if let Some(patience) = patience.filter(|_| is_started) {
        let _is_late = wait.recv_timeout(patience);
    }
}
