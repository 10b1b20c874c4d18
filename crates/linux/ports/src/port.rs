//! The loop's interface to a port beside frames, and the counters of a port.

use crate::PortError;
use cutline_aqm::Count;
use cutline_router::Port;
use rustix::fd::AsFd;

/// The bytes of an Ethernet header, and of a tag in it.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// A port on an interface of this machine. Its file descriptor is ready for reading when a frame has arrived.
pub trait InterfacePort: Port<Error = PortError> + AsFd {
    /// Returns the interface's name.
    fn name(&self) -> &str;

    /// Returns the length of the longest frame that it sends, Ethernet header included, bytes.
    fn largest_frame(&self) -> u32;

    /// Returns the length of the longest IP packet that it sends in a frame without a tag, bytes. The longest frame has room for a tag.
    fn largest_packet(&self) -> u32 {
        self.largest_frame().saturating_sub((ETHERNET + TAG) as u32)
    }

    /// Returns the counters.
    ///
    /// # Errors
    /// When the kernel does not report it.
    fn stats(&mut self) -> Result<PortStats, PortError>;

    /// Checks that the interface still exists. An interface that is down is no error, since it may come up again.
    ///
    /// # Errors
    /// When the interface has been removed.
    fn check(&self) -> Result<(), PortError>;
}

/// Counters of a port beside the router's own, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// The port's kind.
    pub kind: PortKind,
    /// Frames that were dropped on arrival because earlier ones had not been read; as of the last [`InterfacePort::stats`].
    pub missed: u64,
    /// Frames that were dropped because they were longer than there is room for.
    pub truncated: Count,
    /// Frames without a checksum, which was left to hardware that is not there. They pass.
    pub unfilled: Count,
}

/// Kind of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortKind {
    /// A packet socket.
    #[default]
    Packet,
    /// A TUN interface.
    Tun,
    /// `AF_XDP`, in memory that the card itself reads and writes.
    XdpZeroCopy,
    /// `AF_XDP` with a program in the driver; frames are copied.
    XdpDriver,
    /// `AF_XDP` with a program in the kernel; frames are copied.
    XdpKernel,
}

impl PortKind {
    /// Returns its name in messages and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet socket",
            Self::Tun => "TUN",
            Self::XdpZeroCopy => "AF_XDP, zero copy",
            Self::XdpDriver => "AF_XDP in the driver, with copies",
            Self::XdpKernel => "AF_XDP in the kernel, with copies",
        }
    }
}
