//! A router at work: opened as its specification says, looked after while it forwards, asked by a local socket.
//!
//! The loop that forwards frames is `cutline-linux`'s, what becomes of a frame is `cutline-router`'s. Here is what a service
//! has around them.
//!
//! ```text
//! spec           how a router is to work: plain, checked values
//! file           the router's TOML file
//! router         interfaces, queues and socket are opened, privileges given up; then it works until it is stopped
//! service        what looks after it: statistics by interval, reload, a service manager's watchdog, requests
//! reload         its file is read anew on SIGHUP
//! board          where statistics are laid out for those who ask, so that the loop waits for nobody
//! request        what can be asked by the socket
//! client         asking
//! statistics     what a router counts, as a document
//! configuration  how it works, as a document
//! ```

mod board;
mod client;
mod configuration;
mod error;
mod file;
mod reload;
mod request;
mod router;
mod service;
mod spec;
mod statistics;

pub use client::{Client, Reply};
pub use configuration::{configuration, summary};
pub use error::{AskError, AskProblem, ServiceError};
pub use request::{Request, RequestError};
pub use router::{Router, Schedule};
pub use service::Listener;
pub use spec::{DirectionSpec, ProcessSpec, RouterSpec};
pub use statistics::{
    Counted, DepartureError, Direction, HintStatistics, Interface, ReloadStatus, Statistics, StatisticsError,
};
