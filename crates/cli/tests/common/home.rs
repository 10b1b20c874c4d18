//! A folder with the router's file, its socket and its state, and requests to the socket.

use super::{Hosts, Lab, Router};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The folder.
pub struct Home {
    folder: TempDir,
    reverse_queue: &'static str,
}

impl Home {
    /// Creates the folder. The files in it will have this queue in the reverse direction.
    pub fn new(reverse_queue: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), reverse_queue }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes the router's file with this rate and queue in the forward direction. It replaces a file, pipe or link of the same name.
    pub fn describe(&self, rate: &str, queue: &str) {
        let text = format!(
            "in = \"p0\"\nout = \"p1\"\nsocket = {:?}\n[forward]\nrate = {rate:?}\nqueue = {queue}\n\
             [reverse]\nrate = \"50 Mbit/s\"\nqueue = {}\n",
            self.text("s.sock"),
            self.reverse_queue
        );
        drop(fs::remove_file(self.path("r.toml")));
        fs::write(self.path("r.toml"), text).unwrap();
    }

    /// Starts a router with the file.
    pub fn start(&self, hosts: Hosts) -> Lab {
        let router = Router::spawn(&hosts.middle, &["--config", &self.text("r.toml")], &[]);
        hosts.with(router)
    }

    /// Connects to the socket and sends the request as it is.
    pub fn client(&self, request: &str) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(self.path("s.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Sends a request and returns the reply.
    pub fn ask(&self, request: &str) -> Value {
        reply(&mut self.client(&format!("{request}\n")))
    }
}

/// Reads one reply.
pub fn reply(client: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
