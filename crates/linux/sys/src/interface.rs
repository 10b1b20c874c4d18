//! Interfaces by name and number, in the network namespace of the calling thread.

use crate::interface_address::name_of_address;
use crate::{SysError, ethtool, ioctl};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::net::IpAddr;

/// The kernel's table of the interfaces of this thread's network namespace.
const TABLE: &str = "/proc/thread-self/net/dev";

/// Returns the names of all interfaces, sorted.
pub fn names() -> Vec<String> {
    let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
    let mut names: Vec<String> = device_table().lines().filter_map(name).collect();
    names.sort();
    names
}

/// Returns an interface's number.
///
/// # Errors
/// When there is no such interface.
pub fn index(name: &str) -> Result<u32, SysError> {
    let failed = |errno| SysError::new(format!("interface `{name}` cannot be looked up"), errno);
    let socket = ioctl::socket().map_err(|error| SysError::new("a socket cannot be opened", error))?;
    name_to_index(socket, name).map_err(|errno| match errno {
        Errno::NODEV | Errno::INVAL => SysError::NoInterface { name: name.to_owned(), known: names() },
        errno => failed(errno),
    })
}

/// Returns an interface's name; `None` when there is none of this number.
pub fn name(index: u32) -> Option<String> {
    index_to_name(ioctl::socket().ok()?, index).ok()
}

/// An interface that is looked at again and again. It holds its descriptors, so that later looks need none.
#[derive(Debug)]
pub struct InterfaceWatch {
    index: u32,
    socket: OwnedFd,
    /// The table of interfaces, where there is one.
    table: Option<File>,
}

impl InterfaceWatch {
    /// Watches the interface of this number, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When a descriptor cannot be opened.
    pub fn new(index: u32) -> Result<Self, SysError> {
        let socket = ioctl::socket().map_err(|error| SysError::new("a socket cannot be opened", error))?;
        Ok(Self { index, socket, table: File::open(TABLE).ok() })
    }

    /// Returns its present name; `None` when it has been removed.
    pub fn name(&self) -> Option<String> {
        index_to_name(&self.socket, self.index).ok()
    }

    /// Returns whether it is there, whatever its name is now.
    pub fn exists(&self) -> bool {
        self.name().is_some()
    }

    /// Returns the number of outgoing packets that it has dropped; `None` where that is not known.
    pub fn transmit_drops(&mut self) -> Option<u64> {
        let name = self.name()?;
        let mut text = String::new();
        let table = self.table.as_mut()?;
        table.rewind().ok()?;
        table.read_to_string(&mut text).ok()?;
        // Eight columns for received traffic, then bytes, packets and errors of sent traffic.
        let dropped = |line: &str| {
            let (_, columns) = line.split_once(':').filter(|(other, _)| other.trim() == name)?;
            columns.split_whitespace().nth(11)?.parse().ok()
        };
        text.lines().find_map(dropped)
    }
}

/// Returns the name of the interface that has an address; `None` if none of this host's has it.
///
/// # Errors
/// When the kernel does not list the addresses.
pub fn of_address(ip: IpAddr) -> Result<Option<String>, SysError> {
    name_of_address(ip).map_err(|error| SysError::new("the addresses of interfaces cannot be read", error))
}

/// Returns an interface's MTU: the longest payload behind its own header, bytes.
///
/// # Errors
/// When there is no such interface.
pub fn mtu(name: &str) -> Result<u32, SysError> {
    index(name)?;
    ioctl::mtu(name).map_err(|error| SysError::new(format!("the MTU of `{name}` cannot be read"), error))
}

/// Returns whether packets have an Ethernet header on an interface. Those of the loopback have one, those of tunnels have not.
///
/// # Errors
/// When there is no such interface.
pub fn has_ethernet_header(name: &str) -> Result<bool, SysError> {
    let hardware = ioctl::hardware(name);
    let hardware =
        hardware.map_err(|error| SysError::new(format!("the kind of `{name}` cannot be read"), error))?;
    Ok([libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&hardware))
}

/// Returns an interface's address on its link.
///
/// # Errors
/// When there is no such interface, or it has no such address as Ethernet has.
pub fn link_address(name: &str) -> Result<[u8; 6], SysError> {
    index(name)?;
    let failed = |error| SysError::new(format!("the link address of `{name}` cannot be read"), error);
    ioctl::link_address(name).map_err(failed)
}

/// Returns the number of receive queues that an interface uses; at least one. Where its driver does not report it, it is the number in sysfs,
/// if that is of this network namespace.
pub fn receive_queues(name: &str, index: u32) -> u32 {
    ethtool::receive_channels(name).or_else(|| queues_in_sysfs(name, index, "rx-")).unwrap_or(0).max(1)
}

/// Returns the number of transmit queues to which the kernel sends packets of an interface; `None` where it is not known. A driver may have allocated
/// more. It is the number in sysfs, if that is of this network namespace, or else what the driver reports.
pub fn transmit_queues(name: &str, index: u32) -> Option<u32> {
    queues_in_sysfs(name, index, "tx-")
        .or_else(|| ethtool::transmit_channels(name))
        .filter(|queues| *queues > 0)
}

/// Returns the number of an interface's queues in sysfs whose names begin so; `None` where it shows another network namespace.
fn queues_in_sysfs(name: &str, index: u32, kind: &str) -> Option<u32> {
    queues_in(&format!("/sys/class/net/{name}"), index, ioctl::link_address(name).ok(), kind)
}

/// Returns the number of queues in a folder, if it is that of the interface with this number and this address on its link.
fn queues_in(folder: &str, index: u32, address: Option<[u8; 6]>, kind: &str) -> Option<u32> {
    let shown = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).ok();
    let text = |address: [u8; 6]| address.map(|byte| format!("{byte:02x}")).join(":");
    let is_same_index = shown("ifindex")?.trim().parse() == Ok(index);
    let is_same_address =
        address.is_none_or(|address| shown("address").is_some_and(|shown| shown.trim() == text(address)));
    if !is_same_index || !is_same_address {
        return None;
    }
    let entries = std::fs::read_dir(format!("{folder}/queues")).ok()?;
    let is_wanted = |name: std::ffi::OsString| name.to_string_lossy().starts_with(kind);
    Some(entries.flatten().filter(|entry| is_wanted(entry.file_name())).count() as u32)
}

/// The kernel's table of interfaces, a line each: a name, a colon, counters. Its two lines of heading have no colon.
fn device_table() -> String {
    std::fs::read_to_string(TABLE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs interfaces, which Miri has not")]
    fn the_loopback_has_an_ethernet_header() {
        assert!(has_ethernet_header("lo").unwrap());
        assert!(has_ethernet_header("no-such-one").is_err());
        assert_eq!(link_address("lo").unwrap(), [0; 6]);
        let of = |text: &str| of_address(text.parse().unwrap()).unwrap();
        assert_eq!([of("127.0.0.1"), of("::ffff:127.0.0.1")], ["lo", "lo"].map(|name| Some(name.to_owned())));
        assert_eq!(of("192.0.2.123"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn the_loopback_is_found_and_an_unknown_name_is_not() {
        assert!(names().contains(&"lo".to_owned()));
        let lo = index("lo").unwrap();
        let mut watch = InterfaceWatch::new(lo).unwrap();
        assert!(watch.exists() && !InterfaceWatch::new(i32::MAX as u32).unwrap().exists());
        assert_eq!((watch.name().as_deref(), watch.transmit_drops()), (Some("lo"), Some(0)));
        assert_eq!(watch.transmit_drops(), Some(0), "it is read anew");
        assert_eq!((receive_queues("lo", lo), receive_queues("nosuch0", u32::MAX)), (1, 1));
        assert_eq!((transmit_queues("lo", lo).unwrap_or(1), transmit_queues("nosuch0", u32::MAX)), (1, None));
        assert!(mtu("lo").unwrap() > 0 && mtu("nosuch0").is_err());
        let error = index("nosuch0").unwrap_err().to_string();
        assert!(error.contains("`nosuch0`; there are: ") && error.contains("lo"), "{error}");
    }

    /// As sysfs shows them. That of another network namespace may have an interface of the same name, also with the same number.
    #[test]
    #[cfg_attr(miri, ignore = "needs folders, which Miri has not")]
    fn queues_are_those_of_the_interface_with_the_same_number_and_address() {
        let folder = std::env::temp_dir().join(format!("cutline-sys-queues-{}", std::process::id()));
        for queue in ["rx-0", "tx-0", "tx-1"] {
            std::fs::create_dir_all(folder.join("queues").join(queue)).unwrap();
        }
        std::fs::write(folder.join("ifindex"), "7\n").unwrap();
        std::fs::write(folder.join("address"), "02:00:00:00:00:0a\n").unwrap();
        let path = folder.to_str().unwrap();
        let own = [2, 0, 0, 0, 0, 10];
        let found = |index, address| queues_in(path, index, address, "tx-");
        assert_eq!([found(7, Some(own)), found(7, None)], [Some(2); 2]);
        assert_eq!([found(8, Some(own)), found(7, Some([2, 0, 0, 0, 0, 11]))], [None; 2]);
        assert_eq!(queues_in(path, 7, Some(own), "rx-"), Some(1));
        assert_eq!(queues_in(&format!("{path}/none"), 7, None, "tx-"), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn names_have_no_heading_among_them() {
        assert!(names().iter().all(|name| !name.contains(['|', ' '])), "{:?}", names());
    }
}
