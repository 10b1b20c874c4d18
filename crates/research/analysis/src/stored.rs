//! Stored results: a folder, its tables, and the groups and points of it that are selected.

use crate::AnalysisError;
use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, Store, Summary, Values, distributed_quantity,
    distribution_values, group_values, queue_values,
};
use cutline_text::Printable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Results in a folder.
#[derive(Debug)]
pub struct StoredResults {
    /// The folder.
    pub folder: PathBuf,
    /// Its tables.
    pub store: Store,
    /// Its summary.
    pub summary: Summary,
}

impl StoredResults {
    /// Opens the results in a folder, or in that of a summary.
    ///
    /// # Errors
    /// When there are none, or the summary is damaged.
    pub fn open(path: &Path) -> Result<Self, AnalysisError> {
        let is_summary = path.file_name().is_some_and(|name| name == "summary.json");
        let folder = if is_summary { path.parent().unwrap_or(Path::new("")) } else { path };
        let store = Store::open(folder);
        if !store.has_summary() {
            return Err(AnalysisError::NoResults(folder.to_owned()));
        }
        let summary = store.read_summary()?;
        Ok(Self { folder: folder.to_owned(), store, summary })
    }
}

/// The tables that comparisons and summaries are about. They may be stored or in memory.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The name in messages, such as the folder.
    pub place: PathBuf,
    /// The summary of the results.
    pub summary: Summary,
    /// The flows.
    pub flows: Vec<FlowRow>,
    /// The queues.
    pub queues: Vec<QueueRow>,
    /// The distributions; empty where no measure [needs](needs_distributions) them, as there are many rows.
    pub distributions: Vec<DistributionRow>,
    /// The values of the swept keys.
    pub points: Vec<PointRow>,
}

impl Tables {
    /// Reads the tables in a folder, or beside a summary, that these measures need.
    ///
    /// # Errors
    /// When the tables are missing or damaged.
    pub fn read(path: &Path, measures: &[String]) -> Result<Self, AnalysisError> {
        let StoredResults { store, summary, .. } = StoredResults::open(path)?;
        let (flows, queues, points) = (store.read()?, store.read()?, store.read()?);
        let distributions = if needs_distributions(measures) { store.read()? } else { Vec::new() };
        Ok(Self { place: path.to_owned(), summary, flows, queues, distributions, points })
    }

    /// Returns the values of a measure of groups and queues: of a column, or of a quantity of distributions.
    pub fn values(&self, measure: &str) -> Vec<Values> {
        match distributed_quantity(measure) {
            Some(about) => distribution_values(&self.flows, &self.distributions, about.name),
            None => [group_values(&self.flows, measure), queue_values(&self.queues, measure)].concat(),
        }
    }
}

/// Returns whether one of these measures is a quantity of distributions.
pub fn needs_distributions(measures: &[String]) -> bool {
    measures.iter().any(|name| distributed_quantity(name).is_some())
}

/// Selection of the results to show. An empty list selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Groups of flows, and links for their queues.
    pub groups: Vec<String>,
    /// Parts of labels of points.
    pub points: Vec<String>,
}

impl Selection {
    /// Returns whether a group or link is shown.
    pub fn has_group(&self, name: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| group == name)
    }

    /// Returns whether groups are chosen.
    pub fn chooses_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns whether a point is shown.
    pub fn has_point(&self, label: &str) -> bool {
        self.points.is_empty() || self.points.iter().any(|part| label.contains(part.as_str()))
    }

    /// Fails if a chosen group is in none of the results.
    ///
    /// # Errors
    /// Names the groups and links that there are.
    pub fn check_groups(&self, known: &[Arc<str>]) -> Result<(), AnalysisError> {
        match self.groups.iter().find(|group| !known.iter().any(|name| **name == ***group)) {
            Some(unknown) => {
                let (unknown, known) = (Printable(unknown), Printable(known.join(", ")));
                let message = format_args!("{unknown}: there is none; expected one of: {known}");
                Err(AnalysisError::choice("group", message))
            }
            None => Ok(()),
        }
    }

    /// Fails if no point of some results is chosen.
    ///
    /// # Errors
    /// Names the points that there are.
    pub fn check_points(&self, folder: &Path, labels: &[&str]) -> Result<(), AnalysisError> {
        if labels.iter().any(|label| self.has_point(label)) {
            return Ok(());
        }
        let (folder, labels) = (Printable(folder.display()), Printable(labels.join(", ")));
        let message = format!(": no point of {folder} has such a label; there are: {labels}");
        Err(AnalysisError::Choice { option: "point", message })
    }
}
