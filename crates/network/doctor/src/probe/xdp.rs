//! The XDP features of a driver, from the kernel's generic netlink family `netdev` (since Linux 6.3;
//! Documentation/netlink/specs/netdev.yaml). A query changes nothing. Binding a socket would make many drivers restart
//! their queues.

use rustix::fd::OwnedFd;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

/// The XDP features of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Programs can run in the driver, before the kernel processes a frame.
    pub native: bool,
    /// Sockets can share memory with the card.
    pub zero_copy: bool,
}

/// The generic netlink family that resolves the others by name: its number, its command, and the attributes of a
/// family's number and name.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// The command of the family `netdev`, and the attributes of the interface's index and its features.
const GET_DEVICE: u8 = 1;
const INTERFACE: u16 = 1;
const FEATURES: u16 = 3;
/// Bits of the features.
const BASIC: u64 = 1;
const ZERO_COPY: u64 = 1 << 3;

/// Lengths of a netlink message's header and of the generic one behind it, bytes.
const HEADER: usize = 16;
const GENERIC: usize = 4;

/// The features of the interface with this index; `None` if the kernel does not report them.
pub(super) fn features(index: u32) -> Option<XdpFeatures> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::GENERIC));
    let socket = socket.ok()?;
    connect(&socket, &SocketAddrNetlink::new(0, 0)).ok()?;
    let family = ask(&socket, CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0")?;
    let family = u16::from_ne_bytes(*find(&family, FAMILY_ID)?.first_chunk()?);
    let device = ask(&socket, family, GET_DEVICE, INTERFACE, &index.to_ne_bytes())?;
    let features = u64::from_ne_bytes(*find(&device, FEATURES)?.first_chunk()?);
    Some(XdpFeatures { native: features & BASIC != 0, zero_copy: features & ZERO_COPY != 0 })
}

/// Sends a request with one attribute, and returns the attributes of the reply.
fn ask(socket: &OwnedFd, family: u16, command: u8, attribute: u16, value: &[u8]) -> Option<Vec<u8>> {
    send(socket, &message(family, command, attribute, value), SendFlags::empty()).ok()?;
    let mut answer = vec![0; 16 << 10];
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::empty()).ok()?;
    attributes(&answer[..length], family).map(<[u8]>::to_vec)
}

/// A message in the machine's byte order: length, family, flags, sequence, sender; command, version; attribute.
fn message(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    const REQUEST: u16 = 1;
    let of_attribute = 4 + value.len();
    let length = HEADER + GENERIC + of_attribute.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((of_attribute as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length, 0);
    bytes
}

/// The part of a reply behind its headers; `None` if the reply is not of this family, such as an error.
fn attributes(answer: &[u8], family: u16) -> Option<&[u8]> {
    let length = u32::from_ne_bytes(*answer.first_chunk()?) as usize;
    let of = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    (of == family).then(|| answer.get(HEADER + GENERIC..length))?
}

/// The value of an attribute. An attribute has a length, which includes its header, and a kind. It is padded to a multiple
/// of four bytes.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let this_kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(4..length)?;
        if this_kind == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_others_and_nothing_is_read_past_the_end() {
        let first = message(0x1c, 1, 7, b"abcde");
        assert_eq!(first.len(), 16 + 4 + 12);
        let mut both = attributes(&first, 0x1c).unwrap().to_vec();
        both.extend(attributes(&message(0x1c, 1, 3, &[9; 8]), 0x1c).unwrap());
        assert_eq!(
            (find(&both, 7), find(&both, 3), find(&both, 5)),
            (Some(&b"abcde"[..]), Some(&[9; 8][..]), None)
        );
        assert_eq!(attributes(&first, 2), None, "an error");
        for end in 0..both.len() {
            assert_eq!(find(&both[..end], 3), None, "cut off at {end}");
        }
        for end in 0..first.len() {
            assert_eq!(attributes(&first[..end], 0x1c), None, "cut off at {end}");
        }
    }

    /// Kernels before 6.3 report no features.
    #[test]
    fn the_loopback_has_no_driver_to_run_programs_in() {
        assert!(features(1).is_none_or(|features| !features.native && !features.zero_copy));
        assert_eq!(features(u32::MAX), None);
    }
}
