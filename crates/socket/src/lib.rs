//! QoS sockets: an application says what it needs of a connection, and is told what it gets (QoSockets, QUANTA).
//!
//! Each socket is like the one of the standard library, with the same calls. It also negotiates with the other end, keeps the
//! application within what was agreed on, marks packets with a delay hint, measures what is delivered at both ends, and says when
//! it is not what was agreed on.
//!
//! ```no_run
//! use cutline_quality::spec::Preset;
//! use cutline_socket::{Event, QosOptions, QosUdpSocket};
//!
//! let options = QosOptions::sending(Preset::Audio.specification());
//! let call = QosUdpSocket::connect("192.0.2.1:5004", &options)?;
//! call.send(&[0; 160])?;
//! println!("{:?}", call.mib().send.last);
//! for event in call.events() {
//!     if let Event::Violated(_, violation) = event {
//!         println!("{} is {}, allowed is {}", violation.measure, violation.measured, violation.limit);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With an end that is no QoS socket it is a plain socket on the wire, and measures what one end can see.
//!
//! The protocol is the object [`Session`](cutline_signal::session::Session), which does no IO. This crate connects it to the
//! kernel:
//!
//! ```text
//! options     what an application asks for
//! error       why it cannot have it
//! settings    what follows from it for the socket: buffers, marks
//! connecting  the addresses of a name, one after the other or together
//! connection  what every kind of socket has: the session, its events, its MIB
//! udp         datagrams
//! tcp         streams
//! reservation what the network is asked for, and gives
//! mib         all that is known of a connection
//! recovery    making a broken connection again
//! handler     the application's handler of events
//! signals     signals in calls that wait
//! keeper      the thread that serves connections while the application does something else
//! ```

mod connecting;
mod connection;
mod error;
mod handler;
mod keeper;
mod mib;
mod options;
mod recovery;
mod reservation;
mod settings;
mod signals;
mod tcp;
mod time;
mod udp;

pub use connecting::{Connect, Connecting, Readiness};
pub use cutline_provision::{Access, Event as ReservationEvent};
pub use cutline_quality::spec::ConnectionSpecification;
pub use cutline_signal::monitor::{Delivery, Sample, SentInterval};
pub use cutline_signal::rate_control::{RateControl, TfrcParams};
pub use cutline_signal::session::{Cause, Direction, Event};
pub use error::QosError;
pub use keeper::start;
pub use mib::Mib;
pub use options::{Marking, Pacing, Peer, QosOptions};
pub use reservation::{AckPath, IfRefused, ReservationStatus};
pub use signals::Interruptible;
pub use tcp::{QosTcpListener, QosTcpStream};
pub use udp::{Attempt, QosUdpListener, QosUdpSocket};
