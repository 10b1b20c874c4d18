//! The papers' evaluations: which experiments there are, what each figure claims, how it is measured, and the report
//! that puts the two side by side.
//!
//! The experiments are scenario files, and what the papers say is a table (`experiments/`, built into this crate, so
//! that the command works anywhere). [`Study::run`] simulates what a set of figures needs and stores it;
//! [`Study::report`] draws figures and judges claims from what is stored, without simulating anything.

mod adaptive;
mod bits;
mod cascade;
mod cheaters;
mod claims;
mod data;
mod error;
mod evaluation;
mod experiment;
mod lab;
mod measure;
mod modern;
mod options;
mod origin;
mod redw;
mod rivals;
mod story;
mod study;
mod tsq;

pub use adaptive::ADAPTIVE;
pub use bits::BITS;
pub use cascade::CASCADE;
pub use cheaters::CHEATERS;
pub use claims::FigureText;
pub use error::{ReproduceError, UnknownFigure};
pub use evaluation::{Evaluation, News};
pub use experiment::{Experiment, Place};
pub use lab::LAB;
pub use modern::MODERN;
pub use options::Options;
pub use redw::REDW;
pub use rivals::RIVALS;
pub use study::Study;
pub use tsq::TSQ;

/// Every study that is simulated; [`LAB`] needs real time and root.
pub const STUDIES: [&Study; 8] = [&TSQ, &REDW, &BITS, &RIVALS, &CHEATERS, &MODERN, &ADAPTIVE, &CASCADE];
