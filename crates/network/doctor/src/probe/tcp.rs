//! The congestion controls of TCP.

use super::answer::Answer;
use super::kernel::sysctl;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The congestion controls of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The default of new connections.
    pub default: Option<String>,
    /// Loaded congestion controls.
    pub available: Vec<String>,
    /// Congestion controls that any user may select.
    pub allowed: Vec<String>,
    /// Congestion controls that were selected by name, with the answers.
    pub tried: Vec<(String, Answer)>,
}

/// Selects each of these by its name, which loads it if it is a module.
pub fn congestion(names: &[&str]) -> Congestion {
    let tried = names.iter().map(|&name| (name.to_owned(), ask(name))).collect();
    let words = |name| {
        let text = sysctl(name).value.unwrap_or_default();
        text.split(' ').map(str::to_owned).filter(|word| !word.is_empty()).collect()
    };
    Congestion {
        default: sysctl("net.ipv4.tcp_congestion_control").value,
        available: words("net.ipv4.tcp_available_congestion_control"),
        allowed: words("net.ipv4.tcp_allowed_congestion_control"),
        tried,
    }
}

fn ask(name: &str) -> Answer {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    Answer::from_result(socket.and_then(|socket| set_tcp_congestion(socket, name)).map_err(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_available_and_an_unknown_control_is_not() {
        let default = sysctl("net.ipv4.tcp_congestion_control").value.unwrap();
        let found = congestion(&[&default, "nosuch"]);
        assert_eq!(found.tried[0], (default, Answer::Yes));
        assert!(!found.tried[1].1.is_yes(), "{found:?}");
        assert!(found.available.contains(&found.tried[0].0), "{found:?}");
    }
}
