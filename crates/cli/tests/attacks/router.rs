//! Attacks on a router at work, on packet sockets and on `AF_XDP`, each while numbered datagrams cross: those must all be
//! accounted for.

use super::bed::Datagrams::{AllCome, AreCounted, MayBeLost};
use super::bed::{Bed, QUEUE, send};
use super::common::{Hosts, Lab, Router, packets};
use super::garbage;
use super::plan::{Assault, Attack};
use cutline_sys::ethtool::{self, Command as Switch};
use cutline_sys::namespace::Namespace;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, prlimit};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Attacks on the router on packet sockets alone.
pub const ATTACKS: [Attack<Bed>; 14] = [
    Attack::new("options", "IPv4 headers of every length, with options", AreCounted, |bed, assault| {
        flood_with(bed, assault, garbage::options);
    }),
    Attack::new("extension chains", "IPv6 extension headers without an end", AreCounted, |bed, assault| {
        flood_with(bed, assault, garbage::extension_chains);
    }),
    Attack::new("tags", "VLAN tags within VLAN tags", AreCounted, |bed, assault| {
        flood_with(bed, assault, garbage::tags);
    }),
    Attack::new("fragments", "fragments that overlap or begin nowhere", AreCounted, |bed, assault| {
        flood_with(bed, assault, garbage::fragments);
    }),
    Attack::new("GSO", "frames of 64 KB without checksums, of a host with offloads", AreCounted, offload),
    Attack::new("hints", "floods of one hint after another into TSQ", AreCounted, fill_hint_after_hint),
    Attack::new("MTU", "the MTU of an interface changes", AreCounted, change_mtu),
    Attack::new("reloads", "files that are broken, huge or strange, and queues exchanged", AllCome, reload),
    Attack::new("SIGHUP", "hundreds of them, and none of another kind", AllCome, hang_up),
    Attack::new("clients", "clients that ask nonsense, do not read, or say nothing", AllCome, connect),
    Attack::new("descriptors", "no further descriptor may be opened", AllCome, few_descriptors),
    Attack::new(
        "memory of hints",
        "the same, one hint after another into TSQ",
        AreCounted,
        little_memory_for_hints,
    ),
    Attack::new("missing files", "the file and the socket are removed", AllCome, remove_files),
    Attack::new("closed pipe", "nobody has its stdout open any more", AllCome, close_output),
];

/// Attacks on the router, whatever its ports are.
pub const ON_ANY_PORT: [Attack<Bed>; 12] = [
    Attack::new("truncated frames", "headers of every kind that end anywhere", AreCounted, |bed, assault| {
        flood_with(bed, assault, garbage::truncated);
    }),
    Attack::new(
        "changed bytes",
        "headers of every kind with a few wrong bytes",
        AreCounted,
        |bed, assault| {
            flood_with(bed, assault, garbage::mutated);
        },
    ),
    Attack::new(
        "short frames",
        "the shortest frames as fast as they are taken",
        AreCounted,
        |bed, assault| {
            bed.flood(assault, 60);
        },
    ),
    Attack::new("long frames", "the longest frames as fast as they are taken", AreCounted, |bed, assault| {
        bed.flood(assault, 1514);
    }),
    Attack::new("link flaps", "the output goes down and up", AreCounted, flap_output),
    Attack::new("input flaps", "the input, or a host's interface, goes down and up", MayBeLost, flap_input),
    Attack::new("memory", "no further memory may be had, in a flood", AreCounted, little_memory),
    Attack::new("SIGSTOP", "the process is stopped and goes on", AreCounted, stop),
    Attack::new("kill -9", "the process is killed, and the next one starts", MayBeLost, kill),
    Attack::new("restart", "SIGTERM under load, and the next one starts", MayBeLost, terminate),
    Attack::new("removal", "an interface is removed, and comes back", MayBeLost, remove_interfaces),
    Attack::new(
        "removal at start",
        "an interface is removed while the router starts",
        MayBeLost,
        remove_at_start,
    ),
];

/// Sends frames of one class of garbage.
fn flood_with(bed: &mut Bed, assault: &mut Assault, class: fn(&mut Assault) -> Vec<u8>) {
    let mut source = bed.source();
    assault.repeat(|assault| {
        let frames: Vec<_> = (0..64).map(|_| class(assault)).collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        send(&mut source, &frames);
    });
}

/// The first host sends by TCP, and its offloads are turned on and off meanwhile. Its frames have no checksums then, and
/// the router gets them before they are cut.
fn offload(bed: &mut Bed, assault: &mut Assault) {
    let set = |bed: &mut Bed, on: bool| {
        let set = || ethtool::set("a0", Switch::SET_TX_CHECKSUM, u32::from(on)).unwrap();
        bed.lab().a.within(set).unwrap();
    };
    let bytes = vec![7; 1 << 16];
    assault.repeat(|assault| {
        let lab = bed.lab();
        let listener = lab.b.within(|| TcpListener::bind("10.9.0.2:0").unwrap()).unwrap();
        let to = listener.local_addr().unwrap();
        let mut stream = lab.a.within(|| TcpStream::connect(to).unwrap()).unwrap();
        let (mut sink, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while sink.read(&mut buffer).is_ok_and(|length| length > 0) {}
        });
        for on in [false, true, false, true, false] {
            set(bed, on);
            let pause = assault.moment(Duration::from_millis(20));
            for _ in 0..8 {
                // What does not fit is not sent.
                let _full = stream.write(&bytes);
                sleep(pause / 8);
            }
        }
        // Unacknowledged datagrams are given up.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        drop(stream);
        reader.join().unwrap();
    });
}

/// Sends IPv4 packets of one hint as fast as they are taken, `times` times 64.
fn flood_of_hint(bed: &mut Bed, hint: u8, times: usize) {
    let mut source = bed.source();
    let frame = garbage::hinted(hint);
    (0..times).for_each(|_| send(&mut source, &[&frame[..]; 64]));
}

fn fill_hint_after_hint(bed: &mut Bed, assault: &mut Assault) {
    bed.describe("100 Mbit/s", "{ aqm = \"drop-tail\", limit = \"2000 packets\", tsq = true }");
    assert!(bed.hup_is_taken());
    assault.repeat(|assault| {
        let hint = 1 + assault.below(16) as u8;
        flood_of_hint(bed, hint, 100);
    });
    bed.describe("100 Mbit/s", QUEUE);
    assert!(bed.hup_is_taken());
}

fn flap_output(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        for state in ["down", "up"] {
            bed.lab().middle.ip(&["link", "set", "p1", state]).unwrap();
            sleep(assault.moment(Duration::from_millis(120)));
        }
    });
}

/// Datagrams of a host whose interface has no carrier are lost there, and not counted.
fn flap_input(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        let Lab { a, b, middle, .. } = bed.lab();
        let (host, name) = assault.one_of(&[(&*middle, "p0"), (a, "a0"), (b, "b0")]);
        for state in ["down", "up"] {
            host.ip(&["link", "set", name, state]).unwrap();
            sleep(assault.moment(Duration::from_millis(200)));
        }
    });
}

fn change_mtu(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        let (name, mtu) =
            (assault.one_of(&["p0", "p1"]), assault.one_of(&["68", "576", "1280", "1500", "9000"]));
        bed.lab().middle.ip(&["link", "set", name, "mtu", mtu]).unwrap();
        sleep(assault.moment(Duration::from_millis(120)));
    });
    for name in ["p0", "p1"] {
        bed.lab().middle.ip(&["link", "set", name, "mtu", "1500"]).unwrap();
    }
}

fn reload(bed: &mut Bed, assault: &mut Assault) {
    let file = bed.path("r.toml");
    assault.repeat(|assault| {
        drop(std::fs::remove_file(&file));
        match assault.below(9) {
            0 => bed.describe("1 bit/s", QUEUE),
            1 => bed.describe("90 Mbit/s", "{ aqm = \"codel\", limit = \"900 packets\", target = \"1 s\" }"),
            2 => std::fs::write(&file, "[[[").unwrap(),
            3 => std::fs::write(&file, vec![b'['; 2 << 20]).unwrap(),
            4 => std::fs::write(&file, "a = 1\n".repeat(20_000)).unwrap(),
            5 => bed.describe("80 Mbit/s", "{ aqm = \"drop-tail\", limit = \"800 packets\" }"),
            6 => {
                assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
            }
            7 => {
                bed.describe("95 Mbit/s", QUEUE);
                let mut text = std::fs::read(&file).unwrap();
                for _ in 0..=assault.below(4) {
                    let at = assault.below(text.len());
                    text[at] = assault.byte();
                }
                std::fs::write(&file, text).unwrap();
            }
            _ => bed.describe("100 Mbit/s", QUEUE),
        }
        bed.lab().router.signal(Signal::HUP);
        sleep(assault.moment(Duration::from_millis(140)));
    });
    bed.describe("100 Mbit/s", QUEUE);
    assert!(bed.hup_is_taken(), "a good file is taken afterwards");
}

fn hang_up(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(1));
    });
    assert!(bed.hup_is_taken());
}

/// Clients of every kind, more than are served.
fn connect(bed: &mut Bed, assault: &mut Assault) {
    let mut clients = Vec::new();
    assault.repeat(|assault| {
        let Ok(mut client) = UnixStream::connect(bed.path("s.sock")) else { return };
        client.set_nonblocking(true).unwrap();
        let request: &[u8] = match assault.below(4) {
            0 => b"",
            1 => b"watch 100 ms\n",
            2 => &[0xff; 500],
            _ => b"stats\nconfig\nreload status\nnonsense\n",
        };
        // It may have been refused already.
        let _refused = client.write_all(request);
        clients.push(client);
        if clients.len() > 30 {
            clients.clear();
        }
        sleep(Duration::from_millis(5));
    });
    drop(clients);
    assert!(bed.answers(), "the seats are free again when their threads have noticed");
}

fn few_descriptors(bed: &mut Bed, assault: &mut Assault) {
    let process = bed.process();
    // Fewer than it has; ppoll(2) takes no more descriptors than this.
    let none = Rlimit { current: Some(4), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(process, Resource::Nofile, none).unwrap();
    let clients: Vec<_> = (0..8).map(|_| UnixStream::connect(bed.path("s.sock"))).collect();
    assault.repeat(|_| {
        for _ in 0..7 {
            bed.lab().router.signal(Signal::HUP);
            // Reloads of a second, without an answer by which to tell that one has ended.
            sleep(Duration::from_millis(100));
        }
    });
    drop(clients);
    prlimit(process, Resource::Nofile, before).unwrap();
    assert!(bed.answers(), "the thread that accepts tries again each second");
}

/// Leaves a router as much address space as it has, and little more, while `work` is done.
fn without_memory(bed: &mut Bed, work: impl FnOnce(&mut Bed)) {
    let before = bed.lab().router.bound_memory(8 << 20);
    work(bed);
    prlimit(bed.process(), Resource::As, before).unwrap();
    bed.describe("100 Mbit/s", QUEUE);
    assert!(bed.hup_is_taken());
}

fn little_memory(bed: &mut Bed, assault: &mut Assault) {
    bed.describe("1 Mbit/s", "{ aqm = \"drop-tail\", limit = \"1000000 packets\" }");
    assert!(bed.hup_is_taken());
    let dropped =
        |bed: &Bed| bed.ask("stats").map(|stats| packets(&stats, "/forward/dropped/memory/packets"));
    let (before, mut is_short) = (dropped(bed).expect("it answers"), false);
    without_memory(bed, |bed| {
        bed.flood(assault, 60);
        // A busy machine may send few frames in this time; there may be no memory for a client that asks.
        is_short = (0..100).any(|_| {
            flood_of_hint(bed, 16, 100);
            dropped(bed).is_some_and(|dropped| dropped > before)
        });
    });
    is_short |= dropped(bed).is_some_and(|dropped| dropped > before);
    assert!(is_short, "frames are dropped for want of memory: {:?}", bed.ask("stats"));
}

fn little_memory_for_hints(bed: &mut Bed, assault: &mut Assault) {
    bed.describe("20 Mbit/s", "{ aqm = \"drop-tail\", limit = \"1000000 packets\", tsq = true }");
    assert!(bed.hup_is_taken());
    without_memory(bed, |bed| {
        assault.repeat(|assault| {
            let hint = 1 + assault.below(16) as u8;
            flood_of_hint(bed, hint, 200);
            sleep(assault.moment(Duration::from_millis(400)));
        });
    });
}

fn remove_files(bed: &mut Bed, assault: &mut Assault) {
    let aside = bed.path("aside");
    std::fs::rename(bed.path("s.sock"), &aside).unwrap();
    std::fs::remove_file(bed.path("r.toml")).unwrap();
    assault.repeat(|_| {
        bed.lab().router.signal(Signal::HUP);
        // A file that is gone gives no answer.
        sleep(Duration::from_millis(100));
    });
    std::fs::rename(&aside, bed.path("s.sock")).unwrap();
    bed.describe("100 Mbit/s", QUEUE);
    assert!(bed.hup_is_taken());
}

fn stop(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        bed.lab().router.signal(Signal::STOP);
        sleep(assault.moment(Duration::from_millis(300)));
        bed.lab().router.signal(Signal::CONT);
        sleep(assault.moment(Duration::from_millis(100)));
    });
}

fn close_output(bed: &mut Bed, assault: &mut Assault) {
    bed.lab().router.close_output();
    assault.repeat(|_| {
        bed.lab().router.signal(Signal::HUP);
        sleep(Duration::from_millis(50));
    });
    assert!(bed.hup_is_taken());
}

/// Ends the router at any moment, and starts the next one.
fn again(bed: &mut Bed, assault: &mut Assault, end: fn(&mut Router)) {
    assault.repeat(|assault| {
        sleep(assault.moment(Duration::from_millis(200)));
        let mut lab = bed.lab.take().expect("it is there");
        if assault.below(3) > 0 {
            // Otherwise it tries for a while to write its counters.
            lab.router.close_output();
        }
        end(&mut lab.router);
        bed.start(lab.without_router());
    });
    sleep(Duration::from_millis(50));
}

fn kill(bed: &mut Bed, assault: &mut Assault) {
    again(bed, assault, Router::kill);
}

fn terminate(bed: &mut Bed, assault: &mut Assault) {
    // Its messages could not be written.
    again(bed, assault, |router| assert!(matches!(router.terminate(), Some(0 | 1))));
}

/// Removes the link of a port, at one of its ends.
fn remove_link(hosts: [&Namespace; 3], assault: &mut Assault, port: &str) {
    let [a, b, middle] = hosts;
    let (host, name) = match (port, assault.below(2)) {
        (port, 0) => (middle, port),
        ("p0", _) => (a, "a0"),
        _ => (b, "b0"),
    };
    host.ip(&["link", "delete", name]).unwrap();
}

/// Puts the link of a port back.
fn join(hosts: &Hosts, port: &str) {
    if port == "p0" { hosts.join_a() } else { hosts.join_b() }
}

fn remove_interfaces(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        sleep(assault.moment(Duration::from_millis(300)));
        let mut lab = bed.lab.take().expect("it is there");
        let port = assault.one_of(&["p0", "p1"]);
        if assault.below(3) > 0 {
            lab.router.close_output();
        }
        remove_link([&lab.a, &lab.b, &lab.middle], assault, port);
        if assault.below(3) == 0 {
            assert!(matches!(lab.router.terminate(), Some(0 | 1)), "it ends, whichever it notices first");
        } else {
            assert_eq!(lab.router.exit_code(), Some(1), "it says what it has counted, and ends");
        }
        let hosts = lab.without_router();
        join(&hosts, port);
        bed.start(hosts);
    });
    // The group and the router that the last round left end meanwhile; nothing says so.
    sleep(Duration::from_millis(300));
}

fn remove_at_start(bed: &mut Bed, assault: &mut Assault) {
    assault.repeat(|assault| {
        let hosts = bed.lab.take().expect("it is there").without_router();
        for _ in 0..3 {
            let mut router = bed.launch(&hosts);
            router.close_output();
            sleep(assault.moment(Duration::from_millis(80)));
            let port = assault.one_of(&["p0", "p1"]);
            remove_link([&hosts.a, &hosts.b, &hosts.middle], assault, port);
            assert!(matches!(router.exit_code(), Some(1 | 2)), "it ends");
            join(&hosts, port);
        }
        bed.start(hosts);
    });
    // As above.
    sleep(Duration::from_millis(300));
}
