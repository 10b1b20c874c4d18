//! Paths and strangers that repeat, replay, reorder and invent datagrams.

use super::*;

/// A path that repeats, replays and reorders datagrams, and loses none.
fn wild_path(listener: SocketAddr, seed: u64, is_over: &Arc<AtomicBool>) -> SocketAddr {
    let is_over = Arc::clone(is_over);
    let (front, back, here) = path_to(listener);
    thread::spawn(move || {
        let mut random = cutline_units::Streams::new(seed).stream("path", "wild");
        let mut ways: [Vec<Vec<u8>>; 2] = Default::default();
        let mut history: [Vec<Vec<u8>>; 2] = Default::default();
        let (mut client, mut bytes) = (None, [0; 2000]);
        while !is_over.load(Ordering::SeqCst) {
            thread::sleep(time::Duration::from_micros(200));
            if let Ok((length, from)) = front.recv_from(&mut bytes) {
                client = Some(from);
                ways[0].push(bytes[..length].to_vec());
            }
            if let Ok(length) = back.recv(&mut bytes) {
                ways[1].push(bytes[..length].to_vec());
            }
            for way in [0, 1] {
                let send = |bytes: &[u8]| match way {
                    0 => drop(back.send(bytes)),
                    _ => drop(front.send_to(bytes, client.unwrap())),
                };
                while random.uniform() < 0.8 && !ways[way].is_empty() {
                    let place = (random.uniform() * ways[way].len() as f64) as usize;
                    let datagram = ways[way].swap_remove(place);
                    (0..=(random.uniform() * 3.0) as usize).for_each(|_| send(&datagram));
                    history[way].push(datagram);
                    // An old one, perhaps of the negotiation.
                    let old = (random.uniform() * history[way].len() as f64) as usize;
                    send(&history[way][old]);
                }
            }
        }
    });
    here
}

#[test]
fn messages_that_the_path_repeats_and_reorders_arrive_once() {
    for (seed, key) in [(1, false), (2, true), (3, false), (4, true)] {
        let with = |options: QosOptions| {
            let options = options.peer(Peer::Speaks);
            if key { options.key(&[b'k'; 32]).unwrap() } else { options }
        };
        let listener = QosUdpListener::bind(LOOPBACK[0], &with(QosOptions::default())).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let to = wild_path(listener.local_addr().unwrap(), seed, &is_over);
        let (ours, theirs) = thread::scope(|scope| {
            let accepts = scope.spawn(|| listener.accept().unwrap().0);
            (QosUdpSocket::connect(to, &with(QosOptions::default())).unwrap(), accepts.join().unwrap())
        });
        for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
            let sent: Vec<[u8; 40]> = (0..200).map(|i| [i; 40]).collect();
            thread::scope(|scope| {
                scope.spawn(|| {
                    for message in &sent {
                        from.send(message).unwrap();
                        thread::sleep(time::Duration::from_micros(300));
                    }
                });
                to.set_read_timeout(Some(time::Duration::from_millis(700))).unwrap();
                let mut received = Vec::new();
                let mut buffer = [0; 100];
                let begun = now();
                // After the last one, repeated ones may come.
                loop {
                    match to.recv(&mut buffer) {
                        Ok(length) => received.push(<[u8; 40]>::try_from(&buffer[..length]).unwrap()),
                        Err(_) if received.len() < 200 && now() - begun < Duration::from_secs(60) => {}
                        Err(_) => break,
                    }
                }
                received.sort_unstable();
                let times = |number: u8| received.iter().filter(|message| **message == [number; 40]).count();
                let wrong: Vec<_> =
                    (0..200).map(|i| (i, times(i))).filter(|(_, times)| *times != 1).collect();
                assert!(
                    wrong.is_empty() && received.len() == 200,
                    "seed {seed}: number and times: {wrong:?}"
                );
            });
            let mib = to.mib();
            assert!(mib.receive.received.duplicated > 0 && mib.receive.received.messages == 200);
        }
        is_over.store(true, Ordering::SeqCst);
    }
}

#[test]
fn invalid_datagrams_are_no_messages() {
    // On a busy machine this takes longer than some intervals, and no report of the library is to be among those below.
    let interval = Duration::from_secs(60);
    let rare = cutline_signal::monitor::MonitorParams { interval, ..Default::default() };
    let (ours, theirs) =
        pair(LOOPBACK[0], &QosOptions::default().monitor(rare.clone()), &QosOptions::default().monitor(rare));
    let Participation::Joined(token) = theirs.0.connection.participation() else {
        panic!("they have agreed")
    };
    let mut random = cutline_units::Streams::new(5).stream("datagrams", "wrong");
    theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
    let (stop, drained) = (Arc::new(AtomicBool::new(false)), theirs.clone());
    let stopped = Arc::clone(&stop);
    let drains = thread::spawn(move || {
        let mut messages = 0;
        loop {
            match drained.recv(&mut [0; 400]) {
                Ok(_) => messages += 1,
                Err(_) if stopped.load(Ordering::Relaxed) => return messages,
                Err(_) => {}
            }
        }
    });
    let mut lies = 0;
    for i in 0..2000_u64 {
        let noise: Vec<u8> =
            (0..(random.uniform() * 300.0) as usize).map(|_| (random.uniform() * 256.0) as u8).collect();
        let head = match i % 6 {
            0 => vec![],
            1 => datagram_header(token ^ 1, i, now(), None).to_vec(),
            2 => datagram_header(token, u64::MAX - i, now(), None)[..20].to_vec(),
            3 => vec![0xc7, 0x51, (i % 4) as u8, 1, 0, 40],
            4 => vec![0xc7, 0x53, 0xff, 0xff],
            _ => {
                lies += 1;
                let none = None::<fn(&[u8]) -> [u8; 32]>;
                ours.0.socket.send(&cutline_signal::frame::report(token, &noise, none)).unwrap();
                continue;
            }
        };
        // Past the layer, as another program could that sees the path.
        ours.0.socket.send(&[head, noise].concat()[..]).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(drains.join().unwrap(), 0, "nothing of it is a message");
    patient(&theirs);
    ours.send(b"honest").unwrap();
    let mut buffer = [0; 400];
    let length = theirs.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"honest");
    let mib = theirs.mib();
    assert_eq!(mib.receive.received.messages, 1);
    // A busy machine's socket loses some of them.
    assert!((1..=lies).contains(&mib.reports.refused) && mib.reports.used == 0, "{:?}", mib.reports);
    assert!(theirs.has_qos_peer());
}
