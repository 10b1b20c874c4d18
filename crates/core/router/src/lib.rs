//! A router between two ports, without the ports: frames and `now` go in, frames and the next deadline come out.
//!
//! The queue is the same object that the simulator uses: any AQM of the `aqm` crate, with or without TSQ. This crate adds
//! what a simulator does not need: it finds hint, flow and ECN in a frame's bytes, accounts for what the link adds to the
//! frame, and sets marks and code points with IPv4's checksum updated.
//!
//! ```text
//! duplex_shaper   both directions between two ports
//!   shaper        one direction: a frame's way through the queue and onto the link
//!     reserved    reserved flows, which are served before the queue
//!       flow_filter  which packets belong to a reservation
//!     headers     parses a frame's headers
//!       tunnels   the packets inside tunnels
//!       fragments the flows of fragmented packets
//!     overhead    the size of a frame on the link
//!     frames      the room of waiting frames, which is bounded
//!     traffic_class  sets marks and code points in a frame's bytes
//!   port          the interface that a port must offer
//! stats           counters: received = sent + dropped + queued
//! ```
//!
//! Nothing here reads a clock or opens a socket; `cutline-ports` has the ports and the waiting.

mod duplex_shaper;
mod flow_filter;
mod fragments;
mod frames;
mod headers;
mod overhead;
mod port;
mod reserved;
mod shaper;
mod stats;
mod traffic_class;
mod tunnels;

pub use duplex_shaper::{DuplexShaper, Round};

pub use fragments::FragmentFlows;
pub use headers::{ETHERNET, FlowKeys, Headers, Ip, Version};
pub use overhead::{Overhead, OverheadError, Units};
pub use port::Port;
pub use reserved::{
    CountedReservation, RESERVATION_LIMITS, ReservationCounters, ReservationError, ReservationId,
};
pub use shaper::{Shaper, ShaperParams};
pub use stats::{HINTS, HintCounters, Loss, ReservedStats, ShaperStats};
pub use traffic_class::{set_ce, set_dscp};
