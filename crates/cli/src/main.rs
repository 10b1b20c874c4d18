//! The `cutline` command: parses what was typed and hands it to a library. One file a subcommand.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 something went wrong or was interrupted, 2 bad
//! arguments or a bad scenario, 130 after a second Ctrl-C.

mod aqm;
mod check;
mod compare;
mod doctor;
mod exit;
mod interrupt;
mod lab;
mod output;
mod progress;
mod report;
mod reproduce;
mod router;
mod run;
mod scenario_args;
mod table;
mod tg;

use clap::{Parser, Subcommand};
use exit::Failure;
use std::process::ExitCode;

/// Traffic-sensitive quality of service: simulate what you ship.
///
/// An experiment is a TOML file (docs/guide/scenario.md): a network, its flows, how long, what is measured, and what is
/// swept. Cutline runs it on all cores and stores what was measured (docs/guide/results.md).
#[derive(Parser)]
#[command(version, name = "cutline", max_term_width = 100, after_help = exit::CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Reproduce(reproduce::Args),
    Report(report::Args),
    Run(run::Args),
    Compare(compare::Args),
    Check(check::Args),
    Aqm(aqm::Args),
    Router(Box<router::Args>),
    Lab(lab::Args),
    Doctor(doctor::Args),
    Tg(tg::Args),
}

impl Command {
    fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Reproduce(args) => reproduce::execute(&args),
            Self::Report(args) => report::execute(&args),
            Self::Run(args) => run::execute(&args),
            Self::Compare(args) => compare::execute(&args),
            Self::Check(args) => check::execute(&args),
            Self::Aqm(args) => aqm::execute(&args),
            Self::Router(args) => router::execute(&args),
            Self::Lab(args) => lab::execute(&args),
            Self::Doctor(args) => doctor::execute(&args),
            Self::Tg(args) => tg::execute(&args),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command.execute() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
