//! `cutline doctor explain`: the likely cause of bad delivery on this host, in one sentence.

use super::BOLD;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::{interrupt, output};
use cutline_doctor::LinkInterfaces;
use cutline_monitor::{DEFAULT_QUERY_SOCKET, Explanation, HostEvidence, MonitorClient, explain};
use cutline_sys::now;
use cutline_units::Duration;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Name the likely cause of bad delivery on this host
///
/// Queries the monitor of this host twice (`sudo cutline monitor`), and compares the delivery of QoS sockets with the
/// state of the queues of routers and of the kernel in between: a long queue, an unresponsive flow, a host with many flows, a link that is slower than
/// configured, a bottleneck elsewhere, losses before the queue, rewritten marks, offloads, clocks, a lost reservation. Reports
/// if nothing is wrong. Run the command while the fault lasts, and as root, which has access to all rows (docs/guide/doctor.md).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Time to observe, from 2s to 10min
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = observed)]
    interval: Duration,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Socket of the monitor
    #[arg(long, value_name = "PATH", default_value = DEFAULT_QUERY_SOCKET)]
    socket: PathBuf,
}

const EXAMPLES: &str = "Examples:
  sudo cutline doctor explain
  sudo cutline doctor explain --for 30s
  sudo cutline doctor explain --json | jq -r '.findings[] | [.cause, .strength, .sentence] | @tsv'

Exit codes: 0 success, also with a cause; 1 no monitor answers; 2 invalid arguments.";

/// Time between two looks at the interfaces.
const LOOK: Duration = Duration::from_millis(500);

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut client = MonitorClient::connect(&args.socket)?;
    let stop = interrupt::cancel_flag("The explanation uses the time so far.".to_owned())?;
    let before = client.host()?;
    let mut interfaces = LinkInterfaces::begin(&before);
    let end = now() + args.interval;
    while now() < end && !stop.load(Ordering::Relaxed) {
        let pause = LOOK.min(end.saturating_since(now()));
        std::thread::sleep(std::time::Duration::from_nanos(pause.as_nanos()));
        interfaces.look();
    }
    let after = client.host()?;
    let interfaces = interfaces.finish();
    let explanation = explain(&HostEvidence { before: &before, after: &after, interfaces: &interfaces });
    if args.json {
        return output::print_json(&explanation);
    }
    output::print_wrapped(&rendered(&explanation))
}

fn observed(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    // Rows are published each second.
    let allowed = Duration::from_secs(2)..=Duration::from_secs(600);
    if allowed.contains(&time) { Ok(time) } else { Err("it must be from 2 s to 10 min".to_owned()) }
}

/// Returns the explanation as text: the likely cause, its evidence, the next step, and further findings.
fn rendered(explanation: &Explanation) -> String {
    let findings = explanation.findings.iter().enumerate().map(|(place, finding)| {
        let also = if place > 0 { format!("also: {}\n", finding.sentence) } else { String::new() };
        let strength = format!("{:?}", finding.strength).to_lowercase();
        let fields = finding.rests_on.join(", ");
        format!("{also}  - {strength}, from {fields}\n  - what to do next: {}\n", finding.do_next)
    });
    let title = if explanation.not_examined.is_empty() { "" } else { "not examined\n" };
    let not_examined = explanation.not_examined.iter().map(|line| format!("  - {line}\n"));
    format!(
        "{BOLD}{}{BOLD:#}\n{}{title}{}",
        explanation.summary,
        findings.collect::<String>(),
        not_examined.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::HostDocument;

    #[test]
    fn a_host_without_rows_names_the_missing_parts() {
        let document = HostDocument::default();
        let explanation = explain(&HostEvidence { before: &document, after: &document, interfaces: &[] });
        let text = anstream::adapter::strip_str(&rendered(&explanation)).to_string();
        assert!(text.starts_with("nothing was examined: "), "{text}");
        assert!(text.contains("not examined\n  - queues: ") && text.contains("cutline router up"), "{text}");
        assert_eq!(observed("5s"), Ok(Duration::from_secs(5)));
        assert!(observed("1s").is_err() && observed("11min").is_err());
    }
}
