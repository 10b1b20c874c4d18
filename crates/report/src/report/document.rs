//! A report before it is written.

use super::claim::Claim;
use crate::chart::Figure;

/// A report before it is written.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was evaluated.
    pub title: String,
    /// What was done and how to read the report; blank lines part paragraphs.
    pub intro: String,
    /// What stands over each section's [`Section::paper_says`], such as "The paper says".
    pub said: String,
    /// What was run, as names and values: version, seeds, scenario hash, host, duration.
    pub meta: Vec<(String, String)>,
    /// One section for each figure or group of figures, in order.
    pub sections: Vec<Section>,
}

/// One subject of the report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The section's anchor: letters, digits, `-` and `_`.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What the paper says, or what is asked; blank lines part paragraphs.
    pub paper_says: String,
    /// What we see; blank lines part paragraphs.
    pub we_see: String,
    /// Its figures, each with the name of its files: letters, digits, `-` and `_`.
    pub figures: Vec<(String, Figure)>,
    /// Its claims.
    pub claims: Vec<Claim>,
    /// Where we depart from the paper or differ from it, and why.
    pub notes: Vec<String>,
    /// Further files, such as scenario and data: label and path from the report's directory.
    pub files: Vec<(String, String)>,
}

impl Report {
    /// All claims, in order.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }
}
