//! The other end: a host with `cutline tg receive`, or a receiver in this process, on the loopback or in a namespace of its own.

use crate::error::RunError;
use crate::headers::Packets;
use cutline_sys::namespace::{self, Namespace};
use cutline_traffic::control::{Key, Receiver, ReceiverParams};
use cutline_units::Duration;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

/// Addresses of the interfaces in both namespaces. No other namespace has a route to them.
const NETWORK: [&str; 2] = ["198.18.34.1", "198.18.34.2"];
/// The longest measurement that a receiver in this process allows.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The kind of the other end.
#[derive(Clone, Debug)]
pub enum FarEndKind {
    /// A receiver of `cutline tg` at these addresses, which are tried in order; with the key that it requires, and the source address
    /// of the measurement.
    Host {
        /// The name in the table.
        name: String,
        /// The addresses and the port of the control connection.
        addresses: Vec<SocketAddr>,
        /// The key; `None` for none.
        key: Option<Key>,
        /// The source address; `None`: the kernel's choice.
        from: Option<SocketAddr>,
    },
    /// A receiver in this process, on 127.0.0.1.
    Loopback,
    /// A receiver in this process; sender and receiver are in network namespaces of their own, joined by a pair of virtual
    /// interfaces. This requires root.
    Namespaces,
}

/// The other end of the measurements.
pub struct FarEnd {
    pub(crate) name: String,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) key: Option<Key>,
    pub(crate) from: Option<SocketAddr>,
    local: Option<LocalReceiver>,
}

/// A receiver in this process. It stops when this is dropped.
struct LocalReceiver {
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<Result<(), RunError>>>,
    /// The namespace of the sender; `None` on the loopback.
    sender: Option<Namespace>,
}

impl FarEnd {
    /// Prepares the other end: starts a receiver if it is in this process.
    ///
    /// # Errors
    /// When a receiver in this process cannot be started, or namespaces cannot be made.
    pub fn new(kind: FarEndKind) -> Result<Self, RunError> {
        match kind {
            FarEndKind::Host { name, addresses, key, from } => {
                Ok(Self { name, addresses, key, from, local: None })
            }
            FarEndKind::Loopback => Self::in_this_process("loopback", "127.0.0.1", None),
            FarEndKind::Namespaces => {
                namespace::permitted()?;
                // Namespaces of a killed process are harmless, and are removed if possible.
                let _left = namespace::sweep();
                let pair = pair()?;
                Self::in_this_process("namespaces", NETWORK[1], Some(pair))
            }
        }
    }

    fn in_this_process(name: &str, address: &str, pair: Option<[Namespace; 2]>) -> Result<Self, RunError> {
        let address = SocketAddr::new(address.parse().expect("it is an address"), 0);
        let (sender, receiver) =
            pair.map_or((None, None), |[sender, receiver]| (Some(sender), Some(receiver)));
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, listening) = channel();
        let is_over = Arc::clone(&stop);
        let serve = move || -> Result<(), RunError> {
            let params = ReceiverParams {
                longest_run: LONGEST,
                most_connections: u32::MAX,
                ..ReceiverParams::default()
            };
            let mut serving = Receiver::bind(&[address], params)?;
            // The other thread waits for it.
            let _heard = ready.send(serving.addresses()?);
            while serving.session(&is_over)?.is_some() {}
            Ok(())
        };
        let within = move || match receiver {
            Some(namespace) => namespace.within(serve)?,
            None => serve(),
        };
        let started = thread::Builder::new().name("baseline-receiver".to_owned()).spawn(within);
        let serving =
            started.map_err(|error| RunError::System("a thread cannot be started".to_owned(), error))?;
        let Ok(addresses) = listening.recv() else {
            return match serving.join() {
                Ok(ended) => Err(ended.err().unwrap_or(RunError::ReceiverGone)),
                Err(panic) => std::panic::resume_unwind(panic),
            };
        };
        let local = Some(LocalReceiver { stop, serving: Some(serving), sender });
        Ok(Self { name: name.to_owned(), addresses, key: None, from: None, local })
    }

    /// Returns the least time between the beginnings of two sessions: a receiver elsewhere allows 60 connections a minute.
    pub(crate) const fn spacing(&self) -> Duration {
        if self.local.is_some() { Duration::ZERO } else { Duration::from_millis(1_100) }
    }

    /// Runs `work` in the namespace of the sender.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        match self.local.as_ref().and_then(|local| local.sender.as_ref()) {
            Some(namespace) => Ok(namespace.within(work)?),
            None => Ok(work()),
        }
    }

    /// Returns the packets of the path to the first address that has a route.
    pub(crate) fn packets(&self) -> Result<Packets, RunError> {
        self.within(|| {
            let mut failed = None;
            for address in &self.addresses {
                match mtu(*address) {
                    Ok(mtu) => return Ok(Packets { mtu, is_ipv6: address.is_ipv6() }),
                    Err(error) => failed = Some(error),
                }
            }
            let none = || io::Error::from(io::ErrorKind::NotFound);
            Err(RunError::System("there is no path to the receiver".to_owned(), failed.unwrap_or_else(none)))
        })?
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(serving) = self.serving.take() {
            // Its errors have ended a measurement already.
            let _ended = serving.join();
        }
    }
}

/// Makes two namespaces and a pair of virtual interfaces between them.
fn pair() -> Result<[Namespace; 2], RunError> {
    let pair = [Namespace::create("bases")?, Namespace::create("based")?];
    let [sender, receiver] = &pair;
    let lines = format!(
        "link add host type veth peer name host netns {}\naddress add {}/30 dev host\nlink set host up\n",
        receiver.name(),
        NETWORK[0]
    );
    sender.ip_batch_towards(&[receiver], &lines)?;
    receiver.ip_batch(&format!("address add {}/30 dev host\nlink set host up\n", NETWORK[1]))?;
    Ok(pair)
}

/// Returns the longest IP packet of the path to an address.
fn mtu(to: SocketAddr) -> io::Result<u32> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &to)?;
    let mtu = if to.is_ipv4() { sockopt::ip_mtu(&socket) } else { sockopt::ipv6_mtu(&socket) };
    Ok(mtu?)
}
