//! All measurements of a table, one after the other. Each is stored when it is complete, so that a later run makes
//! only the missing ones.

use crate::error::RunError;
use crate::headers::Packets;
use crate::measurement::measure;
use crate::plan::{BaselinePlan, duration, missing, unknown};
use crate::receiver::FarEnd;
use cutline_baseline::{BaselineDocument, FORMAT, HostFingerprint, Invalid, PathFingerprint, RowKey, save};
use cutline_sys::{clock, now};
use cutline_units::{Duration, Instant};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Assumed time of a measurement in addition to sending, before the first one.
const ASSUMED_OVERHEAD: Duration = Duration::from_millis(600);

/// Number of attempts at a measurement that sends nothing.
const TRIES: u32 = 5;
/// The interval at which the flag to stop is checked while a session may not begin yet.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// The state of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Measurements that are complete.
    pub done: usize,
    /// Approximate number of all measurements: the loads of the host are chosen during the run.
    pub all: usize,
    /// Approximate time until the end.
    pub left: Duration,
    /// The next measurement; `None` at the end.
    pub next: Option<RowKey>,
}

/// The measurements of a table.
pub struct Runner {
    far: FarEnd,
    packets: Packets,
    document: BaselineDocument,
    file: PathBuf,
    /// Number of measurements of this run, and their time in addition to sending.
    made: u32,
    overhead: Duration,
    /// The beginning of the last measurement of this run.
    last: Instant,
}

impl Runner {
    /// Prepares the measurements of a plan. `existing` is the table that is in the file; its measurements are not repeated.
    ///
    /// # Errors
    /// When the existing table is of another host, path or plan, or not complete and too old, or there is no path to the receiver.
    pub fn new(
        plan: &BaselinePlan,
        far: FarEnd,
        file: &Path,
        existing: Option<BaselineDocument>,
        program: &str,
    ) -> Result<Self, RunError> {
        let packets = far.packets()?;
        let fresh = BaselineDocument {
            format: FORMAT,
            program: program.to_owned(),
            host: HostFingerprint::of_this_host(),
            path: PathFingerprint { receiver: far.name.clone(), mtu: packets.mtu },
            plan: plan.document(),
            began_s: clock::unix_time().as_nanos() / 1_000_000_000,
            ..BaselineDocument::default()
        };
        let document = match existing {
            Some(existing) => {
                check_same(&existing, &fresh)?;
                if let (false, Err(why @ Invalid::Old { .. })) =
                    (existing.complete, existing.check(&fresh.host, fresh.began_s))
                {
                    return Err(RunError::Old(why));
                }
                existing
            }
            None => fresh,
        };
        let file = file.to_owned();
        Ok(Self { far, packets, document, file, made: 0, overhead: Duration::ZERO, last: Instant::ZERO })
    }

    /// Makes the missing measurements, until all are there or `stop` is set. Calls `each` before every measurement and at the end.
    ///
    /// # Errors
    /// When a measurement fails or the table cannot be written. Complete measurements are stored.
    pub fn run(&mut self, stop: &AtomicBool, mut each: impl FnMut(&Progress)) -> Result<(), RunError> {
        let mut idle = 0;
        loop {
            let keys = missing(&mut self.document);
            each(&self.progress(&keys));
            let Some(key) = keys.into_iter().next() else { break };
            self.wait(stop);
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let began = now();
            self.last = began;
            let measured = measure(&key, &self.document.plan, self.packets, &self.far, stop)?;
            let Some(row) = measured else { return Ok(()) };
            if row.blocks == 0 {
                idle += 1;
                if idle == TRIES {
                    return Err(RunError::Idle(TRIES));
                }
                continue;
            }
            idle = 0;
            let sending = duration(&self.document.plan, &key);
            self.overhead += now().saturating_since(began).saturating_sub(sending);
            self.made += 1;
            self.document.rows.push(row);
            self.store()?;
        }
        if !self.document.complete {
            self.document.complete = true;
            self.store()?;
        }
        Ok(())
    }

    /// Waits until the receiver allows another session.
    fn wait(&self, stop: &AtomicBool) {
        let next = self.last.saturating_add(self.far.spacing());
        while now() < next && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(LOOK);
        }
    }

    /// Returns the table.
    pub const fn document(&self) -> &BaselineDocument {
        &self.document
    }

    fn store(&mut self) -> Result<(), RunError> {
        self.document.ended_s = clock::unix_time().as_nanos() / 1_000_000_000;
        Ok(save(&self.file, &self.document)?)
    }

    fn progress(&self, keys: &[RowKey]) -> Progress {
        let later = unknown(&self.document);
        let overhead = if self.made == 0 { ASSUMED_OVERHEAD } else { self.overhead / u64::from(self.made) };
        let time = |key: &RowKey| duration(&self.document.plan, key) + overhead;
        let left = keys.iter().chain(&later).map(time).fold(Duration::ZERO, |sum, time| sum + time);
        let done = self.document.rows.len();
        Progress { done, all: done + keys.len() + later.len(), left, next: keys.first().cloned() }
    }
}

/// Checks that an existing table is of the same host, path and plan.
fn check_same(existing: &BaselineDocument, ours: &BaselineDocument) -> Result<(), RunError> {
    if let Some((_, theirs, ours)) = existing.host.difference(&ours.host) {
        return Err(RunError::Other { what: "host", theirs, ours });
    }
    let pairs = [
        ("receiver", existing.path.receiver.clone(), ours.path.receiver.clone()),
        ("longest packet of the path", existing.path.mtu.to_string(), ours.path.mtu.to_string()),
        ("plan", plan_text(existing), plan_text(ours)),
    ];
    let different = pairs.into_iter().find(|(_, theirs, ours)| theirs != ours);
    different.map_or(Ok(()), |(what, theirs, ours)| Err(RunError::Other { what, theirs, ours }))
}

/// Returns the properties of a plan that the options set.
fn plan_text(document: &BaselineDocument) -> String {
    let plan = &document.plan;
    format!(
        "{} at {:?} bit/s in blocks of {:?} B, {} ms or {} blocks each, at most {} bit/s, seed {}{}",
        plan.protocols.join(" and "),
        plan.rates_bps,
        plan.blocks,
        plan.duration_ms,
        plan.least_blocks,
        plan.max_rate_bps,
        plan.seed,
        if plan.unlimited_udp { ", UDP without rate control" } else { "" }
    )
}
