//! The service tasks of a running router: reports its statistics by interval, reloads its file on SIGHUP, sends messages to
//! the service manager's watchdog, and publishes statistics for clients.

use crate::autorate::Autorate;
use crate::configuration::{summary, warnings_with};
use crate::local_socket::LocalSocket;
use crate::reload::Reloader;
use crate::reservations::Registrar;
use crate::snapshots::{ServiceStatistics, Snapshot, StatsSnapshots};
use crate::spec::RouterSpec;
use crate::statistics::Statistics;
use cutline_ports::{AnyPort, InterfacePort as _, Observer};
use cutline_router::DuplexShaper;
use cutline_service::SdNotify;
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use cutline_wire::ETHERNET;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Receives the reports of a running router. The thread that forwards frames calls it, so no call may wait. A report that cannot be
/// written at once is dropped and counted.
pub trait Listener {
    /// Receives the statistics at the end of an interval, without the interfaces.
    fn interval(&mut self, statistics: Statistics);

    /// Reports that a reload was applied or refused; `summary` describes the current configuration.
    fn reloaded(&mut self, result: Result<(), String>, summary: &str);

    /// Receives a warning about something that its user should know while the router runs.
    fn warn(&mut self, warning: String);

    /// Receives the statistics at the end of the run.
    fn end(&mut self, statistics: Statistics);

    /// Returns the number of dropped reports.
    fn dropped(&self) -> u64;
}

/// Text about frames that are longer than the interface's MTU.
pub const TRUNCATED: &str = "were longer than its MTU, and were dropped: turn GRO and TSO off (ethtool -K)";
/// Text about frames without checksums.
pub const UNFILLED: &str = "arrived without checksums, and their receivers drop them: turn `tx` off at the sender's end (ethtool -K)";
/// The interval of looks at the counters of the ports for something to warn of.
const LOOK_AT_PORTS: Duration = Duration::from_secs(1);
/// The interval of checks for requests, signals and files that have been read.
const LOOK: Duration = Duration::from_millis(50);

/// Service of a router beside its forwarding loop.
pub struct Service<'a> {
    names: Arc<[String; 2]>,
    stop: &'a AtomicBool,
    started: Instant,
    ends: Instant,
    listener: &'a mut dyn Listener,
    intervals: Intervals,
    port_warnings: PortWarnings,
    watchdog: Watchdog<'a>,
    reloader: Option<Reloader>,
    publication: Option<SnapshotPublication>,
    registrar: Option<Registrar>,
    autorate: Option<Autorate>,
}

/// The schedule of reports.
struct Intervals {
    length: Duration,
    next: Instant,
}

/// The warnings about frames of each port that have been given: frames that are too long, and frames without checksums.
struct PortWarnings {
    given: [[bool; 2]; 2],
    next: Instant,
}

/// The service manager's watchdog, and the time of the next message to it.
struct Watchdog<'a> {
    manager: &'a SdNotify,
    next: Instant,
}

/// The snapshots, and the number of requests that have been answered.
struct SnapshotPublication {
    snapshots: Arc<StatsSnapshots>,
    answered: u64,
    /// The number of clients that were refused.
    refused: Arc<AtomicU64>,
}

impl Intervals {
    /// Creates intervals of this length from now on; none without a length.
    fn new(now: Instant, length: Option<Duration>) -> Self {
        let next = length.map_or(Instant::FAR_FUTURE, |length| now + length);
        Self { length: length.unwrap_or(Duration::MAX), next }
    }

    /// Returns whether an interval has ended. Intervals that ended unnoticed are skipped.
    fn take(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let length = self.length.as_nanos();
        let skipped = (now - self.next).as_nanos() / length;
        self.next = self.next.saturating_add(Duration::from_nanos(length.saturating_mul(skipped + 1)));
        true
    }
}

impl Watchdog<'_> {
    /// Sends a watchdog message when it is due. Returns the time of the next one.
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
    /// Creates the service of a router that starts now, runs for `duration` if there is one, and reports every `interval`.
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
            port_warnings: PortWarnings { given: [[false; 2]; 2], next: started },
            watchdog: Watchdog { manager, next: started },
            reloader: None,
            publication: None,
            registrar: None,
            autorate: None,
        }
    }

    /// Reloads the router's file on SIGHUP.
    pub fn with_reloader(mut self, reloader: Option<Reloader>) -> Self {
        self.reloader = reloader;
        self
    }

    /// Publishes statistics as snapshots, for clients of this socket.
    pub fn with_snapshots(mut self, snapshots: Arc<StatsSnapshots>, socket: Option<&LocalSocket>) -> Self {
        let refused = socket.map_or_else(Arc::default, LocalSocket::refused);
        self.publication = Some(SnapshotPublication { snapshots, answered: 0, refused });
        self
    }

    /// Carries out the reservations of clients.
    pub fn with_registrar(mut self, registrar: Option<Registrar>) -> Self {
        self.registrar = registrar;
        self
    }

    /// Adapts rates to the link.
    pub fn with_autorate(mut self, autorate: Option<Autorate>) -> Self {
        self.autorate = autorate;
        self
    }

    /// Reports the statistics at the end of the run.
    pub fn finish(self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        let statistics = self.snapshot(duplex, ports).statistics("end");
        self.listener.end(statistics);
    }

    fn snapshot(&self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) -> Snapshot {
        let reload = self.reloader.as_ref().map(Reloader::status);
        let refused_clients =
            self.publication.as_ref().map_or(0, |publication| publication.refused.load(Ordering::Relaxed));
        let service = ServiceStatistics {
            elapsed: self.elapsed(),
            dropped_output: self.listener.dropped(),
            refused_clients,
            autorate: self.autorate.as_ref().map(|autorate| autorate.statistics(now())),
        };
        Snapshot::take(&self.names, service, duplex, ports, reload)
    }

    /// Returns the time since the router's start.
    fn elapsed(&self) -> Duration {
        now() - self.started
    }

    fn report(&mut self, now: Instant, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        if self.intervals.take(now) {
            let statistics = self.snapshot(duplex, ports).statistics("interval");
            let reported = Statistics { interfaces: Vec::new(), ..statistics }.without_flows();
            self.listener.interval(reported);
        }
    }

    /// Warns once for each interface of frames that its hosts cannot use. Returns the time of the next check.
    fn warn_of_ports(&mut self, now: Instant, ports: &mut [AnyPort; 2]) -> Instant {
        let PortWarnings { given, next } = &mut self.port_warnings;
        if now < *next {
            return *next;
        }
        *next = now + LOOK_AT_PORTS;
        let next = *next;
        for (port, given) in ports.iter_mut().zip(given) {
            let Ok(stats) = port.stats() else { continue };
            let counts = [stats.truncated, stats.unfilled].map(|count| count.packets);
            let remedies = [TRUNCATED, UNFILLED];
            for ((count, given), remedy) in counts.into_iter().zip(given).zip(remedies) {
                if count > 0 && !std::mem::replace(given, true) {
                    let name = Printable(port.name());
                    self.listener.warn(format!("{name}: frames {remedy}"));
                }
            }
        }
        next
    }

    fn reload(&mut self, now: Instant, duplex: &mut DuplexShaper) {
        let elapsed = self.elapsed();
        let Some(reloader) = &mut self.reloader else { return };
        let Some(read) = reloader.poll(now) else { return };
        self.watchdog.manager.reloading(now);
        let result = reloader.take_over(read, now, elapsed, duplex);
        if let Some(publication) = &self.publication {
            publication.snapshots.configure(reloader.spec());
        }
        if let Some(autorate) = self.autorate.as_mut().filter(|_| result.is_ok()) {
            autorate.reload(reloader.spec(), now);
        }
        let summary = summary(reloader.spec());
        let refused = if result.is_err() { "; its present file was refused" } else { "" };
        self.watchdog.manager.ready(&format!("{summary}{refused}"));
        let is_applied = result.is_ok();
        self.listener.reloaded(result, &summary);
        if is_applied {
            let largest = duplex.forward.params().largest_packet.min(duplex.reverse.params().largest_packet);
            for warning in warnings_with(reloader.spec(), u64::from(largest) + ETHERNET as u64) {
                self.listener.warn(warning);
            }
        }
    }

    fn answer(&mut self, duplex: &DuplexShaper, ports: &mut [AnyPort; 2]) {
        let Some(publication) = &self.publication else { return };
        let Some(wanted) = publication.snapshots.wanted(publication.answered) else { return };
        let is_published = publication.snapshots.publish(wanted, self.snapshot(duplex, ports));
        if let Some(publication) = self.publication.as_mut().filter(|_| is_published) {
            publication.answered = wanted;
        }
    }
}

impl Observer<AnyPort> for Service<'_> {
    fn look(&mut self, now: Instant, duplex: &mut DuplexShaper, ports: &mut [AnyPort; 2]) -> Instant {
        self.report(now, duplex, ports);
        self.reload(now, duplex);
        self.answer(duplex, ports);
        if now >= self.ends {
            self.stop.store(true, Ordering::Relaxed);
        }
        let is_asked = self.reloader.is_some() || self.publication.is_some();
        let look = if is_asked { now + LOOK } else { Instant::FAR_FUTURE };
        let look = match &mut self.registrar {
            Some(registrar) => registrar.look(now, duplex, look),
            None => look,
        };
        let look = match &mut self.autorate {
            Some(autorate) => look.min(autorate.look(now, duplex, &mut |text| self.listener.warn(text))),
            None => look,
        };
        let look = look.min(self.warn_of_ports(now, ports));
        look.min(self.watchdog.look(now)).min(self.intervals.next).min(self.ends)
    }
}
