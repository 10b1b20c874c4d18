//! tshark and flent read the files. If a tool is not installed, its tests print how to install it, and pass.

use crate::common::{SEED, captured, scenario};
use cutline_testbed::skip;
use cutline_trace::flent;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// The output of a tool; `None` if it is not installed.
fn tool_output(tool: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let Ok(output) = Command::new(tool).args(arguments).current_dir(folder).output() else {
        skip(format_args!("{tool} is not installed"), "make validate-traces");
        return None;
    };
    assert!(output.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The fields that tshark prints for each packet, in this order.
const FIELDS: [&str; 12] = [
    "frame.interface_name",
    "frame.comment",
    "ip.dsfield.dscp",
    "udp.dstport",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.window_full",
    "tcp.analysis.duplicate_ack",
    "tcp.options.sack_le",
];

/// The fields of a packet in the output of tshark.
struct Dissected<'l>(Vec<&'l str>);

impl<'l> Dissected<'l> {
    fn get(&self, field: &str) -> &'l str {
        self.0[FIELDS.iter().position(|&name| name == field).expect("the field is among those printed")]
    }

    fn has(&self, field: &str) -> bool {
        !self.get(field).is_empty()
    }

    fn is_at(&self, interface: &str) -> bool {
        self.get("frame.interface_name") == interface
    }
}

fn dissect(capture: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.pcapng"), capture).unwrap();
    let mut arguments = vec!["-r", "run.pcapng", "-o", "ip.check_checksum:TRUE", "-T", "fields"];
    arguments.extend(FIELDS.iter().flat_map(|&field| ["-e", field]));
    tool_output("tshark", &arguments, folder.path())
}

/// tshark reports every retransmitted segment as a retransmission or as out of order, depending on its time. Some are lost
/// before the queue, or are in the network at the end.
#[test]
fn tshark_reads_the_packets_of_the_simulator() {
    let (capture, run) = captured(&scenario("pie"));
    let Some(text) = dissect(&capture) else { return };
    let packets: Vec<Dissected<'_>> =
        text.lines().map(|line| Dissected(line.split('\t').collect())).collect();
    let count = |interface: &str, what: &dyn Fn(&Dissected<'_>) -> bool| {
        packets.iter().filter(|packet| packet.is_at(interface) && what(packet)).count() as u64
    };
    let (arrivals, replies) = ("r1->r2 arrivals", "r2->r1 arrivals");
    let queue = &run.queues[0];
    assert_eq!(count(arrivals, &|_| true), queue.arrived);
    assert_eq!(count("r1->r2 departures", &|_| true), queue.departed);
    assert_eq!(
        count(arrivals, &|packet| packet.get("frame.comment").contains("verdict=dropped")),
        queue.dropped
    );
    // Status 1 means that the checksum is correct.
    assert!(
        packets.iter().all(|packet| !packet.has("_ws.malformed") && packet.get("ip.checksum.status") == "1")
    );
    for (flow, dscp, port) in [("audio", "23", "50002"), ("game", "3", "50001")] {
        let of_flow = |packet: &Dissected<'_>| {
            (packet.get("ip.dsfield.dscp"), packet.get("udp.dstport")) == (dscp, port)
        };
        let row = run.flows.iter().find(|row| &*row.flow == flow).unwrap();
        assert!(
            count(arrivals, &of_flow).abs_diff(row.packets_sent) <= 1,
            "{flow}: one may be in the network"
        );
    }
    let is_retransmission = |packet: &Dissected<'_>| {
        packet.has("tcp.analysis.retransmission") || packet.has("tcp.analysis.out_of_order")
    };
    let retransmissions: u64 = run.flows.iter().filter_map(|row| row.retransmissions).sum();
    let seen = count(arrivals, &is_retransmission);
    assert!(seen > 20 && seen.abs_diff(retransmissions) <= 5, "{seen} of {retransmissions}");
    for unexpected in ["tcp.analysis.lost_segment", "tcp.analysis.window_full"] {
        assert_eq!(count(arrivals, &|packet| packet.has(unexpected)), 0, "{unexpected}");
    }
    for expected in ["tcp.analysis.duplicate_ack", "tcp.options.sack_le"] {
        assert!(count(replies, &|packet| packet.has(expected)) > 20, "{expected}");
    }
}

#[test]
fn flent_summarises_and_draws() {
    let (_, run) = captured(&scenario("pie"));
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("run.flent.gz")).unwrap();
    flent::write(file, &scenario("pie"), SEED, "0.0.0", &run).unwrap();
    let summary =
        tool_output("flent", &["-i", "run.flent.gz", "-p", "totals", "-f", "summary"], folder.path());
    let Some(summary) = summary else { return };
    for series in ["Ping (ms) ICMP audio", "TCP upload BE bulk.1", "TCP upload sum"] {
        assert!(summary.contains(series), "{summary}");
    }
    let sum = run.flows.iter().map(|row| row.goodput_bps).sum::<f64>() * 1e-6;
    let line = summary.lines().find(|line| line.contains("TCP upload sum")).unwrap();
    assert!(line.contains(&format!("{sum:.2}")), "{line} has not {sum:.2} Mbit/s");
    for plot in ["totals", "backlog", "delay"] {
        let image = format!("{plot}.png");
        tool_output("flent", &["-i", "run.flent.gz", "-p", plot, "-o", &image], folder.path());
        assert!(fs::metadata(folder.path().join(&image)).unwrap().len() > 10_000, "{plot} is empty");
    }
}

#[test]
fn flent_summarises_and_draws_a_measurement() {
    let flow = |name: &str, step: f64| flent::MeasuredFlow {
        name: name.to_owned(),
        goodput_bps: (0..50).map(|i| 2e6 + f64::from(i) * step).collect(),
        delay_ms: (0..50).map(|i| (i % 7 > 0).then(|| 20.0 + f64::from(i % 5))).collect(),
    };
    let measured = flent::RealNetwork {
        name: "tg".to_owned(),
        title: "Both ways".to_owned(),
        note: "measured".to_owned(),
        length_s: 10.0,
        step_s: 0.2,
        flows: vec![flow("tcp-bulk", 1e4), flow("tcp-bulk.reverse", 0.0)],
    };
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("tg.flent.gz")).unwrap();
    flent::write_measured(file, &measured).unwrap();
    let options = ["-i", "tg.flent.gz", "-p", "totals", "-f", "summary"];
    let Some(summary) = tool_output("flent", &options, folder.path()) else { return };
    for series in ["Ping (ms) ICMP tcp-bulk.reverse", "TCP upload BE tcp-bulk", "TCP upload sum"] {
        assert!(summary.contains(series), "{summary}");
    }
    tool_output("flent", &["-i", "tg.flent.gz", "-p", "totals", "-o", "totals.png"], folder.path());
    assert!(fs::metadata(folder.path().join("totals.png")).unwrap().len() > 10_000);
}
