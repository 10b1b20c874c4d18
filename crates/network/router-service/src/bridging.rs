//! Obstacles to bridging two interfaces: a router between interfaces that the host uses itself does harm.
//!
//! The router receives copies of frames, and the kernel processes the frames as well. If the host also forwards between the interfaces,
//! every packet is sent twice, and the kernel's copies are not shaped.

use crate::error::ServiceError;
use crate::spec::RouterSpec;
use cutline_netlink::{InterfaceUse, uses};
use cutline_ports::AnyPort;
use cutline_sys::interface;
use cutline_text::Printable;

/// The uses that the host makes of the interfaces of a router, a line for each interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherUses(Vec<String>);

impl OtherUses {
    /// Looks for uses of the interfaces that do not go together with a router between them. A TUN interface has none, because all of its
    /// packets pass the router.
    ///
    /// # Errors
    /// When an interface is missing, or the kernel cannot be queried.
    pub fn find(spec: &RouterSpec) -> Result<Self, cutline_netlink::Error> {
        let names = [&spec.input, &spec.output];
        if names.iter().any(|name| AnyPort::is_tun(name)) || spec.process.force_bridge {
            return Ok(Self::default());
        }
        let names = names.map(|name| AnyPort::interface_of(name));
        let [first, second] = names;
        let found = [uses(interface::index(first)?)?, uses(interface::index(second)?)?];
        let is_shared = |at: usize, of: &InterfaceUse| {
            // Packets are forwarded between two interfaces if both forward.
            !matches!(of, InterfaceUse::Forwarding(_)) || found[1 - at].contains(of)
        };
        let line = |(at, name): (usize, &str)| {
            let uses: Vec<String> = found[at]
                .iter()
                .filter(|of| is_shared(at, of))
                .map(|of| Printable(of.to_string()).to_string())
                .collect();
            (!uses.is_empty()).then(|| format!("`{}`: {}", Printable(name), uses.join(", ")))
        };
        Ok(Self(names.into_iter().enumerate().filter_map(line).collect()))
    }

    /// Returns an error with the remedy for the uses, if there are any.
    ///
    /// # Errors
    /// When there are uses.
    pub fn refuse(self, spec: &RouterSpec) -> Result<(), ServiceError> {
        let [lan, wan] =
            [&spec.input, &spec.output].map(|name| Printable(AnyPort::interface_of(name)).to_string());
        if self.0.is_empty() { Ok(()) } else { Err(ServiceError::InUse { uses: self.0, lan, wan }) }
    }
}
