//! What the router lays out for those who ask by its socket.
//!
//! The loop that forwards frames must wait for nobody. Whoever asks says so by a counter and waits for the loop's next look,
//! at most 50 ms; the loop then copies its counters here, if it gets the lock at once. Writing documents is done by whoever
//! has asked, in a thread of its own.

use super::document::{Document, Port, Reload, Seen};
use super::{configuration, settings};
use cutline_linux::{Answer, AnyPort, LinuxPort as _, PortStats};
use cutline_router::Wire;
use cutline_scenario::RouterSpec;
use cutline_units::{Duration, Instant};
use serde_json::json;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A router at a moment, copied.
#[derive(Clone, Debug)]
pub struct Snapshot {
    names: Arc<[String; 2]>,
    elapsed: Duration,
    directions: [Seen; 2],
    ports: [PortStats; 2],
    reload: Option<Reload>,
}

/// Where snapshots are laid out.
#[derive(Debug, Default)]
pub struct Board {
    state: Mutex<State>,
    changed: Condvar,
    /// How many snapshots have been asked for.
    wanted: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// How many had been asked for when `snapshot` was taken.
    answered: u64,
    snapshot: Option<Arc<Snapshot>>,
    configuration: Option<Arc<RouterSpec>>,
}

/// How long an answer may take; the loop looks every 50 ms unless the machine is stopped.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// How often a client may ask to be told.
const WATCH: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3600)];
/// What can be asked.
const REQUESTS: &str = "stats, config, reload status, watch TIME";

impl Snapshot {
    /// The router at `now`, `names` being those of its interfaces.
    pub fn take(
        names: &Arc<[String; 2]>,
        elapsed: Duration,
        wire: &Wire,
        ports: &mut [AnyPort; 2],
        reload: Option<&Reload>,
    ) -> Self {
        // An interface that is gone ends the router; its counters go with it.
        let ports = ports.each_mut().map(|port| port.stats().unwrap_or_default());
        let directions = [Seen::of(&wire.forth), Seen::of(&wire.back)];
        Self { names: Arc::clone(names), elapsed, directions, ports, reload: reload.cloned() }
    }

    /// The document of this moment.
    pub fn document(&self, event: &str) -> Document {
        let [input, output] = &*self.names;
        let [forth, back] = &self.directions;
        let ports = self.names.iter().zip(self.ports);
        Document {
            event: event.to_owned(),
            elapsed_s: self.elapsed.as_secs_f64(),
            forth: forth.document(&format!("{input} -> {output}")),
            back: back.document(&format!("{output} -> {input}")),
            ports: ports.map(|(name, stats)| Port::new(name, stats)).collect(),
            reload: self.reload.clone(),
        }
    }
}

impl Board {
    /// Whether somebody waits for a snapshot, and if so for which.
    pub fn wanted(&self, answered: u64) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        (wanted > answered).then_some(wanted)
    }

    /// Lays a snapshot out for all who have asked until `wanted`; answers false when that would have to wait.
    pub fn lay_out(&self, wanted: u64, snapshot: Snapshot) -> bool {
        let Ok(mut state) = self.state.try_lock() else { return false };
        state.answered = wanted;
        state.snapshot = Some(Arc::new(snapshot));
        drop(state);
        self.changed.notify_all();
        true
    }

    /// How the router works from now on.
    pub fn configure(&self, spec: &Arc<RouterSpec>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).configuration = Some(Arc::clone(spec));
    }

    /// A snapshot of now, which is waited for; `None` when the router does not give one.
    fn ask(&self) -> Option<Arc<Snapshot>> {
        let mine = self.wanted.fetch_add(1, Ordering::Relaxed) + 1;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |state: &mut State| state.answered < mine;
        let (state, result) =
            self.changed.wait_timeout_while(state, PATIENCE, waits).unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() { None } else { state.snapshot.clone() }
    }

    fn configuration(&self) -> Option<Arc<RouterSpec>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).configuration.clone()
    }

    /// Answers requests from what is laid out here.
    pub fn answer(self: Arc<Self>) -> Arc<Answer> {
        Arc::new(move |request, say| self.reply(request, say))
    }

    fn reply(&self, request: &str, say: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let words: Vec<&str> = request.split_whitespace().collect();
        match words[..] {
            ["stats"] => self.say_stats(say),
            ["config"] => {
                let spec = self.configuration();
                say(&json!({ "event": "config", "config": spec.map(|spec| configuration::document(&spec)) })
                    .to_string())
            }
            ["reload", "status"] => match self.ask() {
                Some(snapshot) => say(&json!({ "event": "reload", "reload": snapshot.reload }).to_string()),
                None => refuse(say, "the router does not answer"),
            },
            ["watch", ref time @ ..] => self.watch(&time.join(" "), say),
            _ => refuse(say, &format!("request {request:?} is not known: allowed are {REQUESTS}")),
        }
    }

    fn say_stats(&self, say: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        match self.ask() {
            Some(snapshot) => say(&snapshot.document("stats").json()),
            None => refuse(say, "the router does not answer"),
        }
    }

    /// Until the client is gone.
    fn watch(&self, time: &str, say: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        let [least, most] = WATCH;
        if time.is_empty() {
            return refuse(
                say,
                &format!("watch: no time is given: allowed is a time from {least} to {most}"),
            );
        }
        let interval = match settings::duration(time) {
            Ok(interval) if (least..=most).contains(&interval) => interval,
            Ok(_) => return refuse(say, &format!("watch {time}: allowed is a time from {least} to {most}")),
            Err(error) => return refuse(say, &format!("watch {time}: {error}")),
        };
        let interval = std::time::Duration::from_nanos(interval.as_nanos());
        loop {
            let begun = std::time::Instant::now();
            self.say_stats(say)?;
            std::thread::sleep(interval.saturating_sub(begun.elapsed()));
        }
    }
}

fn refuse(say: &mut dyn FnMut(&str) -> io::Result<()>, why: &str) -> io::Result<()> {
    say(&json!({ "event": "error", "error": why }).to_string())
}

/// How long the router has worked.
pub fn elapsed(since: Instant) -> Duration {
    cutline_linux::now() - since
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(board: &Board, request: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut say = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        board.reply(request, &mut say).unwrap();
        lines
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        let board = Board::default();
        for (request, what) in [
            ("statistics", "allowed are stats, config, reload status, watch TIME"),
            ("", "is not known"),
            ("watch", "no time is given"),
            ("watch 1 ms", "a time from 100 ms to 3600 s"),
            ("watch soon", "starts with no decimal number"),
        ] {
            let lines = replies(&board, request);
            assert!(lines.len() == 1 && lines[0].contains(what), "{request}: {lines:?}");
        }
        assert!(replies(&board, "config")[0].contains("\"config\":null"));
    }

    #[test]
    fn a_request_is_wanted_until_it_is_answered() {
        let board = Board::default();
        assert_eq!(board.wanted(0), None);
        board.wanted.fetch_add(2, Ordering::Relaxed);
        assert_eq!((board.wanted(1), board.wanted(2)), (Some(2), None));
    }
}
