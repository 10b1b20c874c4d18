//! A program in C that forks while it has connections.

use crate::c;

use cutline_socket::{QosTcpListener, QosUdpListener};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::thread;

/// Starts listeners that send each 100 bytes back: of streams and of datagrams. Returns their addresses.
pub fn echoes() -> [String; 2] {
    let mut options = cutline_bindings::Options::default();
    options.set("monitor.interval", "20 ms").unwrap();
    let options = options.qos_options().unwrap();
    let streams = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
    let datagrams = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
    let places = [streams.local_addr().unwrap(), datagrams.local_addr().unwrap()].map(|at| at.to_string());
    thread::spawn(move || {
        while let Ok((mut stream, _)) = streams.accept() {
            thread::spawn(move || {
                let mut data = [0; 100];
                while stream.read_exact(&mut data).is_ok() && stream.write_all(&data).is_ok() {}
            });
        }
    });
    thread::spawn(move || {
        while let Ok((socket, _)) = datagrams.accept() {
            thread::spawn(move || {
                let mut data = [0; 100];
                while socket.recv(&mut data).is_ok_and(|length| socket.send(&data[..length]).is_ok()) {}
            });
        }
    });
    places
}

#[test]
fn children_of_a_process_with_connections_make_their_own() {
    let places = echoes();
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fork.c"), folder.path());
    assert_eq!(c::run(&program, &[&places[0], &places[1], "60"]), "all is well\n");
}
