//! The web server without a network, for trials of hostile requests.

use super::access::{Access, User};
use super::events::Events;
use super::{WebOptions, connection};
use crate::collector::MonitorError;
use crate::host::MonitoredHost;
use cutline_sys::SysError;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::runtime::Runtime;

/// Room for a request, and for its answers, bytes.
const ROOM: usize = 1 << 20;
/// Turns of the connection, each after all other tasks. It has answered or waits for more bytes after a few of them.
const TURNS: usize = 32;

/// A web server whose connections are buffers, and whose readers are on another host.
pub struct OfflineServer {
    access: Arc<Access>,
    events: Arc<Events>,
    runtime: Runtime,
}

impl OfflineServer {
    /// Creates a server.
    ///
    /// # Errors
    /// When the event loop cannot be created.
    pub fn new(options: WebOptions, host: Arc<MonitoredHost>) -> Result<Self, MonitorError> {
        let failed = |error| SysError::new("the event loop of the web server cannot be created", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        Ok(Self { access: Arc::new(Access::new(options)), events: Arc::new(Events::new(host)), runtime })
    }

    /// Returns the answers to the first bytes of a connection, at most 1 MiB of each.
    pub fn answers(&self, request: &[u8]) -> Vec<u8> {
        self.runtime.block_on(async {
            let (mut client, server) = duplex(ROOM);
            let mut answers = Vec::new();
            // There is room for everything, and the buffer is open.
            let _written = client.write_all(&request[..request.len().min(ROOM)]).await;
            let _closed = client.shutdown().await;
            {
                let mut served = pin!(connection(server, User::OfOtherHost, &self.access, &self.events));
                for _ in 0..TURNS {
                    if poll_fn(|context| Poll::Ready(served.as_mut().poll(context).is_ready())).await {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            // The server's end is closed, so that this ends.
            let _read = client.read_to_end(&mut answers).await;
            answers
        })
    }
}
