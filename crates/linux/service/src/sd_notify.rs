//! Messages to the service manager: `sd_notify(3)`, a datagram of lines to the socket that `NOTIFY_SOCKET` names.
//!
//! Nothing here blocks: a service manager that has gone, or does not read, must not stop the service. A message that finds
//! the manager's socket full is sent by a later call; a watchdog message is dropped then. Without a service manager every
//! call does nothing.

use cutline_units::{Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The connection to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct SdNotify {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
    /// Messages that found the socket full, oldest first.
    pending: RefCell<VecDeque<String>>,
}

/// The most messages that are kept for later: more than two reloads send.
const MAX_PENDING: usize = 8;

impl SdNotify {
    /// Connects to the service manager that the environment names.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        let is_for_us =
            variable("WATCHDOG_PID").is_none_or(|process| process == std::process::id().to_string());
        let watchdog = variable("WATCHDOG_USEC").filter(|_| is_for_us);
        Self::new(std::env::var_os("NOTIFY_SOCKET").as_deref(), watchdog.as_deref())
    }

    fn new(socket: Option<&OsStr>, watchdog_us: Option<&str>) -> Self {
        let socket = socket.and_then(connect);
        let watchdog_us = watchdog_us.and_then(|us| us.parse().ok()).filter(|us| *us > 0);
        let watchdog = watchdog_us.map(Duration::from_micros).filter(|_| socket.is_some());
        Self { socket, watchdog, pending: RefCell::default() }
    }

    /// Returns the interval at which [`SdNotify::watchdog`] should be called: half of the manager's timeout.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|timeout| timeout / 2)
    }

    /// Reports that the service is ready, with a line of status.
    pub fn ready(&self, status: &str) {
        self.report(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Reports that the configuration is being reloaded since `now`. [`SdNotify::ready`] ends the reload.
    pub fn reloading(&self, now: Instant) {
        self.report(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_nanos() / 1000));
    }

    /// Reports that the service is alive.
    pub fn watchdog(&self) {
        if self.flush() {
            self.send("WATCHDOG=1");
        }
    }

    /// Reports that the service is shutting down.
    pub fn stopping(&self) {
        self.report("STOPPING=1");
    }

    /// Sends pending messages. Returns whether none is left.
    pub fn flush(&self) -> bool {
        let mut pending = self.pending.borrow_mut();
        while let Some(message) = pending.front() {
            if !self.send(message) {
                return false;
            }
            pending.pop_front();
        }
        true
    }

    fn report(&self, message: &str) {
        if self.flush() && self.send(message) {
            return;
        }
        let mut pending = self.pending.borrow_mut();
        if pending.len() == MAX_PENDING {
            pending.pop_front();
        }
        pending.push_back(message.to_owned());
    }

    /// Returns false when the manager's socket is full. Any other error counts as sent, since no retry would help.
    fn send(&self, message: &str) -> bool {
        let sent = self.socket.as_ref().map_or(Ok(0), |socket| socket.send(message.as_bytes()));
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Connects to a path or, with `@` in front, to an abstract address (`unix(7)`).
fn connect(name: &OsStr) -> Option<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(name),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    Some(socket)
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages that a manager listening at this address receives.
    fn received(address: &SocketAddr, name: &OsStr) -> Vec<String> {
        let listener = UnixDatagram::bind_addr(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let manager = SdNotify::new(Some(name), Some("3000000"));
        assert_eq!(manager.watchdog_interval(), Some(Duration::from_millis(1500)));
        manager.ready("routing\nboth ways");
        manager.reloading(Instant::from_nanos(5_000_999));
        manager.watchdog();
        manager.stopping();
        let mut buffer = [0; 200];
        let mut all = Vec::new();
        while let Ok(length) = listener.recv(&mut buffer) {
            all.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        all
    }

    #[test]
    fn each_state_is_reported_once() {
        let expected = [
            "READY=1\nSTATUS=routing both ways",
            "RELOADING=1\nMONOTONIC_USEC=5000",
            "WATCHDOG=1",
            "STOPPING=1",
        ];
        let path = std::env::temp_dir().join(format!("cutline-notify-{}", std::process::id()));
        drop(std::fs::remove_file(&path));
        let by_path = received(&SocketAddr::from_pathname(&path).unwrap(), path.as_os_str());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(by_path, expected);
        let name = format!("cutline-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        assert_eq!(received(&abstract_name, OsStr::new(&format!("@{name}"))), expected);
    }

    #[test]
    fn a_message_that_finds_the_socket_full_is_sent_later() {
        let name = format!("cutline-notify-full-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let manager = SdNotify::new(Some(OsStr::new(&format!("@{name}"))), None);
        while manager.send("WATCHDOG=1") {}
        manager.ready("late");
        manager.watchdog();
        assert!(!manager.flush());
        let receive = || {
            let mut buffer = [0; 50];
            let length = listener.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        while receive().is_some() {}
        assert!(manager.flush());
        assert_eq!((receive().as_deref(), receive()), (Some("READY=1\nSTATUS=late"), None));
    }

    #[test]
    fn without_a_manager_there_is_no_watchdog() {
        let none = SdNotify::new(None, Some("1000000"));
        none.ready("");
        assert_eq!(none.watchdog_interval(), None);
        assert_eq!(SdNotify::new(Some(OsStr::new("/nosuch/socket")), None).watchdog_interval(), None);
    }
}
