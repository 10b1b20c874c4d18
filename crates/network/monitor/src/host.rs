//! State of a host that the threads of the monitor share: the registry, the history, and documents made from both.

use crate::document::{HostDocument, ReservationState};
use crate::history::History;
use crate::registry::{PublicationLimits, PublisherId, RowRegistry, Viewer};
use cutline_publish::ManagerRequest;
use cutline_sys::clock::unix_time;
use cutline_sys::{lock, now};
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};

/// State of a host.
#[derive(Debug)]
pub struct MonitoredHost {
    started: Instant,
    registry: Mutex<RowRegistry>,
    history: Mutex<History>,
    reservations: Mutex<Option<Arc<ReservationState>>>,
    /// Connections of publishers, by which requests of managers reach them.
    publishers: Mutex<BTreeMap<PublisherId, UnixStream>>,
}

impl MonitoredHost {
    /// Creates a host of which nothing is known yet.
    pub fn new(limits: PublicationLimits) -> Self {
        Self {
            started: now(),
            registry: Mutex::new(RowRegistry::new(limits)),
            history: Mutex::default(),
            reservations: Mutex::default(),
            publishers: Mutex::default(),
        }
    }

    /// Returns the registry. No other thread can change or read it meanwhile.
    pub fn registry(&self) -> MutexGuard<'_, RowRegistry> {
        lock(&self.registry)
    }

    /// Returns the history.
    pub fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// Returns the reservations of the host; `None` without `cutlined`.
    pub fn reservations(&self) -> Option<Arc<ReservationState>> {
        lock(&self.reservations).clone()
    }

    /// Sets the reservations of the host.
    pub fn set_reservations(&self, state: ReservationState) {
        *lock(&self.reservations) = Some(Arc::new(state));
    }

    /// Notes the connection of a publisher.
    pub(crate) fn add_publisher(&self, id: PublisherId, stream: UnixStream) {
        lock(&self.publishers).insert(id, stream);
    }

    /// Forgets the connection of a publisher.
    pub(crate) fn remove_publisher(&self, id: PublisherId) {
        lock(&self.publishers).remove(&id);
    }

    /// Returns whether a publisher is connected.
    pub fn has_publisher(&self, id: PublisherId) -> bool {
        lock(&self.publishers).contains_key(&id)
    }

    /// Passes a request of a manager to a publisher. Its process decides whether to carry it out.
    ///
    /// # Errors
    /// When the publisher has gone, or does not read.
    pub fn request(&self, id: PublisherId, request: &ManagerRequest) -> io::Result<()> {
        let publishers = lock(&self.publishers);
        let mut stream = publishers.get(&id).ok_or(io::ErrorKind::NotConnected)?;
        // A line is short, so that the kernel takes all of it or nothing.
        stream.write_all(request.line().as_bytes())
    }

    /// Returns the time since the monitor's start.
    pub fn elapsed(&self) -> Duration {
        now().saturating_since(self.started)
    }

    /// Adds the present second to the history.
    pub fn note_second(&self) {
        let at = unix_time().as_secs_f64();
        // Locks are acquired in field order.
        let registry = self.registry();
        self.history().note(at, &registry);
    }

    /// Returns the document of the host for a viewer.
    pub fn document(&self, viewer: Viewer) -> HostDocument {
        let mut document = self.registry().document(viewer);
        document.reservations = self.reservations().filter(|_| viewer == Viewer::All);
        document.at_unix_s = unix_time().as_secs_f64();
        document.elapsed_s = self.elapsed().as_secs_f64();
        document
    }
}
