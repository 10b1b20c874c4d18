//! Traffic control that another program removes: it is installed again, or the holders of reservations are notified of the loss.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon taken_away::`.

use crate::common::{Net, announce, eventually, hear, reserve};
use cutline_provision::protocol::Reply;
use cutline_units::Duration;
use std::process::Command;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon taken_away::";
/// Rate of a reservation of 1 Mbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 1_180_000;

/// Runs `tc` in a node, as an operator would.
fn tc(net: &Net, node: &str, arguments: &str) {
    let output = Command::new("tc")
        .args(["-n", net.node(node).name()])
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the number of filters that lead to classes of reservations.
fn filters(net: &Net, node: &str, interface: &str) -> usize {
    let shown = net.tc(node, "filter", &format!("{interface} parent c071:"));
    shown.matches("flowid c071:").count() - shown.matches("flowid c071:2 ").count()
}

/// Each way of taking it away: the whole discipline, a class, all filters, another rate of a class. All of it is there again, and no client
/// has lost a reservation.
#[test]
fn removed_reservations_are_installed_again() {
    let Some(mut net) = Net::new("tka", COMMAND) else { return };
    net.rsvp = "refresh = '30 s'";
    net.start_all();
    let (_sender, mut receiver) = net.set_up(5000);
    let (_other_sender, mut other) = net.set_up(5001);
    let is_whole = |net: &Net| {
        let classes = net.tc("r1", "class", "east");
        let is_as_it_was = classes.matches("rate 1140Kbit").count() == 2;
        is_as_it_was && net.classes("r1", "east") == 2 && filters(net, "r1", "east") == 2
    };
    assert!(is_whole(&net), "{}", net.tc("r1", "class", "east"));
    // The command has taken it away when it returns, so a complete one afterwards was installed again.
    for how in [
        "qdisc del dev east root",
        "filter del dev east parent c071:",
        "class change dev east parent c071:1 classid c071:10 htb rate 8kbit",
        "qdisc del dev east root",
    ] {
        tc(&net, "r1", how);
        eventually(how, || is_whole(&net) && net.status("r1").interfaces[1].problem.is_none());
        assert_eq!(net.reserved("r1", "east"), 2 * ON_WIRE, "{how}");
    }
    // A new one is confirmed, and is there.
    tc(&net, "r1", "qdisc del dev east root");
    let (_third_sender, _third) = net.set_up(5002);
    eventually("all three are there", || net.classes("r1", "east") == 3);
    for client in [&mut receiver, &mut other] {
        while let Some(reply) = client.reply(Duration::ZERO).unwrap() {
            assert!(!matches!(reply, Reply::Failed { .. }), "{reply:?}");
        }
    }
}

/// Another discipline in its place is the operator's, so the reservations are lost, new requests are refused, and both
/// ends hear why. When it has gone, all comes back.
#[test]
fn reservations_are_given_up_under_a_foreign_discipline() {
    let Some(mut net) = Net::new("tkb", COMMAND) else { return };
    net.start_all();
    let (_sender, mut receiver) = net.set_up(5000);
    tc(&net, "r1", "qdisc replace dev east root handle 7: pfifo limit 100");
    hear(&mut receiver, |reply| matches!(reply, Reply::Failed { id: 2, .. }));
    let status = net.status("r1");
    let east = &status.interfaces[1];
    assert_eq!((east.reserved_bps, east.reservations), (Some(0), Some(0)));
    let problem = east.problem.clone().unwrap();
    assert!(problem.contains("taken away") && problem.contains("pfifo"), "{problem}");
    assert!(net.tc("r1", "qdisc", "east").contains("pfifo 7:"), "it is left alone");
    // A new one is refused and not confirmed.
    let (mut sender, mut other) = (net.client("a"), net.client("b"));
    sender.send(&announce(1, 5001, 1_000_000)).unwrap();
    other.send(&reserve(2, 5001, 1_000_000)).unwrap();
    let heard =
        hear(&mut other, |reply| matches!(reply, Reply::Confirmed { .. } | Reply::Failed { id: 2, .. }));
    assert!(matches!(heard, Reply::Failed { .. }), "{heard:?}");
    tc(&net, "r1", "qdisc del dev east root");
    eventually("it comes back with the refreshes", || net.classes("r1", "east") == 2);
    assert_eq!(net.status("r1").interfaces[1].problem, None);
}

/// A discipline of another tool beside it, such as for packets that arrive, does not concern it.
#[test]
fn other_disciplines_beside_it_change_nothing() {
    let Some(mut net) = Net::new("tkc", COMMAND) else { return };
    net.start_all();
    let (_sender, _receiver) = net.set_up(5000);
    let before = net.tc("r1", "class", "east");
    tc(&net, "r1", "qdisc add dev east ingress");
    tc(&net, "r1", "qdisc del dev east ingress");
    tc(&net, "r1", "qdisc add dev lo root handle 9: pfifo limit 10");
    let (_second_sender, _second) = net.set_up(5001);
    // Counters that begin at zero would show that it was made again.
    assert!(before.contains("class htb c071:10"), "{before}");
    assert_eq!(net.classes("r1", "east"), 2);
    let status = net.status("r1");
    assert!(status.interfaces.iter().all(|interface| interface.problem.is_none()));
}
