//! What a network card does for the host, and must not do to a router's frames.
//!
//! - *Receive aggregation* (GRO, LRO) makes one long frame of many: too long for the other port.
//! - *Transmit checksums* in hardware: a virtual interface has no hardware, and hands the frame over without them. Where
//!   a host is joined to the router by a virtual pair, its *own* end must be told, which also stops it from sending
//!   long frames to be cut by hardware (TSO).
//! - *Removal of VLAN tags*: a packet socket is told of them beside the frame, `AF_XDP` is not.

use crate::socket::ethtool;
use crate::{LinuxError, interface};
use std::io;

/// A switch of a driver: the commands that read and set it (linux/ethtool.h), its bit, and what it is called.
#[derive(Debug)]
struct Switch {
    get: u32,
    set: u32,
    bit: u32,
    what: &'static str,
}

const SWITCHES: [Switch; 2] = [
    Switch { get: 0x16, set: 0x17, bit: 1, what: "transmit checksums" },
    Switch { get: 0x2b, set: 0x2c, bit: 1, what: "receive aggregation" },
];
/// `ETH_FLAG_RXVLAN` among the flags that have commands in common.
const TAGS: Switch = Switch { get: 0x25, set: 0x26, bit: 1 << 8, what: "the removal of VLAN tags" };

/// Offloads that have been turned off, and are turned on again when this is dropped.
#[derive(Debug)]
pub struct Offloads {
    name: String,
    were_on: Vec<&'static Switch>,
}

impl Offloads {
    /// Turns transmit checksums (and with them TSO) and receive aggregation off, where they are on.
    ///
    /// # Errors
    /// When there is no such interface, or the process may not. That a driver has no such switch is no error.
    pub fn turn_off(name: &str) -> Result<Self, LinuxError> {
        Self::turn_off_these(name, &SWITCHES)
    }

    /// Does the same with the removal of VLAN tags.
    ///
    /// # Errors
    /// As [`Offloads::turn_off`].
    pub fn turn_off_with_tags(name: &str) -> Result<Self, LinuxError> {
        const ALL: [Switch; 3] = {
            let [checksums, aggregation] = SWITCHES;
            [checksums, aggregation, TAGS]
        };
        Self::turn_off_these(name, &ALL)
    }

    fn turn_off_these(name: &str, switches: &'static [Switch]) -> Result<Self, LinuxError> {
        interface::index(name)?;
        let mut offloads = Self { name: name.to_owned(), were_on: Vec::new() };
        for switch in switches {
            match turn(name, switch, false) {
                Ok(true) => offloads.were_on.push(switch),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let doing = format!("{} of `{name}` cannot be turned off", switch.what);
                    return Err(LinuxError::of(doing, error));
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

/// Whether the card takes VLAN tags out of frames; a driver that does not say does not.
pub(crate) fn removes_tags(name: &str) -> bool {
    ethtool(name, TAGS.get, 0).is_ok_and(|flags| flags & TAGS.bit != 0)
}

/// Turns a switch on or off; answers whether it was the other way.
fn turn(name: &str, switch: &Switch, on: bool) -> io::Result<bool> {
    let now = ethtool(name, switch.get, 0)?;
    let wanted = if on { now | switch.bit } else { now & !switch.bit };
    if wanted != now {
        ethtool(name, switch.set, wanted)?;
    }
    Ok(wanted != now)
}

impl Drop for Offloads {
    fn drop(&mut self) {
        for switch in &self.were_on {
            // The interface may be gone by now, and then there is nothing to turn on.
            drop(turn(&self.name, switch, true));
        }
    }
}
