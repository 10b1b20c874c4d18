//! QoS sockets for tokio, with the calls of `tokio::net`.
//!
//! ```no_run
//! use cutline_tokio::{QosOptions, QosTcpListener, QosTcpStream, SessionEvent};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut stream = QosTcpStream::connect("192.0.2.1:5004", &QosOptions::default()).await?;
//! stream.write_all(b"hello").await?;
//! let mut answer = [0; 100];
//! let length = stream.read(&mut answer).await?;
//! if let SessionEvent::Violated(_, violation) = stream.event().await {
//!     println!("{} is {}, allowed is {}", violation.measure, violation.measured, violation.limit);
//! }
//! # let _ = length;
//! # Ok(())
//! # }
//! ```
//!
//! An end that listens, receives until the peer closes, and closes:
//!
//! ```
//! use cutline_tokio::{Preset, QosOptions, QosTcpListener, QosTcpStream};
//! use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).await?;
//! let to = listener.local_addr()?;
//! let options = QosOptions::sending(Preset::File.specification());
//! let sending = async {
//!     let mut stream = QosTcpStream::connect(to, &options).await?;
//!     stream.write_all(b"a file").await?;
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! };
//! let receiving = async {
//!     let (mut stream, _from) = listener.accept().await?;
//!     let mut received = Vec::new();
//!     stream.read_to_end(&mut received).await?;
//!     Ok::<_, Box<dyn std::error::Error>>(received)
//! };
//! let (sent, received) = tokio::join!(sending, receiving);
//! sent?;
//! assert_eq!(received?, b"a file");
//! # Ok(())
//! # }
//! ```
//!
//! These are the sockets of [`cutline_socket`], which do not block. They must be made and used in a runtime whose IO and time are
//! enabled. Connecting negotiates, which takes round trips; no thread waits for that, and dropping the future ends it. With a
//! service ([`QosOptions::service`]), the call of the local agent is made in the task.
//!
//! [`ProtectedThread`] gives the thread priority that makes it, and not a task. In a runtime with one thread this is the thread of all
//! tasks. A runtime with several threads moves tasks between them, so a task cannot keep one over a wait; protect the threads themselves,
//! for which a variable of each thread holds its protection until the thread ends:
//!
//! ```
//! use cutline_tokio::ProtectedThread;
//! use std::cell::RefCell;
//!
//! thread_local!(static PROTECTED: RefCell<Option<ProtectedThread>> = const { RefCell::new(None) });
//!
//! let runtime = tokio::runtime::Builder::new_multi_thread()
//!     .worker_threads(2)
//!     .enable_all()
//!     .on_thread_start(|| match ProtectedThread::new() {
//!         Ok(protected) => PROTECTED.set(Some(protected)),
//!         Err(error) => eprintln!("a thread is not protected: {error}"),
//!     })
//!     .build()?;
//! # drop(runtime);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Threads of `spawn_blocking` are protected by this as well. A task that holds a protection while it waits cannot be spawned there:
//!
//! ```compile_fail,E0277
//! # use cutline_tokio::ProtectedThread;
//! tokio::spawn(async {
//!     let _protected = ProtectedThread::new();
//!     tokio::task::yield_now().await;
//! });
//! ```
//!
//! The documentation of each call states whether it is safe to cancel. In short: a future of one call that is dropped has done nothing, or all.

mod datagrams;
mod direct;
mod stream;
mod watched;

pub use cutline_socket::{
    Access, AckPath, AddressTextError, AllocationOptions, AllocationState, Alternatives, Attempt, Bytes,
    Cause, Class, ConnectionReservation, ConnectionSpecification, Delivery, DirectAddress, Direction, Dscp,
    Duration, Hint, HintBits, HintGoal, HintParams, IfRefused, IpVersion, Marking, Measure, Mib,
    MonitorParams, NegotiationParams, OperationParams, Pacing, Path, Peer, Preset, ProtectedThread, QosError,
    QosOptions, RaisedPriority, Rate, RateControl, RenegotiationParams, ReservationEvent, Sample,
    SchedulingClass, SchedulingStats, SentInterval, SessionEvent, SessionTrace, Specification, TfrcParams,
    UnknownService, Violation, ViolationOrigin, address,
};
pub use datagrams::{QosUdpListener, QosUdpSocket};
pub use direct::{QosDirectListener, QosDirectSocket};
pub use stream::{
    OwnedReadHalf, OwnedWriteHalf, QosTcpListener, QosTcpStream, ReadHalf, ReuniteError, WriteHalf,
};
