//! The studies: their experiments, the claims about each figure, the measures that decide them, and the report.
//!
//! The experiments are scenario files. The statements and claims of the papers are tables (`figures.toml`). Both are in
//! `experiments/` and are built into this crate, so that the command works without them. [`ReadyStudy::run`] runs the
//! experiments that a set of figures needs, and stores the results. [`Study::report`] draws figures and judges claims from
//! stored results, without running anything.

mod adaptive;
mod bits;
mod cascade;
mod changes;
mod cheaters;
mod choices;
mod claims;
mod data;
mod error;
mod evaluation;
mod experiment;
mod lab;
mod lab_qos;
mod measure;
mod modern;
mod options;
mod origin;
mod panels;
mod qos;
mod qsock;
mod redw;
mod rivals;
mod run_details;
mod sieve;
mod study;
mod tsq;

pub use adaptive::ADAPTIVE;
pub use bits::BITS;
pub use cascade::CASCADE;
pub use changes::Changes;
pub use cheaters::CHEATERS;
pub use choices::CHOICES;
pub use claims::FigureText;
pub use error::{ReproduceError, UnknownFigure};
pub use evaluation::{Evaluation, EvaluationEvent};
pub use experiment::{Experiment, Platform};
pub use lab::LAB;
pub use lab_qos::LAB_QOS;
pub use modern::MODERN;
pub use options::Options;
pub use qos::QOS;
pub use qos::connections::Judgement;
pub use qsock::QSOCK;
pub use redw::REDW;
pub use rivals::RIVALS;
pub use sieve::SIEVE;
pub use study::{ReadyStudy, Study};
pub use tsq::TSQ;

/// The studies that are simulated. [`LAB`], [`LAB_QOS`] and [`QSOCK`] are not among them, because they run in real time and need root.
pub const STUDIES: [&Study; 11] =
    [&TSQ, &REDW, &CHOICES, &BITS, &RIVALS, &CHEATERS, &MODERN, &ADAPTIVE, &CASCADE, &QOS, &SIEVE];
