//! The report of an evaluation: what was claimed, what was measured, and the figures that show it.
//!
//! Three parts, each of use without the others:
//!
//! - [`stats`]: means with confidence intervals over replications, paired ratios, distributions.
//! - [`chart`]: charts as data, drawn as SVG and PNG.
//! - [`report`]: sections of charts, texts and [claims](report::Claim), written as one self-contained HTML file
//!   with `claims.json` and every figure as a file beside it.
//!
//! [`curves`] draws the quality curves of all application classes, figures 2 to 5 of the TSQ paper among them.
//!
//! The crate takes plain numbers: it knows neither the simulator nor scenarios, reads no clock and no network,
//! and touches files in [`report::write`] alone.

#[cfg(feature = "charts")]
pub mod chart;
#[cfg(feature = "charts")]
pub mod curves;
#[cfg(feature = "charts")]
pub mod report;
pub mod stats;

#[cfg(feature = "charts")]
mod xml;
