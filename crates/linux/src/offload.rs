//! What a network card does for the host, and must not do to a router's frames.
//!
//! - *Receive aggregation* (GRO, LRO) makes one long frame of many: too long for the other port.
//! - *Transmit checksums* in hardware: a virtual interface has no hardware, and hands the frame over without them. Where
//!   a host is joined to the router by a virtual pair, its *own* end must be told, which also stops it from sending
//!   long frames to be cut by hardware (TSO).

use crate::socket::ethtool;
use crate::{LinuxError, interface};
use std::io;

/// The commands that read and set a switch (linux/ethtool.h), and what it is called.
const SWITCHES: [(u32, u32, &str); 2] =
    [(0x16, 0x17, "transmit checksums"), (0x2b, 0x2c, "receive aggregation")];

/// Offloads that have been turned off, and are turned on again when this is dropped.
#[derive(Debug)]
pub struct Offloads {
    name: String,
    /// The commands of the switches that were on.
    were_on: Vec<u32>,
}

impl Offloads {
    /// Turns transmit checksums (and with them TSO) and receive aggregation off, where they are on.
    ///
    /// # Errors
    /// When there is no such interface, or the process may not. That a driver has no such switch is no error.
    pub fn turn_off(name: &str) -> Result<Self, LinuxError> {
        interface::index(name)?;
        let mut offloads = Self { name: name.to_owned(), were_on: Vec::new() };
        for (get, set, what) in SWITCHES {
            match turn_off(name, get, set) {
                Ok(true) => offloads.were_on.push(set),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(LinuxError::of(format!("{what} of `{name}` cannot be turned off"), error));
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

fn turn_off(name: &str, get: u32, set: u32) -> io::Result<bool> {
    let was_on = ethtool(name, get, 0)? != 0;
    if was_on {
        ethtool(name, set, 0)?;
    }
    Ok(was_on)
}

impl Drop for Offloads {
    fn drop(&mut self) {
        for &set in &self.were_on {
            // The interface may be gone by now, and then there is nothing to turn on.
            drop(ethtool(&self.name, set, 1));
        }
    }
}
