//! Programs in C that close, or end, deliver what their streams have accepted to a slow reader that reports often.
#![expect(clippy::disallowed_methods, reason = "a slow reader takes real time")]

use crate::c;

use cutline_socket::{QosOptions, QosTcpListener, QosTcpStream};
use cutline_testbed::slow_loopback;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// Options of an end that reports often.
fn talkative() -> QosOptions {
    let mut options = cutline_bindings::Options::default();
    options.set("monitor.interval", "20 ms").unwrap();
    options.qos_options().unwrap()
}

/// Reads all, slowly at first. Returns the number of bytes.
fn read_slowly(mut stream: impl Read) -> std::io::Result<usize> {
    let (mut all, mut piece) = (0, vec![0; 1 << 16]);
    for reads in 0.. {
        if reads < 40 {
            thread::sleep(Duration::from_millis(20));
        }
        match stream.read(&mut piece)? {
            0 => break,
            read => all += read,
        }
    }
    Ok(all)
}

#[test]
fn a_program_delivers_accepted_data_however_it_ends() {
    delivers(&["close", "idle", "return", "exit", "shutdown", "destructor"], &[4, 3_000_000, 8_000_000]);
    delivers(&["close", "exit"], &[64_000_000]);
}

/// The library's end in a process that ends does not wait for a short time alone.
#[test]
fn a_program_that_ends_delivers_accepted_data_over_a_slow_link() {
    let Some(namespace) = slow_loopback("slowleave", "run the tests of cutline-ffi as root") else { return };
    namespace.within(|| delivers(&["close", "return", "exit", "destructor"], &[3_000_000])).unwrap();
}

/// Has a program in C write so many bytes, and end in each of these ways. All must arrive.
fn delivers(ways: &[&str], sizes: &[usize]) {
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leave.c"), folder.path());
    let listener = QosTcpListener::bind("127.0.0.1:0", &talkative()).unwrap();
    let to = listener.local_addr().unwrap().to_string();
    for &how in ways {
        for &size in sizes {
            let words = [to.clone(), size.to_string(), how.to_owned()];
            let ran = thread::spawn({
                let program = program.clone();
                move || c::run(&program, &words.each_ref().map(String::as_str))
            });
            let got = listener.accept().and_then(|(stream, _)| read_slowly(stream));
            assert_eq!(ran.join().unwrap(), "");
            assert_eq!(got.map_err(|error| error.to_string()), Ok(size), "{how}");
        }
    }
}

/// With a plain socket at the other end, too. Its data, which the program does not read, arrives before the program ends: the
/// program can write 8 MB only once the peer reads.
#[test]
fn a_plain_peer_receives_the_accepted_data_of_a_program_that_ends() {
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leave.c"), folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    for how in ["close", "return", "exit", "shutdown", "destructor"] {
        for (size, unread) in [(4, 0), (8_000_000, 1000)] {
            let words = [to.clone(), size.to_string(), how.to_owned(), "plain".to_owned()];
            let ran = thread::spawn({
                let program = program.clone();
                move || c::run(&program, &words.each_ref().map(String::as_str))
            });
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&vec![7; unread]).unwrap();
            let got = read_slowly(stream);
            assert_eq!(ran.join().unwrap(), "");
            assert_eq!(got.map_err(|error| error.to_string()), Ok(size), "{how}");
        }
    }
}

#[test]
fn the_file_server_serves_a_slow_reader_that_reports() {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/sockets/c/files.c");
    let program = c::build(&source, folder.path());
    fs::write(folder.path().join("large"), vec![7; 3_000_000]).unwrap();
    let words = ["serve", "127.0.0.1:0", folder.path().to_str().unwrap()];
    let mut server = c::command(&program).args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let to = format!("127.0.0.1:{}", first.trim().strip_prefix("port ").unwrap());
    let got = (|| {
        let mut stream = QosTcpStream::connect(to, &talkative())?;
        stream.write_all(b"large\n")?;
        read_slowly(stream)
    })();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(got.map_err(|error| error.to_string()), Ok(3_000_000));
}
