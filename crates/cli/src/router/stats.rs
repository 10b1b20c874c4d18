//! `cutline router stats`: queries a running router by its socket.

use super::text;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output;
use cutline_router_service::{AskError, Client, Reply, Request, Statistics};
use cutline_units::Duration;
use std::path::PathBuf;

/// Print the statistics of a running router
///
/// Queries the local socket of the router (--socket, or `socket` in its file).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Socket of the router
    #[arg(value_name = "PATH")]
    socket: PathBuf,
    /// Repeat the query at this interval, from 100ms to 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    watch: Option<Duration>,
    /// Print JSON, one document per line
    #[arg(long)]
    json: bool,
    /// Print the router's configuration as JSON instead
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    config: bool,
}

const EXAMPLES: &str = "Examples:
  cutline router stats /run/cutline/lan.sock
  cutline router stats /run/cutline/lan.sock --watch 1s
  cutline router stats /run/cutline/lan.sock --json | jq .forward.departure_error_us";

/// The time to wait for a reply. A router replies at once, unless its machine is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut client = Client::ask(&args.socket, args.request(), PATIENCE)?;
    let mut last: Option<Statistics> = None;
    loop {
        let Reply { line, statistics } = client.reply()?;
        let text = match &statistics {
            Some(now) if !args.json && args.watch.is_some() => text::since(last.as_ref(), now),
            Some(now) if !args.json => text::whole(now),
            _ => cutline_text::json(&line).into_owned() + "\n",
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
