//! A router between two ports, without the ports: frames and `now` go in, frames and the next deadline come out.
//!
//! The queue is the same object that the simulator uses: any AQM of the `aqm` crate, with or without TSQ. This crate adds
//! the parts for real frames: it reads hint, flow and ECN from a frame's bytes (crate `wire`), counts the overhead of the
//! link, and sets marks and code points.
//!
//! ```text
//! duplex_shaper   both directions between two ports
//!   shaper        one direction: a frame's path through the queue to the link
//!     shaper_params  its configuration
//!     reserved    reserved flows, which are served before the queue
//!       flow_filter  which packets belong to a reservation
//!     overhead    the size of a frame on the link
//!     frames      the room of waiting frames, which is bounded
//!   port          the interface that a port must offer
//! stats           counters: received = sent + dropped + queued
//! top_flows       counters of the flows that send most
//! ```
//!
//! Nothing here reads a clock or opens a socket; `cutline-ports` has the ports and the waiting.

mod duplex_shaper;
mod flow_filter;
mod frames;
mod overhead;
mod port;
mod reserved;
mod shaper;
mod shaper_params;
mod stats;
mod top_flows;

pub use duplex_shaper::{DuplexShaper, Round};

pub use overhead::{Overhead, OverheadError, Units};
pub use port::Port;
pub use reserved::{
    CountedReservation, RESERVATION_LIMITS, ReservationCounters, ReservationError, ReservationId,
};
pub use shaper::Shaper;
pub use shaper_params::ShaperParams;
pub use stats::{HINTS, HintCounters, Loss, ReservedStats, ShaperStats, WaitCounts};
pub use top_flows::{FlowCounters, TopFlows};
