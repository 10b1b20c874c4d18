//! `cutline top`: links, queues, sockets and programs of this host, live in the terminal.
//!
//! ```text
//! feed    documents of the monitor, requested by a thread
//! tab     the tables: titles, columns, advice and notes
//! rows    rows of the tables: values of a document and of the one before it
//! numbers numbers in cells, facts and charts
//! state   the shown view, the selection, and actions of keys; no IO
//! draw    the picture
//! ```

mod draw;
mod feed;
mod numbers;
mod rows;
mod state;
mod tab;

use crate::exit::Failure;
use crate::output;
use crate::table::Table;
use cutline_monitor::{DEFAULT_QUERY_SOCKET, HostDocument, MonitorClient, MonitorClientError};
use feed::Feed;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use state::{Action, State};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;
use tab::Tab;

/// Show links, queues, QoS sockets and programs of this host, live
///
/// The monitor of the host collects the shown data: `sudo cutline monitor`, or cutlined with a table `[monitor]`. A user sees the programs of
/// that user, root sees all (docs/guide/monitor.md). Keys: Tab and 1 to 6 change the table, arrows select a row and other columns, Enter shows
/// the history of a flow, s sorts, / filters, p pauses, q quits.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the state once, and exit
    #[arg(long)]
    once: bool,
    /// Print the state as one JSON document
    #[arg(long, requires = "once")]
    json: bool,
    /// Socket of the monitor
    #[arg(long, value_name = "PATH", default_value = DEFAULT_QUERY_SOCKET)]
    socket: PathBuf,
}

const EXAMPLES: &str = "Examples:
  cutline top
  sudo cutline top --once
  cutline top --once --json | jq '.sockets[] | {program, peer, loss: .receive.loss_percent}'";

/// Time between two documents.
const EVERY: Duration = Duration::from_secs(1);
/// Longest time from the arrival of a document to its picture.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut client = MonitorClient::connect(&args.socket)?;
    if args.once {
        return once(args.json, &mut client);
    }
    #[expect(clippy::disallowed_methods, reason = "nothing is written")]
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !is_terminal {
        let why =
            "cutline top draws on a terminal, and standard output or input is not a terminal: use --once";
        return Err(Failure::Usage(why.to_owned()));
    }
    let first = client.host()?;
    let feed = Feed::start(client, args.socket.clone())
        .map_err(|error| Failure::Failed(format!("no thread can be started: {error}")))?;
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let outcome = live(&mut terminal, &feed, first);
    ratatui::restore();
    outcome
}

fn once(json: bool, client: &mut MonitorClient) -> Result<(), Failure> {
    let first = client.host()?;
    if json {
        return output::print_json(&first);
    }
    // Rates of links are differences.
    std::thread::sleep(EVERY);
    let second = client.host()?;
    let text = Tab::ALL.map(|tab| text(tab, &second, &first)).join("\n");
    output::print_wrapped(&text)
}

/// Returns a table as text; a sentence in the place of one without rows.
fn text(tab: Tab, now: &HostDocument, before: &HostDocument) -> String {
    let rows = rows::rows(tab, now, Some(before));
    let note = tab.note(now).map_or_else(String::new, |note| format!("{note}\n"));
    if rows.is_empty() {
        return format!("{}: {}\n{note}", tab.title(), tab.advice());
    }
    let head: Vec<&str> = tab.columns().iter().map(|column| column.title).collect();
    let words = tab.columns().iter().take_while(|column| !column.is_number).count();
    let mut table = Table::new(words, &head);
    for row in rows {
        table.add(row.cells.into_iter().map(|cell| cell.text).collect());
    }
    format!("{}\n{}{note}", tab.title(), table.render())
}

/// Shows the state until the user quits.
fn live(terminal: &mut ratatui::DefaultTerminal, feed: &Feed, first: HostDocument) -> Result<(), Failure> {
    let mut state = State::new(first);
    let mut is_drawn = false;
    loop {
        if !is_drawn {
            terminal.draw(|frame| draw::draw(frame, &mut state)).map_err(|error| failed(&error))?;
            is_drawn = true;
        }
        if event::poll(LOOK_EVERY).map_err(|error| failed(&error))? {
            is_drawn = false;
            if let Event::Key(key) = event::read().map_err(|error| failed(&error))?
                && key.kind != KeyEventKind::Release
                && state.on_key(key) == Action::Quit
            {
                return Ok(());
            }
        }
        if let Some(next) = feed.next() {
            is_drawn = false;
            match next {
                Ok(document) => state.take(document),
                Err(why) => state.fail(why),
            }
        }
    }
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::Failed(format!("the terminal cannot be drawn on: {error}"))
}

impl From<MonitorClientError> for Failure {
    fn from(error: MonitorClientError) -> Self {
        Self::Failed(error.to_string())
    }
}
