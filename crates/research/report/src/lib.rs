//! The report of an evaluation: claims, measured values, and figures.
//!
//! The crate has three parts, each usable without the others:
//!
//! - [`stats`]: means with confidence intervals over replications, paired ratios, distributions.
//! - [`chart`]: charts as data, drawn as SVG, PNG and PDF.
//! - [`report`]: sections with figures, texts and [claims](report::Claim). They are written as one self-contained HTML
//!   file, with `claims.json` and a file for every figure.
//!
//! [`curves`] draws the quality curves of all application classes, including figures 2 to 5 of the TSQ paper; [`region`]
//! draws the region of operation of a QoS specification.
//!
//! The input is plain numbers: the crate does not depend on the simulator or on scenarios. It uses no clock and no
//! network, and accesses files only in [`report::write()`] and [`report::read_claims`].

#[cfg(feature = "charts")]
pub mod chart;
#[cfg(feature = "charts")]
pub mod curves;
#[cfg(feature = "charts")]
pub mod region;
#[cfg(feature = "charts")]
pub mod report;
pub mod stats;

#[cfg(feature = "charts")]
mod xml;
