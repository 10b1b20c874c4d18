//! `cutline router stats`: queries a running router by its socket.

use super::text;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use cutline_router_service::{
    RouterClient, RouterClientError, RouterReply, RouterRequest, Statistics, folder, running,
};
use cutline_text::Printable;
use cutline_units::{Duration, Rate};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Print the statistics of a running router
///
/// Without a path, the only running router is queried. The statistics are of each direction: its rate, its queue with parameters, the frames
/// received, sent, dropped and marked, and each hint. `--watch` prints a line for each direction at each interval.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    place: Place,
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

/// Print the configuration of a running router as JSON
///
/// Without a path, the only running router is queried.
#[derive(clap::Args)]
#[command(after_help = CONFIG_EXAMPLES)]
pub struct ConfigArgs {
    #[command(flatten)]
    place: Place,
}

/// List the routers that run on this machine
///
/// Routers are found by their sockets in /run/cutline and the folders in it. Routers with sockets elsewhere are not listed. Each router is
/// listed with the rate, the queue and the backlog of both directions.
#[derive(clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct StatusArgs {}

/// The router that is queried.
#[derive(clap::Args)]
struct Place {
    /// Socket of the router [default: that of the only router that runs]
    #[arg(value_name = "PATH")]
    socket: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  cutline router stats
  cutline router stats /run/cutline/lan.sock --watch 1s
  cutline router stats --json | jq .forward.departure_error_us";

const CONFIG_EXAMPLES: &str = "Examples:
  cutline router config
  cutline router config | jq .config.forward.queue";

const STATUS_EXAMPLES: &str = "Example:
  cutline router status";

/// The time to wait for a reply. A router replies at once, unless its machine is stopped.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let socket = args.place.socket()?;
    let mut client = RouterClient::ask(&socket, args.request(), PATIENCE)?;
    let mut last: Option<Statistics> = None;
    loop {
        let RouterReply { line, statistics } = client.reply()?;
        let text = match &statistics {
            Some(now) if !args.json && args.watch.is_some() => {
                output::wrapped(&text::since(last.as_ref(), now))
            }
            Some(now) if !args.json => output::wrapped(&text::whole(now, Some(&configuration(&socket)?))),
            _ => cutline_text::json(&line).into_owned() + "\n",
        };
        if output::print_on(&text)?.is_break() || args.watch.is_none() {
            return Ok(());
        }
        last = statistics;
    }
}

pub fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let reply = RouterClient::ask(&args.place.socket()?, RouterRequest::Configuration, PATIENCE)?.reply()?;
    output::print(&(cutline_text::json(&reply.line).into_owned() + "\n"))
}

pub fn status(_: &StatusArgs) -> Result<(), Failure> {
    let sockets = running();
    if sockets.is_empty() {
        return output::print(&format!("no router answers in {}\n", Printable(folder().display())));
    }
    let mut table = Table::new(4, &["socket", "direction", "rate", "queue", "since s", "waiting", "dropped"]);
    for path in sockets {
        let reply = RouterClient::ask(&path, RouterRequest::Statistics, PATIENCE)
            .and_then(|mut client| client.reply());
        let name = path.display().to_string();
        match reply.map(|reply| reply.statistics) {
            Ok(Some(now)) => {
                for (name, direction) in [(name.as_str(), &now.forward), ("", &now.reverse)] {
                    let rate = Rate::from_bps(direction.rate_bps).to_string();
                    let words = [name.to_owned(), direction.name.clone(), rate, direction.queue.clone()];
                    let numbers = [
                        format!("{:.0}", now.elapsed_s),
                        direction.queued_packets.to_string(),
                        direction.dropped_packets().to_string(),
                    ];
                    table.add(words.into_iter().chain(numbers).collect());
                }
            }
            Ok(None) => table.add(silent_row(&name, "is no router")),
            Err(error) => table.add(silent_row(&name, &error.to_string())),
        }
    }
    output::print_wrapped(&table.render())
}

/// Returns the row of a router that does not answer: its name, the reason, and dashes.
fn silent_row(name: &str, why: &str) -> Vec<String> {
    let dashes = std::iter::repeat_n("-", 5).map(str::to_owned);
    [name.to_owned(), why.to_owned()].into_iter().chain(dashes).collect()
}

/// The configuration of a router, as its reply has it.
fn configuration(socket: &Path) -> Result<Value, Failure> {
    let reply = RouterClient::ask(socket, RouterRequest::Configuration, PATIENCE)?.reply()?;
    let mut reply: Value = serde_json::from_str(&reply.line).expect("a reply is JSON");
    Ok(reply["config"].take())
}

impl Place {
    /// Returns the socket of the option, or of the only running router.
    fn socket(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.socket {
            return Ok(path.clone());
        }
        let mut found = running();
        match found.len() {
            0 => Err(Failure::Failed(format!(
                "no router answers in {}: `cutline router up` starts one where this host routes; if yours has its socket elsewhere, name it with --socket; \
                 connecting needs the rights of the router's user",
                Printable(folder().display())
            ))),
            1 => Ok(found.remove(0)),
            _ => Err(Failure::Usage(format!(
                "several routers run: name the socket of one of them: {}; `cutline router status` lists them",
                Printable(found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "))
            ))),
        }
    }
}

impl Args {
    fn request(&self) -> RouterRequest {
        match self.watch {
            Some(time) => RouterRequest::Watch(time),
            None if self.config => RouterRequest::Configuration,
            None => RouterRequest::Statistics,
        }
    }
}

impl From<RouterClientError> for Failure {
    fn from(error: RouterClientError) -> Self {
        Self::Failed(error.to_string())
    }
}
