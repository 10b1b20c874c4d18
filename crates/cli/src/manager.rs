//! `cutline manager`: users, flows and capacities of this host's resource manager.

use crate::exit::Failure;
use crate::output;
use crate::table::{Table, rate};
use cutline_allocation::status::{
    CapacityStatus, FlowStatus, InterfaceClassesStatus, ManagerStatus, PathStatus,
};
use cutline_allocation::{DEFAULT_SOCKET, ManagerConnection};
use cutline_units::Duration;
use std::path::PathBuf;

/// Print the capacities, users and flows of this host's resource manager
///
/// Shows for each capacity the part that is promised and in use, for each user the number of flows with their rates, for
/// each flow the rate that it may use, and for each path the hosts (docs/guide/manager.md). Without root, only the
/// flows of the calling user are shown.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Socket of the resource manager
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline manager
  cutline manager --json | jq '.flows[] | {pid, class, granted_bps}'";

/// The time to wait for the answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let status = ManagerConnection::connect(&args.socket, None)?.status(PATIENCE)?;
    if args.json { output::print_json(&status) } else { output::print_wrapped(&text(&status)) }
}

fn text(status: &ManagerStatus) -> String {
    let mut parts = Vec::new();
    let mut capacities = Table::new(1, &["capacity", "of", "reserved", "promised", "in use"]);
    for its in &status.capacities {
        let amount = |value| amount(its, value);
        let row = [its.capacity, its.reserved, its.promised, its.in_use].map(amount);
        capacities.add([its.resource.clone()].into_iter().chain(row).collect());
    }
    parts.push(capacities);
    let mut users = Table::new(1, &["user", "weight", "flows", "promised", "granted"]);
    for user in &status.users {
        users.add(vec![
            user.uid.to_string(),
            user.weight.to_string(),
            user.flows.to_string(),
            rate(user.promised_bps),
            rate(user.granted_bps),
        ]);
    }
    parts.push(users);
    parts.push(flows(&status.flows));
    parts.push(paths(&status.paths));
    parts.push(classes(&status.kernel_classes));
    let mut text: Vec<String> = parts.iter().filter(|table| !table.is_empty()).map(Table::render).collect();
    if status.capacities.is_empty() {
        text.insert(0, "no capacities are set: every flow gets its desired rate\n".to_owned());
    }
    for InterfaceClassesStatus { interface, problem, .. } in &status.kernel_classes {
        if let Some(problem) = problem {
            text.push(format!("{interface}: the kernel does not schedule its flows: {problem}\n"));
        }
    }
    let counters = &status.counters;
    text.push(format!(
        "flows: {} now; admitted: {}, with less: {}, refused: {}, released: {}, revoked: {}, expired: {}\n",
        status.all_flows,
        counters.admitted,
        counters.reduced,
        counters.refused,
        counters.released,
        counters.revoked,
        counters.expired
    ));
    text.join("\n")
}

fn flows(flows: &[FlowStatus]) -> Table {
    let head = [
        "destination",
        "class",
        "process",
        "by",
        "limited by",
        "user",
        "desired",
        "promised",
        "granted",
        "missed",
    ];
    let mut table = Table::new(5, &head);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for flow in flows {
        let path = flow.limit_bps.map(|_| "its path".to_owned());
        table.add(vec![
            flow.destination.to_string(),
            flow.class.clone(),
            or_none(flow.pid.map(|pid| pid.to_string())),
            flow.interface.clone().unwrap_or_else(|| flow.carrier.clone()),
            or_none(path.or_else(|| flow.limited_by.clone())),
            flow.uid.to_string(),
            rate(flow.desired_bps),
            rate(flow.promised_bps),
            rate(flow.granted_bps),
            flow.missed_deadlines.to_string(),
        ]);
    }
    table
}

fn classes(interfaces: &[InterfaceClassesStatus]) -> Table {
    let head = ["interface", "class", "flows", "rate", "packets", "beyond it", "waiting", "dropped"];
    let mut table = Table::new(2, &head);
    for InterfaceClassesStatus { interface, classes, .. } in interfaces {
        for class in classes {
            table.add(vec![
                interface.clone(),
                class.class.clone(),
                class.flows.to_string(),
                if class.rate_bps == 0 { "-".to_owned() } else { rate(class.rate_bps) },
                class.sent_packets.to_string(),
                class.excess_packets.to_string(),
                class.waiting_packets.to_string(),
                class.dropped_packets.to_string(),
            ]);
        }
    }
    table
}

fn paths(paths: &[PathStatus]) -> Table {
    let mut table = Table::new(
        2,
        &["path", "coordinator", "hosts heard", "cutoff", "sent", "received", "forged", "refused"],
    );
    for path in paths {
        let heard = path.hosts.iter().filter(|host| host.is_heard).count();
        let coordinator =
            if path.coordinator == path.host { "this host".to_owned() } else { path.coordinator.to_string() };
        table.add(vec![
            path.path.to_string(),
            coordinator,
            format!("{heard} of {}", path.hosts.len()),
            format!("{:.2}", path.cutoff),
            path.sent.to_string(),
            path.received.to_string(),
            path.forged.to_string(),
            path.refused.to_string(),
        ]);
    }
    table
}

/// Number of millionths in a per cent.
const PER_CENT: f64 = 1e4;

fn amount(capacity: &CapacityStatus, value: u64) -> String {
    if capacity.unit == "bit/s" { rate(value) } else { format!("{:.1} %", value as f64 / PER_CENT) }
}
