//! QoS sockets for tokio, with the calls of `tokio::net`.
//!
//! ```no_run
//! use cutline_tokio::{Event, QosOptions, QosTcpListener, QosTcpStream};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut stream = QosTcpStream::connect("192.0.2.1:5004", &QosOptions::default()).await?;
//! stream.write_all(b"hello").await?;
//! let mut answer = [0; 100];
//! let length = stream.read(&mut answer).await?;
//! if let Event::Violated(_, violation) = stream.event().await {
//!     println!("{} is {}, allowed is {}", violation.measure, violation.measured, violation.limit);
//! }
//! # let _ = length;
//! # Ok(())
//! # }
//! ```
//!
//! These are the sockets of [`cutline_socket`], which do not block. They must be made and used in a runtime whose IO and time are
//! enabled. Connecting negotiates, which takes round trips; no thread waits for that, and dropping the future ends it. With a
//! service ([`QosOptions::service`]), the call of the local agent is made in the task.
//!
//! What is safe to cancel is said of each call. In short: a future of one call that is dropped has done nothing, or all.

mod datagrams;
mod stream;
mod watched;

pub use cutline_socket::{
    Access, AckPath, ConnectionSpecification, Direction, Event, IfRefused, Marking, Mib, Pacing, Peer,
    QosError, QosOptions, ReservationEvent, ReservationStatus,
};
pub use datagrams::{QosUdpListener, QosUdpSocket};
pub use stream::{OwnedReadHalf, OwnedWriteHalf, QosTcpListener, QosTcpStream, ReadHalf, WriteHalf};
