//! Reloads a router's file on SIGHUP.

use crate::spec::{DirectionSpec, RouterSpec};
use crate::statistics::ReloadStatus;
use cutline_router::{DuplexShaper, ShaperParams};
use cutline_service::SighupWatcher;
use cutline_sys::{SysError, lock};
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};

/// The router's file and the status of its reloads.
#[derive(Debug)]
pub struct Reloader {
    sighup: SighupWatcher,
    path: PathBuf,
    spec: Arc<RouterSpec>,
    /// A file that is being read.
    reading: Option<Reading>,
    /// The threads that read the file; `None` before the first look at the signal, when the router has its final privileges. They are there
    /// from then on: a thread that is started where no memory is left ends the process.
    pool: Option<SyncSender<Order>>,
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

/// Order to read the file at a path.
type Order = (PathBuf, SyncSender<Result<RouterSpec, String>>);

/// Time that reading the file may take.
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
        Ok(Self { sighup, path: path.to_owned(), spec, reading: None, pool: None, readers, status })
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
        let readers = &self.readers;
        let pool = self.pool.get_or_insert_with(|| pool(readers));
        if self.reading.is_none() && self.sighup.take() {
            if readers.load(Ordering::Relaxed) >= MAX_READERS {
                return Some(Err(self.unread(&format!("{MAX_READERS} earlier attempts have not ended"))));
            }
            let (sender, result) = sync_channel(1);
            readers.fetch_add(1, Ordering::Relaxed);
            // An order that no thread takes drops the sender, which is reported as a failure.
            if pool.try_send((self.path.clone(), sender)).is_err() {
                readers.fetch_sub(1, Ordering::Relaxed);
            }
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

/// Starts the threads that read a router's file. Without any, orders are refused.
fn pool(readers: &Arc<AtomicUsize>) -> SyncSender<Order> {
    let (sender, receiver) = sync_channel(MAX_READERS);
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..MAX_READERS {
        let (receiver, readers) = (Arc::clone(&receiver), Arc::clone(readers));
        let read = move || {
            loop {
                let Ok((path, sender)): Result<Order, _> = lock(&receiver).recv() else { return };
                let load = || RouterSpec::load(&path).map_err(|errors| shortened(errors.render()));
                // A panic has been printed. The dropped sender shows it.
                if let Ok(result) = catch_unwind(load) {
                    // The receiver is closed if the router has ended, or has waited for too long.
                    drop(sender.send(result));
                }
                readers.fetch_sub(1, Ordering::Relaxed);
            }
        };
        drop(std::thread::Builder::new().name("reload".to_owned()).spawn(read));
    }
    sender
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
