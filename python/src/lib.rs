//! QoS sockets for Python: what `cutline.socket` is made of.
//!
//! It is a thin layer: the classes that read like those of the standard library are in Python, in `cutline/socket.py`. While a call
//! waits, other threads of Python run.

use cutline_bindings::{Event, Mib, Options, ReservationEvent};
use cutline_socket::{
    Event as QosEvent, Interruptible, QosError, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket,
};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyConnectionAbortedError, PyConnectionRefusedError, PyOSError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::net::{Shutdown, shutdown};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

create_exception!(
    cutline,
    Refused,
    PyConnectionRefusedError,
    "The ends do not agree on what the connection needs; or, with if-refused = fail, the network has not reserved it."
);
create_exception!(
    cutline,
    NoPeer,
    PyConnectionRefusedError,
    "The other end is no QoS socket, or has another key."
);
create_exception!(
    cutline,
    Lost,
    PyConnectionAbortedError,
    "The connection was lost and is made again: this call was not carried out, and the next one uses the new connection."
);
create_exception!(cutline, OptionError, PyValueError, "An option is not allowed; the text says what is.");

enum Kind {
    Stream(QosTcpStream),
    Datagrams(QosUdpSocket),
    StreamListener(Box<QosTcpListener>),
    DatagramListener(Box<QosUdpListener>),
}

/// A socket of either kind, connected or listening.
#[pyclass(module = "cutline._native", frozen)]
struct Socket(Kind);

fn failed(error: QosError) -> PyErr {
    let text = error.to_string();
    match error {
        QosError::Option(_) => OptionError::new_err(text),
        QosError::Refused { .. } | QosError::Reservation(_) => Refused::new_err(text),
        QosError::NoPeer(_) => NoPeer::new_err(text),
        QosError::Lost(_) => Lost::new_err(text),
        QosError::NotRecovered { .. } | QosError::Silent(_) => PyTimeoutError::new_err(text),
        QosError::Inherited => io::Error::new(io::ErrorKind::NotConnected, text).into(),
        QosError::System { doing, source } => match source.raw_os_error() {
            Some(errno) => PyOSError::new_err((errno, format!("{doing}: {source}"))),
            None => io::Error::new(source.kind(), text).into(),
        },
    }
}

fn failed_io(error: io::Error) -> PyErr {
    if error.get_ref().is_some_and(|inner| inner.is::<QosError>()) {
        let inner = error.into_inner().and_then(|inner| inner.downcast::<QosError>().ok());
        return inner.map_or_else(|| PyOSError::new_err("unknown"), |inner| failed(*inner));
    }
    if error.kind() == io::ErrorKind::InvalidInput && error.raw_os_error().is_none() {
        return OptionError::new_err(error.to_string());
    }
    error.into()
}

/// Carries out a call while other threads run. It looks for signals while it waits; one that Python handles may end it.
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

impl Socket {
    fn fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Stream(it) => it.as_fd(),
            Kind::Datagrams(it) => it.as_fd(),
            Kind::StreamListener(it) => it.as_fd(),
            Kind::DatagramListener(it) => it.as_fd(),
        }
    }
}

fn listening() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "a listening socket has no such call")
}

#[pymethods]
impl Socket {
    /// Connects to an address, "host:port", or listens there.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        listens: bool,
        datagrams: bool,
        address: &str,
        document: &str,
        settings: Vec<(String, String)>,
        key: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let options = options(document, &settings, key.as_deref())?;
        let options = &options.qos_options().map_err(OptionError::new_err)?;
        let kind = match (listens, datagrams) {
            (false, false) => {
                let mut connecting =
                    py.detach(|| QosTcpStream::connecting(address, options)).map_err(failed)?;
                Kind::Stream(waiting(py, || Ok(connecting.finish()?))?)
            }
            (false, true) => {
                let mut connecting =
                    py.detach(|| QosUdpSocket::connecting(address, options)).map_err(failed)?;
                Kind::Datagrams(waiting(py, || Ok(connecting.finish()?))?)
            }
            (true, false) => {
                let bound = py.detach(|| QosTcpListener::bind(address, options)).map_err(failed)?;
                Kind::StreamListener(bound.into())
            }
            (true, true) => {
                let bound = py.detach(|| QosUdpListener::bind(address, options)).map_err(failed)?;
                Kind::DatagramListener(bound.into())
            }
        };
        Ok(Self(kind))
    }

    fn accept(&self, py: Python<'_>) -> PyResult<Self> {
        waiting(py, || match &self.0 {
            Kind::StreamListener(it) => Ok(Self(Kind::Stream(it.accept()?.0))),
            Kind::DatagramListener(it) => Ok(Self(Kind::Datagrams(it.accept()?.0))),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "a connected socket accepts none")),
        })
    }

    fn send(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        waiting(py, || match &self.0 {
            Kind::Stream(it) => (&mut &*it).write(data),
            Kind::Datagrams(it) => it.send(data),
            _ => Err(listening()),
        })
    }

    fn recv<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut buffer = vec![0; size];
        let length = waiting(py, || match &self.0 {
            Kind::Stream(it) => (&mut &*it).read(&mut buffer),
            Kind::Datagrams(it) => it.recv(&mut buffer),
            _ => Err(listening()),
        })?;
        Ok(PyBytes::new(py, &buffer[..length]))
    }

    fn fileno(&self) -> i32 {
        self.fd().as_raw_fd()
    }

    fn pending(&self) -> bool {
        match &self.0 {
            Kind::Stream(it) => it.has_pending(),
            Kind::Datagrams(it) => it.has_pending(),
            _ => false,
        }
    }

    fn set_nonblocking(&self, nonblocking: bool) -> PyResult<()> {
        let outcome = match &self.0 {
            Kind::Stream(it) => it.set_nonblocking(nonblocking),
            Kind::Datagrams(it) => it.set_nonblocking(nonblocking),
            Kind::StreamListener(it) => it.set_nonblocking(nonblocking),
            Kind::DatagramListener(it) => it.set_nonblocking(nonblocking),
        };
        outcome.map_err(failed_io)
    }

    /// Seconds; `None` waits as long as it takes.
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        let time = seconds.map(Duration::try_from_secs_f64).transpose();
        let time = time.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        let outcome = match &self.0 {
            Kind::Stream(it) => it.set_read_timeout(time).and_then(|()| it.set_write_timeout(time)),
            Kind::Datagrams(it) => it.set_read_timeout(time),
            _ => Err(listening()),
        };
        outcome.map_err(failed_io)
    }

    fn addresses(&self) -> PyResult<(String, u16, Option<(String, u16)>)> {
        let pair = |address: SocketAddr| (address.ip().to_string(), address.port());
        let (here, there) = match &self.0 {
            Kind::Stream(it) => (it.local_addr(), Some(it.peer_addr())),
            Kind::Datagrams(it) => (it.local_addr(), Some(it.peer_addr())),
            Kind::StreamListener(it) => (it.local_addr(), None),
            Kind::DatagramListener(it) => (it.local_addr(), None),
        };
        let (host, port) = pair(here.map_err(failed_io)?);
        Ok((host, port, there.map(pair)))
    }

    fn has_qos_peer(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.0 {
            Kind::Stream(it) => py.detach(|| it.has_qos_peer()).map_err(failed),
            Kind::Datagrams(it) => Ok(it.has_qos_peer()),
            _ => Err(failed_io(listening())),
        }
    }

    /// The next event as JSON and in words; waits for it so many seconds.
    fn event(&self, py: Python<'_>, seconds: f64) -> PyResult<Option<(String, String)>> {
        let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let event = py.detach(|| match &self.0 {
            Kind::Stream(it) => Ok(it.wait_for_event(time)),
            Kind::Datagrams(it) => Ok(it.wait_for_event(time)),
            _ => Err(listening()),
        });
        let event = event.map_err(failed_io)?.map(|event| Event::from(&event));
        Ok(event.map(|event| (json(&event), event.words().to_owned())))
    }

    /// Has a callable called with each event, as JSON and in words; `None` removes it.
    fn on_event(&self, py: Python<'_>, handler: Option<Py<PyAny>>) -> PyResult<()> {
        // A handler that is running needs the interpreter.
        py.detach(|| {
            let Some(handler) = handler else {
                match &self.0 {
                    Kind::Stream(it) => it.remove_handler(),
                    Kind::Datagrams(it) => it.remove_handler(),
                    _ => return Err(listening()),
                }
                return Ok(());
            };
            let call = move |event: QosEvent| {
                let event = Event::from(&event);
                // While the interpreter ends nobody is called.
                let _called = Python::try_attach(|py| {
                    if let Err(error) = handler.call1(py, (json(&event), event.words())) {
                        error.write_unraisable(py, Some(handler.bind(py)));
                    }
                });
            };
            match &self.0 {
                Kind::Stream(it) => it.on_event(call),
                Kind::Datagrams(it) => it.on_event(call),
                _ => return Err(listening()),
            }
            Ok(())
        })
        .map_err(failed_io)
    }

    /// All that is known of the connection, as JSON.
    fn mib(&self) -> PyResult<String> {
        match &self.0 {
            Kind::Stream(it) => Ok(json(&Mib::from(&it.mib()))),
            Kind::Datagrams(it) => Ok(json(&Mib::from(&it.mib()))),
            _ => Err(failed_io(listening())),
        }
    }

    /// The next event of the reservation as JSON; it does not wait.
    fn reservation_event(&self) -> PyResult<Option<String>> {
        let event = match &self.0 {
            Kind::Stream(it) => it.reservation_event(),
            Kind::Datagrams(it) => it.reservation_event(),
            _ => return Err(failed_io(listening())),
        };
        Ok(event.map(|event| json(&ReservationEvent::from(&event))))
    }

    fn renegotiate(&self, document: &str, settings: Vec<(String, String)>) -> PyResult<()> {
        let specification = options(document, &settings, None)?.specification();
        let specification = specification.map_err(OptionError::new_err)?;
        match &self.0 {
            Kind::Stream(it) => it.renegotiate(specification),
            Kind::Datagrams(it) => it.renegotiate(specification),
            _ => return Err(failed_io(listening())),
        }
        Ok(())
    }

    /// 0 ends reading, 1 writing, 2 both.
    fn shutdown(&self, how: i32) -> PyResult<()> {
        let (how, kernel) = match how {
            0 => (std::net::Shutdown::Read, Shutdown::Read),
            1 => (std::net::Shutdown::Write, Shutdown::Write),
            2 => (std::net::Shutdown::Both, Shutdown::Both),
            _ => return Err(PyValueError::new_err(format!("how = {how}: allowed are 0, 1 and 2"))),
        };
        if matches!(self.0, Kind::Datagrams(_) | Kind::DatagramListener(_)) {
            let text = "shutdown: datagrams have no end";
            return Err(failed_io(io::Error::new(io::ErrorKind::Unsupported, text)));
        }
        match &self.0 {
            // What was written before is delivered, which the kernel's call alone does not promise.
            Kind::Stream(it) => it.shutdown(how).map_err(failed_io),
            _ => shutdown(self.fd(), kernel).map_err(|errno| failed_io(errno.into())),
        }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What `cutline.socket` is made of.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Socket>()?;
    module.add("Refused", module.py().get_type::<Refused>())?;
    module.add("NoPeer", module.py().get_type::<NoPeer>())?;
    module.add("Lost", module.py().get_type::<Lost>())?;
    module.add("OptionError", module.py().get_type::<OptionError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
