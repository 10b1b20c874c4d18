//! What a command does with results that are stored already: `--resume` and `--force`.

use cutline_results::Existing;

#[derive(clap::Args)]
pub struct ExistingArgs {
    /// Go on where an earlier run stopped: what is stored is not run again, except runs of the laboratory whose timing is
    /// not valid
    #[arg(long, conflicts_with = "force")]
    resume: bool,
    /// Replace other results that are stored there
    #[arg(long)]
    force: bool,
}

impl ExistingArgs {
    /// What to do; `otherwise` where neither option is given.
    pub fn or(&self, otherwise: Existing) -> Existing {
        match self {
            Self { resume: true, .. } => Existing::Resume,
            Self { force: true, .. } => Existing::Replace,
            Self { .. } => otherwise,
        }
    }
}
