//! QoS sockets: the classes behind `cutline.socket`.
//!
//! It is a thin layer: the classes that read like those of the standard library are in Python, in `cutline/socket.py`. While a call
//! waits, other threads of Python run.

use crate::errors::{Lost, NoPeer, OptionError, Refused};
use cutline_bindings::{
    AnyAddress, AnySocket, CallFailure, EventKind, EventOrigin, GrantState, Mib, Options, RefusalReason,
    ReservationEvent, ReservationEventKind, SessionEvent, SocketPlace, SocketType, TrafficDirection,
    errno_of, is_direct, measure_names, parameter_names, system_message,
};
use cutline_socket::{ConnectionHandle, Interruptible, QosError, SessionEvent as QosEvent};
use cutline_sys::address::lookup_host;
use cutline_sys::now;
use cutline_sys::reactor::{self, PollFd, PollFlags};
use pyo3::exceptions::{PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The callable that gets events. The core calls it by a closure that shares this, so that Python's garbage collector sees its owner.
type Handler = Arc<Mutex<Option<Py<PyAny>>>>;

/// A socket of either kind, connected or listening.
#[pyclass(module = "cutline._native", frozen)]
struct Socket {
    socket: AnySocket,
    handler: Handler,
}

/// An address as Python has it: the host, the port and, for IPv6, flow label and zone.
type Address = (String, u16, Option<(u32, u32)>);

/// The longest time between two checks for a signal that Python handles, such as that of Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

fn failed(error: QosError) -> PyErr {
    let text = error.to_string();
    match error {
        QosError::Option(_) => OptionError::new_err(text),
        QosError::Refused { .. } | QosError::Reservation(_) | QosError::Unallocated(_) => {
            Refused::new_err(text)
        }
        QosError::NoPeer(_) => NoPeer::new_err(text),
        QosError::Lost(_) => Lost::new_err(text),
        QosError::NotRecovered { .. } | QosError::Silent(_) => PyTimeoutError::new_err(text),
        QosError::Inherited => system(&io::ErrorKind::NotConnected.into(), text),
        QosError::Replaced => system(&io::ErrorKind::ConnectionReset.into(), text),
        QosError::System { doing, source } => {
            system(&source, format!("{doing}: {}", system_message(&source)))
        }
    }
}

/// Returns the exception for an error of the system. With the number Python chooses its kind, and programs find it in `errno`.
pub fn system(error: &io::Error, text: String) -> PyErr {
    match errno_of(error) {
        Some(errno) => PyOSError::new_err((errno, text)),
        None => io::Error::new(error.kind(), text).into(),
    }
}

fn failed_io(error: io::Error) -> PyErr {
    let error = match CallFailure::from(error) {
        CallFailure::Qos(error) => return failed(error),
        CallFailure::Unsupported(call) => {
            return PyOSError::new_err((Errno::OPNOTSUPP.raw_os_error(), call.to_string()));
        }
        CallFailure::Io(error) => error,
    };
    if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        return OptionError::new_err(error.to_string());
    }
    system(&error, system_message(&error))
}

/// Carries out a call while other threads run. While the call waits, signals are checked; one that Python handles may end the call.
fn waiting<T: Send>(py: Python<'_>, mut act: impl FnMut() -> io::Result<T> + Send) -> PyResult<T> {
    let call = Interruptible::new();
    loop {
        match py.detach(|| call.run(&mut act)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => py.check_signals()?,
            outcome => return outcome.map_err(failed_io),
        }
    }
}

fn options(document: &str, settings: &[(String, String)], key: Option<&[u8]>) -> PyResult<Options> {
    let mut options = Options::default();
    options.read(document).map_err(OptionError::new_err)?;
    for (name, text) in settings {
        options.set(name, text).map_err(OptionError::new_err)?;
    }
    key.map_or(Ok(()), |key| options.set_key(key)).map_err(OptionError::new_err)?;
    Ok(options)
}

/// Carries out a call that does not wait again and again until it succeeds, fails or the time is over. Between calls it waits for a descriptor,
/// in slices, so that signals that Python handles end it.
fn polling<T: Send>(
    py: Python<'_>,
    fd: BorrowedFd<'_>,
    timeout: Option<Duration>,
    mut act: impl FnMut() -> io::Result<T> + Send,
) -> PyResult<T> {
    let until = timeout.map(|timeout| now().saturating_add(units(timeout)));
    loop {
        let outcome = py.detach(|| {
            let outcome = act();
            let waits = |error: &io::Error| {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            };
            if outcome.as_ref().is_err_and(waits) {
                let left = until.map_or(units(SLICE), |until| until.saturating_since(now()));
                let slice = left.min(units(SLICE));
                // An error of the descriptor is seen by the next call.
                let _news = reactor::wait(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], slice);
                return None;
            }
            Some(outcome)
        });
        if let Some(outcome) = outcome {
            return outcome.map_err(failed_io);
        }
        py.check_signals()?;
        if until.is_some_and(|until| now() >= until) {
            return Err(PyTimeoutError::new_err("timed out"));
        }
    }
}

fn units(time: Duration) -> cutline_units::Duration {
    cutline_units::Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

impl Socket {
    fn new(socket: AnySocket) -> Self {
        Self { socket, handler: Arc::default() }
    }

    /// Returns the connection, with its events, measures and reservation.
    fn connection(&self) -> io::Result<&ConnectionHandle> {
        self.socket.connection("events and measures")
    }
}

fn locked(handler: &Mutex<Option<Py<PyAny>>>) -> MutexGuard<'_, Option<Py<PyAny>>> {
    handler.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Socket {
    /// Connects to a host, a name or an address, or listens there. A host that begins with `direct:` selects frames below IP.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        listens: bool,
        datagrams: bool,
        address: (String, u16),
        document: &str,
        settings: Vec<(String, String)>,
        key: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let options = options(document, &settings, key.as_deref())?;
        let options = &options.qos_options().map_err(OptionError::new_err)?;
        let doing = if listens { "cannot listen" } else { "cannot connect" };
        let kind = if datagrams { SocketType::Datagrams } else { SocketType::Stream };
        let (text, found);
        let place = if is_direct(&address.0) {
            text = format!("{}:{}", address.0, address.1);
            SocketPlace::Direct(&text)
        } else {
            found = py
                .detach(|| lookup_host(&address.0, address.1))
                .map_err(|source| failed(QosError::System { doing, source }))?;
            SocketPlace::Ip(&found[..])
        };
        if listens {
            return py.detach(|| AnySocket::listen(kind, place, options)).map(Self::new).map_err(failed);
        }
        let mut connecting = py.detach(|| AnySocket::connecting(kind, place, options)).map_err(failed)?;
        waiting(py, || Ok(connecting.finish()?)).map(Self::new)
    }

    /// Accepts a connection: waits so many seconds, or without a limit. The listener itself must be non-blocking.
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Self> {
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        // A listener of datagrams has to be called now and then: it repeats lost messages.
        let accept = || self.socket.accept().map(|(socket, _)| Self::new(socket));
        if timeout == Some(Duration::ZERO) {
            return py.detach(accept).map_err(failed_io);
        }
        polling(py, self.socket.as_fd(), timeout, accept)
    }

    /// Sends the bytes from `start` on: all of them, or if `all` is false as many as the kernel takes in one wait.
    fn send(&self, py: Python<'_>, data: &[u8], start: usize, all: bool) -> PyResult<usize> {
        let data = data.get(start..).unwrap_or_default();
        let mut sent = 0;
        waiting(py, || {
            sent += self.socket.send(&data[sent..])?;
            // Between the parts it looks for signals.
            if all && sent < data.len() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(sent) }
        })
    }

    fn recv<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut buffer = vec![0; size];
        let length = waiting(py, || self.socket.recv(&mut buffer))?;
        Ok(PyBytes::new(py, &buffer[..length]))
    }

    /// Returns whether the connection carries datagrams.
    fn datagrams(&self) -> bool {
        self.socket.has_datagrams()
    }

    fn fileno(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    fn pending(&self) -> bool {
        self.socket.has_pending().unwrap_or(false)
    }

    /// True while an accepted stream waits for the first bytes of its peer, and may not be able to send before.
    fn joining(&self) -> bool {
        matches!(&self.socket, AnySocket::Stream(stream) if stream.is_joining())
    }

    fn set_nonblocking(&self, nonblocking: bool) -> PyResult<()> {
        self.socket.set_nonblocking(nonblocking).map_err(failed_io)
    }

    /// Sets the longest wait, seconds; `None` is without a limit.
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        let time = seconds.map(Duration::try_from_secs_f64).transpose();
        let time = time.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        // Sending of datagrams has no time limit of its own.
        let set_write = || match &self.socket {
            AnySocket::Stream(stream) => stream.set_write_timeout(time),
            _ => Ok(()),
        };
        self.socket.set_read_timeout(time).and_then(|()| set_write()).map_err(failed_io)
    }

    fn addresses(&self) -> PyResult<(Address, Option<Address>)> {
        let parts = |address: AnyAddress| {
            let more = match address {
                AnyAddress::Ip(SocketAddr::V6(v6)) => Some((v6.flowinfo(), v6.scope_id())),
                AnyAddress::Ip(SocketAddr::V4(_)) | AnyAddress::Direct(_) => None,
            };
            (address.host(), address.socket_addr().port(), more)
        };
        let (here, there) = (self.socket.local_addr(), self.socket.peer_addr().ok());
        Ok((parts(here.map_err(failed_io)?), there.map(parts)))
    }

    fn has_qos_peer(&self, py: Python<'_>) -> PyResult<bool> {
        waiting(py, || self.socket.has_qos_peer())
    }

    /// Returns the next event as JSON and as text; waits for it so many seconds.
    fn event(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<(String, String)>> {
        let mut left = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        loop {
            let slice = left.min(SLICE);
            let connection = self.connection().map_err(failed_io)?;
            let event = py.detach(|| connection.wait_for_event(slice));
            if let Some(event) = event {
                let event = SessionEvent::from(&event);
                return Ok(Some((json(&event), event.words().to_owned())));
            }
            py.check_signals()?;
            left -= slice;
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Sets a callable that is called with each event, as JSON and as text; `None` removes it.
    fn on_event(&self, py: Python<'_>, handler: Option<Py<PyAny>>) -> PyResult<()> {
        let is_set = handler.is_some();
        let connection = match self.connection() {
            // In a child by fork(2) the parent's thread calls no handler, and may be in it forever.
            Err(error) if !is_set && error.kind() == io::ErrorKind::NotConnected => {
                let former = locked(&self.handler).take();
                drop(former);
                return Ok(());
            }
            connection => connection.map_err(failed_io)?,
        };
        // The former one is dropped after the lock is released: its end may be anything.
        let former = {
            // The core's former closure is removed first, so that it never calls the new handler.
            py.detach(|| connection.remove_handler());
            std::mem::replace(&mut *locked(&self.handler), handler)
        };
        drop(former);
        if !is_set {
            return Ok(());
        }
        let shared = Arc::downgrade(&self.handler);
        let call = move |event: QosEvent| {
            let event = SessionEvent::from(&event);
            // While the interpreter ends no handler is called.
            let _called = Python::try_attach(|py| {
                let held = shared.upgrade();
                let handler =
                    held.and_then(|held| locked(&held).as_ref().map(|handler| handler.clone_ref(py)));
                let Some(handler) = handler else { return };
                if let Err(error) = handler.call1(py, (json(&event), event.words())) {
                    error.write_unraisable(py, Some(handler.bind(py)));
                }
            });
        };
        // A handler that is running needs the interpreter.
        py.detach(|| connection.on_event(call));
        Ok(())
    }

    /// Shows the references of this object to the garbage collector: a handler often holds the connection.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // It is locked for a moment only, by a thread that has the interpreter, as this one has.
        match self.handler.try_lock() {
            Ok(handler) => handler.as_ref().map_or(Ok(()), |handler| visit.call(handler)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let former = self.handler.try_lock().ok().and_then(|mut handler| handler.take());
        drop(former);
    }

    /// Returns the state of the connection, as JSON.
    fn mib(&self) -> PyResult<String> {
        Ok(json(&Mib::from(&self.connection().map_err(failed_io)?.mib())))
    }

    /// Returns the next event of the reservation as JSON; does not wait.
    fn reservation_event(&self) -> PyResult<Option<String>> {
        let event = self.connection().map_err(failed_io)?.reservation_event();
        Ok(event.map(|event| json(&ReservationEvent::from(&event))))
    }

    fn renegotiate(&self, document: &str, settings: Vec<(String, String)>) -> PyResult<()> {
        let specification = options(document, &settings, None)?.specification();
        let specification = specification.map_err(OptionError::new_err)?;
        self.connection().map_err(failed_io)?.renegotiate(specification);
        Ok(())
    }

    /// Shuts down reading (0), writing (1) or both (2).
    fn shutdown(&self, how: i32) -> PyResult<()> {
        let how = match how {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            2 => Shutdown::Both,
            _ => {
                let why = format!("how = {how}: allowed are 0, 1 and 2");
                return Err(PyOSError::new_err((Errno::INVAL.raw_os_error(), why)));
            }
        };
        self.socket.shutdown(how).map_err(failed_io)
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Adds the socket and the tables of names.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Socket>()?;
    for (table, names) in [
        ("KINDS", EventKind::names()),
        ("TRAFFIC_DIRECTIONS", TrafficDirection::names()),
        ("ORIGINS", EventOrigin::names()),
        ("MEASURES", measure_names()),
        ("PARAMETERS", parameter_names()),
        ("GRANT_STATES", GrantState::names()),
        ("REASONS", RefusalReason::names()),
        ("RESERVATION_KINDS", ReservationEventKind::names()),
    ] {
        module.add(table, names)?;
    }
    Ok(())
}
