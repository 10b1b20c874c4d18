//! Interfaces by name, in the network namespace of the calling thread.

use crate::LinuxError;
use crate::socket::{self, any_socket};
use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};

/// The names of all interfaces, in order.
pub fn names() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    // Two lines of heading; then a name and a colon each.
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    let mut names: Vec<String> = table.lines().skip(2).filter_map(name).collect();
    names.sort();
    names
}

/// An interface's number.
///
/// # Errors
/// When there is no such interface.
pub fn index(name: &str) -> Result<u32, LinuxError> {
    name_to_index(any_socket()?, name).map_err(|errno| match errno {
        Errno::NODEV | Errno::INVAL => LinuxError::NoInterface { name: name.to_owned(), known: names() },
        errno => LinuxError::of(format!("interface `{name}` cannot be looked up"), errno),
    })
}

/// How many packets the kernel has dropped on their way out by an interface; zero where it is not known.
pub(crate) fn dropped_towards(name: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let is_it = |line: &&str| line.split_once(':').is_some_and(|(other, _)| other.trim() == name);
    // Eight columns of what was received, and bytes, packets and errors of what was sent.
    let dropped = |line: &str| line.split_once(':')?.1.split_whitespace().nth(11)?.parse().ok();
    table.lines().find(is_it).and_then(dropped).unwrap_or(0)
}

/// Whether there is an interface of this number, whatever it is called by now.
pub(crate) fn exists(index: u32) -> Result<bool, LinuxError> {
    Ok(index_to_name(any_socket()?, index).is_ok())
}

/// The most bytes that an interface carries behind its own header.
///
/// # Errors
/// When there is no such interface.
pub fn mtu(name: &str) -> Result<u32, LinuxError> {
    index(name)?;
    socket::mtu(name)
}

/// How many receive queues an interface has at work. Drivers that do not say are asked by sysfs, where it shows this
/// network namespace; what shows nowhere has one.
pub(crate) fn receive_queues(name: &str, index: u32) -> u32 {
    /// `ETHTOOL_GCHANNELS`, and its struct of nine numbers: among them those of receive and of combined channels.
    const CHANNELS: u32 = 0x3c;
    const RECEIVE: usize = 5;
    const COMBINED: usize = 8;
    let mut buffer = [0; 36];
    let queues = if socket::ethtool_buffer(name, CHANNELS, &mut buffer).is_ok() {
        let number = |at: usize| u32::from_ne_bytes(*buffer[at * 4..].first_chunk().expect("it lies within"));
        number(RECEIVE) + number(COMBINED)
    } else {
        queues_of_sysfs(&format!("/sys/class/net/{name}"), index)
    };
    queues.max(1)
}

fn queues_of_sysfs(folder: &str, index: u32) -> u32 {
    let shown = std::fs::read_to_string(format!("{folder}/ifindex"));
    if shown.ok().and_then(|text| text.trim().parse().ok()) != Some(index) {
        return 0;
    }
    let Ok(entries) = std::fs::read_dir(format!("{folder}/queues")) else { return 0 };
    let is_receive = |name: std::ffi::OsString| name.to_string_lossy().starts_with("rx-");
    entries.flatten().filter(|entry| is_receive(entry.file_name())).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_a_stranger_is_not() {
        assert!(names().contains(&"lo".to_owned()));
        let lo = index("lo").unwrap();
        assert!(exists(lo).unwrap() && !exists(i32::MAX as u32).unwrap());
        assert_eq!((receive_queues("lo", lo), receive_queues("nosuch0", u32::MAX)), (1, 1));
        let error = index("nosuch0").unwrap_err().to_string();
        assert!(error.contains("`nosuch0`; there are: ") && error.contains("lo"), "{error}");
    }
}
