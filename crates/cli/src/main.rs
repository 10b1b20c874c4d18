//! The `cutline` command: parses the arguments and calls a library. Each subcommand has its own file.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 success, 1 a failure or an interruption, 2 invalid
//! arguments or an invalid scenario, 130 a second Ctrl-C. `cutline exec` has those of env(1).

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(
    not(all(feature = "machine", feature = "studies")),
    allow(dead_code, unused_imports, reason = "some helpers belong to commands that are disabled")
)]

mod app;
mod aqm;
mod arguments;
#[cfg(feature = "machine")]
mod baseline;
mod catalogue;
mod check;
#[cfg(feature = "machine")]
mod class_args;
mod compare;
#[cfg(feature = "qdisc")]
mod direction_text;
#[cfg(feature = "machine")]
mod doctor;
#[cfg(feature = "machine")]
mod exec;
mod existing;
mod exit;
#[cfg(feature = "machine")]
mod gateway;
mod interrupt;
#[cfg(feature = "machine")]
mod lab;
#[cfg(feature = "machine")]
mod manager;
mod manuals;
mod message;
#[cfg(feature = "machine")]
mod monitor;
mod output;
mod output_file;
#[cfg(feature = "charts")]
mod picture_file;
#[cfg(feature = "charts")]
mod plot;
mod program;
mod progress;
#[cfg(feature = "qdisc")]
#[allow(dead_code, reason = "the program cutline-qdisc executes the arguments")]
mod qdisc;
#[cfg(feature = "qdisc")]
mod qdisc_program;
#[cfg(feature = "qdisc")]
mod queue_args;
#[cfg(feature = "studies")]
mod report;
#[cfg(feature = "studies")]
mod reproduce;
#[cfg(feature = "machine")]
mod reservations;
#[cfg(feature = "machine")]
mod router;
mod run;
mod scenario_args;
mod schema;
mod screen;
mod selection_args;
#[cfg(feature = "machine")]
mod service_output;
mod spec;
#[cfg(feature = "studies")]
mod study_arg;
mod table;
#[cfg(feature = "machine")]
mod tg;
#[cfg(feature = "machine")]
mod top;
mod translate;
mod transport;
mod wrap;

use clap::{CommandFactory as _, Parser, Subcommand};
use exit::Failure;
use std::process::ExitCode;

/// Traffic-sensitive quality of service: simulate what you ship.
///
/// An experiment is a TOML file (docs/guide/scenario.md) that describes a network, its flows, the duration, the measures
/// and the sweeps. Cutline simulates it on all cores and stores the results (docs/guide/results.md). Documents named docs/... are in the
/// source and, after an installation, in share/doc/cutline.
#[derive(Parser)]
#[command(version = program::BUILD, name = "cutline", max_term_width = 100, after_help = exit::CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "studies")]
    Reproduce(reproduce::Args),
    #[cfg(feature = "studies")]
    Report(report::Args),
    Run(run::Args),
    #[cfg(feature = "charts")]
    Plot(plot::Args),
    Compare(compare::Args),
    Check(check::Args),
    Aqm(aqm::Args),
    Transport(transport::Args),
    App(app::Args),
    Spec(spec::Args),
    Translate(translate::Args),
    Schema(schema::Args),
    Completions(manuals::CompletionsArgs),
    Manuals(manuals::ManualsArgs),
    #[cfg(feature = "machine")]
    Router(Box<router::Args>),
    #[cfg(feature = "qdisc")]
    Qdisc(qdisc::Args),
    #[cfg(feature = "machine")]
    Reservations(reservations::Args),
    #[cfg(feature = "machine")]
    Manager(manager::Args),
    #[cfg(feature = "machine")]
    Monitor(monitor::Args),
    #[cfg(feature = "machine")]
    Top(top::Args),
    #[cfg(feature = "machine")]
    Lab(lab::Args),
    #[cfg(feature = "machine")]
    Doctor(doctor::Args),
    #[cfg(feature = "machine")]
    Exec(exec::Args),
    #[cfg(feature = "machine")]
    Gateway(gateway::Args),
    #[cfg(feature = "machine")]
    Tg(tg::Args),
    #[cfg(feature = "machine")]
    Baseline(Box<baseline::Args>),
}

impl Command {
    fn execute(self) -> Result<(), Failure> {
        match self {
            #[cfg(feature = "studies")]
            Self::Reproduce(args) => reproduce::execute(&args),
            #[cfg(feature = "studies")]
            Self::Report(args) => report::execute(&args),
            Self::Run(args) => run::execute(&args),
            #[cfg(feature = "charts")]
            Self::Plot(args) => plot::execute(&args),
            Self::Compare(args) => compare::execute(&args),
            Self::Check(args) => check::execute(&args),
            Self::Aqm(args) => aqm::execute(&args),
            Self::Transport(args) => transport::execute(&args),
            Self::App(args) => app::execute(&args),
            Self::Spec(args) => spec::execute(&args),
            Self::Translate(args) => translate::execute(&args),
            Self::Schema(args) => schema::execute(&args),
            Self::Completions(args) => manuals::completions(&args, Cli::command()),
            Self::Manuals(args) => manuals::manuals(&args, Cli::command()),
            #[cfg(feature = "machine")]
            Self::Router(args) => router::execute(&args),
            #[cfg(feature = "qdisc")]
            Self::Qdisc(_) => qdisc_program::execute(),
            #[cfg(feature = "machine")]
            Self::Reservations(args) => reservations::execute(&args),
            #[cfg(feature = "machine")]
            Self::Manager(args) => manager::execute(&args),
            #[cfg(feature = "machine")]
            Self::Monitor(args) => monitor::execute(&args),
            #[cfg(feature = "machine")]
            Self::Top(args) => top::execute(&args),
            #[cfg(feature = "machine")]
            Self::Lab(args) => lab::execute(&args),
            #[cfg(feature = "machine")]
            Self::Doctor(args) => doctor::execute(&args),
            #[cfg(feature = "machine")]
            Self::Exec(args) => exec::execute(&args),
            #[cfg(feature = "machine")]
            Self::Gateway(args) => gateway::execute(&args),
            #[cfg(feature = "machine")]
            Self::Tg(args) => tg::execute(&args),
            #[cfg(feature = "machine")]
            Self::Baseline(args) => baseline::execute(&args),
        }
    }
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => cli.command.execute(),
        Err(answer) => return show(&answer),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints a help text, the version, or the errors in the arguments.
fn show(answer: &clap::Error) -> ExitCode {
    let text = answer.render().ansi().to_string();
    let code = u8::try_from(answer.exit_code()).unwrap_or(2);
    if answer.use_stderr() {
        message::print(text.trim_end_matches('\n'));
    } else if let Err(failure) = output::print(&text) {
        return failure.report();
    }
    ExitCode::from(code)
}
