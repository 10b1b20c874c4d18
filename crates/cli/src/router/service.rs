//! What looks after a router at work: prints by interval, reads its file anew on SIGHUP, tells a service manager that it
//! lives, and lays statistics out for those who ask.

use super::board::{Board, Snapshot, elapsed};
use super::configuration;
use super::document::{Document, Reload};
use crate::exit::Failure;
use crate::output;
use cutline_linux::{AnyPort, Hangup, Manager, Observer};
use cutline_router::{ShaperParams, Wire};
use cutline_scenario::{DirectionSpec, RouterSpec};
use cutline_units::{Duration, Instant};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// How soon a request, a signal or a file that has been read is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that is done beside forwarding.
pub struct Service<'a> {
    names: Arc<[String; 2]>,
    stop: &'a AtomicBool,
    started: Instant,
    ends: Instant,
    printer: Printer,
    watchdog: Watchdog<'a>,
    reloader: Option<Reloader>,
    board: Option<Desk>,
    /// What could not be printed.
    failure: Option<Failure>,
}

/// How a router prints.
pub struct Printer {
    pub json: bool,
    interval: Duration,
    next: Instant,
    last: Option<Document>,
}

/// Who wants to hear that the router lives.
struct Watchdog<'a> {
    manager: &'a Manager,
    next: Instant,
}

/// The router's file, and what has become of reading it anew.
pub struct Reloader {
    hangup: Hangup,
    path: PathBuf,
    spec: Arc<RouterSpec>,
    /// A file that is being read, by a thread of its own: disks may be slow.
    reading: Option<Receiver<Result<RouterSpec, String>>>,
    status: Reload,
}

/// The board, and how many requests it has answered.
struct Desk {
    board: Arc<Board>,
    answered: u64,
}

impl Printer {
    pub fn new(json: bool, interval: Option<Duration>) -> Self {
        let next = interval.map_or(Instant::FAR_FUTURE, |interval| cutline_linux::now() + interval);
        Self { json, interval: interval.unwrap_or(Duration::MAX), next, last: None }
    }

    fn print(&mut self, now: Instant, document: Document) -> Result<(), Failure> {
        let text = if self.json { document.json() + "\n" } else { document.since(self.last.as_ref()) };
        self.last = Some(document);
        while self.next <= now {
            self.next = self.next.saturating_add(self.interval);
        }
        output::print(&text)
    }
}

impl Watchdog<'_> {
    /// Pings when it is time; answers when it will be next.
    fn look(&mut self, now: Instant) -> Instant {
        self.manager.catch_up();
        let Some(interval) = self.manager.watchdog_interval() else { return Instant::FAR_FUTURE };
        if now >= self.next {
            self.manager.alive();
            self.next = now + interval;
        }
        self.next
    }
}

impl Reloader {
    /// A router that works as `spec`, the content of the file at `path`.
    pub fn new(hangup: Hangup, path: PathBuf, spec: Arc<RouterSpec>) -> Self {
        Self { hangup, path, spec, reading: None, status: Reload::default() }
    }

    /// A file that has been read to its end, if there is one. Begins to read when it was asked to.
    fn poll(&mut self) -> Option<Result<RouterSpec, String>> {
        if self.reading.is_none() && self.hangup.take() {
            self.reading = Some(read(self.path.clone()));
        }
        let result = match self.reading.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err("the file could not be read".to_owned()),
            Ok(result) => result,
        };
        self.reading = None;
        Some(result)
    }

    /// Lets the wire work as a file says that has been read.
    fn take_over(
        &mut self,
        read: Result<RouterSpec, String>,
        now: Instant,
        wire: &mut Wire,
    ) -> Result<(), String> {
        let new = read?;
        let fixed = self.spec.fixed_differences(&new);
        if !fixed.is_empty() {
            let (keys, path) = (fixed.join("\", \""), self.path.display());
            return Err(format!("{path}: key \"{keys}\": cannot change while the router runs: restart it"));
        }
        let params = [(&wire.forth, &new.forth), (&wire.back, &new.back)]
            .map(|(shaper, spec)| params(shaper.params(), spec));
        wire.reconfigure(now, params).map_err(|error| error.to_string())?;
        self.spec = Arc::new(new);
        Ok(())
    }

    fn note(&mut self, at: Duration, result: &Result<(), String>) {
        self.status.last_s = Some(at.as_secs_f64());
        self.status.error = result.as_ref().err().cloned();
        match result {
            Ok(()) => self.status.done += 1,
            Err(_) => self.status.refused += 1,
        }
    }
}

/// Reads a router's file by a thread of its own.
fn read(path: PathBuf) -> Receiver<Result<RouterSpec, String>> {
    let (sender, receiver) = channel();
    let work = move || {
        // Nobody waits for it any more when the router has ended.
        drop(sender.send(RouterSpec::load(&path).map_err(|errors| errors.render())));
    };
    // A thread that cannot be made drops the sender, which is told as a failure.
    drop(std::thread::Builder::new().name("reload".to_owned()).spawn(work));
    receiver
}

/// A shaper's parameters as a direction describes them.
pub fn params(base: &ShaperParams, spec: &DirectionSpec) -> ShaperParams {
    ShaperParams {
        queue: spec.queue.clone(),
        overhead: spec.overhead,
        hints: spec.hints.clone(),
        remark: spec.remark.clone(),
        ..*base
    }
}

impl<'a> Service<'a> {
    /// Looks after a router from now on, for `duration` if there is one.
    pub fn new(
        spec: &RouterSpec,
        printer: Printer,
        duration: Option<Duration>,
        manager: &'a Manager,
        stop: &'a AtomicBool,
    ) -> Self {
        let started = cutline_linux::now();
        Self {
            names: Arc::new([spec.input.clone(), spec.output.clone()]),
            stop,
            started,
            ends: started.saturating_add(duration.unwrap_or(Duration::MAX)),
            printer,
            watchdog: Watchdog { manager, next: started },
            reloader: None,
            board: None,
            failure: None,
        }
    }

    /// Reads its file anew on SIGHUP.
    pub fn with_reloader(mut self, reloader: Option<Reloader>) -> Self {
        self.reloader = reloader;
        self
    }

    /// Lays statistics out there.
    pub fn with_board(mut self, board: Option<Arc<Board>>) -> Self {
        self.board = board.map(|board| Desk { board, answered: 0 });
        self
    }

    /// Prints everything at the end.
    pub fn finish(self, wire: &Wire, ports: &mut [AnyPort; 2]) -> Result<(), Failure> {
        let document = self.snapshot(wire, ports).document("end");
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let text = if self.printer.json { document.json() + "\n" } else { document.text() };
        output::print(&text)
    }

    fn snapshot(&self, wire: &Wire, ports: &mut [AnyPort; 2]) -> Snapshot {
        let reload = self.reloader.as_ref().map(|reloader| &reloader.status);
        Snapshot::take(&self.names, elapsed(self.started), wire, ports, reload)
    }

    fn print(&mut self, now: Instant, wire: &Wire, ports: &mut [AnyPort; 2]) {
        if now >= self.printer.next {
            let document = Document { ports: Vec::new(), ..self.snapshot(wire, ports).document("interval") };
            self.failure = self.printer.print(now, document).err();
        }
    }

    fn reload(&mut self, now: Instant, wire: &mut Wire) {
        let Some(reloader) = &mut self.reloader else { return };
        let Some(read) = reloader.poll() else { return };
        self.watchdog.manager.reloading(now);
        let result = reloader.take_over(read, now, wire);
        reloader.note(elapsed(self.started), &result);
        if let Some(desk) = &self.board {
            desk.board.configure(&reloader.spec);
        }
        let line = configuration::line(&reloader.spec);
        match result {
            Ok(()) => anstream::eprintln!("reloaded: routing {line}"),
            Err(why) => anstream::eprintln!("not reloaded, goes on as before:\n{why}"),
        }
        self.watchdog.manager.ready(&line);
    }

    fn answer(&mut self, wire: &Wire, ports: &mut [AnyPort; 2]) {
        let Some((desk, wanted)) =
            self.board.as_ref().and_then(|desk| Some((desk, desk.board.wanted(desk.answered)?)))
        else {
            return;
        };
        let snapshot = self.snapshot(wire, ports);
        let is_out = desk.board.lay_out(wanted, snapshot);
        if let Some(desk) = self.board.as_mut().filter(|_| is_out) {
            desk.answered = wanted;
        }
    }
}

impl Observer<AnyPort> for Service<'_> {
    fn look(&mut self, now: Instant, wire: &mut Wire, ports: &mut [AnyPort; 2]) -> Instant {
        self.print(now, wire, ports);
        self.reload(now, wire);
        self.answer(wire, ports);
        if now >= self.ends || self.failure.is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
        let is_asked = self.reloader.is_some() || self.board.is_some();
        let look = if is_asked { now + LOOK } else { Instant::FAR_FUTURE };
        look.min(self.watchdog.look(now)).min(self.printer.next).min(self.ends)
    }
}
