//! Ten thousand sockets: the time of a whole walk, and the agent's processor time and memory for it.

use crate::common::{COMMUNITY, Host, object, publish};
use cutline_publish::SocketRow;
use cutline_publish::testing::receiving_socket;
use cutline_testbed::net_snmp;
use std::time::Instant;

/// Processor time of this process, s, and its memory, MB.
fn usage() -> (f64, f64) {
    let fields = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = fields.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let pages: f64 = fields[21].parse().unwrap();
    (ticks / 100.0, pages * 4096.0 / 1e6)
}

#[test]
#[ignore = "it takes a minute in release: cargo test --release -p cutline-snmp --test all -- capacity:: --ignored --nocapture"]
fn ten_thousand_sockets_are_walked() {
    let host = Host::start();
    let mut publishers: Vec<_> = (0..10).map(|number| host.publisher(&format!("program {number}"))).collect();
    let rows: Vec<SocketRow> = (1..=1000).map(|socket| receiving_socket(socket, 1000)).collect();
    for publisher in &mut publishers {
        publish(publisher, &rows);
    }
    host.wait_for_sockets(10_000);
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap().to_string();
    for (what, name) in [("the totals", object("1")), ("sockets", object("2")), ("everything", object(""))] {
        let name = name.trim_end_matches('.').to_owned();
        let (before, _) = usage();
        let since = Instant::now();
        let text = net_snmp("snmpbulkwalk", &["-v2c", "-c", COMMUNITY, "-Cr50", &at, &name]).text;
        let (values, took) = (text.lines().count(), since.elapsed().as_secs_f64());
        let (after, memory) = usage();
        println!(
            "{what}: {values} values in {took:.1} s, {:.1} s of processor, {memory:.0} MB",
            after - before
        );
        assert!(values >= 10);
    }
}
