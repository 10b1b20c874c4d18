//! The program `cutline-qdisc`, which `cutline qdisc` becomes: the only one that needs libelf, with which libbpf reads objects. So `cutline` runs where
//! libelf is not installed.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(dead_code, unused_imports, reason = "some helpers belong to commands of the other program")]

mod arguments;
mod direction_text;
mod exit;
mod message;
mod output;
mod qdisc;
mod queue_args;
mod screen;
mod table;
mod wrap;

use clap::Parser;
use std::process::ExitCode;

/// The arguments behind `cutline qdisc`.
#[derive(Parser)]
#[command(name = "cutline qdisc", max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    args: qdisc::Args,
}

fn main() -> ExitCode {
    // `cutline` has checked the arguments before.
    match qdisc::execute(&Cli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
