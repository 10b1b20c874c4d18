//! Notifications, received by net-snmp's `snmptrapd`.

use crate::common::{Host, PATIENCE, object, publish, row, violated, wait_until};
use cutline_testbed::{NetSnmpDaemon, free_address, net_snmp};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// Name of a notification.
fn kind(arc: u32) -> String {
    format!(".1.3.6.1.4.1.8072.9999.9999.2005.0.{arc}")
}

#[test]
fn a_violation_and_its_end_reach_the_managers() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7)]);
    host.wait_for_sockets(1);
    let [by_community, by_user] = [free_address(), free_address()];
    let plain = NetSnmpDaemon::start(
        "snmptrapd",
        host.folder.path(),
        "authCommunity log managers\n",
        &format!("udp:{by_community}"),
    );
    let folder = tempfile::tempdir().unwrap();
    let encrypted = NetSnmpDaemon::start(
        "snmptrapd",
        folder.path(),
        "createUser noc SHA-256 \"authentic password\" AES \"private password\"\nauthUser log noc priv\n",
        &format!("udp:{by_user}"),
    );
    for daemon in [&plain, &encrypted] {
        daemon.wait_for(&["NET-SNMP version"]);
    }
    let [auth, privacy, community] =
        [("auth", "authentic password"), ("privacy", "private password"), ("managers", "managers")]
            .map(|(name, secret)| host.secret(name, secret));
    let options = host.options(&format!(
        "[[user]]\nname = 'noc'\nauth-file = '{}'\nprivacy-file = '{}'\n\
         [[manager]]\naddress = '{by_community}'\ncommunity-file = '{}'\n\
         [[manager]]\naddress = '{by_user}'\nuser = 'noc'\n",
        auth.display(),
        privacy.display(),
        community.display(),
    ));
    let (_service, messages) = host.serve(&options);
    publish(&mut video, &[violated(7)]);
    for daemon in [&plain, &encrypted] {
        let line = daemon.wait_for(&[&kind(1)]);
        for part in ["\"video\"", "\"192.0.2.2:7\"", "80000", "123500", "INTEGER: 2"] {
            assert!(line.contains(part), "no {part} in {line}");
        }
    }
    publish(&mut video, &[row(7)]);
    for daemon in [&plain, &encrypted] {
        daemon.wait_for(&[&kind(2), "123500"]);
    }
    let mut refused = row(7);
    (refused.reservation, refused.refusal) = ("refused".to_owned(), Some("there is no room".to_owned()));
    publish(&mut video, &[refused]);
    for daemon in [&plain, &encrypted] {
        daemon.wait_for(&[&kind(3), "there is no room"]);
    }
    assert!(!messages.have("has not acknowledged"));
}

#[test]
fn a_notification_that_is_lost_is_sent_again() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7)]);
    host.wait_for_sockets(1);
    // A manager whose first datagrams are lost: it is a bare socket until it has seen two of them.
    let lossy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = lossy.local_addr().unwrap();
    let community = host.secret("managers", "managers");
    let lines = format!("[[manager]]\naddress = '{address}'\ncommunity-file = '{}'\n", community.display());
    let (_service, _) = host.serve(&host.options(&lines));
    publish(&mut video, &[violated(7)]);
    let mut datagram = [0; 2000];
    for _ in 0..2 {
        lossy.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
        let length = lossy.recv(&mut datagram).unwrap();
        assert!(datagram[..length].windows(8).any(|part| part == b"managers"));
    }
    drop(lossy);
    let daemon = NetSnmpDaemon::start(
        "snmptrapd",
        host.folder.path(),
        "authCommunity log managers\n",
        &format!("udp:{address}"),
    );
    daemon.wait_for(&[&kind(1)]);
}

/// A manager that acknowledges every inform of SNMPv2c until its receiver is dropped. The receiver gets the arc of the notification's type,
/// and the port of the socket's peer.
fn acknowledging() -> (SocketAddr, Receiver<(u8, String)>) {
    /// Tags of an inform and of a response (RFC 3416 section 3).
    const INFORM: u8 = 0xa6;
    const RESPONSE: u8 = 0xa2;
    /// End of the name of a type, without its last arc: 2005.0.
    const TYPES: &[u8] = &[0x8f, 0x55, 0];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut datagram = [0; 2000];
        while let Ok((length, from)) = socket.recv_from(&mut datagram) {
            let message = &mut datagram[..length];
            let behind =
                |part: &[u8]| message.windows(part.len()).position(|it| it == part).unwrap() + part.len();
            let kind = message[behind(TYPES)];
            let port = message[behind(b"192.0.2.2:")..].iter().take_while(|byte| byte.is_ascii_digit());
            let port = port.map(|digit| char::from(*digit)).collect();
            // A response repeats the inform, whose status is that of success. Its tag is behind the community.
            let tag = behind(b"managers");
            assert_eq!(message[tag], INFORM);
            message[tag] = RESPONSE;
            socket.send_to(message, from).unwrap();
            if sender.send((kind, port)).is_err() {
                return;
            }
        }
    });
    (address, receiver)
}

/// Waits for the informs of a type about so many sockets.
fn wait_for_informs(receiver: &Receiver<(u8, String)>, kind: u8, most: usize) {
    let (end, mut ports) = (Instant::now() + PATIENCE, BTreeSet::new());
    while ports.len() < most {
        let left = end.saturating_duration_since(Instant::now());
        let inform = receiver.recv_timeout(left);
        let (found, port) = inform.unwrap_or_else(|_| panic!("{} of {most} informs", ports.len()));
        if found == kind {
            ports.insert(port);
        }
    }
}

/// More notifications than are sent at a time are due in one second. One of the managers is away.
#[test]
fn many_notifications_reach_every_manager_that_is_there() {
    const MANY: u64 = 700;
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &(1..=MANY).map(row).collect::<Vec<_>>());
    host.wait_for_sockets(MANY);
    let (here, informs) = acknowledging();
    let (there, more_informs) = acknowledging();
    // It receives nothing, and keeps the port.
    let away = UdpSocket::bind("127.0.0.1:0").unwrap();
    let community = host.secret("managers", "managers");
    let manager = |address: SocketAddr| {
        format!("[[manager]]\naddress = '{address}'\ncommunity-file = '{}'\n", community.display())
    };
    let lines = [here, away.local_addr().unwrap(), there].map(manager).concat();
    let (_service, messages) = host.serve(&host.options(&lines));
    publish(&mut video, &(1..=MANY).map(violated).collect::<Vec<_>>());
    for informs in [&informs, &more_informs] {
        wait_for_informs(informs, 1, MANY as usize);
    }
    assert!(!messages.have("dropped"));
    // 256 are being sent to the manager that is away, and a thousand wait.
    publish(&mut video, &(1..=MANY).map(row).collect::<Vec<_>>());
    for informs in [&informs, &more_informs] {
        wait_for_informs(informs, 2, MANY as usize);
    }
    let of_it = format!("for manager {} are dropped", away.local_addr().unwrap());
    wait_until(|| messages.have(&of_it));
    assert!(messages.count("are dropped") == messages.count(&of_it));
}

/// The manager needs no agent that answers.
#[test]
fn a_manager_is_notified_without_an_agent() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7)]);
    host.wait_for_sockets(1);
    let (address, informs) = acknowledging();
    let community = host.secret("managers", "managers");
    let lines = format!(
        "listen = 'off'\n[[manager]]\naddress = '{address}'\ncommunity-file = '{}'\n",
        community.display()
    );
    let (service, _) = host.serve(&host.options(&lines));
    assert_eq!(service.address(), None);
    publish(&mut video, &[violated(7)]);
    wait_for_informs(&informs, 1, 1);
}

#[test]
fn one_community_reads_and_notifies() {
    let host = Host::start();
    let mut video = host.publisher("video");
    publish(&mut video, &[row(7)]);
    host.wait_for_sockets(1);
    let address = free_address();
    let daemon = NetSnmpDaemon::start(
        "snmptrapd",
        host.folder.path(),
        "authCommunity log shared\n",
        &format!("udp:{address}"),
    );
    daemon.wait_for(&["NET-SNMP version"]);
    let file = host.secret("shared", "shared");
    let file = file.display();
    let lines =
        format!("community-file = '{file}'\n[[manager]]\naddress = '{address}'\ncommunity-file = '{file}'\n");
    let (service, _) = host.serve(&host.options(&lines));
    let at = service.address().unwrap().to_string();
    let answer = net_snmp("snmpget", &["-v2c", "-c", "shared", &at, &object("2.1.5.1.7")]);
    assert!(answer.text.contains("\"video\""), "{}", answer.text);
    publish(&mut video, &[violated(7)]);
    daemon.wait_for(&[&kind(1)]);
}
