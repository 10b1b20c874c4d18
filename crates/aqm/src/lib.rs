//! Queues: one file per algorithm, and TSQ on top of any that yields a drop probability.
//!
//! Nothing here reads a clock, draws a random number of its own, or looks at a packet's bytes: an arrival is a
//! size, a delay hint and whether it may be marked ([`Arrival`]); the packet itself is a small handle of the
//! caller's. A simulator and a router drive the very same objects.
//!
//! - [`Queue`] is what a link talks to: [`Fifo`] and [`Tsq`] over any law of the [`registry`], or a
//!   [`Discipline`], a queue of its own such as CoDel. [`AnyQueue`] is whichever a [`QueueSpec`] describes.
//! - [`DropProbability`] is what a law is: it sees backlogs and times and answers a probability. It decides
//!   nothing and stores nothing; the queue draws, drops or marks, and counts.
//! - [`registry::describe`] lists every AQM with its parameters as data, for scenario files, command line and
//!   documentation alike.
//!
//! To add an AQM: write its file (start from `pi.rs`), and add its line to the registry. The conformance suite
//! (`tests/conformance.rs`) then covers it.

mod any;
mod buckets;
mod delay_control;
mod discipline;
mod drain;
mod drop_probability;
mod external;
mod fifo;
mod forward;
mod lane;
mod lanes;
mod pool;
mod queue;
mod queue_core;
mod queue_delay;
mod sample_clock;
mod stats;

pub mod abe;
pub mod ared;
pub mod blue;
pub mod codel;
pub mod conformance;
pub mod drop_tail;
pub mod drr;
pub mod dual_pi2;
pub mod fq_codel;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod red;
pub mod red_worcester;
pub mod registry;
pub mod sfc;
pub mod strict_priority;
pub mod tsq;

pub use abe::{Abe, AbeParams};
pub use any::{AnyQueue, QueueSpec};
pub use ared::{Ared, AredParams};
pub use blue::{Blue, BlueParams};
pub use codel::{CoDel, CoDelParams};
pub use delay_control::DelayControlParams;
pub use discipline::Discipline;
pub use drain::DrainRate;
pub use drop_probability::{Aqm, DropProbability, Readings};
pub use drop_tail::NoEarlyDrop;
pub use drr::{Drr, DrrParams};
pub use dual_pi2::{DualPi2, DualPi2Params};
pub use fifo::Fifo;
pub use fq_codel::{FqCoDel, FqCoDelParams};
pub use lanes::{Entry, Lanes};
pub use pi::{Pi, PiParams};
pub use pi2::{Pi2, Pi2Params};
pub use pie::{Pie, PieParams};
pub use pool::{Held, List, Pool};
pub use queue::{Arrival, Backlog, Departure, DropReason, Limit, Queue, Shed, Verdict};
pub use queue_core::QueueCore;
pub use queue_delay::Estimate;
pub use red::{Red, RedParams};
pub use red_worcester::{RedWorcester, RedWorcesterParams};
pub use registry::{AnyAqm, AnyDiscipline, AqmDescription, AqmSpec};
pub use sfc::{Sfc, SfcParams};
pub use stats::{Count, QueueStats};
pub use strict_priority::{StrictPriority, StrictPriorityParams};
pub use tsq::{ChargedLanes, InsertionPoint, Offer, Tsq, TsqParams};
