//! Interfaces that appear and vanish while an agent runs.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

use crate::common;

use crate::common::{Net, eventually, hear};
use cutline_provision::protocol::{Reply, Request};
use cutline_provision::status::InterfaceStatus;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon interfaces::";
const ON_WIRE: u64 = 1_180_000;

fn status(net: &Net, node: &str, interface: &str) -> InterfaceStatus {
    net.status(node).interfaces.into_iter().find(|its| its.name == interface).unwrap()
}

/// Joins `r1` and `r2` again, as they are at first, with this address of `r1`.
fn join(net: &Net, address: &str) {
    let peer = net.node("r2").name();
    net.node("r1").ip_batch(&format!("link add east type veth peer name west netns {peer}")).unwrap();
    let up = |address: &str, name: &str| format!("address add {address} dev {name}\nlink set {name} up");
    net.node("r2")
        .ip_batch(&format!(
            "{}\nroute add 10.1.1.0/24 via {}",
            up("10.1.2.2/24", "west"),
            &address[..address.len() - 3]
        ))
        .unwrap();
    let routes = "route add 10.9.9.9 via 10.1.2.2\nroute add 10.1.4.0/24 via 10.1.2.2";
    net.node("r1").ip_batch(&format!("{}\n{routes}", up(address, "east"))).unwrap();
}

#[test]
fn an_interface_that_is_removed_and_made_again_has_its_reservations_back() {
    let Some(mut net) = Net::new("ifr", COMMAND) else { return };
    net.start_all();
    let (_sender, _receiver) = net.set_up(5000);
    assert_eq!(net.reserved("r1", "east"), ON_WIRE);

    net.node("r1").ip_batch("link delete east").unwrap();
    eventually("both ends notice", || {
        [("r1", "east"), ("r2", "west")].iter().all(|(node, name)| status(&net, node, name).address.is_none())
    });
    let gone = status(&net, "r1", "east");
    assert!(gone.problem.unwrap().contains("no interface of this name"));
    assert_eq!(
        (gone.reserved_bps, gone.reservations),
        (Some(0), Some(0)),
        "what was reserved there has ended"
    );
    assert!(net.tc("r1", "qdisc", "west").contains("htb"), "the others are as they were");

    // It is another one for the kernel, with another address.
    join(&net, "10.1.2.7/24");
    eventually("it is taken over", || status(&net, "r1", "east").problem.is_none());
    assert_eq!(status(&net, "r1", "east").address, Some("10.1.2.7".parse().unwrap()));
    eventually("the reservation is back", || {
        net.reserved("r1", "east") == ON_WIRE && net.classes("r1", "east") == 1
    });

    // Only the address changes: the traffic control stays.
    net.node("r1").ip_batch("address del 10.1.2.7/24 dev east\naddress add 10.1.2.8/24 dev east").unwrap();
    net.node("r1")
        .ip_batch("route replace 10.9.9.9 via 10.1.2.2\nroute replace 10.1.4.0/24 via 10.1.2.2")
        .unwrap();
    net.node("r2").ip_batch("route replace 10.1.1.0/24 via 10.1.2.8").unwrap();
    eventually("it has the new address", || {
        status(&net, "r1", "east").address == Some("10.1.2.8".parse().unwrap())
    });
    eventually("the reservation is back", || {
        net.reserved("r1", "east") == ON_WIRE && net.classes("r1", "east") == 1
    });
}

#[test]
fn an_interface_that_comes_later_is_used() {
    let Some(mut net) = Net::new("ifl", COMMAND) else { return };
    net.node("r1").ip_batch("link delete east").unwrap();
    net.start_all();
    let missing = status(&net, "r1", "east");
    assert_eq!((missing.address, missing.reservable_bps), (None, None));
    assert!(missing.problem.unwrap().contains("used when it appears"));
    let mut sender = net.client("a");
    sender
        .send(&Request::Shape { id: 9, flow: common::flow(6000), bucket: common::bucket(100_000) })
        .unwrap();
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 9, bucket: Some(_) }));

    join(&net, "10.1.2.1/24");
    eventually("it is taken over", || status(&net, "r1", "east").problem.is_none());
    let (_sender, _receiver) = net.set_up(5000);
    assert_eq!((net.reserved("r1", "east"), net.classes("r1", "east")), (ON_WIRE, 1));
}
