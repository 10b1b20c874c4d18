//! `cutline router stats`: asks a router at work by its socket.

use super::document::Document;
use super::settings::duration;
use crate::exit::Failure;
use crate::output;
use cutline_units::Duration;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

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
  cutline router stats /run/cutline/lan.sock --json | jq .forth.departure_error_us";

/// A router answers within its own look; this long is given to a machine that is stopped.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let request = match args.watch {
        None if args.config => "config".to_owned(),
        None => "stats".to_owned(),
        Some(time) => format!("watch {} us", time.as_nanos() / 1000),
    };
    let mut lines = ask(&args.socket, &request, args.watch)?;
    let mut last: Option<Document> = None;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).map_err(|error| failed(&args.socket, &error))? == 0 {
            return Err(failed(&args.socket, &"the router has closed it"));
        }
        let document = answer(&args.socket, &line)?;
        match (document, args.watch) {
            (Some(document), Some(_)) if !args.json => {
                output::print(&document.since(last.as_ref()))?;
                last = Some(document);
            }
            (Some(document), None) if !args.json => return output::print(&document.text()),
            (_, Some(_)) => output::print(&line)?,
            (_, None) => return output::print(&line),
        }
    }
}

fn ask(path: &Path, request: &str, watch: Option<Duration>) -> Result<BufReader<UnixStream>, Failure> {
    let mut stream = UnixStream::connect(path).map_err(|error| failed(path, &error))?;
    let longest = PATIENCE + std::time::Duration::from_nanos(watch.unwrap_or_default().as_nanos());
    stream.set_read_timeout(Some(longest)).map_err(|error| failed(path, &error))?;
    writeln!(stream, "{request}").map_err(|error| failed(path, &error))?;
    Ok(BufReader::new(stream))
}

/// The statistics in a line, if that is what it has.
fn answer(path: &Path, line: &str) -> Result<Option<Document>, Failure> {
    let value: serde_json::Value = serde_json::from_str(line)
        .map_err(|error| failed(path, &format!("no answer of a router: {error}")))?;
    if let Some(error) = value.get("error").and_then(serde_json::Value::as_str) {
        return Err(failed(path, &error));
    }
    if value["event"] == "config" {
        return Ok(None);
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|error| failed(path, &format!("no answer of a router: {error}")))
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("the router at {}: {why}", path.display()))
}
