//! The other interfaces of the host: those by which it really routes, and those that a setup leaves out.
//!
//! Packets of hosts behind an interface without a name in the setup leave by the WAN directly, and their answers pass the router. The
//! kernel accepts that, unless a strict reverse path filter refuses it.

use crate::error::SetupError;
use crate::plan::read;
use crate::setup::RoutedSetup;
use cutline_netlink::{Interface, InterfaceUse, interfaces, uses};
use cutline_text::Printable;
use std::net::{IpAddr, Ipv4Addr};

/// The address of the TUN interfaces: the kernel accepts packets from any source only at an interface that has one. It is the
/// dummy address of RFC 7600, which is never the destination of a packet.
pub const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

/// Checks that the host routes by the interfaces that a setup names, and not by others that they are below or in.
///
/// # Errors
/// When it routes by another one, with its name; when hosts behind others would be cut off; or when the kernel cannot be queried.
pub fn check(setup: &RoutedSetup) -> Result<(), SetupError> {
    let all = interfaces().map_err(|error| failed(&error))?;
    let named = setup.lan.iter().map(|name| ("--lan", name)).chain([("--wan", &setup.wan)]);
    for (option, name) in named {
        let Some(interface) = all.iter().find(|of| of.name == *name) else { continue };
        for other in uses(interface.index).map_err(|error| failed(&error))? {
            let (master, why) = match other {
                InterfaceUse::Master(master) => (master, "it is a member of"),
                InterfaceUse::Upper(upper) if !has_address(interface) && is_addressed(&all, &upper) => {
                    (upper, "it has no address, and there is one on top of it,")
                }
                _ => continue,
            };
            let master = Printable(&master);
            return Err(SetupError::Failed(format!(
                "{option} {name}: {why} `{master}`, by which this host routes: {option} {master}"
            )));
        }
    }
    for name in left_out(setup)? {
        if is_strict(&name) {
            let shown = Printable(&name);
            return Err(SetupError::Failed(format!(
                "hosts behind `{shown}` would be cut off from {}: `{shown}` refuses packets whose answers come by another interface \
                 (rp_filter). Add --lan {shown} if hosts are behind it, else `sysctl -w net.ipv4.conf.{}.rp_filter=2`",
                setup.wan,
                name.replace('.', "/")
            )));
        }
    }
    Ok(())
}

/// Returns whether an interface checks strictly that packets come by the interface of the route to their source (RFC 3704 section
/// 2.2): the larger one of its own setting and that of all interfaces counts.
fn is_strict(name: &str) -> bool {
    let of =
        |name: &str| read(&format!("ipv4/conf/{name}/rp_filter")).and_then(|text| text.parse::<u8>().ok());
    of("all").max(of(name)) == Some(1)
}

/// Returns the other interfaces with addresses, whose hosts send past the router.
///
/// # Errors
/// When the kernel cannot be queried.
pub fn left_out(setup: &RoutedSetup) -> Result<Vec<String>, SetupError> {
    let is_named = |interface: &Interface| interface.name == setup.wan || setup.lan.contains(&interface.name);
    let all = interfaces().map_err(|error| failed(&error))?;
    let others = all.iter().filter(|of| of.is_up && !of.is_loopback && has_address(of) && !is_named(of));
    Ok(others.map(|interface| interface.name.clone()).collect())
}

/// Returns whether an interface has an address besides those that every interface gets, and that of our own ones.
fn has_address(interface: &Interface) -> bool {
    interface.addresses.iter().any(|of| match of.address {
        IpAddr::V4(address) => address != DUMMY && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    })
}

fn is_addressed(all: &[Interface], name: &str) -> bool {
    all.iter().any(|interface| interface.name == name && has_address(interface))
}

fn failed(error: &cutline_netlink::Error) -> SetupError {
    SetupError::Failed(error.to_string())
}
