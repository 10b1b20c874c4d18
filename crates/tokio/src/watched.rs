//! A socket whose descriptor the runtime watches, and its events.

use cutline_socket::{Event, QosError, QosTcpStream, QosUdpSocket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

/// A socket by its descriptor.
#[derive(Debug)]
pub struct Descriptor<T>(pub T);

impl<T: AsFd> AsRawFd for Descriptor<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Has the runtime watch a socket.
#[expect(
    deprecated,
    reason = "its successor is unsafe, as a type may give away another descriptor each time; these own the one they give"
)]
pub fn watch<T: AsFd>(socket: T) -> io::Result<AsyncFd<Descriptor<T>>> {
    AsyncFd::new(Descriptor(socket))
}

/// A socket that has events.
pub trait Connected: AsFd + Send + Sync + 'static {
    fn event(&self) -> Option<Event>;
    fn on_event(&self, handler: impl FnMut(Event) + Send + 'static);
    fn remove_handler(&self);
    fn set_nonblocking(&self) -> io::Result<()>;
}

macro_rules! connected {
    ($socket:ty) => {
        impl Connected for $socket {
            fn event(&self) -> Option<Event> {
                Self::event(self)
            }
            fn on_event(&self, handler: impl FnMut(Event) + Send + 'static) {
                Self::on_event(self, handler);
            }
            fn remove_handler(&self) {
                Self::remove_handler(self);
            }
            fn set_nonblocking(&self) -> io::Result<()> {
                Self::set_nonblocking(self, true)
            }
        }
    };
}

connected!(QosTcpStream);
connected!(QosUdpSocket);

/// A connection that the runtime watches.
pub struct Watched<T: Connected> {
    io: AsyncFd<Descriptor<T>>,
    has_event: Arc<Notify>,
}

impl<T: Connected> Watched<T> {
    pub fn new(socket: T) -> io::Result<Self> {
        socket.set_nonblocking()?;
        let has_event = Arc::new(Notify::new());
        let notify = Arc::clone(&has_event);
        socket.on_event(move |_| notify.notify_one());
        Ok(Self { io: watch(socket)?, has_event })
    }

    pub const fn io(&self) -> &AsyncFd<Descriptor<T>> {
        &self.io
    }

    pub fn socket(&self) -> &T {
        &self.io.get_ref().0
    }

    pub fn try_event(&self) -> Option<Event> {
        self.socket().event()
    }

    /// Waits for the next event.
    pub async fn event(&self) -> Event {
        loop {
            if let Some(event) = self.socket().event() {
                // Somebody else may wait for another one.
                self.has_event.notify_one();
                return event;
            }
            self.has_event.notified().await;
        }
    }
}

impl<T: Connected> Drop for Watched<T> {
    fn drop(&mut self) {
        // Not within a runtime's thread for longer than a notification takes.
        self.socket().remove_handler();
    }
}

/// Makes a socket where calls may block.
pub async fn made<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, QosError> + Send + 'static,
) -> Result<T, QosError> {
    match spawn_blocking(make).await {
        Ok(made) => made,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(system("cannot connect", io::Error::other("the runtime is shutting down"))),
        },
    }
}

/// An error of the system as one of QoS sockets.
pub fn system(doing: &'static str, source: io::Error) -> QosError {
    QosError::System { doing, source }
}
