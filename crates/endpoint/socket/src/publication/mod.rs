//! Publication of the process's connections to the monitor of its host ([`cutline_publish`]).
//!
//! The thread that serves connections looks for a monitor every few seconds. Where one listens, a thread of its own publishes rows of
//! connections until the monitor goes: each second of a busy one, and less often of others. So making rows delays no report, and a
//! process without a monitor has no further thread. A row is made from the connection's MIB: messages cost nothing more than without
//! publication.
//!
//! ```text
//! pace   times at which the row of a connection is made
//! row    the row, and a brief view without making it; its parts are counted in `row_cost`
//! texts  texts of a row that seldom change
//! ```

mod pace;
mod row;
mod texts;

pub use pace::ConnectionGlance;
pub use texts::RowTexts;

use crate::service_thread;
use crate::time::duration;
use cutline_publish::{ManagerRequest, Publisher, RowKind, RowSnapshot, SEARCH_EVERY, socket_path};
use cutline_sys::now;
use cutline_sys::process::PerProcess;
use cutline_sys::reactor::{PollFd, PollFlags, wait_once};
use cutline_units::Instant;
use pace::RowPace;
use row::{glance, row};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Search for a monitor.
#[derive(Debug)]
pub struct Search {
    path: Option<PathBuf>,
    due: Instant,
}

impl Search {
    /// Returns a search that begins now, from the environment of the process.
    pub fn new() -> Self {
        Self { path: socket_path(), due: now() }
    }

    /// Looks for a monitor if it is time, and publishes to it from then on.
    pub fn look(&mut self, now: Instant) {
        let Some(path) = self.path.as_ref().filter(|_| now >= self.due && !is_publishing()) else { return };
        self.due = now.saturating_add(duration(SEARCH_EVERY));
        // Without a monitor, or without a thread, nothing is published; the next search may find one.
        if let Ok(publisher) = Publisher::connect(path, &program()) {
            publishing().store(true, Ordering::Relaxed);
            let thread = std::thread::Builder::new().name("cutline-publish".to_owned()).spawn(move || {
                let _gone = publish(publisher);
                publishing().store(false, Ordering::Relaxed);
            });
            if thread.is_err() {
                publishing().store(false, Ordering::Relaxed);
            }
        }
    }
}

/// Flag of this process: true while a thread publishes.
fn publishing() -> &'static AtomicBool {
    static PUBLISHING: PerProcess<AtomicBool> = PerProcess::new();
    PUBLISHING.get()
}

fn is_publishing() -> bool {
    publishing().load(Ordering::Relaxed)
}

/// Name of the program: that of its file.
fn program() -> String {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    let name = || {
        let first = std::env::args_os().next().map(PathBuf::from);
        let name = first.as_ref().and_then(|path| path.file_name());
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    PROGRAM.get_or_init(name).clone()
}

/// Connection that is published.
#[derive(Debug, Default)]
struct PublishedConnection {
    pace: RowPace,
    texts: RowTexts,
}

/// Publishes until the monitor goes.
fn publish(publisher: Publisher) -> io::Result<()> {
    let mut published: BTreeMap<u64, PublishedConnection> = BTreeMap::new();
    let put = |snapshot: &mut RowSnapshot<'_>| {
        let (now, connections) = (now(), service_thread::connections());
        published.retain(|number, _| connections.binary_search_by_key(number, |(number, _)| *number).is_ok());
        for (number, connection) in connections {
            let Some(connection) = connection.upgrade() else { continue };
            let Some(calls) = connection.shared_calls() else { continue };
            let Some(glance) = glance(calls) else { continue };
            let PublishedConnection { pace, texts } = published.entry(number).or_default();
            if !pace.is_due(now, glance) {
                snapshot.keep(RowKind::Socket, number);
            } else if let Some(row) = row(calls, number, texts) {
                snapshot.put(RowKind::Socket, number, &row);
            }
        }
    };
    let manage = |request: ManagerRequest| {
        let connection =
            service_thread::connections().into_iter().find(|(number, _)| *number == request.socket());
        let connection = connection.and_then(|(_, connection)| connection.upgrade());
        // Only if the application allows it.
        if let Some(calls) = connection.as_ref().and_then(|connection| connection.shared_calls())
            && let Some(specification) = calls.connection().managed_specification(&request)
        {
            calls.renegotiate(specification);
        }
    };
    publisher.run(put, |publisher, time| pause(publisher, now().saturating_add(duration(time))), manage)
}

/// Waits until `time`, or until the monitor sends something or goes, and sends data that still waits.
fn pause(publisher: &mut Publisher, time: Instant) -> io::Result<bool> {
    loop {
        // The rows of thousands of sockets do not fit into the kernel's buffer.
        let events = if publisher.flush()? { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let left = time.saturating_since(now());
        match wait_once(&mut [PollFd::new(&*publisher, events)], left) {
            Ok(true) if events.contains(PollFlags::OUT) && !left.is_zero() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}
