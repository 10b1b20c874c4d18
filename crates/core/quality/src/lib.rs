//! Quality of a network *for an application*: a value in 0..=1 from one-way delay d and throughput T.
//!
//! TSQ section 2 judges a queue by the quality of applications: `Q(d, T) = min(Qd(d), Qt(T))` (TSQ eq. 1), with
//! one pair of curves for each class of application. A [`Class`] holds such a pair, a [`Combination`] defines how
//! the two become one number. Each class has its own file, which cites where its curves come from:
//!
//! | class | one-way delay | throughput | from |
//! | --- | --- | --- | --- |
//! | audio | three lines, 0 at 525 ms | logarithmic, 4..128 kbit/s | TSQ section 2.1 |
//! | video | as audio | five lines, 1 at 1500 kbit/s | TSQ section 2.2 |
//! | file | 1 up to 1 s | `T / S` | TSQ section 2.3 |
//! | web | logarithmic in the response time | logarithmic in the response time | ITU-T G.1030, Nielsen 1993 |
//! | game | exponential in the round trip | `T / 40 kbit/s` | Claypool 2006, Feng 2002 |
//!
//! There are also two measures of other authors: the [E-model](EModel) of ITU-T G.107, which rates a
//! telephone call by delay *and loss*, and the [power metric](Power) of RED-Worcester section 3.
//!
//! ```
//! use cutline_quality::{Class, Combination};
//! use cutline_units::{Duration, Rate};
//!
//! // An audio conference at half its rate, with the paper's 150 ms of propagation: throughput decides.
//! let q = Class::Audio.quality(Duration::from_millis(150), Rate::from_kbps(64), Combination::Min);
//! assert!((q.get() - 0.83).abs() < 0.001);
//! ```
//!
//! These are mathematical functions: they have no state, and nothing is random. A [controller](HintControl) uses them to
//! find the delay hint with the best quality. It has state, but no clock, and its random numbers come from the caller.

mod audio;
mod class;
mod curve;
mod emodel;
mod file;
mod game;
mod hint_control;
mod level;
mod power;
pub mod spec;
mod video;
mod web;

pub use class::Class;
pub use emodel::{EModel, Rating, SpeechCodec};
pub use game::Perspective;
pub use hint_control::{DeliveryReport, HintControl, HintControlStats, HintGoal, HintParams};
pub use level::{Combination, Quality, QualityError, UnknownName};
pub use power::{Power, PowerError};
