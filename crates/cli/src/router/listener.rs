//! Prints the statistics and messages of a running router.

use super::text;
use crate::exit::Failure;
use crate::output;
use crate::screen::SCREEN;
use cutline_router_service::{Listener, Statistics};
use cutline_service::{FlushResult, OutputQueue};
use cutline_units::Duration;

/// Prints statistics on stdout, and messages on stderr. Neither holds up the router.
pub struct Printer {
    statistics: OutputQueue<Report>,
    messages: OutputQueue<String>,
    /// The output at the end.
    end: Option<Report>,
}

/// Statistics at some time.
enum Report {
    Interval(Statistics),
    End(Statistics),
}

/// The time for the last output after the router has ended.
const PATIENCE: Duration = Duration::from_secs(2);

impl Printer {
    /// Returns a listener that prints text or JSON.
    pub fn new(json: bool) -> Self {
        let mut last = None;
        let render = move |report| match report {
            Report::Interval(now) | Report::End(now) if json => {
                cutline_text::json(&now.json()).into_owned() + "\n"
            }
            Report::Interval(now) => {
                let text = text::since(last.as_ref(), &now);
                last = Some(now);
                output::wrapped(&text)
            }
            Report::End(now) => output::wrapped(&text::whole(&now, None)),
        };
        #[expect(clippy::disallowed_methods, reason = "the queue escapes them")]
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let statistics = OutputQueue::new(stdout, SCREEN, render);
        let messages = OutputQueue::new(stderr, SCREEN, |message: String| message + "\n");
        Self { statistics, messages, end: None }
    }

    /// Prints a message.
    pub fn say(&self, message: String) {
        // One that finds no room is counted.
        let _counted = self.messages.try_send(message);
    }

    /// Waits for a limited time until everything is printed.
    ///
    /// # Errors
    /// When stdout could not be written. A reader that does not read is not an error.
    pub fn finish(self) -> Result<(), Failure> {
        let Self { statistics, messages, end } = self;
        let (written, dropped) = statistics.finish(end, PATIENCE);
        let last = match &written {
            FlushResult::Incomplete => Some("stdout is not read".to_owned()),
            FlushResult::Complete if dropped > 0 => Some(format!("stdout: {dropped} documents were dropped")),
            FlushResult::Complete | FlushResult::Failed(_) => None,
        };
        messages.finish(last, PATIENCE);
        match written {
            FlushResult::Failed(error) => Err(Failure::Failed(format!(
                "cannot write to stdout: {error}; {dropped} documents were dropped"
            ))),
            FlushResult::Complete | FlushResult::Incomplete => Ok(()),
        }
    }
}

impl Listener for Printer {
    fn interval(&mut self, now: Statistics) {
        let _counted = self.statistics.try_send(Report::Interval(now));
    }

    fn reloaded(&mut self, result: Result<(), String>, summary: &str) {
        match result {
            Ok(()) => self.say(format!("reloaded: routing {summary}")),
            Err(why) => self.say(format!("reload failed; keeping the previous configuration:\n{why}")),
        }
    }

    fn warn(&mut self, warning: String) {
        self.say(warning);
    }

    fn end(&mut self, statistics: Statistics) {
        self.end = Some(Report::End(statistics));
    }

    fn dropped(&self) -> u64 {
        self.statistics.dropped() + self.messages.dropped()
    }
}
