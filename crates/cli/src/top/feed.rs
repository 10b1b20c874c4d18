//! Documents of the monitor. A thread requests them, so that keys are handled while a monitor does not answer.

use super::EVERY;
use cutline_monitor::{HostDocument, MonitorClient};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Documents as they come, each second, and the reasons why one has not come.
pub struct Feed(Receiver<Result<HostDocument, String>>);

impl Feed {
    /// Starts to request documents. After an error it connects to the monitor at `socket` again, which may have been started again.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(mut client: MonitorClient, socket: PathBuf) -> io::Result<Self> {
        let (to, from) = sync_channel(1);
        let request = move || {
            loop {
                thread::sleep(EVERY);
                let next = client.host().map_err(|error| error.to_string());
                if next.is_err()
                    && let Ok(again) = MonitorClient::connect(&socket)
                {
                    client = again;
                }
                // The picture has been closed.
                if to.send(next).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("feed".to_owned()).spawn(request)?;
        Ok(Self(from))
    }

    /// Returns the oldest document or error that was not taken; `None` if there is none yet. It does not wait.
    pub fn next(&self) -> Option<Result<HostDocument, String>> {
        self.0.try_recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_restarted_monitor_is_queried_again() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("monitor.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let client = MonitorClient::connect(&socket).unwrap();
        let monitor = thread::spawn(move || {
            let document = serde_json::to_string(&HostDocument::default()).unwrap();
            for answer in ["{\"event\":\"error\",\"error\":\"it is ending\"}", &document] {
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                writeln!(stream, "{answer}").unwrap();
            }
        });
        let feed = Feed::start(client, socket).unwrap();
        assert!(feed.next().is_none(), "it does not wait");
        let mut found = Vec::new();
        while found.last().is_none_or(Result::is_err) {
            found.extend(feed.next());
            thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(found[0].as_ref().unwrap_err().contains("it is ending"), "{found:?}");
        monitor.join().unwrap();
    }
}
