//! Publication of a router's statistics to the monitor of its host ([`cutline_publish`]).
//!
//! A thread of its own does it, from the snapshots that the loop makes for clients of the socket. Without a monitor it only looks for one
//! every few seconds.

use crate::snapshots::StatsSnapshots;
use cutline_publish::{Publisher, RowKind, RowSnapshot, SEARCH_EVERY, socket_path};
use cutline_sys::SysError;
use cutline_sys::reactor::wait_for_hangup;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Name of the program.
const PROGRAM: &str = "cutline router";
/// The stack of the thread, bytes.
const STACK: usize = 256 * 1024;

/// Starts a thread that publishes until the process ends; none if the environment turns publication off.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(snapshots: Arc<StatsSnapshots>) -> Result<(), SysError> {
    let Some(path) = socket_path() else { return Ok(()) };
    let search = move || {
        loop {
            // A monitor that is not there, or has gone, may come.
            let _gone = publish(&path, &snapshots);
            thread::park_timeout(SEARCH_EVERY);
        }
    };
    thread::Builder::new()
        .name("publication".to_owned())
        .stack_size(STACK)
        .spawn(search)
        .map_err(|error| SysError::new("the publication's thread cannot be started", error))
        .map(drop)
}

/// Publishes to the monitor that listens at `path`, until it goes.
fn publish(path: &Path, snapshots: &StatsSnapshots) -> io::Result<()> {
    let put = |snapshot: &mut RowSnapshot<'_>| {
        if let Some(statistics) = snapshots.statistics() {
            snapshot.put(RowKind::Router, 0, &statistics);
        }
    };
    let pause = |publisher: &mut Publisher, time: Duration| {
        Ok(!wait_for_hangup(&*publisher, cutline_units::Duration::from_nanos(time.as_nanos() as u64))?)
    };
    // No request is about something else than a socket.
    Publisher::connect(path, PROGRAM)?.run(put, pause, drop)
}
