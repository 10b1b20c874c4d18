//! Errors of opening and using a port.

use cutline_sys::SysError;

/// Reason why a port cannot be opened, or has failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The interface has been removed since the port was opened.
    #[error("interface `{name}` has been removed")]
    Removed {
        /// The interface's name.
        name: String,
    },
    /// The interface is not a TUN interface.
    #[error("interface `{name}` is not a TUN interface; make one with `ip tuntap add {name} mode tun`")]
    NotTun {
        /// The interface's name.
        name: String,
    },
    /// One port carries frames, the other packets.
    #[error("`{}` and `{}` cannot be joined: both must be TUN interfaces, or neither", names[0], names[1])]
    Mismatch {
        /// The names that were requested.
        names: [String; 2],
    },
    /// Both ports are one interface.
    #[error("`{}` and `{}` are the same interface", names[0], names[1])]
    SameInterface {
        /// The names that were requested.
        names: [String; 2],
    },
    /// The kernel has no `AF_XDP`.
    #[error(
        "AF_XDP is not available for interface `{name}`: this kernel does not have it (CONFIG_XDP_SOCKETS, Linux 5.9 or \
         later)"
    )]
    NoXdp {
        /// The interface's name.
        name: String,
    },
    /// Another process uses the interface for XDP.
    #[error(
        "interface `{name}` has an XDP program already, or one of its queues an AF_XDP socket: see `ip link show {name}`"
    )]
    Busy {
        /// The interface's name.
        name: String,
    },
    /// The interface carries longer frames than the port can receive.
    #[error(
        "interface `{name}` has an MTU of {mtu} B; AF_XDP allows at most {most} B: lower it, or use a packet socket"
    )]
    MtuTooLarge {
        /// The interface's name.
        name: String,
        /// Its MTU, bytes.
        mtu: u32,
        /// The largest MTU that the port can take, bytes.
        most: u32,
    },
    /// The interface takes VLAN tags out of frames.
    #[error(
        "interface `{name}` removes VLAN tags from frames, and AF_XDP does not get them: use `ethtool -K {name} rxvlan off`, \
         or --fix-offloads"
    )]
    VlanTagsRemoved {
        /// The interface's name.
        name: String,
    },
}
