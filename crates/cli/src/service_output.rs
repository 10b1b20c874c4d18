//! Output of commands that serve others until they are stopped. It never blocks the service: unread output is dropped and counted.

use crate::exit::Failure;
use crate::screen::SCREEN;
use cutline_service::{FlushResult, OutputQueue, OutputSender};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time that output may take to be written after Ctrl-C or SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stdout and stderr of a service.
pub struct ServiceOutput {
    results: OutputQueue<String>,
    messages: OutputQueue<String>,
    stop: Arc<AtomicBool>,
}

impl ServiceOutput {
    /// Opens stdout and stderr. After `stop` is set, output that is not read within two seconds is lost.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the queue escapes them")]
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let results = OutputQueue::new(stdout, SCREEN, |text| text);
        let messages = OutputQueue::new(stderr, SCREEN, |message: String| message + "\n");
        Self { results, messages, stop }
    }

    /// Prints a result, whole lines, on stdout.
    pub fn print(&self, text: String) {
        // One that finds no room is counted.
        let _counted = self.results.try_send(text);
    }

    /// Prints a message on stderr, on a line.
    pub fn say(&self, message: String) {
        let _counted = self.messages.try_send(message);
    }

    /// Returns a sender of messages from other threads.
    pub fn messages(&self) -> OutputSender<String> {
        self.messages.sender()
    }

    /// Waits until everything is written, with the last result; not for long after the service was stopped.
    ///
    /// # Errors
    /// When stdout could not be written. A reader that does not read is not an error.
    pub fn finish(self, last: Option<String>) -> Result<(), Failure> {
        let Self { results, messages, stop } = self;
        let mut until = None;
        let mut gives_up =
            || stop.load(Ordering::Relaxed) && now() >= *until.get_or_insert_with(|| now() + PATIENCE);
        let (written, dropped) = results.finish_unless(last, &mut gives_up);
        let lost = match &written {
            FlushResult::Incomplete => Some("stdout is not read: the rest is lost".to_owned()),
            FlushResult::Complete if dropped > 0 => Some(format!("stdout: {dropped} results were dropped")),
            FlushResult::Complete | FlushResult::Failed(_) => None,
        };
        let until: Instant = now() + PATIENCE;
        messages.finish_unless(lost, || stop.load(Ordering::Relaxed) && now() >= until);
        match written {
            FlushResult::Failed(error) => Err(Failure::Failed(format!(
                "cannot write to stdout: {error}; {dropped} results were dropped"
            ))),
            FlushResult::Complete | FlushResult::Incomplete => Ok(()),
        }
    }
}
