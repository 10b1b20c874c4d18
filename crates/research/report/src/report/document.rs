//! The content of a report.

use super::claim::Claim;
use crate::chart::Figure;

/// The content of a report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title: the subject of the evaluation.
    pub title: String,
    /// Description of the work and of the report. Blank lines separate paragraphs.
    pub intro: String,
    /// The citations of the papers that the evaluation rests on.
    pub papers: Vec<String>,
    /// The heading above the [`Section::paper_says`] of each section, such as "The paper says".
    pub statement_heading: String,
    /// Details of the run, as pairs of name and value: version, seeds, scenario hash, host, duration.
    pub meta: Vec<(String, String)>,
    /// One section for each figure or group of figures, in order.
    pub sections: Vec<Section>,
}

/// One subject of the report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The section's anchor: letters, digits, `-` and `_`.
    pub id: String,
    /// The heading of the section.
    pub heading: String,
    /// The paper's statement, or the question of the study. Blank lines separate paragraphs.
    pub paper_says: String,
    /// Description of the results. Blank lines separate paragraphs.
    pub we_see: String,
    /// The figures, each with the name of its files: letters, digits, `-` and `_`. A figure without a value is not drawn and has no files.
    pub figures: Vec<(String, Figure)>,
    /// Meaning of the figures' points: the number of replications, and that of bars and bands. Empty if
    /// nothing is random.
    pub caption: String,
    /// Pictures beside the figures: the subject of each one, and its PNG.
    pub pictures: Vec<(String, Vec<u8>)>,
    /// The claims about the figures.
    pub claims: Vec<Claim>,
    /// Differences of method or results from the paper, and their reasons.
    pub notes: Vec<String>,
    /// Further files, such as scenario and data: label, and path relative to the report's directory.
    pub files: Vec<(String, String)>,
}

impl Section {
    /// The figures that are drawn, each with the name of its files.
    pub(super) fn drawn(&self) -> impl Iterator<Item = &(String, Figure)> {
        self.figures.iter().filter(|(_, figure)| !figure.is_empty())
    }

    /// The names of the pictures' files, in the order of the pictures.
    pub(super) fn picture_files(&self) -> impl Iterator<Item = String> {
        (1..=self.pictures.len()).map(move |number| format!("{}-picture-{number}.png", self.id))
    }
}

impl Report {
    /// All claims, in order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }
}
