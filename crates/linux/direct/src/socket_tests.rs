use super::*;
use crate::inbox::{DirectInbox, PeekedFrame};
use cutline_sys::datagrams::Wait;
use cutline_sys::namespace::Namespace;
use cutline_testbed::{may_make_namespaces, patiently};
use cutline_wire::direct::{DirectHeader, HEADER, LONGEST_MESSAGE};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::process::Command;

/// Returns the loopback, whose frames have the link address 0; `None` if this process may not open packet sockets.
fn loopback() -> Option<u32> {
    match open_without_headers() {
        Ok(_) => interface::index("lo").ok(),
        Err(error) => {
            cutline_testbed::skip(error, "run it as root");
            None
        }
    }
}

/// Binds a port that has just been released. A child that another test has started keeps copies of this process's descriptors until it
/// executes its program.
fn bind_released(lo: u32, port: u16) -> Result<DirectSocket, SysError> {
    patiently(|| DirectSocket::bind(lo, port), |error| error.to_string().contains("in use"))
}

/// Receives until so many messages have come.
fn receive(inbox: &mut DirectInbox, socket: &DirectSocket, count: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while messages.len() < count {
        assert!(
            wait(&mut [PollFd::new(socket, PollFlags::IN)], Duration::from_secs(60)).unwrap(),
            "frames come"
        );
        inbox.fill(socket, Wait::No).unwrap();
        messages.extend(inbox.messages().iter().map(|message| message.bytes.clone()));
    }
    messages
}

fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(13) ^ seed).collect()
}

#[test]
fn the_error_names_the_missing_capability_and_the_port_is_free() {
    const PORT: u16 = 47_011;
    let Some(lo) = loopback() else { return };
    // Capabilities are of a thread.
    std::thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, sets).unwrap();
        let refused = DirectSocket::bind(lo, PORT).unwrap_err().to_string();
        assert!(refused.contains("a packet socket cannot be opened: not permitted"), "{refused}");
        assert!(refused.contains("CAP_NET_RAW"), "{refused}");
    })
    .join()
    .unwrap();
    bind_released(lo, PORT).unwrap();
}

#[test]
fn messages_of_all_lengths_go_both_ways_between_a_listener_and_two_peers() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    DirectInbox::prepare(&listener).unwrap();
    let peers = [0; 2].map(|_| DirectSocket::connect(listener.local()).unwrap());
    let mut inbox = DirectInbox::default();
    let before = cutline_sys::now();
    for (seed, length) in [0, 1, 1000, 70, LONGEST_MESSAGE].into_iter().enumerate() {
        for peer in &peers {
            let sent = message(length, seed as u8);
            assert_eq!(peer.send(&[&sent[..length / 2], &sent[length / 2..]]).unwrap(), length);
            assert_eq!(receive(&mut inbox, &listener, 1), [sent]);
            let [received] = inbox.messages() else { panic!("there is one") };
            assert_eq!(received.from, peer.local());
            assert!(received.at >= before && received.at <= cutline_sys::now());
        }
    }
    for (seed, peer) in (0..).zip(&peers) {
        listener.send_to(&[&message(9000, seed)], peer.local()).unwrap();
    }
    for (seed, peer) in (0..).zip(&peers) {
        assert_eq!(receive(&mut DirectInbox::default(), peer, 1), [message(9000, seed)]);
    }
    let too_long = peers[0].send(&[&vec![0; LONGEST_MESSAGE + 1]]).unwrap_err();
    assert_eq!(too_long.to_string(), "a message of 66561 B: at most 66560 B");
}

#[test]
fn a_port_is_in_use_as_long_as_its_listener_or_a_connection_is_there() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    let (port, to) = (listener.local().port, listener.local());
    let peer = DirectSocket::connect(to).unwrap();
    let accepted = listener.accept(peer.local()).unwrap();
    drop(listener);
    let error = DirectSocket::bind(lo, port).unwrap_err().to_string();
    assert!(error.contains(&format!("port {port} ")), "{error}");
    drop(accepted);
    bind_released(lo, port).unwrap();
}

/// Every message comes once, to the listener or to the socket of its sender.
#[test]
fn messages_around_the_accepting_of_a_peer_come_once() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    let [peer, other] = [0; 2].map(|_| DirectSocket::connect(listener.local()).unwrap());
    let (mut before, mut after) = (DirectInbox::default(), DirectInbox::default());
    let mut received = Vec::new();
    let mut sent = 0_u8;
    let mut send = |count: u8| {
        for _ in 0..count {
            peer.send(&[&[sent]]).unwrap();
            sent += 1;
        }
    };
    send(3);
    received.extend(receive(&mut before, &listener, 3));
    // The peer is accepted while messages are in the listener's queue, and some come to both queues.
    send(2);
    let open = DirectSocket::open(lo, &lock(&listener.port), Some(peer.local())).unwrap();
    send(2);
    lock(&listener.excluded).push(peer.local());
    listener.filter().unwrap();
    received.extend(receive(&mut before, &listener, 4));
    after.take_over(&mut before, peer.local(), listener.local().port);
    send(3);
    other.send(&[b"other"]).unwrap();
    received.extend(receive(&mut after, &open, 3));
    let all: Vec<_> = (0..10).map(|number| vec![number]).collect();
    assert_eq!(received, all);
    assert_eq!(receive(&mut before, &listener, 1), [b"other"]);
    // When the socket of the peer is gone, the listener receives its messages.
    listener.release(peer.local());
    send(1);
    assert_eq!(receive(&mut before, &listener, 1), [[10]]);
}

#[test]
fn peeking_removes_no_message_and_a_closed_socket_receives_none() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    let peer = DirectSocket::connect(listener.local()).unwrap();
    let socket = listener.accept(peer.local()).unwrap();
    let mut inbox = DirectInbox::default();
    assert_eq!(inbox.peek(&socket).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    peer.send(&[b"short"]).unwrap();
    for _ in 0..2 {
        assert_eq!(inbox.peek(&socket).unwrap(), PeekedFrame::Message(b"short"));
    }
    assert_eq!(inbox.fill_one(&socket).unwrap(), 1);
    peer.mtu.store(1500, Ordering::Relaxed);
    peer.send(&[&[7; 2000]]).unwrap();
    assert_eq!(inbox.peek(&socket).unwrap(), PeekedFrame::Part);
    assert_eq!([inbox.fill_one(&socket).unwrap(), inbox.fill_one(&socket).unwrap()], [0, 1]);
    // A frame that is none: its payload ends before its header says.
    let header = DirectHeader {
        flow: DirectFlow { destination: listener.local().port, source: peer.local().port },
        hint: None,
        number: 1,
        total: 100,
        offset: 0,
        length: 100,
    };
    let mut frame = Vec::new();
    header.write(&mut frame);
    assert_eq!(frame.len(), HEADER);
    send_to(&peer, (lo, ETHERTYPE, [0; 6]), &[&frame]).unwrap();
    assert_eq!(inbox.peek(&socket).unwrap(), PeekedFrame::Malformed);
    assert_eq!((inbox.fill_one(&socket).unwrap(), inbox.stats().malformed), (0, 1));
    socket.close().unwrap();
    peer.send(&[b"late"]).unwrap();
    assert_eq!(inbox.fill(&socket, Wait::No).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn messages_lost_in_a_full_buffer_are_counted() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 4096).unwrap();
    let dropped = DirectInbox::prepare(&listener).unwrap();
    let peer = DirectSocket::connect(listener.local()).unwrap();
    let mut inbox = DirectInbox::new(dropped);
    for number in 0..100 {
        peer.send(&[&[number; 500]]).unwrap();
    }
    let mut taken = 0;
    while inbox.fill(&listener, Wait::No).is_ok() {
        taken += inbox.messages().len() as u32;
    }
    assert!((1..100).contains(&taken), "{taken}");
    peer.send(&[b"last"]).unwrap();
    inbox.fill(&listener, Wait::No).unwrap();
    assert_eq!(inbox.messages()[0].overflowed, 100 - taken);
}

#[test]
fn a_hint_is_in_frames_and_the_priority_follows() {
    let Some(lo) = loopback() else { return };
    let listener = DirectSocket::bind(lo, 0).unwrap();
    let peer = DirectSocket::connect(listener.local()).unwrap();
    for (level, expected) in [(1, 6), (8, 4), (12, 0), (16, 2)] {
        let hint = Some(Hint::from_level(level));
        peer.set_hint(hint).unwrap();
        assert_eq!(peer.hint(), hint);
        assert_eq!(SO_PRIORITY.get(&peer).unwrap(), expected);
        peer.send(&[&[]]).unwrap();
        let mut frame = [0; 64];
        rustix::net::recv(&listener, &mut frame[..], rustix::net::RecvFlags::empty()).unwrap();
        assert_eq!(DirectHeader::read(&frame).unwrap().0.hint.map(u16::from), Some(level));
    }
}

/// Frames wait at an interface of 8 kbit/s. A message of eleven frames is refused before its first one when there is no room for all.
#[test]
fn a_message_of_several_frames_begins_only_when_there_is_room_for_them() {
    if !may_make_namespaces("sudo -E cargo test -p cutline-direct socket::") {
        return;
    }
    let namespace = Namespace::create("dr").unwrap();
    namespace.ip_batch("link add east type veth peer name west\nlink set east up\nlink set west up").unwrap();
    let arguments = "qdisc add dev east root tbf rate 8kbit burst 2000 limit 10000000";
    let output =
        Command::new("tc").args(["-n", namespace.name()]).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    namespace
        .within(|| {
            let interface = interface::index("east").unwrap();
            let peer = DirectAddress { interface, link: [2, 0, 0, 0, 0, 1], port: 7000 };
            let socket = DirectSocket::connect(peer).unwrap();
            let block = [0; 15_000];
            let mut sent = 0;
            let refused = loop {
                match socket.send(&[&block]) {
                    Ok(_) => sent += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock, "{refused}");
            assert!(sent > 0 && !socket.has_room(Duration::ZERO).unwrap(), "{sent}");
            socket.send(&[b"short"]).unwrap();
        })
        .unwrap();
}
