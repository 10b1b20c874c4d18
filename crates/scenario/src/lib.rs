//! Scenarios: the file, its sweeps, its simulation, and the runner of experiments.
//!
//! An experiment is data: a TOML file says which network, which flows, how long and what is measured. [`ScenarioFile`]
//! reads it strictly (`cutline-config`), so that a slip is a message with file, line, key, value and what is allowed, and
//! never a simulation of something else. [`ScenarioFile::expand`] turns a sweep into [`SweepPoint`]s, each a [`Scenario`] of
//! plain values. [`runner`] runs them with every seed on all cores and stores what they measured (`cutline-results`).
//! [`FlowsFile`] is a file of flows without a network.

mod file;
mod flows_file;
mod lower;
mod read;
pub mod runner;
mod simulate;
pub mod spec;
mod summary;
mod sweep;

pub use file::ScenarioFile;
pub use flows_file::FlowsFile;
pub use lower::LowerError;
pub use simulate::SimulateError;
pub use spec::Scenario;
pub use sweep::{BASE, SweepPoint};
