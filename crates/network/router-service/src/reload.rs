//! Reloads a router's file on SIGHUP.

use crate::spec::{DirectionSpec, RouterSpec};
use crate::statistics::ReloadStatus;
use cutline_router::{DuplexShaper, ShaperParams};
use cutline_service::SighupWatcher;
use cutline_sys::SysError;
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// The router's file and the status of its reloads.
#[derive(Debug)]
pub struct Reloader {
    sighup: SighupWatcher,
    path: PathBuf,
    spec: Arc<RouterSpec>,
    /// A file that is being read.
    reading: Option<Reading>,
    /// Number of threads that are reading the file. One that was given up may read on.
    readers: Arc<AtomicUsize>,
    status: ReloadStatus,
}

/// A file that is being read by a separate thread, because disks may be slow.
#[derive(Debug)]
struct Reading {
    result: Receiver<Result<RouterSpec, String>>,
    until: Instant,
}

/// Maximum time for reading the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most threads that read it, with those that were given up.
const MAX_READERS: usize = 4;
/// The longest message about a file that is kept, bytes. Statistics carry it.
const LONGEST_MESSAGE: usize = 4096;

impl Reloader {
    /// Creates a reloader for a router with the specification `spec`, the content of the file at `path`. From now on SIGHUP
    /// does not end the process.
    pub fn new(path: &Path, spec: Arc<RouterSpec>) -> Result<Self, SysError> {
        let (sighup, status) = (SighupWatcher::new()?, ReloadStatus::default());
        let readers = Arc::default();
        Ok(Self { sighup, path: path.to_owned(), spec, reading: None, readers, status })
    }

    /// Returns the current specification of the router.
    pub const fn spec(&self) -> &Arc<RouterSpec> {
        &self.spec
    }

    /// Returns the status of reloads.
    pub const fn status(&self) -> &ReloadStatus {
        &self.status
    }

    /// Returns a file that has been read completely, or has taken too long. Starts to read the file after a SIGHUP.
    pub fn poll(&mut self, now: Instant) -> Option<Result<RouterSpec, String>> {
        if self.reading.is_none() && self.sighup.take() {
            if self.readers.load(Ordering::Relaxed) >= MAX_READERS {
                return Some(Err(self.unread(&format!("{MAX_READERS} earlier attempts have not ended"))));
            }
            let result = read(self.path.clone(), Arc::clone(&self.readers));
            self.reading = Some(Reading { result, until: now + PATIENCE });
        }
        let reading = self.reading.as_ref()?;
        let result = match reading.result.try_recv() {
            Err(TryRecvError::Empty) if now < reading.until => return None,
            Err(TryRecvError::Empty) => Err(self.unread(&format!("it has taken longer than {PATIENCE}"))),
            Err(TryRecvError::Disconnected) => Err(self.unread("no thread could be started")),
            Ok(result) => result,
        };
        self.reading = None;
        Some(result)
    }

    fn unread(&self, why: &str) -> String {
        format!("{}: cannot be read: {why}", Printable(self.path.display()))
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
            let (keys, path) = (fixed.join("\", \""), Printable(self.path.display()));
            return Err(format!("{path}: key \"{keys}\": cannot change while the router runs: restart it"));
        }
        let largest = [&duplex.reverse, &duplex.forward].map(|shaper| shaper.params().largest_packet);
        let new = new.at_interfaces(largest);
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
        host_prefix: spec.host_prefix,
        hints: spec.hints.clone(),
        remark: spec.remark.clone(),
        ..*base
    }
}

/// Reads a router's file in a separate thread, which is counted among the readers.
fn read(path: PathBuf, readers: Arc<AtomicUsize>) -> Receiver<Result<RouterSpec, String>> {
    let (sender, receiver) = channel();
    let count = Arc::clone(&readers);
    let work = move || {
        let result = RouterSpec::load(&path).map_err(|errors| shortened(errors.render()));
        // The receiver is closed if the router has ended, or has waited for too long.
        drop(sender.send(result));
        readers.fetch_sub(1, Ordering::Relaxed);
    };
    count.fetch_add(1, Ordering::Relaxed);
    // If the thread cannot be started, the sender is dropped, which is reported as a failure.
    if std::thread::Builder::new().name("reload".to_owned()).spawn(work).is_err() {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    receiver
}

/// Cuts a message that is too long.
pub fn shortened(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        message.truncate(end);
        message.push_str("\n... (there is more)");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("\u{e4}".repeat(5000).replacen('\u{e4}', "a", 1));
        assert!(long.len() < LONGEST_MESSAGE + 30 && long.ends_with("(there is more)"));
    }
}
