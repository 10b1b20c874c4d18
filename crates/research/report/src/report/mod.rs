//! The report of an evaluation: every figure with the paper's statement about it, every claim with the measured value,
//! and an explanation where they differ.
//!
//! [`write()`] writes these files into one directory:
//!
//! | file | content |
//! | --- | --- |
//! | `report.html` | the whole report in one file, without scripts and external resources |
//! | `figures/ID.svg`, `figures/ID.png`, `figures/ID.pdf` | every figure that has values |
//! | `figures/ID-picture-N.png` | the pictures of a section, from 1 |
//! | `claims.json` | every [`Claim`], as a list, for programs |
//!
//! Each file appears complete or not at all: it is written under a temporary name and then renamed.

mod claim;
mod document;
mod html;
mod summary;
mod write;

#[cfg(test)]
mod tests;

pub use claim::{Claim, ClaimRole, ClaimVerdict, Claims, PaperValue};
pub use document::{Report, Section};
pub use html::html_page;
pub use summary::{ClaimSummary, Counts};
pub use write::{ReportFiles, WriteError, read_claims, write};
