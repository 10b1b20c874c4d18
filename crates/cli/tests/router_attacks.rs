//! The router forwards, whatever else fails: its output, its file, its socket, its memory, its descriptors.
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router_attacks::`.

use crate::common::home::Home;
use crate::common::{Hosts, Lab, Router, assert_sums, packets};
use cutline_ports::PacketPort;
use cutline_router::Port;
use cutline_sys::ethtool::{self, Command as Switch};
use cutline_sys::namespace::Namespace;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const QUEUE: &str = "{ aqm = \"fq-codel\", limit = \"1000 packets\" }";

/// The command that starts a router, with these arguments, perhaps by another program.
fn command(by: &[&str], home: &Home, arguments: &[&str]) -> Command {
    let words = [by, &[env!("CARGO_BIN_EXE_cutline"), "router"], arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("RUNTIME_DIRECTORY", home.folder());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

const OPTIONS: [&str; 6] = ["--in", "p0", "--out", "p1", "--rate", "100Mbit"];

/// A router between the hosts that this command starts.
fn lab(hosts: Hosts, command: &mut Command) -> Lab {
    let router = Router::launch(&hosts.middle, command);
    let lab = hosts.with(router);
    assert!(lab.is_crossed(false, 5001), "it works at first");
    lab
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn port(host: &Namespace, name: &str) -> PacketPort {
    host.within(|| PacketPort::open(name).unwrap()).unwrap()
}

/// Sends a frame of this length `times` times, as fast as the interface accepts it.
fn flood(port: &mut PacketPort, length: usize, times: usize) {
    let mut frame = vec![7; length];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    flood_with(port, &frame, times);
}

fn flood_with(port: &mut PacketPort, frame: &[u8], times: usize) {
    let mut settled = 0;
    while settled < times {
        let mut rest = (settled..times).map(|_| frame);
        port.send(&mut rest, &mut |_| settled += 1).unwrap();
    }
}

#[test]
fn an_unread_pipe_does_not_block_forwarding() {
    let Some(hosts) = Hosts::new("ao") else { return };
    let home = Home::new(QUEUE);
    let socket = home.text("s.sock");
    let options = [&OPTIONS[..], &["--json", "--stats", "10ms", "--socket", &socket]].concat();
    let mut lab = lab(hosts, command(&[], &home, &options).stdout(Stdio::piped()));
    let begin = Instant::now();
    while packets(&home.ask("stats"), "/dropped_output") == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "a pipe holds 64 KiB");
        sleep(Duration::from_millis(50));
    }
    assert!(lab.is_crossed(false, 5002), "with a full pipe");
    let told = command(&[], &home, &["stats", &socket]).stdout(Stdio::piped()).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains(" documents and messages were dropped: they were not read"), "{told}");
    assert_eq!(lab.router.terminate(), Some(0));
}

#[test]
fn a_full_disk_behind_stdout_does_not_block_forwarding() {
    let Some(hosts) = Hosts::new("ad") else { return };
    let home = Home::new(QUEUE);
    let options = [&OPTIONS[..], &["--json", "--stats", "10ms"]].concat();
    let mut lab = lab(hosts, command(&[], &home, &options).stdout(full()).stderr(Stdio::piped()));
    // Some intervals of statistics, which cannot be written.
    sleep(Duration::from_millis(300));
    assert!(lab.is_crossed(false, 5002), "with a full disk");
    assert_eq!(lab.router.terminate(), Some(1), "its results are lost");
    let messages = lab.router.messages();
    assert!(messages.contains("cannot write to stdout: No space left on device"), "{messages}");
}

/// Messages about reloads, on a full disk and into a pipe that is full already.
#[test]
fn unwritable_messages_do_not_block_forwarding() {
    let Some(mut hosts) = Hosts::new("ae") else { return };
    let home = Home::new(QUEUE);
    let file = home.text("r.toml");
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    for stderr in [Stdio::from(full()), Stdio::from(writer)] {
        home.describe("20 Mbit/s", QUEUE);
        let mut lab = lab(hosts, command(&[], &home, &["--config", &file]).stderr(stderr));
        for (before, rate) in ["20 Mbit/s", "20 Mbot/s", "30 Mbit/s"].into_iter().enumerate() {
            home.describe(rate, QUEUE);
            lab.router.signal(Signal::HUP);
            let reloads =
                |status: &Value| packets(status, "/reload/done") + packets(status, "/reload/refused");
            while reloads(&home.ask("reload status")) as usize == before {
                sleep(Duration::from_millis(20));
            }
            assert!(lab.is_crossed(false, 5002), "after a message about {rate}");
        }
        let status = home.ask("reload status");
        assert_eq!((packets(&status, "/reload/done"), packets(&status, "/reload/refused")), (2, 1));
        assert_eq!(lab.router.terminate(), Some(0));
        hosts = lab.without_router();
    }
    drop(reader);
}

/// As many descriptors as it has, and clients that take all that they get.
#[test]
fn clients_leave_the_descriptors_for_forwarding() {
    let Some(hosts) = Hosts::new("af") else { return };
    let home = Home::new(QUEUE);
    home.describe("50 Mbit/s", QUEUE);
    let file = home.text("r.toml");
    let by = ["prlimit", "--nofile=26"];
    let mut lab = lab(hosts, command(&by, &home, &["--config", &file]).stderr(Stdio::piped()));
    assert!(lab.router.error_line().starts_with("routing "));
    let mut idle: Vec<_> = (0..20).map(|_| home.client("")).collect();
    // Longer than the patience of the socket with a silent client.
    sleep(Duration::from_millis(1500));
    assert!(lab.router.is_running(), "{}", lab.router.messages());
    assert!(lab.is_crossed(false, 5002), "with all clients");
    let (mut refusals, begin) = (Vec::new(), Instant::now());
    while refusals.len() < 12 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{refusals:?}");
        idle.retain_mut(|client| {
            client.get_ref().set_nonblocking(true).unwrap();
            let mut line = String::new();
            let is_read = client.read_line(&mut line).is_ok();
            refusals.extend(is_read.then_some(line));
            !is_read
        });
        // Polls.
        sleep(Duration::from_millis(50));
    }
    drop(idle);
    for refusal in refusals {
        assert!(refusal.contains("\"event\":\"error\"") && refusal.contains("try again later"), "{refusal}");
    }
    home.describe("40 Mbit/s", QUEUE);
    lab.router.signal(Signal::HUP);
    let line = lab.router.error_line();
    assert!(line.starts_with("reloaded: "), "{line}");
    assert!(packets(&home.ask("stats"), "/refused_clients") >= 12);
    assert_eq!(lab.router.terminate(), Some(0));
}

#[test]
fn a_locked_folder_keeps_no_router_from_starting() {
    let Some(hosts) = Hosts::new("al") else { return };
    let home = Home::new(QUEUE);
    let socket = home.text("s.sock");
    let folder = File::open(home.folder()).unwrap();
    flock(&folder, FlockOperation::LockExclusive).unwrap();
    let options = [&OPTIONS[..], &["--socket", &socket]].concat();
    let mut lab = lab(hosts, &mut command(&[], &home, &options));
    assert_eq!(home.ask("stats")["event"], "stats");
    let lock = std::fs::metadata(home.path("s.sock.lock")).unwrap();
    assert_eq!(lock.permissions().mode() & 0o777, 0o600, "nobody else may open it");
    lab.middle.ip(&["link", "add", "q0", "type", "veth", "peer", "name", "q1"]).unwrap();
    let options = ["--in", "q0", "--out", "q1", "--rate", "1Mbit", "--socket", &socket];
    let second = lab.middle.within(|| command(&[], &home, &options).stderr(Stdio::piped()).output());
    let message = String::from_utf8(second.unwrap().unwrap().stderr).unwrap();
    assert!(message.contains("s.sock` cannot be opened: another process serves it"), "{message}");
    assert_eq!(lab.router.terminate(), Some(0));
    assert!(!home.path("s.sock.lock").exists());
}

#[test]
fn a_file_that_is_none_spoils_no_later_reload() {
    let Some(hosts) = Hosts::new("ar") else { return };
    let home = Home::new(QUEUE);
    home.describe("20 Mbit/s", QUEUE);
    let file = home.text("r.toml");
    let mut lab = lab(hosts, command(&[], &home, &["--config", &file]).stderr(Stdio::piped()));
    assert!(lab.router.error_line().starts_with("routing "));
    let replace = |how: &str| {
        std::fs::remove_file(&file).unwrap();
        match how {
            "a pipe" => assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()),
            "a device" => symlink("/dev/zero", &file).unwrap(),
            "a folder" => symlink("/tmp", &file).unwrap(),
            _ => std::fs::write(&file, vec![b'#'; 3 << 20]).unwrap(),
        }
    };
    for (how, rate) in [("a pipe", 21), ("a device", 22), ("a folder", 23), ("longer than 1048576 B", 24)] {
        replace(how);
        lab.router.signal(Signal::HUP);
        assert_eq!(lab.router.error_line(), "reload failed; keeping the previous configuration:\n");
        let line = lab.router.error_line();
        assert!(line.contains("r.toml: cannot be read: it is ") && line.contains(how), "{line}");
        home.describe(&format!("{rate} Mbit/s"), QUEUE);
        lab.router.signal(Signal::HUP);
        let line = lab.router.error_line();
        assert!(line.starts_with(&format!("reloaded: routing p0 -> p1 at {rate} Mbit/s")), "{line}");
    }
    assert!(lab.is_crossed(false, 5002));
    assert_eq!(lab.router.terminate(), Some(0));
}

/// Under load, many queues are exchanged and many rates are tried.
#[test]
fn strange_reloads_leave_the_queue_bounded_and_the_link_at_work() {
    let Some(hosts) = Hosts::new("aq") else { return };
    let home = Home::new(QUEUE);
    home.describe("1 Mbit/s", QUEUE);
    let file = home.text("r.toml");
    let mut lab = lab(hosts, command(&[], &home, &["--config", &file]).stderr(Stdio::piped()));
    assert!(lab.router.error_line().starts_with("routing "));
    let mut a = port(&lab.a, "a0");
    let reload = |lab: &mut Lab, rate: &str, queue: &str| {
        home.describe(rate, queue);
        lab.router.signal(Signal::HUP);
        lab.router.error_line()
    };
    for number in 0..24 {
        let queue = format!("{{ aqm = \"drop-tail\", limit = \"{} packets\" }}", 1000 + number % 2);
        assert!(reload(&mut lab, "1 Mbit/s", &queue).starts_with("reloaded: "));
        flood(&mut a, 1000, 3000);
    }
    let queued = packets(&home.ask("stats"), "/forward/queued_packets");
    // Those of the queue, and those that have begun to leave.
    assert!(queued < 1100, "{queued}");
    for rate in ["1 bit/s", "999 bit/s", "10001 Gbit/s", "18446744073 Gbit/s"] {
        let refused = reload(&mut lab, rate, QUEUE);
        assert!(refused.starts_with("reload failed"), "{rate}: {refused}");
        let why = lab.router.error_line();
        assert!(why.contains("from 1 kbit/s to 10000 Gbit/s"), "{why}");
        (0..3).for_each(|_| drop(lab.router.error_line()));
    }
    assert!(reload(&mut lab, "1 kbit/s", QUEUE).starts_with("reloaded: "));
    flood(&mut a, 1500, 10);
    // The flood waits in a queue of 1 kbit/s meanwhile.
    sleep(Duration::from_millis(200));
    assert!(reload(&mut lab, "100 Mbit/s", QUEUE).starts_with("reloaded: "));
    assert!(lab.is_crossed(false, 5002), "at once");
    assert_eq!(lab.router.terminate(), Some(0));
}

/// The shortest frames with room for the longest, and with less memory than the limit requests.
#[test]
fn memory_is_bounded_by_the_need_of_frames() {
    let Some(hosts) = Hosts::new("am") else { return };
    for (host, name) in [(&hosts.a, "a0"), (&hosts.middle, "p0"), (&hosts.middle, "p1"), (&hosts.b, "b0")] {
        host.ip(&["link", "set", name, "mtu", "9000"]).unwrap();
    }
    let home = Home::new(QUEUE);
    let socket = home.text("s.sock");
    let describe = |limit: &'static str| {
        let queue = ["--in", "p0", "--out", "p1", "--rate", "1Mbit", "--aqm", "drop-tail", "--limit", limit];
        [&queue[..], &["--socket", &socket]].concat()
    };
    let mut lab = lab(hosts, &mut command(&[], &home, &describe("8 MB")));
    let before = lab.router.resident();
    let mut a = port(&lab.a, "a0");
    // A router that has no turn for a while loses frames, so that the queue fills later.
    let until = Instant::now() + Duration::from_secs(60);
    let queued = loop {
        (0..10).for_each(|_| flood(&mut a, 60, 2000));
        let statistics = home.ask("stats");
        let queued = packets(&statistics, "/forward/queued_packets");
        if queued > 80_000 {
            break queued;
        }
        assert!(Instant::now() < until, "{statistics}");
    };
    let grown = lab.router.resident() - before;
    assert!(grown < 24_000_000, "{grown} B for {queued} frames");
    assert_eq!(lab.router.terminate(), Some(0));
}

/// Address space for less than may wait by the limit and by `--memory`: 174,762 frames of 64 B and 128 B.
#[test]
fn without_memory_the_newcomer_is_dropped() {
    let Some(hosts) = Hosts::new("an") else { return };
    let home = Home::new(QUEUE);
    let socket = home.text("s.sock");
    let options =
        [&OPTIONS[..4], &["--rate", "1Mbit", "--aqm", "drop-tail", "--limit", "1000000 packets"]].concat();
    let options = [&options[..], &["--socket", &socket]].concat();
    let mut lab = lab(hosts, &mut command(&[], &home, &options));
    lab.router.bound_memory(20 << 20);
    let mut a = port(&lab.a, "a0");
    (0..150).for_each(|_| flood(&mut a, 60, 2000));
    let statistics = home.ask("stats");
    assert!(packets(&statistics, "/forward/dropped/memory/packets") > 1000, "{statistics}");
    let queued = packets(&statistics, "/forward/queued_packets");
    assert!((1000..150_000).contains(&queued), "{statistics}");
    assert_sums(&statistics, "forward");
    assert!(lab.router.is_running());
    assert_eq!(lab.router.terminate(), Some(0));
}

/// Each of TSQ's lists keeps the room that it has needed: together they may need no more than a few queues.
#[test]
fn one_hint_after_another_needs_no_more_memory_than_a_few_queues() {
    let Some(hosts) = Hosts::new("ah") else { return };
    let home = Home::new(QUEUE);
    let socket = home.text("s.sock");
    // A router that shares a busy processor receives far more short packets than this rate sends, so the queue fills.
    let queue = ["--rate", "10Mbit", "--aqm", "drop-tail", "--limit", "60000 packets", "--tsq"];
    let options = [&OPTIONS[..4], &queue, &["--socket", &socket]].concat();
    // glibc's arenas would hold room in reserve.
    let mut lab = lab(hosts, command(&[], &home, &options).env("MALLOC_ARENA_MAX", "1"));
    let mut a = port(&lab.a, "a0");
    // Fills the queue with short packets of a hint, and waits until they have left.
    let mut fill = |hint: u8| {
        let mut frame = vec![0; 60];
        frame[..18].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00, 0x45, 0, 0, 46]);
        (frame[15], frame[22], frame[23]) = (((hint - 1) * 4 + 3) << 2, 64, 253);
        let mut longest = 0;
        while longest < 40_000 {
            (0..5).for_each(|_| flood_with(&mut a, &frame, 2000));
            longest = packets(&home.ask("stats"), "/forward/queued_packets");
        }
        while packets(&home.ask("stats"), "/forward/queued_packets") > 0 {
            sleep(Duration::from_millis(20));
        }
    };
    fill(16);
    // A lane takes 3 MiB. Before they gave back room, the fourth hint ended the router.
    lab.router.bound_memory(12 << 20);
    (1..=8).for_each(&mut fill);
    assert_sums(&home.ask("stats"), "forward");
    assert!(lab.is_crossed(false, 5002));
    assert_eq!(lab.router.terminate(), Some(0));
}

/// Returns whether an interface of the middle fills in checksums.
fn fills_in_checksums(middle: &Namespace, name: &str) -> bool {
    middle.within(|| ethtool::get(name, Switch::TX_CHECKSUM).unwrap() != 0).unwrap()
}

#[test]
fn offloads_of_a_killed_router_are_turned_on_again() {
    let Some(hosts) = Hosts::new("ax") else { return };
    let home = Home::new(QUEUE);
    let options = ["--in", "xdp:p0", "--out", "xdp:p1", "--rate", "100Mbit", "--fix-offloads"];
    let are_on = |middle: &Namespace| ["p0", "p1"].map(|name| fills_in_checksums(middle, name));
    let mut lab = lab(hosts, &mut command(&[], &home, &options));
    assert_eq!(are_on(&lab.middle), [false; 2]);
    // While it runs, they stay off.
    let restore = |lab: &Lab| {
        let run = || command(&[], &home, &["restore"]).stdout(Stdio::piped()).output().unwrap();
        String::from_utf8(lab.middle.within(run).unwrap().stdout).unwrap()
    };
    assert_eq!((restore(&lab).as_str(), are_on(&lab.middle)), ("", [false; 2]));
    lab.router.kill();
    assert_eq!(are_on(&lab.middle), [false; 2]);
    let said = restore(&lab);
    assert!(said.contains("p0: tx-checksumming") && said.contains("p1: tx-checksumming"), "{said}");
    assert_eq!(are_on(&lab.middle), [true; 2]);

    // The next one that starts does it as well.
    lab.router = Router::launch(&lab.middle, &mut command(&[], &home, &options));
    assert!(lab.is_crossed(false, 5002));
    lab.router.kill();
    lab.router = Router::launch(&lab.middle, &mut command(&[], &home, &OPTIONS));
    assert!(lab.is_crossed(false, 5003));
    assert_eq!(are_on(&lab.middle), [true; 2]);
    assert_eq!(lab.router.terminate(), Some(0));

    // One that ends as it should leaves nothing, also after another that was killed.
    for end in [Signal::KILL, Signal::TERM] {
        lab.router = Router::launch(&lab.middle, &mut command(&[], &home, &options));
        assert!(lab.is_crossed(false, 5004));
        assert_eq!(are_on(&lab.middle), [false; 2]);
        if end == Signal::KILL {
            lab.router.kill();
        } else {
            assert_eq!(lab.router.terminate(), Some(0));
        }
    }
    assert_eq!(are_on(&lab.middle), [true; 2]);
    assert_eq!(restore(&lab), "");
    assert_eq!(std::fs::read_dir(home.folder()).unwrap().count(), 0, "no file is left");
}
