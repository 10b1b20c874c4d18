//! `cutline router stats`: asks a router at work by its socket.

use super::text;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output;
use cutline_router_service::{AskError, Client, Reply, Request, Statistics};
use cutline_units::Duration;
use std::path::PathBuf;

/// Ask a router at work what it has counted
///
/// Asks by the local socket that the router was given (--socket, or `socket` in its file).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The router's socket
    #[arg(value_name = "PATH")]
    socket: PathBuf,
    /// Go on asking so often, from 100ms to 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    watch: Option<Duration>,
    /// Print JSON, one document a line
    #[arg(long)]
    json: bool,
    /// Print the router's configuration instead, as JSON
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    config: bool,
}

const EXAMPLES: &str = "Examples:
  cutline router stats /run/cutline/lan.sock
  cutline router stats /run/cutline/lan.sock --watch 1s
  cutline router stats /run/cutline/lan.sock --json | jq .forward.departure_error_us";

/// A router answers within its own look; this long is given to a machine that is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut client = Client::ask(&args.socket, args.request(), PATIENCE)?;
    let mut last: Option<Statistics> = None;
    loop {
        let Reply { line, statistics } = client.reply()?;
        let text = match &statistics {
            Some(now) if !args.json && args.watch.is_some() => text::since(last.as_ref(), now),
            Some(now) if !args.json => text::whole(now),
            _ => line + "\n",
        };
        if output::print_on(&text)?.is_break() || args.watch.is_none() {
            return Ok(());
        }
        last = statistics;
    }
}

impl Args {
    fn request(&self) -> Request {
        match self.watch {
            Some(time) => Request::Watch(time),
            None if self.config => Request::Configuration,
            None => Request::Statistics,
        }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Self::Failed(error.to_string())
    }
}
