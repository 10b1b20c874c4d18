//! Pacing and rate control.

use super::*;

#[test]
fn a_sender_is_held_to_its_rate() {
    let spec =
        Specification::builder().rates(1.0, 20.0, 20.0).size(Bytes::new(100)).coerce_all().build().unwrap();
    // So slow that no pause of the machine is long enough for another message.
    let slow = spec.clone().change().rates(0.01, 0.02, 0.02).build().unwrap();
    for (pacing, expected) in [(Pacing::Refuse, 2), (Pacing::Count, 10)] {
        let options = QosOptions::sending(slow.clone()).pacing(pacing);
        let (ours, _theirs) = pair("127.0.0.1:0", &options, &QosOptions::default());
        // Ten at once: two are allowed, since timers may be late.
        let sent = (0..10).filter(|_| ours.send(&[1; 100]).is_ok()).count();
        assert_eq!(sent, expected, "{pacing:?}");
        let feedback = ours.mib().feedback;
        assert_eq!(feedback.pacing_waits as usize + sent, 10, "{feedback:?}");
        assert!(feedback.unpaced >= if pacing == Pacing::Count { 7 } else { 0 });
    }
    let (ours, _theirs) = pair("127.0.0.1:0", &QosOptions::sending(spec), &QosOptions::default());
    let begin = now();
    (0..7).for_each(|_| assert_eq!(ours.send(&[1; 100]).unwrap(), 100));
    // Five of them wait for 50 ms each. Nothing makes it shorter.
    assert!(now().saturating_since(begin) >= Duration::from_millis(249));
    assert!(ours.mib().feedback.waited >= Duration::from_millis(240));
}

fn controlled() -> QosOptions {
    QosOptions::sending(bulk()).rate_control(RateControl::Tfrc(TfrcParams::default()))
}

/// An application that only sends, to one that only receives: the library sends and receives the feedback. The equation with
/// 1200 B, 20 ms and a loss of 1 % gives 560 messages/s. The proxy adds about a millisecond to the path; the rule allows half of it to
/// once and a half, since the machine may be busy.
#[test]
fn a_rate_that_is_fair_to_tcp_is_found_over_a_path_that_loses() {
    undisturbed(rate_over_a_path_that_loses);
}

fn rate_over_a_path_that_loses() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
    let to = slow_path(listener.local_addr().unwrap(), Duration::from_millis(10), Some(100));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let theirs = listener.accept().unwrap().0;
            theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                let _length_or_time_out = theirs.recv(&mut [0; 2000]);
            }
            theirs.mib()
        });
        let ours = QosUdpSocket::connect(to, &controlled()).unwrap();
        let first = ours.mib().tfrc.expect("there is rate control");
        // RFC 5348 section 4.2: a segment per second, until there is feedback.
        assert_eq!((first.rate, first.rtt, first.feedback), (cutline_units::Rate::from_bps(9600), None, 0));
        let send_for = |seconds| {
            let (begin, mut sent) = (now(), 0);
            while now().saturating_since(begin) < Duration::from_secs(seconds) {
                ours.send(&[1; 1200]).unwrap();
                sent += 1;
            }
            sent / seconds
        };
        send_for(2);
        let rate = send_for(4);
        let (figures, feedback) = (ours.mib().tfrc.unwrap(), ours.mib().feedback);
        println!("{rate} messages/s, {figures:?}, {feedback:?}");
        is_over.store(true, Ordering::SeqCst);
        let rtt = figures.rtt.expect("there was feedback");
        assert!(rtt >= Duration::from_millis(20) && figures.refused == 0, "{figures:?}");
        assert!(rate > 0 && figures.feedback > 0 && figures.loss_event_rate > 0.0, "{figures:?}");
        let theirs = receives.join().unwrap();
        assert_eq!(theirs.tfrc, None, "it sends nothing that is controlled");

        in_time!(rtt < Duration::from_millis(40), "{figures:?}");
        in_time!((280..=840).contains(&rate), "{rate} messages/s, {figures:?}");
        in_time!(figures.feedback > 80, "{figures:?}");
        in_time!((0.003..0.03).contains(&figures.loss_event_rate), "{figures:?}");
        in_time!(feedback.pacing_waits > 1000, "{feedback:?}");
    });
}

#[test]
fn rate_control_refuses_counts_or_blocks_as_pacing_does() {
    // Neither application receives: only the library handles feedback.
    let deadline = || now().saturating_add(Duration::from_secs(60));
    let (ours, _theirs) = pair(LOOPBACK[0], &controlled().pacing(Pacing::Refuse), &QosOptions::default());
    let mut sent = 0;
    let until = deadline();
    while sent < 50 {
        sent += u32::from(ours.send(&[1; 1200]).is_ok());
        assert!(now() < until, "{sent} sent, {:?}", ours.mib().tfrc);
    }
    let mib = ours.mib();
    assert!(mib.feedback.pacing_waits > 0 && mib.tfrc.unwrap().feedback > 0, "{mib:?}");

    let (ours, _theirs) = pair(LOOPBACK[0], &controlled().pacing(Pacing::Count), &QosOptions::default());
    assert!((0..50).all(|_| ours.send(&[1; 1200]).is_ok()));
    assert!(ours.mib().feedback.unpaced > 0);

    let (ours, theirs) = pair(
        LOOPBACK[1],
        &controlled().key(&[7; 32]).unwrap(),
        &QosOptions::default().key(&[7; 32]).unwrap(),
    );
    ours.set_nonblocking(true).unwrap();
    let (mut sent, until) = (0, deadline());
    while sent < 50 {
        match ours.send(&[1; 1200]) {
            Ok(_) => sent += 1,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        // The descriptor of an application that is waited for shows messages for it, and they stay there.
        assert!(now() < until, "{sent} sent, {:?}", ours.mib().tfrc);
    }
    theirs.send(b"answer").unwrap();
    patient(&theirs);
    (0..50).for_each(|_| assert_eq!(theirs.recv(&mut [0; 2000]).unwrap(), 1200));
    assert_eq!(ours.mib().tfrc.unwrap().refused, 0);
}

#[test]
fn rate_control_needs_another_qos_socket_and_datagrams() {
    let server = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let to = server.local_addr().unwrap();
    let error = QosUdpSocket::connect(to, &quick(controlled())).map(drop).unwrap_err();
    assert!(matches!(error, QosError::NoPeer(_)), "{error}");
    let error = QosUdpSocket::connect(to, &controlled().peer(Peer::Plain)).map(drop).unwrap_err();
    let text = "rate-control = tfrc: allowed is agreed with peer = plain: a plain socket sends no feedback";
    assert_eq!(error.to_string(), text);
    let text = "rate-control = tfrc: allowed is agreed for a stream, whose transport controls the rate";
    for peer in [Peer::Detect, Peer::Speaks, Peer::Plain] {
        let error = crate::QosTcpStream::connect(to, &controlled().peer(peer)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let error = crate::QosTcpListener::bind(LOOPBACK[0], &controlled()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    let params = TfrcParams { q: 2.0, ..TfrcParams::default() };
    let error = QosUdpListener::bind(LOOPBACK[0], &controlled().rate_control(RateControl::Tfrc(params)));
    assert!(error.map(drop).unwrap_err().to_string().starts_with("q = 2: allowed is"));
}

/// A call that is interrupted and made again has waited once, for the whole time.
#[test]
fn an_interrupted_wait_for_the_rate_is_counted_once_and_whole() {
    let spec = Specification::builder().max_rate(2.0).size(Bytes::new(100)).coerce_all().build().unwrap();
    let (ours, _theirs) =
        pair("127.0.0.1:0", &QosOptions::sending(spec.clone()), &QosOptions::receiving(spec));
    for _ in 0..20 {
        ours.send(&[7; 100]).unwrap();
        let before = ours.mib().feedback;
        let (call, mut interruptions) = (Interruptible::new(), 0);
        let sent = loop {
            match call.run(|| ours.send(&[7; 100])) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => interruptions += 1,
                outcome => break outcome,
            }
        };
        assert_eq!(sent.unwrap(), 100);
        // A machine that stands still between two messages makes the wait needless.
        if interruptions >= 3 {
            let after = ours.mib().feedback;
            assert_eq!(after.pacing_waits - before.pacing_waits, 1);
            let (waited, slice) = (after.waited - before.waited, Duration::from_millis(45));
            assert!(waited >= slice * interruptions, "{waited} in {interruptions} slices of 50 ms");
            return;
        }
    }
    panic!("no call waits");
}
