//! Requests over HTTP to the page and the metrics, from another host: no answer shows anything without the token.

use cutline_monitor::{MonitoredHost, OfflineServer, PublicationLimits, WebOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

const TOKEN: &str = "f1a7";

thread_local! {
    static SERVER: OfflineServer = server();
}

fn server() -> OfflineServer {
    let options = WebOptions {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: Some(TOKEN.to_owned()),
        names: Vec::new(),
        readers_see_all: false,
    };
    let host = Arc::new(MonitoredHost::new(PublicationLimits::DEFAULT));
    OfflineServer::new(options, host).expect("an event loop needs a few descriptors")
}

pub fn parse(bytes: &[u8]) -> bool {
    let answers = SERVER.with(|server| server.answers(bytes));
    if answers.is_empty() {
        return false;
    }
    assert!(answers.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answers));
    let contains = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let is_shown = contains(&answers, b" 200 OK\r\n");
    assert!(!is_shown || contains(bytes, TOKEN.as_bytes()), "{}", String::from_utf8_lossy(&answers));
    is_shown
}
