//! The router on a host that routes: two TUN interfaces, and rules that lead forwarded packets through them
//! (docs/guide/router.md).
//!
//! ```text
//! host a        the host that routes            host b
//! a0 ══════ p0  p0 -> cut0 router cut1 -> p1  p1 ══════ b0
//! ```
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router_tun::`.

use crate::common::{Router, assert_a_backlog_crosses, assert_sums, echo, namespaces, packets};
use cutline_sys::namespace::Namespace;
use cutline_testbed::{wait_for_carriers, wait_for_own_addresses};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::cell::Cell;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time that a test waits for an event, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// A queue that drops nothing early: every missing packet was lost by the router.
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
            wait_for_own_addresses(end, &[&format!("fd09:{net}::2")]);
            wait_for_own_addresses(&host, &[&format!("fd09:{net}::1")]);
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

    /// Returns whether datagrams come across, both ways.
    fn is_crossed(&self, v6: bool, port: u16) -> bool {
        let [a, b] = self.sockets(v6, port);
        [(&a, &b), (&b, &a)].into_iter().all(|(from, to)| {
            let (until, mut buffer) = (Instant::now() + PATIENCE, [0; 100]);
            loop {
                if from.send(b"hello").is_ok() && to.recv(&mut buffer).is_ok_and(|n| &buffer[..n] == b"hello")
                {
                    return true;
                }
                if Instant::now() >= until {
                    return false;
                }
                // An interface without a router refuses at once.
                std::thread::sleep(Duration::from_millis(10));
            }
        })
    }

    fn router(&self) -> Router {
        start_router(&self.host)
    }
}

/// Starts a router between the two TUN interfaces, and waits until packets go through it.
fn start_router(host: &Namespace) -> Router {
    let router = Router::start_between(host, ["tun:cut0", "tun:cut1"], &OPTIONS);
    wait_for_carriers(host);
    router
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
fn interfaces_that_cannot_be_joined_are_refused() {
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
    /// The folder of the sockets of routers, if it is not the usual one.
    runtime: Option<std::path::PathBuf>,
    /// The port of the next datagram.
    port: Cell<u16>,
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
        Some(Self { inside, outside, host, runtime: None, port: Cell::new(5200) })
    }

    fn cutline(&self, arguments: &[&str]) -> std::process::Output {
        let runtime = self.runtime.iter().map(|folder| ("RUNTIME_DIRECTORY", folder));
        let run =
            || Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).envs(runtime).output().unwrap();
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

    /// The address from which the world sees datagrams of the home, if they are answered in time. Each try is a connection of its own, because
    /// the kernel takes up to a second to notice that a router has started or ended.
    fn seen_from(&self) -> Option<std::net::IpAddr> {
        let until = Instant::now() + PATIENCE;
        let tries = std::iter::repeat_with(|| self.try_from(self.port.replace(self.port.get() + 1)));
        tries.take_while(|seen| seen.is_some() || Instant::now() < until).flatten().next()
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
        // Untranslated packets cannot be answered.
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
    assert_eq!(lab.seen_from(), host, "without a router");
    let mut router = start_router(&lab.host);
    assert_eq!(lab.seen_from(), host, "through the router");
    let bytes: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(echo([&lab.inside, &lab.outside], "10.9.2.2:5280", &bytes), bytes);
    let (code, end) = router.end();
    assert_eq!(code, Some(0));
    for direction in ["forward", "reverse"] {
        assert!(packets(&end, &format!("/{direction}/sent/packets")) > 200, "{end}");
    }
    assert_eq!(lab.seen_from(), host, "after the router");

    let again = lab.cutline(&arguments);
    assert_eq!(again.status.code(), Some(1), "{}", String::from_utf8_lossy(&again.stderr));
    let undone = lab.cutline(&["router", "undo", "--folder", place]);
    assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
    assert_eq!(lab.state(), before);
    assert!(lab.cutline(&["router", "undo", "--if-exists", "--folder", place]).status.success());
    let nothing = lab.cutline(&["router", "undo", "--folder", place]);
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("nothing to undo"));
}

#[test]
fn a_failed_or_interrupted_setup_leaves_no_state() {
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
    assert!(said.contains("File exists") && said.contains("all changes were undone"), "{said}");
    assert_eq!(lab.state(), before);
    lab.host.ip(&["route", "delete", "default", "dev", "lan", "table", "7101"]).unwrap();

    // A part was taken away by hand, or by a reboot.
    let before = lab.state();
    assert!(lab.cutline(&arguments).status.success());
    lab.host.ip(&["link", "delete", "cut0"]).unwrap();
    assert!(lab.cutline(&["router", "undo", "--folder", place]).status.success());
    assert_eq!(lab.state(), before);
    for (wrong, what) in [
        (["--lan", "lan", "--wan", "lan"], "name two interfaces"),
        (["--lan", "lan;reboot", "--wan", "wan"], "expected 1 to 15 letters"),
        (["--lan", "none", "--wan", "wan"], "there is no interface `none`"),
        (["--lan=lan", "--wan=wan", "--tables", "7,7"], "--tables 7,7: expected two different numbers"),
        (["--lan=lan", "--wan=wan", "--tables", "7"], "--tables 7: expected two different numbers"),
    ] {
        let refused = lab.cutline(&[&["router", "setup", "--folder", place], &wrong[..]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(what), "{said}");
    }
    assert_eq!(lab.state(), before);
}

impl Home {
    /// A gateway as they are: it forwards, and its own rules translate addresses.
    fn gateway(label: &str) -> Option<Self> {
        let lab = Self::new(label).filter(|_| has_nft())?;
        switch(&lab.host, "ipv4/ip_forward", "1");
        let rules = "table ip home { chain post { type nat hook postrouting priority srcnat; oifname \"wan\" masquerade; }; }";
        lab.sh(&format!("nft '{rules}'"));
        Some(lab)
    }

    /// Runs a script on the host. It has to succeed.
    fn sh(&self, script: &str) -> String {
        let output = self.host.within(|| Command::new("sh").args(["-c", script]).output().unwrap()).unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that has to be refused with this exit code. Returns its message.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.cutline(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    /// Runs a command that has to succeed. Returns its output.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.cutline(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// As [`Self::assert_shaped`], if this host translates addresses.
    fn assert_shaped_if(&self, translates: bool, socket: &str) {
        if translates {
            self.assert_shaped(socket);
        }
    }

    /// Waits until packets of the home pass the router. The world must see the host's address meanwhile.
    fn assert_shaped(&self, socket: &str) {
        let passed = || -> u64 {
            let text = self.done(&["router", "stats", socket, "--json"]);
            let statistics: Value = serde_json::from_str(&text).unwrap();
            packets(&statistics, "/forward/sent/packets").min(packets(&statistics, "/reverse/sent/packets"))
        };
        let (before, until) = (passed(), Instant::now() + PATIENCE);
        while passed() == before {
            assert!(Instant::now() < until, "packets do not pass the router");
            assert_eq!(self.seen_from(), "10.9.2.1".parse().ok(), "the host's address");
        }
    }
}

/// The socket of the only router in a folder.
fn socket_in(folder: &std::path::Path) -> String {
    let sockets = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let mut sockets = sockets.filter(|path| path.extension().is_some_and(|end| end == "sock"));
    sockets.next().unwrap().to_str().unwrap().to_owned()
}

/// Returns whether a process has ended. Its parent may not have noticed.
fn has_ended(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    status.map_or(true, |text| text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}

/// The number of the router that a refusal names.
fn process_in(refusal: &str) -> i32 {
    let (_, rest) = refusal.split_once("process ").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_bridge_between_interfaces_that_the_host_uses_is_refused_with_the_right_advice() {
    let Some(lab) = Home::gateway("x") else { return };
    let bridge = ["router", "--in", "lan", "--out", "wan", "--rate", "15Mbit"];
    for more in [&[][..], &["--check"]] {
        let said = lab.refused(1, &[&bridge[..], more].concat());
        for part in [
            "`lan`: address 10.9.1.1/24, IPv4 forwarding",
            "`wan`: address 10.9.2.1/24, IPv4 forwarding",
            "cutline router up --lan lan --wan wan --rate RATE",
            "cutline router setup",
            "--force-bridge",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("router.toml");
    let text = "in = \"lan\"\nout = \"wan\"\n[forward]\nrate = \"1 Mbit/s\"\nqueue = { aqm = \"pie\", limit = \"9 packets\" }\n\
                [reverse]\nrate = \"1 Mbit/s\"\nqueue = { aqm = \"pie\", limit = \"9 packets\" }\n";
    std::fs::write(&file, text).unwrap();
    let config = ["router", "--config", file.to_str().unwrap()];
    assert!(lab.refused(1, &config).contains("cutline router up"));
    std::fs::write(&file, format!("force-bridge = true\n{text}")).unwrap();
    lab.done(&[&config[..], &["--check"]].concat());
    lab.done(&[&bridge[..], &["--force-bridge", "--duration", "100ms"]].concat());
    let missing = ["router", "--in", "lan7", "--out", "wan", "--rate", "1Mbit", "--check"];
    assert!(lab.refused(1, &missing).contains("there is no interface `lan7`"));

    // Every single use is one, and forwarding alone is.
    for name in ["lan", "wan"] {
        lab.host.ip(&["address", "flush", "dev", name]).unwrap();
    }
    assert!(lab.refused(1, &bridge).contains("`lan`: IPv4 forwarding\n"));
    switch(&lab.host, "ipv4/ip_forward", "0");
    let short = [&bridge[..], &["--duration", "100ms"]].concat();
    lab.done(&short);
    lab.host.ip(&["link", "add", "br0", "type", "bridge"]).unwrap();
    for (command, undo, what) in [
        ("link set wan master br0", "link set wan nomaster", "`wan`: member of `br0`"),
        ("route add 10.7.0.0/16 dev lan", "route delete 10.7.0.0/16 dev lan", "`lan`: route to 10.7.0.0/16"),
        ("link add link wan name m0 type macvlan", "link delete m0", "`wan`: below `m0`"),
        (
            "address add 10.9.1.1/24 dev lan",
            "address delete 10.9.1.1/24 dev lan",
            "`lan`: address 10.9.1.1/24",
        ),
    ] {
        lab.host.ip_batch(command).unwrap();
        let said = lab.refused(1, &short);
        assert!(said.contains(what), "{command}: {said}");
        lab.host.ip_batch(undo).unwrap();
        lab.done(&short);
    }
}

#[test]
fn a_gateway_is_set_up_and_down_after_any_interruption() {
    let Some(mut lab) = Home::gateway("y") else { return };
    let folder = tempfile::tempdir().unwrap();
    lab.runtime = Some(folder.path().to_owned());
    let place = folder.path().join("setups");
    let place = ["--folder", place.to_str().unwrap()];
    let options = ["--lan", "lan", "--wan", "wan", "--rate", "20Mbit", "--reverse-rate", "100Mbit"];
    let up = [&["router", "up"], &options[..], &place].concat();
    let down = [&["router", "down"], &place[..]].concat();
    let before = lab.state();
    assert!(lab.done(&[&up[..], &["--dry-run"]].concat()).contains("rate = \"20 Mbit/s\""));
    assert_eq!(lab.state(), before);
    for killed in [false, true] {
        let said = lab.done(&up);
        assert!(said.contains("20 Mbit/s, back at 100 Mbit/s, addresses are translated"), "{said}");
        lab.assert_shaped(&socket_in(folder.path()));
        let during = lab.state();
        let again = lab.refused(1, &up);
        assert!(again.contains("already set up") && again.contains("cutline router down"), "{again}");
        let again =
            lab.refused(1, &[&["router", "setup", "--lan", "lan", "--wan", "wan"], &place[..]].concat());
        assert!(again.contains("already set up"), "{again}");
        let second = lab.refused(1, &["router", "--in", "tun:cut0", "--out", "tun:cut1", "--rate", "1Mbit"]);
        assert!(second.contains("another router, process ") && second.contains("`cut0`"), "{second}");
        assert_eq!(lab.state(), during, "a second one changes nothing");
        let process = Pid::from_raw(process_in(&second)).unwrap();
        if killed {
            kill_process(process, Signal::KILL).unwrap();
            assert_eq!(lab.seen_from(), "10.9.2.1".parse().ok(), "without a router packets pass it by");
        }
        lab.done(&down);
        assert!(has_ended(process), "the router has ended");
        assert_eq!(lab.state(), before);
        assert!(lab.refused(1, &down).contains("nothing to undo"));
        lab.done(&[&down[..], &["--if-exists"]].concat());
        assert_eq!(lab.state(), before);
    }
    let missing =
        [&["router", "up", "--lan", "lan7", "--wan", "wan", "--rate", "1Mbit"], &place[..]].concat();
    assert!(lab.refused(2, &missing).contains("there is no interface `lan7`"));
    // The router cannot start: something else is where its file shall be.
    let wrong = [&up[..], &["--rtt", "1h"]].concat();
    assert!(lab.refused(2, &wrong).contains("rtt"));
    assert_eq!(lab.state(), before);

    // Ctrl-C while the commands run: the shell waits for a file.
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let [shell, begun, go] = ["sh", "begun", "go"].map(|name| bin.join(name));
    let script = format!(
        "#!/bin/sh\n[ -e {go} ] && exec /bin/sh \"$@\"\n: > {begun}\nwhile [ ! -e {go} ]; do sleep 0.05; done\nexec /bin/sh \"$@\"\n",
        go = go.display(),
        begun = begun.display()
    );
    std::fs::write(&shell, script).unwrap();
    std::fs::set_permissions(&shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(&up).env("PATH", &path).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let process = lab.host.within(start).unwrap();
    while !begun.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    std::fs::write(&go, "").unwrap();
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted") && said.contains("all changes were undone"), "{said}");
    assert_eq!(lab.state(), before);
    assert!(lab.refused(1, &down).contains("nothing to undo"));
}

#[test]
fn a_setup_that_would_cut_hosts_off_is_refused_with_advice() {
    let Some(lab) = Home::new("z").filter(|_| has_nft()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let setup = ["router", "setup", "--lan", "lan", "--wan", "wan", "--folder", place];
    let before = lab.state();
    let said = lab.refused(1, &[&setup[..], &["--nat", "existing"]].concat());
    assert!(said.contains("no rule of this host translates") && said.contains("--nat masquerade"), "{said}");
    // A firewall that drops unknown packets, as most do.
    let firewall = "table inet fw { chain forward { type filter hook forward priority filter; policy drop; \
                    ct state established,related accept; iifname \"lan\" oifname \"wan\" accept; }; }";
    lab.sh(&format!("nft '{firewall}'"));
    let said = lab.refused(1, &[&setup[..], &["--nat", "masquerade"]].concat());
    assert!(said.contains("(inet fw forward)"), "{said}");
    lab.sh("nft delete table inet fw");
    assert_eq!(lab.state(), before);
    lab.sh(&format!("nft '{firewall}'"));
    // The commands that the refusal names.
    let commands: Vec<&str> = said.lines().filter(|line| line.trim().starts_with("nft insert")).collect();
    assert_eq!(commands.len(), 4, "{said}");
    for command in commands {
        lab.sh(command);
    }
    lab.done(&[&setup[..], &["--nat", "masquerade"]].concat());
    let mut router = start_router(&lab.host);
    assert_eq!(lab.seen_from(), "10.9.2.1".parse().ok(), "through the router and the firewall");
    let (code, end) = router.end();
    assert_eq!(code, Some(0));
    assert!(
        packets(&end, "/forward/sent/packets") > 0 && packets(&end, "/reverse/sent/packets") > 0,
        "{end}"
    );
    lab.done(&["router", "undo", "--folder", place]);
}

/// Returns whether a datagram from one address to another is answered, at one of a hundred ports, which take more than a minute without an answer.
fn is_answered([from, to]: [(&Namespace, &str); 2], first_port: u16) -> bool {
    (first_port..first_port + 100).any(|port| {
        let [asking, answering] = [from, to].map(|(end, address)| {
            let socket = end.within(|| UdpSocket::bind((address, port)).unwrap()).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
            socket
        });
        let mut buffer = [0; 100];
        let answer = |(_, from)| answering.send_to(b"answer", from).is_ok();
        asking.send_to(b"hello", (to.1, port)).is_ok()
            && answering.recv_from(&mut buffer).is_ok_and(answer)
            && asking.recv(&mut buffer).is_ok_and(|n| &buffer[..n] == b"answer")
    })
}

/// A host routes for more networks than the named ones: a second one, containers, a tunnel.
#[test]
fn hosts_behind_interfaces_without_a_name_in_the_setup_are_not_cut_off() {
    for translates in [true, false] {
        let Some(mut lab) = (if translates { Home::gateway("w") } else { Home::new("w") }) else { return };
        if !translates {
            switch(&lab.host, "ipv4/ip_forward", "1");
            lab.outside.ip(&["route", "add", "default", "via", "10.9.2.1"]).unwrap();
        }
        // Strict, as some distributions have it.
        switch(&lab.host, "ipv4/conf/all/rp_filter", "1");
        let guest = Namespace::create("wg").unwrap();
        guest
            .ip(&["link", "add", "g0", "type", "veth", "peer", "name", "wifi", "netns", lab.host.name()])
            .unwrap();
        guest
            .ip_batch("link set g0 up\naddress add 10.9.3.2/24 dev g0\nroute add default via 10.9.3.1")
            .unwrap();
        lab.host.ip_batch("link set wifi up\naddress add 10.9.3.1/24 dev wifi").unwrap();
        let folder = tempfile::tempdir().unwrap();
        lab.runtime = Some(folder.path().to_owned());
        let place = folder.path().join("setups");
        let place = ["--folder", place.to_str().unwrap()];
        let up = [&["router", "up", "--lan", "lan", "--wan", "wan", "--rate", "20Mbit"], &place[..]].concat();
        let before = lab.state();
        let refused = lab.refused(1, &up);
        assert!(
            refused.contains("hosts behind `wifi` would be cut off from wan")
                && refused.contains("Add --lan wifi"),
            "{refused}"
        );
        assert_eq!(lab.state(), before);
        let command = refused.split('`').find(|text| text.starts_with("sysctl")).expect("a command");
        lab.sh(command);
        let output = lab.cutline(&up);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("warning: packets from hosts behind `wifi` do not pass the router"), "{said}");
        let (home, world) = ((&lab.inside, "10.9.1.2"), (&lab.outside, "10.9.2.2"));
        let guest = (&guest, "10.9.3.2");
        for (ends, first_port) in
            [([home, world], 5000), ([guest, world], 5100), ([home, guest], 5200), ([guest, home], 5300)]
        {
            assert!(
                is_answered(ends, first_port),
                "from {} to {}, translates: {translates}",
                ends[0].1,
                ends[1].1
            );
        }
        lab.assert_shaped_if(translates, &socket_in(folder.path()));
        lab.done(&[&["router", "down"], &place[..]].concat());
        assert_eq!(lab.state(), before);
    }
}

#[test]
fn an_interface_below_the_one_that_routes_is_refused_with_its_name() {
    let Some(lab) = Home::new("v").filter(|_| has_nft()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let refused = |lan: &str, wan: &str| {
        lab.refused(1, &["router", "setup", "--lan", lan, "--wan", wan, "--folder", place])
    };
    let into_a_bridge = |port: &str| {
        let address = if port == "lan" { "10.9.1.1/24" } else { "10.9.2.1/24" };
        lab.host
            .ip_batch(&format!(
                "link add br0 type bridge\nlink set br0 up\naddress del {address} dev {port}\n\
                 link set {port} master br0\naddress add {address} dev br0"
            ))
            .unwrap();
    };
    for (port, option) in [("lan", "--lan"), ("wan", "--wan")] {
        into_a_bridge(port);
        let said = refused("lan", "wan");
        assert!(
            said.contains(&format!(
                "{option} {port}: it is a member of `br0`, by which this host routes: {option} br0"
            )),
            "{said}"
        );
        assert!(!lab.state().contains("cut0"));
        lab.host.ip(&["link", "delete", "br0"]).unwrap();
        lab.host
            .ip(&["address", "add", if port == "lan" { "10.9.1.1/24" } else { "10.9.2.1/24" }, "dev", port])
            .unwrap();
    }
    lab.host
        .ip_batch(
            "link add link wan name wan.7 type macvlan\nlink set wan.7 up\naddress add 10.9.7.1/24 dev wan.7",
        )
        .unwrap();
    lab.done(&["router", "setup", "--lan", "lan", "--wan", "wan", "--folder", place]);
    lab.done(&["router", "undo", "--folder", place]);
    lab.host.ip(&["address", "del", "10.9.2.1/24", "dev", "wan"]).unwrap();
    let said = refused("lan", "wan");
    assert!(
        said.contains("there is one on top of it, `wan.7`, by which this host routes: --wan wan.7"),
        "{said}"
    );
}

/// The units are written, started by systemctl, and removed. A script is in the place of systemctl and runs the units'
/// commands.
#[test]
fn units_bring_a_gateway_up_at_each_start() {
    let Some(lab) = Home::gateway("p") else { return };
    let before = lab.state();
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        r#"set -eu
        mount -t tmpfs none /etc; mount -t tmpfs none /run; mount -t tmpfs none /usr/local
        mkdir -p /run/systemd/system /usr/local/bin
        : > /usr/local/bin/cutline; mount --bind "{cutline}" /usr/local/bin/cutline
        cat > /usr/local/bin/systemctl <<'END'
#!/bin/sh
echo "systemctl $*" >> /run/log
now=no; verb=$1; shift
if [ $verb = enable ]; then while [ -e /run/hold ]; do : > /run/held; sleep 0.1; done; fi
for word; do [ "$word" = --now ] && now=yes; done
[ $now = yes ] || exit 0
for unit; do
    case $unit in --*) continue;; esac
    file=/etc/systemd/system/${{unit%%@*}}@.service; name=${{unit#*@}}; name=${{name%.service}}
    [ -e "$file" ] || {{ echo "no unit $unit" >&2; exit 1; }}
    say() {{ sed -n "s/^$1=-*//p" "$file" | sed "s/%i/$name/g"; }}
    options=$(say EnvironmentFile); [ -z "$options" ] || . "$options"
    if [ "$verb" = enable ]; then
        if [ "$(say Type)" = oneshot ]; then eval "$(say ExecStart)" || exit 1
        else mkdir -p "/run/$(say RuntimeDirectory)"; eval "$(say ExecStart) > /run/router.log 2>&1 &"; echo $! > /run/router.pid; fi
    elif [ "$(say Type)" = oneshot ]; then eval "$(say ExecStop)"
    elif [ -e /run/router.pid ]; then kill "$(cat /run/router.pid)"; rm /run/router.pid; fi
done
END
        chmod 755 /usr/local/bin/systemctl
        PATH=/usr/local/bin:$PATH
        : > /run/hold
        cutline router up --lan lan --wan wan --rate 20Mbit --persist 2> /run/interrupted & up=$!
        while [ ! -e /run/held ]; do sleep 0.1; done
        kill -TERM $up
        until grep -q stopping /run/interrupted; do sleep 0.1; done
        rm /run/hold
        wait $up && exit 1
        cat /run/interrupted
        echo "files after a signal:"; find /etc -type f; rm /run/log
        cutline router up --lan lan --wan wan --rate 20Mbit --reverse-rate 100Mbit --persist
        cutline router up --lan lan --wan wan --rate 20Mbit --persist 2> /run/again && exit 1
        cat /etc/cutline/setup/cut /etc/cutline/router/cut.toml /run/log
        ls /etc/systemd/system
        for attempt in $(seq 600); do cutline router stats /run/cutline/cut/stats.sock > /run/stats 2>&1 && break; sleep 0.1; done
        cat /run/stats
        echo "files that remain:"
        cutline router down
        cutline router down 2> /run/again && exit 1
        find /etc -type f
        echo END
        "#,
        cutline = env!("CARGO_BIN_EXE_cutline")
    );
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    let run = || Command::new("unshare").args(["--mount", "sh"]).arg(&file).output().unwrap();
    let output = lab.host.within(run).unwrap();
    let [said, errors] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{said}\n{errors}");
    for part in [
        "The router starts with the machine. Its file is /etc/cutline/router/cut.toml",
        "OPTIONS=\"--lan lan --wan wan --nat existing --tables 7100,7101\"",
        "socket = \"/run/cutline/cut/stats.sock\"",
        "systemctl enable --now cutline-setup@cut.service\nsystemctl enable --now cutline-router@cut.service",
        "cutline-router@.service\ncutline-setup@.service",
        "tun:cut0 -> tun:cut1 at 20 Mbit/s through sieve",
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}\n{errors}");
    }
    let (interrupted, after) = said.split_once("files after a signal:\n").unwrap();
    assert!(
        interrupted.contains("interrupted") && interrupted.contains("all changes were undone"),
        "{interrupted}"
    );
    assert!(after.starts_with("up: lan to wan"), "a command that is interrupted leaves no file: {after}");
    let (_, left) = said.split_once("files that remain:").unwrap();
    assert!(!left.contains("/etc/"), "down leaves no file: {left}");
    assert_eq!(lab.state(), before);
}

/// The README's commands for a gateway, with other names of interfaces and another folder.
#[test]
fn the_readme_brings_a_gateway_up() {
    let Some(mut lab) = Home::gateway("q") else { return };
    let folder = tempfile::tempdir().unwrap();
    lab.runtime = Some(folder.path().to_owned());
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, part) = readme.split_once("## On a gateway").unwrap();
    let part = part.split("\n## ").next().unwrap();
    let commands: Vec<Vec<&str>> = part
        .lines()
        .filter_map(|line| line.strip_prefix("sudo cutline "))
        .map(|line| line.split('#').next().unwrap().split_whitespace().collect())
        .collect();
    let setups = folder.path().join("setups");
    let before = lab.state();
    let first: Vec<&str> = commands.iter().filter_map(|words| words.get(1).copied()).collect();
    assert_eq!(first, ["up", "stats", "down"], "{part}");
    for words in &commands {
        let mut words: Vec<&str> = words
            .iter()
            .map(|word| match *word {
                "eth0" => "lan",
                "eth1" => "wan",
                word => word,
            })
            .collect();
        if words[1] != "stats" {
            words.extend(["--folder", setups.to_str().unwrap()]);
        }
        lab.done(&words);
        if words[1] == "up" {
            lab.assert_shaped(&socket_in(folder.path()));
        }
    }
    assert_eq!(lab.state(), before);
    // Likely mistakes of a newcomer do no harm, and the message names the right command.
    let bridge = lab.refused(1, &["router", "--in", "lan", "--out", "wan", "--rate", "15Mbit"]);
    assert!(bridge.contains("cutline router up --lan lan --wan wan"), "{bridge}");
}
