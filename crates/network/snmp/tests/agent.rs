//! The agent, asked by the programs of net-snmp.

use crate::common::{COMMUNITY, Host, object, publish, row, violated, wait_until};
use cutline_monitor::{KernelQueueEntry, KernelQueueReading};
use cutline_publish::{LimitRow, ManagerRequest, RowKind, SocketRow};
use cutline_router_service::QdiscDocument;
use cutline_snmp::{SnmpError, SnmpOptions, SnmpService};
use cutline_testbed::net_snmp;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Returns the lines of an answer: names and values.
fn pairs(text: &str) -> Vec<(Vec<u32>, String)> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(" = ")?;
        let arcs: Option<Vec<u32>> = name.strip_prefix('.')?.split('.').map(|arc| arc.parse().ok()).collect();
        Some((arcs?, value.to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

#[test]
fn a_manager_reads_the_rows_of_applications() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7), violated(9)]);
    host.wait_for_sockets(2);
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap().to_string();
    let get = |below: &str| {
        let answer = net_snmp("snmpget", &["-v2c", "-c", COMMUNITY, &at, &object(below)]);
        assert!(answer.is_ok, "{}", answer.text);
        answer.text.split_once(" = ").unwrap().1.trim().to_owned()
    };
    assert_eq!(get("1.2.0"), "Gauge32: 2");
    assert_eq!(get("1.5.0"), "Gauge32: 1");
    assert_eq!(get("2.1.5.1.7"), "STRING: \"video\"");
    assert_eq!(get("2.1.3.1.7"), format!("Gauge32: {}", std::process::id()));
    assert_eq!(get("2.1.9.1.7"), "Gauge32: 1700000001");
    assert_eq!(get("2.1.10.1.7"), "INTEGER: 2");
    // Direction 2 receives.
    assert_eq!(get("3.1.8.1.7.2"), "Counter64: 5000000000");
    assert_eq!(get("3.1.14.1.7.2"), "Counter64: 1500000");
    assert_eq!(get("3.1.15.1.7.2"), "Gauge32: 2500");
    assert_eq!(get("3.1.18.1.7.2"), "Gauge32: 12500");
    assert_eq!(get("3.1.21.1.7.2"), "Gauge32: 31250");
    // The limit of delay is the second measure.
    assert_eq!(get("4.1.3.1.7.2.2"), "Gauge32: 80000");
    assert_eq!(get("5.1.3.1.9.2.2"), "Gauge32: 123500");
    assert_eq!(get("5.1.4.1.9.2.2"), "INTEGER: 2");
    assert_eq!(get("6.1.2.1.7.2.2"), "Gauge32: 5000");
    assert_eq!(get("6.1.3.1.7.2.3"), "Counter64: 4");
    for (below, expected) in [
        ("5.1.3.1.7.2.2", "No Such Instance"),
        ("2.1.12.1.7", "No Such Instance"),
        ("2.1.99.1.7", "No Such Object"),
        ("99.1.0", "No Such Object"),
    ] {
        assert!(get(below).starts_with(expected), "{below}: {}", get(below));
    }
}

/// Its index is 2^31 and the number of the interface. Users at this host see it with the community `public`.
#[test]
fn a_manager_reads_the_queues_in_the_kernel() {
    let host = Host::with_kernel_queues(|| {
        let mut queue = QdiscDocument { interface: "eth0".to_owned(), ..QdiscDocument::default() };
        queue.statistics.name.push_str("eth0");
        queue.statistics.queue.push_str("sieve");
        queue.statistics.sent.packets = 80;
        let entry = KernelQueueEntry { index: 2, queue: queue.into() };
        KernelQueueReading { queues: vec![entry], problem: None }
    });
    let (service, _) = host.serve(&host.options(""));
    let at = service.address().unwrap().to_string();
    let get = |below: &str| {
        let answer = net_snmp("snmpget", &["-v2c", "-c", "public", &at, &object(below)]);
        answer.text.split_once(" = ").map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    wait_until(|| get("1.11.0") == "Gauge32: 1");
    assert_eq!(get("8.1.4.2147483650.1"), "STRING: \"eth0\"");
    assert_eq!(get("8.1.6.2147483650.1"), "STRING: \"sieve\"");
    assert_eq!(get("8.1.9.2147483650.1"), "Counter64: 80");
    for absent in ["8.1.3.2147483650.1", "8.1.33.2147483650.1"] {
        assert!(get(absent).starts_with("No Such Instance"), "{absent}: {}", get(absent));
    }
    let walk = net_snmp("snmpbulkwalk", &["-v2c", "-c", "public", &at, &object("8")]);
    assert!(walk.is_ok && walk.text.lines().count() > 10, "{}", walk.text);
}

#[test]
fn walks_find_every_value_once_in_order() {
    let host = Host::start();
    let mut video = host.publisher("video");
    let rows: Vec<_> =
        (1..=40).map(|number| if number % 2 == 0 { row(number) } else { violated(number) }).collect();
    publish(&mut video, &rows);
    let mut call = host.publisher("call");
    publish(&mut call, &[row(3)]);
    host.wait_for_sockets(41);
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap().to_string();
    let walk = |program: &str, more: &[&str]| {
        let arguments = [&["-v2c", "-c", COMMUNITY], more, &[&at, ".1.3.6.1.4.1"]].concat();
        let answer = net_snmp(program, &arguments);
        assert!(answer.is_ok, "{}", &answer.text[..answer.text.len().min(300)]);
        pairs(&answer.text)
    };
    let by_bulk = walk("snmpbulkwalk", &["-Cr50"]);
    assert!(by_bulk.len() > 41 * 50, "{}", by_bulk.len());
    assert!(by_bulk.is_sorted_by(|a, b| a.0 < b.0));
    let one_by_one = walk("snmpwalk", &[]);
    let names = |of: &[(Vec<u32>, String)]| of.iter().map(|pair| pair.0.clone()).collect::<Vec<_>>();
    assert!(names(&one_by_one) == names(&by_bulk), "{} {}", one_by_one.len(), by_bulk.len());
    let sockets = by_bulk
        .iter()
        .filter(|(name, _)| name.starts_with(&[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 2005, 1, 2, 1, 6]));
    assert_eq!(sockets.count(), 41);
    let system = net_snmp("snmpwalk", &["-v2c", "-c", COMMUNITY, &at, ".1.3.6.1.2.1.1"]);
    assert_eq!(pairs(&system.text).len(), 7, "{}", system.text);
}

#[test]
fn a_user_is_authenticated_and_sees_the_own_view() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7)]);
    host.wait_for_sockets(1);
    let [auth, privacy] = [("auth", "authentic password"), ("privacy", "private password")]
        .map(|(name, secret)| host.secret(name, secret));
    let user = |name: &str, auth_protocol: &str, privacy_protocol: &str, sees: &str| {
        format!(
            "[[user]]\nname = '{name}'\nauth = '{auth_protocol}'\nauth-file = '{}'\nprivacy = '{privacy_protocol}'\nprivacy-file = '{}'\nsees = '{sees}'\n",
            auth.display(),
            privacy.display()
        )
    };
    let lines = [
        user("noc", "sha256", "aes128", "all"),
        user("deep", "sha512", "aes256", "all"),
        user("guest", "sha224", "aes192", "queues"),
    ];
    // The agent may be reachable from other hosts: users are authenticated.
    let (service, _) = host.serve(&host.options(&format!("listen = '0.0.0.0:0'\n{}", lines.concat())));
    let at = format!("127.0.0.1:{}", service.address().unwrap().port());
    let get = |user: &str, protocols: [&str; 2], password: &str, below: &str| {
        let credentials = [
            "-v3",
            "-l",
            "authPriv",
            "-u",
            user,
            "-a",
            protocols[0],
            "-A",
            password,
            "-x",
            protocols[1],
            "-X",
            "private password",
        ];
        net_snmp("snmpget", &[&credentials[..], &[&at, &object(below)]].concat())
    };
    let right = "authentic password";
    for (user, protocols) in [("noc", ["SHA-256", "AES"]), ("deep", ["SHA-512", "AES-256"])] {
        let answer = get(user, protocols, right, "2.1.5.1.7");
        assert!(answer.text.contains("STRING: \"video\""), "{user}: {}", answer.text);
    }
    let answer = get("guest", ["SHA-224", "AES-192"], right, "1.2.0");
    assert!(answer.text.contains("Gauge32: 1"), "{}", answer.text);
    let answer = get("guest", ["SHA-224", "AES-192"], right, "2.1.5.1.7");
    assert!(answer.text.contains("No Such Object"), "{}", answer.text);
    for (user, password) in [("noc", "another password"), ("nobody", right)] {
        let answer = get(user, ["SHA-256", "AES"], password, "1.2.0");
        assert!(!answer.is_ok && !answer.text.contains("Gauge32"), "{user}: {}", answer.text);
    }
    // Neither a message without authentication or encryption is answered, nor a community.
    let bare = [
        vec!["-v3", "-l", "noAuthNoPriv", "-u", "noc"],
        vec!["-v3", "-l", "authNoPriv", "-u", "noc", "-a", "SHA-256", "-A", right],
        vec!["-v2c", "-c", "public"],
    ];
    for credentials in bare {
        let name = object("1.2.0");
        let arguments = [&credentials[..], &["-t", "1", "-r", "0", &at, &name]].concat();
        let answer = net_snmp("snmpget", &arguments);
        assert!(!answer.text.contains("Gauge32: 1"), "{credentials:?}: {}", answer.text);
    }
}

#[test]
fn managers_at_this_host_see_no_single_programs() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[violated(7)]);
    host.wait_for_sockets(1);
    let (service, _) = host.serve(&host.options(""));
    let at = service.address().unwrap().to_string();
    let answer = net_snmp("snmpbulkwalk", &["-v2c", "-c", "public", &at, ".1.3.6.1.4.1"]);
    let names: Vec<Vec<u32>> = pairs(&answer.text).into_iter().map(|pair| pair.0).collect();
    assert_eq!(names.len(), 11, "{}", answer.text);
    assert!(!answer.text.contains("video"), "{}", answer.text);
}

#[test]
fn a_community_may_not_write() {
    let host = Host::start();
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap().to_string();
    for (name, kind, value) in
        [(object("1.2.0"), "u", "5"), (".1.3.6.1.2.1.1.5.0".to_owned(), "s", "another")]
    {
        let answer = net_snmp("snmpset", &["-v2c", "-c", COMMUNITY, &at, &name, kind, value]);
        assert!(!answer.is_ok, "{}", answer.text);
        assert!(
            ["noAccess", "notWritable", "authorizationError"].iter().any(|error| answer.text.contains(error)),
            "{}",
            answer.text
        );
    }
}

#[test]
fn a_manager_weakens_limits_where_user_and_owner_allow_it() {
    let host = Host::start();
    let mut video = host.publisher("video");
    let mut managed = SocketRow { managed: true, ..row(7) };
    let jitter = LimitRow { measure: "jitter".to_owned(), worst: 12.3454, ..LimitRow::default() };
    managed.receive.limits.push(jitter);
    publish(&mut video, &[managed.clone(), row(8)]);
    host.wait_for_sockets(2);
    let (stop, stopped) = std::sync::mpsc::channel();
    let (sender, requests) = std::sync::mpsc::channel();
    let publishes = std::thread::spawn(move || {
        let put = |snapshot: &mut cutline_publish::RowSnapshot<'_>| {
            for row in [&managed, &row(8)] {
                snapshot.put(RowKind::Socket, row.socket, row);
            }
        };
        let pause = |_: &mut cutline_publish::Publisher, _| {
            Ok(stopped.recv_timeout(Duration::from_millis(20)).is_err())
        };
        video.run(put, pause, |request| sender.send(request).unwrap()).unwrap();
    });
    let auth = host.secret("auth", "authentic password");
    let user = |name: &str, may: bool| {
        format!("[[user]]\nname = '{name}'\nauth-file = '{}'\nmay-set = {may}\n", auth.display())
    };
    let lines = [user("operator", true), user("reader", false)].concat();
    let (service, messages) = host.serve(&host.options(&lines));
    let at = service.address().unwrap().to_string();
    let set = |user: &str, values: &[[&str; 3]]| {
        let credentials =
            ["-v3", "-l", "authNoPriv", "-u", user, "-a", "SHA-256", "-A", "authentic password", at.as_str()];
        let names: Vec<String> = values.iter().map(|[below, ..]| object(below)).collect();
        let pairs =
            names.iter().zip(values).flat_map(|(name, [_, kind, value])| [name.as_str(), kind, value]);
        net_snmp("snmpset", &credentials.into_iter().chain(pairs).collect::<Vec<_>>())
    };
    // The limit of the delay at which socket 7 receives is 80 ms.
    let delay = "4.1.3.1.7.2.2";
    for (user, values, error) in [
        ("reader", vec![[delay, "u", "120000"]], "authorizationError"),
        // Another specification could have this limit, but the present one demands less.
        ("operator", vec![[delay, "u", "60000"]], "inconsistentValue"),
        // No specification can have these.
        ("operator", vec![[delay, "u", "0"]], "wrongValue"),
        ("operator", vec![[delay, "u", "3600000001"]], "wrongValue"),
        ("operator", vec![["4.1.3.1.7.2.5", "u", "100001"]], "wrongValue"),
        ("operator", vec![["2.1.23.1.7", "i", "3"]], "wrongValue"),
        ("operator", vec![[delay, "s", "much"]], "wrongType"),
        ("operator", vec![["4.1.3.1.8.2.2", "u", "120000"]], "noAccess"),
        ("operator", vec![["4.1.3.1.9.2.2", "u", "120000"]], "noCreation"),
        ("operator", vec![["4.1.2.1.7.2.2", "u", "120000"]], "noAccess"),
        // The second one is impossible, so the first one is not carried out.
        ("operator", vec![[delay, "u", "120000"], ["4.1.3.1.8.2.2", "u", "120000"]], "noAccess"),
    ] {
        let answer = set(user, &values);
        assert!(!answer.is_ok && answer.text.contains(error), "{values:?}: {}", answer.text);
    }
    let answer = set("operator", &[[delay, "u", "120000"], ["2.1.23.1.7", "i", "2"]]);
    assert!(answer.is_ok, "{}", answer.text);
    let mut got: Vec<ManagerRequest> =
        (0..2).map(|_| requests.recv_timeout(crate::common::PATIENCE).unwrap()).collect();
    got.sort_by_key(|request| matches!(request, ManagerRequest::Renegotiate { .. }));
    let limit = ManagerRequest::Limit { socket: 7, receive: true, measure: "delay".to_owned(), worst: 120.0 };
    assert_eq!(got, [limit, ManagerRequest::Renegotiate { socket: 7 }]);
    assert!(messages.have("user operator at 127.0.0.1"));
    // The limit of 12.3454 ms is read as 12345 us. Setting that value is no demand for less.
    let answer = set("operator", &[["4.1.3.1.7.2.4", "u", "12345"]]);
    assert!(answer.is_ok, "{}", answer.text);
    let same =
        ManagerRequest::Limit { socket: 7, receive: true, measure: "jitter".to_owned(), worst: 12.3454 };
    assert_eq!(requests.recv_timeout(crate::common::PATIENCE).unwrap(), same);
    stop.send(()).unwrap();
    publishes.join().unwrap();
}

#[test]
fn random_requests_do_not_disturb_the_agent() {
    let host = Host::start();
    let auth = host.secret("auth", "authentic password");
    let user = format!("[[user]]\nname = 'noc'\nauth-file = '{}'\n", auth.display());
    let community = host.secret("community", COMMUNITY);
    let (service, _) =
        host.serve(&host.options(&format!("community-file = '{}'\n{user}", community.display())));
    let at = service.address().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A request for the next value behind 1.3, the discovery of the engine (RFC 3414, section 4), and everything that is one byte away
    // from them.
    let next = b"\x30\x28\x02\x01\x01\x04\x10secret community\xa1\x11\x02\x01\x05\x02\x01\x00\x02\x01\x00\x30\x06\x30\x04\x06\x00\x05\x00";
    let discovery =
        b"\x30\x3e\x02\x01\x03\x30\x11\x02\x04\x11\x22\x33\x44\x02\x03\x00\xff\xe3\x04\x01\x04\x02\x01\x03\
        \x04\x10\x30\x0e\x04\x00\x02\x01\x00\x02\x01\x00\x04\x00\x04\x00\x04\x00\
        \x30\x14\x04\x00\x04\x00\xa0\x0e\x02\x04\x11\x22\x33\x44\x02\x01\x00\x02\x01\x00\x30\x00";
    for request in [&next[..], discovery] {
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        own.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
        own.send_to(request, at).unwrap();
        assert!(own.recv(&mut [0; 2000]).is_ok(), "the request itself is answered");
        for at_byte in 0..request.len() {
            // Of one source so many at a time are not dropped unread.
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for change in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut changed = request.to_vec();
                changed[at_byte] = change;
                socket.send_to(&changed, at).unwrap();
                socket.send_to(&changed[..at_byte], at).unwrap();
            }
        }
    }
    socket.send_to(&vec![0x30; 65_000], at).unwrap();
    let answer = net_snmp("snmpget", &["-v2c", "-c", COMMUNITY, &at.to_string(), &object("1.2.0")]);
    assert!(answer.text.contains("Gauge32: 0"), "{}", answer.text);
    let user = ["-v3", "-l", "authNoPriv", "-u", "noc", "-a", "SHA-256", "-A", "authentic password"];
    let answer = net_snmp("snmpget", &[&user[..], &[&at.to_string(), &object("1.2.0")]].concat());
    assert!(answer.text.contains("Gauge32: 0"), "{}", answer.text);
}

/// GETBULK of 32767 values behind 1.3.
const GREEDY: &[u8] = b"\x30\x2a\x02\x01\x01\x04\x10secret community\xa5\x13\x02\x01\x05\x02\x01\x00\x02\x02\x7f\xff\x30\x07\x30\x05\x06\x01\x2b\x05\x00";

/// Returns the number of values of sockets that a walk finds.
fn values_of_sockets(at: SocketAddr) -> usize {
    let arguments = ["-v2c", "-c", COMMUNITY, "-Cr50", &at.to_string(), &object("2")];
    let answer = net_snmp("snmpbulkwalk", &arguments);
    assert!(answer.is_ok, "{}", &answer.text[..answer.text.len().min(300)]);
    pairs(&answer.text).len()
}

/// Eight managers walk the sockets, and another one asks a hundred times for as much as there is, and reads no answer. Every walk finds
/// all, another manager gets an answer, and rows are as new as before.
#[test]
fn storms_of_walks_do_not_block_another_manager() {
    let host = Host::start();
    let mut video = host.publisher("video");
    let rows: Vec<_> = (1..=200).map(violated).collect();
    publish(&mut video, &rows);
    host.wait_for_sockets(200);
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap();
    let walk = || values_of_sockets(at);
    let alone = walk();
    std::thread::scope(|scope| {
        let greedy = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Answers stay in the socket, and then are dropped.
        (0..100).for_each(|_| drop(greedy.send_to(GREEDY, at)));
        let walks: Vec<_> = (0..8).map(|_| scope.spawn(walk)).collect();
        // Rows that come meanwhile are shown meanwhile.
        publish(&mut video, &rows[..100]);
        host.wait_for_sockets(100);
        let answer = net_snmp("snmpget", &["-v2c", "-c", COMMUNITY, &at.to_string(), &object("1.2.0")]);
        assert!(answer.text.contains("Gauge32: "), "{}", answer.text);
        // Values of rows that have gone are missing in a walk that was under way.
        let found: Vec<usize> = walks.into_iter().map(|walk| walk.join().unwrap()).collect();
        assert!(found.iter().all(|found| (alone / 2..=alone).contains(found)), "{found:?} of {alone}");
    });
    // The rows that are answered from are at most half a second old.
    let number = || net_snmp("snmpget", &["-v2c", "-c", COMMUNITY, &at.to_string(), &object("1.2.0")]).text;
    wait_until(|| number().contains("Gauge32: 100"));
    assert_eq!(walk(), alone / 2);
}

/// A manager reads all values while a source floods the agent with large, unauthorised, malformed, empty and oversized requests.
#[test]
fn an_endless_flood_does_not_block_a_manager() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &(1..=200).map(violated).collect::<Vec<_>>());
    host.wait_for_sockets(200);
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap();
    let walk = || values_of_sockets(at);
    let alone = walk();
    let mut wrong = GREEDY.to_vec();
    wrong[7..13].copy_from_slice(b"public");
    for (flood, is_answered) in [
        (GREEDY.to_vec(), true),
        (wrong, false),
        (vec![0x30; 100], false),
        (Vec::new(), false),
        (vec![0x30; 60_000], false),
    ] {
        let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let answers = std::thread::scope(|scope| {
            let floods = scope.spawn(|| {
                let (mut buffer, mut answers) = ([0; 2048], 0);
                while !is_over.load(Ordering::Relaxed) {
                    let _has_room = socket.send_to(&flood, at);
                    sent.fetch_add(1, Ordering::Relaxed);
                    answers += u64::from(socket.recv(&mut buffer).is_ok());
                }
                answers
            });
            wait_until(|| sent.load(Ordering::Relaxed) > 10_000);
            let found = walk();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(found, alone, "{:.10?}", &flood[..flood.len().min(10)]);
            floods.join().unwrap()
        });
        assert_eq!(answers > 0, is_answered, "{answers} answers");
    }
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let host = Host::start();
    let (service, _) = host.serve(&host.options(""));
    let taken = service.address().unwrap();
    let start = |options| SnmpService::start(&options, Arc::clone(&host.monitored), drop).unwrap_err();
    let error = start(host.options(&format!("listen = '{taken}'")));
    assert!(matches!(error, SnmpError::Listen { .. }), "{error}");
    let short = host.secret("short", "seven77");
    let user = format!("[[user]]\nname = 'noc'\nauth-file = '{}'", short.display());
    let error = start(host.options(&user)).to_string();
    assert!(error.contains("short") && error.contains("fewer than 8 characters"), "{error}");
    let twice = SnmpOptions::parse(&format!("{user}\n{user}"), "snmp.toml").unwrap_err().to_string();
    assert!(twice.contains("two [[user]] have the name `noc`"), "{twice}");
    let open = host.folder.path().join("open");
    std::fs::write(&open, "everyone may read this").unwrap();
    let error = start(host.options(&format!("community-file = '{}'", open.display()))).to_string();
    assert!(error.contains("others may read"), "{error}");
}
