//! The interface of a port: its name, its longest frame, and whether it still exists.

use crate::PortError;
use cutline_sys::SysError;
use cutline_sys::interface::InterfaceWatch;
use std::io;

/// The interface of a port.
pub struct PortInterface {
    pub name: String,
    /// The length of the longest frame that the interface sends, Ethernet header included, bytes.
    pub largest_frame: u32,
    pub watch: InterfaceWatch,
}

impl PortInterface {
    /// The interface with this name and number.
    ///
    /// # Errors
    /// When a descriptor cannot be opened.
    pub fn new(name: &str, index: u32, largest_frame: u32) -> Result<Self, SysError> {
        Ok(Self { name: name.to_owned(), largest_frame, watch: InterfaceWatch::new(index)? })
    }

    /// Checks that the interface still exists.
    ///
    /// # Errors
    /// When it has been removed.
    pub fn check(&self) -> Result<(), PortError> {
        if self.watch.exists() { Ok(()) } else { Err(self.removed()) }
    }

    /// The error of a port whose interface has been removed.
    pub fn removed(&self) -> PortError {
        PortError::Removed { name: self.name.clone() }
    }

    /// The error of a port whose counters cannot be read from the kernel.
    pub fn uncounted(&self, error: io::Error) -> PortError {
        SysError::new(format!("the counters of `{}` cannot be read", self.name), error).into()
    }
}
