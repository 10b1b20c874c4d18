//! Leaves of one link below `mq`: one rate for all, all of it for a leaf that has packets alone, and one order.
//!
//! Clocks are counters, so that the results do not depend on the speed of the machine. Timers of a leaf are late by up to the time in the command.

use crate::LEAVES;
use std::fmt::Write as _;

/// A queue of the kernel as the program knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tsq = 0,
    Sieve = 1,
}

const KINDS: [Kind; 2] = [Kind::Tsq, Kind::Sieve];
/// Time by which a packet may be overtaken by packets of other leaves without a wait, ns: `CL_SLACK`.
const SLACK: i128 = 200_000;

/// Flows in a leaf, each with a window of packets of 1000 B.
struct Flows {
    leaf: u32,
    count: u32,
    level: u32,
    window: u32,
    /// Time between a departure and the next packet, ns; 0 for a packet at once.
    pause: u64,
}

/// Flows with the largest hint that always have packets.
const fn bulk(leaf: u32, count: u32) -> Flows {
    Flows { leaf, count, level: 16, window: 8, pause: 0 }
}

/// A run of flows.
struct Run {
    kind: Kind,
    bps: u64,
    ms: u64,
    /// The largest lateness of a timer, ns.
    late: u64,
    /// A leaf that does not ask from a time on, ns, to the middle of the rest.
    stalled: Option<(u32, u64)>,
}

/// Departures of a group of flows.
#[derive(Clone, Copy, Debug)]
struct Sent {
    bytes: i128,
    mean_wait: i128,
}

#[derive(Debug)]
struct Outcome {
    sent: Vec<Sent>,
    idle: i128,
    overtaken: i128,
    /// Error of the bytes elsewhere, as a part of the backlog.
    error: f64,
}

impl Outcome {
    fn bytes(&self) -> i128 {
        self.sent.iter().map(|sent| sent.bytes).sum()
    }

    /// Returns the part of all bytes that a group has sent.
    fn part(&self, group: usize) -> f64 {
        self.sent[group].bytes as f64 / self.bytes() as f64
    }
}

fn answers(test: &str, commands: &str) -> Vec<Vec<i128>> {
    crate::answers(&LEAVES, test, commands)
}

fn run(test: &str, run: &Run, flows: &[Flows]) -> Outcome {
    let mut commands = "set sieve.newcomer_age 0\n".to_owned();
    for Flows { leaf, count, level, window, pause } in flows {
        writeln!(commands, "group {leaf} {count} {level} {window} {pause}").unwrap();
    }
    let (stalled, from) = run.stalled.map_or((-1, 0), |(leaf, from)| (i64::from(leaf), from));
    let Run { kind, bps, ms, late, .. } = run;
    writeln!(commands, "run {} {bps} {ms} {late} {stalled} {from}", *kind as u32).unwrap();
    let answer = answers(test, &commands).concat();
    let (groups, rest) = answer.split_at(3 * flows.len());
    let sent = groups.chunks(3).map(|group| Sent { bytes: group[0], mean_wait: group[1] }).collect();
    let [idle, overtaken, errors, backlog] = rest else { panic!("{answer:?}") };
    let outcome = Outcome {
        sent,
        idle: *idle,
        overtaken: *overtaken,
        error: *errors as f64 / (*backlog).max(1) as f64,
    };
    println!("{test}: {outcome:?}");
    outcome
}

/// Bytes that a link sends in a time.
fn bytes(bps: u64, ms: u64) -> f64 {
    bps as f64 / 8e3 * ms as f64
}

/// Four threads with a clock that they move on together.
#[test]
fn no_time_is_granted_twice_or_lost() {
    let [overlaps, taken, passed] = answers("leaves-claims", "claims 4 20000 800\n").concat()[..] else {
        panic!("three numbers")
    };
    assert_eq!(overlaps, 0);
    assert!(taken <= passed && taken as f64 > 0.999 * passed as f64, "{taken} of {passed} ns");
}

/// More than the rate may be sent by 10 ms of it, by which a late schedule catches up, and by one packet.
#[test]
fn leaves_that_run_at_the_same_time_send_at_the_rate() {
    for kind in KINDS {
        let commands = format!("threads {} 4 1000000000 100\n", kind as u32);
        let found = answers(&format!("leaves-threads-{kind:?}"), &commands).concat();
        let [sent, time, packets, left, calls, missed] = found[..] else { panic!("{found:?}") };
        println!("{kind:?}: {missed} of {calls} calls worked on a copy");
        let most = time as f64 / 8.0;
        assert!(sent as f64 <= most + 1_250_000.0 + 1000.0, "{kind:?}: {sent} B in {time} ns");
        assert!(sent as f64 >= 0.99 * most, "{kind:?}: {sent} B in {time} ns");
        assert_eq!((packets, left), (0, 0), "{kind:?}: the backlog is that of no packet");
    }
}

#[test]
fn a_leaf_that_is_alone_has_the_whole_rate() {
    for kind in KINDS {
        let settings = Run { kind, bps: 100_000_000, ms: 1000, late: 50_000, stalled: None };
        // The other leaf has had packets.
        let once = Flows { leaf: 1, count: 1, level: 16, window: 1, pause: 10_000_000_000 };
        let found = run(&format!("leaves-alone-{kind:?}"), &settings, &[bulk(0, 2), once]);
        assert!(found.bytes() as f64 >= 0.999 * bytes(settings.bps, settings.ms), "{kind:?}: {found:?}");
        assert!(found.idle < 1_000_000, "{kind:?}: {found:?}");
    }
}

/// Sieve's flows have one share in whichever leaf they are, from 10 Mbit/s to 10 Gbit/s. No flow counts as new, as all would in the shorter runs.
#[test]
fn flows_of_all_leaves_have_the_same_share() {
    for (bps, ms) in [(10_000_000, 4000), (100_000_000, 2000), (1_000_000_000, 1000), (10_000_000_000, 200)] {
        let settings = Run { kind: Kind::Sieve, bps, ms, late: 100_000, stalled: None };
        let found = run(&format!("leaves-shares-{bps}"), &settings, &[bulk(0, 1), bulk(1, 3)]);
        assert!((found.part(0) - 0.25).abs() < 0.01, "{bps}: {found:?}");
        assert!(found.bytes() as f64 >= 0.99 * bytes(bps, ms), "{bps}: {found:?}");
    }
}

#[test]
fn two_leaves_with_the_same_traffic_have_half_of_the_rate_each() {
    for kind in KINDS {
        let settings = Run { kind, bps: 100_000_000, ms: 1000, late: 100_000, stalled: None };
        let found = run(&format!("leaves-halves-{kind:?}"), &settings, &[bulk(0, 4), bulk(1, 4)]);
        assert!((found.part(0) - 0.5).abs() < 0.005, "{kind:?}: {found:?}");
    }
}

/// The least head is the next one, but for the slack. Timers are late by less than the time for which a leaf waits.
#[test]
fn the_least_weight_of_all_leaves_is_the_next() {
    let settings = Run { kind: Kind::Tsq, bps: 20_000_000, ms: 4000, late: 50_000, stalled: None };
    let mixed = [(0, 4, 7), (0, 16, 8), (1, 6, 9), (1, 10, 5), (2, 2, 2), (2, 16, 3)];
    let flows = mixed.map(|(leaf, level, pause)| Flows {
        leaf,
        count: 4,
        level,
        window: 10,
        pause: pause * 1_000_000,
    });
    let found = run("leaves-order", &settings, &flows);
    assert!(found.overtaken <= SLACK, "{found:?}");
    // q' of the bytes in other leaves is an estimate: 5 % of the backlog on the mean.
    assert!(found.error < 0.05, "{found:?}");
    let waits = [4, 0, 2, 3].map(|group: usize| found.sent[group].mean_wait);
    assert!(waits.is_sorted(), "hints 2, 4, 6 and 10, of three leaves: {found:?}");
}

/// A call waits as long beside traffic of another leaf as beside that of its own, give or take a packet.
#[test]
fn a_call_has_its_place_among_the_packets_of_other_leaves() {
    const PACKET: i128 = 800_000;
    for (kind, window) in [(Kind::Tsq, 100), (Kind::Sieve, 10)] {
        let settings = Run { kind, bps: 10_000_000, ms: 4000, late: 50_000, stalled: None };
        let [own, other] = [0, 1].map(|leaf| {
            let call = Flows { leaf: 0, count: 1, level: 1, window: 1, pause: 20_000_000 };
            let bulk = Flows { window, ..bulk(leaf, 10) };
            let found = run(&format!("leaves-call-{kind:?}-{leaf}"), &settings, &[call, bulk]);
            found.sent[0].mean_wait
        });
        assert!((own - other).abs() <= PACKET, "{kind:?}: {own} and {other} ns");
    }
}

/// A hardware queue that has stopped has the least head for three quarters of a second.
#[test]
fn a_leaf_that_has_stopped_does_not_stop_the_link() {
    for kind in KINDS {
        let stalled = Some((0, 500_000_000));
        let settings = Run { kind, bps: 100_000_000, ms: 2000, late: 50_000, stalled };
        let flows = [0, 1].map(|leaf| Flows { window: 50, ..bulk(leaf, 2) });
        let found = run(&format!("leaves-stopped-{kind:?}"), &settings, &flows);
        assert!(found.bytes() as f64 >= 0.999 * bytes(settings.bps, settings.ms), "{kind:?}: {found:?}");
        assert!(found.idle < 1_000_000, "{kind:?}: {found:?}");
    }
}

/// A flow that always has as many packets as the limit of all leaves comes first. Each flow has half of the link all the same, and packets beyond the
/// limit are dropped: windows do not grow again.
#[test]
fn a_flood_in_one_leaf_leaves_room_in_the_others() {
    let commands = "limit 100\nset sieve.newcomer_age 0\ngroup 1 1 16 300 0\ngroup 0 1 16 4 0\nrun 1 10000000 4000 50000 -1 0\n";
    let found = answers("leaves-limit", commands).concat();
    let (flood, other) = (found[0], found[3]);
    assert!((flood as f64 / (flood + other) as f64 - 0.5).abs() < 0.02, "{flood} and {other} B");
    // 100 packets at 5 Mbit/s, 1.6 ms each.
    assert!(found[1] < 170_000_000, "the flood waits for {} ns on the mean", found[1]);
}

/// Each leaf takes a new rate over with its own next packet. The first one changes the shared state, and the others find it changed.
#[test]
fn a_new_rate_is_taken_over_once() {
    for kind in KINDS {
        let commands = format!("change {} 100000000 40000000 3\n", kind as u32);
        let found = answers(&format!("leaves-change-{kind:?}"), &commands).concat();
        assert_eq!(found, [40_000_000; 2], "{kind:?}");
    }
}

/// 2 s at 100 Mbit/s and 2 s at the other rate, from the next packet of each leaf on.
#[test]
fn a_new_rate_is_that_of_all_leaves_and_leaves_shares_as_they_are() {
    for (kind, rate) in [(Kind::Sieve, 40_000_000), (Kind::Sieve, 400_000_000), (Kind::Tsq, 40_000_000)] {
        let flows = "group 0 1 16 8 0\ngroup 1 3 16 8 0\n";
        let run = format!("run {} 100000000 4000 50000 -1 0\n", kind as u32);
        let commands = format!("set sieve.newcomer_age 0\nhalf {rate}\n{flows}{run}");
        let found = answers(&format!("leaves-half-{kind:?}-{rate}"), &commands).concat();
        let (one, three) = (found[0] as f64, found[3] as f64);
        let wanted = bytes(100_000_000, 2000) + bytes(rate, 2000);
        assert!(((one + three) / wanted - 1.0).abs() < 0.001, "{kind:?}: {found:?}");
        assert!((one / (one + three) - 0.25).abs() < 0.01, "{kind:?}: {found:?}");
    }
}
