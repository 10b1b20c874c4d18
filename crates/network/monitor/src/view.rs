//! The page of one router, for a host where no monitor runs. The process of the router serves it.

use crate::collector::MonitorError;
use crate::host::MonitoredHost;
use crate::registry::{Process, PublicationLimits, PublishedLine, PublishedLineError, PublisherId};
use crate::web::{WebOptions, WebServer};
use cutline_router_service::Statistics;
use cutline_sys::SysError;
use rustix::process::{getpid, getuid};
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A bound page of one router.
#[derive(Debug)]
pub struct RouterView {
    server: WebServer,
    address: SocketAddr,
}

/// Interval at which the page gets statistics.
const EVERY: Duration = Duration::from_secs(1);
/// Name under which the router is shown.
const PROGRAM: &str = "cutline router";

impl RouterView {
    /// Binds a page at an address of this host's loopback.
    ///
    /// # Errors
    /// When the address is not of the loopback, or in use.
    pub fn bind(listen: SocketAddr) -> Result<Self, MonitorError> {
        let options = WebOptions { listen, token: None, names: Vec::new(), readers_see_all: false };
        let server = WebServer::bind(options)?;
        let address = server.address().unwrap_or(listen);
        Ok(Self { server, address })
    }

    /// Returns its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the threads that serve it until the process ends. `statistics` returns those of the router; `None` while it does not answer.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn serve(
        self,
        statistics: impl Fn() -> Option<Statistics> + Send + 'static,
    ) -> Result<(), MonitorError> {
        let host = Arc::new(MonitoredHost::new(PublicationLimits::DEFAULT));
        let id = open(&host)
            .map_err(|error| SysError::new("the router cannot be shown", io::Error::other(error)))?;
        self.server.serve(Arc::clone(&host))?;
        let feed = move || {
            loop {
                // Without an answer the last statistics stay.
                if let Some(statistics) = statistics() {
                    let _put = put(&host, id, &json!({ "router": statistics }));
                }
                host.note_second();
                thread::park_timeout(EVERY);
            }
        };
        let thread = thread::Builder::new().name("view".to_owned()).spawn(feed);
        let failed = |error| SysError::new("the thread of the page cannot be started", error);
        Ok(thread.map(drop).map_err(failed)?)
    }
}

/// Adds this process to the registry, as a publisher does.
fn open(host: &MonitoredHost) -> Result<PublisherId, PublishedLineError> {
    let process = Process { pid: getpid().as_raw_nonzero().get().cast_unsigned(), uid: getuid().as_raw() };
    let id = host.registry().open(process)?;
    put(host, id, &json!({ "hello": { "version": cutline_publish::VERSION, "program": PROGRAM } }))?;
    Ok(id)
}

/// Puts a line into the registry, as a publisher sends it.
fn put(host: &MonitoredHost, id: PublisherId, line: &serde_json::Value) -> Result<(), PublishedLineError> {
    let line = PublishedLine::parse(line.to_string().as_bytes())?;
    host.registry().take(id, line)
}
