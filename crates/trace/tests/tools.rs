//! The tools themselves read the files: tshark and flent. Without them, these tests say how to get them, and pass.

mod common;

use common::{SEED, captured, scenario};
use cutline_trace::flent;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// What a tool prints; `None` where it is not installed.
fn printed(tool: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(
                output.status.success(),
                "{tool} {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(_) => {
            eprintln!("skipped: {tool} is not installed; `tools/setup.sh peers` installs it");
            None
        }
    }
}

/// How many packets of a capture tshark finds by a filter, checksums verified.
fn found(filter: &str, folder: &Path) -> Option<u64> {
    let arguments = [
        "-r",
        "run.pcapng",
        "-o",
        "ip.check_checksum:TRUE",
        "-Y",
        filter,
        "-T",
        "fields",
        "-e",
        "frame.number",
    ];
    printed("tshark", &arguments, folder).map(|text| text.lines().count() as u64)
}

#[test]
fn tshark_sees_what_the_simulator_did() {
    let (bytes, run) = captured(&scenario("pie"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.pcapng"), bytes).unwrap();
    let count = |filter: &str| found(filter, folder.path());
    let Some(malformed) =
        count("_ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\"")
    else {
        return;
    };
    assert_eq!(malformed, 0);
    let arrivals = "frame.interface_name == \"r1->r2 arrivals\"";
    let queue = &run.queues[0];
    assert_eq!(count(arrivals), Some(queue.arrived));
    assert_eq!(count("frame.interface_name == \"r1->r2 departures\""), Some(queue.departed));
    assert_eq!(
        count(&format!("{arrivals} && frame.comment contains \"verdict=dropped\"")),
        Some(queue.dropped)
    );
    assert_eq!(
        count(&format!("{arrivals} && ip.dsfield.dscp == 23 && udp.port == 50002")),
        Some(sent(&run, "audio"))
    );
    assert_eq!(
        count(&format!("{arrivals} && ip.dsfield.dscp == 3 && udp.port == 50001")),
        Some(sent(&run, "game"))
    );
}

fn sent(run: &cutline_scenario::results::RunResult, flow: &str) -> u64 {
    run.flows.iter().filter(|row| &*row.flow == flow).map(|row| row.packets_sent).sum()
}

/// Each segment that is sent again is a retransmission to tshark, but for those whose first sending it takes to be
/// out of order; and duplicate acknowledgements come before fast retransmissions.
#[test]
fn tshark_finds_the_retransmissions() {
    let (bytes, run) = captured(&scenario("pie"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.pcapng"), bytes).unwrap();
    let count = |filter: &str| found(filter, folder.path());
    let arrivals = "frame.interface_name == \"r1->r2 arrivals\"";
    let again =
        "(tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.spurious_retransmission)";
    let Some(seen) = count(&format!("{arrivals} && {again}")) else { return };
    let retransmissions: u64 = run.flows.iter().filter_map(|row| row.retransmissions).sum();
    let on_access_links = 20;
    assert!(
        retransmissions > 0 && seen <= retransmissions && seen + on_access_links >= retransmissions,
        "{seen} of {retransmissions}"
    );
    assert_eq!(count(&format!("{arrivals} && tcp.analysis.lost_segment")), Some(0));
    assert_eq!(count(&format!("{arrivals} && tcp.analysis.window_full")), Some(0));
    assert!(count("frame.interface_name == \"r2->r1 arrivals\" && tcp.analysis.duplicate_ack").unwrap() > 0);
    assert!(count("frame.interface_name == \"r2->r1 arrivals\" && tcp.options.sack_le").unwrap() > 0);
}

#[test]
fn flent_summarises_and_draws() {
    let (_, run) = captured(&scenario("pie"));
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("run.flent.gz")).unwrap();
    flent::write(file, &scenario("pie"), SEED, "0.0.0", &run).unwrap();
    let summary = printed("flent", &["-i", "run.flent.gz", "-p", "totals", "-f", "summary"], folder.path());
    let Some(summary) = summary else { return };
    for series in ["Ping (ms) ICMP audio", "TCP upload BE bulk.1", "TCP upload sum"] {
        assert!(summary.contains(series), "{summary}");
    }
    let sum = run.flows.iter().map(|row| row.goodput_bps).sum::<f64>() * 1e-6;
    let line = summary.lines().find(|line| line.contains("TCP upload sum")).unwrap();
    assert!(line.contains(&format!("{sum:.2}")), "{line} has not {sum:.2} Mbit/s");
    for plot in ["totals", "backlog", "delay"] {
        let image = format!("{plot}.png");
        printed("flent", &["-i", "run.flent.gz", "-p", plot, "-o", &image], folder.path());
        assert!(fs::metadata(folder.path().join(&image)).unwrap().len() > 10_000, "{plot} is empty");
    }
}
