//! A router between two ports, without the ports: frames and `now` go in, frames and the next deadline come out.
//!
//! The queue in the middle is the very object that the simulator drives: any AQM of the `aqm` crate, with or without
//! TSQ. What is here is what a simulator does not need: finding hint, flow and ECN in a frame's bytes, accounting for
//! what the link adds to it, setting marks and code points with IPv4's checksum repaired.
//!
//! ```text
//! wire            both directions between two ports
//!   shaper        one direction: a frame's way through the queue and onto the link
//!     headers     what a frame is
//!     overhead    how much of the link it takes
//!     frames      where it waits
//!     traffic_class  marks and code points in its bytes
//!   port          what is asked of the outside
//! stats           what is counted: received = sent + dropped + queued
//! ```
//!
//! Nothing here reads a clock or opens a socket; `cutline-ports` has the ports and the waiting.

mod frames;
mod headers;
mod overhead;
mod port;
mod shaper;
mod stats;
mod traffic_class;
mod wire;

pub use headers::{ETHERNET, Headers, Ip, Version};
pub use overhead::Overhead;
pub use port::Port;
pub use shaper::{Shaper, ShaperParams};
pub use stats::{HINTS, HintStats, Loss, ShaperStats};
pub use traffic_class::{set_ce, set_dscp};
pub use wire::{Round, Wire};
