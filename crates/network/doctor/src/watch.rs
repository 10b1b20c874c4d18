//! Observes a router's statistics, the round-trip time to a host, and the interface behind the router for some time.

use crate::bottleneck::{BottleneckPort, Interval, Observations, PathDelay, QueueLoad};
use crate::load::load;
use crate::probe::{self, LinkBacklog};
use crate::source::{Source, SourceError, StatisticsReader};
use cutline_router::Overhead;
use cutline_router_service::Statistics;
use cutline_sys::address::ZonedIp;
use cutline_sys::ping::Echo;
use cutline_sys::thread::{joined, set_realtime};
use cutline_sys::{SysError, now};
use cutline_units::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};

/// The interval between probes. Ten probes of 98 B per second are 8 kbit/s.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest interval. Shorter ones would have too few probes.
const MIN_INTERVAL: Duration = Duration::from_millis(450);
/// The length of an interval if there are no statistics, and the time between two readings of the interface's counters.
const STEP: Duration = Duration::from_millis(500);
/// The time to wait for replies to the last probes.
const LAST_REPLIES: Duration = Duration::from_millis(500);

/// Subject and duration of an observation.
#[derive(Clone, Debug)]
pub struct LinkWatch {
    /// The source of the router's statistics.
    pub source: Option<Source>,
    /// True to judge the reverse direction, from --out to --in.
    pub reverse: bool,
    /// The overhead of the link, as it is configured in the router.
    pub overhead: Overhead,
    /// The hint that the router gives to the probes, 1 to 16.
    pub hint: u16,
    /// The host that replies to probes.
    pub probe: Option<ZonedIp>,
    /// The round-trip time of the idle path, if it is known.
    pub base: Option<Duration>,
    /// The interface behind the router.
    pub port: Option<String>,
    /// The duration of the observation; at most an hour.
    pub duration: Duration,
}

/// Reason why an observation failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The router's statistics cannot be read.
    #[error("{0}")]
    StatisticsReader(#[from] SourceError),
    /// A system call failed.
    #[error("{0}")]
    Sys(#[from] SysError),
    /// The interface cannot be observed.
    #[error("{0}")]
    Port(String),
    /// Fewer than two documents of statistics arrived.
    #[error(
        "statistics arrived {count} times in {after}, but an interval needs two: let the router print them with \
         --json --stats 1s, and watch for longer (--duration)"
    )]
    TooFewSamples {
        /// The number of documents.
        count: usize,
        /// The duration of the observation.
        after: Duration,
    },
}

/// An observation in progress.
struct Progress<'w> {
    watch: &'w LinkWatch,
    last: Option<Statistics>,
    samples: usize,
    /// The round-trip times in the current interval.
    times: Vec<Duration>,
    shortest: Option<Duration>,
    answered: usize,
    began: Instant,
    seen: Observations,
}

impl LinkWatch {
    /// Observes until the duration is over or `stop` is set. If only statistics are observed, the end of their source also
    /// ends the observation. Uses a thread with real-time scheduling if that is allowed, because a late wake-up of the
    /// thread lengthens the measured round-trip time.
    ///
    /// # Errors
    /// When something to be observed is not available.
    pub fn observe(&self, stop: &AtomicBool) -> Result<Observations, WatchError> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // Without the privilege, measurements are less exact on a busy machine.
                set_realtime();
                self.observe_here(stop)
            });
            joined(thread)
        })
    }

    fn observe_here(&self, stop: &AtomicBool) -> Result<Observations, WatchError> {
        // If only statistics are observed, a file is read as it is.
        let live = self.probe.is_some() || self.port.is_some();
        let mut reader =
            self.source.as_ref().map(|source| StatisticsReader::open(source, live)).transpose()?;
        let mut echo = self.probe.map(Echo::open).transpose()?;
        let mut port = self.port.as_deref().map(PortWatch::begin).transpose()?;
        let mut progress = Progress::new(self);
        let (start, mut next) = (now(), now());
        while !stop.load(Ordering::Relaxed) && now() - start < self.duration {
            next += PROBE_INTERVAL;
            progress.probe(echo.as_mut(), next)?;
            if let Some(reader) = &mut reader {
                reader.take()?.into_iter().for_each(|sample| progress.sample(sample));
                if !live && reader.has_ended() {
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
            echo.wait(now() + LAST_REPLIES, &mut |time| progress.answer(time))?;
        }
        progress.finish(echo.as_ref(), port, now() - start)
    }
}

impl<'w> Progress<'w> {
    fn new(watch: &'w LinkWatch) -> Self {
        let seen = Observations::default();
        let (last, times, shortest) = (None, Vec::new(), None);
        Self { watch, last, samples: 0, times, shortest, answered: 0, began: now(), seen }
    }

    /// Sends a probe and waits until `deadline` for replies.
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

    /// Ends the interval at a document of statistics, unless the interval would be too short.
    fn sample(&mut self, sample: Statistics) {
        self.samples += 1;
        let direction = sample.direction(self.watch.reverse);
        self.seen.rate = Some(direction.rate());
        if let Some(last) = &self.last {
            let seconds = sample.elapsed_s - last.elapsed_s;
            // A restarted router counts from zero, so this interval is not known.
            if (0.0..MIN_INTERVAL.as_secs_f64()).contains(&seconds) {
                return;
            }
            let LinkWatch { reverse, overhead, hint, .. } = *self.watch;
            let load = load(last.direction(reverse), direction, seconds, overhead, hint);
            if seconds > 0.0 {
                self.end_interval(Some(load));
            }
        }
        self.times.clear();
        self.last = Some(sample);
    }

    /// Ends intervals by the clock if there are no statistics.
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
            return Err(WatchError::TooFewSamples {
                count: self.samples,
                after: crate::format::approximately(after),
            });
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

/// The observation of the interface behind the router.
struct PortWatch {
    seen: BottleneckPort,
    first: LinkBacklog,
    next: Instant,
}

impl PortWatch {
    fn begin(name: &str) -> Result<Self, WatchError> {
        let links = probe::links().map_err(WatchError::Port)?;
        let speed = links.iter().find(|link| link.name == name).and_then(|link| link.speed);
        let first = probe::backlog(name).map_err(WatchError::Port)?;
        let seen = BottleneckPort { name: name.to_owned(), speed, ..BottleneckPort::default() };
        Ok(Self { seen, first, next: now() })
    }

    fn look(&mut self) -> Result<(), WatchError> {
        if now() < self.next {
            return Ok(());
        }
        self.next = now() + STEP;
        let backlog = probe::backlog(&self.seen.name).map_err(WatchError::Port)?;
        let dropped = |of: &LinkBacklog| of.qdisc_dropped + of.dropped;
        self.seen.qdisc_packets = self.seen.qdisc_packets.max(backlog.qdisc_packets);
        self.seen.driver_bytes = self.seen.driver_bytes.max(backlog.driver_bytes);
        self.seen.dropped = dropped(&backlog).saturating_sub(dropped(&self.first));
        Ok(())
    }

    fn finish(self) -> BottleneckPort {
        self.seen
    }
}
