//! Why the kernel did not do what it was asked for.

use std::io;

/// Why something of the kernel cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// There is no such interface.
    #[error("there is no interface `{name}`; there are: {}", known.join(", "))]
    NoInterface {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// There is no such user.
    #[error("there is no user `{name}` in /etc/passwd")]
    NoUser {
        /// What was asked for.
        name: String,
    },
    /// An interface that was there has been removed.
    #[error("interface `{name}` has been removed")]
    Gone {
        /// Its name.
        name: String,
    },
    /// An interface is there, but of another kind.
    #[error("interface `{name}` is no TUN interface; make one with `ip tuntap add {name} mode tun`")]
    NoTun {
        /// Its name.
        name: String,
    },
    /// Frames and packets cannot be joined.
    #[error("`{}` and `{}` cannot be joined: both ends must be TUN interfaces, or none", names[0], names[1])]
    Unlike {
        /// What was asked for.
        names: [String; 2],
    },
    /// Both ends are one interface.
    #[error("`{}` and `{}` are the same interface", names[0], names[1])]
    Same {
        /// What was asked for.
        names: [String; 2],
    },
    /// The kernel has no `AF_XDP`.
    #[error(
        "interface `{name}` cannot be had by AF_XDP: this kernel has none (CONFIG_XDP_SOCKETS, Linux 5.9 on)"
    )]
    NoXdp {
        /// The interface's name.
        name: String,
    },
    /// Somebody else has the interface.
    #[error(
        "interface `{name}` has an XDP program already, or one of its queues an AF_XDP socket: see `ip link show {name}`"
    )]
    Taken {
        /// Its name.
        name: String,
    },
    /// An interface carries longer frames than a port takes.
    #[error(
        "interface `{name}` has an MTU of {mtu} B; AF_XDP takes at most {most} B: lower it, or use a packet socket"
    )]
    TooLong {
        /// Its name.
        name: String,
        /// Its MTU, bytes.
        mtu: u32,
        /// What would do, bytes.
        most: u32,
    },
    /// An interface takes VLAN tags out of frames.
    #[error(
        "interface `{name}` takes VLAN tags out of frames, and AF_XDP is not told of them: `ethtool -K {name} rxvlan off`, \
         or --fix-offloads"
    )]
    TagsRemoved {
        /// Its name.
        name: String,
    },
    /// The process may not do this.
    #[error("{doing}: not permitted; run it as root, or give it the capability {capability}")]
    NotPermitted {
        /// What was tried.
        doing: String,
        /// What would allow it.
        capability: &'static str,
    },
    /// Anything else that the kernel refuses.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The command `ip` of iproute2 failed.
    #[error("`ip {arguments}` failed: {message}")]
    Ip {
        /// What it was called with.
        arguments: String,
        /// What it said.
        message: String,
    },
}

impl LinuxError {
    /// What the kernel has just refused.
    pub(crate) fn of(doing: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (doing, source) = (doing.into(), source.into());
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted {
                doing,
                capability: "CAP_NET_RAW, and CAP_NET_ADMIN for offloads and TUN",
            };
        }
        Self::System { doing, source }
    }
}
