//! The monitor at work: collector and web server with the options of a command or a file.

use crate::collector::{Collector, CollectorOptions, MonitorError};
use crate::host::MonitoredHost;
use crate::web::{WebOptions, WebServer};
use cutline_sys::SysError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Options of a monitor.
#[derive(Clone, Debug)]
pub struct MonitorOptions {
    /// Options of the collector.
    pub collector: CollectorOptions,
    /// Options of the web server; `None`: there is no page.
    pub web: Option<WebOptions>,
}

/// A monitor that works in threads of its own until it is dropped.
#[derive(Debug)]
pub struct HostMonitor {
    host: Arc<MonitoredHost>,
    page: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), MonitorError>>>,
}

/// The shortest token, characters.
const SHORTEST_TOKEN: usize = 16;

impl HostMonitor {
    /// Opens sockets and starts the threads.
    ///
    /// # Errors
    /// When another monitor runs, an address cannot be listened at, or a thread cannot be started.
    pub fn start(options: MonitorOptions) -> Result<Self, MonitorError> {
        let MonitorOptions { collector, web } = options;
        let server = web.map(WebServer::bind).transpose()?;
        let mut collector = Collector::open(&collector)?;
        let host = collector.host();
        let mut page = None;
        if let Some(server) = server {
            page = server.address().ok();
            server.serve(Arc::clone(&host))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || collector.run(&[&stops]))
            .map_err(|error| SysError::new("the thread of the monitor cannot be started", error))?;
        Ok(Self { host, page, stop, thread: Some(thread) })
    }

    /// Returns the state of the host.
    pub const fn host(&self) -> &Arc<MonitoredHost> {
        &self.host
    }

    /// Returns the address of the page; `None` if there is none.
    pub const fn page(&self) -> Option<SocketAddr> {
        self.page
    }

    /// Returns whether it still works. It ends by itself only if descriptors cannot be waited for.
    pub fn is_at_work(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for HostMonitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Checks the content of a token's file.
///
/// # Errors
/// A sentence with the allowed contents.
pub fn token(content: &str) -> Result<String, String> {
    let token = content.trim();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(is_letter) {
        return Err(format!("a token has at least {SHORTEST_TOKEN} characters: letters, digits, - and _"));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_fits_into_an_address() {
        assert_eq!(token("  abcdefgh-1234_567\n"), Ok("abcdefgh-1234_567".to_owned()));
        for wrong in ["", "short", "has a space in its middle", "percent%20and&others=1"] {
            assert!(token(wrong).unwrap_err().contains("at least 16 characters"), "{wrong}");
        }
    }
}
