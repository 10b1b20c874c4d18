//! What a service tells its manager: `sd_notify(3)`, which is a datagram of lines to the socket that `NOTIFY_SOCKET` names.
//!
//! A manager that has gone, or does not read, is no reason for a router to stop or to wait: nothing here blocks. What
//! finds the manager's socket full is told later, by the next call; a sign of life is not worth that. Where there is no
//! manager every call does nothing.

use cutline_units::{Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The manager, if there is one.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
    /// What could not be told yet.
    unsaid: RefCell<VecDeque<String>>,
}

/// How much is kept to be told later: more than two reloads have to say.
const UNSAID: usize = 8;

impl Manager {
    /// The manager that the environment names.
    pub fn of_environment() -> Self {
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
        Self { socket, watchdog, unsaid: RefCell::default() }
    }

    /// How often it wants to hear that we are alive: half of the time after which it gives us up.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|longest| longest / 2)
    }

    /// We work, and this is what we do.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// We read our configuration anew since `now`, and say that we are ready when it is done.
    pub fn reloading(&self, now: Instant) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_nanos() / 1000));
    }

    /// We are alive.
    pub fn alive(&self) {
        if self.catch_up() {
            self.send("WATCHDOG=1");
        }
    }

    /// We come to an end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Tells what could not be told before; answers whether nothing is left.
    pub fn catch_up(&self) -> bool {
        let mut unsaid = self.unsaid.borrow_mut();
        while let Some(lines) = unsaid.front() {
            if !self.send(lines) {
                return false;
            }
            unsaid.pop_front();
        }
        true
    }

    fn tell(&self, lines: &str) {
        if self.catch_up() && self.send(lines) {
            return;
        }
        let mut unsaid = self.unsaid.borrow_mut();
        if unsaid.len() == UNSAID {
            unsaid.pop_front();
        }
        unsaid.push_back(lines.to_owned());
    }

    /// Answers false when the manager's socket is full: it may be told later.
    fn send(&self, lines: &str) -> bool {
        let sent = self.socket.as_ref().map_or(Ok(0), |socket| socket.send(lines.as_bytes()));
        !sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A path, or with `@` in front a name in the kernel's own space (`unix(7)`, abstract).
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

    /// What a manager hears that listens at this address.
    fn heard(address: &SocketAddr, name: &OsStr) -> Vec<String> {
        let listener = UnixDatagram::bind_addr(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let manager = Manager::new(Some(name), Some("3000000"));
        assert_eq!(manager.watchdog_interval(), Some(Duration::from_millis(1500)));
        manager.ready("routing\nboth ways");
        manager.reloading(Instant::from_nanos(5_000_999));
        manager.alive();
        manager.stopping();
        let mut buffer = [0; 200];
        let mut all = Vec::new();
        while let Ok(length) = listener.recv(&mut buffer) {
            all.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        all
    }

    #[test]
    fn a_manager_hears_each_state_once() {
        let expected = [
            "READY=1\nSTATUS=routing both ways",
            "RELOADING=1\nMONOTONIC_USEC=5000",
            "WATCHDOG=1",
            "STOPPING=1",
        ];
        let path = std::env::temp_dir().join(format!("cutline-notify-{}", std::process::id()));
        drop(std::fs::remove_file(&path));
        let by_path = heard(&SocketAddr::from_pathname(&path).unwrap(), path.as_os_str());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(by_path, expected);
        let name = format!("cutline-notify-{}", std::process::id());
        let by_name = heard(&SocketAddr::from_abstract_name(&name).unwrap(), OsStr::new(&format!("@{name}")));
        assert_eq!(by_name, expected);
    }

    #[test]
    fn what_finds_no_room_is_told_later() {
        let name = format!("cutline-notify-full-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let manager = Manager::new(Some(OsStr::new(&format!("@{name}"))), None);
        while manager.send("WATCHDOG=1") {}
        manager.ready("late");
        manager.alive();
        assert!(!manager.catch_up());
        let hear = || {
            let mut buffer = [0; 50];
            let length = listener.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        while hear().is_some() {}
        assert!(manager.catch_up());
        assert_eq!((hear().as_deref(), hear()), (Some("READY=1\nSTATUS=late"), None));
    }

    #[test]
    fn without_a_manager_nothing_is_told() {
        let nobody = Manager::new(None, Some("1000000"));
        nobody.ready("");
        assert_eq!(nobody.watchdog_interval(), None, "there is nobody to ping");
        assert_eq!(Manager::new(Some(OsStr::new("/nosuch/socket")), None).watchdog_interval(), None);
    }
}
