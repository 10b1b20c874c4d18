//! TCP's congestion controls.

use super::Answer;
use super::kernel::sysctl;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Which congestion controls there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// What connections have that ask for none.
    pub default: Option<String>,
    /// Those that are loaded.
    pub available: Vec<String>,
    /// Those that any user may ask for.
    pub allowed: Vec<String>,
    /// Those that were asked for by name, and what came of it.
    pub tried: Vec<(String, Answer)>,
}

/// Asks for each of these by its name, which loads it where it is a module.
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
    fn the_default_can_be_had_and_a_stranger_cannot() {
        let default = sysctl("net.ipv4.tcp_congestion_control").value.unwrap();
        let found = congestion(&[&default, "nosuch"]);
        assert_eq!(found.tried[0], (default, Answer::Yes));
        assert!(!found.tried[1].1.is_yes(), "{found:?}");
        assert!(found.available.contains(&found.tried[0].0), "{found:?}");
    }
}
