//! Offloads that are turned off for a while: what a network card does for its host, and must not do to frames that are
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
    name: &'static str,
}

const SWITCHES: [Switch; 2] = [
    Switch { get: Command::TX_CHECKSUM, set: Command::SET_TX_CHECKSUM, bit: 1, name: "transmit checksums" },
    Switch { get: Command::GRO, set: Command::SET_GRO, bit: 1, name: "receive aggregation" },
];
const VLAN_TAGS: Switch =
    Switch { get: Command::FLAGS, set: Command::SET_FLAGS, bit: RX_VLAN, name: "the removal of VLAN tags" };

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
        Self::turn_off_all(interface, &SWITCHES)
    }

    /// Does the same, and turns the removal of VLAN tags off as well.
    ///
    /// # Errors
    /// As [`Offloads::turn_off`].
    pub fn turn_off_with_vlan_tags(interface: &str) -> Result<Self, SysError> {
        const ALL: [Switch; 3] = {
            let [checksums, aggregation] = SWITCHES;
            [checksums, aggregation, VLAN_TAGS]
        };
        Self::turn_off_all(interface, &ALL)
    }

    fn turn_off_all(interface: &str, switches: &'static [Switch]) -> Result<Self, SysError> {
        interface::index(interface)?;
        let mut offloads = Self { interface: interface.to_owned(), were_on: Vec::new() };
        for switch in switches {
            match turn(interface, switch, false) {
                Ok(true) => offloads.were_on.push(switch),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let failure = format!("{} of `{interface}` cannot be turned off", switch.name);
                    return Err(SysError::privileged(failure, "CAP_NET_ADMIN", error));
                }
                // Off already, or no such switch.
                Ok(false) | Err(_) => {}
            }
        }
        Ok(offloads)
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
