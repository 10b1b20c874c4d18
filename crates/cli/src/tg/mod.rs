//! `cutline tg`: the traffic generator and meter.

mod flent;
mod flows;
mod options;
mod receive;
mod rrul;
mod send;
mod tables;

pub use send::resolve;

use crate::exit::Failure;
use cutline_traffic::control::{ControlError, Key};
use cutline_traffic::{SendResults, TrafficError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Generate traffic over real networks, and measure its delay, loss and throughput
///
/// `receive` runs at one end, `send` or `rrul` at the other. One process sends hundreds of flows over TCP, UDP or TFRC, from bulk
/// data to talk spurts, each with a delay hint or code point (docs/guide/tg.md). The sender prints one-way delay, delay
/// variation, loss and throughput of both ends, and the error of the clocks.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Send(Box<send::Args>),
    Receive(receive::Args),
    Rrul(Box<rrul::Args>),
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Send(args) => send::execute(args),
        Command::Receive(args) => receive::execute(args),
        Command::Rrul(args) => rrul::execute(args),
    }
}

/// Reads the key file of either end.
pub fn key(path: &Path) -> Result<Key, Failure> {
    Key::read(path).map_err(Failure::Usage)
}

/// Returns an error if the run was interrupted or a flow failed.
fn judged(results: &SendResults<'_>, stop: &AtomicBool) -> Result<(), Failure> {
    results.failure(stop.load(Ordering::Relaxed)).map_or(Ok(()), |why| Err(Failure::Failed(why)))
}

impl From<TrafficError> for Failure {
    fn from(error: TrafficError) -> Self {
        match error {
            TrafficError::Plan(_) => Self::Usage(error.to_string()),
            TrafficError::System { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Traffic(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}
