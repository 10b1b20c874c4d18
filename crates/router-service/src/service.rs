//! What looks after a router at work: tells its statistics by interval, reads its file anew on SIGHUP, tells a service manager
//! that it lives, and lays statistics out for those who ask.

use crate::board::{Board, Snapshot};
use crate::configuration::summary;
use crate::reload::Reloader;
use crate::sd_notify::SdNotify;
use crate::spec::RouterSpec;
use crate::statistics::Statistics;
use cutline_ports::{AnyPort, Observer};
use cutline_router::DuplexShaper;
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who is told of a router at work, by the thread that forwards frames: it should not take long.
pub trait Listener {
    /// What was counted by the end of an interval, without the interfaces. A break ends the router.
    fn interval(&mut self, statistics: Statistics) -> ControlFlow<()>;

    /// The file was read anew, and taken over or refused. The router works as `summary` says.
    fn reloaded(&mut self, result: Result<(), String>, summary: &str);

    /// What was counted by the end.
    fn end(&mut self, statistics: Statistics);
}

/// How soon a request, a signal or a file that has been read is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that is done beside forwarding.
pub struct Service<'a> {
    names: Arc<[String; 2]>,
    stop: &'a AtomicBool,
    started: Instant,
    ends: Instant,
    listener: &'a mut dyn Listener,
    intervals: Intervals,
    watchdog: Watchdog<'a>,
    reloader: Option<Reloader>,
    desk: Option<Desk>,
}

/// When statistics are told.
struct Intervals {
    length: Duration,
    next: Instant,
}

/// Who wants to hear that the router lives.
struct Watchdog<'a> {
    manager: &'a SdNotify,
    next: Instant,
}

/// The board, and how many requests it has answered.
struct Desk {
    board: Arc<Board>,
    answered: u64,
}

impl Intervals {
    /// Those of this length that end from now on; none without a length.
    fn new(now: Instant, length: Option<Duration>) -> Self {
        let next = length.map_or(Instant::FAR_FUTURE, |length| now + length);
        Self { length: length.unwrap_or(Duration::MAX), next }
    }

    /// Whether one has ended. Those that nobody has looked at are over.
    fn take(&mut self, now: Instant) -> bool {
        let has_ended = now >= self.next;
        while self.next <= now {
            self.next = self.next.saturating_add(self.length);
        }
        has_ended
    }
}

impl Watchdog<'_> {
    /// Pings when it is time; answers when it will be next.
    fn look(&mut self, now: Instant) -> Instant {
        self.manager.flush();
        let Some(interval) = self.manager.watchdog_interval() else { return Instant::FAR_FUTURE };
        if now >= self.next {
            self.manager.watchdog();
            self.next = now + interval;
        }
        self.next
    }
}

impl<'a> Service<'a> {
    /// Looks after a router from now on, for `duration` if there is one, and tells of it every `interval`.
    pub fn new(
        spec: &RouterSpec,
        duration: Option<Duration>,
        interval: Option<Duration>,
        manager: &'a SdNotify,
        stop: &'a AtomicBool,
        listener: &'a mut dyn Listener,
    ) -> Self {
        let started = now();
        Self {
            names: Arc::new([spec.input.clone(), spec.output.clone()]),
            stop,
            started,
            ends: started.saturating_add(duration.unwrap_or(Duration::MAX)),
            listener,
            intervals: Intervals::new(started, interval),
            watchdog: Watchdog { manager, next: started },
            reloader: None,
            desk: None,
        }
    }

    /// Reads its file anew on SIGHUP.
    pub fn with_reloader(mut self, reloader: Option<Reloader>) -> Self {
        self.reloader = reloader;
        self
    }

    /// Lays statistics out there.
    pub fn with_board(mut self, board: Option<Arc<Board>>) -> Self {
        self.desk = board.map(|board| Desk { board, answered: 0 });
        self
    }

    /// Tells everything at the end.
    pub fn finish(self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        let statistics = self.snapshot(duplex, ports).statistics("end");
        self.listener.end(statistics);
    }

    fn snapshot(&self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) -> Snapshot {
        let reload = self.reloader.as_ref().map(Reloader::status);
        Snapshot::take(&self.names, self.elapsed(), duplex, ports, reload)
    }

    /// How long the router has worked.
    fn elapsed(&self) -> Duration {
        now() - self.started
    }

    fn tell(&mut self, now: Instant, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        if self.intervals.take(now) {
            let statistics = self.snapshot(duplex, ports).statistics("interval");
            let told = Statistics { interfaces: Vec::new(), ..statistics };
            if self.listener.interval(told).is_break() {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    fn reload(&mut self, now: Instant, duplex: &mut DuplexShaper) {
        let elapsed = self.elapsed();
        let Some(reloader) = &mut self.reloader else { return };
        let Some(read) = reloader.poll() else { return };
        self.watchdog.manager.reloading(now);
        let result = reloader.take_over(read, now, elapsed, duplex);
        if let Some(desk) = &self.desk {
            desk.board.configure(reloader.spec());
        }
        let summary = summary(reloader.spec());
        let refused = if result.is_err() { "; its file was refused as it is now" } else { "" };
        self.watchdog.manager.ready(&format!("{summary}{refused}"));
        self.listener.reloaded(result, &summary);
    }

    fn answer(&mut self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        let Some(desk) = &self.desk else { return };
        let Some(wanted) = desk.board.wanted(desk.answered) else { return };
        let is_out = desk.board.lay_out(wanted, self.snapshot(duplex, ports));
        if let Some(desk) = self.desk.as_mut().filter(|_| is_out) {
            desk.answered = wanted;
        }
    }
}

impl Observer<AnyPort> for Service<'_> {
    fn look(&mut self, now: Instant, duplex: &mut DuplexShaper, ports: &mut [AnyPort; 2]) -> Instant {
        self.tell(now, duplex, ports);
        self.reload(now, duplex);
        self.answer(duplex, ports);
        if now >= self.ends {
            self.stop.store(true, Ordering::Relaxed);
        }
        let is_asked = self.reloader.is_some() || self.desk.is_some();
        let look = if is_asked { now + LOOK } else { Instant::FAR_FUTURE };
        look.min(self.watchdog.look(now)).min(self.intervals.next).min(self.ends)
    }
}
