//! Fuzz targets: one for every parser of bytes that come from outside.
//!
//! A [`Target`] takes any bytes and panics if the parser breaks a promise. The promises beyond "does not panic" are in
//! the target's own file in `targets/`: for example, that a value reads back the same after it was written, or that an
//! error names file, line and key. [`Target::check`] also holds every target to bounds on time and memory.
//!
//! ```text
//! targets    one file for each target, and their table
//! check      one input: bounds on time and memory
//! corpus     the inputs that are committed, the seeds, the words in them, failing inputs
//! mutate     new inputs from those of the corpus, with a seed
//! trial      a target's part of `cargo test`: the corpus, then mutations
//! main       the command: lists and fuzzes targets, replays inputs
//! engine     the same targets under libFuzzer, which is guided by coverage
//! ```
//!
//! `docs/internals/fuzzing.md` describes how to run them and how to add one.

mod check;
pub mod corpus;
pub mod mutate;
mod targets;
pub mod trial;

pub use check::Memory;
pub use targets::{Target, all, find};
