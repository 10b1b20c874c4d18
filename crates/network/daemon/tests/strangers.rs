//! A host without a key, on a link without keys: `r3`, whose agent does not run. Its messages change nothing between
//! the others.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon strangers::`.

use crate::common::{A, B, Net, eventually};
use cutline_provision::protocol::Reply;
use cutline_rsvp::message::{Body, Descriptor, Message, Path, PathErr, PathTear, Resv, ResvErr, ResvTear};
use cutline_rsvp::object::{ErrorSpec, Hop, Sender, Session, Style, code};
use cutline_sys::ip_socket::{IpSocket, OutgoingPacket};
use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use cutline_units::{Duration, IpVersion};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon strangers::";
/// Rate of a reservation of 1 Mbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 1_180_000;
/// The stranger, and the router's address on the same link.
const STRANGER: &str = "10.1.3.2";
const ROUTER: &str = "10.1.3.1";
/// The router's number of its interface towards `b`, in the order of its file: west, east, south.
const EAST: u32 = 2;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A raw socket of the stranger.
struct Stranger {
    socket: IpSocket,
    interface: u32,
}

impl Stranger {
    fn new(net: &Net) -> Self {
        net.node("r3").ip_batch("route replace 10.9.9.9 via 10.1.3.1").unwrap();
        let open = || {
            let socket = IpSocket::raw(IpVersion::V4, 46, false).unwrap();
            (socket, cutline_netlink::Interface::named("west").unwrap().index)
        };
        let (socket, interface) = net.node("r3").within(open).unwrap();
        Self { socket, interface }
    }

    /// Sends a message in the name of `source`. Those of type Path and `PathTear` go to the session's destination, with Router Alert.
    fn says(&self, source: &str, destination: &str, body: Body) {
        let router_alert = body.kind().has_router_alert();
        let payload = &Message::new(64, body).encode();
        let destination = (ip(destination), 0);
        let (source, interface) = (ip(source), self.interface);
        self.socket
            .send(&OutgoingPacket { interface, source, destination, ttl: 64, router_alert, payload })
            .unwrap();
    }
}

fn session(port: u16) -> Session {
    Session { destination: ip(B), protocol: 17, port }
}

fn path(sender: Sender, session: Session) -> Body {
    Body::Path(Path {
        session,
        polices_entry: false,
        hop: Hop { address: ip(STRANGER), handle: 9 },
        refresh: Duration::from_secs(1 << 22),
        policy: Vec::new(),
        sender,
        tspec: cutline_rsvp::intserv::Tspec::new(1000.0, 1000.0),
        adspec: None,
    })
}

fn keys(net: &Net) -> String {
    let keys = net.folder.path().join("keys");
    let text = "[[key]]\nid = 1\nalgorithm = 'hmac-sha-256'\nsecret = '00112233445566778899aabbccddeeff'\n";
    std::fs::write(&keys, text).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    format!("keys = '{}'", keys.display())
}

/// A network whose links have keys, but for that of the stranger. The agents of all but the stranger run.
fn guarded(label: &str) -> Option<Net> {
    let mut net = Net::new(label, COMMAND)?;
    net.rsvp = "refresh = '30 s'";
    net.interface = keys(&net);
    let plain = "rate = '10 Mbit/s'\nshare = 0.5";
    net.others.insert(("r1", "south"), plain.to_owned());
    for node in ["a", "r1", "r2", "b"] {
        net.start(node);
    }
    Some(net)
}

/// RFC 2747: messages at the interface without keys change nothing of those with keys, whomever they name. Refreshes come every 30 s, so what
/// a message takes away stays away.
#[test]
fn a_stranger_at_a_link_without_keys_does_not_change_other_links() {
    let Some(net) = guarded("stk") else { return };
    let (mut sender, mut receiver) = net.set_up(5000);
    let (stranger, session, its) = (Stranger::new(&net), session(5000), Sender::new(ip(A), 5000));
    let misplaced = || net.status("r1").counters.misplaced;
    let from_b = Hop { address: ip("10.1.2.2"), handle: EAST };
    let from_a = Hop { address: ip(A), handle: 1 };
    let error = |code| ErrorSpec { node: ip(STRANGER), in_place: false, not_guilty: false, code, value: 0 };
    let flow = |flowspec| Descriptor { flowspec, filters: vec![its] };
    let style = Style::FixedFilter;
    let load = cutline_rsvp::intserv::Flowspec::ControlledLoad(cutline_rsvp::intserv::Tspec::new(1e5, 1e4));
    let mut all: Vec<(&str, &str, &str, Body)> = vec![(
        "ResvTear",
        "10.1.2.2",
        ROUTER,
        Body::ResvTear(ResvTear { session, hop: from_b, style, flows: vec![flow(None)] }),
    )];
    let tear = PathTear { session, hop: from_a, sender: its, tspec: None };
    all.push(("PathTear", A, B, Body::PathTear(tear)));
    let failed =
        PathErr { session, error: error(code::RSVP_SYSTEM), policy: Vec::new(), sender: its, tspec: None };
    all.push(("PathErr", "10.1.2.2", ROUTER, Body::PathErr(failed)));
    let refused = ResvErr {
        session,
        hop: from_a,
        error: error(code::ADMISSION),
        scope: None,
        policy: Vec::new(),
        style,
        flow: Some(flow(Some(load))),
    };
    all.push(("ResvErr", A, ROUTER, Body::ResvErr(refused)));
    all.push(("Path that moves the previous hop", A, B, path(its, session)));
    for (name, source, destination, body) in all {
        let before = misplaced();
        stranger.says(source, destination, body);
        eventually(name, || misplaced() > before);
        assert_eq!((net.reserved("r1", "east"), net.classes("r1", "east")), (ON_WIRE, 1), "{name}");
    }
    // A reservation of its own, on the link with keys.
    let (own, its_own) = (self::session(7000), Sender::new(ip(STRANGER), 7000));
    stranger.says(STRANGER, B, path(its_own, own));
    eventually("its path is taken", || net.status("r1").sessions.len() == 2);
    let before = misplaced();
    let flows = vec![Descriptor { flowspec: Some(load), filters: vec![its_own] }];
    let (refresh, scope, policy) = (Duration::from_secs(30), None, Vec::new());
    let resv = Resv { session: own, hop: from_b, refresh, confirm: None, scope, policy, style, flows };
    stranger.says("10.1.2.2", ROUTER, Body::Resv(resv));
    eventually("its reservation is refused", || misplaced() > before);
    assert_eq!(net.reserved("r1", "east"), ON_WIRE);
    // Neither end was notified, and their next calls work.
    while let Some(reply) = sender.reply(Duration::ZERO).unwrap() {
        assert!(!matches!(reply, Reply::Failed { .. }), "{reply:?}");
    }
    while let Some(reply) = receiver.reply(Duration::ZERO).unwrap() {
        assert!(!matches!(reply, Reply::Failed { .. } | Reply::SenderGone { .. }), "{reply:?}");
    }
    let (_sender, _receiver) = net.set_up(5001);
}

/// Paths without reservations, with the longest refresh period that a message can have, without keys anywhere: one for port 0, one from
/// port 0, more than a session may have, more than the interface may have. Honest flows are reserved nevertheless, and the agent answers.
#[test]
fn a_flood_of_paths_does_not_prevent_a_reservation() {
    let Some(mut net) = Net::new("stf", COMMAND) else { return };
    net.rsvp = "refresh = '30 s'\nmost-unconfirmed = 700";
    for node in ["a", "r1", "r2", "b"] {
        net.start(node);
    }
    let (_sender, _receiver) = net.set_up(5000);
    let (stranger, its) = (Stranger::new(&net), |port| Sender::new(ip(STRANGER), port));
    let received = || {
        let counters = net.status("r1").counters;
        counters.received.iter().find(|its| its.message == "Path").map_or(0, |its| its.count)
    };
    let before = received();
    stranger.says(STRANGER, B, path(its(0), session(0)));
    stranger.says(STRANGER, B, path(Sender::new(ip(A), 0), session(5001)));
    for port in 1..=600 {
        stranger.says(STRANGER, B, path(its(port), session(5002)));
    }
    for port in 10_000..12_000 {
        stranger.says(STRANGER, B, path(its(port), session(port)));
    }
    eventually("all have arrived", || received() >= before + 2602);
    for port in [5001, 5002, 5003] {
        drop(net.set_up(port));
    }
    let status = net.status("r1");
    let paths: usize = status.sessions.iter().map(|session| session.senders.len()).sum();
    assert!((690..=710).contains(&paths), "{paths}");
    assert!(status.counters.evicted >= 1800, "{:?}", status.counters);
    eventually("the first one is there, the others have ended", || net.reserved("r1", "east") == ON_WIRE);
}

/// Errors for a hundred neighbours that are not there wait for the answers of their addresses, and fill the buffer of the socket that sends them.
/// At the other links, messages leave nevertheless.
#[test]
fn messages_that_wait_for_neighbours_of_a_link_do_not_block_other_links() {
    undisturbed(|| {
        let Some(net) = guarded("stn") else { return };
        let (_sender, _receiver) = net.set_up(5000);
        let stranger = Stranger::new(&net);
        let unsent = || net.status("r1").counters.unsent;
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The source port conflicts with that of the reservation, so each is answered with an error. It ends by itself when the test has failed.
                let end = now() + Duration::from_secs(100);
                for last in (100..200).cycle() {
                    if is_over.load(Ordering::Relaxed) || now() > end {
                        return;
                    }
                    let Body::Path(mut path) = path(Sender::new(ip(A), 0), session(5000)) else {
                        unreachable!()
                    };
                    path.hop.address = IpAddr::from([10, 1, 3, last]);
                    stranger.says(STRANGER, B, Body::Path(path));
                    // In bursts, since a pause may be long on a busy machine, and the kernel forgets what waits after seconds.
                    if last % 20 == 0 {
                        std::thread::park_timeout(std::time::Duration::from_millis(10));
                    }
                }
            });
            eventually("the buffer is full", || unsent() > 100);
            let again = || net.status("r1").counters.sent_again;
            let before = again();
            (5001..5007).for_each(|port| drop(net.set_up(port)));
            let after = again();
            is_over.store(true, Ordering::Relaxed);
            // A busy machine answers some too late.
            in_time!(after <= before + 4, "{before} messages were sent again before, {after} after");
        });
    });
}

/// `cutlined --check` says that keys on some interfaces alone protect less than they seem to.
#[test]
fn a_check_warns_of_keys_on_some_interfaces_alone() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(
        &keys,
        "[[key]]\nid = 1\nalgorithm = 'hmac-md5'\nsecret = '00112233445566778899aabbccddeeff'\n",
    )
    .unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let file = folder.path().join("c.toml");
    let keyed = format!("[[interface]]\nname = 'nosuch0'\nrate = '1 Gbit/s'\nkeys = '{}'\n", keys.display());
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cutlined"))
            .args(["--check", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(check(&keyed), (true, String::new()));
    let (is_fine, said) = check(&format!("{keyed}[[interface]]\nname = 'nosuch1'\nrate = '1 Gbit/s'\n"));
    assert!(is_fine && said.contains("warning: interface.keys: nosuch0 authenticate"), "{said}");
}
