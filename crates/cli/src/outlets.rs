//! Output of commands that serve others until they are stopped. It never blocks the service: unread output is dropped and counted.

use crate::exit::Failure;
use crate::screen::SCREEN;
use cutline_service::{Outlet, Pen, Written};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time that output may take to be written after Ctrl-C or SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// Stdout and stderr of a service.
pub struct Outlets {
    results: Outlet<String>,
    messages: Outlet<String>,
    stop: Arc<AtomicBool>,
}

impl Outlets {
    /// Creates the outlets. After `stop` is set, output that is not read within two seconds is lost.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an outlet escapes")]
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let results = Outlet::new(stdout, SCREEN, |text| text);
        let messages = Outlet::new(stderr, SCREEN, |message: String| message + "\n");
        Self { results, messages, stop }
    }

    /// Prints a result, whole lines, on stdout.
    pub fn print(&self, text: String) {
        // One that finds no room is counted.
        let _counted = self.results.give(text);
    }

    /// Prints a message on stderr, on a line.
    pub fn say(&self, message: String) {
        let _counted = self.messages.give(message);
    }

    /// Returns a pen for messages from other threads.
    pub fn messages(&self) -> Pen<String> {
        self.messages.pen()
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
            Written::Waiting => Some("stdout is not read: the rest is lost".to_owned()),
            Written::Done if dropped > 0 => Some(format!("stdout: {dropped} results were dropped")),
            Written::Done | Written::Failed(_) => None,
        };
        let until: Instant = now() + PATIENCE;
        messages.finish_unless(lost, || stop.load(Ordering::Relaxed) && now() >= until);
        match written {
            Written::Failed(error) => Err(Failure::Failed(format!(
                "cannot write to stdout: {error}; {dropped} results were dropped"
            ))),
            Written::Done | Written::Waiting => Ok(()),
        }
    }
}
