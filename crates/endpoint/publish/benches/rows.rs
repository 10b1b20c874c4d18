//! Cost of the lines of rows that change each second.
//!
//! ```text
//! cargo bench -p cutline-publish --features testing --bench rows
//! ```
//!
//! A publisher puts the rows of a hundred sockets, a thousand times. Another thread reads and forgets them. The time and the bytes are
//! those of the publisher for a row, system calls included; the rows themselves are made outside of the measured time.

use cutline_publish::testing::receiving_socket;
use cutline_publish::{Publisher, RowKind};
use cutline_sys::now;
use cutline_units::Duration;
use std::io::Read as _;
use std::os::unix::net::UnixListener;

const SOCKETS: u64 = 100;
const TURNS: u64 = 1000;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("publish.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut from, _) = listener.accept().unwrap();
        let (mut bytes, mut read) = (vec![0; 1 << 20], 0);
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            read += length;
        }
        read
    });
    let mut publisher = Publisher::connect(&path, "bench").unwrap();
    let mut took = Duration::ZERO;
    for second in 0..TURNS {
        let rows: Vec<_> = (0..SOCKETS).map(|socket| receiving_socket(socket, second)).collect();
        while !publisher.flush().unwrap() {
            std::thread::yield_now();
        }
        let begun = now();
        let mut snapshot = publisher.begin_snapshot().unwrap().expect("the peer has read everything");
        for row in &rows {
            snapshot.put(RowKind::Socket, row.socket, row);
        }
        snapshot.end().unwrap();
        took += now().saturating_since(begun);
    }
    while !publisher.flush().unwrap() {
        std::thread::yield_now();
    }
    drop(publisher);
    let rows = (SOCKETS * TURNS) as f64;
    println!("a row: {:.0} ns, {:.0} B", took.as_nanos() as f64 / rows, reader.join().unwrap() as f64 / rows);
}
