//! The papers' evaluations: which experiments there are, what each figure claims, how it is measured, and the report
//! that puts the two side by side.
//!
//! The experiments are scenario files, and what the papers say is a table (`experiments/`, built into this crate, so
//! that the command works anywhere). [`Paper::run`] simulates what a set of figures needs and stores it;
//! [`Paper::report`] draws figures and judges claims from what is stored, without simulating anything.

mod claims;
mod data;
mod evaluation;
mod experiment;
mod paper;
mod redw;
mod tsq;

pub use claims::{FigureText, UnknownFigure};
pub use evaluation::{Evaluation, News, Options, ReproduceError};
pub use experiment::Experiment;
pub use paper::Paper;
pub use redw::REDW;
pub use tsq::TSQ;

/// Every paper whose evaluation is there.
pub const PAPERS: [&Paper; 2] = [&TSQ, &REDW];
