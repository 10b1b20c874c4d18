//! Measures the performance of a host and a path, as QUANTA section 4.1 does: throughput, loss and its place, delay, round-trip time,
//! retransmissions and processor time, by load, block size and protocol, with and without rate control and with larger buffers.
//!
//! ```text
//! plan        the measurements of a table, and the next ones
//! headers     the load of blocks with the headers of their packets
//! receiver    the other end: a host, or a receiver in this process
//! measurement one measurement: its flows, and its row
//! run         all measurements, one after the other, each stored when it is complete
//! picture     a table as charts (feature `charts`)
//! error       reasons why measurements end early
//! ```
//!
//! A measurement is a session of `cutline-traffic` with two flows: blocks of one size to the receiver, and small datagrams back, whose
//! delay completes the round-trip time. The table and its file are in `cutline-baseline`.

mod error;
mod headers;
mod measurement;
#[cfg(feature = "charts")]
pub mod picture;
mod plan;
mod receiver;
mod run;

pub use error::RunError;
pub use plan::{BaselinePlan, LEAST_BLOCK, MARGINS, MOST_BLOCK, PAPER_BLOCKS, PAPER_RATES, SHARES};
pub use receiver::{FarEnd, FarEndKind};
pub use run::{Progress, Runner};
