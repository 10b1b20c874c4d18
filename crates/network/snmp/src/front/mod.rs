//! The socket for managers' requests, in front of the agent's own.
//!
//! The agent answers requests in the order in which its socket receives them, so that a manager that sends requests without pause would fill the
//! receive buffer, and the requests of others would find no room. So a thread receives everything and drops requests beyond the bound of
//! its source, and the agent gets one request at a time, by turns ([`turns`]). Its own socket is on loopback and connected to this
//! module, so that the kernel drops whatever else is sent to it.

mod turns;

use crate::error::{MessageSink, SnmpError};
use crate::options::SnmpOptions;
use async_snmp::agent::Agent;
use cutline_sys::datagram_server::{DatagramServer, Ends};
use cutline_sys::datagrams::{Datagram, Inbox};
use cutline_sys::own_socket;
use cutline_sys::reactor::{PollFd, PollFlags, wait_once};
use cutline_sys::{lock, receive_queue};
use cutline_units::Duration;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use turns::{FairQueue, MOST_OF_SOURCE, Request};

/// Address of the agent's own socket.
pub const INNER: (IpAddr, u16) = (IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The largest request, bytes. Its answer, which has the same names, could not be sent: messages are 1472 B at most.
const LARGEST: usize = 8192;
/// The largest datagram.
const LARGEST_ANSWER: usize = 65_536;
/// Datagrams received with one system call.
const BATCH: usize = 64;
/// Room for requests that wait to be received, bytes; without `CAP_NET_ADMIN` as large as the system lets it be.
const RECEIVE_BUFFER: i32 = 4 << 20;
/// Interval between messages about dropped requests.
const REPORT_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// Number of looks in a row, each after all other tasks, that find the agent idle.
const IDLE_LOOKS: usize = 2;

/// Manager whose request is being answered; `None` between requests.
#[derive(Debug, Default)]
pub struct CurrentManager(Mutex<Option<IpAddr>>);

impl CurrentManager {
    /// Returns the address of the manager.
    pub fn address(&self) -> Option<IpAddr> {
        *lock(&self.0)
    }
}

/// Requests that wait, and their receiver.
#[derive(Debug, Default)]
struct Waiting {
    queue: Mutex<FairQueue>,
    arrived: Notify,
    dropped: AtomicU64,
    /// The source of the latest dropped request.
    last_dropped: Mutex<Option<SocketAddr>>,
}

/// The socket of the managers, with the thread that receives from it.
#[derive(Debug)]
pub struct Front {
    server: Arc<DatagramServer>,
    address: SocketAddr,
    waiting: Arc<Waiting>,
    current: Arc<CurrentManager>,
    /// The end of this one ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// The connection to the agent.
#[derive(Debug)]
struct Link {
    /// The end of this module.
    own: UdpSocket,
    /// Another descriptor of the agent's socket.
    of_agent: UdpSocket,
}

impl Front {
    /// Listens at the address in the options; `None` if there is no agent.
    ///
    /// # Errors
    /// When the address cannot be listened at, or the thread cannot be started.
    pub fn bind(options: &SnmpOptions) -> Result<Option<Self>, SnmpError> {
        let Some(listen) = options.listen else { return Ok(None) };
        let refused = |error: io::Error| SnmpError::Listen { address: listen, why: error.to_string() };
        let server = Arc::new(DatagramServer::bind(listen).map_err(refused)?);
        server.set_receive_buffer(RECEIVE_BUFFER).map_err(refused)?;
        let address = server.local_addr().map_err(refused)?;
        let waiting = Arc::new(Waiting::default());
        let (stop, stopped) = UnixStream::pair()?;
        let (of_thread, to) = (Arc::clone(&server), Arc::clone(&waiting));
        let receive = move || receive(&of_thread, &stopped, &to);
        let thread = std::thread::Builder::new().name("snmp-receive".to_owned()).spawn(receive)?;
        let current = Arc::default();
        Ok(Some(Self { server, address, waiting, current, stop: Some(stop), thread: Some(thread) }))
    }

    /// Returns the address for managers' requests.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the manager whose request is being answered.
    pub fn current(&self) -> Arc<CurrentManager> {
        Arc::clone(&self.current)
    }

    /// Passes the requests to the agent, one at a time, until its socket fails. The agent must run in the same runtime, of one thread:
    /// it is idle when its tasks have had their turn and wait for a datagram.
    pub async fn serve(&self, agent: &Agent) -> io::Result<()> {
        let link = Link::connect(agent)?;
        let mut answer = vec![0; LARGEST_ANSWER];
        loop {
            let next = lock(&self.waiting.queue).pop();
            let Some(request) = next else {
                self.waiting.arrived.notified().await;
                continue;
            };
            *lock(&self.current.0) = Some(request.ends.peer.ip().to_canonical());
            let length = link.ask(agent, &request.bytes, &mut answer).await?;
            *lock(&self.current.0) = None;
            if let Some(length) = length {
                // A manager without an answer repeats its request.
                let _is_sent = self.server.answer(&request.ends, &answer[..length]);
            }
        }
    }

    /// Logs the number of dropped requests each minute, if there were any.
    pub async fn report(&self, say: &MessageSink) {
        let mut ticks = interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let dropped = self.waiting.dropped.swap(0, Ordering::Relaxed);
            if dropped > 0 {
                let last = *lock(&self.waiting.last_dropped);
                let last = last.map_or_else(|| "unknown".to_owned(), |source| source.to_string());
                say(format!(
                    "snmp: {dropped} requests were dropped, the latest one of {last}: at most {MOST_OF_SOURCE} of a source wait"
                ));
            }
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop = None;
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

impl Link {
    /// Connects both ends with each other.
    fn connect(agent: &Agent) -> io::Result<Self> {
        let own = UdpSocket::bind(INNER)?;
        own.set_nonblocking(true)?;
        own.connect(agent.local_addr())?;
        let of_agent = own_socket::datagram_socket(agent.local_addr())?;
        of_agent.connect(own.local_addr()?)?;
        Ok(Self { own, of_agent })
    }

    /// Passes a request to the agent, and returns the length of its answer; `None` if it gives none, as to a wrong community.
    async fn ask(&self, agent: &Agent, request: &[u8], answer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.own.send(request).is_err() {
            return Ok(None);
        }
        let mut idle = 0;
        while idle < IDLE_LOOKS {
            tokio::task::yield_now().await;
            let is_idle = agent.active_request_count() == 0 && receive_queue(&self.of_agent)? == 0;
            idle = if is_idle { idle + 1 } else { 0 };
        }
        match self.own.recv(answer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Receives requests until the other end of `stopped` is gone.
fn receive(server: &DatagramServer, stopped: &UnixStream, to: &Waiting) {
    let mut inbox = Inbox::new(LARGEST, BATCH);
    let mut put = |datagram: Datagram<'_>| {
        let ends = Ends { peer: datagram.from, local: datagram.to };
        // The agent's socket would take an empty datagram for none.
        let is_request = (1..=LARGEST).contains(&datagram.length);
        if !is_request || !lock(&to.queue).push(Request { ends, bytes: datagram.head.into() }) {
            to.dropped.fetch_add(1, Ordering::Relaxed);
            *lock(&to.last_dropped) = Some(datagram.from);
        }
    };
    loop {
        let mut ready = [PollFd::new(server, PollFlags::IN), PollFd::new(stopped, PollFlags::HUP)];
        let waited = wait_once(&mut ready, Duration::MAX);
        if !ready[1].revents().is_empty() {
            return;
        }
        match waited {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        // An error is that of a datagram sent before, whose receiver has gone: it is taken with this call.
        if inbox.receive(server, &mut put).is_ok() {
            to.arrived.notify_one();
        }
    }
}
