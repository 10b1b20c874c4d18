//! The options `--resume` and `--force`, for results that are already stored.

use cutline_results::ExistingResults;

#[derive(clap::Args)]
pub struct ExistingArgs {
    /// Continue an earlier run: runs that are already stored are not repeated, except runs of the laboratory whose
    /// timing is not valid
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Replace the stored results
    #[arg(long)]
    force: bool,
}

impl ExistingArgs {
    /// Returns whether existing files are to be replaced.
    pub const fn replaces(&self) -> bool {
        self.force
    }

    /// Returns the choice of the options, or `otherwise` if neither is given.
    pub fn or(&self, otherwise: ExistingResults) -> ExistingResults {
        match self {
            Self { resume: true, .. } => ExistingResults::Resume,
            Self { force: true, .. } => ExistingResults::Replace,
            Self { .. } => otherwise,
        }
    }
}
