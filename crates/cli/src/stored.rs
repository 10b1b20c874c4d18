//! Stored results that a command reads: which folder, which groups and points of it.

use crate::exit::Failure;
use cutline_results::{Store, Summary};
use cutline_text::Printable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The results in a folder, or in that of a summary.
///
/// # Errors
/// When there are none, or the summary is damaged.
pub fn open(path: &Path) -> Result<(PathBuf, Store, Summary), Failure> {
    let is_summary = path.file_name().is_some_and(|name| name == "summary.json");
    let folder = if is_summary { path.parent().unwrap_or(Path::new("")) } else { path };
    let store = Store::open(folder);
    if !store.has_summary() {
        return Err(Failure::Usage(format!(
            "{} has no summary.json\nexpected a folder written by `cutline run`, or its summary.json",
            Printable(folder.display())
        )));
    }
    let summary = store.read_summary()?;
    Ok((folder.to_owned(), store, summary))
}

/// Selection of the results to show.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Selection {
    /// Show only this group of flows, or the queue of this link; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Show only points whose label has this part; may be repeated
    #[arg(long = "point", value_name = "LABEL")]
    points: Vec<String>,
}

impl Selection {
    /// Returns true if a group or link is shown.
    pub fn has_group(&self, name: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| group == name)
    }

    /// Returns true if groups are chosen.
    pub fn chooses_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns true if a point is shown.
    pub fn has_point(&self, label: &str) -> bool {
        self.points.is_empty() || self.points.iter().any(|part| label.contains(part.as_str()))
    }

    /// Fails if a chosen group is in none of the results.
    ///
    /// # Errors
    /// Names the groups and links that there are.
    pub fn check_groups(&self, known: &[Arc<str>]) -> Result<(), Failure> {
        match self.groups.iter().find(|group| !known.iter().any(|name| **name == ***group)) {
            Some(unknown) => Err(Failure::Usage(format!(
                "--group {}: there is none; expected one of: {}",
                Printable(unknown),
                Printable(known.join(", "))
            ))),
            None => Ok(()),
        }
    }

    /// Fails if no point of some results is chosen.
    ///
    /// # Errors
    /// Names the points that there are.
    pub fn check_points(&self, folder: &Path, labels: &[&str]) -> Result<(), Failure> {
        if labels.iter().any(|label| self.has_point(label)) {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "--point: no point of {} has such a label; there are: {}",
            Printable(folder.display()),
            Printable(labels.join(", "))
        )))
    }
}
