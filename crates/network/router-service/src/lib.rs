//! The router as a service: opened from its specification, supervised while it forwards, and queried by a local socket.
//!
//! Verdicts on frames are those of `cutline-router`, and the loop that forwards frames is in `cutline-ports`. This crate is
//! the service around them.
//!
//! ```text
//! spec           configuration of a router: plain, checked values
//! file           the router's TOML file
//! router         opens interfaces, queues and socket, drops privileges, and runs until it is stopped
//! service        runs beside the loop: statistics by interval, reload, watchdog, requests
//! reload         reads the router's file again on SIGHUP
//! reservations   reservations of clients, passed to the loop; they end with the connection
//!   reservation_request  orders of the clients
//! session        one client's connection
//! autorate       rates that follow the link
//! snapshots      snapshots of statistics for the clients, so that the loop never blocks
//! metrics        the statistics for Prometheus
//! publication    the statistics for the monitor of this host
//! local_socket   the local socket and its clients' threads
//! usual_socket   default path of the socket, and search for routers that answer
//! request        requests of clients
//! client         a client's side of requests
//!   reservation_client  reservations in a running router
//! statistics     the counters of a router, as a document
//!   interval     differences of them at two times
//!   replies      replies of the local socket, as documents
//! kernel_queue   a queue in the kernel, as a document with the same statistics
//!   kernel_queue_notes  notes on its rate and its limit
//! configuration  the configuration of a router, as a document
//! requirements   requirements on this machine, for the start and for a check of the file
//!   bridging     uses of the interfaces that forbid a router between them
//! claims         an interface has one router at a time
//! offload_notes  notes of disabled offloads, for the case that the process is killed
//! privileges     dropping privileges, and the user to become
//! error          reasons why a router cannot be opened, has ended, or does not answer
//! ```

mod autorate;
mod bridging;
mod claims;
mod client;
mod configuration;
mod error;
mod file;
mod interval;
mod kernel_queue;
mod kernel_queue_notes;
mod local_socket;
mod metrics;
mod offload_notes;
mod privileges;
mod publication;
mod reload;
mod replies;
mod request;
mod requirements;
mod reservation_client;
mod reservation_request;
mod reservations;
mod router;
mod service;
mod session;
mod snapshots;
mod spec;
mod statistics;
mod usual_socket;

pub use claims::{Holder, holder};
pub use client::{RouterClient, RouterReply};
pub use configuration::{Configuration, configuration, summary, warnings};
pub use error::{RouterClientError, RouterClientErrorKind, ServiceError};
pub use interval::{DirectionInterval, Waits};
pub use kernel_queue::{QdiscDocument, QdiscList};
pub use kernel_queue_notes::queue_notes;
pub use metrics::{add_kernel_queue, add_statistics};
pub use offload_notes::{Restored, folder, restore};
pub use replies::SocketReply;
pub use request::{RequestError, RouterRequest};
pub use requirements::StartRequirements;
pub use reservation_client::ReservationClient;
pub use reservation_request::{
    ReservationAction, ReservationRequest, ReservationRequestError, RouterDirection,
};
pub use router::{Router, Schedule, StatisticsSource};
pub use service::{Listener, TRUNCATED, UNFILLED};
pub use spec::{AutorateSpec, DirectionSpec, ProcessSpec, RouterSpec};
pub use statistics::{
    AutorateStatistics, DepartureError, DirectionStatistics, FilterDocument, FlowStatistics, HintStatistics,
    HostStatistics, Interface, PacketCount, ReloadStatus, ReservationStatistics, ReservedStatistics,
    SieveStatistics, Statistics, StatisticsError,
};
pub use usual_socket::running;
