//! Reloads a router's file on SIGHUP.

use crate::sighup::SighupWatcher;
use crate::spec::{DirectionSpec, RouterSpec};
use crate::statistics::ReloadStatus;
use cutline_router::{DuplexShaper, ShaperParams};
use cutline_sys::SysError;
use cutline_units::{Duration, Instant};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// The router's file and the status of its reloads.
#[derive(Debug)]
pub struct Reloader {
    sighup: SighupWatcher,
    path: PathBuf,
    spec: Arc<RouterSpec>,
    /// A file that is being read by a separate thread, because disks may be slow.
    reading: Option<Receiver<Result<RouterSpec, String>>>,
    status: ReloadStatus,
}

impl Reloader {
    /// Creates a reloader for a router with the specification `spec`, the content of the file at `path`. From now on SIGHUP
    /// does not end the process.
    pub fn new(path: &Path, spec: Arc<RouterSpec>) -> Result<Self, SysError> {
        let (sighup, status) = (SighupWatcher::new()?, ReloadStatus::default());
        Ok(Self { sighup, path: path.to_owned(), spec, reading: None, status })
    }

    /// Returns the current specification of the router.
    pub const fn spec(&self) -> &Arc<RouterSpec> {
        &self.spec
    }

    /// Returns the status of reloads.
    pub const fn status(&self) -> &ReloadStatus {
        &self.status
    }

    /// Returns a file that has been read completely, if there is one. Starts to read the file after a SIGHUP.
    pub fn poll(&mut self) -> Option<Result<RouterSpec, String>> {
        if self.reading.is_none() && self.sighup.take() {
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

    /// Reconfigures the shapers by a file that has been read; `elapsed` is the time since the router's start.
    pub fn take_over(
        &mut self,
        read: Result<RouterSpec, String>,
        now: Instant,
        elapsed: Duration,
        duplex: &mut DuplexShaper,
    ) -> Result<(), String> {
        let result = read.and_then(|new| self.change(new, now, duplex));
        self.status.last_s = Some(elapsed.as_secs_f64());
        self.status.error = result.as_ref().err().cloned();
        match result {
            Ok(()) => self.status.done += 1,
            Err(_) => self.status.refused += 1,
        }
        result
    }

    fn change(&mut self, new: RouterSpec, now: Instant, duplex: &mut DuplexShaper) -> Result<(), String> {
        let fixed = self.spec.fixed_differences(&new);
        if !fixed.is_empty() {
            let (keys, path) = (fixed.join("\", \""), self.path.display());
            return Err(format!("{path}: key \"{keys}\": cannot change while the router runs: restart it"));
        }
        let params = [(&duplex.forward, &new.forward), (&duplex.reverse, &new.reverse)]
            .map(|(shaper, spec)| params(shaper.params(), spec));
        duplex.reconfigure(now, params).map_err(|error| error.to_string())?;
        self.spec = Arc::new(new);
        Ok(())
    }
}

/// Returns a shaper's parameters for a direction; those that a direction does not have are taken from `base`.
pub fn params(base: &ShaperParams, spec: &DirectionSpec) -> ShaperParams {
    ShaperParams {
        queue: spec.queue.clone(),
        overhead: spec.overhead,
        hints: spec.hints.clone(),
        remark: spec.remark.clone(),
        ..*base
    }
}

/// Reads a router's file in a separate thread.
fn read(path: PathBuf) -> Receiver<Result<RouterSpec, String>> {
    let (sender, receiver) = channel();
    let work = move || {
        // The receiver is closed if the router has ended.
        drop(sender.send(RouterSpec::load(&path).map_err(|errors| errors.render())));
    };
    // If the thread cannot be started, the sender is dropped, which is reported as a failure.
    drop(std::thread::Builder::new().name("reload".to_owned()).spawn(work));
    receiver
}
