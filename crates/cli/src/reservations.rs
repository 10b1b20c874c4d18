//! `cutline reservations`: the reservations of this host's `cutlined`.

use crate::exit::Failure;
use crate::output;
use crate::table::{Table, rate};
use cutline_provision::status::{InterfaceStatus, ReservationStatus, SenderStatus, Status};
use cutline_provision::{DEFAULT_SOCKET, DaemonClient};
use cutline_text::Printable;
use cutline_units::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Print the reservations that this host's cutlined holds
///
/// Shows the reservable share of each interface, the sessions with their senders and reservations, and the refusals
/// (docs/guide/reservations.md).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Socket of cutlined
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline reservations
  cutline reservations --json | jq '.interfaces[] | {name, reserved_bps}'";

/// The time to wait for the answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let status = DaemonClient::connect(&args.socket)?.status(PATIENCE)?;
    if args.json { output::print_json(&status) } else { output::print_wrapped(&text(&status)) }
}

fn text(status: &Status) -> String {
    let mut text = interfaces(status);
    let mut flows =
        Table::new(5, &["protocol", "destination", "sender", "from", "reserved at", "sends", "reserved"]);
    for session in &status.sessions {
        for sender in &session.senders {
            let its: Vec<&ReservationStatus> =
                session.reservations.iter().filter(|its| is_for(its, sender)).collect();
            let places: Vec<&str> =
                its.iter().map(|its| its.interface.as_deref().unwrap_or("this host")).collect();
            let reserved = its.iter().map(|its| its.bucket.rate.as_bps()).max();
            flows.add(vec![
                protocol(session.protocol),
                destination(session.destination),
                destination(sender.source),
                sender.from_interface.clone().unwrap_or_else(|| "this host".to_owned()),
                if places.is_empty() { "-".to_owned() } else { places.join(", ") },
                rate(sender.bucket.rate.as_bps()),
                reserved.map_or_else(|| "-".to_owned(), rate),
            ]);
        }
    }
    for local in &status.local {
        flows.add(vec![
            local.flow.transport.to_string(),
            destination(local.flow.destination),
            destination(local.flow.source),
            "this host".to_owned(),
            local.interface.as_ref().map_or_else(|| "-".to_owned(), |name| format!("{name} alone")),
            rate(local.bucket.rate.as_bps()),
            local.interface.as_ref().map_or_else(|| "-".to_owned(), |_| rate(local.bucket.rate.as_bps())),
        ]);
    }
    if !flows.is_empty() {
        text += "\n";
        text += &flows.render();
    }
    let counters = &status.counters;
    let counted = [
        ("not admitted", counters.not_admitted),
        ("not installed", counters.not_installed),
        ("expired", counters.expired),
        ("forged messages", counters.forged),
        ("repeated messages", counters.replayed),
        ("messages without authentication", counters.without_integrity),
        ("messages with an unknown key", counters.unknown_key),
        ("malformed messages", counters.malformed),
    ];
    let counted: Vec<String> = counted
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    if !counted.is_empty() {
        text += "\n";
        text += &counted.join(", ");
        text += "\n";
    }
    text
}

fn interfaces(status: &Status) -> String {
    let head = [
        "interface",
        "address",
        "control",
        "rate",
        "reservable",
        "reserved",
        "reservations",
        "packets",
        "excess",
        "dropped",
    ];
    let mut table = Table::new(3, &head);
    for its in &status.interfaces {
        let or_none = |bps: Option<u64>| bps.map_or_else(|| "-".to_owned(), rate);
        table.add(vec![
            its.name.clone(),
            its.address.map_or_else(|| "-".to_owned(), |address| address.to_string()),
            its.control.clone(),
            rate(its.rate_bps),
            or_none(its.reservable_bps),
            or_none(its.reserved_bps),
            its.reservations.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            its.reserved_packets.to_string(),
            its.excess_packets.to_string(),
            its.dropped_packets.to_string(),
        ]);
    }
    let problem_of =
        |its: &InterfaceStatus| Some(format!("{}: {}\n", its.name, Printable(its.problem.as_deref()?)));
    std::iter::once(table.render()).chain(status.interfaces.iter().filter_map(problem_of)).collect()
}

fn is_for(reservation: &ReservationStatus, sender: &SenderStatus) -> bool {
    reservation.senders.is_empty() || reservation.senders.contains(&sender.source)
}

fn protocol(number: u8) -> String {
    match number {
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        number => number.to_string(),
    }
}

/// An address, with its port if it has one.
fn destination(address: SocketAddr) -> String {
    if address.port() == 0 { address.ip().to_string() } else { address.to_string() }
}
