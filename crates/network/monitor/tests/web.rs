//! The page and the metrics over HTTP: ordinary readers first, then hostile ones.

use crate::common::{Monitor, PATIENCE, TOKEN, publish};
use cutline_testbed::skip;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Sends a request, and returns the whole answer.
fn ask(at: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(at: SocketAddr, path: &str, more: &str) -> String {
    ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{more}\r\n"))
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn every_path_answers_with_its_kind_and_nothing_of_other_sites_is_loaded() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..2);
    monitor.wait_for(|document| document.sockets.len() == 2);
    let at = monitor.serve();
    for (path, kind, content) in [
        ("/", "text/html", "<title>Cutline</title>"),
        ("/page.js", "text/javascript", "EventSource"),
        ("/page.css", "text/css", "prefers-color-scheme"),
        ("/metrics", "text/plain; version=0.0.4", "cutline_program_sockets{program=\"video\"} 2"),
        ("/api/explain", "application/json", "\"event\":\"explanation\""),
        ("/api/host", "application/json", "\"peer\":\"192.0.2.1:1\""),
        ("/api/history", "application/json", "[]"),
    ] {
        let answer = get(at, path, "");
        assert_eq!(status(&answer), "200", "{path}: {answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        assert!(head.contains("default-src 'none'") && head.contains("nosniff"), "{path}: {head}");
        assert!(body.contains(content), "{path}: {body}");
    }
    let page = get(at, "/", "");
    assert!(!page.contains("http://") && !page.contains("https://"), "the page loads from here alone");
    let open = get(at, "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(open.ends_with("# EOF\n") && open.contains("application/openmetrics-text"), "{open}");
    for (path, code) in [
        ("/etc/passwd", "404"),
        ("/api/history/socket", "400"),
        ("/api/history/socket?pid=1&socket=2", "404"),
    ] {
        assert_eq!(status(&get(at, path, "")), code, "{path}");
    }
    let series = get(at, &format!("/api/history/socket?pid={}&socket=1", std::process::id()), "");
    assert!(["200", "404"].contains(&status(&series)), "the first second may not have passed: {series}");
    let head = ask(at, &format!("HEAD /metrics HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n"));
    assert!(head.ends_with("\r\n\r\n") && status(&head) == "200", "{head}");
}

#[test]
fn other_names_other_sites_and_writing_are_refused() {
    let monitor = Monitor::start();
    let at = monitor.serve();
    let of_host =
        |host: &str| ask(at, &format!("GET /api/host HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    assert_eq!(status(&of_host("evil.example")), "403");
    assert!(of_host("evil.example").contains("Use its IP address or localhost"));
    assert_eq!(status(&of_host("localhost")), "200");
    assert_eq!(status(&get(at, "/api/host", "Origin: https://evil.example\r\n")), "403");
    assert_eq!(
        status(&get(at, "/api/host", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n")),
        "403"
    );
    assert_eq!(status(&get(at, "/api/host", "Authorization: Bearer wrong\r\n")), "403");
    assert_eq!(status(&get(at, &format!("/api/host?token={TOKEN}"), "")), "200");
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = ask(
            at,
            &format!(
                "{method} /api/host HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            ),
        );
        assert_eq!(status(&answer), "405", "{method}");
    }
}

/// Returns whether this user may have more connections than a user other than root. Skips the test that it is called from otherwise.
fn has_places_of_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(
            "only root has more than 64 connections",
            "sudo -E cargo test -p cutline-monitor --test all -- web::",
        );
    }
    is_root
}

#[test]
fn events_come_each_second_to_a_thousand_readers() {
    if !has_places_of_root() {
        return;
    }
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..100);
    monitor.wait_for(|document| document.sockets.len() == 100);
    cutline_sys::resources::allow_most_descriptors();
    let at = monitor.serve();
    let request = format!("GET /api/events HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let readers: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        })
        .collect();
    // Most of them never read; one does, and a new one is served as well.
    let mut text = String::new();
    let mut first = &readers[500];
    let mut part = vec![0; 65_536];
    while text.matches("data: {").count() < 3 {
        let length = first.read(&mut part).unwrap();
        assert!(length > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    assert!(text.contains("text/event-stream"), "{text}");
    assert_eq!(status(&get(at, "/metrics", "")), "200");
    drop(readers);
    assert_eq!(status(&get(at, "/api/host", "")), "200");
}

#[test]
fn slow_long_or_invalid_requests_do_not_block_others() {
    if !has_places_of_root() {
        return;
    }
    let monitor = Monitor::start();
    let at = monitor.serve();
    let slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
            stream
        })
        .collect();
    let mut long = TcpStream::connect(at).unwrap();
    let _closed = long.write_all(&vec![b'a'; 200_000]);
    let mut binary = TcpStream::connect(at).unwrap();
    let _closed = binary.write_all(&[0x16, 3, 1, 0, 0xff, 0, 0, 13, 10, 13, 10]);
    assert_eq!(status(&get(at, "/metrics", "")), "200");
    // The slow ones are closed.
    let began = Instant::now();
    let mut first = &slow[0];
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    let _reset = first.read_to_end(&mut rest);
    assert!(began.elapsed() < PATIENCE, "closed after {:?}", began.elapsed());
    drop(slow);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(status(&get(at, "/", "")), "200");
}

/// Everything that is one byte away from a request, cut anywhere: it is answered or closed, nothing that is refused gets a row, and the next
/// reader is served.
#[test]
fn damaged_requests_do_not_disturb_others() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..1);
    monitor.wait_for(|document| document.sockets.len() == 1);
    let at = monitor.serve();
    let request = format!(
        "GET /api/host?token={TOKEN} HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(status(&ask(at, &request)), "200");
    let (mut answered, mut refused) = (0, 0);
    for place in 0..request.len() {
        for change in [0x00, b'\n', b' ', b'%', 0x7f, 0xff] {
            let mut changed = request.clone().into_bytes();
            changed[place] = change;
            let mut stream = TcpStream::connect(at).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // It may be closed before everything is written.
            let _closed = stream.write_all(&changed);
            let _closed = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _reset = stream.read_to_end(&mut answer);
            let answer = String::from_utf8_lossy(&answer).into_owned();
            if answer.contains("\"peer\":\"192.0.2.1:0\"") {
                assert_eq!(status(&answer), "200", "{changed:?}");
                answered += 1;
            } else {
                refused += 1;
            }
        }
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(&request.as_bytes()[..place]).unwrap();
    }
    assert!(answered > 0 && refused > 100, "{answered} answered, {refused} refused");
    assert_eq!(status(&get(at, "/metrics", "")), "200");
}

/// Each of such answers takes megabytes as long as its reader does not read.
#[test]
fn a_reader_that_does_not_read_its_answer_is_disconnected() {
    let monitor = Monitor::start();
    let mut video = monitor.publisher("video");
    publish(&mut video, 0..1000);
    monitor.wait_for(|document| document.sockets.len() == 1000);
    let at = monitor.serve();
    // Ten seconds are allowed. A busy machine takes longer to come to them.
    let is_disconnected = |after: u64| {
        let mut stream = TcpStream::connect(at).unwrap();
        // More than the kernel keeps.
        let requests = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\n\r\n").repeat(20);
        stream.write_all(requests.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_secs(after));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        let head = String::from_utf8_lossy(&answer[..answer.len().min(2000)]).into_owned();
        let length = head.split_once("content-length: ").unwrap().1.split("\r\n").next().unwrap();
        let length: usize = length.parse().unwrap();
        answer.len() < 20 * length
    };
    assert!([15, 60].into_iter().any(is_disconnected), "all bytes were kept");
}
