//! The report of an evaluation: every figure beside what the paper says of it, every number that is claimed
//! beside the one that was measured, and a plain sentence where they differ.
//!
//! [`write()`] makes, in one directory:
//!
//! | file | what |
//! | --- | --- |
//! | `report.html` | everything, in one file without scripts or anything from outside |
//! | `figures/ID.svg`, `figures/ID.png` | every figure |
//! | `claims.json` | every [`Claim`], as a list, for programs |
//!
//! Each file appears whole or not at all: it is written beside its place and then renamed.

mod claim;
mod document;
mod html;
mod write;

#[cfg(test)]
mod tests;

pub use claim::{Claim, Claims, Stated, Verdict};
pub use document::{Report, Section};
pub use html::page;
pub use write::{WriteError, Written, read_claims, write};
