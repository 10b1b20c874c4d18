//! QoS sockets: an application states its requirements on a connection, and gets measurements of the delivery (QoSockets, QUANTA).
//!
//! Each socket is like the one of the standard library, with the same calls. It also negotiates with the peer, keeps the
//! application within the agreement, marks packets with a delay hint, measures the delivery at both ends, and reports when
//! it violates the agreement.
//!
//! ```no_run
//! use cutline_quality::spec::Preset;
//! use cutline_socket::{QosOptions, QosUdpSocket, SessionEvent};
//!
//! let options = QosOptions::sending(Preset::Audio.specification());
//! let call = QosUdpSocket::connect("192.0.2.1:5004", &options)?;
//! call.send(&[0; 160])?;
//! println!("{:?}", call.mib().send.last);
//! for event in call.events() {
//!     if let SessionEvent::Violated(_, violation) = event {
//!         println!("{} is {}, allowed is {}", violation.measure, violation.measured, violation.limit);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An end that listens, receives until the peer closes, and closes:
//!
//! ```
//! use cutline_socket::{Preset, QosOptions, QosTcpListener, QosTcpStream};
//! use std::io::{Read as _, Write as _};
//!
//! let options = QosOptions::receiving(Preset::File.specification());
//! let listener = QosTcpListener::bind("127.0.0.1:0", &options)?;
//! let to = listener.local_addr()?;
//! let sending = std::thread::spawn(move || -> Result<(), cutline_socket::QosError> {
//!     let options = QosOptions::sending(Preset::File.specification());
//!     let mut stream = QosTcpStream::connect(to, &options)?;
//!     stream.write_all(b"a file").expect("the peer reads");
//!     // Dropping it closes it, and written data is delivered.
//!     Ok(())
//! });
//! let (mut stream, _from) = listener.accept()?;
//! let mut received = Vec::new();
//! stream.read_to_end(&mut received)?;
//! assert_eq!(received, b"a file");
//! println!("{:?}", stream.mib().receive.received);
//! sending.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With an end that is no QoS socket it is a plain socket on the wire, and measures at one end alone.
//!
//! The protocol is the object [`Session`](cutline_signal::session::Session), which does no IO. This crate connects it to the
//! kernel:
//!
//! ```text
//! options            the options of an application
//! error              why it cannot have it
//! settings           the settings of a socket that follow from the options: buffers, marks
//! session            the session of a connection, from its options
//! hint_mark          the delay hint as the mark of packets
//! patience           timeouts of calls that receive
//! connecting         the addresses of a name, one after the other or together
//! connection         the common part of all sockets: the session, its events, its MIB
//! connection_handle  a connection of either kind: the calls that streams and datagram sockets share
//! udp                datagrams, of UDP and in frames below IP
//! tcp                streams
//! allocation         share of the host's resources
//! gate               order in which managed datagram sockets send
//! reservation        requests to the network, and its grants
//! mib                all that is known of a connection
//! recovery           making a broken connection again
//! publication        rows for the monitor of this host
//! handler            the application's handler of events
//! signals            signals in calls that wait
//! protection         priority of receiving threads
//! service_thread     the thread that serves connections while the application does something else
//! ```

mod allocation;
#[cfg(test)]
mod awaited;
mod connecting;
mod connection;
mod connection_handle;
mod error;
mod gate;
mod handler;
mod hint_mark;
mod mib;
mod options;
mod patience;
mod protection;
mod publication;
mod recovery;
mod reservation;
mod service_thread;
mod session;
mod settings;
mod signals;
mod tcp;
mod time;
mod udp;

pub use allocation::AllocationOptions;
pub use connecting::{Connect, Connecting, Readiness};
pub use connection_handle::ConnectionHandle;
pub use cutline_allocation::AllocationState;
pub use cutline_direct::{AddressTextError, DirectAddress};
pub use cutline_manager::resources::SchedulingClass;
pub use cutline_manager::scheduling::SchedulingStats;
pub use cutline_provision::{Access, GrantEvent as ReservationEvent, UnknownService};
pub use cutline_quality::spec::{ConnectionSpecification, Measure, Preset, Specification};
pub use cutline_quality::{Class, HintGoal, HintParams};
pub use cutline_signal::monitor::MonitorParams;
pub use cutline_signal::monitor::{Delivery, Sample, SentInterval};
pub use cutline_signal::negotiation::NegotiationParams;
pub use cutline_signal::operation::OperationParams;
pub use cutline_signal::rate_control::{RateControl, TfrcParams};
pub use cutline_signal::renegotiation::{Alternatives, RenegotiationParams};
pub use cutline_signal::session::trace::SessionTrace;
pub use cutline_signal::session::{Cause, Direction, SessionEvent};
pub use cutline_signal::violation::{Violation, ViolationOrigin};
pub use cutline_sys::address;
pub use cutline_sys::thread::RaisedPriority;
pub use cutline_translate::{AckPath, Path};
pub use cutline_units::{Bytes, Dscp, Duration, Hint, HintBits, Instant, IpVersion, Rate};
pub use error::QosError;
pub use mib::Mib;
pub use options::{Marking, Pacing, Peer, QosOptions};
pub use protection::ProtectedThread;
pub use reservation::{ConnectionReservation, IfRefused};
pub use service_thread::start;
pub use signals::Interruptible;
pub use tcp::{QosTcpListener, QosTcpStream};
pub use udp::{Attempt, QosDirectListener, QosDirectSocket, QosUdpListener, QosUdpSocket};
