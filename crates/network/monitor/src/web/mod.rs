//! The page and the metrics over HTTP: one thread, with an event loop of its own (tokio).
//!
//! Everything is read only. A page of another site cannot read it: the name in the header `Host` has to be one of this host, and browsers
//! state where a request comes from. Over the loopback the kernel states which user has connected; that user sees its own processes. A
//! reader with the token sees all.
//!
//! ```text
//! access              the user of a request, and the right
//! events              a document each second, for the page
//! connection_limiter  limits of the number of connections
//! answers             the answer of each path
//! offline             the server without a network, for trials
//! page/               the page: HTML, styles and a script, all from here
//! ```

mod access;
mod answers;
mod connection_limiter;
mod events;
mod offline;

use crate::collector::MonitorError;
use crate::host::MonitoredHost;
pub use offline::OfflineServer;

use access::{Access, User};
use connection_limiter::ConnectionLimiter;
use events::Events;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;

use cutline_sys::SysError;

/// Options of the web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOptions {
    /// Address to listen at.
    pub listen: SocketAddr,
    /// A reader that states this token sees everything; `None`: there is no such token.
    pub token: Option<String>,
    /// Names of this host that requests may state, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// True if every reader sees the processes of all users.
    pub readers_see_all: bool,
}

/// A bound web server, which does not answer yet.
#[derive(Debug)]
pub struct WebServer {
    listener: std::net::TcpListener,
    access: Access,
}

/// Time that a connection may take for the headers of a request, its first one included.
const HEADERS: Duration = Duration::from_secs(10);
/// The most bytes of headers.
const MOST_HEADERS: usize = 16 << 10;
/// Time for which a reader may read nothing of an answer.
const UNREAD: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted: there may be no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

impl WebServer {
    /// Binds a server.
    ///
    /// # Errors
    /// When the address is not one of this host, or in use; when it is not the loopback's and there is no token.
    pub fn bind(options: WebOptions) -> Result<Self, MonitorError> {
        let is_local = options.listen.ip().is_loopback();
        if !is_local && options.token.is_none() {
            return Err(MonitorError::NeedsToken(options.listen));
        }
        let failed =
            |error| SysError::new(format!("listen = {}: cannot listen there", options.listen), error);
        let listener = std::net::TcpListener::bind(options.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, access: Access::new(options) })
    }

    /// Returns the address that it listens at.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts a thread that answers until the process ends.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn serve(self, host: Arc<MonitoredHost>) -> Result<(), MonitorError> {
        let failed = |error| SysError::new("the thread of the web server cannot be started", error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let Self { listener, access } = self;
        let serve = move || runtime.block_on(accept(listener, Arc::new(access), host));
        let thread = std::thread::Builder::new().name("web".to_owned());
        thread.spawn(serve).map(drop).map_err(|error| failed(error).into())
    }
}

/// Accepts connections.
async fn accept(listener: std::net::TcpListener, access: Arc<Access>, host: Arc<MonitoredHost>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let events = Arc::new(Events::new(Arc::clone(&host)));
    let limiter = Arc::new(ConnectionLimiter::default());
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        // It is the user who has opened the connection, for as long as that lasts.
        let user = access::user_of(peer, local);
        // A connection without a permit is closed: pages try again.
        let Some(permit) = limiter.take(user) else { continue };
        let (access, events) = (Arc::clone(&access), Arc::clone(&events));
        tokio::spawn(async move {
            connection(stream, user, &access, &events).await;
            drop(permit);
        });
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite,
    user: User,
    access: &Arc<Access>,
    events: &Arc<Events>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    let service = service_fn(|request| {
        let (access, events) = (Arc::clone(access), Arc::clone(events));
        async move { Ok::<_, std::convert::Infallible>(answers::answer(&request, user, &access, &events)) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MOST_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    // A reader that has gone, or whose request is no HTTP, gets nothing.
    let _gone = served.await;
}

/// Returns whether an address is one of this host's loopback, also as a mapped address of IPv6.
fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
