//! Instructions of the parts of a row, which valgrind counts. The kernel's are not among them.
//!
//! ```text
//! RUSTFLAGS="--cfg rustix_use_libc" cargo test --profile trial -p cutline-socket --lib --no-run
//! valgrind --tool=callgrind --callgrind-out-file=row.out PROGRAM row::cost --ignored
//! callgrind_annotate --inclusive=yes --show-percs=no row.out | grep row::cost
//! ```
//!
//! The first command prints the path of PROGRAM, and builds it so that valgrind understands it. The numbers are those of [`TIMES`] rows.

use super::*;
use crate::service_thread::{self, ServedConnection};
use crate::{ConnectionHandle, Pacing, Preset, QosOptions, QosUdpListener, QosUdpSocket};
use cutline_publish::{Publisher, RowKind};
use std::hint::black_box;
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

/// Number of rows.
const TIMES: u64 = 1000;
/// Delays of the socket whose row is made, at least.
const DELAYS: u64 = 2000;
/// Delays of the distributions.
const RECORDED: u64 = 50_000;

#[inline(never)]
fn specifications(texts: &mut RowTexts, mib: &Mib) {
    black_box((texts.send(&mib.send.contract), texts.receive(&mib.receive.contract)));
}

#[inline(never)]
fn addresses(texts: &mut RowTexts, ends: [SocketAddr; 2]) {
    black_box(texts.addresses(ends));
}

#[inline(never)]
fn percentiles(delays: &Histogram, jitters: &Histogram) {
    black_box([delays, jitters].map(|times| times.quantiles([0.5, 0.9, 0.99])));
}

#[inline(never)]
fn delays_by_buckets(delays: &Histogram) {
    black_box(buckets(delays));
}

/// Makes the MIB with the percentiles, as a row does.
#[inline(never)]
fn whole_mib(of: &ConnectionHandle) {
    black_box(of.mib());
}

/// Makes a row with all of these parts.
#[inline(never)]
fn whole_row(of: &dyn ServedConnection, texts: &mut RowTexts) -> SocketRow {
    of.shared_calls().and_then(|calls| row(calls, 7, texts)).expect("it has an address")
}

/// Writes the line of a row, and compares it with the last one.
#[inline(never)]
fn line(publisher: &mut Publisher, row: &SocketRow) {
    let mut snapshot = publisher.begin_snapshot().unwrap().expect("the monitor has read everything");
    snapshot.put(RowKind::Socket, row.socket, row);
    snapshot.end().unwrap();
}

/// Returns the receiving end of a pair of sockets over which a video is sent, with its sending end, which keeps it open.
fn pair() -> [QosUdpSocket; 2] {
    let specification = Preset::Video.specification();
    let listener =
        QosUdpListener::bind("127.0.0.1:0", &QosOptions::receiving(specification.clone())).unwrap();
    let to = listener.local_addr().unwrap();
    let [sender, receiver] = thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let options = QosOptions::sending(specification).pacing(Pacing::Count);
        [QosUdpSocket::connect(to, &options).unwrap(), accepted.join().unwrap()]
    });
    let mut message = [7; 1000];
    // Delays are counted from the time on at which the clocks are compared.
    while receiver.mib().receive.delay.is_none_or(|delay| delay.count < DELAYS) {
        for _ in 0..100 {
            sender.send(&message).unwrap();
            receiver.recv(&mut message).unwrap();
        }
    }
    [receiver, sender]
}

#[test]
#[ignore = "valgrind counts its instructions: the head of this file has the commands"]
fn a_row_by_its_parts() {
    let mut delays = Histogram::default();
    // From 0.5 to 90 ms: as many buckets as a path with a queue has.
    (0..RECORDED).for_each(|number| delays.record(Duration::from_nanos(500_000 + number * 1790)));
    let [receiver, _sender] = pair();
    let mut connections = service_thread::connections().into_iter().filter_map(|(_, weak)| weak.upgrade());
    let receives = |of: &Arc<dyn ServedConnection>| {
        let row = of.shared_calls().and_then(|calls| row(calls, 7, &mut RowTexts::default()));
        row.is_some_and(|row| row.receive.received_messages > 0)
    };
    let connection = connections.find(receives).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut publisher = Publisher::connect(&path, "cost").unwrap();
    let (mut monitor, _) = listener.accept().unwrap();
    monitor.set_nonblocking(true).unwrap();
    let ends = [5000, 5001].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
    let (mut texts, mut texts_of_row) = (RowTexts::default(), RowTexts::default());
    let (mut bytes, mut longest) = ([0; 4096], 0);
    for _ in 0..TIMES {
        specifications(&mut texts, &receiver.mib());
        addresses(&mut texts, ends);
        percentiles(&delays, &delays);
        delays_by_buckets(&delays);
        whole_mib(&receiver);
        let row = whole_row(&*connection, &mut texts_of_row);
        line(&mut publisher, &row);
        while monitor.read(&mut bytes).is_ok_and(|length| length > 0) {}
        longest = longest.max(serde_json::to_string(&row).unwrap().len());
    }
    println!("{TIMES} rows of up to {longest} B");
}
