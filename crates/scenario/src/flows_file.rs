//! A file of flows without a network: what a traffic generator sends.
//!
//! Its `[[flow]]` tables are those of a scenario but for `from` and `to`; beside them it may have `name`, `title`,
//! `description`, `seed`, `duration` and `interval`. It is read by the very readers that read a scenario.

use crate::document::Document;
use crate::problem::{Errors, Problem};
use crate::read;
use crate::spec::FlowSpec;
use cutline_units::Duration;
use std::path::Path;

/// The flows of a file, and how long they send.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowsFile {
    /// Where random numbers come from.
    pub seed: Option<u64>,
    /// How long is sent.
    pub duration: Option<Duration>,
    /// The width of the intervals that are kept.
    pub interval: Option<Duration>,
    /// Groups of like flows, at least one.
    pub flows: Vec<FlowSpec>,
}

impl FlowsFile {
    /// The file at `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Errors::new(vec![Problem::of_file(&name, format!("cannot be read: {error}"))])
        })?;
        Self::parse(&text, &name)
    }

    /// A file's text; `name` is what messages call it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        read::flows_file(&Document::parse(text, name).map_err(Errors::new)?)
    }
}
