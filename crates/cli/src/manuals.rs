//! `cutline completions` and `cutline manuals`: completions for shells and pages for `man`, from the same texts as `--help`.

use crate::exit::Failure;
use crate::output;
use clap::Command;
use clap_complete::{Shell, generate};
use cutline_text::Printable;
use std::path::{Path, PathBuf};

/// Print the completions of a shell
///
/// `make install` and the Debian package put them where bash, zsh and fish look for them.
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS_EXAMPLES: &str = "Examples:
  cutline completions bash > ~/.local/share/bash-completion/completions/cutline
  cutline completions zsh > ~/.zfunc/_cutline
  cutline completions fish > ~/.config/fish/completions/cutline.fish";

/// Write a manual page for each command
///
/// The pages are cutline.1, cutline-run.1 and so on. Files of these names in the folder are replaced. `make install` and the Debian
/// package put them where `man` looks for them.
#[derive(clap::Args)]
#[command(after_help = MANUALS_EXAMPLES)]
pub struct ManualsArgs {
    /// The folder, which is made if it does not exist
    folder: PathBuf,
}

const MANUALS_EXAMPLES: &str = "Examples:
  cutline manuals /tmp/man && man -l /tmp/man/cutline-run.1
  cutline manuals ~/.local/share/man/man1";

pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "cutline", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}

pub fn manuals(args: &ManualsArgs, command: Command) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Failed(format!("{} cannot be written: {error}", Printable(path.display())))
    };
    std::fs::create_dir_all(&args.folder).map_err(|error| failed(&args.folder, error))?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), &args.folder)
        .map_err(|error| failed(&args.folder, error))
}
