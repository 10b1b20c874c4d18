//! Observing for a while: a router's statistics, probes to a host, the interface behind the router.

use crate::bottleneck::{Interval, Observations, PathDelay, Port, QueueLoad};
use crate::echo::Echo;
use crate::feed::{Feed, FeedError, Source};
use crate::load::load;
use crate::probe::{self, Backlog};
use cutline_router::Overhead;
use cutline_router_service::Statistics;
use cutline_sys::thread::set_realtime;
use cutline_sys::{SysError, now};
use cutline_units::{Duration, Instant};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ten probes of 98 B a second, 8 kbit/s.
const PROBE_EVERY: Duration = Duration::from_millis(100);
/// The least that an interval is long: shorter ones have too few probes.
const SHORTEST: Duration = Duration::from_millis(450);
/// How long an interval is where no statistics end it, and how often the interface is looked at.
const STEP: Duration = Duration::from_millis(500);
/// How long answers to the last probes are waited for.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// What to observe, and for how long.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Where the router's statistics come from.
    pub source: Option<Source>,
    /// Whether to judge the reverse direction, from --out to --in.
    pub reverse: bool,
    /// What the link adds to a frame, as the router has been told.
    pub overhead: Overhead,
    /// The hint of the probes, as the router sees them; 1 to 16.
    pub hint: u16,
    /// The host that answers probes.
    pub probe: Option<IpAddr>,
    /// The idle path's round-trip time, if it is known.
    pub base: Option<Duration>,
    /// The interface behind the router.
    pub port: Option<String>,
    /// How long; at most an hour.
    pub duration: Duration,
}

/// Why nothing could be observed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The router's statistics.
    #[error("{0}")]
    Feed(#[from] FeedError),
    /// A system call failed.
    #[error("{0}")]
    Sys(#[from] SysError),
    /// The interface.
    #[error("{0}")]
    Port(String),
    /// Fewer than two documents have come.
    #[error(
        "statistics came {came} times in {after}, and an interval takes two: let the router print them with \
         --json --stats 1s, and watch for longer (--duration)"
    )]
    Silent {
        /// How many came.
        came: usize,
        /// In what time.
        after: Duration,
    },
}

/// The observation under way.
struct Progress<'w> {
    watch: &'w Watch,
    last: Option<Statistics>,
    samples: usize,
    /// Of the interval that has not ended.
    times: Vec<Duration>,
    shortest: Option<Duration>,
    answered: usize,
    began: Instant,
    seen: Observations,
}

impl Watch {
    /// Observes until the time is over, a pipe has ended and nothing else is looked at, or `stop` is set. On a thread
    /// with real-time scheduling where that is allowed: a round-trip time ends when the thread runs.
    ///
    /// # Errors
    /// When something that was asked for is not available.
    pub fn observe(&self, stop: &AtomicBool) -> Result<Observations, WatchError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // Without the privilege, it is only less exact on a busy machine.
                set_realtime();
                self.observe_here(stop)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn observe_here(&self, stop: &AtomicBool) -> Result<Observations, WatchError> {
        // Without anything else to look at, what is in a file is all there is.
        let live = self.probe.is_some() || self.port.is_some();
        let mut feed = self.source.as_ref().map(|source| Feed::open(source, live)).transpose()?;
        let mut echo = self.probe.map(Echo::open).transpose()?;
        let mut port = self.port.as_deref().map(PortWatch::begin).transpose()?;
        let mut progress = Progress::new(self);
        let (start, mut next) = (now(), now());
        while !stop.load(Ordering::Relaxed) && now() - start < self.duration {
            next += PROBE_EVERY;
            progress.probe(echo.as_mut(), next)?;
            if let Some(feed) = &mut feed {
                feed.take()?.into_iter().for_each(|sample| progress.sample(sample));
                if !live && feed.has_ended() {
                    break;
                }
            } else {
                progress.step();
            }
            if let Some(port) = &mut port {
                port.look()?;
            }
        }
        if let Some(echo) = &mut echo {
            echo.wait(now() + LAST_ANSWERS, &mut |time| progress.answer(time))?;
        }
        progress.finish(echo.as_ref(), port, now() - start)
    }
}

impl<'w> Progress<'w> {
    fn new(watch: &'w Watch) -> Self {
        let seen = Observations::default();
        let (last, times, shortest) = (None, Vec::new(), None);
        Self { watch, last, samples: 0, times, shortest, answered: 0, began: now(), seen }
    }

    /// Sends a probe and waits until `deadline` for answers.
    fn probe(&mut self, echo: Option<&mut Echo>, deadline: Instant) -> Result<(), SysError> {
        if let Some(echo) = echo {
            echo.request();
            return echo.wait(deadline, &mut |time| self.answer(time));
        }
        std::thread::sleep(std::time::Duration::from_nanos(deadline.saturating_since(now()).as_nanos()));
        Ok(())
    }

    fn answer(&mut self, time: Duration) {
        self.times.push(time);
        self.answered += 1;
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
    }

    /// A document of the router ends an interval, unless that would be too short.
    fn sample(&mut self, sample: Statistics) {
        self.samples += 1;
        let direction = sample.direction(self.watch.reverse);
        self.seen.rate = Some(direction.rate());
        if let Some(last) = &self.last {
            let seconds = sample.elapsed_s - last.elapsed_s;
            // A router that began anew counts from zero; what lies in between is not known.
            if (0.0..SHORTEST.as_secs_f64()).contains(&seconds) {
                return;
            }
            let Watch { reverse, overhead, hint, .. } = *self.watch;
            let load = load(last.direction(reverse), direction, seconds, overhead, hint);
            if seconds > 0.0 {
                self.end_interval(Some(load));
            }
        }
        self.times.clear();
        self.last = Some(sample);
    }

    /// Without statistics intervals end by the clock.
    fn step(&mut self) {
        if now() - self.began >= STEP {
            self.end_interval(None);
        }
    }

    fn end_interval(&mut self, queue: Option<QueueLoad>) {
        let sum = self.times.iter().fold(Duration::ZERO, |sum, &time| sum + time);
        let round_trip = (!self.times.is_empty()).then(|| sum / self.times.len() as u64);
        self.seen.intervals.push(Interval { queue, round_trip });
        self.times.clear();
        self.began = now();
    }

    fn finish(
        mut self,
        echo: Option<&Echo>,
        port: Option<PortWatch>,
        after: Duration,
    ) -> Result<Observations, WatchError> {
        if self.watch.source.is_some() && self.seen.intervals.is_empty() {
            return Err(WatchError::Silent { came: self.samples, after: crate::words::approximately(after) });
        }
        self.seen.path = echo.map(|echo| PathDelay {
            asked: echo.sent(),
            answered: self.answered,
            base: self.watch.base.or(self.shortest).unwrap_or_default(),
            base_given: self.watch.base.is_some(),
        });
        self.seen.port = port.map(PortWatch::finish);
        Ok(self.seen)
    }
}

/// The interface behind the router, over time.
struct PortWatch {
    seen: Port,
    first: Backlog,
    next: Instant,
}

impl PortWatch {
    fn begin(name: &str) -> Result<Self, WatchError> {
        let links = probe::links().map_err(WatchError::Port)?;
        let speed = links.iter().find(|link| link.name == name).and_then(|link| link.speed);
        let first = probe::backlog(name).map_err(WatchError::Port)?;
        let seen = Port { name: name.to_owned(), speed, ..Port::default() };
        Ok(Self { seen, first, next: now() })
    }

    fn look(&mut self) -> Result<(), WatchError> {
        if now() < self.next {
            return Ok(());
        }
        self.next = now() + STEP;
        let found = probe::backlog(&self.seen.name).map_err(WatchError::Port)?;
        let dropped = |of: &Backlog| of.qdisc_dropped + of.dropped;
        self.seen.qdisc_packets = self.seen.qdisc_packets.max(found.qdisc_packets);
        self.seen.driver_bytes = self.seen.driver_bytes.max(found.driver_bytes);
        self.seen.dropped = dropped(&found).saturating_sub(dropped(&self.first));
        Ok(())
    }

    fn finish(self) -> Port {
        self.seen
    }
}
