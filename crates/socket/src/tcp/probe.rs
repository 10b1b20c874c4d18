//! Asking whether somebody is a QoS socket, and answering.

use crate::connection::{lock, random};
use crate::error::QosError;
use crate::options::QosOptions;
use crate::settings::Settings;
use cutline_signal::authentication::Key;
use cutline_signal::presence::{LONGEST, answer, is_answer, question};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time;

/// How often a question is sent.
const TRIES: u64 = 3;
/// How long somebody who has asked is expected to begin.
const EXPECTED: Duration = Duration::from_secs(10);
/// The most addresses of such.
const MOST_EXPECTED: usize = 1024;
/// How often the thread that answers looks whether its listener is there.
const LOOK: time::Duration = time::Duration::from_millis(500);

/// Returns whether there is a QoS socket at this address. The question is marked as the stream will be.
pub fn ask(peer: SocketAddr, options: &QosOptions, settings: &Settings) -> Result<bool, QosError> {
    let doing = "cannot ask for a QoS socket";
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(QosError::system(doing))?;
    socket.set_nonblocking(true).map_err(QosError::system(doing))?;
    settings.mark(&socket, peer)?;
    let nonce = random()?;
    let asked = question(nonce, options.key.as_ref());
    if socket.connect(peer).is_err() {
        // The address is of no use for datagrams. Whether it is for a stream will be seen.
        return Ok(false);
    }
    for _ in 0..TRIES {
        if socket.send(&asked).is_err() {
            return Ok(false);
        }
        let until = now().saturating_add(Duration::from_nanos(options.detection.as_nanos() / TRIES));
        loop {
            let mut bytes = [0; LONGEST + 1];
            match socket.recv(&mut bytes) {
                Ok(length) if is_answer(&bytes[..length], nonce, options.key.as_ref()) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if now() >= until {
                        break;
                    }
                    let mut readable = [PollFd::new(&socket, PollFlags::IN)];
                    wait(&mut readable, until.saturating_since(now())).map_err(QosError::system(doing))?;
                }
                // Nobody is there.
                Err(_) => return Ok(false),
            }
        }
    }
    Ok(false)
}

/// Who has asked lately.
#[derive(Debug, Default)]
pub struct Callers(Mutex<BTreeMap<IpAddr, Instant>>);

impl Callers {
    /// Whether this address is expected to begin a negotiation.
    pub fn expects(&self, address: IpAddr) -> bool {
        let callers = lock(&self.0);
        callers.get(&address).is_some_and(|at| now().saturating_since(*at) <= EXPECTED)
    }

    fn note(&self, address: IpAddr) {
        let (mut callers, now) = (lock(&self.0), now());
        if callers.len() >= MOST_EXPECTED {
            callers.retain(|_, at| now.saturating_since(*at) <= EXPECTED);
        }
        if callers.len() < MOST_EXPECTED {
            callers.insert(address, now);
        }
    }
}

/// Answers questions as long as the list of callers is there, in a thread of its own: an application that does not accept for a
/// while is a QoS socket all the same.
pub fn respond(socket: UdpSocket, callers: &Arc<Callers>, key: Option<Key>) -> io::Result<()> {
    socket.set_read_timeout(Some(LOOK))?;
    let callers = Arc::downgrade(callers);
    thread::Builder::new()
        .name("cutline-presence".to_owned())
        .spawn(move || run(&socket, &callers, key.as_ref()))?;
    Ok(())
}

fn run(socket: &UdpSocket, callers: &Weak<Callers>, key: Option<&Key>) {
    let mut bytes = [0; LONGEST + 1];
    while let Some(callers) = callers.upgrade() {
        if let Ok((length, from)) = socket.recv_from(&mut bytes)
            && let Some(answered) = answer(&bytes[..length], key)
        {
            callers.note(from.ip());
            let _lost = socket.send_to(&answered, from);
        }
    }
}
