//! Options that select groups and points of stored results.

use cutline_analysis::Selection;

/// Selection of the results to show.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectionArgs {
    /// Show only this group of flows, or the queue of this link; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Show only points whose label has this part; may be repeated
    #[arg(long = "point", value_name = "LABEL")]
    points: Vec<String>,
}

impl SelectionArgs {
    /// Returns the selection.
    pub fn selection(&self) -> Selection {
        Selection { groups: self.groups.clone(), points: self.points.clone() }
    }
}
