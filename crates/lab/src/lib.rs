//! The laboratory: a scenario with real packets. The hosts are network namespaces with the kernel's own TCP and UDP;
//! what lies between them, every queue and link of the scenario, is the simulator's own code in real time.
//!
//! ```text
//! run          one run of a scenario: hosts, links, traffic, measures
//!   hosts      namespaces, addresses, routes
//!   tuning     what a scenario says of TCP, as Linux takes it
//!   traffic    what the hosts send
//!   links      the network between the hosts
//!     reader   what a frame is to the network
//!     frames   where it lies
//!   timing     whether the run has kept its time
//! ```
//!
//! So both measure the same quantities at the same points by the same code, and write the same tables. What differs is
//! what sends: handshakes, Linux's recovery and pacing, the kernel's timers.
//!
//! Not here: hints that adapt, other hosts than this machine.

mod error;
mod frames;
mod hosts;
mod links;
mod reader;
mod run;
mod timing;
mod traffic;
mod tuning;

pub use error::LabError;
pub use run::{Options, check, run};
pub use timing::Bounds;
pub use tuning::Stack;

/// A side of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Where data comes from.
    Sources,
    /// Where it goes to.
    Sinks,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Sources => Self::Sinks,
            Self::Sinks => Self::Sources,
        }
    }
}
