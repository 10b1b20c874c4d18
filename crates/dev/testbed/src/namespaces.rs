//! Network namespaces of tests: permission to have them, and routes that work.

use crate::skip;
use cutline_sys::SysError;
use cutline_sys::namespace::{Namespace, sweep};
use rustix::process::geteuid;
use std::net::{SocketAddrV6, UdpSocket};
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Returns whether this process may make network namespaces. If not, the test is skipped ([`skip`]); `to_run`
/// is the command that runs it.
///
/// # Panics
/// When namespaces should work here and do not.
#[track_caller]
pub fn may_make_namespaces(to_run: &str) -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        if !geteuid().is_root() {
            return Some("network namespaces need root".to_owned());
        }
        sweep().expect("what ended processes have left can be removed");
        match Namespace::create("may") {
            // Root of a container may not.
            Err(SysError::Ip { message, .. }) if message.contains("not permitted") => Some(message),
            other => {
                other.expect("root can make network namespaces");
                None
            }
        }
    });
    if let Some(why) = why_not {
        skip(why, to_run);
    }
    why_not.is_none()
}

/// Returns a namespace whose loopback interface sends 8 Mbit/s; none if this process may not make namespaces (see [`may_make_namespaces`]).
///
/// # Panics
/// When the rate cannot be set.
#[track_caller]
pub fn slow_loopback(name: &str, to_run: &str) -> Option<Namespace> {
    may_make_namespaces(to_run).then(|| {
        let namespace = Namespace::create(name).expect("a namespace can be made");
        namespace.ip(&["link", "set", "lo", "mtu", "1500"]).expect("the loopback interface has an MTU");
        let words = "qdisc add dev lo root tbf rate 8mbit burst 16kb latency 300ms";
        let tc = Command::new("tc").args(["-n", namespace.name()]).args(words.split(' ')).status();
        assert!(tc.expect("tc is installed").success());
        namespace
    })
}

/// Waits until no route of the namespace is without carrier. After the other end of an interface has come, the kernel takes up to a second
/// to use the interface, and more on a busy machine; packets go past it until then.
///
/// # Panics
/// When the routes cannot be listed, or when there is no carrier after a minute.
#[track_caller]
pub fn wait_for_carriers(namespace: &Namespace) {
    const PAUSE: Duration = Duration::from_millis(20);
    const PATIENCE: Duration = Duration::from_secs(60);
    let list =
        || Command::new("sh").args(["-c", "ip route show table all; ip -6 route show table all"]).output();
    let mut routes = String::new();
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        let output = namespace.within(list).expect("the namespace exists").expect("there is a shell");
        routes = String::from_utf8_lossy(&output.stdout).into_owned();
        if !routes.contains("linkdown") {
            return;
        }
        sleep(PAUSE);
    }
    panic!("routes without carrier after {PATIENCE:?}:\n{routes}");
}

/// Waits until these own addresses of IPv6 of a namespace can be reached; a link-local one is written as `fe80::1%1`, with its interface's number. The kernel makes
/// the local route of an address in a work queue, a little after the address, and later on a busy machine. Until then a connection finds the route of the prefix, and fails with
/// ENETUNREACH.
///
/// # Panics
/// When an address is malformed, or cannot be reached after a minute.
#[track_caller]
pub fn wait_for_own_addresses(namespace: &Namespace, addresses: &[&str]) {
    const PAUSE: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(60);
    for address in addresses {
        let any_port: SocketAddrV6 = format!("[{address}]:0").parse().expect("an address of IPv6");
        let reach = || {
            let socket = UdpSocket::bind(any_port)?;
            socket.set_read_timeout(Some(PAUSE))?;
            socket.send_to(b"reached", socket.local_addr()?)?;
            socket.recv(&mut [0; 16])
        };
        let begin = Instant::now();
        while let Err(error) = namespace.within(reach).expect("the namespace exists") {
            assert!(begin.elapsed() < PATIENCE, "{address} after {PATIENCE:?}: {error}");
            sleep(PAUSE);
        }
    }
}
