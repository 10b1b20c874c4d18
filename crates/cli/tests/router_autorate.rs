//! Rates that follow the link: a router before a link that becomes slower, and faster again, while more is sent than it carries.
//!
//! Needs root; without it the test says so and passes: `sudo -E cargo test -p cutline-cli router_autorate::`.

use crate::common::{Hosts, Router, packets, send};
use cutline_sys::namespace::Namespace;
use cutline_sys::now;
use cutline_sys::ping::Echo;
use cutline_testbed::{in_time, undisturbed};
use cutline_units::Duration;
use serde_json::Value;
use std::net::UdpSocket;
use std::process::Command;
use std::thread::sleep;

/// a0 10.9.0.1 == router == 10.9.0.2 b0, and behind b the link h0 10.9.1.1 == 10.9.1.2 f0, whose rate the kernel's token bucket sets. The
/// router's namespace reaches the link without the router: c0 10.9.2.1 == 10.9.2.2 c1 of b.
struct Path {
    hosts: Hosts,
    far: Namespace,
}

impl Path {
    /// `None` where this machine does not let us.
    fn new(label: &str) -> Option<Self> {
        let hosts = Hosts::new(label)?;
        let far = Namespace::create(&format!("{label}f")).unwrap();
        let path = Self { hosts, far };
        let Hosts { a, b, middle } = &path.hosts;
        join((b, "h0", "10.9.1.1/24"), (&path.far, "f0", "10.9.1.2/24"));
        join((middle, "c0", "10.9.2.1/24"), (b, "c1", "10.9.2.2/24"));
        a.ip(&["route", "add", "10.9.1.0/24", "via", "10.9.0.2"]).unwrap();
        middle.ip(&["route", "add", "10.9.1.0/24", "via", "10.9.2.2"]).unwrap();
        path.far.ip(&["route", "add", "default", "via", "10.9.1.1"]).unwrap();
        b.set("net.ipv4.ip_forward", "1").unwrap();
        Some(path)
    }

    /// The link holds two seconds of packets, as modems do.
    fn set_link(&self, change: &str, rate: &str) {
        let options =
            ["qdisc", change, "dev", "h0", "root", "tbf", "rate", rate, "burst", "16kb", "latency", "2s"];
        let status = Command::new("tc").args(["-n", self.hosts.b.name()]).args(options).status();
        assert!(status.unwrap().success());
    }

    /// The median round-trip time over the link, ms.
    fn round_trip_ms(&self) -> f64 {
        let mut times = Vec::new();
        let mut echo = self.hosts.middle.within(|| Echo::open("10.9.1.2".parse().unwrap()).unwrap()).unwrap();
        for _ in 0..40 {
            echo.request();
            echo.wait(now() + Duration::from_millis(100), &mut |time| times.push(time.as_millis_f64()))
                .unwrap();
        }
        echo.wait(now() + Duration::from_secs(3), &mut |time| times.push(time.as_millis_f64())).unwrap();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }
}

fn join(
    (one, end, address): (&Namespace, &str, &str),
    (other, other_end, other_address): (&Namespace, &str, &str),
) {
    one.ip(&["link", "add", end, "type", "veth", "peer", "name", other_end, "netns", other.name()]).unwrap();
    for (host, end, address) in [(one, end, address), (other, other_end, other_address)] {
        host.ip(&["address", "add", address, "dev", end]).unwrap();
        host.ip(&["link", "set", end, "up"]).unwrap();
    }
}

#[test]
fn the_rate_follows_the_link_down_and_up() {
    undisturbed(|| {
        let Some(path) = Path::new("auto") else { return };
        path.set_link("add", "10mbit");
        let options =
            ["--rate", "8Mbit", "--overhead", "none", "--aqm", "pie", "--autorate", "1Mbit..20Mbit"];
        let options = [&options[..], &["--reflector", "10.9.1.2"]].concat();
        let mut router = Router::start(&path.hosts.middle, &options);
        let socket = path.hosts.a.within(|| UdpSocket::bind("10.9.0.1:9009").unwrap()).unwrap();
        socket.connect("10.9.1.2:9009").unwrap();
        // 12 Mbit/s for as long as the test takes.
        let source =
            send(socket, 972, std::time::Duration::from_micros(667), std::time::Duration::from_secs(30));
        // The rate settles; its course is what the test is about.
        sleep(std::time::Duration::from_secs(3));
        path.set_link("change", "3mbit");
        // The rate falls to that of the link.
        sleep(std::time::Duration::from_secs(8));
        let delay = path.round_trip_ms();
        path.set_link("change", "10mbit");
        // The rate rises again.
        sleep(std::time::Duration::from_secs(9));
        let (code, end) = router.end();
        source.join().unwrap();
        assert_eq!(code, Some(0), "{end}");
        let counted = |name: &str| packets(&end, &format!("/autorate/{name}"));
        assert!(
            counted("decreases") > 0 && counted("increases") > 0 && counted("delayed_replies") > 0,
            "{end}"
        );
        in_time!(delay < 60.0, "{delay} ms where a queue of 2 s would stand; {end}");
        let rate = packets(&end, "/forward/rate_bps");
        in_time!((5_000_000..=13_000_000).contains(&rate), "{rate} bit/s; {end}");
        assert_eq!(
            packets(&end, "/reverse/rate_bps"),
            8_000_000,
            "the reverse direction has a constant rate"
        );
    });
}

impl Path {
    /// Offers 12 Mbit/s for this long.
    fn load(&self, seconds: u64) -> std::thread::JoinHandle<()> {
        let socket = self.hosts.a.within(|| UdpSocket::bind("10.9.0.1:9009").unwrap()).unwrap();
        socket.connect("10.9.1.2:9009").unwrap();
        send(socket, 972, std::time::Duration::from_micros(667), std::time::Duration::from_secs(seconds))
    }
}

/// The statistics of a router at this socket.
fn statistics(socket: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_cutline"))
        .args(["router", "stats", socket, "--json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A reflector of the link alone, whose address needs the interface.
#[test]
fn the_replies_of_a_link_local_reflector_are_counted() {
    let Some(path) = Path::new("zone") else { return };
    for (host, address, end) in
        [(&path.hosts.middle, "fe80::8/64", "c0"), (&path.hosts.b, "fe80::9/64", "c1")]
    {
        host.ip(&["address", "add", address, "dev", end, "nodad"]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("r.sock");
    let socket = socket.to_str().unwrap();
    let options = ["--rate", "4Mbit", "--autorate", "1Mbit..50Mbit", "--reflector", "fe80::9%c0"];
    let mut router = Router::start(&path.hosts.middle, &[&options[..], &["--socket", socket]].concat());
    while packets(&statistics(socket), "/autorate/replying") == 0 {
        // Polls.
        sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(router.end().0, Some(0));
}

/// No evidence, no rise: neither before the first reply nor after the last one, however much is sent.
#[test]
fn without_replies_the_rate_does_not_rise_and_a_warning_is_printed() {
    let Some(path) = Path::new("mute") else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("r.sock");
    let socket = socket.to_str().unwrap();
    let ignore = |value: &str| path.far.set("net.ipv4.icmp_echo_ignore_all", value).unwrap();
    ignore("1");
    let options =
        ["--rate", "4Mbit", "--overhead", "none", "--autorate", "1Mbit..50Mbit", "--socket", socket];
    let mut router =
        Router::start(&path.hosts.middle, &[&options[..], &["--reflector", "10.9.1.2"]].concat());
    let source = path.load(45);
    let rate = |statistics: &Value| packets(statistics, "/forward/rate_bps");
    let said = router.error_line();
    assert!(said.starts_with("autorate: no reflector has replied so far"), "{said}");
    let silent = statistics(socket);
    assert_eq!((rate(&silent), packets(&silent, "/autorate/replying")), (4_000_000, 0), "{silent}");

    // The rate rises with replies. Then they end.
    ignore("0");
    let said = router.error_line();
    assert!(said.starts_with("autorate: a reflector replies again"), "{said}");
    while rate(&statistics(socket)) < 6_000_000 {
        // Polls.
        sleep(std::time::Duration::from_millis(100));
    }
    ignore("1");
    while packets(&statistics(socket), "/autorate/replying") > 0 {
        // Polls.
        sleep(std::time::Duration::from_millis(100));
    }
    let increases = packets(&statistics(socket), "/autorate/increases");
    // Nothing may happen in this time.
    sleep(std::time::Duration::from_secs(5));
    let (code, end) = router.end();
    assert_eq!(code, Some(0));
    // One more may have been counted with the replies of the last moment.
    assert!(packets(&end, "/autorate/increases") <= increases + 1, "{end}");
    assert!(rate(&end) < 50_000_000, "{end}");
    source.join().unwrap();
}
