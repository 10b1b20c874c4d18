//! The subagent behind net-snmp's `snmpd`.

use crate::common::{Host, object, publish, row, violated, wait_until};
use cutline_monitor::ReservationState;
use cutline_testbed::{NetSnmpDaemon, free_address, net_snmp};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Starts a master agent.
fn master(folder: &Path, address: SocketAddr, manager: SocketAddr) -> NetSnmpDaemon {
    let socket = folder.join("agentx.sock");
    let settings = format!(
        "master agentx\nagentXSocket {}\nrocommunity secret\ntrap2sink {manager} managers\n",
        socket.display()
    );
    NetSnmpDaemon::start("snmpd", folder, &settings, &format!("udp:{address}"))
}

#[test]
fn a_master_agent_serves_the_objects_and_gets_them_back_after_a_restart() {
    let host = Host::start();
    let mut video = host.publisher("video");
    let rows: Vec<_> = (1..=30).map(row).collect();
    publish(&mut video, &rows);
    host.wait_for_sockets(30);
    let folder = host.folder.path();
    let [address, manager] = [free_address(), free_address()];
    let traps =
        NetSnmpDaemon::start("snmptrapd", folder, "authCommunity log managers\n", &format!("udp:{manager}"));
    let lines = format!("listen = 'off'\nagentx = '{}'", folder.join("agentx.sock").display());
    let (service, messages) = host.serve(&host.options(&lines));
    assert_eq!(service.address(), None);
    wait_until(|| messages.have("trying again"));
    let at = address.to_string();
    let get =
        |below: &str| net_snmp("snmpget", &["-v2c", "-c", "secret", "-t", "2", &at, &object(below)]).text;
    for _ in 0..2 {
        let daemon = master(folder, address, manager);
        wait_until(|| get("1.2.0").contains("Gauge32: 30"));
        assert!(get("2.1.5.1.7").contains("\"video\""));
        let walked = net_snmp("snmpbulkwalk", &["-v2c", "-c", "secret", "-Cr40", &at, &object("2")]).text;
        let names = walked.lines().filter(|line| line.contains(&object("2.1.6."))).count();
        assert_eq!(names, 30, "{walked}");
        assert!(get("2.1.99.1.7").contains("No Such"));
        let set = net_snmp("snmpset", &["-v2c", "-c", "secret", &at, &object("1.2.0"), "u", "5"]);
        assert!(!set.is_ok, "{}", set.text);
        drop(daemon);
    }
    host.monitored.set_reservations(ReservationState::default());
    let _daemon = master(folder, address, manager);
    wait_until(|| get("1.2.0").contains("Gauge32: 30"));
    // Without `cutlined` there was no such object.
    let bad = ".1.3.6.1.2.1.51.2.1.0";
    wait_until(|| net_snmp("snmpget", &["-v2c", "-c", "secret", &at, bad]).text.contains("Gauge32: 0"));
    publish(&mut video, &[violated(7)]);
    let line = traps.wait_for(&[".1.3.6.1.4.1.8072.9999.9999.2005.0.1"]);
    assert!(line.contains("123500"), "{line}");
}

/// Violations begin before there is a master, and while one is away.
#[test]
fn notifications_wait_for_the_master() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7), row(8)]);
    host.wait_for_sockets(2);
    let folder = host.folder.path();
    let [address, manager] = [free_address(), free_address()];
    let traps =
        NetSnmpDaemon::start("snmptrapd", folder, "authCommunity log managers\n", &format!("udp:{manager}"));
    let lines = format!("listen = 'off'\nagentx = '{}'", folder.join("agentx.sock").display());
    let (_service, messages) = host.serve(&host.options(&lines));
    let begun = ".1.3.6.1.4.1.8072.9999.9999.2005.0.1";
    for number in [7, 8] {
        wait_until(|| messages.have("trying again"));
        messages.forget();
        publish(&mut video, &(7..=number).map(violated).collect::<Vec<_>>());
        host.wait_for_violations(number - 6);
        // The monitor looks for violations each second.
        std::thread::sleep(Duration::from_secs(3));
        let daemon = master(folder, address, manager);
        traps.wait_for(&[begun, &format!("\"192.0.2.2:{number}\"")]);
        drop(daemon);
    }
}
