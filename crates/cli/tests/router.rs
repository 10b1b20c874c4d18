//! The router at work: the forwarded packets, their rate and order, and its leftovers.
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router::`.

use crate::common::{
    Lab, Router, assert_a_backlog_crosses, assert_sums, may_make_namespaces, packets, receive, send,
};
use cutline_ports::PacketPort;
use cutline_router::Port;
use cutline_sys::namespace::{Namespace, sweep};
use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use serde_json::Value;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn frames_cross_and_a_killed_router_leaves_nothing() {
    let Some(mut lab) = Lab::new("x", &["--rate", "100Mbit", "--tsq"]) else { return };
    assert!(lab.is_crossed(false, 5001), "IPv4");
    assert!(lab.is_crossed(true, 5002), "IPv6");
    vlan_tags_cross(&lab);
    lab.middle.ip(&["link", "set", "p1", "down"]).unwrap();
    // The time for which the interface is down.
    sleep(Duration::from_millis(100));
    lab.middle.ip(&["link", "set", "p1", "up"]).unwrap();
    assert!(lab.is_crossed(false, 5003), "after an interface was down");
    let (code, end) = lab.router.end();
    assert_eq!((code, &end["event"]), (Some(0), &Value::from("end")));
    assert_sums(&end, "forward");
    assert_sums(&end, "reverse");
    assert!(packets(&end, "/forward/not_ip/packets") > 0, "ARP passes as well: {end}");

    lab.router = Router::start(&lab.middle, &["--rate", "100Mbit"]);
    lab.router.kill();
    assert!(lab.is_apart(false, 5004), "nothing but the router joins the hosts");
    lab.router = Router::start(&lab.middle, &["--rate", "100Mbit"]);
    assert!(lab.is_crossed(false, 5005), "a router after the killed one");
}

/// The very bytes, tag included, both ways.
fn vlan_tags_cross(lab: &Lab) {
    let open = |host: &Namespace, name: &str| host.within(|| PacketPort::open(name).unwrap()).unwrap();
    let (mut a, mut b) = (open(&lab.a, "a0"), open(&lab.b, "b0"));
    let tagged = [&[2; 12][..], &[0x81, 0x00, 0x20, 0x64, 0x88, 0xb5], &[7; 60]].concat();
    a.send(&mut [&tagged[..]].into_iter(), &mut |sent| assert!(sent)).unwrap();
    let mut found = false;
    for _ in 0..6000 {
        b.receive(now(), &mut |_, frame| found |= frame == tagged).unwrap();
        if found {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the tagged frame has not come");
}

#[test]
fn packets_queued_at_a_stopped_router_cross_once_and_in_order() {
    let Some(mut lab) = Lab::new("w", &["--rate", "1Gbit", "--aqm", "drop-tail"]) else { return };
    assert!(lab.is_crossed(false, 5001), "the hosts know each other");
    assert_a_backlog_crosses(lab.sockets(false, 5002), &mut lab.router);
    let (_, end) = lab.router.end();
    assert_sums(&end, "forward");
}

/// 12 Mbit/s of unmarked packets and 100 hinted ones a second come to a link of 8 Mbit/s, whose queue holds them all: a
/// full queue would drop newcomers whatever their hint.
#[test]
fn the_rate_is_kept_and_hinted_packets_wait_less() {
    undisturbed(|| {
        const RATE: f64 = 8e6;
        let options =
            ["--rate", "8Mbit", "--overhead", "ip", "--aqm", "drop-tail", "--limit", "3 MB", "--tsq"];
        let Some(mut lab) = Lab::new("r", &options) else { return };
        assert!(lab.is_crossed(false, 5001), "the hosts know each other");
        let [unmarked, unmarked_sink] = lab.sockets(false, 5002);
        let [hinted, hinted_sink] = lab.sockets(false, 5003);
        // hint-1: 000011, and no ECN.
        rustix::net::sockopt::set_ip_tos(&hinted, 0b0000_1100).unwrap();
        let sinks = [receive(unmarked_sink), receive(hinted_sink)];
        let long = Duration::from_millis(1500);
        let sources = [
            send(unmarked, 972, Duration::from_micros(667), long),
            send(hinted, 172, Duration::from_millis(10), long),
        ];
        for source in sources {
            source.join().unwrap();
        }
        let [mut unmarked, mut hinted] = sinks.map(|sink| sink.join().unwrap());
        let (_, end) = lab.router.end();
        assert_sums(&end, "forward");

        // What the schedule has slipped by, on a machine that did not let the router run, is no time of the link's.
        let slipped = end["forward"]["slipped_ms"].as_f64().unwrap() * 1e-3;
        let seconds = (unmarked.last - unmarked.first).as_secs_f64() - slipped;
        let ratio = (unmarked.bytes + hinted.bytes) as f64 * 8.0 / seconds / RATE;
        // Two packets more than the interval holds, at most.
        in_time!((0.85..1.02).contains(&ratio), "{ratio} of the rate; {end}");
        let (slow, fast) = (unmarked.median_delay_ms(), hinted.median_delay_ms());
        in_time!(hinted.delays_ms.len() > 50, "most hinted packets come: {}", hinted.delays_ms.len());
        in_time!(fast < slow / 2.0, "hinted {fast} ms, unmarked {slow} ms");
    });
}

#[test]
fn namespaces_of_a_killed_process_are_removed() {
    if !may_make_namespaces() {
        return;
    }
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let name = format!("cutline-{}-left", gone.id());
    assert!(Command::new("ip").args(["netns", "add", &name]).status().unwrap().success());
    // Another test that starts at the same time may have been first.
    sweep().unwrap();
    assert!(!std::path::Path::new("/run/netns").join(&name).exists());
}

#[test]
fn invalid_options_are_refused_before_any_change() {
    let refused = |options: &[&str], what: &str| {
        let arguments = [&["router", "--in", "lo", "--rate", "8Mbit"], options].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(what), "{message}");
    };
    refused(&["--out", "lo"], "both `lo`");
    refused(&["--out", "nosuch0", "--aqm", "fq-codl"], "did you mean fq-codel?");
    refused(&["--out", "nosuch0", "--overhead", "atm"], "pppoe-atm");
    refused(&["--out", "nosuch0", "--hint", "EF=17"], "a delay hint is from 1 to 16");
}
