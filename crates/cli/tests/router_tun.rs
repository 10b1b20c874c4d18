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
            (0..300).any(|_| {
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

/// A host between a home and the world, whose only addresses are its own: hosts of the home appear as the host.
struct Home {
    inside: Namespace,
    outside: Namespace,
    host: Namespace,
}

impl Home {
    fn new(label: &str) -> Option<Self> {
        let [inside, outside, host] = namespaces(label)?;
        for (end, name, port, net) in [(&inside, "a0", "lan", "1"), (&outside, "b0", "wan", "2")] {
            end.ip(&["link", "add", name, "type", "veth", "peer", "name", port, "netns", host.name()])
                .unwrap();
            end.ip(&["link", "set", name, "up"]).unwrap();
            host.ip(&["link", "set", port, "up"]).unwrap();
            end.ip(&["address", "add", &format!("10.9.{net}.2/24"), "dev", name]).unwrap();
            host.ip(&["address", "add", &format!("10.9.{net}.1/24"), "dev", port]).unwrap();
        }
        // The world knows no way to the home.
        inside.ip(&["route", "add", "default", "via", "10.9.1.1"]).unwrap();
        Some(Self { inside, outside, host })
    }

    fn cutline(&self, arguments: &[&str]) -> std::process::Output {
        let run = || Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).output().unwrap();
        self.host.within(run).unwrap()
    }

    /// All that a setup may change.
    fn state(&self) -> String {
        let script = "ip -o link; ip rule; ip -6 rule; ip route show table all; ip -6 route show table all; nft list ruleset; \
                      cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding";
        let output = self.host.within(|| Command::new("sh").args(["-c", script]).output().unwrap()).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // The kernel gives interfaces addresses of the link when it has made sure of them.
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.contains("fe80:")).collect::<Vec<_>>().join("\n")
    }

    /// The address from which the world sees datagrams of the home, if they are answered. Each try is a connection of its own, because
    /// the kernel takes up to a second to notice that a router has started or ended.
    fn seen_from(&self, first_port: u16) -> Option<std::net::IpAddr> {
        (first_port..first_port + 30).find_map(|port| self.try_from(port))
    }

    fn try_from(&self, port: u16) -> Option<std::net::IpAddr> {
        let bind = |end: &Namespace, address: &str| {
            let socket = end.within(|| UdpSocket::bind((address, port)).unwrap()).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            socket
        };
        let (inside, outside) = (bind(&self.inside, "10.9.1.2"), bind(&self.outside, "10.9.2.2"));
        let mut buffer = [0; 100];
        inside.send_to(b"hello", ("10.9.2.2", port)).unwrap();
        let (_, from) = outside.recv_from(&mut buffer).ok()?;
        // What was not translated cannot be answered.
        outside.send_to(b"answer", from).ok()?;
        let n = inside.recv(&mut buffer).ok()?;
        (&buffer[..n] == b"answer").then(|| from.ip())
    }
}

fn has_nft() -> bool {
    let found = Command::new("nft").arg("--version").output().is_ok();
    if !found {
        println!("left out: there is no nft on this machine; tools/setup.sh base installs it");
    }
    found
}

#[test]
fn a_setup_leads_through_the_router_translates_addresses_and_is_undone() {
    let Some(lab) = Home::new("v").filter(|_| has_nft()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let before = lab.state();
    let arguments =
        ["router", "setup", "--lan", "lan", "--wan", "wan", "--nat", "masquerade", "--folder", place];
    // Looking changes nothing.
    let shown = lab.cutline(&[&arguments[..], &["--dry-run"]].concat());
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("ip tuntap add cut0 mode tun") && shown.contains("masquerade"), "{shown}");
    assert_eq!(lab.state(), before);

    let done = lab.cutline(&arguments);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_ne!(lab.state(), before);
    let host = "10.9.2.1".parse().ok();
    assert_eq!(lab.seen_from(5201), host, "without a router");
    let mut router = Router::start_between(&lab.host, ["tun:cut0", "tun:cut1"], &OPTIONS);
    assert_eq!(lab.seen_from(5240), host, "through the router");
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(echo([&lab.inside, &lab.outside], "10.9.2.2:5280", &bytes), bytes);
    let (code, end) = router.end();
    assert_eq!(code, Some(0));
    for direction in ["forward", "reverse"] {
        assert!(packets(&end, &format!("/{direction}/sent/packets")) > 200, "{end}");
    }
    assert_eq!(lab.seen_from(5300), host, "after the router");

    let again = lab.cutline(&arguments);
    assert_eq!(again.status.code(), Some(1), "{}", String::from_utf8_lossy(&again.stderr));
    let undone = lab.cutline(&["router", "undo", "--folder", place]);
    assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    assert_eq!(lab.state(), before);
    assert!(lab.cutline(&["router", "undo", "--if-exists", "--folder", place]).status.success());
    let nothing = lab.cutline(&["router", "undo", "--folder", place]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("nothing to take back"));
}

#[test]
fn a_setup_that_fails_or_is_cut_short_leaves_nothing() {
    let Some(lab) = Home::new("w").filter(|_| has_nft()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let arguments = ["router", "setup", "--lan", "lan", "--wan", "wan", "--folder", place];
    // Something else has the route that the setup adds in the middle.
    lab.host.ip(&["route", "add", "default", "dev", "lan", "table", "7101"]).unwrap();
    let before = lab.state();
    let failed = lab.cutline(&arguments);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("File exists") && said.contains("everything was taken back"), "{said}");
    assert_eq!(lab.state(), before);
    lab.host.ip(&["route", "delete", "default", "dev", "lan", "table", "7101"]).unwrap();

    // A part was taken away by hand, or by a reboot.
    let before = lab.state();
    assert!(lab.cutline(&arguments).status.success());
    lab.host.ip(&["link", "delete", "cut0"]).unwrap();
    assert!(lab.cutline(&["router", "undo", "--folder", place]).status.success());
    assert_eq!(lab.state(), before);
    for (wrong, what) in [
        (["--lan", "lan", "--wan", "lan"], "they are two interfaces"),
        (["--lan", "lan;reboot", "--wan", "wan"], "expected 1 to 15 letters"),
        (["--lan", "none", "--wan", "wan"], "there is no interface `none`"),
    ] {
        let refused = lab.cutline(&[&["router", "setup", "--folder", place], &wrong[..]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(what), "{said}");
    }
    assert_eq!(lab.state(), before);
}
