//! Queues: one file per algorithm, and TSQ on top of any that yields a drop probability.
//!
//! Nothing here reads a clock, has random numbers of its own, or looks at a packet's bytes. An arrival is a size, a delay
//! hint, a flow, and whether it may be marked ([`Arrival`]). The packet itself is a small handle of the caller's. The
//! simulator and the router use the same objects.
//!
//! - A link talks to a [`Queue`]. That is a [`Fifo`] or [`Tsq`] over any law of the [`registry`], or a [`Discipline`], such
//!   as CoDel. [`AnyQueue`] is the queue that a [`QueueSpec`] describes.
//! - A law is a [`DropProbability`]: it sees backlogs and times, and answers a probability. The queue draws, drops or marks,
//!   stores, and counts.
//! - A discipline can be made of parts: [`QueueCore`], [`Pool`], and the order and charge of TSQ, [`ChargedLanes`].
//! - A [`Policer`] checks whether packets of a reserved flow conform to its token bucket. It is no AQM, and is in front of the queue.
//! - [`registry::describe`] lists every AQM with its parameters as data, for scenario files, the command line and the
//!   documentation.
//!
//! To add an AQM to this crate, follow `docs/internals/recipes/aqm.md`: write its file, and add its line to the registry. An AQM of another
//! crate or language is registered while the program runs ([`registry::register_law`]). The checks of [`conformance`] hold
//! for both.

mod any;
mod bands;
#[cfg(test)]
mod bench;
mod buckets;
mod delay_control;
mod description;
mod discipline;
mod drain;
mod drop_probability;
mod external;
mod fifo;
mod forward;
mod lane;
mod lanes;
mod policer;
mod pool;
mod queue;
mod queue_core;
mod queue_delay;
mod readings;
mod ring;
mod sample_clock;
mod stats;
mod turns;
mod verdict;

pub mod abe;
pub mod afd;
pub mod ared;
pub mod blue;
pub mod cake;
pub mod codel;
pub mod conformance;
pub mod deltic;
pub mod drop_tail;
pub mod drr;
pub mod dual_pi2;
pub mod fq_codel;
pub mod fq_pie;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod protected_dual_pi2;
pub mod red;
pub mod red_worcester;
pub mod registry;
pub mod sfc;
pub mod sieve;
pub mod standing;
pub mod strict_priority;
pub mod tsq;

pub use abe::{Abe, AbeParams};
pub use afd::{Afd, AfdParams};
pub use any::{AnyQueue, QueueSpec};
pub use ared::{Ared, AredParams};
pub use bands::{Bands, BandsSpec};
pub use blue::{Blue, BlueParams};
pub use cake::{Cake, CakeParams};
pub use codel::{CoDel, CoDelParams};
pub use delay_control::DelayControlParams;
pub use deltic::{Deltic, DelticParams};
pub use discipline::Discipline;
pub use drain::DrainRate;
pub use drop_probability::{Aqm, DropProbability};
pub use drop_tail::NoEarlyDrop;
pub use drr::{Drr, DrrParams};
pub use dual_pi2::{DualPi2, DualPi2Params};
pub use fifo::Fifo;
pub use fq_codel::{FqCoDel, FqCoDelParams};
pub use fq_pie::{FqPie, FqPieParams};
pub use lane::Entry;
pub use lanes::Lanes;
pub use pi::{Pi, PiParams};
pub use pi2::{Pi2, Pi2Params};
pub use pie::{Pie, PieParams};
pub use policer::{Policer, TokenBucket};
pub use pool::{Held, List, Pool};
pub use protected_dual_pi2::{ProtectedDualPi2, ProtectedDualPi2Params};
pub use queue::{Arrival, Backlog, Departure, Limit, Queue, Shed};
pub use queue_core::QueueCore;
pub use queue_delay::DelayEstimate;
pub use readings::{Readings, SieveReadings};
pub use red::{Red, RedParams};
pub use red_worcester::{RedWorcester, RedWorcesterParams};
pub use registry::{AnyAqm, AnyDiscipline, AqmDescription, AqmSpec};
pub use sfc::{Sfc, SfcParams};
pub use sieve::{Sieve, SieveParams};
pub use stats::{Count, QueueStats};
pub use strict_priority::{StrictPriority, StrictPriorityParams};
pub use tsq::{ChargedLanes, InsertionPoint, Offer, Tsq, TsqParams};
pub use verdict::{DropReason, Verdict};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
