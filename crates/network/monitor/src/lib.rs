//! The monitor of a host: the delivery of its applications, routers and reservations, for people and managers.
//!
//! Processes publish rows over a local socket ([`cutline_publish`]). The monitor keeps them while the process lives. It reads the queues in the
//! kernel itself ([`cutline_qdisc`]). It answers readers:
//! `cutline top`, scrapers of metrics, and managers. A reader sees the rows of its own user; root sees all.
//!
//! ```text
//! registry   rows of processes: their owners and limits; queues in the kernel; no IO
//! kernel_queues  reading of the queues in the kernel
//! links      directions of routers and queues in the kernel, in one order
//! reservations  those of sessions and those of the host alone, in one order
//! history    a point each second, in fixed memory; no IO
//! host       both, shared by the threads of the monitor
//! document   the document of a host
//! listing    the rows that a page and metrics list: limited, with a share for each user
//! explain    the likely cause of bad delivery; no IO
//! collector  the thread that reads published rows, and answers clients of the local socket
//! shared     documents that several of these clients get
//! client     a client's side of that
//! service    the monitor at work, with its options
//! metrics    the document as metrics
//! web        the page and the metrics over HTTP
//! view       the page of one router, served by the router
//! ```

mod client;
mod collector;
mod document;
mod explain;
mod history;
mod host;
mod kernel_queues;
mod links;
mod listing;
mod metrics;
mod registry;
mod reservations;
mod service;
mod shared;
mod view;
mod web;

pub use client::{MonitorClient, MonitorClientError};
pub use collector::{Collector, CollectorOptions, MonitorError};
pub use document::{
    HostDocument, HostTotals, KernelQueueEntry, ProgramEntry, ReservationState, RouterEntry, SocketEntry,
};
pub use explain::{
    DeliveryCause, DeliveryFinding, Explanation, HostEvidence, InterfaceEvidence, LinkFlowInterval, Strength,
    explain,
};
pub use history::{DIRECTION_COLUMNS, History, SECONDS, SOCKET_COLUMNS, SeriesDocument};
pub use host::MonitoredHost;
pub use kernel_queues::{DEFAULT_BPFFS, KernelQueueReader, KernelQueueReading};
pub use links::{HostLink, LinkKey};
pub use listing::{PlaceClaim, RowLimits, share_places};
pub use metrics::metrics;
pub use registry::{
    Process, PublicationLimits, PublishedLine, PublishedLineError, PublishedRow, PublisherId, RowOwner,
    RowRegistry, Viewer,
};
pub use reservations::HostReservation;
pub use service::{HostMonitor, MonitorOptions, token};
pub use view::RouterView;
pub use web::{OfflineServer, WebOptions, WebServer};

/// Path of the socket that answers readers, unless another one is chosen.
pub const DEFAULT_QUERY_SOCKET: &str = "/run/cutline/monitor.sock";
/// Address of the page and the metrics, unless another one is chosen: of this host alone.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:9466";
