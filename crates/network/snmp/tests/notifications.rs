//! Notifications, received by net-snmp's `snmptrapd`.

use crate::common::{Host, object, publish, row, violated};
use cutline_testbed::{NetSnmpDaemon, free_address, net_snmp};
use std::net::UdpSocket;

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
