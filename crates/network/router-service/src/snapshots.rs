//! Snapshots of the router's statistics for the clients of its socket.
//!
//! The loop that forwards frames must never wait for a client. A client's thread increments a counter and waits for the
//! loop's next check, at most 50 ms. The loop then copies its counters here, if the lock is free. The client's thread writes
//! the document.

use crate::configuration::configuration;
use crate::local_socket::RouterClient;
use crate::replies::{ConfigurationReply, ErrorReply, ReloadReply, ReservationsEnd};
use crate::request::RouterRequest;
use crate::spec::RouterSpec;
use crate::statistics::{AutorateStatistics, Interface, ReloadStatus, ShaperSnapshot, Statistics};
use cutline_ports::{AnyPort, InterfacePort as _, PortStats};
use cutline_router::DuplexShaper;
use cutline_sys::lock;
use cutline_sys::now;
use cutline_units::Duration;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A copy of a router's statistics at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    names: Arc<[String; 2]>,
    service: ServiceStatistics,
    directions: [ShaperSnapshot; 2],
    ports: [PortStats; 2],
    reload: Option<ReloadStatus>,
}

/// Statistics of the service itself, beside those of its shapers and ports.
#[derive(Clone, Copy, Debug)]
pub struct ServiceStatistics {
    /// The time since the router's start.
    pub elapsed: Duration,
    /// The reports that were dropped because they could not be written at once.
    pub dropped_output: u64,
    /// The clients that were refused.
    pub refused_clients: u64,
    /// Statistics of rates that follow the link.
    pub autorate: Option<AutorateStatistics>,
}

/// The place where the loop publishes snapshots and the clients' threads read them.
#[derive(Debug)]
pub struct StatsSnapshots {
    state: Mutex<State>,
    changed: Condvar,
    /// Number of snapshots requested so far.
    wanted: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// Number of snapshots that had been requested when `snapshot` was taken.
    answered: u64,
    snapshot: Option<Arc<Snapshot>>,
    configuration: Arc<RouterSpec>,
}

/// The longest time that a snapshot may take. The loop checks every 50 ms unless the machine is stopped.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// The refusal when it takes longer.
const SILENT: &str = "the router does not answer";

impl Snapshot {
    /// Takes a snapshot of the router; `names` are those of its interfaces.
    pub fn take(
        names: &Arc<[String; 2]>,
        service: ServiceStatistics,
        duplex: &DuplexShaper,
        ports: &mut [AnyPort; 2],
        reload: Option<&ReloadStatus>,
    ) -> Self {
        // A removed interface ends the router, and its counters are lost.
        let ports = ports.each_mut().map(|port| port.stats().unwrap_or_default());
        let directions =
            [ShaperSnapshot::from_shaper(&duplex.forward), ShaperSnapshot::from_shaper(&duplex.reverse)];
        Self { names: Arc::clone(names), service, directions, ports, reload: reload.cloned() }
    }

    /// Returns the document of this snapshot.
    pub fn statistics(&self, event: &str) -> Statistics {
        let [input, output] = &*self.names;
        let [forward, reverse] = &self.directions;
        let interfaces = self.names.iter().zip(self.ports);
        Statistics {
            event: event.to_owned(),
            elapsed_s: self.service.elapsed.as_secs_f64(),
            forward: forward.direction(format!("{input} -> {output}")),
            reverse: reverse.direction(format!("{output} -> {input}")),
            interfaces: interfaces.map(|(name, stats)| Interface::new(name, stats)).collect(),
            reload: self.reload.clone(),
            autorate: self.service.autorate,
            dropped_output: self.service.dropped_output,
            refused_clients: self.service.refused_clients,
        }
    }
}

impl StatsSnapshots {
    /// Creates it without a snapshot, for a router with this configuration.
    pub fn new(configuration: Arc<RouterSpec>) -> Self {
        let state = State { answered: 0, snapshot: None, configuration };
        Self { state: Mutex::new(state), changed: Condvar::new(), wanted: AtomicU64::new(0) }
    }

    /// Returns the number of requested snapshots if a client waits for one after `answered`.
    pub fn wanted(&self, answered: u64) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        (wanted > answered).then_some(wanted)
    }

    /// Publishes a snapshot for all requests up to `wanted`. Returns false if the lock is not free.
    pub fn publish(&self, wanted: u64, snapshot: Snapshot) -> bool {
        let Ok(mut state) = self.state.try_lock() else { return false };
        state.answered = wanted;
        state.snapshot = Some(Arc::new(snapshot));
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Sets the router's configuration from now on.
    pub fn configure(&self, spec: &Arc<RouterSpec>) {
        lock(&self.state).configuration = Arc::clone(spec);
    }

    /// Requests a snapshot and waits for it; `None` if the router does not publish one in time.
    fn ask(&self) -> Option<Arc<Snapshot>> {
        let mine = self.wanted.fetch_add(1, Ordering::Relaxed) + 1;
        let state = lock(&self.state);
        let waits = |state: &mut State| state.answered < mine;
        let (state, result) =
            self.changed.wait_timeout_while(state, PATIENCE, waits).unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() { None } else { state.snapshot.clone() }
    }

    /// The statistics as they are now; `None` if the router does not publish them in time.
    pub fn statistics(&self) -> Option<Statistics> {
        self.ask().map(|snapshot| snapshot.statistics("stats"))
    }

    fn configuration(&self) -> Arc<RouterSpec> {
        Arc::clone(&lock(&self.state).configuration)
    }

    /// Answers a request that changes nothing.
    pub fn reply(&self, line: &str, client: &mut dyn RouterClient) -> io::Result<()> {
        match line.parse() {
            Ok(RouterRequest::Statistics) => self.say_statistics(client),
            Ok(RouterRequest::Configuration) => {
                client.say(&ConfigurationReply::new(configuration(&self.configuration())).json())
            }
            Ok(RouterRequest::Reload) => {
                self.say_now(client, |seen| ReloadReply::new(seen.reload.as_ref()).json())
            }
            // There is none here; the session of a client knows it.
            Ok(RouterRequest::Reservations) => client.say(&ReservationsEnd::new(0).json()),
            Ok(RouterRequest::Watch(interval)) => self.watch(interval, client),
            Err(error) => client.say(&ErrorReply::new(&error).json()),
        }
    }

    fn say_statistics(&self, client: &mut dyn RouterClient) -> io::Result<()> {
        self.say_now(client, |seen| seen.statistics("stats").json())
    }

    /// Sends a line made from a new snapshot.
    fn say_now(
        &self,
        client: &mut dyn RouterClient,
        line: impl FnOnce(&Snapshot) -> String,
    ) -> io::Result<()> {
        let line = self.ask().map_or_else(|| ErrorReply::new(&SILENT).json(), |snapshot| line(&snapshot));
        client.say(&line)
    }

    /// Sends statistics at an interval until the client disconnects.
    fn watch(&self, interval: Duration, client: &mut dyn RouterClient) -> io::Result<()> {
        loop {
            let next = now() + interval;
            self.say_statistics(client)?;
            client.wait(next.saturating_since(now()))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots() -> StatsSnapshots {
        let text = "in = 'a'\nout = 'b'\nqueue.q = { aqm = 'pi', limit = '9 packets' }\n\
                    forward = { rate = '15 Mbit/s', queue = 'q' }\nreverse = { rate = '2 Mbit/s', queue = 'q' }\n";
        let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
        StatsSnapshots::new(Arc::new(spec))
    }

    /// A client that is there for so many waits.
    struct Reader {
        lines: Vec<String>,
        waits: usize,
    }

    impl RouterClient for Reader {
        fn say(&mut self, line: &str) -> io::Result<()> {
            self.lines.push(line.to_owned());
            Ok(())
        }

        fn wait(&mut self, _: Duration) -> io::Result<()> {
            self.waits = self.waits.checked_sub(1).ok_or(io::ErrorKind::ConnectionReset)?;
            Ok(())
        }
    }

    fn reply(snapshots: &StatsSnapshots, request: &str) -> String {
        let mut reader = Reader { lines: Vec::new(), waits: 0 };
        snapshots.reply(request, &mut reader).unwrap();
        assert_eq!(reader.lines.len(), 1, "{request}: {:?}", reader.lines);
        reader.lines.remove(0)
    }

    #[test]
    fn every_request_has_one_line_of_answer() {
        let snapshots = snapshots();
        assert!(reply(&snapshots, "config").contains(r#""in":"a""#));
        let refused = Statistics::parse(&reply(&snapshots, "statistics")).unwrap_err().to_string();
        assert!(
            refused.starts_with("the router refused the request: request \"statistics\" is not known"),
            "{refused}"
        );
    }

    /// A client that has gone is noticed while it waits for the next statistics, not when they are sent.
    #[test]
    fn a_watch_ends_with_its_client() {
        let snapshots = snapshots();
        let mut reader = Reader { lines: Vec::new(), waits: 0 };
        std::thread::scope(|scope| {
            let watching = scope.spawn(|| snapshots.reply("watch 1 h", &mut reader));
            // No snapshots are published, so the first one is refused after a while.
            assert_eq!(watching.join().unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        });
        assert_eq!(reader.lines.len(), 1);
    }

    #[test]
    fn a_request_is_wanted_until_it_is_answered() {
        let snapshots = snapshots();
        assert_eq!(snapshots.wanted(0), None);
        snapshots.wanted.fetch_add(2, Ordering::Relaxed);
        assert_eq!((snapshots.wanted(1), snapshots.wanted(2)), (Some(2), None));
    }
}
