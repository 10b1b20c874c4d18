//! All known attacks on `cutlined` at work: floods, forged and repeated messages, slow and silent clients, unread output, kill -9,
//! traffic control taken away.
//!
//! ```text
//! sudo -E make attack                                     # with the attacks on all else, 10 s for each, or ATTACK_TIME=...
//! sudo -E cargo test -p cutline-daemon --test attacks     # the short form
//! ```
//!
//! The router `r1` is attacked: by `r3`, a host on a link without keys, and by clients of its own. Its other links have keys, and its standard error is
//! an unread pipe. A reservation from `a` to `b` crosses it. After each attack the reservation must be there, a new one must be
//! confirmed, and the router must be small; during most of them neither end may get an event. The promises are in
//! docs/internals/robustness.md. Without root the test says so and attacks nothing.

#[allow(dead_code, reason = "each test uses a part")]
mod common;
#[allow(
    dead_code,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "other attacks use the rest, in a crate that may read clocks"
)]
#[path = "../../../cli/tests/attacks/plan.rs"]
mod plan;

use common::{A, B, Net, announce, eventually, hear, reserve};
use cutline_provision::DaemonClient;
use cutline_provision::protocol::{Reply, Request};
use cutline_rsvp::message::{
    Body, Descriptor, Message, Path, PathErr, PathTear, Resv, ResvConf, ResvErr, ResvTear,
};
use cutline_rsvp::object::{
    Acknowledgement, Challenge, ErrorSpec, Hop, IdList, Ids, Sender, Session, Style, code,
};
use cutline_sys::ip_socket::{IpSocket, OutgoingPacket};
use cutline_testbed::outputs::{full_pipe, terminated};
use cutline_units::{Duration, IpVersion};
use plan::{Assault, Attack, Plan, Victim};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{PipeReader, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon --test attacks";
/// Rate of a reservation of 100 kbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 118_000;
const STRANGER: &str = "10.1.3.2";
const ROUTER: &str = "10.1.3.1";
/// Pause of a flood after some hundred messages.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
/// Largest growth of the router during an attack, kB.
const MOST_MORE: u64 = 160_000;

#[test]
fn promises_are_kept_under_attack() {
    let mut plan = Plan::from_environment();
    plan.attack("cutlined", || Router::new("atk"), &[&ATTACKS]);
    plan.conclude();
}

/// Promise during an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// No end gets an event.
    Untouched,
    /// The earlier state comes back.
    Restored,
}

use Promise::{Restored, Untouched};

const ATTACKS: [Attack<Router>; 13] = [
    Attack::new("paths", "paths of made-up senders, sessions and neighbours, for ever", Untouched, paths),
    Attack::new("forged", "messages of each type in the names of others", Untouched, forged),
    Attack::new("repeated", "messages that have crossed the links with keys, again", Untouched, repeated),
    Attack::new("garbage", "messages with changed bytes, and bytes alone", Untouched, garbage),
    Attack::new("numbers", "acknowledgements, summaries and challenges", Untouched, numbers),
    Attack::new("silent clients", "clients that say nothing, or half a line", Untouched, silent_clients),
    Attack::new("slow clients", "clients that ask for ever and read nothing", Untouched, slow_clients),
    Attack::new("strange clients", "clients that send no valid request", Untouched, strange_clients),
    Attack::new("reloads", "SIGHUP, with files that are right, wrong and gone", Untouched, reloads),
    Attack::new("traffic control", "disciplines, classes and filters are removed", Untouched, taken_away),
    Attack::new("another discipline", "that of another tool takes its place and goes", Restored, replaced),
    Attack::new("rules", "rules and addresses come and go", Untouched, rules),
    Attack::new("kill -9", "it is killed, and starts again", Restored, killed),
];

/// The router, its network, and the ends of a reservation across it.
struct Router {
    net: Net,
    stranger: IpSocket,
    /// The kernel's number of the stranger's interface.
    interface: u32,
    /// Messages that have arrived at the router.
    recorded: Vec<(IpAddr, IpAddr, Vec<u8>)>,
    spy: IpSocket,
    ends: Option<(DaemonClient, DaemonClient)>,
    small: u64,
    port: u16,
    unread: Vec<PipeReader>,
}

impl Victim for Router {
    type Promise = Promise;

    fn withstand(&mut self, attack: &Attack<Self>, assault: &mut Assault) {
        (attack.run)(self, assault);
        self.check(attack.promise);
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Router {
    fn new(label: &str) -> Option<Self> {
        let mut net = Net::new(label, COMMAND)?;
        // Refreshes are ten times as frequent as by default, so a tenth of the paths take as many messages.
        net.rsvp = "refresh = '3 s'\nmost-unconfirmed = 2000";
        let keys = net.folder.path().join("keys");
        let text =
            "[[key]]\nid = 1\nalgorithm = 'hmac-sha-256'\nsecret = '00112233445566778899aabbccddeeff'\n";
        std::fs::write(&keys, text).unwrap();
        std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        net.interface = format!("keys = '{}'", keys.display());
        net.others.insert(("r1", "south"), "rate = '10 Mbit/s'\nshare = 0.5".to_owned());
        net.node("r3").ip_batch("route replace 10.9.9.9 via 10.1.3.1").unwrap();
        let open = || {
            let socket = IpSocket::raw(IpVersion::V4, 46, false).unwrap();
            (socket, cutline_netlink::Interface::named("west").unwrap().index)
        };
        let (stranger, interface) = net.node("r3").within(open).unwrap();
        let spy = net.node("r1").within(|| IpSocket::raw(IpVersion::V4, 46, true).unwrap()).unwrap();
        for node in ["a", "r2", "b"] {
            net.start(node);
        }
        let mut this = Self {
            net,
            stranger,
            interface,
            recorded: Vec::new(),
            spy,
            ends: None,
            small: 0,
            port: 20_000,
            unread: Vec::new(),
        };
        this.start();
        this.ends = Some(this.set_up(5000));
        this.small = this.memory();
        Some(this)
    }

    /// Starts the router with an unread standard error.
    fn start(&mut self) {
        let file = self.net.describe("r1");
        let (reader, writer) = full_pipe();
        self.unread.push(reader);
        let child = Command::new("ip")
            .args(["netns", "exec", self.net.node("r1").name(), env!("CARGO_BIN_EXE_cutlined"), "--config"])
            .arg(file)
            .stderr(Stdio::from(writer))
            .spawn()
            .unwrap();
        self.net.agents[Net::at("r1")] = Some(child);
        let socket = self.net.socket("r1");
        eventually("the router answers", || DaemonClient::connect(&socket).is_ok());
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.net.agents[Net::at("r1")].as_ref().unwrap())
    }

    fn memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid().as_raw_nonzero())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it runs");
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Sets up a reservation.
    fn set_up(&self, port: u16) -> (DaemonClient, DaemonClient) {
        let (mut sender, mut receiver) = (self.net.client("a"), self.net.client("b"));
        sender.send(&announce(1, port, 100_000)).unwrap();
        receiver.send(&reserve(2, port, 100_000)).unwrap();
        hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: Some(_) }));
        (sender, receiver)
    }

    /// The router runs, the reservation holds, another one can be made, and memory has not grown.
    fn check(&mut self, promise: Promise) {
        let net = &self.net;
        eventually("the reservation is there", || {
            net.reserved("r1", "east") >= ON_WIRE && net.classes("r1", "east") >= 1
        });
        self.port = self.port.checked_add(1).unwrap_or(20_000);
        drop(self.set_up(self.port));
        let net = &self.net;
        eventually("it is the only one again", || {
            net.reserved("r1", "east") == ON_WIRE && net.classes("r1", "east") == 1
        });
        let (sender, receiver) = self.ends.as_mut().unwrap();
        for end in [sender, receiver] {
            while let Some(reply) = end.reply(Duration::ZERO).unwrap() {
                let is_loss = matches!(
                    reply,
                    Reply::Failed { .. } | Reply::SenderGone { .. } | Reply::Reserved { bucket: None, .. }
                );
                assert!(!is_loss || promise == Restored, "{reply:?}");
            }
        }
        let now = self.memory();
        assert!(now <= self.small + MOST_MORE, "{} kB before, {now} kB now", self.small);
    }

    /// The stranger sends bytes in the name of `source`.
    fn sends(&self, source: IpAddr, destination: IpAddr, router_alert: bool, payload: &[u8]) {
        let (destination, interface) = ((destination, 0), self.interface);
        // The buffer of the socket may be full, or the kernel may not want the message.
        let _lost = self.stranger.send(&OutgoingPacket {
            interface,
            source,
            destination,
            ttl: 64,
            router_alert,
            payload,
        });
    }

    fn says(&self, source: &str, destination: &str, message: &Message) {
        let router_alert = message.kind().has_router_alert();
        self.sends(ip(source), ip(destination), router_alert, &message.encode());
    }

    /// Records what arrives at the router.
    fn listen(&mut self) {
        while let Some(received) = self.spy.receive().unwrap() {
            if self.recorded.len() < 1000 {
                self.recorded.push((received.source, received.destination, received.payload.to_vec()));
            }
        }
    }
}

fn session(port: u16) -> Session {
    Session { destination: ip(B), protocol: 17, port }
}

fn tspec(rate: f32) -> cutline_rsvp::intserv::Tspec {
    cutline_rsvp::intserv::Tspec::new(rate, 3000.0)
}

fn flowspec(rate: f32) -> cutline_rsvp::intserv::Flowspec {
    cutline_rsvp::intserv::Flowspec::ControlledLoad(tspec(rate))
}

/// Times between refreshes, the longest that a message can have among them.
const REFRESHES: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_secs(30), Duration::from_millis(0xffff_ffff)];

fn path(session: Session, sender: Sender, hop: Hop, refresh: Duration) -> Body {
    let (tspec, policy) = (tspec(1000.0), Vec::new());
    Body::Path(Path { session, polices_entry: false, hop, refresh, policy, sender, tspec, adspec: None })
}

fn paths(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        for _ in 0..200 {
            let port = assault.below(65_536) as u16;
            let session = Session {
                port: assault.one_of(&[port, 5000, 0]),
                protocol: assault.one_of(&[17, 6, 50]),
                ..session(0)
            };
            let from = assault.one_of(&[STRANGER, A, "10.1.3.77", "10.1.2.2"]);
            let source_port = if session.port == 0 { 0 } else { assault.one_of(&[port, 0, 5000, 1]) };
            // Not the honest sender itself: without a key, no host takes its path, and with none at all it would be refreshed.
            let sender = Sender::new(ip(from), source_port);
            let last = assault.byte();
            let hop = Hop { address: IpAddr::from([10, 1, 3, last]), handle: port.into() };
            let mut message = Message::new(64, path(session, sender, hop, assault.one_of(&REFRESHES)));
            message.reduces_refreshes = assault.below(2) == 0;
            router.says(from, B, &message);
        }
        // More than a build for tests can read would wait in front of the messages of others.
        std::thread::park_timeout(PAUSE);
    });
}

fn forged(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        let its = Sender::new(ip(A), 5000);
        let handle = assault.below(5) as u32;
        let hop = |address: &str| Hop { address: ip(address), handle };
        let (from_a, from_b) = (hop(A), hop("10.1.2.2"));
        let code = assault.one_of(&[
            code::ADMISSION,
            code::NO_PATH,
            code::PREEMPTED,
            code::SYSTEM,
            code::CONFLICTING_STYLE,
        ]);
        let in_place = assault.below(2) == 0;
        let error = ErrorSpec { node: ip(STRANGER), in_place, not_guilty: false, code, value: 2 };
        let style = assault.one_of(&[Style::FixedFilter, Style::SharedExplicit, Style::WildcardFilter]);
        let filters = if style == Style::WildcardFilter { Vec::new() } else { vec![its] };
        let flows =
            |rate: Option<f32>| vec![Descriptor { flowspec: rate.map(flowspec), filters: filters.clone() }];
        let rate = assault.below(600_000) as f32;
        let (session, policy) = (session(5000), Vec::new());
        let refresh = assault.one_of(&REFRESHES);
        let bodies = [
            Body::ResvTear(ResvTear { session, hop: from_b, style, flows: flows(None) }),
            Body::PathTear(PathTear { session, hop: from_a, sender: its, tspec: None }),
            Body::PathErr(PathErr { session, error, policy: policy.clone(), sender: its, tspec: None }),
            Body::ResvErr(ResvErr {
                session,
                hop: from_a,
                error,
                scope: None,
                policy: policy.clone(),
                style,
                flow: flows(Some(rate)).pop(),
            }),
            Body::ResvConf(ResvConf { session, error, receiver: ip(B), style, flows: flows(Some(rate)) }),
            Body::Resv(Resv {
                session,
                hop: from_b,
                refresh,
                confirm: Some(ip(STRANGER)),
                scope: None,
                policy,
                style,
                flows: flows(Some(rate)),
            }),
            path(session, its, from_a, refresh),
            path(session, its, Hop { address: ip(STRANGER), handle }, refresh),
        ];
        for body in bodies {
            for (source, destination) in [(A, B), ("10.1.2.2", ROUTER), (STRANGER, ROUTER)] {
                router.says(source, destination, &Message::new(64, body.clone()));
            }
        }
        std::thread::park_timeout(PAUSE / 10);
    });
}

fn repeated(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        router.listen();
        for _ in 0..50.min(router.recorded.len()) {
            let (source, destination, bytes) = &router.recorded[assault.below(router.recorded.len())];
            router.sends(*source, *destination, true, bytes);
            router.sends(*source, ip(ROUTER), false, bytes);
        }
        std::thread::park_timeout(PAUSE / 2);
    });
}

fn garbage(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        router.listen();
        for _ in 0..50 {
            let mut bytes = if router.recorded.is_empty() || assault.below(4) == 0 {
                (0..assault.below(200)).map(|_| assault.byte()).collect()
            } else {
                router.recorded[assault.below(router.recorded.len())].2.clone()
            };
            for _ in 0..assault.below(6) {
                if !bytes.is_empty() {
                    let at = assault.below(bytes.len());
                    bytes[at] = assault.byte();
                }
            }
            if bytes.len() > 4 {
                bytes[2..4].fill(0);
            }
            bytes.truncate(bytes.len() + 1 - assault.below(3).min(bytes.len()));
            router.sends(ip(STRANGER), ip(assault.one_of(&[B, ROUTER])), true, &bytes);
        }
        std::thread::park_timeout(PAUSE / 2);
    });
}

fn numbers(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        for _ in 0..50 {
            let epoch = assault.below(1 << 24) as u32;
            let list = (0..300).map(|_| assault.below(1 << 16) as u32).collect();
            let body = match assault.below(4) {
                0 => Body::Srefresh(vec![IdList { epoch, ids: Ids::Plain(list) }]),
                1 => Body::IntegrityChallenge(Challenge { key: 1, cookie: epoch.into() }),
                2 => Body::IntegrityResponse(Challenge { key: 1, cookie: epoch.into() }),
                _ => Body::Ack,
            };
            let mut message = Message::new(64, body);
            message.reduces_refreshes = assault.below(2) == 0;
            if matches!(message.body, Body::Ack) {
                let about = |id: u32| Acknowledgement { is_known: id.is_multiple_of(2), epoch, id };
                message.acknowledgements = (0..100).map(about).collect();
            }
            router.says(assault.one_of(&[STRANGER, "10.1.2.2", A]), ROUTER, &message);
        }
        std::thread::park_timeout(PAUSE / 2);
    });
}

/// A connection that has said hello.
fn welcome(router: &Router) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(router.net.socket("r1")).ok()?;
    stream.write_all(Request::Hello { version: 1 }.line().as_bytes()).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

fn silent_clients(router: &mut Router, assault: &mut Assault) {
    let mut held = Vec::new();
    assault.repeat(|assault| {
        let Some(mut client) = welcome(router) else { return };
        let line = Request::Status {}.line();
        let _some = client.write(&line.as_bytes()[..assault.below(line.len())]);
        held.push(client);
        if held.len() > 500 {
            held.swap_remove(assault.below(500));
        }
    });
}

fn slow_clients(router: &mut Router, assault: &mut Assault) {
    let mut held = Vec::new();
    let lines = Request::Status {}.line().repeat(10_000);
    assault.repeat(|assault| {
        let Some(mut client) = welcome(router) else { return };
        let _some = client.write(lines.as_bytes());
        held.push(client);
        // Some read a little.
        let at = assault.below(held.len());
        let _some = held[at].read(&mut [0; 4096]);
        if held.len() > 100 {
            held.swap_remove(assault.below(100));
        }
    });
}

fn strange_clients(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        let Some(mut client) = welcome(router) else { return };
        let mut line = announce(7, 5000, 1).line().into_bytes();
        for _ in 0..assault.below(5) {
            let at = assault.below(line.len());
            line[at] = assault.byte();
        }
        let _some = client.write_all(&line);
        let _some = client.write_all(&vec![b'x'; assault.below(20_000)]);
    });
}

fn reloads(router: &mut Router, assault: &mut Assault) {
    let file = router.net.describe("r1");
    let right = std::fs::read_to_string(&file).unwrap();
    assault.repeat(|assault| {
        match assault.below(4) {
            0 => std::fs::write(&file, &right).unwrap(),
            1 => std::fs::write(&file, "[[interface]]\nname = 7\n".repeat(1000)).unwrap(),
            2 => std::fs::write(&file, right.replace("share = 0.5", "share = 2")).unwrap(),
            _ => drop(std::fs::remove_file(&file)),
        }
        kill_process(router.pid(), Signal::HUP).unwrap();
        // It answers, so it has come to its loop.
        assert!(!router.net.status("r1").interfaces.is_empty());
    });
    std::fs::write(&file, &right).unwrap();
    kill_process(router.pid(), Signal::HUP).unwrap();
}

/// Runs `tc` at the router, as an operator would. It may be refused, such as when something is not there yet.
fn tc(router: &Router, arguments: &str) {
    let _refused = Command::new("tc")
        .args(["-n", router.net.node("r1").name()])
        .args(arguments.split_whitespace())
        .stderr(Stdio::null())
        .status();
}

fn taken_away(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|assault| {
        tc(
            router,
            assault.one_of(&[
                "qdisc del dev east root",
                "filter del dev east parent c071:",
                "class change dev east parent c071:1 classid c071:10 htb rate 8kbit",
                "qdisc del dev west root",
            ]),
        );
        let net = &router.net;
        eventually("it is installed again", || net.classes("r1", "east") == 1);
    });
}

fn replaced(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|_| {
        tc(router, "qdisc replace dev east root handle 7: pfifo limit 100");
        let net = &router.net;
        eventually("it is seen", || {
            net.status("r1").interfaces[1].problem.is_some() && net.reserved("r1", "east") == 0
        });
        tc(router, "qdisc del dev east root");
        eventually("it is back", || net.classes("r1", "east") == 1);
    });
}

fn rules(router: &mut Router, assault: &mut Assault) {
    let node = router.net.node("r1");
    assault.repeat(|assault| {
        let port = 5001 + assault.below(100);
        node.ip_batch(&format!("rule add ipproto udp dport {port} lookup 88")).unwrap();
        node.ip_batch("address del 10.1.3.1/24 dev south\naddress add 10.1.3.1/24 dev south").unwrap();
        node.ip_batch(&format!("rule del ipproto udp dport {port} lookup 88")).unwrap();
    });
}

fn killed(router: &mut Router, assault: &mut Assault) {
    assault.repeat(|_| {
        router.net.end("r1", Signal::KILL);
        router.start();
        let net = &router.net;
        eventually("its state is back", || net.classes("r1", "east") == 1);
    });
    // It ends on request, with all output unread, and starts again.
    let child = router.net.agents[Net::at("r1")].as_mut().unwrap();
    assert!(terminated(child).is_some(), "SIGTERM ends it");
    assert!(!router.net.tc("r1", "qdisc", "east").contains("htb"), "all is removed");
    router.start();
    router.small = router.memory().max(router.small);
}
