//! The router on a host that routes: two TUN interfaces, and rules that lead what is forwarded through them
//! (docs/guide/router.md).
//!
//! ```text
//! host a        the host that routes            host b
//! a0 ══════ p0  p0 -> cut0 router cut1 -> p1  p1 ══════ b0
//! ```
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli --test router_tun`.

mod common;

use common::{Router, assert_a_backlog_crosses, assert_sums, echo, namespaces, packets};
use cutline_sys::namespace::Namespace;
use serde_json::Value;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

/// A queue that drops nothing early: what does not come was lost by the router.
const OPTIONS: [&str; 4] = ["--rate", "200Mbit", "--aqm", "drop-tail"];

/// The namespaces, with routes that need the router only for as long as it is there.
struct Routed {
    a: Namespace,
    b: Namespace,
    host: Namespace,
}

impl Routed {
    fn new(label: &str) -> Option<Self> {
        let [a, b, host] = namespaces(label)?;
        for (end, name, port, net) in [(&a, "a0", "p0", "1"), (&b, "b0", "p1", "2")] {
            end.ip(&["link", "add", name, "type", "veth", "peer", "name", port, "netns", host.name()])
                .unwrap();
            end.ip(&["link", "set", name, "up"]).unwrap();
            host.ip(&["link", "set", port, "up"]).unwrap();
            for (own, gateway, mask) in [
                (format!("10.9.{net}.2"), format!("10.9.{net}.1"), "24"),
                (format!("fd09:{net}::2"), format!("fd09:{net}::1"), "64"),
            ] {
                end.ip(&["address", "add", &format!("{own}/{mask}"), "dev", name, "nodad"]).unwrap();
                host.ip(&["address", "add", &format!("{gateway}/{mask}"), "dev", port, "nodad"]).unwrap();
                end.ip(&["route", "add", "default", "via", &gateway]).unwrap();
            }
        }
        switch(&host, "ipv4/ip_forward", "1");
        switch(&host, "ipv6/conf/all/forwarding", "1");
        // Strict, as some distributions have it.
        switch(&host, "ipv4/conf/all/rp_filter", "1");
        for (table, port, tun) in [("100", "p0", "cut0"), ("101", "p1", "cut1")] {
            host.ip(&["tuntap", "add", tun, "mode", "tun"]).unwrap();
            host.ip(&["link", "set", tun, "up"]).unwrap();
            switch(&host, &format!("ipv4/conf/{tun}/rp_filter"), "2");
            for version in ["ipv4", "ipv6"] {
                switch(&host, &format!("{version}/conf/{tun}/ignore_routes_with_linkdown"), "1");
            }
            for version in ["-4", "-6"] {
                host.ip(&[version, "route", "add", "default", "dev", tun, "table", table]).unwrap();
                host.ip(&[version, "rule", "add", "iif", port, "lookup", table]).unwrap();
            }
        }
        Some(Self { a, b, host })
    }

    /// Sockets at both ends, connected to each other.
    fn sockets(&self, v6: bool, port: u16) -> [UdpSocket; 2] {
        let address = |net: u8| {
            if v6 { format!("[fd09:{net}::2]:{port}") } else { format!("10.9.{net}.2:{port}") }
        };
        let open = |end: &Namespace, own: u8, other: u8| {
            let socket = end.within(|| UdpSocket::bind(address(own)).unwrap()).unwrap();
            socket.connect(address(other)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            socket
        };
        [open(&self.a, 1, 2), open(&self.b, 2, 1)]
    }

    /// Whether datagrams come across, both ways.
    fn is_crossed(&self, v6: bool, port: u16) -> bool {
        let [a, b] = self.sockets(v6, port);
        [(&a, &b), (&b, &a)].into_iter().all(|(from, to)| {
            let mut buffer = [0; 100];
            (0..10).any(|_| {
                from.send(b"hello").is_ok() && to.recv(&mut buffer).is_ok_and(|n| &buffer[..n] == b"hello")
            })
        })
    }

    fn router(&self) -> Router {
        Router::start_between(&self.host, ["tun:cut0", "tun:cut1"], &OPTIONS)
    }
}

fn switch(host: &Namespace, name: &str, value: &str) {
    host.within(|| std::fs::write(format!("/proc/sys/net/{name}"), value)).unwrap().unwrap();
}

/// TCP's hosts leave segmentation and checksums to their virtual interfaces, which have no hardware for it.
#[test]
fn forwarded_packets_pass_through_the_router_and_without_it_past_it() {
    let Some(lab) = Routed::new("t") else { return };
    let mut router = lab.router();
    assert!(lab.is_crossed(false, 5001), "IPv4");
    assert!(lab.is_crossed(true, 5002), "IPv6");
    assert_a_backlog_crosses(lab.sockets(false, 5008), &mut router);
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(echo([&lab.a, &lab.b], "10.9.2.2:5100", &bytes), bytes);
    let (code, end) = router.end();
    assert_eq!((code, &end["event"]), (Some(0), &Value::from("end")));
    for (direction, least) in [("forward", 700), ("reverse", 700)] {
        assert_sums(&end, direction);
        // A megabyte in packets of 1500 B, at the least.
        assert!(packets(&end, &format!("/{direction}/sent/packets")) > least, "{end}");
        assert_eq!(packets(&end, &format!("/{direction}/dropped/oversize/packets")), 0, "{end}");
    }
    assert!(lab.is_crossed(false, 5003), "without a router the host routes past it");

    let mut router = lab.router();
    assert!(lab.is_crossed(false, 5004), "the next router has the same interfaces");
    router.kill();
    assert!(lab.is_crossed(false, 5005), "IPv4 after a router was killed");
    assert!(lab.is_crossed(true, 5006), "IPv6 after a router was killed");

    let mut router = lab.router();
    lab.host.ip(&["link", "set", "cut1", "down"]).unwrap();
    lab.host.ip(&["link", "set", "cut1", "up"]).unwrap();
    // Routes go with an interface that goes down.
    for version in ["-4", "-6"] {
        lab.host.ip(&[version, "route", "replace", "default", "dev", "cut1", "table", "101"]).unwrap();
    }
    assert!(lab.is_crossed(false, 5007), "an interface was down");
    lab.host.ip(&["link", "delete", "cut1"]).unwrap();
    let (code, end) = router.ended();
    assert_eq!(code, Some(1));
    assert_sums(&end, "forward");
    assert!(router.messages().contains("`cut1` has been removed"));
}

#[test]
fn what_cannot_be_joined_is_told() {
    let Some([host, ..]) = namespaces("u") else { return };
    host.ip(&["link", "add", "p0", "type", "veth", "peer", "name", "p1"]).unwrap();
    let refused = |names: [&str; 2], what: &str| {
        let run = || {
            Command::new(env!("CARGO_BIN_EXE_cutline"))
                .args(["router", "--in", names[0], "--out", names[1], "--rate", "8Mbit"])
                .output()
                .unwrap()
        };
        let output = host.within(run).unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(what), "{message}");
    };
    refused(["tun:p0", "p1"], "both must be TUN interfaces, or neither");
    refused(["tun:p0", "tun:p1"], "`p0` is not a TUN interface; make one with `ip tuntap add p0 mode tun`");
    refused(["tun:cut0", "tun:cut1"], "there is no interface `cut0`");
}
