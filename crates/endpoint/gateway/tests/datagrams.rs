//! Datagrams through a pair of gateways on the loopback interface.

use crate::common::{Settings, Watched, echo, is_answered, pair};
use cutline_gateway::{GatewaySide, Limits, ProgramTransport};
use cutline_quality::spec::Specification;
use cutline_socket::QosOptions;
use cutline_testbed::{LossyPath, in_time, undisturbed};
use cutline_units::{Bytes, Duration as Time};
use std::net::UdpSocket;
use std::thread::{sleep, spawn};
use std::time::Duration;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// A program behind the near gateway.
fn program(near: &Watched) -> UdpSocket {
    let socket = socket();
    socket.connect(near.address()).unwrap();
    socket
}

#[test]
fn boundaries_are_kept_in_both_directions_and_programs_are_kept_apart() {
    let server = socket();
    let to = server.local_addr().unwrap();
    spawn(move || {
        let mut buffer = vec![0; 65_535];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            buffer[..length].reverse();
            server.send_to(&buffer[..length], from).unwrap();
        }
    });
    let (mut near, mut far) = pair(ProgramTransport::Udp, to, &Settings::default());
    let programs = [program(&near), program(&near)];
    let mut buffer = vec![0; 65_535];
    for (round, length) in [1, 1280, 2, 9000, 60_000, 1280].into_iter().enumerate() {
        for (number, program) in programs.iter().enumerate() {
            let mut datagram: Vec<u8> = (0..length).map(|at| (at * 7 + round * 3 + number) as u8).collect();
            assert_eq!(program.send(&datagram).unwrap(), length);
            let received = program.recv(&mut buffer).unwrap();
            datagram.reverse();
            assert!(buffer[..received] == datagram, "{received} B of {length} to program {number}");
        }
    }
    // No datagram of UDP has room for this and a header.
    programs[0].send(&vec![0; 65_500]).unwrap();
    near.told.wait_for("not sent:");
    let [of_near, of_far] = [near.stop(), far.stop()];
    assert_eq!((of_near.connections.len(), of_far.connections.len()), (2, 2));
    for of in of_near.connections.iter().chain(&of_far.connections) {
        assert_eq!((of.sent.sent_messages, of.received.received_messages, of.received.lost), (6, 6, 0));
        assert_eq!(of.received.received_bytes, 71_563);
    }
    assert_eq!(of_near.connections.iter().map(|of| of.oversized).sum::<u64>(), 1);
}

#[test]
fn a_datagram_above_the_agreed_size_is_counted_and_reported() {
    let server = socket();
    let spec = Specification::builder().size(Bytes::new(1280)).build().unwrap();
    let settings = Settings { options: QosOptions::sending(spec), ..Settings::default() };
    let far = Watched::start(
        GatewaySide::Far,
        ProgramTransport::Udp,
        server.local_addr().unwrap(),
        &Settings::default(),
    );
    let mut near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, far.address(), &settings);
    let program = program(&near);
    for length in [1281, 1280] {
        program.send(&vec![7; length]).unwrap();
    }
    let mut buffer = [0; 2000];
    assert_eq!(server.recv(&mut buffer).unwrap(), 1280);
    near.told.wait_for("a message of 1281 B: agreed on are at most 1280 B");
    assert_eq!(near.stop().connections[0].oversized, 1);
}

#[test]
fn losses_between_gateways_are_measured_at_both_ends_and_recorded() {
    undisturbed(|| {
        let server = socket();
        server.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let settings = Settings { records: true, ..Settings::default() };
        let mut far =
            Watched::start(GatewaySide::Far, ProgramTransport::Udp, server.local_addr().unwrap(), &settings);
        // Messages of QoS sockets begin so; the protocol's own messages are not lost here.
        let path = LossyPath::start(far.address(), 0.2, 3, |datagram| datagram.starts_with(&[0xc7, 0x52]));
        let mut near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, path.address(), &settings);
        let program = program(&near);
        let receive = || {
            let (begun, mut received, mut buffer) = (std::time::Instant::now(), 0, [0; 2000]);
            loop {
                match server.recv(&mut buffer) {
                    // A program of another test may still send to a server that had this port before.
                    Ok(length) => received += u64::from(buffer[..length] == [1; 1000]),
                    // The reports of the last messages have come as well.
                    Err(_) if received + path.counts().1 == 200 => return received,
                    Err(_) => {
                        assert!(begun.elapsed() < Duration::from_secs(60), "{received} {:?}", path.counts());
                    }
                }
            }
        };
        let received = std::thread::scope(|scope| {
            let receiving = scope.spawn(receive);
            for _ in 0..200 {
                program.send(&[1; 1000]).unwrap();
                sleep(Duration::from_millis(10));
            }
            receiving.join().unwrap()
        });
        let (of_near, of_far) = (near.stop(), far.stop());
        let (_, lost) = path.counts();
        assert!((20..65).contains(&lost), "{lost} of 200");
        let (sender, receiver) = (&of_near.connections[0].sent, &of_far.connections[0].received);
        assert_eq!((sender.sent_messages, receiver.received_messages), (200, received));
        // Those after the last message that arrived are not known to be missing.
        assert!(lost - receiver.lost < 5 && receiver.lost <= lost, "{} of {lost}", receiver.lost);
        assert_eq!(
            (sender.received_messages, sender.lost),
            (received, receiver.lost),
            "as the far end reports"
        );
        let mean = receiver.mean_delay_ms.unwrap();
        assert!(receiver.max_jitter_ms.is_some() && sender.mean_delay_ms.is_some(), "{receiver:?}");
        let clock_error = of_far.connections[0].clock_error_ms.unwrap();

        let lines = |of: &Watched| -> Vec<serde_json::Value> {
            of.recorded.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let sum = |lines: &[serde_json::Value], kind: &str, field: &str| -> i64 {
            lines.iter().filter(|line| line["kind"] == kind).map(|line| line[field].as_i64().unwrap()).sum()
        };
        let (of_near, of_far) = (lines(&near), lines(&far));
        assert_eq!((&of_far[0]["kind"], &of_far[0]["side"]), (&"start".into(), &"far".into()));
        let messages = of_far.iter().filter(|line| line["kind"] == "message");
        // Those that came with the negotiation are counted, and have no line.
        let messages =
            messages.filter(|line| line["bytes"] == 1000 && line["at_s"].as_f64().is_some()).count() as u64;
        assert!((received - 3..=received).contains(&messages), "{messages} of {received}");
        assert_eq!(sum(&of_near, "sent", "messages"), 200, "{of_near:?}");
        assert_eq!(sum(&of_far, "received", "messages"), received as i64);
        assert_eq!(sum(&of_far, "received", "lost"), receiver.lost as i64);
        assert_eq!(of_far.last().unwrap()["delivered"]["received"]["lost"], receiver.lost);
        in_time!(mean < 50.0 && clock_error < 50.0, "{mean} ms, by a clock that differs by {clock_error} ms");
    });
}

#[test]
fn an_exchange_without_datagrams_ends_at_both_ends() {
    let server = socket();
    let limits = Limits { idle: Time::from_millis(400), ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let (near, far) = pair(ProgramTransport::Udp, server.local_addr().unwrap(), &settings);
    let program = program(&near);
    for round in 1..=2 {
        program.send(b"hello").unwrap();
        let mut buffer = [0; 10];
        assert_eq!(server.recv(&mut buffer).unwrap(), 5);
        let document = near.wait_for_ends(round);
        assert!(document.connections[round - 1].ending.starts_with("no datagram for 400"), "{document:?}");
        far.wait_for_ends(round);
        // A program that continues gets a new connection.
        sleep(Duration::from_millis(1100));
    }
    assert_eq!((near.told.text(), far.told.text()), (String::new(), String::new()));
}

#[test]
fn without_a_far_gateway_the_loss_of_datagrams_is_reported() {
    let nobody = socket().local_addr().unwrap();
    let mut near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, nobody, &Settings::default());
    let program = program(&near);
    program.send(b"hello").unwrap();
    near.told.wait_for(&format!("the far gateway {nobody} cannot be reached"));
    assert_eq!(near.stop().routes[0].totals.failed, 1);
}

#[test]
fn a_server_without_a_socket_is_reported() {
    let nobody = socket().local_addr().unwrap();
    let (near, mut far) = pair(ProgramTransport::Udp, nobody, &Settings::default());
    let program = program(&near);
    for _ in 0..20 {
        program.send(b"hello").unwrap();
        sleep(Duration::from_millis(10));
    }
    far.told.wait_for(&format!("{nobody} does not take datagrams: Connection refused"));
    let document = far.stop();
    assert!(document.connections[0].unsent > 0 && document.connections[0].received.received_messages > 10);
}

#[test]
fn a_program_gets_its_answers_from_the_address_it_sent_to() {
    let far = Watched::start(GatewaySide::Far, ProgramTransport::Udp, echo(), &Settings::default());
    let near = Watched::start_at(
        "0.0.0.0:0",
        GatewaySide::Near,
        ProgramTransport::Udp,
        &far.address().to_string(),
        &Settings::default(),
    );
    for asked in ["127.0.0.1", "127.0.0.9", "127.1.2.3"] {
        // A connected socket gets nothing from elsewhere.
        let program = UdpSocket::bind("0.0.0.0:0").unwrap();
        program.connect((asked, near.address().port())).unwrap();
        assert!(is_answered(&program), "{asked}");
    }
}

#[test]
fn a_large_flood_takes_bounded_memory() {
    // A message each minute may be sent, so nearly everything waits.
    let spec = Specification::builder().max_rate(1.0 / 60.0).size(Bytes::new(60_000)).build().unwrap();
    let settings = Settings { options: QosOptions::sending(spec), ..Settings::default() };
    let far = Watched::start(GatewaySide::Far, ProgramTransport::Udp, echo(), &Settings::default());
    let mut near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, far.address(), &settings);
    let program = program(&near);
    for _ in 0..200 {
        program.send(&vec![7; 60_000]).unwrap();
        sleep(Duration::from_millis(2));
    }
    // Datagrams that could still leave do so; those that wait are counted.
    sleep(Duration::from_millis(500));
    // A megabyte waits, which is 17 of them; the kernel's buffer has lost others.
    let of = near.stop().connections[0].clone();
    assert!(of.overflowed > 20, "{of:?}");
}

/// A far gateway that was killed and started again knows nothing of a connection, and the kernel says nothing of it: its port is open.
#[test]
fn an_exchange_whose_other_gateway_has_been_replaced_begins_again() {
    let server = echo();
    let mut far = Watched::start(GatewaySide::Far, ProgramTransport::Udp, server, &Settings::default());
    let far_at = far.address();
    // What goes to the far gateway passes a relay, which hides that its port was closed.
    let path = LossyPath::start(far_at, 0.0, 1, |_| false);
    let near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, path.address(), &Settings::default());
    let program = program(&near);
    assert!(is_answered(&program));
    far.stop();
    let _far = Watched::start_at(
        &far_at.to_string(),
        GatewaySide::Far,
        ProgramTransport::Udp,
        &server.to_string(),
        &Settings::default(),
    );
    assert!(is_answered(&program));
    assert!(near.wait_for_ends(1).connections[0].ending.starts_with("the other gateway has "));
}
