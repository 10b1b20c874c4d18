//! Scenarios: the file, its sweeps, its simulation, and the runner of experiments.
//!
//! An experiment is data. A TOML file describes the network, the flows, the duration and the measurement.
//! [`ScenarioFile`] reads it strictly (`cutline-config`): every mistake is an error that names the file, line, key, value
//! and allowed range. [`ScenarioFile::expand`] turns a sweep into [`SweepPoint`]s. Each point has a [`Scenario`] of plain
//! values. [`runner`] runs the points with every seed on all cores and stores the results (`cutline-results`); [`execution`]
//! does that for a whole experiment. [`check`] describes the runs beforehand.
//! [`FlowsFile`] is a file of flows without a network.

pub mod check;
pub mod execution;
mod file;
mod flows_file;
mod generate;
mod lower;
mod parallel;
mod read;
pub mod runner;
mod simulate;
pub mod spec;
mod summary;
mod sweep;
mod warnings;

pub use file::ScenarioFile;
pub use flows_file::FlowsFile;
pub use generate::{Joint, Skeleton, parse_graph};
pub use lower::LowerError;
pub use parallel::{cores_of_run, threads_for};
pub use simulate::SimulateError;
pub use spec::Scenario;
pub use sweep::{BASE, SweepPoint};
pub use warnings::saturated_distributions;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
