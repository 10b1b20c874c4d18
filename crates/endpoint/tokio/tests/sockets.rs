//! Two ends on the loopback interface, in one runtime with a single thread: whatever blocks it is noticed.

use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_testbed::{in_time, undisturbed};
use cutline_tokio::{
    Attempt, Pacing, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket,
    ReuniteError, SessionEvent,
};
use cutline_units::Bytes;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

const LOOPBACK: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Two connected streams. The peer has a minute to answer: a thread of a busy machine may have no turn for seconds.
async fn streams(address: &'static str, options: &QosOptions) -> (QosTcpStream, QosTcpStream) {
    let options = options.clone().detection(ms(60_000));
    let listener = QosTcpListener::bind(address, &options).await.unwrap();
    let to = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(QosTcpStream::connect(to, &options), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

/// Two connected datagram sockets, with the same time for the answer.
async fn datagrams(asks: &QosOptions, asked: &QosOptions) -> (QosUdpSocket, QosUdpSocket) {
    let asks = asks.clone().detection(ms(60_000));
    let listener = QosUdpListener::bind(LOOPBACK[0], asked).await.unwrap();
    let to = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(QosUdpSocket::connect(to, &asks), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

/// Runs `work` beside a task that wakes up each 5 ms. Returns its result, its duration, and the number of times that the task woke up.
async fn beside_a_clock<T>(work: impl Future<Output = T>) -> (T, Duration, usize) {
    let ticks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ticks);
    let clock = tokio::spawn(async move {
        loop {
            sleep(ms(5)).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let begin = Instant::now();
    let out = work.await;
    clock.abort();
    (out, begin.elapsed(), ticks.load(Ordering::Relaxed))
}

/// Runs a test that depends on time, in a runtime of one thread.
fn timed<F: Future<Output = ()>>(test: impl Fn() -> F) {
    undisturbed(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
}

/// Options of an end that reports often.
fn talkative() -> QosOptions {
    let interval = cutline_units::Duration::from_millis(20);
    QosOptions::default().monitor(MonitorParams { interval, ..MonitorParams::default() })
}

#[tokio::test]
async fn a_dropped_or_shut_down_stream_delivers_its_accepted_data() {
    for how in ["drop", "shutdown", "halves"] {
        let (mut ours, mut theirs) = streams(LOOPBACK[0], &talkative()).await;
        let reading = tokio::spawn(async move {
            let (mut all, mut piece) = (0, vec![0; 1 << 16]);
            for reads in 0.. {
                if reads < 40 {
                    sleep(ms(20)).await;
                }
                match theirs.read(&mut piece).await.map_err(|error| format!("{error} after {all} bytes"))? {
                    0 => break,
                    read => all += read,
                }
            }
            Ok::<_, String>(all)
        });
        let content = vec![7; 4_400_000];
        match how {
            "halves" => {
                let (reads, mut writes) = ours.into_split();
                writes.write_all(&content).await.unwrap();
                drop((writes, reads));
            }
            how => {
                ours.write_all(&content).await.unwrap();
                if how == "shutdown" {
                    ours.shutdown().await.unwrap();
                }
                drop(ours);
            }
        }
        assert_eq!(reading.await.unwrap(), Ok(content.len()), "{how}");
    }
}

#[tokio::test]
async fn many_connect_at_a_time_without_threads() {
    let listener = QosTcpListener::bind(LOOPBACK[0], &QosOptions::default()).await.unwrap();
    // An address that is not static.
    let to = listener.local_addr().unwrap().to_string();
    let options = QosOptions::default();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let accepting = tokio::spawn(async move {
        let mut accepted = Vec::new();
        while accepted.len() < 200 {
            accepted.push(listener.accept().await.unwrap().0);
        }
        accepted
    });
    let connects = (0..200).map(|_| QosTcpStream::connect(to.as_str(), &options));
    let mut connects: Vec<_> = connects.map(Box::pin).collect();
    let mut most = 0;
    let mut connected = Vec::new();
    std::future::poll_fn(|cx| {
        connects.retain_mut(|connect| match connect.as_mut().poll(cx) {
            std::task::Poll::Ready(stream) => {
                connected.push(stream.unwrap());
                false
            }
            std::task::Poll::Pending => true,
        });
        most = most.max(threads());
        if connects.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    assert_eq!((connected.len(), accepting.await.unwrap().len()), (200, 200));
    // The thread that serves connections, and those of other tests: each runtime has one.
    assert!(most < before + 30, "{most} threads, {before} before");
}

#[tokio::test]
async fn a_dropped_or_late_connect_leaves_no_connection() {
    let silent = tokio::net::UdpSocket::bind(LOOPBACK[0]).await.unwrap();
    let to = silent.local_addr().unwrap();
    let options = QosOptions::default().peer(Peer::Speaks);
    assert!(timeout(ms(50), QosUdpSocket::connect(to, &options)).await.is_err());
    let error = QosUdpSocket::connect(to, &options.connect_timeout(ms(50))).await.unwrap_err();
    assert!(error.to_string().contains("connect timeout"), "{error}");
}

#[tokio::test]
async fn streams_echo_split_or_whole() {
    for address in LOOPBACK {
        let (ours, mut theirs) = streams(address, &QosOptions::default()).await;
        let length = 2_000_000;
        let echo = tokio::spawn(async move {
            let (mut reads, mut writes) = theirs.split();
            tokio::io::copy(&mut reads, &mut writes).await.unwrap();
            writes.shutdown().await.unwrap();
            theirs.mib()
        });
        let (mut reads, mut writes) = ours.into_split();
        let sender = tokio::spawn(async move {
            let bytes: Vec<u8> = (0..length).map(|i| (i >> 3) as u8).collect();
            for piece in bytes.chunks(7001) {
                writes.write_all(piece).await.unwrap();
            }
        });
        assert!(matches!(reads.event().await, SessionEvent::Agreed(_)));
        let mut answer = Vec::new();
        reads.read_to_end(&mut answer).await.unwrap();
        assert!(answer.iter().enumerate().all(|(i, byte)| *byte == (i >> 3) as u8));
        assert_eq!(answer.len(), length);
        sender.await.unwrap();
        let mib = echo.await.unwrap();
        assert_eq!((mib.receive.received.bytes, mib.receive.received.lost()), (length as u64, 0));
        assert_eq!(reads.mib().receive.received.bytes, length as u64);
    }
}

/// As with the sockets of tokio, a task whose calls never wait does not keep the runtime's thread to itself.
#[tokio::test]
async fn calls_that_never_wait_let_other_tasks_run() {
    const CALLS: usize = 1000;
    let (mut stream, mut peer) = streams(LOOPBACK[0], &QosOptions::default()).await;
    let (socket, _peer) = datagrams(&QosOptions::default(), &QosOptions::default()).await;
    let calls = Arc::new(AtomicUsize::new(0));
    // All that is read has come, and there is room for all that is written.
    stream.write_all(&[7; 2 * CALLS]).await.unwrap();
    peer.read_exact(&mut [0; CALLS]).await.unwrap();
    let counted = Arc::clone(&calls);
    let reading = tokio::spawn(async move {
        for _ in 0..CALLS {
            peer.read_exact(&mut [0]).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
        peer
    });
    tokio::task::yield_now().await;
    assert!(calls.load(Ordering::Relaxed) < CALLS, "of reads");
    let _peer_of_stream = reading.await.unwrap();
    calls.store(0, Ordering::Relaxed);
    let counted = Arc::clone(&calls);
    let writing = tokio::spawn(async move {
        for _ in 0..CALLS {
            stream.write_all(b"x").await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    tokio::task::yield_now().await;
    assert!(calls.load(Ordering::Relaxed) < CALLS, "of writes");
    writing.await.unwrap();
    calls.store(0, Ordering::Relaxed);
    let counted = Arc::clone(&calls);
    let sending = tokio::spawn(async move {
        for _ in 0..CALLS {
            socket.send(b"x").await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    tokio::task::yield_now().await;
    assert!(calls.load(Ordering::Relaxed) < CALLS, "of datagrams");
    sending.await.unwrap();
}

#[tokio::test]
async fn a_server_may_speak_first_to_any_client() {
    for is_plain in [false, true] {
        let listener = QosTcpListener::bind(LOOPBACK[0], &QosOptions::default()).await.unwrap();
        let to = listener.local_addr().unwrap();
        let client = tokio::spawn(async move {
            let mut answer = [0; 9];
            if is_plain {
                let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
                stream.read_exact(&mut answer).await.unwrap();
            } else {
                let mut stream = QosTcpStream::connect(to, &QosOptions::default()).await.unwrap();
                stream.read_exact(&mut answer).await.unwrap();
            }
            answer
        });
        let (mut stream, _) = listener.accept().await.unwrap();
        timeout(ms(60_000), stream.write_all(b"220 ready")).await.unwrap().unwrap();
        assert_eq!(&client.await.unwrap(), b"220 ready");
    }
}

#[tokio::test]
async fn datagrams_echo() {
    let bulk = Specification::builder().size(Bytes::new(1200)).coerce_all().build().unwrap();
    let (ours, theirs) = datagrams(&QosOptions::sending(bulk), &QosOptions::default()).await;
    assert!(ours.has_qos_peer() && theirs.has_qos_peer());
    assert!(matches!(ours.event().await, SessionEvent::Agreed(_)));
    let echo = tokio::spawn(async move {
        let mut buffer = [0; 2000];
        for _ in 0..200 {
            let length = theirs.recv(&mut buffer).await.unwrap();
            assert_eq!(theirs.send(&buffer[..length]).await.unwrap(), length);
        }
        theirs
    });
    let mut buffer = [0; 2000];
    for i in 0..200_u8 {
        ours.send(&[i; 700]).await.unwrap();
        assert_eq!(ours.recv(&mut buffer).await.unwrap(), 700);
        assert_eq!(buffer[..700], [i; 700]);
    }
    echo.await.unwrap();
    let error = ours.send(&[0; 1201]).await.unwrap_err();
    assert_eq!(error.to_string(), "a message of 1201 B: agreed on are at most 1200 B");
}

#[test]
fn waiting_for_its_turn_blocks_no_other_task() {
    timed(|| async {
        let slow = Specification::builder()
            .rates(1.0, 20.0, 20.0)
            .size(Bytes::new(100))
            .coerce_all()
            .build()
            .unwrap();
        let (ours, _theirs) = datagrams(&QosOptions::sending(slow.clone()), &QosOptions::default()).await;
        let sends = async {
            for _ in 0..9 {
                assert_eq!(ours.send(&[1; 100]).await.unwrap(), 100);
            }
        };
        let ((), took, ticks) = beside_a_clock(sends).await;
        // Seven of them wait for 50 ms each, while the clock continues.
        assert!(took >= ms(349), "{took:?}");
        in_time!(ticks >= 20, "{took:?}, {ticks}");
        let options = QosOptions::sending(slow).pacing(Pacing::Refuse);
        let (ours, _theirs) = datagrams(&options, &QosOptions::default()).await;
        let mut refused = 0;
        for _ in 0..10 {
            refused += usize::from(ours.send(&[1; 100]).await.is_err());
        }
        in_time!(refused > 0, "pacing = refuse does not wait");
    });
}

#[test]
fn connecting_blocks_no_other_task() {
    timed(|| async {
        // A plain server, of which it takes 300 ms to know that.
        let silent = tokio::net::UdpSocket::bind(LOOPBACK[0]).await.unwrap();
        let to = silent.local_addr().unwrap();
        let (ours, took, ticks) = beside_a_clock(QosUdpSocket::connect(to, &QosOptions::default())).await;
        assert!(!ours.unwrap().has_qos_peer() && took >= ms(300), "{took:?}");
        in_time!(ticks >= 10, "{took:?}, {ticks}");
    });
}

#[tokio::test]
async fn a_cancelled_call_has_no_effect() {
    // Receiving: every message arrives once, though most calls are cancelled.
    let (ours, theirs) = datagrams(&QosOptions::default(), &QosOptions::default()).await;
    let sender = tokio::spawn(async move {
        for i in 0..300_u16 {
            ours.send(&i.to_be_bytes()).await.unwrap();
            sleep(ms(1)).await;
        }
        ours
    });
    let (mut received, mut cancelled, mut buffer) = (Vec::new(), 0, [0; 10]);
    while received.len() < 300 {
        match timeout(Duration::from_micros(300), theirs.recv(&mut buffer)).await {
            Ok(length) => received.push(u16::from_be_bytes(buffer[..length.unwrap()].try_into().unwrap())),
            Err(_) => cancelled += 1,
        }
        assert!(cancelled < 100_000, "{received:?}");
    }
    assert!(received.into_iter().eq(0..300) && cancelled > 10, "{cancelled}");
    drop(sender.await.unwrap());

    // Sending: a message that waits for its turn and is cancelled was not sent.
    let slow =
        Specification::builder().rates(0.01, 0.02, 0.02).size(Bytes::new(100)).coerce_all().build().unwrap();
    let (ours, _theirs) = datagrams(&QosOptions::sending(slow), &QosOptions::default()).await;
    let mut sent = 0;
    for _ in 0..6 {
        sent += u64::from(timeout(ms(5), ours.send(&[1; 100])).await.is_ok());
    }
    assert_eq!((sent, ours.mib().send.sent.messages), (2, 2));

    // A stream that is not read for a while, and whose reads and writes are cancelled all the time.
    let options = QosOptions::default().peer(Peer::Speaks);
    let (mut ours, mut theirs) = streams(LOOPBACK[0], &options).await;
    let length = 3_000_000;
    let byte = |i: usize| ((i * 31) >> 3) as u8;
    let writer = tokio::spawn(async move {
        let (mut sent, mut cancelled) = (0, 0);
        while sent < length {
            let bytes: Vec<u8> = (sent..length.min(sent + 1 + cancelled % 50_000)).map(byte).collect();
            match timeout(Duration::from_micros(500), ours.write(&bytes)).await {
                Ok(written) => sent += written.unwrap(),
                Err(_) => cancelled += 1,
            }
            cancelled += 977;
        }
        ours.shutdown().await.unwrap();
        ours
    });
    // The socket's buffers fill up.
    sleep(ms(200)).await;
    let (mut received, mut buffer) = (0, vec![0; 40_000]);
    loop {
        let Ok(read) = timeout(Duration::from_micros(500), theirs.read(&mut buffer)).await else { continue };
        let read = read.unwrap();
        if read == 0 {
            break;
        }
        assert!((0..read).all(|i| buffer[i] == byte(received + i)), "at {received}");
        received += read;
    }
    assert_eq!(received, length);
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn an_event_that_was_waited_for_in_vain_is_not_lost() {
    let (ours, theirs) = datagrams(&QosOptions::default(), &QosOptions::default()).await;
    assert!(matches!(ours.event().await, SessionEvent::Agreed(_)));
    assert!(timeout(ms(30), ours.event()).await.is_err());
    let small = Specification::builder().size(Bytes::new(300)).coerce_all().build().unwrap();
    theirs.renegotiate(cutline_tokio::ConnectionSpecification { receive: small, ..Default::default() });
    assert!(matches!(timeout(ms(60_000), ours.event()).await.unwrap(), SessionEvent::Agreed(_)));
    assert_eq!(ours.try_event(), None);
}

fn recovers() -> QosOptions {
    let recovery = cutline_units::Duration::from_secs(60);
    let spec = Specification::builder().recovery(recovery).coerce_all().build().unwrap();
    QosOptions::both(spec).reconnect(true).detection(ms(60_000))
}

#[test]
fn a_stream_that_breaks_is_made_again_without_blocking_another_task() {
    timed(|| async {
        let listener = QosTcpListener::bind(LOOPBACK[0], &QosOptions::default()).await.unwrap();
        let to = listener.local_addr().unwrap();
        let options = recovers();
        let (connected, accepted) = tokio::join!(QosTcpStream::connect(to, &options), listener.accept());
        let (ours, (mut theirs, _)) = (connected.unwrap(), accepted.unwrap());
        let (mut reads, mut writes) = ours.into_split();
        theirs.write_all(b"whole").await.unwrap();
        let mut buffer = [0; 9];
        assert_eq!(reads.read(&mut buffer).await.unwrap(), 5);
        let reader = tokio::spawn(async move {
            let error = reads.read(&mut buffer).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted, "{error}");
            reads.read_exact(&mut buffer[..6]).await.unwrap();
            assert_eq!(&buffer[..6], b"answer");
            loop {
                if let SessionEvent::Recovered { is_new: true, .. } = reads.event().await {
                    break;
                }
            }
            // It waits again, on the new connection.
            reads.read_exact(&mut buffer[..4]).await.unwrap();
            reads
        });
        rustix::net::sockopt::set_socket_linger(&theirs, Some(Duration::ZERO)).unwrap();
        drop(theirs);
        let (mut theirs, _, ticks) = beside_a_clock(async {
            let error = loop {
                match writes.write(b"request").await {
                    Ok(_) => sleep(ms(5)).await,
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted, "{error}");
            let written = writes.write_all(b"request");
            tokio::pin!(written);
            // No connection is accepted for longer than between two attempts. On a busy machine an attempt may be abandoned, and the next one
            // has another connection.
            let (mut pause, mut last) = (ms(300), None);
            loop {
                let accepts = async {
                    sleep(pause).await;
                    listener.accept().await
                };
                tokio::select! {
                    done = &mut written => {
                        done.unwrap();
                        break last.expect("it was accepted before it could agree");
                    }
                    accepted = accepts => last = Some(accepted.unwrap().0),
                }
                pause = Duration::ZERO;
            }
        })
        .await;
        in_time!(ticks >= 20, "{ticks}");
        let mut request = [0; 7];
        timeout(ms(60_000), theirs.read_exact(&mut request)).await.unwrap().unwrap();
        assert_eq!(&request, b"request");
        theirs.write_all(b"answer").await.unwrap();
        // The time in which the clock ticks.
        let ((), _, ticks) = beside_a_clock(sleep(ms(300))).await;
        in_time!(ticks >= 20, "a reader that waits keeps nobody else waiting: {ticks}");
        theirs.write_all(b"last").await.unwrap();
        timeout(ms(60_000), reader).await.unwrap().unwrap();
    });
}

#[tokio::test]
async fn datagrams_find_another_end_at_the_same_place() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).await.unwrap();
    let to = listener.local_addr().unwrap();
    let options = recovers();
    let (connected, accepted) = tokio::join!(QosUdpSocket::connect(to, &options), listener.accept());
    let (ours, (theirs, _)) = (Arc::new(connected.unwrap()), accepted.unwrap());
    ours.send(b"one").await.unwrap();
    assert_eq!(theirs.recv(&mut [0; 9]).await.unwrap(), 3);
    let receiver = tokio::spawn({
        let ours = Arc::clone(&ours);
        async move {
            let mut buffer = [0; 9];
            let error = ours.recv(&mut buffer).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted, "{error}");
            ours.recv(&mut buffer).await.unwrap()
        }
    });
    drop((listener, theirs));
    loop {
        if let SessionEvent::Lost { sent, .. } = timeout(ms(60_000), ours.event()).await.unwrap() {
            assert_eq!(sent, 1);
            break;
        }
    }
    assert_eq!(ours.send(b"two").await.unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    // A child process that another test has started has copies of the descriptors until it executes its program.
    let until = Instant::now() + Duration::from_secs(60);
    let listener = loop {
        match QosUdpListener::bind(to, &QosOptions::default()).await {
            Err(_) if Instant::now() < until => sleep(ms(10)).await,
            bound => break bound.unwrap(),
        }
    };
    let (sent, accepted) = tokio::join!(ours.send(b"two"), listener.accept());
    sent.unwrap();
    let theirs = accepted.unwrap().0;
    assert_eq!(theirs.recv(&mut [0; 9]).await.unwrap(), 3);
    theirs.send(b"hello").await.unwrap();
    assert_eq!(timeout(ms(60_000), receiver).await.unwrap().unwrap(), 5);
}

#[tokio::test]
async fn halves_know_their_addresses_and_are_united_again() {
    let (mut ours, theirs) = streams(LOOPBACK[0], &talkative()).await;
    ours.set_nodelay(true).unwrap();
    assert!(ours.nodelay().unwrap());
    let addresses = (ours.local_addr().unwrap(), ours.peer_addr());
    {
        let (reads, writes) = ours.split();
        assert_eq!((reads.local_addr().unwrap(), reads.peer_addr()), addresses);
        assert_eq!((writes.local_addr().unwrap(), writes.peer_addr()), addresses);
    }
    let ((reads, writes), (their_reads, their_writes)) = (ours.into_split(), theirs.into_split());
    assert_eq!((reads.local_addr().unwrap(), reads.peer_addr()), addresses);
    assert_eq!((writes.local_addr().unwrap(), writes.peer_addr()), addresses);
    let error = reads.reunite(their_writes).unwrap_err();
    assert!(error.to_string().contains("not of the same stream"), "{error}");
    let ReuniteError(reads, their_writes) = error;
    let mut ours = writes.reunite(reads).unwrap();
    let mut theirs = their_reads.reunite(their_writes).unwrap();
    let mut got = [0; 6];
    ours.write_all(b"united").await.unwrap();
    timeout(ms(60_000), theirs.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(&got, b"united");
    // A half that is forgotten does not end its direction.
    let (mut reads, writes) = ours.into_split();
    writes.forget();
    theirs.write_all(b"answer").await.unwrap();
    timeout(ms(60_000), reads.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(&got, b"answer");
    assert_eq!(theirs.try_read(&mut got).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn calls_that_do_not_wait_send_and_receive() {
    let (ours, theirs) = datagrams(&talkative(), &talkative()).await;
    let mut got = [0; 10];
    assert_eq!(theirs.try_recv(&mut got).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(ours.try_send(b"soon").unwrap(), Attempt::Sent(4));
    let received = async {
        loop {
            match theirs.try_recv(&mut got) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => sleep(ms(1)).await,
                outcome => return outcome,
            }
        }
    };
    assert_eq!(timeout(ms(60_000), received).await.unwrap().unwrap(), 4);
    let (mut ours, mut theirs) = streams(LOOPBACK[0], &talkative()).await;
    ours.write_all(b"begun").await.unwrap();
    timeout(ms(60_000), theirs.read_exact(&mut got[..5])).await.unwrap().unwrap();
    assert_eq!(theirs.try_write(b"soon").unwrap(), 4);
    let received = async {
        loop {
            match ours.try_read(&mut got) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => sleep(ms(1)).await,
                outcome => return outcome,
            }
        }
    };
    assert_eq!(timeout(ms(60_000), received).await.unwrap().unwrap(), 4);
}
