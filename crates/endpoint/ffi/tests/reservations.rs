//! A program in C that requests reservations, and an agent in the place of `cutlined` that answers as the test requires.

use crate::c;

use cutline_flow::TrafficSpec;
use cutline_provision::protocol::{Reply, Request, VERSION};
use cutline_provision::{Refusal, RefusalReason};
use cutline_units::{Bytes, Rate};
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

const NODE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// Answers clients at `path` for as long as the test runs. Other requests are accepted.
fn agent(path: &Path, answer: fn(&Request) -> Vec<Reply>) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            thread::spawn(move || serve(&client.unwrap(), answer));
        }
    });
}

fn serve(client: &UnixStream, answer: fn(&Request) -> Vec<Reply>) {
    for line in BufReader::new(client).lines() {
        // It ends like this when the client is gone.
        let Ok(line) = line else { return };
        let request = Request::parse(line.as_bytes()).unwrap();
        let replies = match &request {
            Request::Hello { .. } => vec![Reply::Welcome { version: VERSION }],
            Request::Announce { id, .. } | Request::Reserve { id, .. } => {
                [vec![Reply::Accepted { id: *id }], answer(&request)].concat()
            }
            other => panic!("a QoS socket asks {other:?}"),
        };
        for reply in replies {
            let mut client = client;
            if client.write_all(reply.line().as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Less than requested for sent traffic; all for received traffic.
fn granted(request: &Request) -> Vec<Reply> {
    let less = TrafficSpec {
        rate: Rate::from_bps(500_000),
        bucket: Bytes::new(3000),
        peak: Rate::from_bps(1_000_000),
        min_policed: Bytes::new(64),
        max_packet: Bytes::new(1500),
    };
    match request {
        Request::Announce { id, .. } => vec![Reply::Reserved { id: *id, bucket: Some(less) }],
        Request::Reserve { id, .. } => vec![Reply::Confirmed { id: *id, node: NODE }],
        _ => Vec::new(),
    }
}

fn refused(request: &Request) -> Vec<Reply> {
    let refusal =
        Refusal { reason: RefusalReason::Bandwidth, node: Some(NODE), available_bps: Some(400_000) };
    match request {
        Request::Reserve { id, .. } => vec![Reply::Failed { id: *id, refusal, in_place: false }],
        _ => Vec::new(),
    }
}

#[test]
fn a_program_in_c_reads_reservations_and_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let program = c::build(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reserve.c"), folder.path());
    let [at_granted, at_refused, silent, none] =
        ["granted", "refused", "silent", "none"].map(|name| folder.path().join(name));
    agent(&at_granted, granted);
    agent(&at_refused, refused);
    agent(&silent, |_| Vec::new());
    for (socket, answer) in [
        (&at_granted, "granted"),
        (&at_refused, "refused"),
        (&silent, "unanswered"),
        (&none, "no-agent"),
        (&none, "without"),
    ] {
        let said = c::run(&program, &[socket.to_str().unwrap(), answer]);
        assert_eq!(said.trim(), answer);
    }
}
