//! Offloads that are turned off for a while: work that a network card does for its host, and must not do to frames that are
//! forwarded as they are.
//!
//! - *Receive aggregation* (GRO, LRO) makes one long frame of many: too long for another interface.
//! - *Transmit checksums* in hardware: a virtual interface has no hardware, and hands frames over without checksums. Where
//!   a host is joined to a router by a virtual pair, they must be turned off at the *host's* end; this also stops the
//!   host from sending long frames to be cut by hardware (TSO).
//! - *Removal of VLAN tags*: a packet socket gets the tag beside the frame, an `AF_XDP` socket does not get it at all.

use crate::ethtool::{self, Command, RX_VLAN};
use crate::{SysError, interface};
use std::io;

/// A switch of a driver.
#[derive(Debug)]
struct Switch {
    get: Command,
    set: Command,
    bit: u32,
    /// Its name in `ethtool -k`.
    name: &'static str,
    /// Name of the offload, for messages.
    what: &'static str,
}

/// All switches; those before the last are turned off for every port.
const SWITCHES: [Switch; 3] = [
    Switch {
        get: Command::TX_CHECKSUM,
        set: Command::SET_TX_CHECKSUM,
        bit: 1,
        name: "tx-checksumming",
        what: "transmit checksums",
    },
    Switch {
        get: Command::GRO,
        set: Command::SET_GRO,
        bit: 1,
        name: "generic-receive-offload",
        what: "receive aggregation",
    },
    Switch {
        get: Command::FLAGS,
        set: Command::SET_FLAGS,
        bit: RX_VLAN,
        name: "rx-vlan-offload",
        what: "the removal of VLAN tags",
    },
];

/// Offloads that were turned off, and are turned on again when this is dropped.
#[derive(Debug)]
pub struct Offloads {
    interface: String,
    were_on: Vec<&'static Switch>,
}

impl Offloads {
    /// Turns transmit checksums (and with them TSO) and receive aggregation off, where they are on.
    ///
    /// # Errors
    /// When there is no such interface, or the process may not. A driver that has no such switch is no error.
    pub fn turn_off(interface: &str) -> Result<Self, SysError> {
        Self::turn_off_after(interface, false, &mut |_| {})
    }

    /// Does the same, and with `vlan_tags` turns the removal of VLAN tags off as well. Before anything is turned off, `note` is
    /// called with the names of the offloads, unless there are none.
    ///
    /// # Errors
    /// As [`Offloads::turn_off`].
    pub fn turn_off_after(
        interface: &str,
        vlan_tags: bool,
        note: &mut dyn FnMut(&[&'static str]),
    ) -> Result<Self, SysError> {
        interface::index(interface)?;
        let switches = if vlan_tags { &SWITCHES[..] } else { &SWITCHES[..SWITCHES.len() - 1] };
        // A driver that has no such switch has nothing to turn off.
        let is_on =
            |switch: &&Switch| ethtool::get(interface, switch.get).is_ok_and(|now| now & switch.bit != 0);
        let on: Vec<&'static Switch> = switches.iter().filter(is_on).collect();
        let names: Vec<&'static str> = on.iter().map(|switch| switch.name).collect();
        if !names.is_empty() {
            note(&names);
        }
        let mut offloads = Self { interface: interface.to_owned(), were_on: Vec::new() };
        for switch in on {
            match turn(interface, switch, false) {
                Ok(true) => offloads.were_on.push(switch),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let failure = format!("{} of `{interface}` cannot be turned off", switch.what);
                    return Err(SysError::privileged(failure, "CAP_NET_ADMIN", error));
                }
                // Another process has turned it off, or the driver refuses.
                Ok(false) | Err(_) => {}
            }
        }
        Ok(offloads)
    }

    /// Turns offloads on by their names. Returns the names of those that were off. Unknown names are skipped.
    ///
    /// # Errors
    /// When the process may not.
    pub fn turn_on(interface: &str, names: &[String]) -> Result<Vec<&'static str>, SysError> {
        let mut turned = Vec::new();
        for switch in SWITCHES.iter().filter(|switch| names.iter().any(|name| name == switch.name)) {
            match turn(interface, switch, true) {
                Ok(true) => turned.push(switch.name),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let failure = format!("{} of `{interface}` cannot be turned on", switch.what);
                    return Err(SysError::privileged(failure, "CAP_NET_ADMIN", error));
                }
                Ok(false) | Err(_) => {}
            }
        }
        Ok(turned)
    }

    /// Turns the offloads on again that were on.
    ///
    /// # Errors
    /// As [`Offloads::turn_on`].
    pub fn restore(mut self) -> Result<(), SysError> {
        let names: Vec<String> = self.were_on.drain(..).map(|switch| switch.name.to_owned()).collect();
        Self::turn_on(&self.interface, &names).map(drop)
    }

    /// Leaves them off for good.
    pub fn keep(mut self) {
        self.were_on.clear();
    }
}

/// Turns a switch on or off. Returns whether it was the other way before.
fn turn(interface: &str, switch: &Switch, on: bool) -> io::Result<bool> {
    let before = ethtool::get(interface, switch.get)?;
    let after = if on { before | switch.bit } else { before & !switch.bit };
    if after != before {
        ethtool::set(interface, switch.set, after)?;
    }
    Ok(after != before)
}

impl Drop for Offloads {
    fn drop(&mut self) {
        for switch in &self.were_on {
            // The interface may have been removed, and then there is nothing to turn on.
            drop(turn(&self.interface, switch, true));
        }
    }
}
