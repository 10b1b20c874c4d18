//! A router at work, printed.

use super::text;
use crate::exit::Failure;
use crate::output;
use cutline_router_service::{Listener, Statistics};
use std::ops::ControlFlow;

/// Prints statistics on stdout, and what becomes of the file on stderr.
pub struct Printer {
    json: bool,
    last: Option<Statistics>,
    printed: Result<(), Failure>,
}

impl Printer {
    /// Prints for a terminal, or JSON.
    pub fn new(json: bool) -> Self {
        Self { json, last: None, printed: Ok(()) }
    }

    /// Whether everything could be printed.
    ///
    /// # Errors
    /// When stdout could not be written.
    pub fn finish(self) -> Result<(), Failure> {
        self.printed
    }

    /// After a failure nothing more is tried.
    fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = output::print(text);
        }
    }
}

impl Listener for Printer {
    fn interval(&mut self, now: Statistics) -> ControlFlow<()> {
        let text = if self.json { now.json() + "\n" } else { text::since(self.last.as_ref(), &now) };
        self.last = Some(now);
        self.print(&text);
        if self.printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn reloaded(&mut self, result: Result<(), String>, summary: &str) {
        match result {
            Ok(()) => anstream::eprintln!("reloaded: routing {summary}"),
            Err(why) => anstream::eprintln!("not reloaded, goes on as before:\n{why}"),
        }
    }

    fn end(&mut self, statistics: Statistics) {
        let text = if self.json { statistics.json() + "\n" } else { text::whole(&statistics) };
        self.print(&text);
    }
}
