//! The quantities that every part of Cutline shares, as types that carry their unit.
//!
//! This crate has no clock, no input or output, and depends on nothing else of Cutline. An [`Instant`] is a
//! number of nanoseconds since an epoch that the caller chooses (a simulator's zero, a router's start), a
//! [`Rate`] is bits per second, a [`Hint`] is the delay hint that a packet carries, and a [`RandomStream`] is
//! the only source of chance. [`lock`] is the way in which every crate locks a mutex.

mod budget;
mod counts;
mod distribution;
mod dscp;
mod ecn;
mod hint;
mod histogram;
mod ip_version;
mod lock;
mod probability;
mod random;
mod rate;
mod serializer;
mod time;

pub use budget::HintBudget;
pub use distribution::Distribution;
pub use dscp::{Dscp, DscpError, HintTable, RemarkTable};
pub use ecn::Ecn;
pub use hint::{DscpPool2, Hint, HintBits, HintCodec, HintError};
pub use histogram::{Bucket, Histogram, HistogramParts, HistogramShape, UncountedHistogram};
pub use ip_version::IpVersion;
pub use lock::{lock, try_lock};
pub use probability::{Probability, ProbabilityError};
pub use random::{RandomStream, Streams, mix};
pub use rate::{Bytes, Rate};
pub use serializer::{Line, Pace, Serializer};
pub use time::{Duration, Instant};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
